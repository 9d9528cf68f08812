"""What a learner makes of the slots of a slate: further down an item is looked at less, and clicked less.

In slot k an item that is looked at is clicked with b_k times its probability p. A learner that is aware of it counts it
as shown b_k times: clicks over such shows are unbiased for p, whether they are counted, fitted by least squares (weight
b_k, target click / b_k, whose variance is about p / b_k) or by log loss (b_k softplus(z) - click z). The point it leads
to is right; a posterior from the log loss is too narrow, as the score varies by (1 - b_k p) / (1 - p) times its
curvature.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from bandits.base.types import Contexts, Feedback, FloatArray, IntArray, Round

Position = Literal["examined", "ignored", "aware"]


def shows(feedback: Feedback, position: Position, bias: tuple[float, ...]) -> FloatArray:
    """How often each slot counts as shown, float64 (R, S).

    Parameters
    ----------
    feedback : Feedback
        Of a row that has stopped nothing is examined; of all others the first slot is.
    position : {"examined", "ignored", "aware"}
        examined: once if it was looked at. ignored: once, looked at or not. aware: b_k times if it was looked at.
    bias : tuple of float
        b_k of every slot; empty for 1.
    """
    if position == "ignored":
        return np.repeat(feedback.examined[:, :1], feedback.examined.shape[1], axis=1).astype(np.float64)
    seen = feedback.examined.astype(np.float64)
    return seen * bias if position == "aware" and bias else seen


def targets(feedback: Feedback, counted: FloatArray) -> FloatArray:
    """Clicks per show, float64 (R, S): what least squares with the weights ``counted`` is to fit."""
    return np.asarray(feedback.rewards / np.where(counted > 0, counted, 1.0))


def weighted(
    round: Round, slate: IntArray, feedback: Feedback, counted: FloatArray
) -> tuple[Round, IntArray, Feedback]:
    """A slate for ridge regression with the weights ``counted (R, S)``: features and targets times their roots."""
    if np.array_equal(counted, feedback.examined):
        return round, slate, feedback
    root, rows = np.sqrt(counted), np.arange(len(slate))[:, None]
    values, columns, n_features = round.contexts
    shown = round.context[:, None], slate
    contexts = Contexts(values[shown] * root[..., None], columns[shown], n_features)
    own = round._replace(
        items=round.items[rows, slate], contexts=contexts, context=rows[:, 0], available=round.available[rows, slate]
    )
    order = np.ascontiguousarray(np.broadcast_to(np.arange(slate.shape[1]), slate.shape))
    return own, order, Feedback(targets(feedback, counted) * root, counted > 0)
