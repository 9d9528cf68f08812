"""What the presets show, at other values of their agents: docs/PRESETS.md.

    python -m benchmarks.reproduction.preset_values --write [PRESET ...]

Every preset is run three times on the same visitors, which took part in no choice: as it is shown,
with the tuned parameter of every agent at its default, and at its best (`bandits.at_best`). A
difference that is significant as shown and has the other sign, or none, elsewhere depends on the
values. Several hours of a core with the networks; PRESET names some presets alone."""

from __future__ import annotations

import argparse
import itertools
import json
import time
from pathlib import Path
from typing import Any, NamedTuple

from bandits import Experiment, UserError, read, run
from bandits.base.formatting import count
from bandits.base.types import FloatArray
from bandits.experiments.history import History
from bandits.experiments.labels import states
from bandits.experiments.presets import presets
from bandits.results import metrics
from bandits.results.metric_registry import METRICS
from bandits.results.metrics import Estimate
from bandits.sweeps import run as run_sweep
from bandits.sweeps.at_best import compared, families, tuned_parameter, tunings
from benchmarks.measure import stamp, table

DOCUMENT = Path(__file__).parents[2] / "docs" / "PRESETS.md"
# what other presets measured, if only some are named
RESULTS = Path(__file__).parent / "preset_values.json"
SHOWN, DEFAULT, BEST = "as shown", "at the defaults", "each at its best"


class Row(NamedTuple):
    """One pair of agents whose difference as shown is significant."""

    first: str
    second: str
    # clicks, or clicks per visit, that the first earns more: as shown, at the defaults, at the best
    differences: tuple[Estimate, Estimate, Estimate]

    @property
    def signs(self) -> tuple[int, ...]:
        """Direction of each difference, 0 where it is not significant."""
        return tuple((d.low > 0) - (d.high < 0) for d in self.differences)

    @property
    def verdict(self) -> str:
        """How the difference depends on the values."""
        if -self.signs[0] in self.signs:
            return "reversed"
        return "levelled" if 0 in self.signs else "holds"


def with_values(experiment: Experiment, values: dict[int, tuple[str, Any]]) -> Experiment:
    """Return an experiment with other values of one parameter of some agents."""
    data = experiment.model_dump(mode="json")
    for i, (name, value) in values.items():
        data["agents"][i][name] = value
    return read(data)


def measure(experiment: Experiment) -> tuple[list[Row], str]:
    """Compare all pairs of agents as shown, at the defaults and at their best; return the values
    that were chosen too.
    """
    tuned = tunings(experiment)
    landscapes = [run_sweep(sweep) if sweep else None for _, sweep in tuned]
    best = compared(experiment, landscapes)
    defaults, chosen = dict[int, tuple[str, Any]](), dict[int, tuple[str, Any]]()
    for (alike, sweep), agent in zip(tuned, best.experiment.agents, strict=True):
        if sweep is None:
            continue
        name = sweep.axes[0].name
        for i in alike:
            defaults[i] = name, type(agent).model_fields[name].default
            chosen[i] = name, getattr(agent, name)
    fresh = experiment.model_copy(update={"seed": best.experiment.seed})
    rates = []
    for values in ({}, defaults, chosen):
        # in the order of the agents, whose names may state other values
        result = run(with_values(fresh, values), workers=0)
        rates.append([earned(fresh, history) for history in result.histories.values()])
    pairs = [
        (a, b)
        for one, other in itertools.combinations([each.agents for each in tuned], 2)
        for a, b in itertools.product(one, other)
    ]
    rows = []
    for a, b in pairs:
        d = tuple(metrics.estimate(of[a] - of[b], family=3 * len(pairs)) for of in rates)
        if d[0].mean < 0:
            a, b = b, a
            d = tuple(Estimate(-e.mean, -e.high, -e.low) for e in d)
        row = Row(experiment.labels[a], experiment.labels[b], (d[0], d[1], d[2]))
        if row.signs[0]:
            rows.append(row)
    values_chosen = ", ".join(f"{experiment.labels[i]} {n} {v:g}" for i, (n, v) in chosen.items())
    return rows, values_chosen


def earned(experiment: Experiment, history: History) -> FloatArray:
    """Return what is compared, of every replication: clicks, or those of a visit at the end."""
    if experiment.offers("visits"):
        return METRICS["late_per_visit"].rows(history)
    return metrics.click_rate(history) * experiment.steps


