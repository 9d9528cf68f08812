"""What forgetting costs while nothing changes, and what it earns when something does, over values
of one parameter.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from bandits.base.errors import UserError
from bandits.base.types import FloatArray
from bandits.experiments.experiment import Experiment, read
from bandits.experiments.history import History
from bandits.results import metrics, words
from bandits.results.comparison.paired_tests import gaps, paired_test
from bandits.results.figures.parts import axis, drawing, error_bars, points, reference
from bandits.results.figures.style import AXIS, COUNT, Spec, styles
from bandits.results.metrics import Estimate
from bandits.results.run import Run

GAMMAS = (1.0, 0.9999, 0.9998, 0.9995, 0.999, 0.998, 0.995)
WINDOWS = (None, 20_000, 10_000, 5_000, 2_000, 1_000, 500)

# names of neighbours do not touch
_SIDES = ("top left", "bottom center", "top right", "bottom center")


class Forgetting(NamedTuple):
    """An agent that forgets, against the same agent without forgetting, on the same users.

    Attributes
    ----------
    name : str
        The parameter and its value.
    price : Estimate
        Expected clicks that it earns less in the run without changes, paired by replication.
    gain : Estimate
        Expected clicks that it earns more in the run with changes. The 95 % intervals of all values
        hold together, as the best value is chosen by the same data (Bonferroni, separately for
        price and gain).
    p_value : float
        Two-sided paired t test of the gain, corrected for the number of values (Bonferroni).
    """

    name: str
    price: Estimate
    gain: Estimate
    p_value: float


def variants(experiment: Experiment, label: str, parameter: str) -> Experiment:
    """Return the experiment with one agent alone, once for each value of how it forgets, the first
    without forgetting.

    Parameters
    ----------
    experiment : Experiment
    label : str
        Of an agent with the parameter.
    parameter : {"gamma", "window"}

    Raises
    ------
    UserError
        The agent has no such parameter.
    """
    agent = experiment.agents[experiment.labels.index(label)]
    if parameter not in type(agent).model_fields:
        raise UserError(f"{label} has no parameter {parameter}")
    values: tuple[Any, ...] = {"gamma": GAMMAS, "window": WINDOWS}[parameter]
    plain = {**agent.model_dump(mode="json", by_alias=True), "gamma": 1.0, "window": None}
    plain = {name: value for name, value in plain.items() if name in type(agent).model_fields}
    agents = [{**plain, parameter: value, "label": _name(parameter, value)} for value in values]
    return read({**experiment.model_dump(mode="json", by_alias=True), "agents": agents})


def _name(parameter: str, value: float | None) -> str:
    return "all steps" if value in (None, 1.0) else f"{parameter} {value:g}"


def compare(changed: Run, unchanged: Run) -> list[Forgetting]:
    """Compare each agent with the first one, in the run with changes and in that without."""
    first, *others = changed.histories
    lost = [_difference(unchanged.histories[first], unchanged.histories[name]) for name in others]
    gained = [_difference(changed.histories[name], changed.histories[first]) for name in others]
    return estimated(others, lost, gained)


def estimated(
    names: Sequence[str], lost: Sequence[FloatArray], gained: Sequence[FloatArray]
) -> list[Forgetting]:
    """Estimate price and gain of each value from paired differences, each float64 (R,)."""
    family = len(names)
    return [
        Forgetting(
            name,
            metrics.estimate(price, family=family),
            metrics.estimate(gain, family=family),
            paired_test(gain, family=family)[1],
        )
        for name, price, gain in zip(names, lost, gained, strict=True)
    ]


def _difference(a: History, b: History) -> FloatArray:
    found = gaps(a, b, "value")
    return np.asarray(found[np.isfinite(found)])


def figure(found: list[Forgetting], changed: Run) -> Spec:
    """Draw the gain of each value against its price; the diagonal is where the two are equal."""
    noun = changed.experiment.simulator_class().reward_noun
    note = (
        "Each point is one value, against the same agent with all steps; bars: 95 % confidence "
        f"intervals over {changed.experiment.replications} paired replications, widened so that "
        "they hold for all values. Above the dashed line, forgetting earns more in the run with "
        "changes than it costs in the run without."
    )
    look = next(iter(styles(changed.experiment).values()))
    price, gain = (
        np.array([getattr(f, name) for f in found], np.float64) for name in ("price", "gain")
    )
    ends = np.array([min(price.min(), gain.min(), 0.0), max(price.max(), gain.max())])
    bars = {
        f"error_{name}": error_bars(
            e[:, 2] - e[:, 0], look.color, below=e[:, 0] - e[:, 1], thickness=1, width=3
        )
        for name, e in (("x", price), ("y", gain))
    }
    texts = {
        "text": [f.name.rpartition(" ")[2] for f in found],
        "textposition": [_SIDES[i % len(_SIDES)] for i in range(len(found))],
        "hovertext": [f.name for f in found],
        "hovertemplate": f"%{{hovertext}}<br>costs %{{x:{COUNT}}}, earns %{{y:{COUNT}}}<extra></extra>",  # noqa: E501
    }
    values = points(
        "forgetting", price[:, 0], gain[:, 0], look.color, 9, cliponaxis=False, **bars, **texts
    )
    return drawing(
        [reference("equal", ends, ends, hoverinfo="skip"), {**values, "mode": "markers+text"}],
        "What forgetting costs and earns",
        note,
        caption="Up: better with changes; right: worse without",
        x={**AXIS, **axis(f"{noun} lost without changes", range=_range(price))},
        y={**AXIS, **axis(f"{noun} gained with changes", range=_range(gain))},
    )


def _range(estimates: FloatArray) -> list[float]:
    """Return the range of an axis that holds 0 and the bars of ``estimates (n, 3)``, with room for
    their names.
    """
    low, high = min(float(np.nanmin(estimates)), 0.0), max(float(np.nanmax(estimates)), 0.0)
    room = 0.12 * (high - low) or 1.0
    return [low - room, high + room]


def conclusion(found: list[Forgetting], noun: str = "clicks") -> str:
    """State which value earns most over both runs, of those that earn significantly more in the run
    with changes.

    Its interval covers in at least 95 % of runs although the value is chosen by the same data
    (measured in `tests/results/test_price_of_forgetting.py`)."""
    better = [f for f in found if f.gain.mean > 0 and f.p_value <= 0.05]
    best = max(better, key=lambda f: f.gain.mean - f.price.mean, default=None)
    if best is None:
        return (
            "No value earns significantly more than no forgetting (all steps) in this run with "
            "changes."
        )
    spread = words.plus_minus(abs(best.price), "count")
    other = (
        f"costs {spread} in the run without"
        if best.price.mean >= 0
        else f"earns {spread} more in the run without too"
    )
    gain = f"{words.plus_minus(best.gain, 'count')} {noun}"
    more = f"earns {gain} more than no forgetting (all steps) in the run with changes"
    return f"Best over both runs: {best.name} {more} and {other}."
