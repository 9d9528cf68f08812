"""Join the events of a log by their decision: what was shown, with which probability, and what it
earned."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple

import numpy as np

from bandits.base.errors import UserError
from bandits.base.types import FloatArray
from bandits.offpolicy.log import DecisionLog, TextArray
from bandits.policy import Policy

from .event_log import Event

Several = Literal["earliest", "sum"]


class Decision(NamedTuple):
    """A decision with its reward.

    Attributes
    ----------
    event_id : str
    time : float
        Seconds since 1970.
    body : mapping
        As the service wrote it: ``item``, ``propensity``, ``context``, ``candidates`` (None: all
        items), ``version``, ``arm``.
    reward : float
        NaN where none came.
    """

    event_id: str
    time: float
    body: Mapping[str, Any]
    reward: float


def join(
    events: Iterable[Event],
    *,
    several: Several = "earliest",
    window: float = math.inf,
    default_reward: float | None = None,
) -> list[Decision]:
    """Return the decisions of a log in their order, each with its reward.

    Parameters
    ----------
    events : iterable of Event
    several : str
        Of several rewards of a decision, the earliest counts, or their sum.
    window : float
        Seconds after a decision; a later reward does not count.
    default_reward : float, optional
        Of a decision without a reward; by default it is NaN.
    """
    decisions: dict[str, Event] = {}
    rewards: dict[str, float] = {}
    for event in events:
        if event.kind == "decision":
            decisions.setdefault(event.event_id, event)
        elif event.kind == "reward" and event.event_id in decisions:
            if event.time - decisions[event.event_id].time > window:
                continue
            reward = float(event.body["reward"])
            if several == "sum":
                reward += rewards.get(event.event_id, 0.0)
            elif event.event_id in rewards:
                continue
            rewards[event.event_id] = reward
    missing = math.nan if default_reward is None else default_reward
    return [
        Decision(name, event.time, event.body, rewards.get(name, missing))
        for name, event in decisions.items()
    ]


def decision_log(
    decisions: Sequence[Decision],
    names: Sequence[str],
    encode: Callable[[Any], FloatArray],
    feature_names: Sequence[str] = (),
) -> DecisionLog:
    """Return the decisions that have a reward as a log, which `evaluate` and *What if?* read.

    Parameters
    ----------
    decisions : sequence of Decision
    names : sequence of str (K,)
        The items.
    encode : callable
        Returns the features of a context, float64 (D,).
    feature_names : sequence of str (D,)

    Raises
    ------
    UserError
        No decision has a reward, or one shows an item that is not among ``names``.
    """
    rewarded = [decision for decision in decisions if not math.isnan(decision.reward)]
    if not rewarded:
        raise UserError("no decision of the log has a reward yet")
    index = {name: i for i, name in enumerate(names)}
    try:
        actions = np.array([index[str(d.body["item"])] for d in rewarded])
        available = np.zeros((len(rewarded), len(names)), np.bool_)
        for row, decision in enumerate(rewarded):
            among = decision.body.get("candidates") or names
            available[row, [index[str(name)] for name in among]] = True
    except KeyError as error:
        raise UserError(f"the log shows the item {error}, which the policy has not") from error
    propensities = np.array([float(d.body["propensity"]) for d in rewarded])
    features = np.stack([encode(d.body["context"]) for d in rewarded])
    return DecisionLog(
        actions=actions,
        rewards=np.array([d.reward for d in rewarded]),
        names=tuple(names),
        propensities=propensities,
        features=features if features.shape[1] else None,
        feature_names=tuple(feature_names) if features.shape[1] else (),
        available=None if available.all() else available,
        event_ids=_texts(d.event_id for d in rewarded),
        times=_texts(datetime.fromtimestamp(d.time, UTC).isoformat() for d in rewarded),
        versions=_texts(str(d.body.get("version", "")) for d in rewarded),
    )


def log_of(policy: Policy, decisions: Sequence[Decision]) -> DecisionLog:
    """Return decisions with the features that a policy gives their contexts; a context with a row
    for each candidate has none.

    Raises
    ------
    UserError
        As in `decision_log`, or the policy has not seen a context yet.
    """
    if (schema := policy.schema) is None:
        raise UserError("the policy has not seen a context yet")

    def encode(context: Any) -> FloatArray:
        features = schema.features({} if context is None else context, observe=False)
        return features if features.ndim == 1 else np.empty(0)

    return decision_log(decisions, [str(name) for name in policy.items.names], encode)


def _texts(values: Iterable[str]) -> TextArray:
    return np.array(list(values), dtype=object)
