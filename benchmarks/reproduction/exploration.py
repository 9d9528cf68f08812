"""Error rates of the verdicts on exploration, over cases of which the truth is known:
docs/EXPLORATION.md.

    python -m benchmarks.reproduction.exploration --write

A case is one agent with one exploration parameter in one simulator; a family is all cases of an
agent in a simulator. The truth is the regret of the family: its best setting has the smallest mean
regret, and a setting is sick if it loses more than `LOSS` of the gain of the best one (lower end of
the paired 95 % interval over replications). A sick setting below the best explores too little, one
above it too much."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bandits import Experiment, diagnostics, run
from bandits.base.formatting import percent
from bandits.base.types import FloatArray
from bandits.results import metrics
from bandits.results.result import Result
from benchmarks.measure import stamp

LOSS = 0.1
REPLICATIONS = 8
# seeds for choosing the thresholds, and for the table
CHOSEN_ON, SHOWN_ON = (1, 4), (2, 3)
DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "EXPLORATION.md"
PARAMETERS = {"linucb": "alpha", "lints": "sigma2", "epsilon_greedy": "epsilon"}
SYMBOLS = {"linucb": "LinUCB, α", "lints": "LinTS, σ²", "epsilon_greedy": "ε-greedy, ε"}


class Setup(NamedTuple):
    """A simulator, the agents' common parameters in it, and the grid of each family in ascending
    order.
    """

    title: str
    simulator: dict[str, Any]
    steps: int
    common: dict[str, Any]
    grids: dict[str, list[float]]


SETUPS = (
    Setup(
        "Pet shop",
        {"kind": "petshop"},
        6000,
        {},
        {
            "linucb": [0, 0.02, 0.1, 0.4, 1.5, 6],
            "lints": [0, 1e-4, 1e-3, 0.01, 0.5, 25],
            "epsilon_greedy": [0, 0.001, 0.05, 0.1, 0.3, 0.8],
        },
    ),
    Setup(
        "Pet shop, long",
        {"kind": "petshop"},
        20_000,
        {},
        {
            "linucb": [0, 0.02, 0.1, 0.5, 1.5, 6],
            "lints": [0, 1e-4, 1e-3, 0.01, 0.5, 25],
            "epsilon_greedy": [0, 0.001, 0.05, 0.1, 0.3, 0.8],
        },
    ),
    Setup(
        "Digits",
        {
            "kind": "classification",
            "data": "digits",
            "encoding": "context",
            "scale": "norm",
            "constant": False,
        },
        2000,
        {},
        {
            "linucb": [0, 0.03, 1, 4, 10],
            "lints": [0, 0.001, 0.03, 1, 30],
            "epsilon_greedy": [0, 0.01, 0.1, 0.3, 0.9],
        },
    ),
    Setup(
        "Linear",
        {
            "kind": "synthetic",
            "function": "linear",
            "n_features": 12,
            "n_arms": 20,
            "reward": "bernoulli",
            "scale": 4.0,
        },
        3000,
        {"sharing": "shared"},
        {
            "linucb": [0, 0.3, 1, 3, 10],
            "lints": [0, 0.01, 0.1, 10, 100],
            "epsilon_greedy": [0, 0.01, 0.03, 0.3, 0.8],
        },
    ),
    Setup(
        "Ranking",
        {
            "kind": "ranking",
            "n_users": 100,
            "n_items": 200,
            "n_candidates": 30,
            "slate": 3,
            "embedding": 8,
        },
        2000,
        {"sharing": "shared", "ridge": 1e-3},
        {
            "linucb": [0, 0.1, 0.5, 1, 10],
            "lints": [0, 0.003, 0.03, 3, 30],
            "epsilon_greedy": [0, 0.01, 0.03, 0.3, 0.8],
        },
    ),
)


class Judgement(NamedTuple):
    """What diagnostics conclude on exploration, and which diagnostics raise an alarm."""

    verdict: str
    direction: str
    alarms: tuple[str, ...]


class Outcome(NamedTuple):
    """One run of one case: its regret and gain by replication, float64 (R,), and what diagnostics
    conclude.

    The agent is judged as if it ran alone; ``beside`` is the judgement beside the other settings of
    its family."""

    setup: str
    kind: str
    value: float
    seed: int
    regret: FloatArray
    gain: FloatArray
    verdict: str
    direction: str
    alarms: tuple[str, ...]
    beside: Judgement


class Row(NamedTuple):
    """One case over all seeds: the share of the gain lost against the best setting, the truth, and
    the verdicts.
    """

    setup: str
    kind: str
    value: float
    loss: metrics.Estimate
    # "best", "too little", "too much", or "" between
    truth: str
    outcomes: list[Outcome]


def experiment(
    setup: Setup, kind: str, seed: int, *, replications: int = REPLICATIONS
) -> Experiment:
    """Return the experiment of one family."""
    name = PARAMETERS[kind]
    agents = [
        {"kind": kind, name: v, "label": f"{name} {v:g}", **setup.common} for v in setup.grids[kind]
    ]
    data = {
        "simulator": setup.simulator,
        "agents": agents,
        "steps": setup.steps,
        "replications": replications,
    }
    return Experiment.model_validate({**data, "seed": seed})


def judge(
    setup: Setup, kind: str, result: Result, references: tuple[Any, Any, Any]
) -> list[Outcome]:
    """Apply all diagnostics to the runs of one family."""
    outcomes = []
    for value, (label, history) in zip(setup.grids[kind], result.histories.items(), strict=True):
        regret = metrics.total(history, "best_value") - metrics.total(history, "value")
        gain = metrics.total(history, "best_value") - metrics.total(history, "random_value")
        alone = Result(result.experiment, {label: history})
        judged, beside = (
            _judgement(diagnostics.findings(each, label, *references)) for each in (alone, result)
        )
        outcomes.append(
            Outcome(setup.title, kind, value, result.experiment.seed, regret, gain, *judged, beside)
        )
    return outcomes


def _judgement(found: dict[str, diagnostics.Finding]) -> Judgement:
    alarms = tuple(name for name, finding in found.items() if finding.verdict == "alarm")
    return Judgement(found["exploration"].verdict, found["exploration"].direction, alarms)


def beside_family(outcomes: list[Outcome]) -> list[Outcome]:
    """Replace every judgement by that beside the other settings of the family."""
    return [Outcome(*o[:6], *o.beside, o.beside) for o in outcomes]


def measure(setup: Setup, seed: int) -> list[Outcome]:
    """Run and judge all families in one simulator."""
    outcomes: list[Outcome] = []
    references = None
    for kind in setup.grids:
        e = experiment(setup, kind, seed)
        references = references or references_of(e)
        outcomes += judge(setup, kind, run(e), references)
    return outcomes


def references_of(e: Experiment) -> tuple[Any, Any, Any]:
    """Compute the reference values, as the view Diagnostics does."""
    return (
        diagnostics.oracle_reference(e),
        diagnostics.linearity_check(e),
        diagnostics.position_bias_check(e),
    )


def rows(outcomes: list[Outcome]) -> Iterator[Row]:
    """Derive the truth of every case from the regrets of its family, over all seeds."""
    families: dict[tuple[str, str], dict[float, list[Outcome]]] = {}
    for o in outcomes:
        families.setdefault((o.setup, o.kind), {}).setdefault(o.value, []).append(o)
    for (setup, kind), cases in families.items():
        regrets = {value: np.concatenate([o.regret for o in some]) for value, some in cases.items()}
        best = min(regrets, key=lambda value: float(regrets[value].mean()))
        gain = float(np.mean([o.gain.mean() for o in cases[best]])) - float(regrets[best].mean())
        for value, some in cases.items():
            loss = metrics.estimate((regrets[value] - regrets[best]) / gain)
            sick = value != best and loss.low > LOSS
            truth = (
                "best"
                if value == best
                else ("too little" if value < best else "too much")
                if sick
                else ""
            )
            yield Row(setup, kind, value, loss, truth, some)


class Rates(NamedTuple):
    """How often verdicts are right: counts of runs."""

    sick: int
    # watch or alarm, in the right direction
    named: int
    # alarm, in the right direction
    alarmed: int
    best: int
    # any alarm of any diagnostic on a best setting
    false_alarms: int
    # best settings whose exploration is judged not informative
    undecided: int
    between: int
    # of exploration, on settings that are neither sick nor best
    between_alarms: int


def rates(table: list[Row]) -> Rates:
    """Count right and wrong verdicts over all runs."""
    sick = [(row.truth, o) for row in table if row.truth.startswith("too") for o in row.outcomes]
    named = [o for truth, o in sick if o.direction == truth and o.verdict in ("watch", "alarm")]
    best = [o for row in table if row.truth == "best" for o in row.outcomes]
    alarmed = sum(o.verdict == "alarm" for o in named)
    undecided = sum(o.verdict == "none" for o in best)
    between = [o for row in table if not row.truth for o in row.outcomes]
    alarms = sum(o.verdict == "alarm" for o in between)
    false_alarms = sum(bool(o.alarms) for o in best)
    return Rates(
        len(sick), len(named), alarmed, len(best), false_alarms, undecided, len(between), alarms
    )


TEXT = """# Error rates of the verdicts on exploration

