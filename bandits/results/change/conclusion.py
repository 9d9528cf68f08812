"""Which agent recovers first from a change, and which loses least to it: one sentence.

Recovery: intervals of all compared agents, widened so that they hold together (Bonferroni over
agents, of two agents over their one pair); one agent is earlier than another where theirs are
apart. Loss: paired tests of what the change costs, corrected for all pairs (Bonferroni), because
the same data choose the agent that loses least. Error rates are simulated in
`tests/results/test_change_conclusion.py`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from bandits.base.formatting import count, count_of, listed
from bandits.base.types import FloatArray
from bandits.results import words
from bandits.results.comparison.paired_tests import differs, paired_test
from bandits.results.metrics import Estimate, estimate
from bandits.results.run import Run

from .lost_clicks import lost_by_row
from .recovery import (
    MIN_ROWS,
    WINDOW,
    Recovery,
    before_change,
    change_span,
    competes,
    last_change,
    recovery_from,
)


class Leader(NamedTuple):
    """The agent with the smallest estimate, and what is known of the others.

    Attributes
    ----------
    label : str
    tied : tuple of str
        Agents that do not differ significantly from it.
    ahead : Estimate
        Of the closest agent, minus the leader; a corrected interval. Without numbers where it has
        no meaning.
    closest : str
    """

    label: str
    tied: tuple[str, ...]
    ahead: Estimate
    closest: str


def first_to_recover(found: Mapping[str, Recovery], rows: Mapping[str, int]) -> Leader | None:
    """Find the agent that recovers first, from intervals that hold together.

    None if none recovers within the run.

    Parameters
    ----------
    found : mapping of str to Recovery
    rows : mapping of str to int
        Replications behind each: with fewer than `recovery.MIN_ROWS` there is no interval, and
        nothing is shown.
    """
    steps = {
        label: (r.step, math.inf if r.high is None else r.high)
        for label, r in found.items()
        if r.step is not None
    }
    if not steps:
        return None
    label = min(steps, key=steps.__getitem__)
    end = found[label].high

    def later(other: str) -> bool:
        if end is None or rows[other] < MIN_ROWS:
            # the leader's own end lies beyond the run, or one of the two has no interval
            return False
        low = found[other].low
        # None: the whole interval lies beyond the run
        return low is None or low > end

    tied = tuple(other for other in found if other != label and not later(other))
    return Leader(label, tied, Estimate(*[float("nan")] * 3), "")


def common_rows(lost: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
    """Keep the replications that all agents finished, and no agent that finished none: means and
    tests agree on them.

    Parameters
    ----------
    lost : mapping of str to float64 (R,)
        By agent; NaN where a replication diverged.

    Returns
    -------
    dict of str to float64 (n,)
    """
    kept = {label: rows for label, rows in lost.items() if np.isfinite(rows).any()}
    both = np.all([np.isfinite(rows) for rows in kept.values()], axis=0)
    return {label: rows[both] for label, rows in kept.items()}


def least_lost(lost: Mapping[str, FloatArray]) -> Leader:
    """Find the agent that loses least.

    Parameters
    ----------
    lost : mapping of str to float64 (n,)
        By agent, in the same replications; at least two agents and one replication.
    """
    family = math.comb(len(lost), 2)
    label = min(lost, key=lambda name: float(lost[name].mean()))
    gaps = {other: rows - lost[label] for other, rows in lost.items() if other != label}
    ahead = {other: estimate(gap, family=family) for other, gap in gaps.items()}
    tied = tuple(
        other
        for other, gap in gaps.items()
        if not differs(ahead[other], paired_test(gap, family=family)[1])
    )
    closest = min(ahead, key=lambda other: ahead[other].mean)
    return Leader(label, tied, ahead[closest], closest)


def all_gain(lost: Mapping[str, Estimate]) -> bool:
    """Return whether every agent is shown to lose less than nothing (intersection-union test: no
    correction).
    """
    return all(each.high < 0 for each in lost.values())


def sentences(result: Run, unchanged: Run | None = None) -> list[str]:
    """Return the conclusion as a list, empty where there is none.

    See `conclusion` for the parameters.
    """
    return list(filter(None, [conclusion(result, unchanged)]))


def conclusion(result: Run, unchanged: Run | None = None) -> str:
    """State which agent recovers first from the last change and which loses least to all changes.

    "Gains" is stated only where every compared agent is shown to earn more with the changes than
    without them. Losses are compared in the replications that all agents finished.

    Agents are left out that know the truth, diverged, or never reached 95 % of the best choice
    before the change: they had nothing to recover.

    Parameters
    ----------
    result : Run
        A run in which the simulator changes.
    unchanged : Run, optional
        The same run without the changes; by default `Result.unchanged`.

    Returns
    -------
    str
        Empty with fewer than two agents to compare, or no steps after the change.

    Raises
    ------
    UserError
        ``unchanged`` is not that run.
    """
    unchanged, labels = unchanged or result.unchanged, _compared(result)
    if len(labels) < 2:
        return ""
    change, parts, alone = last_change(result.experiment.simulator), [], ""
    rows = {label: int(result.histories[label].alive.sum()) for label in labels}
    unsure = _uncertain(min(rows.values()))
    if change is not None:
        family = min(len(labels), len(labels) * (len(labels) - 1) // 2)
        each = [recovery_from(result.histories[label], change, family=family) for label in labels]
        found = {label: r for label, r in zip(labels, each, strict=True) if r is not None}
        if len(found) == len(labels):
            first = first_to_recover(found, rows)
            alone = first.label if first is not None and not first.tied else ""
            last = " from the last change" if _several(result) else ""
            parts.append(recovered(first, found, min(rows.values()), last))
    if unchanged is not None:
        parts += filter(None, [_lost(result, unchanged, labels, alone)])
    if len(parts) > 1 and all(part.startswith(unsure) for part in parts):
        parts[1] = f"Nor is it certain{parts[1].removeprefix(unsure)}"
    aside = _aside(min(rows.values()))
    if len(parts) > 1 and aside in parts[0]:
        parts[1] = parts[1].replace(aside, "(again not certain which)")
    return " ".join(parts)


def _compared(result: Run) -> list[str]:
    """Return the agents that had something to lose: they reached 95 % of the best choice before the
    change.
    """
    span = change_span(result.experiment.simulator)
    until = span[0] if span is not None and span[0] >= WINDOW else result.experiment.steps
    found = {
        label: before_change(h, until)
        for label, h in result.histories.items()
        if competes(result, label)
    }
    return [label for label, before in found.items() if before is not None and before.reached]


def _several(result: Run) -> bool:
    return len(result.experiment.simulator.all_changes) > 1


def recovered(first: Leader | None, found: Mapping[str, Recovery], rows: int, last: str) -> str:
    """State which agent recovers first; ``last`` names the change where there are several."""
    if first is None:
        return f"{listed(list(found))} are not shown to recover{last} within the run."
    step = found[first.label].step
    if not first.tied:
        return (
            f"{first.label} recovers first{last}, "
            f"{f'after {count(step)} steps' if step else 'at once'}."
        )
    rest = [label for label in found if label != first.label and label not in first.tied]
    never = [label for label in rest if found[label].step is None]
    after = [label for label in rest if label not in never]
    open_end = " or not at all" if any(found[label].high is None for label in after) else ""
    parts = [f"{listed(after)} {_verb('recover', after)} later{open_end}"] if after else []
    parts += (
        [f"{listed(never)} {'is' if len(never) == 1 else 'are'} not shown to recover"]
        if never
        else []
    )
    later = "; ".join(parts)
    ahead = [first.label, *first.tied]
    # none of them is earlier
    if all(found[label].high == 0 for label in ahead):
        return f"{listed(ahead)} recover{last} at once{f'; {later}' if later else ''}."
    return _one_of(ahead, f"recovers first{last}", later, rows)


def _lost(result: Run, unchanged: Run, labels: Sequence[str], alone: str) -> str:
    """State which agent loses least, or gains most.

    Empty where fewer than two agents share a replication.
    """
    noun, changes = (
        result.experiment.simulator_class().reward_noun,
        "changes" if _several(result) else "change",
    )
    lost = common_rows({label: lost_by_row(result, unchanged, label) for label in labels})
    rows = min(map(len, lost.values()), default=0)
    if len(lost) < 2 or not rows:
        return ""
    leader, own = least_lost(lost), {label: estimate(each) for label, each in lost.items()}
    gains = all_gain(own)
    best = f"gains most from the {changes}" if gains else f"loses least to the {changes}"
    rest = [label for label in lost if label != leader.label and label not in leader.tied]
    if leader.tied:
        # earned more with the change, on average
        some = any(own[label].mean < 0 for label in rest)
        more = f"{_verb('gain' if gains else 'lose', rest)} {'less' if gains else 'more'}"
        more += f" or {_verb('gain', rest)} less" if some and not gains else ""
        return _one_of(
            [leader.label, *leader.tied], best, f"{listed(rest)} {more}" if rest else "", rows
        )
    name, least = "It also" if leader.label == alone else leader.label, own[leader.label]
    shared = (
        "" if rows == result.experiment.replications else f"; {rows} replications that all finished"
    )
    ends = f"({words.interval(leader.ahead, 'count')}{shared})"
    # a loss of -5 is no gain of the others
    if not gains and least.mean < 0 and count(least.mean) != "0":
        # the same data chose the agent
        earned = -estimate(lost[leader.label], family=len(lost))
        return (
            f"{name} {best}, {count_of(leader.ahead.mean, noun)} fewer than {leader.closest} "
            f"{ends}: it earned {count(earned.mean)} more than without the {changes} "
            f"({words.interval(earned, 'count')})."
        )
    difference = f"{count(leader.ahead.mean)} {'more' if gains else 'fewer'} than {leader.closest}"
    return f"{name} {best}: {count_of(abs(least.mean), noun)}, {difference} {ends}."


def _one_of(labels: Sequence[str], does: str, others: str, rows: int) -> str:
    """State that one of these agents is first, before that it is not known which.

    Where nothing else is known, this.
    """
    if not others:
        return f"{_uncertain(rows)} which of {listed(labels)} {does}."
    return f"{listed(labels, 'or')} {does} {_aside(rows)}; {others}."


def _uncertain(rows: int) -> str:
    return f"With {count_of(rows, 'replications')} it is not certain"


def _aside(rows: int) -> str:
    return f"(with {count_of(rows, 'replications')} it is not certain which)"


def _verb(stem: str, subjects: Sequence[str]) -> str:
    return f"{stem}s" if len(subjects) == 1 else stem
