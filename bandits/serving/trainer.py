"""The trainer of a service: rebuild the champion's agent from the log, validate it on the latest
decisions, and register it as a version.

The service may run meanwhile: its log is read without a lock.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bandits import __version__
from bandits.base.errors import UserError
from bandits.base.types import FloatArray
from bandits.offpolicy.estimators import REGISTRY as ESTIMATORS
from bandits.offpolicy.estimators import Rounds
from bandits.offpolicy.evaluation import Evaluation, evaluate, given
from bandits.offpolicy.intervals import Interval, normal
from bandits.offpolicy.log import DecisionLog
from bandits.offpolicy.regression import FOLDS, cross_fit, read_model
from bandits.offpolicy.targets import Matrix
from bandits.policy import Policy
from bandits.policy.items import Name

from .decisions import Decision, join, log_of
from .event_log import read_events, rewards_behind
from .registry import Registry
from .settings import ServiceParams, stored

DECISIONS = 100_000
# of which the latest fifth validates
MIN_DECISIONS = 100
# events of a decision: itself, its reward, the end of its window, and some more rewards
_EVENTS = 5
# decisions times items that are validated
_CELLS = 20_000_000
USED = ("snips", "dr")
# seconds between two looks at the log
_PAUSE = 0.25


class Validation(NamedTuple):
    """What the latest decisions state about a new policy and the champion.

    Attributes
    ----------
    new, champion : Evaluation
    difference : mapping of str to Interval
        New minus champion, by estimator, paired by decision.
    """

    new: Evaluation
    champion: Evaluation
    difference: Mapping[str, Interval]

    @property
    def is_worse(self) -> bool:
        """Whether all estimators find the new policy worse."""
        return all(interval.high < 0 for interval in self.difference.values())

    def as_dict(self) -> dict[str, Any]:
        """Return the figures as JSON can hold them; numbers that are not finite are None."""
        return {
            "decisions": self.new.n,
            "logged": self.new.logged,
            "new": _figures(self.new),
            "champion": _figures(self.champion),
            "difference": {name: _finite(found) for name, found in self.difference.items()},
        }


class Trained(NamedTuple):
    """A version that was trained.

    Attributes
    ----------
    number : int
        In the registry.
    champion : int
    decisions : int
        From which it learned.
    validation : Validation
    """

    number: int
    champion: int
    decisions: int
    validation: Validation


def train(
    folder: Path, params: ServiceParams | None = None, *, decisions: int = DECISIONS
) -> Trained:
    """Train a version on the log of a service, and register it.

    The champion's agent begins anew and learns the decisions in their order. It is validated as it
    is after four fifths of them, on decisions that it has not seen; what is registered has learned
    all.

    Parameters
    ----------
    folder : Path
        Of the service, which may run.
    params : ServiceParams, optional
        How the service counts rewards; by default as it was served last.
    decisions : int
        How many of the latest decisions with a reward are taken, at least 100.

    Raises
    ------
    UserError
        There is no champion or no log, or too few decisions have a reward.
    """
    if decisions < MIN_DECISIONS:
        raise UserError(f"events: must be at least {MIN_DECISIONS}; got {decisions}")
    if not (folder / "log").is_dir():
        raise UserError(f"{folder}: there is no event log")
    registry = Registry(folder / "registry")
    number = registry.aliases().champion
    if number is None:
        raise UserError("the registry has no champion; register a policy and promote it first")
    champion = Policy.from_bytes(registry.version(number).policy)
    found = rewarded(folder, params or stored(folder), decisions)
    if champion.schema is None and found:
        # the first context states the columns
        champion.probabilities(found[0].body["context"])
    names = set(champion.items.names)
    taken = [decision for decision in found if _fits(champion, names, decision)]
    if len(taken) < MIN_DECISIONS:
        raise UserError(
            f"the log has {len(taken):,} decisions with a reward from which the champion's agent "
            f"can learn; training needs at least {MIN_DECISIONS}"
        )
    new = champion.untrained()
    held_out = len(taken) - len(taken) // 5
    _learn(new, taken[:held_out])
    validation = validate(new, champion, taken[held_out:])
    _learn(new, taken[held_out:])
    card = {
        "agent": new.params.model_dump(mode="json"),
        "trained_from": number,
        "data": {
            "decisions": len(taken),
            "left_out": len(found) - len(taken),
            "first": _date(taken[0].time),
            "last": _date(taken[-1].time),
            "sha256": _hash(taken),
        },
        "validation": validation.as_dict(),
        "code": __version__,
    }
    return Trained(registry.register(new.to_bytes(), card), number, len(taken), validation)


def challenge(folder: Path, found: Trained) -> str:
    """Roll a trained version out beside the champion, unless it is worse for sure or another is
    rolled out; return a sentence.
    """
    registry = Registry(folder / "registry")
    if found.validation.is_worse:
        return "not rolled out: it is worse than the champion for sure"
    if (other := registry.aliases().challenger) is not None:
        return f"not rolled out: version {other} is rolled out now"
    registry.point("challenger", found.number)
    return f"version {found.number} is the challenger"


def follow(
    folder: Path,
    params: ServiceParams | None = None,
    *,
    decisions: int = DECISIONS,
    every: int | None = None,
    seconds: float | None = None,
    report: Callable[[Trained | str], None],
    go_on: Callable[[], bool] = lambda: True,
) -> None:
    """Train again and again, until the process is interrupted.

    Parameters
    ----------
    folder, params, decisions
        As in `train`.
    every : int, optional
        Train when so many rewards have come since the last time.
    seconds : float, optional
        Train when so much time has passed since the last time, and at least one reward has come.
    report : callable
        Receives each version, or the sentence that states why there is none.
    go_on : callable
        Asked before each look at the log.

    Raises
    ------
    UserError
        Neither ``every`` nor ``seconds`` is given, or one is not above 0.
    """
    if every is None and seconds is None:
        raise UserError(
            "the trainer needs a number of rewards (--every), seconds (--seconds), or both"
        )
    for name, value in (("every", every), ("seconds", seconds)):
        if value is not None and not value > 0:
            raise UserError(f"{name}: must be above 0; got {value}")
    position, begun = 0, time.monotonic()
    while go_on():
        n, last = rewards_behind(folder / "log", position)
        passed = time.monotonic() - begun
        if (every is not None and n >= every) or (seconds is not None and n and passed >= seconds):
            try:
                report(train(folder, params, decisions=decisions))
            except UserError as error:
                report(str(error))
            position, begun = last, time.monotonic()
        time.sleep(_PAUSE)


def rewarded(folder: Path, params: ServiceParams, n: int) -> list[Decision]:
    """Return the latest n decisions whose reward is known, in their order."""
    latest = deque(read_events(folder / "log"), maxlen=_EVENTS * n)
    joined = join(latest, several=params.several, window=params.reward_window)
    missing = params.default_reward
    if missing is not None and joined:
        end = latest[-1].time - params.reward_window
        joined = [
            d._replace(reward=missing) if math.isnan(d.reward) and d.time < end else d
            for d in joined
        ]
    return [decision for decision in joined if not math.isnan(decision.reward)][-n:]


def validate(new: Policy, champion: Policy, decisions: Sequence[Decision]) -> Validation:
    """Estimate what a new policy and the champion, both as they are, earn on logged decisions.

    Parameters
    ----------
    new, champion : Policy
        With the same items and columns.
    decisions : sequence of Decision
        That the new policy has not learned. Those of withdrawn items are left out, and those of the
        fallback, whose propensities hold only where no policy answers.

    Raises
    ------
    UserError
        Fewer than three decisions are left, or a propensity is not allowed.
    """
    own = [
        decision
        for decision in decisions
        if decision.body.get("arm") != "fallback"
        and not new.items.withdrawn.intersection(_items(decision))
    ]
    if len(own) < FOLDS:
        raise UserError(
            f"only {len(own)} of the latest {len(decisions):,} decisions can validate a version: "
            "the others are of the fallback or of withdrawn items"
        )
    own = own[-max(_CELLS // len(new.items.names), MIN_DECISIONS) :]
    # the new policy's scales are those of the latest contexts
    log = log_of(new, own)
    binary = bool(np.isin(log.rewards, (0.0, 1.0)).all())
    q = np.empty((len(log), log.n_actions))
    model = read_model("logistic" if binary else "ridge")
    for rows, predicted in cross_fit(model, log, np.random.default_rng(0)):
        q[rows] = predicted
    targets = [Matrix(_probabilities(policy, own), "policy") for policy in (new, champion)]
    both = [evaluate(log, target, estimators=USED, q=q) for target in targets]
    rounds = [_rounds(log, target, q) for target in targets]
    difference = {
        name: normal(ESTIMATORS[name](rounds[0]) - ESTIMATORS[name](rounds[1])) for name in USED
    }
    return Validation(both[0], both[1], difference)


def _learn(policy: Policy, decisions: Sequence[Decision]) -> None:
    for decision in decisions:
        body = decision.body
        policy.learn(body["context"], body["item"], decision.reward, body["candidates"])


def _items(decision: Decision) -> list[Name]:
    """Return the item that was shown, and the candidates that were stated."""
    return [decision.body["item"], *(decision.body["candidates"] or ())]


def _fits(policy: Policy, names: Collection[Name], decision: Decision) -> bool:
    """Return whether a policy of these items and columns can learn a decision."""
    context, candidates = decision.body["context"], decision.body["candidates"]
    if policy.schema is None or not all(item in names for item in _items(decision)):
        return False
    try:
        policy.check_reward(decision.reward)
        features = policy.schema.features({} if context is None else context, observe=False)
    except UserError:
        return False
    return features.ndim == 1 or len(features) == len(
        policy.items.index(candidates, withdrawn=True)
    )


def _probabilities(policy: Policy, decisions: Sequence[Decision]) -> FloatArray:
    """Return the propensities of all items, float64 (n, K)."""
    place = {name: i for i, name in enumerate(policy.items.names)}
    found = np.zeros((len(decisions), len(place)))
    for row, decision in enumerate(decisions):
        body = decision.body
        for name, share in policy.probabilities(body["context"], body["candidates"]).items():
            found[row, place[name]] = share
    return found


def _rounds(log: DecisionLog, target: Matrix, q: FloatArray) -> Rounds:
    assert log.propensities is not None
    weights = target.logged(log) / log.propensities
    return Rounds(log.rewards, weights, *given(log, target, q), np.zeros(len(log)))


def _figures(found: Evaluation) -> dict[str, Any]:
    estimates = {name: _finite(interval) for name, interval in found.estimates.items()}
    return {**estimates, "ess": found.support.ess, "alarms": [a.sentence for a in found.alarms]}


def _finite(interval: Interval) -> dict[str, float | None]:
    return {name: x if math.isfinite(x) else None for name, x in interval._asdict().items()}


def _hash(decisions: Sequence[Decision]) -> str:
    digest = hashlib.sha256()
    for decision in decisions:
        digest.update(json.dumps(decision, sort_keys=True).encode())
    return digest.hexdigest()


def _date(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
