"""Clicks and misses that are given before a run, as observations of models per arm.

Every arm starts as if it had been shown n = clicks + misses times, evenly to the visitors of the first `VISITS` steps,
and as if each of them had clicked with probability clicks / n. An observation is split: a ridge model holds
A = ridge I + n E[x x'] and b = clicks E[x], a logistic model the maximum a posteriori of
clicks log mu + misses log(1 - mu), averaged over these visitors, and its curvature (Laplace). E is the mean over the
visits in which the arm is a candidate; an arm that is none starts like the first candidate of each visit. Only features
are read, never rewards. With one constant feature and a vanishing ridge the mean is that of a Beta prior of the same
clicks and misses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from bandits.base.types import FloatArray, IntArray, Round, WorldSpec

from .logistic import Logistic

VISITS = 100
_STEPS = 30  # Newton steps at most; a handful is usual


class Visit(NamedTuple):
    """Candidates shown to one visitor of row ``row``: ``items (K,)``, ``features (K, D)``, and how often it counts."""

    row: int
    items: IntArray
    features: FloatArray
    weight: float


def visits(rounds: Callable[[int], Round], spec: WorldSpec) -> Iterator[Visit]:
    """Yield the first `VISITS` visits of every row; where contexts are fixed, each context once with its count."""
    if not spec.fixed_contexts:
        for step in range(VISITS):
            round = rounds(step)
            features = round.features
            yield from (Visit(r, items, features[r], 1.0) for r, items in enumerate(round.items))
        return
    first = rounds(0)
    context = np.stack([rounds(step).context for step in range(VISITS)])
    for r, items in enumerate(first.items):
        for c, n in zip(*np.unique(context[:, r], return_counts=True), strict=True):
            yield Visit(r, items, first.contexts.dense(np.array([c]))[0], float(n))


def _sums(rounds: Callable[[int], Round], spec: WorldSpec, theta: FloatArray | None) -> tuple[FloatArray, ...]:
    """Compute E[1], E[x], E[w x x'] and E[mu x] of every arm: (R, M), (R, M, D), (R, M, D, D), (R, M, D).

    mu is the sigmoid of ``theta . x`` (R, M, D), w = mu (1 - mu); w = 1 without ``theta``.
    """
    from scipy.special import expit

    R, M, D = len(rounds(0).items), spec.n_items, spec.n_features
    count, mean = np.zeros((R, M + 1)), np.zeros((R, M + 1, D))  # the last place: the first candidate of each visit
    gram, fitted = np.zeros((R, M + 1, D, D)), np.zeros((R, M + 1, D))
    for r, items, features, weight in visits(rounds, spec):
        places, x = np.append(items, M), np.concatenate([features, features[:1]])
        mu = np.ones(len(x)) if theta is None else expit((x * theta[r, places]).sum(axis=1))
        w = mu if theta is None else mu * (1 - mu)
        count[r, places] += weight
        mean[r, places] += weight * x
        gram[r, places] += (weight * w)[:, None, None] * x[:, :, None] * x[:, None, :]
        fitted[r, places] += (weight * mu)[:, None] * x
    for each in (mean, gram, fitted):
        each /= np.maximum(count, 1).reshape(R, M + 1, *[1] * (each.ndim - 2))
    return count, mean, gram, fitted


def _spread(count: FloatArray, *arrays: FloatArray) -> list[FloatArray]:
    """Give arms that were no candidate the values of the last place, and drop it."""
    unseen = count[:, :-1] == 0
    out = []
    for each in arrays:
        own = each[:, :-1].copy()
        own[unseen] = np.broadcast_to(each[:, -1:], own.shape)[unseen]
        out.append(own)
    return out


def given_memory(spec: WorldSpec) -> int:
    """Compute the bytes per row of the sums, while they are made."""
    return 8 * (spec.n_items + 1) * (5 * spec.n_features**2 + 6 * spec.n_features + 1)


def given_sums(
    rounds: Callable[[int], Round], spec: WorldSpec, clicks: FloatArray, misses: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Compute n E[x x'] and clicks E[x] of every arm: float64 (R, M, D, D) and (R, M, D).

    Parameters
    ----------
    rounds : callable, int -> Round
        What the models read at a step.
    spec : WorldSpec
    clicks, misses : float64 (R,)
    """
    count, mean, gram, _ = _sums(rounds, spec, None)
    gram, mean = _spread(count, gram, mean)
    return (clicks + misses)[:, None, None, None] * gram, clicks[:, None, None] * mean


def give_logistic(
    model: Logistic,
    rounds: Callable[[int], Round],
    spec: WorldSpec,
    ridge: FloatArray,
    clicks: FloatArray,
    misses: FloatArray,
) -> None:
    """Start logistic models per arm from clicks and misses: the Laplace approximation of their posterior, in place.

    Parameters
    ----------
    ridge, clicks, misses : float64 (R,)
        For the others see `given_sums`.
    """
    n, share = (clicks + misses)[:, None, None], (clicks / (clicks + misses))[:, None, None]
    prior: FloatArray = np.asarray(ridge[:, None, None, None] * np.eye(spec.n_features), np.float64)
    H = prior
    count, mean, gram, _ = _sums(rounds, spec, None)
    w = share * (1 - share)
    start = n * w * np.log(share / (1 - share)) * mean  # the first step of Newton's method from logits that fit n
    theta = np.asarray(np.linalg.solve(prior + (n * w)[..., None] * gram, start[..., None])[..., 0], np.float64)
    for _ in range(_STEPS):
        count, mean, gram, fitted = _sums(rounds, spec, theta)
        H = np.asarray(prior + n[..., None] * gram, np.float64)
        step = np.linalg.solve(H, (n * (share * mean - fitted) - ridge[:, None, None] * theta)[..., None])[..., 0]
        theta += step
        if np.abs(step).max() < 1e-12 * (1 + np.abs(theta).max()):
            break
    theta, H = _spread(count, theta, H)
    inverse = np.linalg.inv(H)
    p = model.posterior
    p.theta[...], p.H[...], p.inverse[...] = theta, H, (inverse + inverse.swapaxes(2, 3)) / 2
    if model.refit:
        p.center[...], p.anchor[...] = theta, H
