"""Runs in the peers' own environment: times one peer at a time, stepping as its documentation
shows.

    python linear_child.py DATA.npz

Reads lines "PEER STEPS" and answers each with the microseconds of processor time per predict +
update, or with "failed: ..." in one line. Nothing of this project is imported here."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterator

import numpy as np


def mabwiser(X: np.ndarray, rewards: np.ndarray) -> Iterator[None]:
    """MABWiser: `MAB(arms, LearningPolicy.LinUCB)`, predict and partial_fit."""
    from mabwiser.mab import MAB, LearningPolicy

    arms = list(range(rewards.shape[1]))
    model = MAB(arms, LearningPolicy.LinUCB(alpha=1.0, l2_lambda=1.0))
    # it must be fitted before it predicts
    model.fit(arms, [0] * len(arms), np.zeros((len(arms), X.shape[1])))
    for i in range(len(X)):
        yield
        context = X[i : i + 1]
        arm = model.predict(context)
        model.partial_fit([arm], [rewards[i, arm]], context)


def contextualbandits(X: np.ndarray, rewards: np.ndarray) -> Iterator[None]:
    """contextualbandits: `online.LinUCB` (Sherman and Morrison, its default), predict and
    partial_fit.
    """
    from contextualbandits.online import LinUCB

    model = LinUCB(nchoices=rewards.shape[1], alpha=1.0, fit_intercept=False, random_state=1)
    model.partial_fit(X[:1], np.array([0]), np.array([0.0]))  # likewise
    for i in range(len(X)):
        yield
        context = X[i : i + 1]
        arm = model.predict(context).astype(int)
        model.partial_fit(context, arm, rewards[i, arm])


def coba(X: np.ndarray, rewards: np.ndarray) -> Iterator[None]:
    """coba: `LinUCBLearner` on action features, predict and learn."""
    from coba.learners import LinUCBLearner

    # its LinUCB is one shared model on features of the actions: D of them, made of the same numbers
    K = rewards.shape[1]
    rounds = [[tuple(np.roll(x, k).tolist()) for k in range(K)] for x in X]
    model = LinUCBLearner(alpha=1.0, features=["a"])
    for i, actions in enumerate(rounds):
        yield
        action, probability = model.predict(None, actions)[:2]
        model.learn(None, action, float(rewards[i, actions.index(action)]), probability)


def river(X: np.ndarray, rewards: np.ndarray) -> Iterator[None]:
    """river: `bandit.LinUCBDisjoint`, pull and update."""
    from river import bandit

    contexts = [dict(enumerate(x)) for x in X.tolist()]
    arms = list(range(rewards.shape[1]))
    model = bandit.LinUCBDisjoint(alpha=1.0, beta=1.0, seed=1)
    for i, context in enumerate(contexts):
        yield
        arm = model.pull(arms, context=context)
        model.update(arm, context, float(rewards[i, arm]))


def bayesianbandits(X: np.ndarray, rewards: np.ndarray) -> Iterator[None]:
    """bayesianbandits: `ContextualAgent` of `NormalRegressor` arms, `ThompsonSampling` (LinTS),
    pull and update.
    """
    from bayesianbandits import Arm, ContextualAgent, NormalRegressor, ThompsonSampling

    # of its policies and regressors the fastest pair; LinUCB with NormalInverseGammaRegressor is
    # slower
    arms = [Arm(k, learner=NormalRegressor(alpha=1.0, beta=1.0)) for k in range(rewards.shape[1])]
    model = ContextualAgent(arms, ThompsonSampling(), random_seed=1)
    for i in range(len(X)):
        yield
        context = X[i : i + 1]
        (arm,) = model.pull(context)
        model.update(context, rewards[i, [arm]])


PEERS: dict[str, Callable[[np.ndarray, np.ndarray], Iterator[None]]] = {
    peer.__name__: peer for peer in (mabwiser, contextualbandits, coba, river, bayesianbandits)
}


def measure(peer: str, X: np.ndarray, rewards: np.ndarray) -> float:
    """Measure microseconds per step, without construction and the first step (imports,
    allocation).
    """
    steps = PEERS[peer](X, rewards)
    next(steps)
    next(steps)
    began = time.process_time()
    count = sum(1 for _ in steps) + 1
    return 1e6 * (time.process_time() - began) / count


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    with np.load(sys.argv[1]) as data:
        contexts, clicks = data["contexts"], data["rewards"]
    for line in sys.stdin:
        name, n = line.split()
        try:
            print(measure(name, contexts[: int(n)], clicks[: int(n)]), flush=True)
        except Exception as error:  # noqa: BLE001
            print("failed:", repr(error).replace("\n", " ")[:200], flush=True)
