"""The glossary: one file behind the page, docs/glossary.md and the links of the Arena."""

from __future__ import annotations

import re

from bandits.agents import REGISTRY as AGENTS
from bandits.base.params import declaration
from bandits.monitoring.registry import REGISTRY as MONITORS
from bandits.offpolicy.evaluation import ALL as ESTIMATORS
from bandits.results.metric_registry import METRICS
from bandits.runtime.pool import Pool
from bandits_app.glossary import document, found, link_symbol, terms
from bandits_app.widgets.text import plain_symbol
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
    "Bonferroni correction",
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


# words of tables, labels and verdicts that have no registry
OTHERS = (
    "Disparity",
    "Dropped",
    "Explained variance",
    "Exposure over merit",
    "Fair share",
    "Gini",
    "Importance weight",
    "Launch",
    "Merit",
    "Possible gain",
    "Recovery",
    "Regret per visit",
    "Take fraction",
    "Tied",
    "Too noisy to tell",
    "Worst-case loss",
)


def titles(folder: str) -> list[str]:
    """Return the titles that the classes and rules of a folder or module declare."""
    path = ROOT / "bandits" / folder
    files = path.glob("*.py") if path.is_dir() else [path]
    source = "\n".join(each.read_text(encoding="utf-8") for each in files)
    return re.findall(r'^    title = "(.+)"$', source, re.MULTILINE)


def test_the_search_finds_every_word_that_a_page_uses() -> None:
    registries = (AGENTS, MONITORS, ESTIMATORS)
    words = [each.title for registry in registries for each in registry.values()]
    words += [metric.of().title for metric in METRICS.values()]
    for folder in ("diagnostics/rules", "agents/guards/params.py", "simulators/changes.py"):
        declared = titles(folder)
        assert len(declared) > 3
        words += declared
    words += OTHERS
    # what stands in parentheses is another name
    searched = {re.sub(r" \(.*\)$", "", word) for word in words}
    assert sorted(word for word in searched if not found(word)) == []


def test_symbols_of_basic_parameters_are_found_in_all_their_spellings() -> None:
    symbols = {
        str(symbol)
        for agent in AGENTS.values()
        for field in agent.Params.model_fields.values()
        if (symbol := declaration(field)["symbol"]) and declaration(field)["basic"]
    }
    assert {r"\alpha", r"\varepsilon"} <= symbols
    for symbol in sorted(symbols):
        assert found(symbol) or found(plain_symbol(symbol)), symbol
    assert "alpha" in [term.id for term in found("alpha")]
    assert "alpha" in [term.id for term in found("α")]
    assert "epsilon" in [term.id for term in found(" Epsilon ")]


# what a run's formulas call by other names: a share of random choices, a step against the gradient,
# what a design matrix begins with, the spread of a posterior, members that choose in turn
ALIKE = {
    r"\varepsilon": {"Exploration rate", "Exploration", "Final exploration", "Mixing"},
    r"\eta": {"Learning rate", "Step size"},
    r"\lambda": {"Ridge", "Ridge penalty", "Prior precision"},
    r"\sigma^2": {"Noise variance", "Posterior scale"},
    r"\gamma": {"Discount factor", "Discount"},
    "M": {"Ensemble size", "Bag size"},
}


def test_a_letter_has_one_meaning_in_all_formulas() -> None:
    """An arm is a: no parameter is."""
    meanings: dict[str, set[str]] = {}
    for agent in AGENTS.values():
        for field in agent.Params.model_fields.values():
            if symbol := str(declaration(field)["symbol"] or ""):
                meanings.setdefault(symbol, set()).add(str(field.title))
    several = {symbol: titles for symbol, titles in meanings.items() if len(titles) > 1}
    assert several == ALIKE
    assert not meanings.keys() & {"a", "b", "x", "r", "t", "w", "K", "g", "f"}


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
