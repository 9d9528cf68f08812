"""Which agent recovers first from a change, and which loses least to it: one sentence.

Recovery: intervals of all compared agents, widened so that they hold together (Bonferroni over agents, of two agents
over their one pair); one agent is earlier than another where theirs are apart. Loss: paired tests of what the change
costs, Holm-corrected over all pairs, because the same data choose the agent that loses least. Error rates are simulated
in `tests/results/test_change_conclusion.py`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bandits.base.formatting import count, count_of, listed
from bandits.base.types import FloatArray

from .lost_clicks import lost_by_row
from .metrics import Estimate, estimate
from .paired_tests import Comparison, corrected, holm, paired_test
from .recovery import WINDOW, Recovery, before_change, change_span, competes, last_change, recovery_from
from .text import interval

if TYPE_CHECKING:
    from .result import Result


class Leader(NamedTuple):
    """The agent with the smallest estimate, and what is known of the others.

    Attributes
    ----------
    label : str
    tied : tuple of str
        Agents that do not differ significantly from it.
    ahead : Estimate
        Of the closest agent, minus the leader; a corrected interval. Without numbers where it has no meaning.
    closest : str
    """

    label: str
    tied: tuple[str, ...]
    ahead: Estimate
    closest: str


def first_to_recover(found: Mapping[str, Recovery]) -> Leader | None:
    """Find the agent that recovers first, from intervals that hold together; None if none recovers within the run.

    Parameters
    ----------
    found : mapping of str to Recovery
    """
    steps = {
        label: (r.step, math.inf if r.high is None else r.high) for label, r in found.items() if r.step is not None
    }
    if not steps:
        return None
    label = min(steps, key=steps.__getitem__)
    end = found[label].high

    def later(other: Recovery) -> bool:
        if end is None or (other.low is None and other.high is None and other.step is not None):
            return False  # the leader's own end lies beyond the run, or there are no intervals
        return other.low is None or other.low > end

    tied = tuple(other for other, r in found.items() if other != label and not later(r))
    return Leader(label, tied, Estimate(*[float("nan")] * 3), "")


def least_lost(lost: Mapping[str, FloatArray]) -> Leader:
    """Find the agent that loses least.

    Parameters
    ----------
    lost : mapping of str to float64 (R,)
        By agent; NaN where a replication diverged.
    """
    pairs = {(a, b): _paired(lost[b] - lost[a]) for a, b in itertools.permutations(lost, 2)}
    each = list(itertools.combinations(lost, 2))
    p_values = dict(zip(each, holm([pairs[pair].p_value for pair in each]), strict=True))
    label = min(lost, key=lambda name: float(np.nanmean(lost[name])))
    others = {b: p_values.get((label, b), p_values.get((b, label), 1.0)) for b in lost if b != label}
    closest = min(others, key=lambda b: pairs[label, b].difference.mean)
    ahead = corrected(pairs[label, closest], others[closest])
    return Leader(label, tuple(b for b, p in others.items() if p >= 0.05), ahead, closest)


def _paired(gap: FloatArray) -> Comparison:
    kept = gap[np.isfinite(gap)]
    better, p = paired_test(kept)
    return Comparison(estimate(kept), len(kept), better, p, None, None, 0.0)


def sentences(result: Result, twin: Result | None = None) -> list[str]:
    """Return the conclusion as a list, empty where there is none; see `conclusion` for the parameters."""
    return list(filter(None, [conclusion(result, twin)]))


def conclusion(result: Result, twin: Result | None = None) -> str:
    """State which agent recovers first from the last change and which loses least to the changes.

    Agents are left out that know the truth, diverged, or never reached 95 % of the best choice before the change: they
    had nothing to recover.

    Parameters
    ----------
    result : Result
        A run in which the simulator changes.
    twin : Result, optional
        The same run without the changes; by default `Result.twin`.

    Returns
    -------
    str
        Empty with fewer than two agents to compare, or no steps after the change.

    Raises
    ------
    UserError
        ``twin`` is not that run.
    """
    twin, labels = twin or result.twin, _compared(result)
    if len(labels) < 2:
        return ""
    change, parts, alone = last_change(result.experiment.simulator), [], ""
    rows = int(result.histories[labels[0]].alive.sum())
    if change is not None:
        family = min(len(labels), len(labels) * (len(labels) - 1) // 2)
        each = [recovery_from(result.histories[label], change, family=family) for label in labels]
        found = {label: r for label, r in zip(labels, each, strict=True) if r is not None}
        if len(found) == len(labels):
            first = first_to_recover(found)
            alone = first.label if first is not None and not first.tied else ""
            parts.append(_recovered(first, found, rows))
    if twin is not None:
        parts.append(_lost(result, twin, labels, alone))
    if len(parts) > 1 and all(part.startswith(_uncertain(rows)) for part in parts):
        parts[1] = f"Nor is it certain{parts[1].removeprefix(_uncertain(rows))}"
    return " ".join(parts)


def _compared(result: Result) -> list[str]:
    """Return the agents that had something to lose: they reached 95 % of the best choice before the change."""
    span = change_span(result.experiment.simulator)
    until = span[0] if span is not None and span[0] >= WINDOW else result.experiment.steps
    found = {label: before_change(h, until) for label, h in result.histories.items() if competes(result, label)}
    return [label for label, before in found.items() if before is not None and before.reached]


def _recovered(first: Leader | None, found: Mapping[str, Recovery], rows: int) -> str:
    if first is None:
        return f"{listed(list(found))} do not recover within the run."
    step = found[first.label].step
    if not first.tied:
        return f"{first.label} recovers first, {f'after {count(step)} steps' if step else 'at once'}."
    rest = [label for label in found if label != first.label and label not in first.tied]
    never = " or not at all" if any(found[label].step is None for label in rest) else ""
    later = f"; {listed(rest)} {_verb('recover', rest)} later{never}" if rest else ""
    return f"{_uncertain(rows)} which of {listed([first.label, *first.tied])} recovers first{later}."


def _lost(result: Result, twin: Result, labels: Sequence[str], alone: str) -> str:
    noun = result.experiment.simulator_class().reward_noun
    lost = {label: lost_by_row(result, twin, label) for label in labels}
    leader, own = least_lost(lost), min(float(np.nanmean(rows)) for rows in lost.values())
    gains = own < 0  # the changes improve what can be earned
    best = "gains most from the change" if gains else "loses least to the change"
    if not leader.tied:
        name = "It also" if leader.label == alone else leader.label
        difference = f"{count(leader.ahead.mean)} {'more' if gains else 'fewer'} than {leader.closest}"
        return f"{name} {best}: {count(abs(own))} {noun}, {difference} ({interval(leader.ahead)})."
    rest = [label for label in labels if label != leader.label and label not in leader.tied]
    others = (
        f"; {listed(rest)} {_verb('gain' if gains else 'lose', rest)} {'less' if gains else 'more'}" if rest else ""
    )
    rows = int(np.isfinite(lost[leader.label]).sum())
    return f"{_uncertain(rows)} which of {listed([leader.label, *leader.tied])} {best}{others}."


def _uncertain(rows: int) -> str:
    return f"With {count_of(rows, 'replications')} it is not certain"


def _verb(stem: str, subjects: Sequence[str]) -> str:
    return f"{stem}s" if len(subjects) == 1 else stem
