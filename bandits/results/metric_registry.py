"""Declare every metric once: its words, its axis, its curve over time and its value per
replication.

The board of the Arena, notebooks, sweeps, lessons, summaries and reports read them from here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from bandits.base.types import FloatArray
from bandits.experiments.experiment import Experiment
from bandits.experiments.history import History
from bandits.experiments.snapshots import LEVELS
from bandits.simulators.base import Simulator

from . import metrics
from .metrics import Band, Estimate
from .words import Form


class Metric(NamedTuple):
    """A quantity of one agent's run.

    Texts may name the words of the experiment (`words`): ``{rate}``, ``{noun}``, ``{round}``, ...

    Attributes
    ----------
    name : str
        Key in summaries, exports, links and lessons.
    title, unit : str
        Of a plot, and of its vertical axis.
    form : {"rate", "share", "count", "number"}
        How its numbers are written.
    curve : callable, optional
        Compute the curve of a history with a window; None where the agent has none.
    value : callable, optional
        Compute the value of the whole run, float64 (R,), NaN in diverged rows; None where it is
        unknown.
    better : {1, -1, 0}
        1 if larger values are better, -1 if smaller ones are.
    note, caption : str
        Explanation of the plot, and the same in a few words.
    absent : str
        Why no agent has a curve. Such curves are measured at snapshots.
    scope : str
        What the value covers, where that is not the whole run.
    gap_unit : str
        Unit of a difference between two values; the unit by default.
    range : tuple of float, optional
        Of the vertical axis.
    log : bool
        The vertical axis is logarithmic.
    within : tuple of float, optional
        Bounds of the quantity, to which a drawn band is clipped.
    average : bool
        The curve is a mean reward (or loss) per step: its first points vary too much to be drawn.
    counts : bool
        The curve has the coarser grid on which the items shown are counted.
    references : bool
        The oracle and random choice have such a curve too.
    level : float, optional
        Level that a calibrated agent reaches.
    needs : str
        Capability of the simulator without which the metric is unknown.
    """

    name: str
    title: str
    unit: str
    form: Form
    curve: Callable[[History, int], Band | None] | None = None
    value: Callable[[History], FloatArray | None] | None = None
    better: int = 0
    note: str = ""
    caption: str = ""
    absent: str = ""
    scope: str = ""
    gap_unit: str = ""
    range: tuple[float, float] | None = None
    log: bool = False
    within: tuple[float, float] | None = None
    average: bool = False
    counts: bool = False
    references: bool = False
    level: float | None = None
    needs: str = ""

    def measured(
        self,
        curve: Callable[[History, int], Band | None] | None = None,
        value: Callable[[History], FloatArray | None] | None = None,
        *,
        better: int = 0,
        scope: str = "",
        gap_unit: str = "",
    ) -> Metric:
        """Return the metric with its curve, and with the value of the whole run and its words."""
        return self._replace(
            curve=curve, value=value, better=better, scope=scope, gap_unit=gap_unit
        )

    def explained(self, caption: str, note: str, absent: str = "") -> Metric:
        """Return the metric with the texts of its plot."""
        return self._replace(caption=caption, note=note, absent=absent)

    def rows(self, history: History) -> FloatArray:
        """Return the value of every replication, float64 (R,); NaN where it is unknown."""
        found = self.value(history) if self.value is not None else None
        return np.full(history.rows, np.nan) if found is None else found

    def estimate(self, history: History) -> Estimate:
        """Estimate the mean over replications, with its interval."""
        return metrics.estimate(self.rows(history))

    def known(self, experiment: Experiment) -> bool:
        """Return whether runs of this experiment have the metric."""
        return not self.needs or experiment.offers(self.needs)

    def of(self, experiment: Experiment | None = None, **more: Any) -> Metric:
        """Return the metric in the words of an experiment (by default those of most), and with
        ``more`` words.
        """
        said = {**words(experiment), **more}
        return self._replace(
            title=_capital(self.title.format(**said)),
            caption=_capital(self.caption.format(**said)),
            note=_capital(self.note.format(**said)),
            unit=self.unit.format(**said),
            gap_unit=(self.gap_unit or self.unit).format(**said),
        )

    @property
    def heading(self) -> str:
        """The title above a column of a table.

        Of a rate its unit, which states what it is divided by.
        """
        return _capital(self.unit) if self.average else self.title

    @property
    def full_unit(self) -> str:
        """The unit, and what the value covers."""
        return f"{self.unit}, {self.scope}" if self.scope else self.unit


def words(experiment: Experiment | None) -> dict[str, Any]:
    """Return the words of an experiment that texts of metrics name.

    A plot replaces the windows by its own.
    """
    simulator = Simulator if experiment is None else experiment.simulator_class()
    replay = experiment is not None and experiment.offers("replay")
    slate = experiment is not None and simulator.slate_size(experiment.simulator) > 1
    best = "slate" if slate else simulator.item_noun
    if experiment is not None and experiment.offers("visits"):
        # the rest of the visit has metrics of its own
        best = f"{best} for the next step"
    return {
        "rate": simulator.rate_title[0].lower() + simulator.rate_title[1:],
        "noun": simulator.reward_noun,
        "best": best,
        "round": "counted event" if replay else "step",
        "events": "logged events" if replay else "steps",
        "counted": "arms",
        "window": f"{metrics.WINDOW:,}",
        "count_window": f"{metrics.WINDOW:,}",
        "spread": "replications and arms",
        "moment": "",
        "extent": "within the span of the features that can occur (all other eigenvalues of A are "
        "λ)",
    }


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _lost(best: str, own: str) -> Callable[[History], FloatArray]:
    return lambda history: metrics.total(history, best) - metrics.total(history, own)


def _level(level: float) -> Metric:
    share = f"{100 * level:.0f} %"
    return (
        Metric(
            f"calibration_{100 * level:.0f}",
            "Calibration",
            "interval coverage",
            "rate",
            range=(0, 1.04),
            level=level,
        )
        .measured(lambda history, _: metrics.calibration(history, level))
        .explained(
            f"Share of true values in the {share} interval",
            f"Share of candidates whose true expected reward lies in the agent's own {share} "
            "interval. Dashed: nominal level (calibrated). Below: overconfident. Above: "
            "underconfident. Agents that do not estimate their uncertainty have no curve.",
            absent="None of these agents estimates its uncertainty.",
        )
    )


def _per_visit(
    name: str, title: str, unit: str, of: str, better: int, *, late: bool = False
) -> Metric:
    metric = Metric(
        name, title, unit, "number", needs="visits", average=not late, within=(0.0, math.inf)
    )
    return metric.measured(
        None if late else lambda history, window: metrics.per_visit(history, of, window),
        lambda history: metrics.per_visit_rows(history, of, late=late),
        better=better,
        scope="last fifth of the run" if late else "",
    )


_MATRIX = "None of these agents has a design matrix (ridge model)."
_METRICS = (
    Metric("ctr", "{rate}", "{noun} per {round}", "rate", average=True, references=True)
    .measured(metrics.ctr, metrics.click_rate, better=1)
    .explained("Average of the last {window} {events}", "Moving average over {window} steps."),
    Metric("late_ctr", "Final {rate}", "{noun} per {round}", "rate").measured(
        value=metrics.late_click_rate, better=1, scope="last fifth of the run"
    ),
    Metric("clicks", "Cumulative {noun}", "{noun}", "count", references=True)
    .measured(
        lambda history, _: metrics.cumulative_clicks(history),
        lambda history: metrics.total(history, "clicks"),
        better=1,
    )
    .explained("{noun} earned so far", "{noun} earned so far."),
    Metric("counted", "Counted events", "events", "count", needs="replay")
    .measured(
        lambda history, _: (
            metrics.counted_decisions(history) if metrics.replayed(history) else None
        ),
        metrics.counted,
    )
    .explained(
        "Choices that equal the logged ones",
        "Events so far in which the agent chose what the log shows: only these are known and "
        "learned from. About one in K of a random log with K items.",
    ),
    _per_visit("per_visit", "{noun} per visit", "{noun} per visit", "clicks", 1).explained(
        "Of the last {window} steps",
        "{noun} of the last {window} steps divided by the visits that ended in them. Agents meet "
        "different states, so that their differences are less paired than elsewhere.",
    ),
    _per_visit(
        "late_per_visit", "Final {noun} per visit", "{noun} per visit", "clicks", 1, late=True
    ),
    _per_visit("visit_length", "Visit length", "steps per visit", "steps", 0).explained(
        "Steps per visit of the last {window} steps",
        "The last {window} steps divided by the visits that ended in them. What is shown decides "
        "how long visitors stay.",
    ),
    _per_visit("visit_regret", "Regret per visit", "{noun} lost per visit", "lost", -1).explained(
        "Expected {noun} that a visit loses",
        "Expected {noun} of the rest of the visit lost by each choice, relative to the best policy "
        "from the same state on; summed over the last {window} steps and divided by the visits "
        "that ended in them. It is what a visit earns below the optimum.",
    ),
    Metric("pseudo_regret", "Cumulative regret", "expected {noun} lost", "count", needs="truth")
    .measured(
        lambda history, _: metrics.pseudo_regret(history),
        _lost("best_value", "value"),
        better=-1,
        gap_unit="expected {noun}",
    )
    .explained(
        "Expected {noun} lost so far",
        "Expected {noun} lost relative to always choosing the best {best}. A flat curve means "
        "that nothing is lost any more; Diagnostics state whether the loss per step is falling.",
    ),
    Metric(
        "average_regret",
        "Average regret",
        "expected {noun} lost per step",
        "rate",
        average=True,
        needs="truth",
    )
    .measured(lambda history, _: metrics.pseudo_regret(history, average=True), better=-1)
    .explained(
        "Cumulative regret divided by the steps",
        "Expected {noun} lost per step so far: the cumulative regret divided by the number of "
        "steps. It falls towards 0 if the agent learns to choose the best {best}.",
    ),
    Metric("realised_regret", "Realised regret", "{noun} lost", "count", needs="truth")
    .measured(
        lambda history, _: metrics.realised_regret(history),
        _lost("best_clicks", "clicks"),
        better=-1,
    )
    .explained(
        "{noun} lost so far, with their noise",
        "{noun} lost relative to always choosing the best {best}, under the same random numbers.",
    ),
    Metric("oracle_share", "Share of the oracle's gain", "share", "share", needs="truth").measured(
        value=metrics.oracle_share, better=1, scope="0: random, 1: oracle", gap_unit="of the gain"
    ),
    Metric(
        "optimal_choice",
        "Optimal choice",
        "share of decisions",
        "share",
        range=(-0.02, 1.04),
        within=(0, 1),
        needs="truth",
    )
    .measured(
        metrics.optimal_choice,
        metrics.optimal_share,
        better=1,
        gap_unit="of the decisions",
    )
    .explained(
        "Share of decisions for the best {best}",
        "Share of the decisions of the last {window} steps that were the best {best}, or one of "
        "several that are equally good. 1: always the best; it may stay low where many are almost "
        "as good.",
        absent="These runs were stored before optimal choices were counted.",
    ),
    Metric(
        "entropy", "Selection entropy", "normalised entropy", "rate", range=(0, 1.04), counts=True
    )
    .measured(metrics.entropy, metrics.final_entropy)
    .explained(
        "1: uniform; 0: always the same",
        "Normalised entropy of the {counted} shown in the last {count_window} steps. 1: uniform; "
        "0: always the same.",
    ),
    Metric(
        "catalogue_coverage",
        "Catalogue coverage",
        "share of items shown",
        "rate",
        range=(0, 1.04),
        counts=True,
    )
    .measured(metrics.catalogue_coverage)
    .explained(
        "Shown in the last {count_window} steps",
        "Share of the {counted} shown at least once in the last {count_window} steps.",
    ),
    Metric("smallest_eigenvalue", "Smallest eigenvalue", "eigenvalue of A", "number", log=True)
    .measured(lambda history, _: metrics.smallest_eigenvalue(history))
    .explained(
        "Information in the least explored direction",
        "Smallest eigenvalue of the design matrix (median over arms): information collected in "
        "the direction that is explored least.",
        absent=_MATRIX,
    ),
    Metric(
        "condition_number", "Condition number", "largest / smallest eigenvalue", "number", log=True
    )
    .measured(lambda history, _: metrics.condition_number(history))
    .explained(
        "Large: some directions are hardly explored",
        "Largest eigenvalue of the design matrix divided by the smallest (median over arms).",
        absent=_MATRIX,
    ),
    *(_level(level) for level in LEVELS),
    Metric(
        "exploration_rate",
        "Exploration rate",
        "exploration rate",
        "rate",
        range=(-0.02, 1.04),
        within=(0, 1),
    )
    .measured(lambda history, _: metrics.exploration_rate(history), metrics.mean_exploration_rate)
    .explained(
        "Share of decisions that are not greedy",
        "Share of the decisions that are not the agent's own choice with the highest estimated "
        "mean (of a slate: share of its items), estimated at every snapshot on the next rounds. "
        "0: greedy; 1: never the best estimate.",
        absent="None of these agents has an exploration rate.",
    ),
    Metric("spectrum", "Eigenvalue spectrum", "eigenvalue of A", "number", log=True)
    .measured(lambda history, _: metrics.spectrum(history))
    .explained(
        "Low tail: unexplored",
        "Eigenvalues of the design matrix A = λI + Σxx′: information collected in each direction "
        "of feature space, {extent}. A low tail: directions that are hardly explored. Line: "
        "median; band: middle 80 % over {spread}{moment}.",
        absent=_MATRIX,
    ),
)
METRICS: dict[str, Metric] = {metric.name: metric for metric in _METRICS}
CURVES: dict[str, Metric] = {name: metric for name, metric in METRICS.items() if metric.curve}
_LEADERBOARD = ("ctr", "clicks", "pseudo_regret", "oracle_share", "optimal_choice")
# the others compare with the best next step
_LEADERBOARD_OF_VISITS = ("per_visit", "visit_length", "visit_regret", "ctr", "clicks")


def main_metric(experiment: Experiment) -> Metric:
    """Return the metric by which agents are ranked: reward per visit where visits have many steps,
    else reward per step.
    """
    return METRICS[first_three(experiment)[0]].of(experiment)


def gain_metric(experiment: Experiment) -> Metric:
    """Return the metric of differences: reward, or that per visit where visits have many steps."""
    visits = experiment.offers("visits")
    return main_metric(experiment) if visits else METRICS["clicks"].of(experiment)


def first_three(experiment: Experiment) -> tuple[str, str, str]:
    """Name the metrics of the first three plots: a log has counted events instead of the regret,
    which is unknown.
    """
    if experiment.offers("visits"):
        return "per_visit", "visit_regret", "entropy"
    return "ctr", "counted" if experiment.offers("replay") else "pseudo_regret", "entropy"


def leaderboard_metrics(experiment: Experiment) -> tuple[str, ...]:
    """Name the metrics of tables of agents, in their order."""
    return _LEADERBOARD_OF_VISITS if experiment.offers("visits") else _LEADERBOARD


def leaderboard(experiment: Experiment, history: History) -> dict[str, Estimate]:
    """Estimate the metrics of tables of agents, by name."""
    return {name: METRICS[name].estimate(history) for name in leaderboard_metrics(experiment)}


Objective = Literal[
    "ctr",
    "late_ctr",
    "pseudo_regret",
    "oracle_share",
    "optimal_choice",
    "per_visit",
    "late_per_visit",
]
OBJECTIVES: dict[str, Metric] = {name: METRICS[name] for name in get_args(Objective)}
"""The metrics by which sweeps rank their points."""


def objectives(experiment: Experiment | None) -> list[str]:
    """Name the metrics by which sweeps of an experiment can rank their points."""
    return [
        name
        for name, metric in OBJECTIVES.items()
        if not metric.needs or (experiment is not None and metric.known(experiment))
    ]
