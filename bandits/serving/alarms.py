"""Monitors on the log of a running service: they read what is new in it, beside what is served."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bandits.base.errors import UserError
from bandits.base.types import FloatArray
from bandits.monitoring import EVERY, FELL, REGISTRY, Alarm, Samples, Setting, Steps
from bandits.policy import Policy
from bandits.policy.policy import REMEMBERED
from bandits.policy.schema import Schema

from .event_log import Event, following
from .registry import Registry
from .settings import ServiceParams

# those with few false alarms at any CTR (docs/MONITORS.md), of all decisions and of the
# challenger's
WATCHED = ("adwin", "feature_drift", "fallbacks")
JUDGED = ("adwin", "fallbacks")
# events before a start that are read without an alarm: they are what is compared with
_BEFORE = 20_000
# events between two pauses, in which requests are answered, and in one look
_PART, _LOOK = 50, 2_000
_PAUSE = 0.002


class Seen(NamedTuple):
    """An alarm of a monitor on the log.

    Attributes
    ----------
    time : float
        Of the reward that raised it, in seconds since 1970.
    monitor : str
        Its kind.
    version : int, optional
        The challenger that it is about; None: all decisions.
    share : float
        The challenger's at that time.
    sentence : str
    """

    time: float
    monitor: str
    version: int | None
    share: float
    sentence: str

    def text(self) -> str:
        """State it with its time and what it is about."""
        moment = datetime.fromtimestamp(self.time, UTC).isoformat(timespec="seconds")
        about = "" if self.version is None else f"version {self.version}, "
        return f"{moment} {about}{REGISTRY[self.monitor].title}: {self.sentence}"


class Stream:
    """Monitors of one stream of decisions whose rewards are known.

    Parameters
    ----------
    kinds : sequence of str
    low, high : float
        The range of rewards, which monitors see as 0 to 1.
    """

    def __init__(self, kinds: Sequence[str], *, low: float = 0.0, high: float = 1.0) -> None:
        setting = Setting("service", (0,), 1)
        self._monitors = [
            REGISTRY[kind](REGISTRY[kind].Params(kind=kind), setting) for kind in kinds
        ]
        self._low, self._high = low, high
        self.n = 0
        # compiled now, not under requests
        self.feed(np.empty(0), np.empty(0, np.bool_))

    def feed(
        self, rewards: FloatArray, fell_back: Any, samples: Samples | None = None
    ) -> list[Alarm]:
        """Process the next decisions.

        Parameters
        ----------
        rewards : float64 (T,)
        fell_back : bool (T,)
        samples : Samples, optional
            Of some of them.
        """
        n = len(rewards)
        scaled = (np.clip(rewards, self._low, self._high) - self._low) / (self._high - self._low)
        nothing = np.zeros((n, 1), np.int64)
        steps = Steps(
            self.n, nothing[:, :, None], nothing, scaled[:, None], samples, fell_back[:, None]
        )
        self.n += n
        found = [alarm for monitor in self._monitors for alarm in monitor.feed(steps)]
        if (self._low, self._high) != (0.0, 1.0):
            unit = f"Rewards count from 0 at {self._low:g} to 1 at {self._high:g}."
            found = [alarm._replace(sentence=f"{alarm.sentence} {unit}") for alarm in found]
        return sorted(found, key=lambda alarm: alarm.step)


def stops(alarm: Alarm | Seen) -> bool:
    """Return whether an alarm of a challenger ends its rollout: a reward that rises does not."""
    return alarm.monitor != "adwin" or alarm.sentence.startswith(FELL)


class _Step(NamedTuple):
    """A decision whose reward became known by an event."""

    event: Event
    reward: float
    fell_back: bool
    features: FloatArray | None


class Watcher:
    """Let monitors read the log of a service as it grows.

    Of all decisions they report changes of the reward and of the contexts, and a fallback that
    decides often; of the challenger's a reward that falls and such a fallback. The challenger is
    watched anew at each step of its rollout: with more users its mean is another.

    Parameters
    ----------
    folder : Path
        Of the service.
    params : ServiceParams
    position : int
        Of the last event; alarms on earlier ones are not reported.
    """

    def __init__(self, folder: Path, params: ServiceParams, position: int) -> None:
        self._folder, self._params = folder, params
        self._at, self._begin = max(0, position - _BEFORE), position
        self._waiting: OrderedDict[str, Mapping[str, Any]] = OrderedDict()
        self._schema: Schema | None = None
        self._champion: int | None = None
        self._service = self._stream(WATCHED)
        self._rollout: tuple[int | None, float] = (None, 0.0)
        self._challenger = self._stream(JUDGED)

    def look(self, champion: int | None, challenger: int | None, share: float) -> list[Seen]:
        """Read on, for a bounded number of events, and return the alarms.

        Parameters
        ----------
        champion, challenger : int, optional
            Versions that serve.
        share : float
            The challenger's.

        Raises
        ------
        UserError
            The log cannot be read.
        """
        if self._schema is None and champion != self._champion:
            version = Registry(self._folder / "registry").version(champion or 0)
            # its scales stay as they are: what changes are the contexts
            self._schema, self._champion = Policy.from_bytes(version.policy).schema, champion
        if (challenger, share) != self._rollout:
            self._rollout, self._challenger = (challenger, share), self._stream(JUDGED)
        found: list[Seen] = []
        for _ in range(_LOOK // _PART):
            events = following(self._folder / "log", self._at, _PART)
            if events:
                found += self._read(events)
                self._at = events[-1].position
            if len(events) < _PART:
                break
            time.sleep(_PAUSE)
        return found

    def _stream(self, kinds: Sequence[str]) -> Stream:
        rollout = self._params.rollout
        return Stream(kinds, low=rollout.low, high=rollout.high)

    def _read(self, events: Sequence[Event]) -> list[Seen]:
        steps: list[_Step] = []
        own: list[_Step] = []
        for event in events:
            if (known := self._known(event)) is None:
                continue
            body, reward = known
            sampled = (self._service.n + len(steps)) % EVERY == 0
            features = self._features(body["context"]) if sampled else None
            steps.append(_Step(event, reward, body["arm"] == "fallback", features))
            if (body["version"], body["share"]) == self._rollout:
                own.append(steps[-1])
        found = self._fed(self._service, steps, None)
        return [*found, *filter(stops, self._fed(self._challenger, own, self._rollout[0]))]

    def _known(self, event: Event) -> tuple[Mapping[str, Any], float] | None:
        """Return the decision whose reward an event states for good, and the reward."""
        body = event.body
        if event.kind == "decision":
            self._waiting[event.event_id] = body
            if len(self._waiting) > REMEMBERED:
                self._waiting.popitem(last=False)
        elif event.kind == "settled" or (
            event.kind == "reward" and body["learned"] and self._params.several == "earliest"
        ):
            decision = self._waiting.pop(event.event_id, None)
            if decision is not None and body["reward"] is not None:
                return decision, float(body["reward"])
        return None

    def _features(self, context: Any) -> FloatArray | None:
        """Return the features of a context, the mean over its candidates; None: it has others."""
        if self._schema is None or context is None:
            return None
        try:
            found = self._schema.features(context, observe=False)
        except UserError:
            return None
        return found if found.ndim == 1 else np.asarray(found.mean(axis=0))

    def _fed(self, stream: Stream, steps: Sequence[_Step], version: int | None) -> list[Seen]:
        if not steps:
            return []
        start = stream.n
        sampled = {i: step.features for i, step in enumerate(steps) if step.features is not None}
        rewards = np.array([step.reward for step in steps])
        samples = None
        if sampled:
            at = np.array(list(sampled))
            features = np.stack(list(sampled.values()))[:, None]
            samples = Samples(at + start, rewards[at][:, None], features, features)
        alarms = stream.feed(rewards, np.array([step.fell_back for step in steps]), samples)
        dated = [(alarm, steps[alarm.step - start - 1].event) for alarm in alarms]
        return [
            Seen(event.time, alarm.monitor, version, self._rollout[1], alarm.sentence)
            for alarm, event in dated
            if event.position > self._begin
        ]
