"""A service beyond one machine: any number of processes decide, and one learns.

Those that decide write to a common log and take over the newest head, which is what the learner
knows. The learner stores the events in a folder, as a service on one machine does: trainer,
registry, rollout and export work on that folder.
"""

from __future__ import annotations

import secrets
import time
import uuid
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from pydantic import ValidationError

from bandits import __version__
from bandits.base.errors import UserError
from bandits.experiments.validation import refusal
from bandits.policy.policy import Policy

from .alarms import Seen
from .event_log import AlreadyDecidedError, Event, EventLog, Log, LogAwayError
from .http import fingerprint
from .redis_log import RedisLog
from .registry import Aliases
from .rollout import Rollout
from .service import (
    LEARNER,
    Answer,
    Service,
    UnknownDecisionError,
    _Open,
    learns,
    named,
    rewarded,
)
from .settings import ServiceParams, stored

# seconds between two heads, where something changed
HEAD = 0.5
# seconds after which events that wait mean that nothing learns
_DEAD = 30.0
# seconds between two looks at an empty log, and at one that is away
_PAUSE, _AWAY = 0.02, 0.5
_JUDGE = 1.0
# what a head states besides its policies
_NEEDED = {"published", "registered", "problem", "step", "learned"}
# events between two commits
_GROUP = 500


