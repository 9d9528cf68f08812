"""Small simulated logs whose true values are known."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bandits.base.types import FloatArray
from bandits.offpolicy import DecisionLog


class Setting(NamedTuple):
    """A log with the probabilities of both policies, the true rewards and the true value."""

    log: DecisionLog
    target: FloatArray
    logging: FloatArray
    rewards: FloatArray
    value: float


def softmax(scores: FloatArray) -> FloatArray:
    """Return probabilities, (n, K)."""
    found = np.exp(scores - scores.max(axis=1, keepdims=True))
    return found / found.sum(axis=1, keepdims=True)


def simulate(
    g: np.random.Generator,
    n: int = 1000,
    K: int = 5,
    *,
    D: int = 3,
    vectors: bool = True,
    positions: int = 0,
) -> Setting:
    """Simulate a log of clicks; the value is the mean over the log's own contexts."""
    fixed = np.random.default_rng(K)
    x = g.normal(size=(n, D))
    theta, eta, zeta = (fixed.normal(size=(D, K)) for _ in range(3))
    rewards = 1 / (1 + np.exp(1 - x @ theta))
    logging, target = softmax(0.5 * x @ eta), softmax(0.5 * x @ zeta)
    actions = np.minimum((logging.cumsum(axis=1) < g.random((n, 1))).sum(axis=1), K - 1)
    rows = np.arange(n)
    log = DecisionLog(
        actions=actions,
        rewards=(g.random(n) < rewards[rows, actions]).astype(float),
        features=x,
        names=tuple(f"item {k}" for k in range(K)),
        feature_names=tuple(f"x{d}" for d in range(D)),
        propensities=logging[rows, actions],
        distributions=logging if vectors else None,
        positions=rows % positions + 1 if positions else None,
    )
    return Setting(log, target, logging, rewards, float((target * rewards).sum(axis=1).mean()))


def full_log(g: np.random.Generator, n: int = 60) -> DecisionLog:
    """Make a log in which nothing is left out, with candidates that differ between rows."""
    names, available = ("a", "b", "ä|c", "d"), np.ones((n, 4), bool)
    available[::3, 1] = False
    p = g.random((n, 4)) * available
    p /= p.sum(axis=1, keepdims=True)
    actions = np.array([g.choice(4, p=row) for row in p])
    rows = np.arange(n)
    texts = lambda prefix, m: np.array([f"{prefix}{i % m}" for i in rows], object)  # noqa: E731
    return DecisionLog(
        actions=actions,
        rewards=g.normal(size=n),
        names=names,
        propensities=p[rows, actions],
        distributions=p,
        kinds=texts("exact", 1),
        features=g.normal(size=(n, 2)),
        feature_names=("age", "zeit µ"),
        available=available,
        positions=rows % 3,
        segments=texts("s", 2),
        event_ids=np.array([f"e{i // 3}" for i in rows], object),
        times=texts("2026-01-0", 7),
        versions=texts("v", 5),
        rows=rows % 4,
        steps=rows // 4,
        contexts=rows * 7,
        columns={"pi": g.random(n)},
    )
