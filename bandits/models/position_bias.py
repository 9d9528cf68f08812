"""Position bias: how the slots of a slate count in learning.

In slot k an item that is examined is clicked with b_k times its probability p. A position-aware
learner counts it as b_k exposures: clicks per exposure are then unbiased for p, whether they are
counted, fitted by least squares (weight b_k, target click / b_k, whose variance is about p / b_k)
or by log loss (b_k softplus(z) - click z). The point estimate is right; a posterior from the log
loss is too narrow, because the score varies by (1 - b_k p) / (1 - p) times its curvature."""

from __future__ import annotations

from typing import Literal

import numpy as np

from bandits.base.types import Contexts, Feedback, FloatArray, IntArray, Round

Position = Literal["examined", "ignored", "aware"]


def exposure(feedback: Feedback, position: Position, bias: tuple[float, ...]) -> FloatArray:
    """Weight each slot as an exposure.

    Parameters
    ----------
    feedback : Feedback
        In a row that has stopped no slot is examined; in all others the first one is.
    position : {"examined", "ignored", "aware"}
        examined: 1 if the slot was examined. ignored: 1 for every slot. aware: b_k if the slot was
        examined.
    bias : tuple of float
        b_k of every slot; empty if all are 1.

    Returns
    -------
    float64 (R, S)
    """
    if position == "ignored":
        return np.repeat(feedback.examined[:, :1], feedback.examined.shape[1], axis=1).astype(
            np.float64
        )
    seen = feedback.examined.astype(np.float64)
    return seen * bias if position == "aware" and bias else seen


def targets(feedback: Feedback, exposures: FloatArray) -> FloatArray:
    """Compute clicks per exposure, float64 (R, S): the targets of least squares with weights
    ``exposures (R, S)``.
    """
    return np.asarray(feedback.rewards / np.where(exposures > 0, exposures, 1.0))


def weighted(
    round: Round, slate: IntArray, feedback: Feedback, exposures: FloatArray
) -> tuple[Round, IntArray, Feedback]:
    """Weight a slate for ridge regression: features and targets times the root of ``exposures (R,
    S)``.
    """
    if np.array_equal(exposures, feedback.examined):
        return round, slate, feedback
    root, rows = np.sqrt(exposures), np.arange(len(slate))[:, None]
    values, columns, n_features = round.contexts
    shown = round.context[:, None], slate
    contexts = Contexts(values[shown] * root[..., None], columns[shown], n_features)
    own = round._replace(
        items=round.items[rows, slate],
        contexts=contexts,
        context=rows[:, 0],
        available=round.available[rows, slate],
    )
    order = np.broadcast_to(np.arange(slate.shape[1]), slate.shape).copy()
    return own, order, Feedback(targets(feedback, exposures) * root, exposures > 0)