class Decider(Service):
    """One of the processes that decide; what they log is learned by a `Learner`.

    Parameters
    ----------
    folder : Path
        Holds the key of the users' pseudonyms.
    url : str
        Of the log; see `RedisLog`.
    now : callable
        Returns seconds since 1970.

    Raises
    ------
    UserError
        No learner has published a head, or the key is not that of the other processes.
    """

    def __init__(self, folder: Path, url: str, *, now: Callable[[], float] = time.time) -> None:
        self._url, self._head, self._published, self._registered = url, 0, 0.0, 0.0
        # what the learner states, and what this process does not know of the newest head
        self._stated = self._unknown = ""
        # of the learner's monitors
        self._unread: int | None = None
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        # those of the head follow
        super().__init__(folder, ServiceParams(), now=now)

    @property
    def age(self) -> float:
        """Seconds since the newest version was registered."""
        return self._now() - self._registered

    @property
    def unread(self) -> int | None:
        """Events that the learner's monitors have not read yet; None: it does not publish them."""
        return self._unread

    def problems(self) -> list[str]:
        """State all that is wrong."""
        found = [*super().problems(), *filter(None, [self._stated, self._unknown])]
        waiting, age = self.log.health().waiting, self._now() - self._published
        if waiting and age > _DEAD:
            found.append(f"{waiting:,} events wait for {age:.0f} s: the learner may be dead")
        return found

    def decide(
        self,
        context: Any = None,
        candidates: Sequence[str | int] | None = None,
        *,
        event_id: str | None = None,
        user: str = "",
    ) -> Answer:
        """Choose an item; the same event id gets the same answer from all processes."""
        try:
            return super().decide(context, candidates, event_id=event_id, user=user)
        except AlreadyDecidedError as error:
            known = self._known(error.event_id)
            assert known is not None
            self.counts["duplicates"] += 1
            return known

    def reward(self, event_id: str, reward: float, *, reward_id: str | None = None) -> bool:
        """Log a reward; return whether it counts. One with a known id is not logged again."""
        events = self.log.find(event_id)
        decision = next((event for event in events if event.kind == "decision"), None)
        if decision is None:
            raise UnknownDecisionError(f"event_id: there was no decision {event_id[:80]!r}")
        version = decision.body["version"]
        policy = self._policies.get(version) or self._policies[self.aliases.champion or 0]
        policy.check_reward(reward)
        known = None if reward_id is None else rewarded(events, reward_id)
        now = self._now() if known is None else known.time
        before = events if known is None else events[: events.index(known)]
        first = all(event.kind != "reward" for event in before)
        counts = now - decision.time <= self.params.reward_window and (
            first or self.params.several == "sum"
        )
        if known is not None:
            self.counts["duplicates"] += 1
            return counts
        self._log("reward", event_id, {"reward": reward, **named(reward_id)}, time=now)
        self.counts["rewards"] += 1
        self.counts["late"] += not counts
        return counts

    def refresh(self) -> bool:
        """Take over the newest head, where it changed; return whether it did.

        One of a newer version of this package may hold what is not known here: the last one that
        is understood stays, and `problems` states it.
        """
        found = self._redis.head(self._head)
        if found is None:
            return False
        number, data = found
        before = self.aliases
        try:
            # each process draws numbers of its own, and others after each head
            about = self._unpacked(data, seed=secrets.randbits(63))
        except (UserError, ValueError, TypeError, KeyError) as error:
            # the learner lives
            self._head, self._published = number, self._now()
            self._unknown = _not_understood(error)
            return False
        if about is None:
            raise UserError("the head of the learner is damaged")
        self._head, self._published, self._unknown = number, about["published"], ""
        self._registered, self._stated = about["registered"], about["problem"]
        self.params = about["params"]
        # a decision is found for as long as its reward counts
        self._redis.keep = _kept(self.params)
        if self.rollout.params != self.params.rollout or before != self.aliases:
            self.rollout = Rollout(self.params.rollout)
        self.rollout.step = about["step"]
        self.counts["learned"] = about["learned"]
        self.alarms = deque(about["alarms"])
        # a learner that is still to be updated publishes neither
        self.alarmed = about.get("alarmed", self.alarmed)
        self._unread = about.get("unread")
        if before != self.aliases:
            self._slow, self._paused_until, self._problem = 0, 0.0, ""
        return True

    def _about(self, text: str) -> Any:
        about = super()._about(text)
        about["params"] = ServiceParams.model_validate(about["params"])
        about["alarms"] = [Seen(*alarm) for alarm in about.get("alarms", ())]
        if missing := _NEEDED - about.keys():
            raise KeyError(min(missing))
        return about

    def judge(self) -> str:
        """Leave the rollout to the learner."""
        return "the learner judges"

    def settle(self) -> None:
        """Leave the windows to the learner."""

    def snapshot(self) -> None:
        """Store nothing: the log and the learner have all."""

    def _rotate(self) -> None:
        """Leave the days to the learner."""

    def _watched(self) -> None:
        """Leave the monitors to the learner."""

    def _first_aliases(self) -> Aliases:
        return Aliases()

    def _open_log(self) -> Log:
        self._redis = RedisLog(self._url, keep=1.0)
        return self._redis

    def _recover(self) -> None:
        if not self.refresh():
            raise UserError(
                self._unknown
                or f"{self._redis.name} has no head yet: start python -m bandits learn first"
            )
        if not self._redis.same_users(fingerprint(self.folder)):
            raise UserError(
                f"{self.folder / 'user.key'} is not the key of the other processes: copy theirs"
            )

    def _decided(self, answer: Answer, *_: Any) -> None:
        self._answered(answer)

    def _shadow(self, answer: Answer, context: Any, candidates: Any) -> None:
        """Leave the shadow to the learner."""


class Learned(Service):
    """The folder of a learner, opened without the common log: other processes chose what it holds.

    Parameters
    ----------
    folder : Path
        Holds the events, the registry and the snapshot.
    params : ServiceParams, optional
        By default those that the folder keeps.
    now : callable
        Returns seconds since 1970.
    keep : bool
        Whether the folder keeps the settings.

    Raises
    ------
    UserError
        The registry has no champion, the folder is in use, or the settings that it keeps are
        damaged.
    """

    def __init__(
        self,
        folder: Path,
        params: ServiceParams | None = None,
        *,
        now: Callable[[], float] = time.time,
        keep: bool = True,
    ) -> None:
        # position in the common log up to which all is here
        self._read = 0
        # of decisions whose window is open; others are looked up
        self._bodies: dict[str, Mapping[str, Any]] = {}
        super().__init__(folder, params, now=now, keep=keep)

    def _open_log(self) -> Log:
        self.store = EventLog(self.folder / "log")
        return self.store

    def _packed(self, about: Mapping[str, Any]) -> bytes:
        return super()._packed({**about, "source": self._read})

    def _unpacked(self, data: bytes, *, seed: int | None = None) -> Any:
        about = super()._unpacked(data, seed=seed)
        # a service of one machine may have stored it
        self._read = about.get("source", 0) if about else 0
        return about

    def _again(self, event: Event) -> None:
        self._read = event.body.get("source", self._read)
        super()._again(event)

    def _decided(self, answer: Answer, now: float, number: int, body: Mapping[str, Any], /) -> None:
        self._bodies[answer.event_id] = body
        super()._decided(answer, now, number, body)

    def _settled(self, event_id: str, reward: float | None) -> None:
        super()._settled(event_id, reward)
        self._bodies.pop(event_id, None)

    def _choose_again(self, _: Mapping[str, Any], /) -> int:
        # another process chose, and `_learn` reads what from the log
        return 0

    def _learn(self, policy: Policy, event_id: str, opened: _Open, reward: float) -> bool:
        body = self._bodies.get(event_id)
        if body is None:
            body = next(e.body for e in self.log.find(event_id) if e.kind == "decision")
        try:
            policy.learn(body["context"], opened.item, reward, body["candidates"])
        except UserError as error:
            self.report(str(error))
            return False
        return True


