"""Which monitors were right in a run: a sentence from their alarms and the changes that the
simulator declares.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import bdtr

from bandits.base.formatting import count, count_of, listed, percent
from bandits.base.types import IntArray
from bandits.simulators.base import SimulatorParams

from .alarm import Alarm
from .false_alarms import change_steps, score
from .registry import CHANGES, REGISTRY

# a monitor reports changes if it rings in at least this share of the cases
HIGH = 0.8
# and can be relied on if it rings in at most this share of the replications while nothing has
# changed
LOW = 0.2
# and rings more often than while nothing had changed, at this level for all monitors together
LEVEL = 0.05


class Record(NamedTuple):
    """How often one monitor was right, over all agents that it observed.

    Attributes
    ----------
    kind : str
        Of the monitor.
    cases : int
        Triples of an agent, a replication and a change.
    delays : int64 (n,)
        Steps from a change to the first alarm after it, in the n cases with one.
    false_alarms : int
        Alarms before the first change.
    runs, rang_before : int
        Pairs of an agent and a replication, and those of them with an alarm before the first
        change.
    quiet, waited : float
        Steps until the first alarm, summed over these pairs, up to the first change; and over the
        cases, up to the next change.
    """

    kind: str
    cases: int
    delays: IntArray
    false_alarms: int
    runs: int
    rang_before: int
    quiet: float
    waited: float

    @property
    def title(self) -> str:
        """Name of the monitor."""
        return REGISTRY[self.kind].title

    @property
    def reports(self) -> bool:
        """Whether it rang after nearly all changes."""
        return bool(self.cases) and len(self.delays) >= HIGH * self.cases

    @property
    def rings_before(self) -> bool:
        """Whether it rang in many replications although nothing had changed."""
        return self.rang_before > LOW * self.runs

    def rings_more_often(self, level: float) -> bool:
        """Whether alarms came sooner after changes than while nothing had changed.

        At a constant rate, those before the first change are binomial among all first alarms, by
        the steps until then."""
        first = self.rang_before + len(self.delays)
        return bool(bdtr(self.rang_before, first, self.quiet / (self.quiet + self.waited)) <= level)

    def reported(self) -> str:
        """State its name, in how many cases it rang after a change, and how late."""
        late = count_of(float(np.median(self.delays)), "steps")
        return f"{self.title} ({len(self.delays)} of {self.cases} cases, median delay {late})"


def records(
    found: Mapping[str, Sequence[Alarm]],
    params: SimulatorParams,
    *,
    rows: int,
    steps: Mapping[str, int],
    monitors: Mapping[str, Sequence[str]],
) -> list[Record]:
    """Count what each monitor reported rightly and falsely, in the order of the registry.

    Parameters
    ----------
    found : mapping of str to sequence of Alarm
        By the label of the agent.
    params : SimulatorParams
        Their changes are the truth.
    rows : int
        Replications that were replayed.
    steps, monitors : mapping
        By label, the steps that were replayed and the kinds of the monitors; agents without alarms
        too.
    """
    out = []
    for kind in REGISTRY:
        mine = {
            label: [a for a in found[label] if a.monitor == kind]
            for label in found
            if kind in monitors[label]
        }
        if not mine:
            continue
        scores = [
            score(alarms, params, rows=rows, steps=steps[label]) for label, alarms in mine.items()
        ]
        before, quiet, waited = 0, 0.0, 0.0
        for (label, alarms), each in zip(mine.items(), scores, strict=True):
            begun = change_steps(params, steps[label]) or [steps[label]]
            early = sorted((a.step, a.row) for a in alarms if a.step <= begun[0])
            # of each replication the first alarm, which is written last
            first = {row: step for step, row in reversed(early)}
            before += len(first)
            quiet += sum(first.values()) + begun[0] * (rows - len(first))
            # cases without an alarm have the mean length
            length = (steps[label] - begun[0]) / len(begun)
            waited += each.delays.sum() + length * (each.cases - len(each.delays))
        delays = np.concatenate([each.delays for each in scores])
        false = sum(each.false_alarms for each in scores)
        out.append(
            Record(
                kind,
                sum(each.cases for each in scores),
                delays,
                false,
                rows * len(mine),
                before,
                quiet,
                float(waited),
            )
        )
    return out


def conclusion(
    found: Mapping[str, Sequence[Alarm]],
    params: SimulatorParams,
    *,
    rows: int,
    steps: Mapping[str, int],
    monitors: Mapping[str, Sequence[str]],
) -> str:
    """State which monitors reported the changes of a run and which rang falsely.

    See `records` for the parameters.

    A monitor is reliable if it rang in at least 80 % of the cases, in at most 20 % of the
    replications while nothing had changed, and significantly sooner than then: at a level of 5 %
    for all monitors together, by which one that rings at a constant rate is seldom called so."""
    all_records = records(found, params, rows=rows, steps=steps, monitors=monitors)
    last = max((steps[label] for label in found), default=0)
    begun = change_steps(params, last)
    if not begun:
        return _all_false(all_records, bool(params.all_changes))
    if begun[0] == 0:
        rang = [record for record in all_records if len(record.delays)]
        parts = listed([record.reported() for record in rang]) or "no monitor"
        return (
            "Something changes from the first step on, so no alarm is false; alarms came from "
            f"{parts}."
        )
    return _reported(all_records, _named(params, last))


def _reported(all_records: Sequence[Record], change: str) -> str:
    """Sort the monitors into those that reported, rang before too, missed many, rang falsely, and
    missed.
    """
    level = LEVEL / max(len(all_records), 1)
    good = [
        r.reported()
        for r in all_records
        if r.reports and not r.rings_before and r.rings_more_often(level)
    ]
    both = [
        f"{r.reported()}, but before it too in {count(r.rang_before)} of {count(r.runs)} cases"
        for r in all_records
        if r.reports and r.rings_before
    ]
    both += [
        f"{r.reported()}, too late to tell them from false alarms"
        for r in all_records
        if r.reports and not r.rings_before and not r.rings_more_often(level)
    ]
    silent = [r for r in all_records if not len(r.delays)]
    some = [
        f"{r.title} ({len(r.delays)} of {r.cases})"
        for r in all_records
        if len(r.delays) and not r.reports
    ]
    false = [
        f"{r.title} ({count_of(r.false_alarms, 'alarms')})"
        for r in silent
        if r.rang_before and r.kind in CHANGES
    ]
    state = [r.title for r in silent if r.rang_before and r.kind not in CHANGES]
    missed = [r.title for r in silent if not r.rang_before and r.kind in CHANGES]
    if not any((good, both, some, false, state)):
        return f"No monitor raised an alarm: {change} was missed."
    parts = [
        f"{change} was reported by {listed(good)}"
        if good
        else f"no monitor reported {change} reliably"
    ]
    parts += [f"rang after it: {listed(both)}"] if both else []
    parts += (
        [f"reported in fewer than {percent(HIGH)} of the cases: {listed(some)}"] if some else []
    )
    parts += [f"only false alarms, before it: {listed(false)}"] if false else []
    parts += [f"no alarm: {listed(missed)}"] if missed else []
    parts += [f"about states of the agent, before it: {listed(state)}"] if state else []
    text = "; ".join(parts)
    return f"{text[0].upper()}{text[1:]}."


def _all_false(all_records: Sequence[Record], later: bool) -> str:
    why = "Nothing has changed up to the last step" if later else "Nothing changes in this run"
    wrong = [r for r in all_records if r.false_alarms and r.kind in CHANGES]
    state = [r.title for r in all_records if r.false_alarms and r.kind not in CHANGES]
    false = [
        f"{r.title} ({count_of(r.false_alarms, 'alarms')} in {count_of(r.runs, 'cases')})"
        for r in wrong
    ]
    text = (
        f"{why}, so every alarm of a change is false: {listed(false)}"
        if false
        else f"{why}: no alarm is false"
    )
    if not false and not state:
        text = f"{why}, and no monitor raised an alarm"
    others = (
        f"{'the other' if false else 'the'} alarms are about states of the agent: {listed(state)}"
    )
    return f"{text}; {others}." if state else f"{text}."


def _named(params: SimulatorParams, last: int) -> str:
    """Name the changes that begin before a step: the change at step 5,000."""
    begun = sorted(
        (c for c in params.all_changes.values() if c.begins < last), key=lambda c: c.begins
    )
    first = begun[0]
    if len({c.begins for c in begun}) > 1:
        return f"a change (at steps {listed(dict.fromkeys(count(c.begins) for c in begun))})"
    if first.ends is not None and first.ends > first.begins:
        return f"the change from step {count(first.begins)} to {count(first.ends)}"
    return f"the change at step {count(first.begins)}"
