"""Ten questions, the clicks that answer them, and what the pages then state: docs/questions.md.

    python -m benchmarks.reproduction.questions --write

All numbers are those of runs and of the functions that write the pages' sentences. About four
minutes on two cores, of which the sweep takes most."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from bandits import Experiment, diagnostics, read, run
from bandits.advice.evidence import filled
from bandits.agents.linear.linucb import LinUCB
from bandits.experiments.presets import presets
from bandits.results.comparison.conclusion import (
    learning_summary,
    main_comparison,
    shock_summary,
)
from bandits.results.result import Result
from bandits.sweeps import Landscape
from bandits.sweeps import read as read_sweep
from bandits.sweeps import run as run_sweep
from bandits.sweeps.parameters import suggest_axis
from bandits_app.home.start import describe_shop
from bandits_app.sweep.conclusions import chosen
from benchmarks.measure import stamp, table
from benchmarks.reproduction.choosing import ALPHAS

DOCUMENT = Path(__file__).parents[2] / "docs" / "questions.md"


def preset(name: str, **agents: dict[str, Any] | None) -> Experiment:
    """Return a preset with other agents: by position, `a0`, the fields that change; None removes
    an agent, and a position beyond the last one adds it.
    """
    data = presets()[name].experiment.model_dump(mode="json")
    known = dict(enumerate(data["agents"]))
    for place, fields in agents.items():
        i = int(place.removeprefix("a"))
        known[i] = None if fields is None else {**(known.get(i) or {}), **fields}
    return read({**data, "agents": [agent for agent in known.values() if agent is not None]})


class Runs:
    """The runs and the sweep behind the answers, each computed once."""

    @cached_property
    def race(self) -> Result:
        """Home's run."""
        return run(preset("race"))

    @cached_property
    def off(self) -> Result:
        """Preset No exploration, with UCB1."""
        return run(preset("off", a4={"kind": "ucb1"}))

    @cached_property
    def epsilon(self) -> Result:
        """Preset No exploration with ε = 0.2 instead of 0, without LinUCB."""
        more = {"epsilon": 0.2, "label": "ε-greedy epsilon 0.2"}
        return run(preset("off", a0=None, a1=None, a2=more))

    @cached_property
    def networks(self) -> Result:
        """Preset Neural agents on the pet shop."""
        return run(preset("networks"))

    @cached_property
    def shock(self) -> Result:
        """Preset Market shock."""
        return run(preset("shock"))

    @cached_property
    def sweep(self) -> Landscape:
        """The grid that the page Sweep proposes."""
        alpha, ridge = (suggest_axis(LinUCB.Params, n, k) for n, k in (("alpha", 9), ("ridge", 7)))
        alpha["extra"] = (*alpha["extra"], LinUCB.Params().alpha)
        axes = [{"path": "agents.0.alpha", **alpha}, {"path": "agents.0.ridge", **ridge}]
        return run_sweep(read_sweep({"experiment": {"agents": [{"kind": "linucb"}]}, "axes": axes}))

    def concluded(self, label: str) -> diagnostics.Conclusion:
        """Conclude of one agent of Home's run how it explores."""
        return diagnostics.conclude(self._findings(label))

    def regret(self, label: str) -> str:
        """State what the finding about the regret of an agent of Home's run states."""
        return self._findings(label)["regret"].text

    def _findings(self, label: str) -> dict[str, diagnostics.Finding]:
        e = self.race.experiment
        references = (
            diagnostics.oracle_reference(e),
            diagnostics.linearity_check(e),
            diagnostics.position_bias_check(e),
        )
        return diagnostics.findings(self.race, label, *references)


def about(result: Result, name: str, reference: str | None = None) -> str:
    """Return what a run's page states about one agent, compared with another or the leader."""
    first, others = main_comparison(result, reference)
    return next(sentence for sentence in [first, *others] if name in sentence)


class Question(NamedTuple):
    """A question, the clicks, where the answer is read, and the answer."""

    question: str
    clicks: str
    read: str
    answer: Callable[[Runs], str]