class Learner(Learned):
    """The process that learns: it moves the events of the common log to its folder, and publishes
    what it knows.

    Parameters
    ----------
    folder : Path
        Holds the events, the registry and the snapshot.
    url : str
        Of the log; see `RedisLog`.
    params : ServiceParams, optional
        Those that decide take them over; by default those that the folder keeps.

    Raises
    ------
    UserError
        The registry has no champion, the folder or the log has another learner, or the settings
        that it keeps are damaged.
    """

    def __init__(self, folder: Path, url: str, params: ServiceParams | None = None) -> None:
        # positions up to which the server was read, and of the event in hand
        self._at = self._source = 0
        self._clock = time.time()
        self._judged = self._shown = 0.0
        self._changed = True
        # events that the monitors had not read, as they were published
        self._told: int | None = None
        # start of the server that is read; position up to which events may be in the folder already
        self._start, self._doubtful = "", 0
        params = params or stored(folder)
        self._stream = RedisLog(url, keep=_kept(params))
        super().__init__(folder, params, now=lambda: self._clock)
        try:
            self._stream.claim(_name(folder), self._read)
            if not self._stream.same_users(fingerprint(folder)):
                raise UserError(
                    f"{folder / 'user.key'} is not the key of the other processes: copy theirs"
                )
        except BaseException:
            super().close()
            raise
        self._publish()

    def work(self) -> int:
        """Learn what waits, do what is due, and publish a head; return how many events."""
        # a disk that refuses may not take more than waits already
        self._store()
        self._look()
        n = 0
        for event in self._stream.events(self._at):
            if event.position > self._doubtful or not self._holds(event):
                self._consume(event)
            self._at = self._read = event.position
            n += 1
            if n == _GROUP:
                break
        if n:
            # stored here before it is removed there
            self._store()
            self._stream.remove(self._at, self._start)
            self._changed = True
        else:
            # not before: a window closes after the rewards that came within it
            self._clock = time.time()
        before, now = self._stage(), time.monotonic()
        try:
            self.tick()
            if now - self._judged > _JUDGE:
                self._judged = now
                self.judge()
        except (UserError, OSError) as error:
            # the versions that serve go on
            self.report(str(error))
        # the monitors read on beside this
        self._changed |= before != self._stage() or self._told != self.unread
        if self._changed and now - self._shown > HEAD:
            self._publish()
        return n

    def _stage(self) -> tuple[Any, ...]:
        """Return what those that decide learn at once where it changes."""
        return self.aliases, self.rollout.step, sum(self.alarmed.values())

    def close(self) -> None:
        """Store the state, publish it, and give folder and log free."""
        with suppress(UserError):
            self._publish()
        super().close()
        self._stream.close()

    def _publish(self, problem: str = "") -> None:
        unread = self.unread
        self._stream.publish(
            self._packed(
                {
                    "published": time.time(),
                    "registered": self.registry.newest(),
                    "step": self.rollout.step,
                    "params": self.params.model_dump(mode="json"),
                    "learned": self.counts["learned"],
                    "alarms": list(self.alarms),
                    "alarmed": self.alarmed,
                    "unread": unread,
                    "problem": problem,
                }
            )
        )
        self._told = unread
        self._changed, self._shown = False, time.monotonic()

    def _consume(self, event: Event) -> None:
        self._clock = event.time
        self._source = event.position
        try:
            if event.kind == "decision":
                self._log("decision", event.event_id, event.body, user=event.user, time=event.time)
                self._again(event._replace(position=self._position))
            else:
                self._take_reward(event)
        finally:
            self._source = 0

    def _store(self) -> None:
        """Commit what was consumed."""
        if not self.store.flush():
            problem = f"the learner cannot store its events: {self.store.health().problem}"
            if time.monotonic() - self._shown > HEAD:
                # those that decide state it in their /health
                self._publish(problem)
            # also where nothing else changes until it can
            self._changed = True
            raise LogAwayError(problem)

    def _look(self) -> None:
        """Read from the beginning where the server was started again.

        It may have lost its latest events and given their positions to others.
        """
        start, end = self._stream.started()
        if start != self._start or end < self._at:
            self._start, self._doubtful, self._at = start, end, 0

    def _holds(self, event: Event) -> bool:
        """Return whether an event is in the folder."""
        return any(
            (found.kind, found.time) == (event.kind, event.time)
            for found in self.log.find(event.event_id)
        )

    def _take_reward(self, event: Event) -> None:
        try:
            reward_id = event.body.get("reward_id")
            self.reward(event.event_id, event.body["reward"], reward_id=reward_id)
        except UserError as error:
            # another version may allow other rewards; it is logged, not learned
            self.report(str(error))
            body = {**event.body, "learned": False}
            self._log("reward", event.event_id, body, time=event.time)

    def _log(self, kind: str, event_id: str, body: Mapping[str, Any], **about: Any) -> None:
        # windows that end before a reward are not what was read
        if self._source and kind in ("decision", "reward"):
            body = {**body, "source": self._source}
        super()._log(kind, event_id, body, **about)