Written by `python -m benchmarks.reproduction.exploration --write`. *Diagnostics* decides whether an agent
explores too little, about right or too much. Here the truth is known, because every agent is run with settings from far
too little to far too much exploration.

- **Cases**: {cases}, in {simulators} settings of simulator and length: LinUCB, LinTS and ε-greedy with five or six
  values each. Every case is run {runs} times, with {replications} replications each time; the table names
  equal verdicts once, and that beside the family where it differs.
- **Steps**: {lengths}.
- **Truth**: the best setting of a family (an agent in a simulator) has the smallest mean regret. A setting is sick if
  it loses more than {loss} of the best setting's gain over random choice (lower end of the paired 95 % interval). Below
  the best setting it explores too little, above it too much. Settings in between are not judged.
- **Alone or beside the family**: a verdict may use other settings of the same agent in the same run as evidence. The
  rates are those of agents that run alone, except where stated otherwise.
- **Thresholds** were chosen on seeds {chosen}; the tables show seeds {shown}.
- **Limits**: exploring too little harms only where the same arms come back (pet shop, digits). Verdicts on other agents
  and simulators are less certain than these rates. Nothing changes during these runs. Where the simulator has changed,
  no direction is stated, unless another setting of the same agent in the run earns clearly more. On users' tables "too
  little" is stated on the same condition: their features may not express who earns what, however much is explored.

