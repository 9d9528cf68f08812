"""Monitors on the log of a running service: they read what is new in it, beside what is served."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bandits.base.errors import UserError
from bandits.base.types import FloatArray
from bandits.monitoring import EVERY, FELL, REGISTRY, Alarm, Samples, Setting, Steps
from bandits.policy.policy import REMEMBERED
from bandits.policy.schema import Schema

from .event_log import Event, following
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
# contexts of which the scales of a schema must be
_SCALED = 100
# decisions that wait for a reward; a service closes the window of the oldest beyond half of them
_HELD = 2 * REMEMBERED
# events not yet read that `/health` states
BEHIND = 50_000


class Seen(NamedTuple):
    """An alarm of a monitor on the log.

    Attributes
    ----------
    time : float
        Of the event by which the reward that raised it was known, and those of all earlier
        decisions, in seconds since 1970.
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


@dataclass(slots=True)
class _Held:
    """A decision that waits."""

    time: float
    body: Mapping[str, Any]
    known: bool = False
    reward: float | None = None


class InOrder:
    """Decisions with their rewards, in the order in which they were made.

    A decision waits until its reward and those of all earlier ones are known. As they become known,
    clicks come before the zeros of windows that end: each start would look like a fall.

    It waits for its window. Where a missing reward is not learned, that of one decision would hold
    all others back: once rewards of two sizes are known, and time has passed of ten times the
    longest delay, it waits for twice that delay only.

    Parameters
    ----------
    params : ServiceParams
    """

    def __init__(self, params: ServiceParams) -> None:
        self._earliest, self._default = params.several == "earliest", params.default_reward
        # the window, and some longer: how it ended may be missing in the log
        self._longest = 1.1 * params.reward_window + 60
        self._held: OrderedDict[str, _Held] = OrderedDict()
        # times of those that did not get a reward in time
        self._missed: OrderedDict[str, float] = OrderedDict()
        self._begin, self._delay = np.inf, 0.0
        self._low, self._high = np.inf, -np.inf

    def read(self, event: Event) -> Iterator[tuple[Mapping[str, Any], float]]:
        """Read the next event, and yield the decisions that no longer wait, with their rewards."""
        body = event.body
        if event.kind == "decision":
            self._held[event.event_id] = _Held(event.time, body)
        elif event.kind == "settled" or (
            event.kind == "reward" and body["learned"] and self._earliest
        ):
            held = self._held.get(event.event_id)
            time = self._missed.pop(event.event_id, None) if held is None else held.time
            if held is not None:
                held.known, held.reward = True, body["reward"]
            if time is not None and event.kind == "reward":
                self._delay = max(self._delay, event.time - time)
                self._low = min(self._low, body["reward"])
                self._high = max(self._high, body["reward"])
        self._begin = min(self._begin, event.time)
        patience = self._patience(event.time)
        while self._held:
            name, held = next(iter(self._held.items()))
            waits = len(self._held) <= _HELD and event.time <= held.time + patience
            if waits and not held.known:
                return
            del self._held[name]
            if not held.known:
                self._missed[name] = held.time
                if len(self._missed) > _HELD:
                    self._missed.popitem(last=False)
            reward = held.reward if held.known else self._default
            if reward is not None:
                yield held.body, float(reward)

    def _patience(self, now: float) -> float:
        """Return the seconds for which a decision waits."""
        varied = self._earliest and self._default is None and self._low < self._high
        if varied and 10 * self._delay <= now - self._begin:
            return min(self._longest, 2 * self._delay + 1)
        return self._longest


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
        self._rewards = InOrder(params)
        self._schema: Schema | None = None
        self._service = self._stream(WATCHED)
        self._rollout: tuple[int | None, float] = (None, 0.0)
        self._challenger = self._judges()

    @property
    def position(self) -> int:
        """Of the event up to which the log is read."""
        return self._at

    def know(self, schema: Schema | None) -> None:
        """Take over the columns of the contexts, once their scales are those of enough contexts;
        then they stay as they are: what changes are the contexts.
        """
        if self._schema is None and schema is not None:
            scaled = schema.scale and schema.numbers
            if not scaled or schema.count.max() >= _SCALED:
                self._schema = Schema.from_data(schema.to_data())

    def look(self, challenger: int | None, share: float) -> Iterator[Seen]:
        """Read on, for a bounded number of events, and yield the alarms.

        Parameters
        ----------
        challenger : int, optional
            The version.
        share : float
            The challenger's.

        Raises
        ------
        UserError
            The log cannot be read.
        """
        if (challenger, share) != self._rollout:
            self._rollout, self._challenger = (challenger, share), self._judges()
        for events in following(self._folder / "log", self._at, _LOOK, _PART):
            # first, so that no event is read twice where a monitor fails
            self._at = events[-1].position
            yield from self._read(events)
            time.sleep(_PAUSE)

    def _judges(self) -> dict[str, Stream]:
        return {kind: self._stream([kind]) for kind in JUDGED}

    def _stream(self, kinds: Sequence[str]) -> Stream:
        rollout = self._params.rollout
        return Stream(kinds, low=rollout.low, high=rollout.high)

    def _read(self, events: Sequence[Event]) -> Iterator[Seen]:
        steps: list[_Step] = []
        own: list[_Step] = []
        for event in events:
            for body, reward in self._rewards.read(event):
                sampled = (self._service.n + len(steps)) % EVERY == 0
                features = self._features(body["context"]) if sampled else None
                steps.append(_Step(event, reward, body["arm"] == "fallback", features))
                # a pause, which the champion may have caused, is not the challenger's
                judged = body["arm"] == "challenger" or "served" in body
                if judged and (body["version"], body["share"]) == self._rollout:
                    own.append(steps[-1])
        yield from self._fed(self._service, steps, None)
        # what a fallback earns is not the challenger's
        judged_by = {"adwin": [step for step in own if not step.fell_back], "fallbacks": own}
        for kind, stream in self._challenger.items():
            yield from filter(stops, self._fed(stream, judged_by[kind], self._rollout[0]))

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