def opened(folder: Path, *, erase: bool = False) -> Service:
    """Open the folder of a service or of a learner, with the settings that it was served with, to
    work on what it holds.

    Parameters
    ----------
    folder : Path
    erase : bool
        Whether a user is to be erased: damaged settings do not prevent it. The defaults are taken,
        `Service.problem` states it, and the file stays as it is.

    Raises
    ------
    UserError
        The registry has no champion, the folder is in use, or its settings are damaged.
    """
    problem = ""
    try:
        params = stored(folder)
    except UserError as error:
        if not erase:
            raise
        params, problem = ServiceParams(), f"{error}; the defaults are taken"
    service = (Learned if learns(folder) else Service)(folder, params, keep=not problem)
    if problem:
        service.report(problem)
    return service


def learn(learner: Learner, report: Callable[[str], None]) -> NoReturn:
    """Learn until the process is interrupted.

    Parameters
    ----------
    learner : Learner
    report : callable
        Receives a sentence where the log is away, where it is back, and what else goes wrong.
    """
    away, stated = False, ""
    while True:
        try:
            n = learner.work()
        except LogAwayError as error:
            if not away:
                report(str(error))
            away = True
            time.sleep(_AWAY)
            continue
        if away:
            report("the log answers again")
        away = False
        if (problem := learner.problem) != stated:
            stated = problem
            if problem:
                report(problem)
        if not n:
            time.sleep(_PAUSE)


def _not_understood(error: Exception) -> str:
    """State what a process does not know of the learner's head."""
    what = f"{type(error).__name__}: {error}"
    if isinstance(error, ValidationError):
        what = refusal(error, ServiceParams, "its settings")
    elif isinstance(error, UserError):
        what = str(error)
    return (
        f"this process ({__version__}) does not understand the newest head of the learner and must "
        f"be updated: {what}"
    )


def _kept(params: ServiceParams) -> float:
    """Seconds for which a decision can be found: some longer than its reward counts."""
    return 1.1 * params.reward_window + 60


def _name(folder: Path) -> str:
    """Return the name of a learner, made at its first start."""
    path = folder / LEARNER
    with suppress(FileExistsError), path.open("x") as file:
        file.write(uuid.uuid4().hex)
    return path.read_text()
