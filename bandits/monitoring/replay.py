"""Replay one agent of a run and feed the monitors: replay, not recording.

Also in a child process.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from threadpoolctl import threadpool_limits

from bandits.base.errors import UserError
from bandits.base.formatting import short
from bandits.base.processes import ChildTask, Line
from bandits.experiments.experiment import Experiment, require_truth
from bandits.experiments.lane import Lane
from bandits.experiments.lockstep import CHUNK, make_lane
from bandits.experiments.progress import Progress
from bandits.results.run import Run

from .alarm import Alarm, Need, Setting
from .base import Monitor, MonitorParams
from .observation import EVERY, observe, offered
from .registry import REGISTRY, read

if TYPE_CHECKING:
    import pandas as pd


def alarms(
    result: Run,
    label: str,
    monitors: Sequence[str | dict[str, Any] | MonitorParams] | None = None,
    *,
    rows: Sequence[int] | None = None,
    every: int = EVERY,
) -> list[Alarm]:
    """Find all alarms of one agent of a run, by an exact replay of the run as far as it has come.

    Parameters
    ----------
    result : Run
    label : str
        Of the agent.
    monitors : sequence of str, dict or MonitorParams, optional
        Kinds, or parameters with a field ``kind``; by default every monitor that has what it
        requires.
    rows : sequence of int, optional
        Replications; all of them by default.
    every : int
        Features, means and probabilities are sampled at every n-th step.

    Returns
    -------
    list of Alarm
        By step, then by monitor in the order of the registry, then by row.

    Raises
    ------
    UserError
        No such agent or monitor, a parameter that is not allowed, or a monitor that requires what
        the run lacks.
    """
    if label not in result.histories:
        raise UserError(
            f"the run has no agent '{short(label)}'; its agents are {', '.join(result.histories)}"
        )
    return watched(
        result.experiment, label, result.histories[label].step, monitors, rows=rows, every=every
    )[1]


def watched(
    e: Experiment,
    label: str,
    steps: int,
    monitors: Sequence[str | dict[str, Any] | MonitorParams] | None = None,
    *,
    rows: Sequence[int] | None = None,
    every: int = EVERY,
    progress: Progress | None = None,
) -> tuple[list[str], list[Alarm]]:
    """Return the kinds of the monitors of one agent and their alarms in the first steps.

    See `alarms`.

    ``progress`` is called as ``progress(step, steps)`` after every chunk.
    """
    require_truth(e, "a monitor, whose alarms are judged by what changed,")
    chosen = None if monitors is None else read(monitors)
    replications = tuple(range(e.replications) if rows is None else rows)
    # as in a run: the same bits
    with threadpool_limits(1):
        lane = make_lane(e, e.labels.index(label), rows=replications)
        lane.agent.prepare()
        setting = setting_of(lane, label, replications)
        built = [REGISTRY[p.kind](p, setting) for p in _fitting(lane, label, chosen)]
        return [monitor.kind for monitor in built], feed(
            lane, built, steps, every=every, progress=progress
        )


def feed(
    lane: Lane,
    monitors: Sequence[Monitor],
    to: int,
    *,
    every: int = EVERY,
    chunk: int = CHUNK,
    progress: Progress | None = None,
) -> list[Alarm]:
    """Advance a lane to a step and feed the monitors; return their alarms by step."""
    needs: frozenset[Need] = frozenset().union(*(m.needs for m in monitors))
    found: list[tuple[Alarm, int]] = []
    for steps in observe(lane, to, needs, every=every, chunk=chunk):
        found += [
            (alarm, place)
            for place, monitor in enumerate(monitors)
            for alarm in monitor.feed(steps)
        ]
        if progress is not None:
            progress(lane.step, to)
    return [
        alarm for alarm, _ in sorted(found, key=lambda pair: (pair[0].step, pair[1], pair[0].row))
    ]


def setting_of(lane: Lane, label: str, rows: tuple[int, ...]) -> Setting:
    """Describe a lane to monitors."""
    spec = lane.simulator.spec
    return Setting(
        label, rows, spec.n_items, spec.bucket_size, tuple(lane.simulator.segment_names())
    )


def _fitting(lane: Lane, label: str, chosen: list[MonitorParams] | None) -> list[MonitorParams]:
    """Return the chosen monitors, or all that fit; refuse a chosen one that lacks something."""
    there = offered(lane)
    if chosen is None:
        drawn = lane.agent.redraws(
            lane.simulator.round_at(lane.step), lane.simulator.streams.of_rows("propensity")
        )
        costly = set() if next(drawn, None) is None else {"importance_weight"}
        return [
            m.Params(kind=kind)
            for kind, m in REGISTRY.items()
            if m.needs <= there and kind not in costly
        ]
    for params in chosen:
        if missing := sorted(REGISTRY[params.kind].needs - there):
            raise UserError(
                f"the monitor {params.kind} does not fit {label}: it {_LACKING[missing[0]]}"
            )
    return chosen


_LACKING: dict[Need, str] = {
    "features": "requires features",
    "means": "requires an agent that states estimated means",
    "probabilities": "requires an agent that chooses with known probabilities",
    "fallbacks": "requires an agent with a fallback",
    "segments": "requires a simulator whose users form segments",
    "single": "requires a simulator that shows one item at once",
    "binary": "requires rewards of 0 or 1",
}


def table(found: Sequence[Alarm]) -> pd.DataFrame:
    """Return alarms as a table: columns monitor, step, row, label, statistic, threshold,
    sentence.
    """
    import pandas as pd

    frame = pd.DataFrame(list(found), columns=list(Alarm._fields))
    return frame.astype(
        {"step": "int64", "row": "int64", "statistic": "float64", "threshold": "float64"}
    )


# replications that are replayed
ROWS = 8
LINE = Line("searches for alarms", waiting=8, seconds=300.0)


class AlarmTask(ChildTask):
    """The alarms of the agents of a run, available one agent after the other.

    Parameters
    ----------
    experiment : Experiment
    steps : mapping of str to int
        Steps that each agent has reached, by label; others are not replayed.

    Attributes
    ----------
    alarms : dict of str to list of Alarm
        Those of the agents that have been replayed, in the first replications.
    monitors : dict of str to list of str
        Kinds of the monitors that these agents had, also of those without an alarm.
    rows : int
        The number of these replications.
    """

    def __init__(self, experiment: Experiment, steps: Mapping[str, int]) -> None:
        self.experiment, self.steps = experiment, dict(steps)
        self.rows = min(ROWS, experiment.replications)
        self.alarms: dict[str, list[Alarm]] = {}
        self.monitors: dict[str, list[str]] = {}
        super().__init__(LINE, search, experiment, self.steps, range(self.rows))

    def receive(self, message: Any) -> None:
        # monitors first: the page reads them where there are alarms
        label, self.monitors[message[0]], alarms = message
        self.alarms[label] = alarms


def search(
    experiment: Experiment, steps: Mapping[str, int], rows: range, send: Callable[[Any], None]
) -> None:
    """Replay one agent after the other; send its label, the kinds of its monitors and their alarms.

    Raises
    ------
    UserError
        The run cannot be replayed (missing data, say).
    """
    for label, reached in steps.items():
        send((label, *watched(experiment, label, reached, rows=rows)))
