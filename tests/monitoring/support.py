"""Steps that monitors are fed with: unremarkable ones, and ones that break a rule."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from bandits.monitoring import REGISTRY, Alarm, Samples, Setting, Steps, read

K, D, EVERY = 10, 3, 10
SEGMENTS = ("first", "second")


def make(T: int, R: int = 2, seed: int = 0, slots: int = 1) -> Steps:
    """Draw unremarkable steps: items and segments at random, clicks of .5 that the agent predicts,
    fixed features.
    """
    g = np.random.default_rng(seed)
    at = np.arange(0, T, EVERY)
    context = g.normal(size=(len(at), R, D))
    clicks = (g.random((T, R)) < 0.5).astype(np.float64)
    features = np.concatenate([clicks[at][:, :, None], context[:, :, 1:]], axis=2)
    explored = (g.random((len(at), R)) < 0.2).astype(np.float64)
    means, weights = g.uniform(0.45, 0.55, (len(at), R)), g.uniform(0.5, 1.5, (len(at), R))
    law = np.broadcast_to([1.0, 1 / 12, 1.5], (*weights.shape, 3))
    samples = Samples(at, clicks[at], features, context, means, explored, weights, law)
    items, segments = g.integers(0, K, (T, R, slots)), g.integers(0, 2, (T, R))
    return Steps(0, items, segments, clicks, samples, g.random((T, R)) < 0.01)


def monitor(kind: str, R: int = 2, **changes: Any) -> Any:
    (params,) = read([{"kind": kind, **changes}])
    return REGISTRY[kind](params, Setting("LinUCB", tuple(range(R)), K, 1, SEGMENTS))


def sampled(steps: Steps, **columns: Any) -> Steps:
    """Replace columns of the samples."""
    assert steps.samples is not None
    return steps._replace(samples=steps.samples._replace(**columns))


def broken(kind: str, steps: Steps) -> Steps:
    """Break what one monitor watches in the second half of row 1."""
    assert steps.samples is not None
    s, T = steps.samples, len(steps.rewards)
    half, late = T // 2, len(s.steps) // 2
    g = np.random.default_rng(1)
    items, rewards = steps.items.copy(), steps.rewards.copy()
    if kind in ("page_hinkley", "adwin", "ctr_range"):
        rewards[half:, 1] = (g.random(T - half) < 0.2).astype(np.float64)
        return steps._replace(rewards=rewards)
    if kind in ("entropy", "coverage"):
        items[half:, 1] = g.integers(0, 2, items[half:, 1].shape)
        return steps._replace(items=items)
    if kind == "segment_entropy":
        items[half:, 1] = np.where((steps.segments[half:, 1] == 1)[:, None], 3, items[half:, 1])
        return steps._replace(items=items)
    if kind == "fallbacks":
        assert steps.fell_back is not None
        fell_back = steps.fell_back.copy()
        fell_back[half:, 1] = g.random(T - half) < 0.2
        return steps._replace(fell_back=fell_back)
    name = {
        "feature_drift": "context",
        "correlation": "features",
        "calibration": "means",
        "exploration": "explored",
        "importance_weight": "weights",
    }[kind]
    column = getattr(s, name).copy()
    if kind == "feature_drift":
        column[late:, 1] += [0.0, 1.5, 0.0]
    elif kind == "importance_weight":
        column[late:, 1] *= 2
    else:
        column[late:, 1] = 0.9 if kind == "calibration" else 0.0
    return sampled(steps, **{name: column})


def run(kind: str, steps: Steps, cuts: list[int] | None = None, **changes: Any) -> list[Alarm]:
    """Feed a monitor in chunks that end at ``cuts``."""
    T, R = steps.rewards.shape
    made = monitor(kind, R, **changes)
    ends = [0, *sorted(cut for cut in cuts or () if cut < T), T]
    return [alarm for a, b in pairwise(ends) for alarm in made.feed(steps.part(a, b))]
