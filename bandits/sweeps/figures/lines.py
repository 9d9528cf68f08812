"""Draw a metric along a numeric axis of a grid, one curve with its band for each value of a second
axis of choices.
"""

from __future__ import annotations

import numpy as np

from bandits.base.formatting import listed
from bandits.results.figures.curves import curves
from bandits.results.figures.style import Spec, distinct_styles
from bandits.results.metric_registry import OBJECTIVES
from bandits.results.metrics import Band
from bandits.sweeps.analysis.landscape import Landscape
from bandits.sweeps.analysis.wins_from import leads
from bandits.sweeps.axis import Value
from bandits.sweeps.sweep import Sweep

from .grid import axis_ticks, format_value, parameter_title

_OTHERS = " Other parameters have the values of the best point."
# as many colours are distinct
MAX_CURVES = 8


def curves_by_choice(landscape: Landscape, metric: str) -> list[Spec]:
    """Draw the curves of a grid over a number and a choice, other axes at the best point.

    Empty for other sweeps.

    A heat map shows where the best point is; these curves show from which value of the number on
    another choice earns more. Points that a search has dropped rest on fewer replications and are
    left out."""
    sweep = landscape.sweep
    axes = _axes(sweep)
    if axes is None or not landscape.completed.any():
        return []
    number, choice = axes
    shown = OBJECTIVES[metric].of(sweep.experiment)
    results = {
        result.point: result.estimate for result in landscape.results(metric) if not result.dropped
    }
    bands: dict[str, Band] = {}
    for value, points in zip(
        sweep.values[choice], _points(landscape, metric, number, choice), strict=True
    ):
        known = [j for j, point in enumerate(points) if point in results]
        mid, low, high = (np.array([results[points[j]][end] for j in known]) for end in range(3))
        low, high = (np.where(np.isfinite(ends), ends, mid) for ends in (low, high))
        bands[format_value(value)] = Band(
            np.array(known, float), mid, low, high, sweep.experiment.replications
        )
    by = parameter_title(sweep, choice).lower()
    note = (
        f"{shown.full_unit}, mean over replications; one curve for each value of {by}. The 95 % "
        "intervals are those of "
    )
    note += f"single points, not corrected for their number.{_OTHERS * (len(sweep.axes) > 2)}"
    note, looks, title = (
        note[0].upper() + note[1:],
        distinct_styles(list(bands)),
        f"{shown.title} by {by}",
    )
    spec = curves(bands, looks, title=title, note=note, y_title=shown.unit, end_labels=True)
    spec["layout"] |= {"xaxis": axis_ticks(sweep, number)}
    return [spec]


def comparison(landscape: Landscape, metric: str) -> str:
    """State from which value of the number on the best choice at its largest value earns more than
    each other one.

    Empty for other sweeps, and where points or replications are missing. Empty also with a third
    axis: its value would be that of the best point, which the same replications have chosen."""
    sweep = landscape.sweep
    if (axes := _axes(sweep)) is None or len(sweep.axes) > 2 or not landscape.completed.all():
        return ""
    number, choice = axes
    values = [float(value) for value in sweep.values[number] if _is_number(value)]  # type: ignore[arg-type]
    points = np.array(_points(landscape, metric, number, choice))
    numbers = OBJECTIVES[metric].better * landscape.numbers(metric)[points]
    # a diverged replication is no draw
    if not np.isfinite(numbers).all():
        return ""
    found = leads(numbers, landscape.level)
    if values != sorted(values) or not found:
        return ""
    names = [format_value(value) for value in sweep.values[choice]]
    title, best = parameter_title(sweep, number).lower(), f"{names[found[0].choice]} has"
    better = f"a better {OBJECTIVES[metric].of(sweep.experiment).title.lower()}"
    parts: list[str] = []
    for first in sorted({lead.first for lead in found if lead.first is not None}):
        begin = f"from {title} = {format_value(sweep.values[number][first])} on"
        rivals = listed([names[lead.rival] for lead in found if lead.first == first])
        parts.append(
            f"{begin}, also than {rivals}" if parts else f"{begin}, {best} {better} than {rivals}"
        )
    if open_ := [names[lead.rival] for lead in found if lead.first is None]:
        last = f"even at {title} = {format_value(sweep.values[number][-1])}"
        claim = "its lead over" if parts else f"it is not certain that {best} {better} than"
        parts.append(f"{last}, {claim} {listed(open_)}{' is not certain' if parts else ''}")
    sentence = "; ".join(parts)
    return (
        f"{sentence[0].upper()}{sentence[1:]} (paired intervals at that and every larger value, "
        f"corrected for all pairs of choices, level {landscape.level:g})."
    )


def _points(landscape: Landscape, metric: str, number: int, choice: int) -> list[list[int]]:
    """Return the points of each choice along the number.

    Other axes have the values of the best point.
    """
    sweep, found = landscape.sweep, []
    at = list(np.unravel_index(landscape.leader(metric) or 0, sweep.shape))
    for i in range(len(sweep.values[choice])):
        at[choice] = np.int64(i)
        points = []
        for j in range(len(sweep.values[number])):
            points.append(
                int(
                    np.ravel_multi_index(
                        [*at[:number], np.int64(j), *at[number + 1 :]], sweep.shape
                    )
                )
            )
        found.append(points)
    return found


def _axes(sweep: Sweep) -> tuple[int, int] | None:
    """Return the first axis of at least three numbers and the first of a few choices.

    None without both.
    """
    if not sweep.is_grid or len(sweep.axes) < 2:
        return None
    numeric = [all(map(_is_number, values)) for values in sweep.values]
    numbers = [i for i, values in enumerate(sweep.values) if numeric[i] and len(values) >= 3]
    choices = [
        i for i, values in enumerate(sweep.values) if not numeric[i] and len(values) <= MAX_CURVES
    ]
    return (numbers[0], choices[0]) if numbers and choices else None


def _is_number(value: Value) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
