"""A staged rollout: a challenger gets a growing share of the users while it is compared with the
champion.

The comparison may be looked at after every decision: its interval holds at all looks at once.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np
from pydantic import field_validator, model_validator
from scipy.special import betaln

from bandits.base.params import Params, param
from bandits.base.types import FloatArray
from bandits.offpolicy.anytime import confidence_sequence

Action = Literal["wait", "advance", "promote", "roll back"]
# decisions of the challenger below which its latency, errors and items are not judged
MIN_SERVED = 200


class RolloutParams(Params):
    """How a challenger is rolled out."""

    steps: tuple[float, ...] = param(
        (0.05, 0.2, 0.5),
        title="Steps",
        help="Shares of users that the challenger gets, one after the other, before it gets all.",
    )
    min_decisions: int = param(
        30_000,
        title="Decisions per step",
        help="Decisions of both before the next step; more find a worse challenger earlier.",
        ge=1,
        le=100_000_000,
    )
    delta: float = param(
        0.0,
        title="Tolerated loss",
        help="Loss of reward per decision that is accepted; larger values promote more.",
        ge=0,
    )
    level: float = param(
        0.95,
        title="Confidence level",
        help="Level of the anytime-valid interval of the difference; higher needs more decisions.",
        gt=0,
        lt=1,
    )
    low: float = param(0.0, title="Least reward", help="Smallest reward that is possible.")
    high: float = param(1.0, title="Largest reward", help="Largest reward that is possible.")
    max_latency: float = param(
        0.05,
        title="Latency limit",
        help="Seconds that at most 1 % of the challenger's decisions may take; above it is rolled "
        "back.",
        unit="s",
        gt=0,
    )
    max_errors: float = param(
        0.001,
        title="Error limit",
        help="Share of the challenger's decisions that may fail; above it is rolled back.",
        ge=0,
        lt=1,
    )
    min_exposure: float = param(
        0.0,
        title="Exposure floor",
        help="Share of the challenger's decisions that each item must get to which the champion "
        "gives as much; with less for sure it is rolled back. 0: none.",
        ge=0,
        lt=1,
    )
    salt: str = param(
        "rollout",
        title="Salt",
        help="A text that decides who gets the challenger first; another one is another order.",
        min_length=1,
        max_length=100,
    )

    @field_validator("steps", mode="before")
    @classmethod
    def _tuple(cls, steps: object) -> object:
        return tuple(steps) if isinstance(steps, list) else steps

    @field_validator("steps")
    @classmethod
    def _ascending(cls, steps: tuple[float, ...]) -> tuple[float, ...]:
        if not steps or any(a >= b for a, b in pairwise((0.0, *steps, 1.0))):
            raise ValueError("must be shares above 0 and below 1, each larger than the one before")
        return steps

    @model_validator(mode="after")
    def _ordered(self) -> RolloutParams:
        if not self.low < self.high:
            raise ValueError("high: must be above low")
        return self


class Verdict(NamedTuple):
    """What the gate of a step decides.

    Attributes
    ----------
    action : str
        ``wait``, ``advance`` to the next step, ``promote`` or ``roll back``.
    sentence : str
        The evidence.
    low, high : float
        Anytime-valid interval of challenger minus champion, in reward per decision; infinite before
        the first reward.
    """

    action: Action
    sentence: str
    low: float
    high: float


class Rollout:
    """One rollout in progress.

    The difference is estimated by inverse shares: a decision counts (r - c) / p if the challenger
    made it and -(r - c) / (1 - p) if the champion did, where p was the challenger's share at that
    time and c the mean of the rewards before. So neither a share that grows nor rewards that drift
    favour one of the two.

    Parameters
    ----------
    params : RolloutParams
    """

    def __init__(self, params: RolloutParams) -> None:
        self.params = params
        self.step = 0
        self._signed: list[float] = []
        self._rewards = 0.0
        self._since = 0
        self._latencies: deque[float] = deque(maxlen=10_000)
        self._served = self._failed = 0
        # decisions of champion and challenger, by item
        self._shown: dict[str | int, list[int]] = {}
        self._alarm = ""

    @property
    def share(self) -> float:
        """Share of the users that the challenger gets now."""
        return self.params.steps[self.step]

    def assigned(self, user: str) -> bool:
        """Return whether a user gets the challenger, and keeps it as the share grows."""
        digest = hashlib.sha256(f"{self.params.salt}\0{user}".encode()).digest()
        return int.from_bytes(digest[:8], "big") / 2**64 < self.share

    def served(self, seconds: float, *, failed: bool = False) -> None:
        """Count a decision of the challenger."""
        self._served += 1
        self._failed += failed
        self._latencies.append(seconds)

    def shown(self, item: str | int, *, challenger: bool) -> None:
        """Count a decision of one of the two for an item."""
        self._shown.setdefault(item, [0, 0])[challenger] += 1

    def observe(self, reward: float, *, challenger: bool, share: float) -> None:
        """Count the reward of a decision that was made while the challenger had a share."""
        params = self.params
        n = len(self._signed)
        centre = self._rewards / n if n else (params.low + params.high) / 2
        weight = 1 / share if challenger else -1 / (1 - share)
        self._signed.append((min(max(reward, params.low), params.high) - centre) * weight)
        self._rewards += reward
        self._since += 1

    def alarmed(self, sentence: str) -> None:
        """Take an alarm of a monitor on the challenger's decisions: the rollout is to end."""
        self._alarm = self._alarm or sentence

    def interval(self) -> tuple[float, float]:
        """Return the interval of challenger minus champion; it holds at all looks at once."""
        if not self._signed:
            return -np.inf, np.inf
        signed: FloatArray = np.array(self._signed)
        shares = self.params.steps
        bound = (self.params.high - self.params.low) * max(1 / shares[0], 1 / (1 - shares[-1]))
        ((low, high),) = confidence_sequence(
            np.ones(len(signed)),
            signed,
            looks=[len(signed)],
            low=-bound,
            high=bound,
            level=self.params.level,
        )
        return float(low), float(high)

    def verdict(self) -> Verdict:
        """Judge the step."""
        params = self.params
        low, high = self.interval()
        stated = f"challenger minus champion is {low:+.4f} to {high:+.4f} per decision"
        if self._served >= MIN_SERVED:
            errors = self._failed / self._served
            if errors > params.max_errors:
                return Verdict(
                    "roll back",
                    f"{100 * errors:.2g} % of the challenger's decisions failed; "
                    f"{100 * params.max_errors:.2g} % are allowed",
                    low,
                    high,
                )
        if len(self._latencies) >= MIN_SERVED:
            slow = float(np.quantile(self._latencies, 0.99))
            if slow > params.max_latency:
                return Verdict(
                    "roll back",
                    f"1 % of the challenger's decisions took longer than {1_000 * slow:.3g} ms; "
                    f"{1_000 * params.max_latency:.3g} ms are allowed",
                    low,
                    high,
                )
        if hidden := self._hidden():
            return Verdict("roll back", hidden, low, high)
        if high < -params.delta:
            return Verdict("roll back", f"the challenger is worse: {stated}", low, high)
        if self._alarm:
            why = f"an alarm on the challenger's decisions: {self._alarm.rstrip('.')}; {stated}"
            return Verdict("roll back", why, low, high)
        if self._since < params.min_decisions:
            return Verdict(
                "wait",
                f"{self._since:,} of {params.min_decisions:,} decisions of this step; {stated}",
                low,
                high,
            )
        if self.step + 1 < len(params.steps):
            return Verdict(
                "advance", f"it is not certain that the challenger is worse: {stated}", low, high
            )
        if low > -params.delta:
            word = "better" if params.delta == 0 else "good enough"
            return Verdict("promote", f"the challenger is {word}: {stated}", low, high)
        return Verdict(
            "wait", f"the challenger is neither better nor worse yet: {stated}", low, high
        )

    def _hidden(self) -> str:
        """State which item the challenger shows too seldom; empty if there is none.

        Shares of 0 to 1, equally likely beforehand, against the floor: the ratio of their
        likelihoods exceeds 1 / a with probability a at most, at whatever look (Ville's inequality).
        """
        floor = self.params.min_exposure
        if not floor or not self._shown:
            return ""
        items, counts = list(self._shown), np.array(list(self._shown.values()))
        before, shown = counts.T
        n = shown.sum()
        if min(n, before.sum()) < MIN_SERVED:
            return ""
        evidence = (
            betaln(shown + 1, n - shown + 1)
            - shown * np.log(floor)
            - (n - shown) * np.log1p(-floor)
        )
        judged = (before >= floor * before.sum()) & (shown < floor * n)
        low = judged & (evidence > np.log(len(items) / (1 - self.params.level)))
        if not low.any():
            return ""
        worst = int(np.argmax(np.where(low, evidence, -np.inf)))
        return (
            f"item {items[worst]!r} got {100 * shown[worst] / n:.2g} % of the challenger's "
            f"decisions and {100 * before[worst] / before.sum():.2g} % of the champion's; at least "
            f"{100 * floor:.2g} % are to stay"
        )

    def to_data(self) -> dict[str, Any]:
        """Return the state as JSON; `from_data` reads it."""
        return {
            "step": self.step,
            "since": self._since,
            "rewards": self._rewards,
            "signed": self._signed,
            "served": [self._served, self._failed],
            "shown": [[item, *counts] for item, counts in self._shown.items()],
            "alarm": self._alarm,
        }

    @classmethod
    def from_data(cls, params: RolloutParams, data: Mapping[str, Any]) -> Rollout:
        """Return the rollout with the state that `to_data` returned; latencies begin anew."""
        rollout = cls(params)
        rollout.step, rollout._since = data["step"], data["since"]
        rollout._rewards, rollout._signed = data["rewards"], list(data["signed"])
        rollout._served, rollout._failed = data["served"]
        rollout._shown = {item: counts for item, *counts in data["shown"]}
        rollout._alarm = data["alarm"]
        return rollout

    def advance(self) -> None:
        """Go to the next step.

        Raises
        ------
        IndexError
            It is the last one.
        """
        if self.step + 1 == len(self.params.steps):
            raise IndexError("the last step is followed by a promotion")
        self.step += 1
        self._since = 0
