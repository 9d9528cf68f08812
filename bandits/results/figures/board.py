"""Draw the plots of a run: each is one metric of the registry, as a plain plotly dictionary."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np

from bandits.base.errors import UserError
from bandits.base.types import FloatArray, IntArray
from bandits.experiments.experiment import Experiment
from bandits.experiments.history import History
from bandits.results import metrics
from bandits.results.change.marks import description, mark
from bandits.results.describe import ParameterChange
from bandits.results.figures.parts import points
from bandits.results.metric_registry import CURVES, METRICS, Metric, first_three
from bandits.results.metrics import Band
from bandits.results.run import Run

from . import break_even
from .curves import agent_curve, clip_band, curves, cut, settled, thin, upper_reference
from .growth import Growth
from .growth import growth as lines_of_growth
from .style import COUNT, FORMATS, STEP, Spec, Style, styles

# Curves by metric and label
Bands = dict[str, dict[str, Band]]
XAxis = Literal["step", "log step", "earned"]
SPECTRUM = "spectrum"
_WHOLE = "all of them: those outside the span of the features that can occur are λ"


class Options(NamedTuple):
    """How a run is drawn; see `board`."""

    window: int = metrics.WINDOW
    x: XAxis = "step"
    log_regret: bool = False
    at: int | None = None
    arm: int | None = None
    growth: bool = False
    whole: bool = False


def fourth_plots(experiment: Experiment) -> list[str]:
    """Name the metrics that the fourth plot can show: all curves but those of the first three."""
    first = first_three(experiment)
    return [
        name for name, metric in CURVES.items() if name not in first and metric.known(experiment)
    ]


def usual_fourth(experiment: Experiment) -> str:
    """Name the fourth plot where none is chosen: how long visits are, or the spectrum."""
    return "visit_length" if experiment.offers("visits") else SPECTRUM


def board(
    result: Run,
    window: int = metrics.WINDOW,
    *,
    x: XAxis = "step",
    log_regret: bool = False,
    fourth: str | None = None,
    at: int | None = None,
    arm: int | None = None,
    growth: bool = False,
    whole: bool = False,
    before: Bands | None = None,
    changes: Mapping[str, ParameterChange] | None = None,
) -> list[Spec]:
    """Draw the four plots of the Arena: reward per step or visit, regret, selection entropy, and
    the one chosen as ``fourth``.

    Where a log is replayed, the number of events that count takes the place of the regret, which is
    not known.

    Parameters
    ----------
    result : Run
    window : int
        Steps of the moving averages of reward and entropy.
    x : {"step", "log step", "earned"}
        Horizontal axis, but of the spectrum; "earned" is the agent's mean cumulative reward.
    log_regret : bool
        Use a logarithmic axis for the regret.
    fourth : str, optional
        A metric of `fourth_plots`; by default that of `usual_fourth`.
    at, arm : int, optional
        Step and arm of the spectrum; by default the latest snapshot and all arms.
    growth : bool
        Draw √T and log T beside the cumulative regret.
    whole : bool
        Draw all eigenvalues of the design matrix, not only those on the span of the features.
    before : dict, optional
        Curves of the previous run from `bands`; agents with the same label are drawn dotted.
    changes : dict of str to ParameterChange, optional
        What has changed since the previous run, by label; the dotted curves name it.
    """
    options = Options(window, x, log_regret, at, arm, growth, whole)
    names = [*first_three(result.experiment), fourth or usual_fourth(result.experiment)]
    return [plot(result, name, options, before=before, changes=changes) for name in names]


def plot(
    result: Run,
    name: str,
    options: Options = Options(),  # noqa: B008
    *,
    before: Bands | None = None,
    changes: Mapping[str, ParameterChange] | None = None,
) -> Spec:
    """Draw one metric of all agents against the step.

    The spectrum against the rank of its eigenvalues.
    """
    e, x = result.experiment, options.x
    looks, found, was = styles(e), bands(result, [name], options)[name], (before or {}).get(name)
    metric = METRICS[name].of(e, **_windows(result, options))
    shapes = lines_of_growth(result) if options.growth and name == "pseudo_regret" else None
    over_steps = name == "clicks" and x != "earned"
    diamonds, explained = break_even.marks(result) if over_steps else ([], "")
    spec = curves(
        found,
        looks,
        title=metric.title,
        note=metric.note
        + (_notes(result, was, changes) if name == first_three(e)[0] else "")
        + (shapes.note if shapes else "")
        + explained,
        caption=metric.caption + _moment(result, options, "; step {:,}") * (name == SPECTRUM),
        y_title=metric.unit,
        y_format=FORMATS[metric.form],
        y_range=metric.range,
        log_y=metric.log or (options.log_regret and name in ("pseudo_regret", "visit_regret")),
        references=dict(_references(result, metric, found, options, shapes)),
        before=was,
        changes=changes,
        end_labels=True,
        empty=_why_empty(result, metric),
        **_horizontal(e, name, x),
    )
    if name == SPECTRUM:
        # There is no rank 1.5
        if max((len(band.x) for band in found.values()), default=0) <= 10:
            spec["layout"]["xaxis"]["dtick"] = 1
        return spec
    if not metric.absent:
        spec["data"] += _stops(result, found, metric)
    spec["data"] += diamonds
    return spec if x == "earned" else mark(spec, e)


def _horizontal(experiment: Experiment, name: str, x: XAxis) -> Spec:
    """Return title, format and scale of the horizontal axis."""
    if name == SPECTRUM:
        return {"x_title": "eigenvalue rank"}
    if x == "earned":
        return {"x_title": f"{experiment.simulator_class().reward_noun} earned", "x_format": COUNT}
    return {"x_title": "step", "x_format": STEP, "log_x": x == "log step"}


def _why_empty(result: Run, metric: Metric) -> str:
    """Explain a plot without curves: not yet, or never."""
    if not metric.absent:
        return "Waiting for the first points."
    over = bool(result.histories) and all(h.step >= h.steps for h in result.histories.values())
    return metric.absent if over else "The first points appear after 5 % of the run."


def _windows(result: Run, options: Options) -> dict[str, str]:
    """Return the words of a plot's texts that depend on how far the run is, and on the windows that
    are drawn.
    """
    first = _first(result)
    said = {
        "spread": "replications" if options.arm is not None else "replications and arms",
        "moment": _moment(result, options, ", at step {:,}"),
        **({"extent": _WHOLE} if options.whole else {}),
    }
    if first is None:
        return {**said, "window": f"{options.window:,}", "count_window": f"{options.window:,}"}
    return {
        **said,
        "counted": first.counted,
        "window": f"{metrics.effective_window(first, options.window):,}",
        "count_window": f"{metrics.effective_window(first, options.window, of_counts=True):,}",
    }


def _first(result: Run) -> History | None:
    """Return the history that is furthest."""
    return max(result.histories.values(), key=lambda history: history.step, default=None)


def _moment(result: Run, options: Options, text: str) -> str:
    """State the step of the snapshot whose spectrum is drawn; empty before the first."""
    first, at = _first(result), options.at
    snapshots = [] if first is None else first.spectra
    taken = next((s.step for s in reversed(snapshots) if at is None or s.step <= at), None)
    return "" if taken is None else text.format(taken)


def _notes(
    result: Run, before: Mapping[str, Band] | None, changes: Mapping[str, ParameterChange] | None
) -> str:
    """Explain dashed and dotted curves, bands and marks.

    Only the first plot does, for all of them.
    """
    e = result.experiment
    if e.offers("replay"):
        note = (
            " Of events in which the agent chose what the log shows: only these count. True "
            "rewards are not known."
        )
    elif e.offers("visits"):
        note = ""
    else:
        note = (
            f" Dashed: {upper_reference(e)} (upper) and random choice (lower), expected values: a "
            f"curve can lie above the {upper_reference(e)} "
        )
        note += "by chance."
    if e.replications > 1:
        whole = all(history.alive.all() for history in result.histories.values())
        rows = f"{e.replications} replications" if whole else "the remaining replications"
        note += f" Bands: 95 % confidence interval of the mean over {rows}."
    if any(label in e.labels for label in before or ()):
        changed = "; ".join(f"{label}: {change.text}" for label, change in (changes or {}).items())
        note += f" Dotted: previous run{f' ({changed})' if changed else ''}."
    marks = description(e)
    return note + (f" {marks}" if marks else "")


def _references(
    result: Run,
    metric: Metric,
    found: Mapping[str, Band],
    options: Options,
    shapes: Growth | None,
) -> Iterator[tuple[str, Band]]:
    """Yield the dashed lines of a plot: oracle and random choice, the nominal level of an interval,
    or lines of known growth.
    """
    first, x = _first(result), options.x
    if metric.references and first is not None and result.experiment.offers("truth"):
        upper = upper_reference(result.experiment)
        # the agent of this name earns what chance gives it
        if upper.capitalize() in result.histories:
            upper += ", expected"
        for label, name in ((upper, "best_value"), ("random choice", "random_value")):
            if metric.average:
                band = settled(metrics.reference(first, name, options.window), options.window)
            else:
                band = metrics.cumulative(first, name)
            yield label, _against(band, first.grid, first.sums[name], x)
    if metric.level is not None:
        ends = np.array([0.0, result.experiment.steps])
        spans = [band.x for band in found.values() if len(band.x) and np.isfinite(band.x).all()]
        # The line spans the curves, where the axis is not the step
        if x != "step" and spans:
            ends = np.array([min(span[0] for span in spans), max(span[-1] for span in spans)])
        level = np.full(2, metric.level)
        yield "nominal level", Band(ends, level, level, level, 0)
    if shapes is not None:
        leader = result.histories[shapes.label]
        for label, band in shapes.lines.items():
            yield label, _against(band, leader.grid, leader.sums["clicks"], x)


def drawn_rate(experiment: Experiment, history: History, window: int) -> Band:
    """Compute the moving-average reward per step as it is drawn."""
    band = drawn_band(experiment, history, "ctr", window)
    assert band is not None
    return band


def drawn_band(experiment: Experiment, history: History, name: str, window: int) -> Band | None:
    """Compute a curve as it is drawn: without the points that are not shown, within the bounds of
    its quantity.
    """
    metric = METRICS[name]
    band = metric.curve(history, window) if metric.curve is not None else None
    if band is None:
        return None
    if metric.average:
        band = settled(band, window)
        # There is no rate until an event has counted
        if metrics.replayed(history):
            band = cut(band, np.isfinite(band.mid))
        if metric.form == "rate" and _binary(experiment):
            band = clip_band(band, 0.0, 1.0)
    return clip_band(band, *metric.within) if metric.within else band


def _binary(experiment: Experiment) -> bool:
    """Whether rewards are 0 or 1; not known where the data of a stored run were deleted."""
    try:
        return "binary" in experiment.simulator_class().describe(experiment.simulator).capabilities
    except UserError:
        return False


def agent_traces(
    result: Run, window: int, *, x: XAxis = "step", spectrum: bool = True
) -> list[list[Spec]]:
    """Draw only the curves of the agents in the first three plots of `board`, and their spectra in
    the fourth.

    They are drawn into plots that exist: without references, marks and layouts.
    """
    names = [*first_three(result.experiment), *([SPECTRUM] if spectrum else [])]
    looks, found = styles(result.experiment), bands(result, names, Options(window, x))
    plots: list[list[Spec]] = []
    for name in names:
        thinned = {label: thin(band) for label, band in found[name].items() if len(band.x)}
        plots.append(
            [
                trace
                for label, band in thinned.items()
                for trace in agent_curve(label, band, looks[label])
            ]
        )
        plots[-1] += [] if name == SPECTRUM else _stops(result, found[name], METRICS[name])
    return plots if spectrum else [*plots, []]


def _stops(result: Run, drawn: Mapping[str, Band], metric: Metric) -> list[Spec]:
    """Mark the replications that diverged on each agent's curve."""
    looks, found = styles(result.experiment), []
    for label, history in result.histories.items():
        steps, counts = np.unique(metrics.stopped(history), return_counts=True)
        band = drawn.get(label)
        if band is None or not len(steps) or not len(band.x):
            continue
        of_counts = metric.counts
        grid, size = (
            (history.count_grid, history.count_size) if of_counts else (history.grid, history.size)
        )
        # The first points of a curve may be left out
        at = np.clip(np.searchsorted(grid, steps) - (size - len(band.x)), 0, len(band.x) - 1)
        # There is no curve where all replications have stopped
        shown = np.isfinite(band.mid[at])
        if shown.any():
            pairs = zip(counts[shown], steps[shown], strict=True)
            text = [
                f"{n} replication{'s' if n > 1 else ''} stopped near step {step:,}"
                for n, step in pairs
            ]
            found.append(_stop(label, band.x[at][shown], band.mid[at][shown], text, looks[label]))
    return found