QUESTIONS = (
    Question(
        "What does it cost never to explore?",
        "Arena: preset **No exploration**, **Run**",
        "Arena: conclusions below the plots",
        lambda runs: (
            f"{about(runs.off, 'LinUCB alpha 0 ', '')} {about(runs.off, 'ε-greedy epsilon 0 ', '')}"
        ),
    ),
    Question(
        "Which α should LinUCB have in the pet shop?",
        "Home: **Tune**; Sweep: **Run**",
        "Sweep: sentence above the map; star and outline in it",
        lambda runs: chosen(runs.sweep, "ctr"),
    ),
    Question(
        "What does ε = 0.2 cost against ε = 0.05?",
        'Arena: preset **No exploration**; sidebar: set ε of "ε-greedy epsilon 0" to 0.2 and '
        "remove both LinUCB agents (**More**, **Remove**); **Run**",
        "Arena: sentence above the plots; the name of the agent follows its parameter",
        lambda runs: about(runs.epsilon, "epsilon 0.2"),
    ),
    Question(
        "Is NeuralUCB worth its cost here?",
        "Arena: preset **Neural agents on the pet shop**, **Run**; below the plots, **Compared "
        "with**: NeuralUCB",
        "Arena: conclusions",
        lambda runs: (
            f"{about(runs.networks, 'LinUCB', 'NeuralUCB')} With **Compared with** at LinUCB: "
            f"{about(runs.networks, 'Neural-linear TS', 'LinUCB')}"
        ),
    ),
    Question(
        "Which agent is best after a market shock?",
        "Arena: preset **Market shock**, **Run**",
        "Arena: sentences about the shock and the leader",
        lambda runs: " ".join([*shock_summary(runs.shock), main_comparison(runs.shock)[0]]),
    ),
    Question(
        "Does context help at all?",
        "Arena: preset **No exploration**; sidebar: **Add agent**, **UCB1**; **Run**",
        "Arena: conclusion about UCB1",
        lambda runs: f"Yes. {about(runs.off, 'UCB1')} UCB1 ignores the context.",
    ),
    Question(
        "Does LinUCB with α = 1.5 explore too much?",
        "Home: **Research**",
        'Diagnostics: conclusion about "LinUCB alpha 1.5"',
        lambda runs: f"Yes. {runs.concluded('LinUCB alpha 1.5').text}",
    ),
    Question(
        "Does the regret of LinUCB flatten?",
        "Home: **Research**, agent LinUCB, **Show the figures without alarm or watch**",
        "Diagnostics: text above the figure Regret",
        lambda runs: runs.regret("LinUCB"),
    ),
    Question(
        "How certain is it that LinUCB beats ε-greedy?",
        "Home: **Open in the Arena**; below the plots, **Compared with**: LinUCB",
        "Arena: conclusion about ε-greedy, corrected for multiple comparisons",
        lambda runs: about(runs.race, "ε-greedy", "LinUCB"),
    ),
    Question(
        "How much better than random choice is the best choice?",
        "Home",
        "Home: text above the run; conclusions below the plots",
        lambda runs: (
            f"{describe_shop(runs.race.experiment, runs.race).split('. ', 1)[1]} "
            f"{learning_summary(runs.race)}"
        ),
    ),
)


def document(runs: Runs) -> str:
    """Return the document, with the sentences of the pages."""
    header = "question", "clicks", "what is read", "answer"
    rows = [(q.question, q.clicks, q.read, q.answer(runs)) for q in QUESTIONS]
    e = runs.race.experiment
    which = filled(
        f"*Which should I use?* names α = 0.4, the best of its {len(ALPHAS)} values "
        "({{alpha.alike_low | number}} to {{alpha.alike_high | number}} are not significantly "
        "worse): {{alpha.alpha_0_4 | rate ci}} clicks per step."
    )
    return f"""# Questions that the pages answer

Each answer is found on the pages alone: the clicks, what is read, and what stands there. The sentences are made by the
functions that write the pages, on runs of the same experiments. They are runs in the pet shop with {e.steps:,} steps,
{e.replications} replications and seed {e.seed}, except for the networks (as their preset states).

{table(header, rows)}

Other pages name other values of α. {which}

{stamp(document)}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write docs/questions.md")
    parsed = parser.parse_args()
    text = document(Runs())
    print(text)
    if parsed.write:
        DOCUMENT.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
