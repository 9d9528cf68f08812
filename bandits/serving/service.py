"""A service that decides with a policy and learns from rewards: one writer, no network in it.

Every change of its state is an event of the log, so that a snapshot and the events behind it give
the state there was. `http` puts it behind addresses.
"""

from __future__ import annotations

import json
import random
import sqlite3
import threading
import time
import uuid
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bandits.base.errors import UserError
from bandits.base.files import atomic_write, pack, seal, unpack, unseal
from bandits.policy.policy import REMEMBERED, Policy
from bandits.policy.schema import as_mapping, is_missing

from .alarms import BEHIND, WATCHED, Seen, Watcher
from .event_log import Event, EventLog, Log
from .registry import Aliases, Registry
from .rollout import Rollout, Verdict
from .settings import ServiceParams, store, stored

_SNAPSHOT = "snapshot"
# name of the learner whose folder it is, where one is
LEARNER = Path("log", "learner")
# answers that are repeated without a look into the log
_REMEMBERED = 10_000
_SLOW = 5
# seconds between two looks of the monitors, and alarms that are remembered
_LOOK, _ALARMS = 2.0, 10
# seconds for which a problem is stated
_SHOWN = 60.0
ARMS = ("champion", "challenger", "fallback")
COUNTED = ("rewards", "learned", "late", "duplicates", "shadow", "shadow_agrees")


class UnknownDecisionError(UserError):
    """There was no decision with this event id."""


class Answer(NamedTuple):
    """A decision, as the client gets it."""

    event_id: str
    item: str | int
    propensity: float
    version: int
    arm: str
    explored: bool


class _Open(NamedTuple):
    """A decision whose reward window is open."""

    time: float
    arm: str
    version: int
    number: int
    item: str | int
    share: float


