"""Draw a metric along a numeric axis of a grid, one curve with its band for each value of a second axis of choices."""

from __future__ import annotations

import numpy as np

from bandits.results.figures import curves
from bandits.results.metrics import Band
from bandits.results.style import Spec, distinct_styles
from bandits.sweeps.analysis.landscape import Landscape
from bandits.sweeps.analysis.run_metrics import METRICS
from bandits.sweeps.axis import Value
from bandits.sweeps.sweep import Sweep

from .grid import axis_ticks, format_value, parameter_title

_OTHERS = " Other parameters have the values of the best point."
MAX_CURVES = 8  # as many colours are distinct


def curves_by_choice(landscape: Landscape, metric: str) -> list[Spec]:
    """Draw the curves of a grid over a number and a choice, other axes at the best point; empty for other sweeps.

    A heat map shows where the best point is; these curves show from which value of the number on another choice earns
    more. Points that a search has dropped rest on fewer replications and are left out.
    """
    sweep = landscape.sweep
    axes = _axes(sweep)
    if axes is None or not landscape.completed.any():
        return []
    number, choice = axes
    shown = METRICS[metric]
    results = {result.point: result.estimate for result in landscape.results(metric) if not result.dropped}
    at = list(np.unravel_index(landscape.leader(metric) or 0, sweep.shape))
    bands: dict[str, Band] = {}
    for i, value in enumerate(sweep.values[choice]):
        at[choice] = np.int64(i)
        places = [*at]
        points = []
        for j in range(len(sweep.values[number])):
            places[number] = np.int64(j)
            points.append(int(np.ravel_multi_index(places, sweep.shape)))
        known = [j for j, point in enumerate(points) if point in results]
        mid, low, high = (np.array([results[points[j]][end] for j in known]) for end in range(3))
        low, high = (np.where(np.isfinite(ends), ends, mid) for ends in (low, high))
        bands[format_value(value)] = Band(np.array(known, float), mid, low, high, sweep.experiment.replications)
    by = parameter_title(sweep, choice).lower()
    note = f"{shown.unit}, mean over replications; one curve for each value of {by}. The 95 % intervals are those of "
    note += f"single points, not corrected for their number.{_OTHERS * (len(sweep.axes) > 2)}"
    note, looks, title = note[0].upper() + note[1:], distinct_styles(list(bands)), f"{shown.title} by {by}"
    spec = curves(bands, looks, title=title, note=note, y_title=shown.short_unit, end_labels=True)
    spec["layout"] |= {"xaxis": axis_ticks(sweep, number)}
    return [spec]


def _axes(sweep: Sweep) -> tuple[int, int] | None:
    """Return the first axis of at least three numbers and the first of a few choices; None without both."""
    if not sweep.is_grid or len(sweep.axes) < 2:
        return None
    numeric = [all(map(_is_number, values)) for values in sweep.values]
    numbers = [i for i, values in enumerate(sweep.values) if numeric[i] and len(values) >= 3]
    choices = [i for i, values in enumerate(sweep.values) if not numeric[i] and len(values) <= MAX_CURVES]
    return (numbers[0], choices[0]) if numbers and choices else None


def _is_number(value: Value) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
