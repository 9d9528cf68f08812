"""What user segments and items got: clicks, regret and exploration per segment, exposure against
merit per item.

Intervals are Student t over replications; their coverage is simulated in
`tests/results/test_fairness.py`. Regret is skewed: with 8 replications of LinUCB in the pet shop,
intervals of regret per visit hold in about 86 % of runs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bandits.base.formatting import count
from bandits.base.types import FloatArray
from bandits.experiments.history import History
from bandits.results import words
from bandits.results.items.demand import demand
from bandits.results.items.launches import launches
from bandits.results.items.new_items import reached
from bandits.results.metrics import Estimate, estimate
from bandits.results.run import Run

if TYPE_CHECKING:
    import pandas as pd

# the worst tenth of the items
WORST = 10


class SegmentFairness(NamedTuple):
    """What one user segment got.

    Attributes
    ----------
    visits : Estimate
        Decisions for it, per replication.
    ctr : Estimate
        Clicks per visit.
    regret : Estimate
        Expected clicks lost against the optimum, per replication; those of all segments add up to
        the whole regret.
    regret_per_visit : Estimate
    disparity : Estimate
        Its regret per visit minus that of all other visitors, paired by replication: above 0 if it
        loses more.
    exploration : Estimate
        Share of its decisions that were not the agent's own best estimate, in some rounds at each
        snapshot.
    """

    visits: Estimate
    ctr: Estimate
    regret: Estimate
    regret_per_visit: Estimate
    disparity: Estimate
    exploration: Estimate


class Exposure(NamedTuple):
    """How unequally items are shown.

    Attributes
    ----------
    gini : Estimate
        Gini coefficient of the times that items were shown: 0 if equally often, 1 if one item takes
        all.
    exposure_merit_ratio : Estimate
        Share of exposure over share of merit of the worst tenth of the items; 1 if they get what
        they merit. They are chosen by every second interval of the run and measured in the others,
        so that chance does not lower it.
    """

    gini: Estimate
    exposure_merit_ratio: Estimate


def segments(history: History) -> list[SegmentFairness] | None:
    """Measure each user segment.

    None without segments, or in runs stored by versions without these sums.
    """
    if (sums := history.segment_sums) is None:
        return None
    alive = history.alive
    visits, clicks, value, best = (sums.total(name, history.step)[alive] for name in sums.NAMES)
    lost = best - value
    probed = sum(
        (check.values[alive] for check in history.segment_checks), np.zeros((*visits.shape, 2))
    )
    found = []
    for g in range(visits.shape[1]):
        own, others = visits[:, g], visits.sum(axis=1) - visits[:, g]
        loss, rest = Ratio.of(lost[:, g], own), Ratio.of(lost.sum(axis=1) - lost[:, g], others)
        explored = Ratio.of(probed[:, g, 0], probed[:, g, 1]).estimate()
        found.append(
            SegmentFairness(
                visits=estimate(own),
                ctr=Ratio.of(clicks[:, g], own).estimate(),
                regret=estimate(lost[:, g]),
                regret_per_visit=loss.estimate(),
                disparity=loss.less(rest).estimate(),
                exploration=Estimate(
                    explored.mean,
                    float(np.maximum(explored.low, 0.0)),
                    float(np.minimum(explored.high, 1.0)),
                ),
            )
        )
    return found


class Ratio(NamedTuple):
    """A ratio of two sums over replications, and how much each replication moves it.

    Replications in which a segment came seldom count little. The interval is that of the linearised
    ratio [1]_.

    References
    ----------
    .. [1] Cochran (1977), Sampling techniques, section 2.11: ratio estimates.
    """

    value: float
    influence: FloatArray

    @classmethod
    def of(cls, amounts: FloatArray, times: FloatArray) -> Ratio:
        """Divide the sum of ``amounts (R,)`` by that of ``times (R,)``; NaN without any."""
        total = float(times.sum())
        if total <= 0:
            return cls(float("nan"), np.full(len(times), np.nan))
        value = float(amounts.sum()) / total
        return cls(value, (amounts - value * times) / (total / len(times)))

    def less(self, other: Ratio) -> Ratio:
        """Return the difference from another ratio on the same replications."""
        return Ratio(self.value - other.value, self.influence - other.influence)

    def estimate(self) -> Estimate:
        """Return value and 95 % interval; NaN ends for a single replication, and where all of them
        are equal: nothing was seen that an interval could be made of.
        """
        if not math.isfinite(self.value):
            return Estimate(math.nan, math.nan, math.nan)
        if not self.influence.any():
            return Estimate(self.value, math.nan, math.nan)
        around = estimate(self.influence)
        half = around.high - around.mean
        return Estimate(self.value, self.value - half, self.value + half)


def exposure(history: History, merit: FloatArray | None) -> Exposure | None:
    """Measure how unequally items are shown.

    None where they are not counted, or before two stored counts.

    Parameters
    ----------
    history : History
    merit : float64 (R, K), optional
        Expected reward of every item over the visitors of the run (`demand.Demand`); without it
        there is no ratio.
    """
    counts = history.counts[: history.count_size]
    if history.bucket_size != 1 or history.n_items < 2 or len(counts) < 3:
        return None
    shown = np.diff(counts, axis=0)
    ratio = np.full(history.rows, np.nan)
    if merit is not None:
        ratio = worst_ratio(shown[::2].sum(axis=0), shown[1::2].sum(axis=0), merit)
    return Exposure(estimate(_alive(history, gini(counts[-1]))), estimate(_alive(history, ratio)))


def gini(amounts: np.ndarray) -> FloatArray:
    """Compute the Gini coefficient along the last axis: sum (2 i - n - 1) x_(i) / (n sum x), 0 of
    nothing.
    """
    ordered = np.sort(np.asarray(amounts, np.float64), axis=-1)
    n = ordered.shape[-1]
    weights = 2 * np.arange(1, n + 1) - n - 1
    return np.asarray(
        (ordered * weights).sum(axis=-1) / (n * np.maximum(ordered.sum(axis=-1), 1e-300))
    )


def worst_ratio(chosen_by: np.ndarray, measured: np.ndarray, merit: FloatArray) -> FloatArray:
    """Compute the exposure-merit ratio of the worst tenth of the items, float64 (R,).

    Items that are equal where the tenth ends count in part, so that names do not matter.

    Parameters
    ----------
    chosen_by, measured : (R, K)
        Times shown: those by which the worst are chosen, and those in which they are measured.
    merit : float64 (R, K)
        Items without merit are left out.
    """
    out = np.full(len(merit), np.nan)
    for r, (first, second, own) in enumerate(zip(chosen_by, measured, merit, strict=True)):
        worthy = own > 0
        if not worthy.any() or not second[worthy].any():
            continue
        ratio, size = first[worthy] / own[worthy], -(-int(worthy.sum()) // WORST)
        end = np.sort(ratio)[size - 1]
        below, equal = ratio < end, ratio == end
        weight = below + equal * ((size - below.sum()) / equal.sum())
        exposed = float((weight * second[worthy]).sum()) / float(second[worthy].sum())
        out[r] = exposed / (float((weight * own[worthy]).sum()) / float(own[worthy].sum()))
    return out


def _alive(history: History, values: FloatArray) -> FloatArray:
    """Return values (R, ...) with NaN in rows that have stopped."""
    out = np.array(values, np.float64)
    out[~history.alive] = np.nan
    return out


def less_shown_half(history: History) -> FloatArray | None:
    """Return the share of the shows of each segment that the half of the items got which it saw
    least, float64 (R, G).

    50 % under uniform choice, with enough shows; NaN without shows. None where segments are not
    counted."""
    if history.segments is None or (at := history.segments.reached(history.step) - 1) < 0:
        return None
    shown = np.sort(history.segments.counts[at], axis=2)  # (R, G, n_items)
    total, half = shown.sum(axis=2), shown[:, :, : shown.shape[2] // 2].sum(axis=2)
    return np.asarray(np.divide(half, total, out=np.full(half.shape, np.nan), where=total > 0))


def smallest_segment(history: History) -> int | None:
    """Return the index of the segment with the fewest visits.

    None where segments are not counted.
    """
    if history.segments is None or (at := history.segments.reached(history.step) - 1) < 0:
        return None
    return int(history.segments.counts[at].sum(axis=(0, 2)).argmin())


def most_shown(history: History) -> FloatArray:
    """Return the share of all shows of the item that was shown most, float64 (R,).

    NaN without shows.
    """
    shown = history.counts[history.count_size - 1]
    total = shown.sum(axis=1)
    return np.asarray(
        np.divide(shown.max(axis=1), total, out=np.full(len(total), np.nan), where=total > 0)
    )


def segment_table(result: Run) -> pd.DataFrame | None:
    """Return one row per agent and user segment.

    None where there are no segments, or no sums by segment.
    """
    import pandas as pd

    names = result.experiment.simulator_class().segment_names()
    rows = []
    for label in result.experiment.labels:
        history = result.histories.get(label)
        found = None if history is None or not history.step else segments(history)
        for name, own in zip(names, found or (), strict=False):
            rows.append(
                {
                    "Agent": label,
                    "Segment": name,
                    "Visits": count(own.visits.mean),
                    "CTR": words.cell(own.ctr, "rate"),
                    "Regret per visit": words.cell(own.regret_per_visit, "rate"),
                    "Disparity": words.cell(own.disparity, "rate"),
                    "Exploration": words.cell(own.exploration, "rate"),
                }
            )
    return pd.DataFrame(rows) if rows else None


def item_table(result: Run) -> pd.DataFrame | None:
    """Return one row per agent on its items, and on each launch that it has passed.

    None where there is no merit.
    """
    import pandas as pd

    wanted = demand(result.experiment)
    rows = []
    for label in result.experiment.labels:
        history = result.histories.get(label)
        if wanted is None or history is None or (found := exposure(history, wanted.merit)) is None:
            continue
        row = {
            "Agent": label,
            "Gini": words.cell(found.gini, "rate"),
            "Exposure over merit": words.cell(found.exposure_merit_ratio, "rate"),
        }
        for i, one in enumerate(found_launches := launches(history, wanted)):
            alone = [each.step for each in found_launches].count(one.step) == 1
            name = (
                f"Launch at {count(one.step)}" if alone else f"Launch {i + 1} at {count(one.step)}"
            )
            row[f"{name}: share"] = f"{words.cell(one.share, 'rate')} of {one.fair_share:.3f}"
            row[f"{name}: fair share"] = reached(one)
        rows.append(row)
    return pd.DataFrame(rows).fillna("–") if rows else None