class Service:
    """Decide, and learn.

    Parameters
    ----------
    folder : Path
        Holds the log, the registry and the snapshot.
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
        self.folder, self.params, self._now = folder, params or stored(folder), now
        self._keep = keep
        self.aliases = self._first_aliases()
        self.counts = dict.fromkeys((*ARMS, *COUNTED), 0)
        self.seconds: deque[float] = deque(maxlen=10_000)
        self._problem, self._problem_at = "", 0.0
        self._answers: OrderedDict[str, Answer] = OrderedDict()
        self._open: OrderedDict[str, _Open] = OrderedDict()
        self._sums: dict[str, float] = {}
        self._totals: dict[str | int, tuple[float, int]] = {}
        self._policies: dict[int, Policy] = {}
        self.rollout = Rollout(self.params.rollout)
        # of the rollout in progress
        self.verdict: Verdict | None = None
        self._slow, self._paused_until = 0, 0.0
        self._random = random.Random(0)
        # of the monitors, the latest last
        self.alarms: deque[Seen] = deque(maxlen=_ALARMS)
        self.alarmed = dict.fromkeys(WATCHED, 0)
        self._found: list[Seen] = []
        self._looking, self._looked = threading.Thread(), 0.0
        # day before which all is in files
        self._rotated, self._moving = date.min, threading.Thread()
        # time before which a day that could not be moved is left alone
        self._move_at = 0.0
        self._position = self._updates = 0
        self.log: Log = self._open_log()
        try:
            self._recover()
        except BaseException:
            self.log.close()
            raise
        self._watcher = self._watched()
        self._stored = self._now()

    @property
    def problem(self) -> str:
        """What went wrong in the last minute; empty: nothing."""
        return self._problem if self._now() - self._problem_at < _SHOWN else ""

    @property
    def age(self) -> float:
        """Seconds since the newest version was registered."""
        return self._now() - self.registry.newest()

    def problems(self) -> list[str]:
        """State all that is wrong."""
        log, limit = self.log.health(), self.params.max_age
        found = [text for text in dict.fromkeys((self.problem, log.problem)) if text]
        if log.dropped:
            found.append(f"{log.dropped:,} events could not be logged")
        if limit is not None and (age := self.age) > limit:
            found.append(
                f"the newest version is {age:.0f} s old, and {limit:.0f} s are allowed: the "
                "trainer may be dead"
            )
        return found

    @property
    def unread(self) -> int | None:
        """Events that the monitors have not read yet; None: it has no monitors."""
        if self._watcher is None:
            return None
        return max(0, self._position - self._watcher.position)

    def noticed(self) -> list[str]:
        """State what the monitors found, the latest first, and where they fall behind."""
        found = [alarm.text() for alarm in reversed(self.alarms)]
        if (unread := self.unread or 0) > BEHIND:
            found.insert(0, f"the monitors are {unread:,} events behind the log")
        return found

    def report(self, problem: str) -> None:
        """Let `problem` state this for a minute."""
        self._problem, self._problem_at = problem, self._now()

    def warm_up(self) -> None:
        """Compile what the policies need, so that no request waits for it."""
        for number, policy in self._policies.items():
            try:
                policy.warm_up()
            except Exception as error:  # noqa: BLE001
                # a service starts whatever its model does; the fallback decides then
                self.report(f"version {number}: {type(error).__name__}: {error}")

    # deciding

    def decide(
        self,
        context: Any = None,
        candidates: Sequence[str | int] | None = None,
        *,
        event_id: str | None = None,
        user: str = "",
    ) -> Answer:
        """Choose an item; the same event id gets the same answer.

        Raises
        ------
        UserError
            The context or a candidate does not fit the policy.
        """
        if event_id is not None and (known := self._known(event_id)):
            self.counts["duplicates"] += 1
            return known
        event_id = event_id or uuid.uuid4().hex
        asked = _asked(context, candidates)
        self.settle()
        share = self.rollout.share if self.aliases.challenger is not None else 0.0
        mine = share > 0 and self.rollout.assigned(user or event_id)
        arm, version = ("challenger", self.aliases.challenger) if mine else self._champion()
        assert version is not None
        number, served = -1, None
        start = time.perf_counter()
        try:
            if self._now() < self._paused_until:
                raise _TooSlowError
            choice = self._policies[version].choose(context, candidates)
        except UserError as error:
            if "diverged" not in str(error):
                raise
            item, propensity, explored, arm = *self._fallback(candidates), "fallback"
            self.report(f"version {version}: {error}")
            served = (0.0, True)
        except Exception as error:  # noqa: BLE001
            # a service answers whatever its model does; the reason is counted and shown
            item, propensity, explored, arm = *self._fallback(candidates), "fallback"
            if not isinstance(error, _TooSlowError):
                self.report(f"version {version}: {type(error).__name__}: {error}")
                served = (0.0, True)
        else:
            item, propensity, explored = choice.item, choice.propensity, choice.explored
            number = choice.id
            seconds = time.perf_counter() - start
            self._watch(seconds)
            served = (round(seconds, 6), False)
        self.seconds.append(time.perf_counter() - start)
        answer = Answer(event_id, item, propensity, version, arm, explored)
        now = self._now()
        body = {
            **answer._asdict(),
            "number": number,
            "share": share,
            **asked,
        }
        del body["event_id"]
        if mine and served:
            body["served"] = served
        self._log("decision", event_id, body, user=user, time=now)
        self._decided(answer, now, number, body)
        self._shadow(answer, context, candidates)
        return answer

    def reward(self, event_id: str, reward: float, *, reward_id: str | None = None) -> bool:
        """Take a reward; return whether it is learned, now or at the end of its window. One with
        the id of an earlier one of its decision is that one, sent again.

        Raises
        ------
        UserError
            The decision is unknown, or the policy cannot learn such a reward.
        """
        self.settle()
        if reward_id is not None and (known := rewarded(self.log.find(event_id), reward_id)):
            self.counts["duplicates"] += 1
            return bool(known.body["learned"])
        opened = self._open.get(event_id)
        if opened is None and not self.log.find(event_id):
            raise UnknownDecisionError(f"event_id: there was no decision {event_id[:80]!r}")
        # a version that has left may have decided last
        policy = self._policies.get(opened.version) if opened else None
        if policy is not None:
            policy.check_reward(reward)
        elif not np.isfinite(reward):
            raise UserError(f"the reward is {reward}; it must be a finite number")
        learned = opened is not None
        body = {"reward": reward, "learned": learned, **named(reward_id)}
        self._log("reward", event_id, body, time=self._now())
        self._rewarded(event_id, reward, learned)
        return learned

    def settle(self) -> None:
        """Close the windows that have ended: learn sums and default rewards."""
        end = self._now() - self.params.reward_window
        while self._open:
            event_id, opened = next(iter(self._open.items()))
            if opened.time > end and len(self._open) <= REMEMBERED:
                return
            reward = self._sums.get(event_id, self.params.default_reward)
            self._log("settled", event_id, {"reward": reward}, time=self._now())
            self._settled(event_id, reward)

    # versions

    def refresh(self) -> bool:
        """Take over the aliases of the registry, where they changed; return whether they did."""
        aliases = self.registry.aliases()
        if aliases == self.aliases or aliases.champion is None:
            return False
        self._load(aliases)
        self._log("versions", "", {"aliases": aliases})
        self._take(aliases)
        return True

    def judge(self) -> str:
        """Ask the gate of the rollout, and do what it decides; return its sentence."""
        challenger = self.aliases.challenger
        if challenger is None:
            return "no challenger is rolled out"
        verdict = self.verdict = self.rollout.verdict()
        if verdict.action == "advance":
            self._log("step", "", {"step": self.rollout.step + 1})
            self.rollout.advance()
        elif verdict.action == "promote":
            self.registry.promote(challenger)
            self.refresh()
        elif verdict.action == "roll back":
            self.registry.point("challenger", None)
            self.refresh()
        if verdict.action in ("advance", "promote", "roll back"):
            self._log("verdict", "", {"action": verdict.action, "why": verdict.sentence})
        return f"{verdict.action}: {verdict.sentence}"

    def explain(self, event_id: str) -> dict[str, Any]:
        """Return what the log holds of a decision, and the scores that its policy would give now.

        Raises
        ------
        UnknownDecisionError
            The decision is unknown.
        """
        events = self.log.find(event_id)
        if not events:
            raise UnknownDecisionError(f"event_id: there was no decision {event_id[:80]!r}")
        body = dict(events[0].body)
        rewards = [event.body["reward"] for event in events if event.kind == "reward"]
        found: dict[str, Any] = {"decision": body, "rewards": rewards}
        if body["version"] in self._policies and body["arm"] != "fallback":
            # a copy: asking must change nothing
            copy = Policy.from_bytes(self._policies[body["version"]].to_bytes())
            scores = copy.choose(body["context"], body["candidates"], scores=True).scores or {}
            # an item that was never shown may have an infinite one
            found["scores_now"] = {
                str(item): score if np.isfinite(score) else None for item, score in scores.items()
            }
        return found

    # state

    def snapshot(self) -> None:
        """Store the state, with the position of the log that it holds."""
        self.store.flush()
        data = self._packed(
            {
                "position": self._position,
                "rollout": self.rollout.to_data(),
                "open": [[name, *opened] for name, opened in self._open.items()],
                "sums": self._sums,
                "alarms": list(self.alarms),
                "alarmed": self.alarmed,
            }
        )
        with suppress(OSError):
            atomic_write(self.folder / _SNAPSHOT, data)
        self._stored, self._updates = self._now(), 0

    def _packed(self, about: Mapping[str, Any]) -> bytes:
        """Return the policies that serve, the means of the items, and what else is given."""
        about = {
            **about,
            "aliases": self.aliases,
            "totals": [[item, *total] for item, total in self._totals.items()],
        }
        arrays: dict[str, Any] = {"about": np.array(json.dumps(about))}
        for number, policy in self._policies.items():
            arrays[f"policy.{number}"] = np.frombuffer(policy.to_bytes(), np.uint8)
        return seal(_SNAPSHOT, pack(arrays, compressed=False))

    def _unpacked(self, data: bytes, *, seed: int | None = None) -> Any:
        """Take over what `_packed` returned, and return what was given to it; None: damaged."""
        body = unseal(_SNAPSHOT, data)
        if body is None:
            return None
        arrays = unpack(body, compressed=False)
        about = self._about(str(arrays["about"]))
        policies = {
            int(name.removeprefix("policy.")): Policy.from_bytes(array.tobytes(), seed=seed)
            for name, array in arrays.items()
            if name.startswith("policy.")
        }
        aliases = Aliases(*about["aliases"])
        totals = {item: (total, n) for item, total, n in about["totals"]}
        # not before: what cannot be read changes nothing
        self.aliases, self._policies, self._totals = aliases, policies, totals
        return about

    def _about(self, text: str) -> Any:
        return json.loads(text)

    def forget(self, user: str) -> int:
        """Erase a user, as `EventLog.forget` does, and their open decisions; return how many
        events.
        """
        mine = {event.event_id for event in self.log.events() if event.user == user}
        for event_id in mine:
            self._open.pop(event_id, None)
            self._answers.pop(event_id, None)
            self._sums.pop(event_id, None)
        self.snapshot()
        return self.store.forget(user)

    def tick(self) -> None:
        """Do what is due: close windows, take over versions and alarms, store the state, move
        earlier days.
        """
        self.settle()
        self.refresh()
        self._rotate()
        self._monitor()
        params = self.params
        if self._updates >= params.snapshot_updates or (
            self._updates and self._now() - self._stored >= params.snapshot_seconds
        ):
            self.snapshot()

    def close(self) -> None:
        """Store the state and give the folder free."""
        for beside in (self._moving, self._looking):
            if beside.is_alive():
                beside.join()
        self._take_alarms()
        self.snapshot()
        self.log.close()

    def _watched(self) -> Watcher | None:
        return Watcher(self.folder, self.params, self._position)

    def _monitor(self) -> None:
        """Take over what the monitors found, and let them read on beside what is served."""
        if self._watcher is None or self._looking.is_alive():
            return
        self._take_alarms()
        if time.monotonic() - self._looked > _LOOK:
            self._looked = time.monotonic()
            champion = self._policies.get(self.aliases.champion or 0)
            self._watcher.know(None if champion is None else champion.schema)
            asked = (self._watcher, *self._rolled_out())
            self._looking = threading.Thread(target=self._read_on, args=asked, daemon=True)
            self._looking.start()

    def _read_on(self, watcher: Watcher, challenger: int | None, share: float) -> None:
        try:
            for alarm in watcher.look(challenger, share):
                self._found.append(alarm)
        except UserError as error:
            self.report(f"the monitors cannot read the log: {error}")
        except Exception as error:  # noqa: BLE001
            # the next look goes on behind what a monitor cannot read; what was found stays
            self.report(f"a monitor of the log failed: {type(error).__name__}: {error}")

    def _take_alarms(self) -> None:
        """Log what the monitors found, and do what it does to the state."""
        found, self._found = self._found, []
        for alarm in found:
            self._log("alarm", "", alarm._asdict(), time=alarm.time)
            self._alarmed(alarm)

    def _rolled_out(self) -> tuple[int | None, float]:
        """Return the challenger and its share."""
        challenger = self.aliases.challenger
        return challenger, 0.0 if challenger is None else self.rollout.share

    def _rotate(self) -> None:
        """Move the days to files whose reward windows have ended, beside what is served."""
        day = datetime.fromtimestamp(self._now() - self.params.reward_window, UTC).date()
        due = day > self._rotated and self._now() >= self._move_at
        if due and not self._moving.is_alive():
            self._moving = threading.Thread(target=self._move, args=(day,), daemon=True)
            self._moving.start()

    def _move(self, day: date) -> None:
        try:
            self.store.rotate(day)
        except (UserError, OSError, sqlite3.Error) as error:
            self._move_at = self._now() + _SHOWN
            self.report(f"the events of earlier days cannot be moved: {error}")
        else:
            self._rotated = day

    # what events do to the state: the same live and in `_recover`

    def _decided(self, answer: Answer, now: float, number: int, body: Mapping[str, Any], /) -> None:
        self._answered(answer)
        self._open[answer.event_id] = _Open(
            now, answer.arm, answer.version, number, answer.item, body["share"]
        )
        if body["share"] and answer.arm != "fallback":
            self.rollout.shown(answer.item, challenger=answer.arm == "challenger")
        if "served" in body:
            seconds, failed = body["served"]
            self.rollout.served(seconds, failed=failed)

    def _alarmed(self, alarm: Seen) -> None:
        self.alarms.append(alarm)
        self.alarmed[alarm.monitor] += 1
        if alarm.version is not None and (alarm.version, alarm.share) == self._rolled_out():
            self.rollout.alarmed(alarm.sentence)

    def _answered(self, answer: Answer) -> None:
        self.counts[answer.arm] += 1
        self._answers[answer.event_id] = answer
        if len(self._answers) > _REMEMBERED:
            self._answers.popitem(last=False)

    def _shadow(self, answer: Answer, context: Any, candidates: Any) -> None:
        """Let the shadow choose too; its choice is only compared."""
        if self.aliases.shadow is None:
            return
        self.counts["shadow"] += 1
        try:
            choice = self._policies[self.aliases.shadow].choose(context, candidates)
        except Exception as error:  # noqa: BLE001
            # a shadow may not harm what is served; its agreement shows that it fails
            self.report(f"version {self.aliases.shadow}: {type(error).__name__}: {error}")
        else:
            self.counts["shadow_agrees"] += choice.item == answer.item

    def _rewarded(self, event_id: str, reward: float, learned: bool) -> None:
        self.counts["rewards"] += 1
        if not learned:
            self.counts["late"] += 1
        elif self.params.several == "sum":
            self._sums[event_id] = self._sums.get(event_id, 0.0) + reward
        else:
            self._settled(event_id, reward)

    def _settled(self, event_id: str, reward: float | None) -> None:
        opened = self._open.pop(event_id)
        self._sums.pop(event_id, None)
        if reward is None:
            return
        total, n = self._totals.get(opened.item, (0.0, 0))
        self._totals[opened.item] = (total + reward, n + 1)
        if opened.share and opened.arm != "fallback" and self.aliases.challenger is not None:
            self.rollout.observe(reward, challenger=opened.arm == "challenger", share=opened.share)
        policy = self._policies.get(opened.version)
        if policy is not None and opened.number >= 0:
            self.counts["learned"] += self._learn(policy, event_id, opened, reward)
            self._updates += 1

    def _learn(self, policy: Policy, event_id: str, opened: _Open, reward: float) -> bool:  # noqa: ARG002
        return policy.update(opened.number, reward)

    def _take(self, aliases: Aliases) -> None:
        if aliases.challenger != self.aliases.challenger:
            self.rollout, self.verdict = Rollout(self.params.rollout), None
        self.aliases = aliases
        used = {number for number in aliases if number is not None}
        used |= {opened.version for opened in self._open.values()}
        for number in self._policies.keys() - used:
            del self._policies[number]
        self._slow, self._paused_until, self._problem = 0, 0.0, ""

    def _recover(self) -> None:
        """Load the snapshot, and do again what the log holds behind it."""
        if self._keep:
            store(self.folder, self.params)
        after = 0
        path = self.folder / _SNAPSHOT
        about = self._unpacked(path.read_bytes()) if path.exists() else None
        if about is not None:
            self.rollout = Rollout.from_data(self.params.rollout, about["rollout"])
            self._open = OrderedDict((name, _Open(*rest)) for name, *rest in about["open"])
            self._sums, self.alarmed = about["sums"], about["alarmed"]
            self.alarms.extend(Seen(*alarm) for alarm in about["alarms"])
            after = about["position"]
        else:
            first = next((e for e in self.log.events() if e.kind == "versions"), None)
            if first is not None:
                self.aliases = Aliases(*first.body["aliases"])
            else:
                self._log("versions", "", {"aliases": self.aliases})
            self._load(self.aliases)
        self.store.flush()
        for event in self.log.events(after):
            self._again(event)
        try:
            self.refresh()
        except UserError as error:
            # the versions that served go on, as they did before the restart
            self.report(str(error))

    def _again(self, event: Event) -> None:
        body = event.body
        self._position = event.position
        if event.kind == "decision":
            number = self._choose_again(body) if body["number"] >= 0 else -1
            answer = answer_of(event)
            self._decided(answer, event.time, number, body)
            self._shadow(answer, body["context"], body["candidates"])
        elif event.kind == "reward":
            self._rewarded(event.event_id, body["reward"], body["learned"])
        elif event.kind == "settled":
            if event.event_id in self._open:
                self._settled(event.event_id, body["reward"])
        elif event.kind == "step":
            self.rollout.advance()
        elif event.kind == "alarm":
            self._alarmed(Seen(**body))
        elif event.kind == "versions":
            aliases = Aliases(*body["aliases"])
            self._load(aliases)
            self._take(aliases)

    def _choose_again(self, logged: Mapping[str, Any], /) -> int:
        # another number than it had where a user before it was forgotten
        policy = self._policies[logged["version"]]
        return policy.choose(logged["context"], logged["candidates"]).id

    # parts

    def _first_aliases(self) -> Aliases:
        self.registry = Registry(self.folder / "registry")
        aliases = self.registry.aliases()
        if aliases.champion is None:
            raise UserError("the registry has no champion; register a policy and promote it first")
        return aliases

    def _open_log(self) -> Log:
        if learns(self.folder):
            raise UserError(f"{self.folder} is the folder of a learner: give --log to serve")
        self.store = EventLog(self.folder / "log")
        return self.store

    def _log(self, kind: str, event_id: str, body: Mapping[str, Any], **about: Any) -> None:
        self._position = self.log.append(kind, event_id, body, **{"time": self._now(), **about})

    def _load(self, aliases: Aliases) -> None:
        for number in (aliases.champion, aliases.challenger, aliases.shadow):
            if number is not None and number not in self._policies:
                policy = Policy.from_bytes(self.registry.version(number).policy)
                if policy.propensity == "monte_carlo" and not policy.redraws:
                    raise UserError(
                        f"version {number} states no propensities: its policy needs redraws"
                    )
                self._policies[number] = policy

    def _champion(self) -> tuple[str, int | None]:
        return "champion", self.aliases.champion

    def _known(self, event_id: str) -> Answer | None:
        if event_id in self._answers:
            return self._answers[event_id]
        for event in self.log.find(event_id):
            if event.kind == "decision":
                return answer_of(event)
        return None

    def _fallback(self, candidates: Sequence[str | int] | None) -> tuple[str | int, float, bool]:
        """Choose without a policy: an item, its propensity, not explored."""
        champion = self._policies[self.aliases.champion]  # type: ignore[index]
        names = [n for n in champion.items.names if n not in champion.items.withdrawn]
        among = names if candidates is None else list(candidates)
        if self.params.fallback == "random":
            return self._random.choice(among), 1 / len(among), False
        # one reward of 1/2 in advance, so that a single click makes no item the best
        means = {item: self._totals.get(item, (0.0, 0)) for item in among}
        return max(among, key=lambda i: (means[i][0] + 0.5) / (means[i][1] + 1)), 1.0, False

    def _watch(self, seconds: float) -> None:
        """Pause the policies after several slow decisions in a row."""
        self._slow = self._slow + 1 if seconds > self.params.budget else 0
        if self._slow >= _SLOW:
            self._slow, self._paused_until = 0, self._now() + self.params.pause
            self.report(
                f"{_SLOW} decisions in a row took longer than {1_000 * self.params.budget:.3g} ms"
            )


def learns(folder: Path) -> bool:
    """Return whether a folder is that of a learner."""
    return (folder / LEARNER).exists()


def answer_of(event: Event) -> Answer:
    """Return the answer that a decision of the log gave."""
    return Answer(event.event_id, *(event.body[name] for name in Answer._fields[1:]))


def rewarded(events: Sequence[Event], reward_id: str) -> Event | None:
    """Return the reward with an id among the events of a decision."""
    rewards = (event for event in events if event.kind == "reward")
    return next((event for event in rewards if event.body.get("reward_id") == reward_id), None)


def named(reward_id: str | None) -> dict[str, str]:
    """Return the id of a reward as the body of its event holds it."""
    return {} if reward_id is None else {"reward_id": reward_id}


class _TooSlowError(Exception):
    """The policies are paused."""


def _asked(context: Any, candidates: Sequence[str | int] | None) -> dict[str, Any]:
    """Return what is asked as the log holds it, before a policy draws a number for it."""
    asked = {
        "context": _plain(context),
        "candidates": None if candidates is None else list(candidates),
    }
    try:
        json.dumps(asked, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise UserError(f"the context and the candidates cannot be logged: {error}") from None
    return asked


def _plain(context: Any) -> Any:
    """Return a context as JSON can hold it; what is unknown is None."""
    if (named := as_mapping(context)) is not None:
        return {str(name): _plain(value) for name, value in named.items()}
    if isinstance(context, np.ndarray | np.generic):
        return _plain(context.tolist())
    if isinstance(context, list | tuple):
        return [_plain(value) for value in context]
    return None if is_missing(context) else context