def fits(experiment: Experiment) -> bool:
    """Whether the agents of a preset can be tuned: a log knows no true rewards, and two agents must
    differ in more than the parameter.
    """
    try:
        families(experiment)
    except UserError:
        return False
    return True


def recorded() -> dict[str, Any]:
    """Return what was measured, by preset."""
    found: dict[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8"))
    return found


def rows_of(found: dict[str, Any]) -> list[Row]:
    """Return the pairs of agents of a preset that was measured."""
    return [
        Row(first, second, tuple(Estimate(*d) for d in differences))  # type: ignore[arg-type]
        for first, second, differences in found["rows"]
    ]


def named(experiment: Experiment, row: Row) -> bool:
    """Whether the name of one of the agents states the value of its tuned parameter."""
    for label, agent in zip(experiment.labels, experiment.agents, strict=True):
        name = tuned_parameter(agent)
        if label in row[:2] and name and states(label, name, getattr(agent, name)):
            return True
    return False


def document(results: dict[str, Any]) -> str:
    """Return the document of all results."""
    rows = []
    for name, found in results.items():
        title = presets()[name].title
        for row in rows_of(found):
            visits = presets()[name].experiment.offers("visits")
            cells = [_cell(difference, per_visit=visits) for difference in row[2]]
            stated = ", as a name states" * named(presets()[name].experiment, row)
            verdict = row.verdict if row.verdict == "holds" else row.verdict + stated
            rows.append((title, f"{row.first}, {row.second}", *cells, verdict))
        if not found["rows"]:
            rows.append((title, "no significant difference", "", "", "", ""))
    values = "\n".join(
        f"- {presets()[name].title}: {found['values']}." for name, found in results.items()
    )
    others = {n: p for n, p in presets().items() if n not in results}
    left_out = ", ".join(p.title for p in others.values() if not fits(p.experiment))
    missing = ", ".join(p.title for p in others.values() if fits(p.experiment))
    return f"""# What the presets show, at other values

Each preset is run three times on the same visitors: as it is shown, with the tuned parameter of every
agent at its default, and with every agent at its best of a sweep of nine values (*Compare each at its
best*). Other visitors chose the values: the seed is the preset's plus one. The table lists the pairs
of agents whose difference is significant as shown: clicks that the first earns more (in presets of visits:
clicks per visit in the last fifth of the run), with 95 % intervals that hold together over the pairs and the three runs of a preset. *Reversed*: significant with the other
sign at other values. *Levelled*: not significant there. The text of a preset states which of its
comparisons are reversed, unless a name does ("LinUCB alpha 1.5").

{table(("preset", "agents", SHOWN, DEFAULT, BEST, "difference"), rows)}

The best values:

{values}

Left out, as they replay a log or their agents differ in the tuned parameter alone: {left_out}.

Not measured yet: {missing or "none"}.

{stamp(measure)}
"""


def _cell(difference: Estimate, *, per_visit: bool) -> str:
    mean, low, high = (_signed(value, per_visit=per_visit) for value in difference)
    return f"{mean} ({low} to {high})"


def _signed(value: float, *, per_visit: bool) -> str:
    text = f"{abs(value):.2f}" if per_visit else count(abs(value))
    return f"{'−' if value < 0 else ''}{text}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write docs/PRESETS.md")
    parser.add_argument(
        "presets", nargs="*", metavar="PRESET", help="presets to measure; all by default"
    )
    parsed = parser.parse_args()
    results = recorded()
    for name in parsed.presets or presets():
        e, began = presets()[name].experiment, time.monotonic()
        if not fits(e):
            continue
        rows, values = measure(e)
        rounded = [
            (r.first, r.second, [[float(f"{x:.4g}") for x in d] for d in r.differences])
            for r in rows
        ]
        results[name] = {"hash": e.hash, "values": values, "rows": rounded}
        print(f"{name}: {time.monotonic() - began:.0f} s; {values}")
        for row in rows:
            means = " ".join(f"{d.mean:.4g}" for d in row.differences)
            print(f"  {row.first}, {row.second}: {means} {row.verdict}", flush=True)
        if parsed.write:
            ordered = {n: results[n] for n in presets() if n in results}
            lines = [f" {json.dumps(n)}: {json.dumps(found)}" for n, found in ordered.items()]
            RESULTS.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    if parsed.write:
        DOCUMENT.write_text(document(recorded()))


if __name__ == "__main__":
    main()
