"""What launched items got, launch by launch: shares of traffic and of regret, and when the fair
share was reached.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bandits.base.formatting import count, listed, percent
from bandits.base.types import FloatArray, IntArray
from bandits.experiments.experiment import Experiment
from bandits.experiments.history import History
from bandits.results import metrics, words
from bandits.results.change.marks import mark
from bandits.results.figures.curves import clip_band, curves
from bandits.results.figures.style import RATE, Spec, styles
from bandits.results.metrics import Band, Estimate, estimate
from bandits.results.run import Run
from bandits.simulators.launches import Launch

from .demand import Cohort, Demand, demand
from .launches import LEAST, NEAR, WINDOW, Launched, cohort_shares, fair_share, launches

if TYPE_CHECKING:
    import pandas as pd

# launches that are drawn
MOST = 6
# why the fair share is not reached
NEVER = {"below": ", shown too little", "above": ", shown too much", None: ""}


class RegretShare(NamedTuple):
    """How much of the regret since a launch was lost by showing its items.

    Attributes
    ----------
    share : Estimate
        Of the regret of all decisions since then; NaN in replications without regret.
    clicks : Estimate
        Expected clicks lost by showing them.
    """

    share: Estimate
    clicks: Estimate


def share_band(history: History, cohort: Cohort) -> Band:
    """Compute the share of the last `WINDOW` decisions that showed items of a launch, from the
    launch on.
    """
    grid, shown = cohort_shares(history, cohort)
    ends, starts = _windows(grid)
    share = (shown[ends] - shown[starts]) / (grid[ends] - grid[starts])[:, None]
    return clip_band(metrics.band(grid[ends], share, np.ones(share.shape[1], np.bool_)), 0.0, 1.0)


def fair_band(wanted: Demand, history: History, cohort: Cohort) -> Band:
    """Compute the share of an optimal choice in the same windows as `share_band`."""
    grid, _ = cohort_shares(history, cohort)
    ends, starts = _windows(grid)
    fair = np.array(
        [fair_share(wanted, cohort, a, b) for a, b in zip(grid[starts], grid[ends], strict=True)]
    )
    return Band(grid[ends], fair, fair, fair, 1)


def _windows(grid: FloatArray) -> tuple[IntArray, IntArray]:
    """Return ends and starts, as places in the grid, of windows of up to `WINDOW` steps.

    None is empty.
    """
    return metrics.window_bounds(grid, WINDOW)


def regret_share(history: History, cohort: Cohort, place: int) -> RegretShare | None:
    """Measure the regret of the decisions that showed items of a launch, from the last stored point
    before it on.

    None for slates, and until then.

    Parameters
    ----------
    history : History
    cohort : Cohort
    place : int
        Of the launch among all launches.
    """
    found = _since(history, cohort)
    if found is None:
        return None
    # (R, 1 + launches) each
    _, _, value, best = np.moveaxis(found[1][-1] - found[1][0], 2, 0)
    lost, regret = (best - value)[:, 1 + place], (best - value).sum(axis=1)
    share = np.divide(lost, regret, out=np.full(len(lost), np.nan), where=regret > 0)
    return RegretShare(estimate(share[history.alive]), estimate(lost[history.alive]))


def rates(history: History, cohort: Cohort, place: int) -> tuple[Estimate, Estimate] | None:
    """Estimate the expected reward of a decision that showed a launch, and that of an optimal one;
    None without any.
    """
    found = _since(history, cohort)
    if found is None:
        return None
    visits, _, value, best = (found[1][-1] - found[1][0])[history.alive, 1 + place].T
    seen = visits > 0
    return estimate(value[seen] / visits[seen]), estimate(best[seen] / visits[seen])


def rate_bands(history: History, cohort: Cohort, place: int) -> tuple[Band, Band]:
    """Compute the curves of `rates` in the last `WINDOW` steps, where every replication showed the
    launch.
    """
    grid, sums = _since(history, cohort) or (np.zeros(0), np.zeros((0, history.rows, 2 + place, 4)))
    ends, starts = _windows(grid)
    visits, _, value, best = np.moveaxis(
        (sums[ends] - sums[starts])[:, history.alive, 1 + place], 2, 0
    )
    known, every = (visits > 0).all(axis=1), np.ones(visits.shape[1], np.bool_)
    x, visits = grid[ends][known], visits[known]
    return metrics.band(x, value[known] / visits, every), metrics.band(
        x, best[known] / visits, every
    )


def _since(history: History, cohort: Cohort) -> tuple[FloatArray, FloatArray] | None:
    """Return the stored steps from a launch on, (P,), and the sums of all launches there, (P, R, 1
    + launches, 4).

    The first is the last one before the launch, or at it, where the launch has no sums yet.
    """
    if (sums := history.launch_sums) is None:
        return None
    grid = sums.grid[: sums.reached(history.step)]
    first = max(int(np.searchsorted(grid, cohort.step, side="right")) - 1, 0)
    if first >= len(grid) - 1:
        return None
    return grid[first:].astype(np.float64), sums.sums[first : len(grid)]


def cohort_figures(result: Run) -> list[Spec]:
    """Draw the share of each launch over the steps, agent by agent, beside the share of an optimal
    choice.

    Where the agent does not decide whether the new things are shown, draw what it earns when they
    are."""
    e = result.experiment
    wanted, looks = demand(e), styles(e)
    whole, drawn = bool(e.simulator_class().launch_noun), []
    empty = "The run has not reached the launch yet."
    for i, cohort in enumerate(wanted.cohorts[:MOST] if wanted is not None else ()):
        passed = {
            label: h
            for label, h in result.histories.items()
            if h.step > cohort.step and h.alive.any()
        }
        longest = max(passed.values(), key=lambda h: h.step, default=None)
        bands, references = {}, {}
        if whole:
            bands = {label: rate_bands(h, cohort, i)[0] for label, h in passed.items()}
            best = {} if longest is None else {"optimal": rate_bands(longest, cohort, i)[1]}
            references, what = best, e.simulator_class().rate_title
            stored = None if longest is None else longest.launch_sums
            width = (
                WINDOW
                if stored is None or len(stored.grid) < 2
                else max(WINDOW, int(stored.grid[1]))
            )
            note = (
                f"Expected reward per decision that showed one of them, in the last {count(width)} "
                "steps. Dashed: that of an optimal choice. Bands: 95 % confidence interval of the "
                "mean over replications."
            )
        else:
            bands = {label: share_band(h, cohort) for label, h in passed.items()}
            if wanted is not None and longest is not None:
                references = {"fair share": fair_band(wanted, longest, cohort)}
            what = "Share"
            slots = "slots of the " if cohort.slate > 1 else ""
            counted = "slots" if cohort.slate > 1 else "decisions"
            note = (
                f"Share of the {slots}last {count(WINDOW)} decisions that showed one of them. "
                "Dashed: the fair share, that of an optimal choice. Bands: 95 % confidence "
                "interval of the mean over replications."
            )
        title = f"{what} of {_new(e, i)} launched at {count(cohort.step)}"
        if wanted is not None and len({c.step for c in wanted.cohorts}) < len(wanted.cohorts):
            title = f"Launch {i + 1}: {title[0].lower()}{title[1:]}"
        y_title = what.lower() if whole else f"share of {counted}"
        shown: Spec = {"title": title, "note": note, "y_title": y_title, "empty": empty}
        figure = curves(
            bands, looks, **shown, y_format=RATE, references=references, end_labels=True
        )
        drawn.append(mark(figure, e))
    return drawn


def launch_table(result: Run) -> pd.DataFrame | None:
    """Return one row per agent and launch that it has passed.

    None where the items of launches are not counted.
    """
    import pandas as pd

    e, rows = result.experiment, []
    wanted, cls = demand(e), e.simulator_class()
    for label in e.labels:
        history = result.histories.get(label)
        if wanted is None or history is None:
            continue
        for i, (one, cohort) in enumerate(
            zip(launches(history, wanted), wanted.cohorts, strict=False)
        ):
            lost, earned = regret_share(history, cohort, i), rates(history, cohort, i)
            number = _new(e, i) if cls.launch_noun else count(one.items)
            row = {"Agent": label, "Launch": f"{number} at step {count(one.step)}"}
            row["Share of traffic"] = words.cell(_share(one.share), "rate")
            if cls.launch_noun:
                row[cls.rate_title] = "–" if earned is None else words.cell(earned[0], "rate")
                row["Optimal"] = "–" if earned is None else words.cell(earned[1], "rate")
            else:
                row["Fair share"] = f"{one.fair_share:.3f}"
            unknown = lost is None or math.isnan(lost.share.mean)
            row["Share of regret"] = (
                "–" if lost is None or unknown else words.cell(_share(lost.share), "rate")
            )
            if not cls.launch_noun:
                row["Fair share reached"] = reached(one)
            rows.append(row)
    return pd.DataFrame(rows) if rows else None


def conclusions(result: Run) -> list[str]:
    """State for each launch which agents reached its fair share, and which never do.

    Or what they earned with it.
    """
    wanted = demand(result.experiment)
    if wanted is None:
        return []
    whole = bool(result.experiment.simulator_class().launch_noun)
    histories = {label: h for label, h in result.histories.items() if h.alive.any()}
    say = _earned if whole else _found
    found = [say(result.experiment, histories, wanted, i) for i in range(len(wanted.cohorts))]
    return [sentence for sentence in found if sentence]


def _found(experiment: Experiment, histories: dict[str, History], wanted: Demand, i: int) -> str:
    """State when each agent reached the fair share of a launch; empty if no agent can tell."""
    measured = {label: launches(h, wanted) for label, h in histories.items()}
    own = {
        label: each[i]
        for label, each in measured.items()
        if len(each) > i and not math.isnan(each[i].reached)
    }
    if not own:
        return ""

    several, unit = (
        any(int(histories[label].alive.sum()) > 1 for label in own),
        iter([" replications"]),
    )  # named once

    def stated(label: str, share: float) -> str:
        rows = int(histories[label].alive.sum())
        return (
            f"{label} ({round(share * rows)} of {count(rows)}{next(unit, '')})"
            if several
            else label
        )

    undecided = [label for label, one in own.items() if not decided(one, histories[label])]
    known = {label: one for label, one in own.items() if label not in undecided}
    sooner = sorted(
        (s, label) for label, one in known.items() if (s := one.steps_to_fair_share) is not None
    )
    after = [
        f"{count(steps)} steps with {stated(label, own[label].reached)}" for steps, label in sooner
    ]
    parts = [f"after {listed(after)}"] if after else []
    for side in ("below", "above", None):
        never = [
            label
            for label, one in known.items()
            if one.steps_to_fair_share is None and one.side == side
        ]
        names = listed([stated(label, 1 - own[label].reached) for label in never])
        parts += [f"never with {names}{NEVER[side]}"] if never else []
    if undecided:
        names = listed([stated(label, own[label].reached) for label in undecided])
        parts.append(f"in some replications with {names}, too few to tell whether in most")
    get = "gets its" if wanted.cohorts[i].items[0].sum() == 1 else "get their"
    return (
        f"The {_named(experiment, i)} launched at step {count(wanted.cohorts[i].step)} {get} fair "
        f"share for good {'; '.join(parts)}."
    )


def decided(one: Launched, history: History) -> bool:
    """Return whether the replications tell that most of all possible ones reach the fair share, or
    that most do not: all of them agree, or a sign test at the level of 5 % on one side.
    """
    from scipy.special import bdtr

    rows = int(history.alive.sum())
    fewer = min(round(one.reached * rows), rows - round(one.reached * rows))
    return fewer == 0 or float(bdtr(fewer, rows, 0.5)) <= 0.05


def _earned(experiment: Experiment, histories: dict[str, History], wanted: Demand, i: int) -> str:
    """State what each agent earned per decision that showed a launch, the best first.

    Empty before any.
    """
    cohort, name = wanted.cohorts[i], experiment.simulator_class().rate_title
    found = {
        label: own for label, h in histories.items() if (own := rates(h, cohort, i)) is not None
    }
    if not found:
        return ""
    ordered = sorted(found.items(), key=lambda entry: -entry[1][0].mean)
    parts = "; ".join(f"{label} {words.cell(own, 'rate')}" for label, (own, _) in ordered)
    best = words.cell(ordered[0][1][1], "rate")
    return (
        f"{name} on the {_named(experiment, i)} launched at step {count(cohort.step)}: {parts}; "
        f"optimal {best}."
    )


def _new(experiment: Experiment, i: int) -> str:
    """Name what a launch adds: 40 titles."""
    cls = experiment.simulator_class()
    launched = [
        change for change in experiment.simulator.all_changes.values() if isinstance(change, Launch)
    ]
    return _counted(launched[i].items, cls.launch_noun or cls.item_noun)


def _named(experiment: Experiment, i: int) -> str:
    """Name what a launch adds in a sentence: 40 titles, or title."""
    return _new(experiment, i).removeprefix("1 ")


def about(result: Run) -> str:
    """Explain the columns of the table."""
    cls, slate = result.experiment.simulator_class(), result.experiment.simulator_class().slate_size
    regret = (
        "Share of regret: of all clicks lost since the launch (from the last stored step before "
        "it on), the part that was lost on decisions that showed a new item; – where none were "
        "lost."
    )
    if slate(result.experiment.simulator) > 1:
        regret = "Shares are those of slots; the share of regret is not known for slates."
    if noun := cls.launch_noun:
        rates = (
            f" {cls.rate_title}: expected clicks per decision that showed one of the new {noun}s, "
            "since the launch. Optimal: that of the best choices there."
        )
        return (
            f"The retrieval decides how often a new {noun} is shown, so the share of traffic is "
            f"the same for all agents.{rates} {regret}"
        )
    return (
        "Fair share: that of an optimal choice. Reached: from then on, the share in every "
        f"{WINDOW:,} steps differs from it by at most {percent(NEAR)}, or {LEAST:g}, or what "
        "chance explains, whichever is largest; median of the replications, with its 95 % "
        f"interval; the plot shows the mean of the replications over the last {WINDOW:,} steps, "
        "which gets there later, or not at all where some replications never do. Shown too little "
        f"or too much: most of the replications that never reach it end on that side. {regret}"
    )


def reached(one: Launched) -> str:
    """Say when the fair share was reached: never is an answer."""
    if math.isnan(one.reached):
        return f"unknown (fewer than {count(WINDOW)} steps follow)"
    if one.steps_to_fair_share is None:
        return f"never{NEVER[one.side]} ({percent(one.reached)} of the replications reached it)"
    text = f"after {count(one.steps_to_fair_share)} steps"
    if one.low is None:
        return text
    return (
        f"{text} ({count(one.low)} to {'beyond the run' if one.high is None else count(one.high)})"
    )


def _share(e: Estimate) -> Estimate:
    """Clip the interval of a share to its range."""
    return Estimate(e.mean, max(e.low, 0.0), min(e.high, 1.0))


def _counted(n: int, noun: str) -> str:
    return f"{n:,} {noun}{'' if n == 1 else 's'}"
