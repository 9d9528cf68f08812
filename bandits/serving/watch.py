"""Monitors on the log of a service: what they would report of the decisions that have a reward."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bandits.base.errors import UserError
from bandits.monitoring import EVERY, REGISTRY, Alarm, Need, Samples, Setting, Steps, read
from bandits.policy import Policy

from .decisions import log_of
from .registry import Registry
from .settings import ServiceParams, stored
from .trainer import DECISIONS, rewarded

LABEL = "service"


class Watched(NamedTuple):
    """What monitors report of a log.

    Attributes
    ----------
    decisions : int
        With a reward, which they saw.
    monitors : tuple of str
        Kinds of those that can read this log.
    alarms : list of tuple
        Each with the time of its decision, in ISO format.
    """

    decisions: int
    monitors: tuple[str, ...]
    alarms: list[tuple[str, Alarm]]


def watch(
    folder: Path,
    params: ServiceParams | None = None,
    *,
    monitors: Sequence[str] | None = None,
    decisions: int = DECISIONS,
) -> Watched:
    """Let monitors read the latest decisions of a service, which may run.

    A step is a decision whose reward is known. A log holds no estimated means and of the
    probabilities that of the shown item alone: monitors of these cannot read it.

    Parameters
    ----------
    folder : Path
        Of the service.
    params : ServiceParams, optional
        How the service counts rewards; by default as it was served last.
    monitors : sequence of str, optional
        Their kinds; by default all that can read this log.
    decisions : int
        How many of the latest decisions are read.

    Raises
    ------
    UserError
        There is no champion, no log or no reward, or a monitor is unknown or cannot read a log.
    """
    chosen = None if monitors is None else read(monitors)
    registry = Registry(folder / "registry")
    if (champion := registry.aliases().champion) is None:
        raise UserError("the registry has no champion")
    policy = Policy.from_bytes(registry.version(champion).policy)
    found = rewarded(folder, params or stored(folder), decisions)
    log = log_of(policy, found)
    there: set[Need] = {"single", "fallbacks"}
    samples = None
    if log.features is not None:
        there.add("features")
        at = np.arange(0, len(log), EVERY)
        features = log.features[at][:, None]
        samples = Samples(at, log.rewards[at][:, None], features, features)
    if np.isin(log.rewards, (0.0, 1.0)).all():
        there.add("binary")
    if chosen is None:
        chosen = [m.Params(kind=kind) for kind, m in REGISTRY.items() if m.needs <= there]
    for each in chosen:
        if missing := sorted(REGISTRY[each.kind].needs - there):
            raise UserError(f"the monitor {each.kind} cannot read a log: it needs {missing[0]}")
    steps = Steps(
        0,
        log.actions[:, None, None],
        np.zeros((len(log), 1), np.int64),
        log.rewards[:, None],
        samples,
        np.array([[decision.body.get("arm") == "fallback"] for decision in found]),
    )
    setting = Setting(LABEL, (0,), log.n_actions)
    alarms = [a for each in chosen for a in REGISTRY[each.kind](each, setting).feed(steps)]
    alarms.sort(key=lambda alarm: alarm.step)
    dated = [(_date(found[alarm.step - 1].time), alarm) for alarm in alarms]
    return Watched(len(log), tuple(each.kind for each in chosen), dated)


def _date(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
