"""The glossary: one file behind the page, docs/glossary.md and the links of the Arena."""

from __future__ import annotations

import re

from bandits.agents import REGISTRY as AGENTS
from bandits.base.params import declaration
from bandits.runtime.pool import Pool
from bandits_app.glossary import document, link_symbol, terms
from tests.pages.support import ROOT, open_page

BASICS = (
    "Contextual bandit",
    "Arm",
    "Context",
    "CTR",
    "Regret",
    "Pseudo-regret",
    "Replication",
    "Run",
    "Simulator",
    "Common random numbers",
    "Confidence interval",
    "Exploration bonus",
    "Confidence width",
    "Posterior",
    "Prior",
    "Ridge penalty",
    "Design matrix A",
    "Eigenvalue spectrum",
    "Condition number",
    "Effective dimension",
    "Selection entropy",
    "Coverage",
    "Calibration",
    "PIT histogram",
    "Predictive R²",
    "Linearity check",
    "Premature convergence",
    "Segment",
    "Slate",
    "Position bias",
    "Propensity",
    "Oracle",
    "Random baseline",
    "Normalised performance",
    "Break-even",
    "Holm correction",
    "Paired difference",
    "Replay buffer",
    "Discount factor",
    "Sliding window",
    "Thompson sampling",
    "UCB",
    "ε-greedy",
    "Random Fourier features",
    "Sweep",
    "Successive halving",
)


def test_the_document_is_generated_from_the_terms() -> None:
    written = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    assert written == document(), "run: python -m bandits_app.glossary"


def test_every_basic_term_is_defined_in_one_or_two_sentences() -> None:
    names = [entry.term for entry in terms().values()]
    assert names == sorted(names, key=lambda name: name.replace("ε", "e").casefold())
    for basic in BASICS:
        assert any(re.match(rf"{re.escape(basic)}( \(|$)", name) for name in names), basic
    for entry in terms().values():
        sentences = re.findall(r"[.](?= [A-Z]|$)", entry.text)
        assert 1 <= len(sentences) <= 3, entry.term
        assert re.fullmatch(r"[a-z0-9-]+", entry.id)
        assert entry.id not in entry.see
        assert set(entry.see) <= terms().keys(), entry.term


def test_the_page_shows_every_term_under_its_anchor_and_finds_terms(pool: Pool) -> None:
    at = open_page("learn/glossary")
    assert not at.exception
    assert [s.anchor for s in at.subheader] == list(terms())
    assert [s.value for s in at.subheader] == [entry.term for entry in terms().values()]
    at = at.text_input(key="glossary-search").set_value("pit hist").run()
    assert [s.value for s in at.subheader] == ["Calibration", "PIT histogram"][1:]
    at = at.text_input(key="glossary-search").set_value("no such term").run()
    assert not at.subheader
    assert any("No term" in m.value for m in at.markdown)


def test_links_of_the_formulas_lead_to_terms() -> None:
    source = (ROOT / "bandits_app" / "arena" / "explanations.py").read_text(encoding="utf-8")
    linked = set(re.findall(r"(?<!_)link\('?\"?([\w-]+)", source))
    assert len(linked) > 10
    assert linked <= terms().keys()
    symbols = {
        str(declaration(field)["symbol"])
        for agent in AGENTS.values()
        for field in agent.Params.model_fields.values()
    }
    for greek in (r"\alpha", r"\lambda", r"\sigma^2", r"\varepsilon", r"\gamma"):
        assert greek in symbols
        assert "glossary#" in link_symbol(greek, "x")
    assert link_symbol("a", "Prior clicks") == "Prior clicks"