def _stop(label: str, x: FloatArray, y: FloatArray, text: list[str], style: Style) -> Spec:
    more = {
        "text": text,
        "hovertemplate": "%{text}<extra>%{fullData.name}</extra>",
        "showlegend": False,
    }
    trace = points(
        label.replace("<", "&lt;"), x, y, style.color, 11, "x", legendgroup=label, **more
    )
    trace["marker"]["line"] = {"width": 1}
    return trace


def bands(
    result: Run,
    names: Sequence[str],
    options: Options = Options(),  # noqa: B008
    *,
    until: int | None = None,
) -> Bands:
    """Compute the curves of metrics by label, as they are drawn, up to the step ``until``."""
    return {name: dict(_bands(result, name, options, until)) for name in names}


def _bands(
    result: Run, name: str, options: Options, until: int | None
) -> Iterator[tuple[str, Band]]:
    for label, history in result.histories.items():
        if name == SPECTRUM:
            rest = _rest(result.experiment, label) if options.whole else None
            spectrum = metrics.spectrum(history, options.at or until, options.arm, rest)
            if spectrum is not None:
                yield label, spectrum
        elif (band := drawn_band(result.experiment, history, name, options.window)) is not None:
            kept = cut(band, band.x <= (until or history.steps))
            yield label, _against(kept, history.grid, history.sums["clicks"], options.x)


def _rest(experiment: Experiment, label: str) -> metrics.Rest | None:
    """Return the eigenvalues that all simulators leave at the ridge; None where the agent's design
    matrix has features of its own, all of which are drawn.
    """
    index = experiment.labels.index(label)
    params, cls = experiment.agents[index], experiment.agent_class(index)
    ridge = cls.prior_precision(params)
    if ridge is None or cls.representation(params) != "features":
        return None
    try:
        spec = experiment.simulator_class().describe(experiment.simulator)
    except UserError:
        # the data of a stored run were deleted
        return None
    return metrics.Rest(ridge, spec.n_features)


def _against(band: Band, grid: IntArray, earned: FloatArray, x: XAxis) -> Band:
    """Replace the horizontal axis of a curve: log step, or the mean of ``earned (G, R)`` instead of
    the step.
    """
    # log 0 is undefined
    if x == "log step":
        return cut(band, band.x > 0)
    if x == "earned" and len(band.x):
        at = np.searchsorted(grid, band.x)
        alive = ~np.isnan(earned[at[-1]])
        mean = earned[at][:, alive].mean(axis=1) if alive.any() else np.full(len(at), np.nan)
        return band._replace(x=mean)
    return band