| runs | number | result |
|---|---|---|
"""


def document(table: list[Row]) -> str:
    """Write the document: both rates, and every case."""
    r = rates(table)
    shown = [setup for setup in SETUPS if setup.title in {row.setup for row in table}]
    lengths = "; ".join(f"{setup.title} {setup.steps:,}" for setup in shown)
    some = {
        "cases": len(table),
        "simulators": len(shown),
        "runs": len(table[0].outcomes),
        "lengths": lengths,
    }
    chosen, seeds_shown = (" and ".join(map(str, seeds)) for seeds in (CHOSEN_ON, SHOWN_ON))
    text = TEXT.format(
        **some, replications=REPLICATIONS, loss=percent(LOSS), chosen=chosen, shown=seeds_shown
    )
    named, alarmed = percent(r.named / r.sick, 1), percent(r.alarmed / r.sick, 1)
    text += (
        f"| sick settings that are named, in the right direction | {r.sick} | {named} (alarm: "
        f"{alarmed}) |\n"
    )
    for direction in ("too little", "too much"):
        part = rates([row for row in table if row.truth == direction])
        text += f"| – {direction} | {part.sick} | {percent(part.named / max(part.sick, 1), 1)} |\n"
    text += (
        f"| best settings with an alarm of any diagnostic | {r.best} | "
        f"{percent(r.false_alarms / r.best, 1)} |\n"
    )
    text += (
        f"| best settings on which the verdict is not informative | {r.best} | "
        f"{percent(r.undecided / r.best, 1)} |\n"
    )
    together = rates(list(rows(beside_family([o for row in table for o in row.outcomes]))))
    named, alarmed = (
        percent(together.named / together.sick, 1),
        percent(together.alarmed / together.sick, 1),
    )
    text += (
        f"| beside the family: sick settings that are named | {together.sick} | {named} (alarm: "
        f"{alarmed}) |\n"
    )
    false_alarms = percent(together.false_alarms / together.best, 1)
    text += (
        f"| beside the family: best settings with an alarm of any diagnostic | {together.best} | "
        f"{false_alarms} |\n"
    )
    in_between = percent(r.between_alarms / max(r.between, 1), 1)
    text += f"| settings in between with an alarm on exploration | {r.between} | {in_between} |\n\n"
    text += (
        "| simulator | agent | value | gain lost against the best (95 % CI) | truth | verdict |\n"
    )
    text += "|---|---|---|---|---|---|\n"
    for row in table:
        loss = f"{percent(row.loss.mean)} ({percent(row.loss.low)} to {percent(row.loss.high)})"
        loss = "–" if row.truth == "best" else loss
        verdicts = _once(o.direction for o in row.outcomes)
        beside = _once(o.beside.direction for o in row.outcomes)
        if beside != verdicts:
            verdicts += f"; beside the family: {beside}"
        text += (
            f"| {row.setup} | {SYMBOLS[row.kind]} | {row.value:g} | {loss} | {row.truth or '–'} | "
            f"{verdicts} |\n"
        )
    return text


def _once(directions: Iterable[str]) -> str:
    """Name the verdicts of the runs of a case, and equal ones once."""
    return ", ".join(dict.fromkeys(direction or "not informative" for direction in directions))


def main() -> None:
    """Measure all cases and print the document."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", action="store_true", help=f"write {DOCUMENT.name}")
    parser.add_argument("--workers", type=int, default=2, help="processes")
    parsed = parser.parse_args()
    with ProcessPoolExecutor(parsed.workers) as pool:
        parts = pool.map(
            measure, *zip(*((setup, seed) for setup in SETUPS for seed in SHOWN_ON), strict=True)
        )
        text = (
            document(list(rows([outcome for part in parts for outcome in part])))
            + f"\n{stamp(document)}\n"
        )
    sys.stdout.write(text)
    if parsed.write:
        DOCUMENT.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
