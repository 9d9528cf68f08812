"""Logistic UCB."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from bandits.base.explanation import Explanation
from bandits.base.params import param
from bandits.base.randomness import Streams
from bandits.base.types import FloatArray, Round, WorldAccess, WorldSpec

from .base import LogisticAgent, LogisticParams


class LogisticUCB(LogisticAgent):
    """Upper confidence bound on the logit of a click [1]_: LinUCB for 0/1 rewards.

    score_a = theta_a . x_a + alpha sqrt(x_a' H_a^-1 x_a)

    The optimistic click probability is sigmoid(score), which has the same order, so the logit is the score. As in
    UCB-GLM [1]_ the bonus is inside the link (GLM-UCB [2]_ adds it to the probability). Both papers measure uncertainty
    by V = sum x x'; here it is H = lambda I + sum mu (1 - mu) x x', the curvature of the log loss at the MAP, in which
    an observation counts by its information: little where a click is nearly certain or nearly impossible. The ridge
    replaces the papers' initial rounds, which make V invertible.

    References
    ----------
    .. [1] Li, Lu, Zhou (2017), Provably optimal algorithms for generalized linear contextual bandits: UCB-GLM.
    .. [2] Filippi, Cappé, Garivier, Szepesvári (2010), Parametric bandits: the generalized linear case: GLM-UCB.
    """

    class Params(LogisticParams):
        kind: Literal["logistic_ucb"] = "logistic_ucb"
        alpha: float = param(
            0.1, title="Exploration bonus", symbol=r"\alpha", ge=0, le=10, typical=(0, 4), basic=True,
            help="Exploration coefficient: multiplies the confidence width to give the exploration bonus. Larger "
            "values explore more; usually 0 (no exploration) to 2.",
            sweep=(0.03, 4),
        )  # fmt: skip

    title = "Logistic UCB"
    formula = (
        r"\hat\theta_a^\top x_a+\alpha\sqrt{x_a^\top H_a^{-1}x_a},"
        r"\quad H_a=\lambda I+\sum\mu(1-\mu)\,xx^\top,\ \mu=\frac{1}{1+e^{-\hat\theta_a^\top x}}"
    )
    uncertainty = "bonus"
    exploration_param = "alpha"
    colour = "#56B4E9"
    dash = "longdash"

    def __init__(self, params: Sequence[Any], spec: WorldSpec, streams: Streams, access: WorldAccess) -> None:
        super().__init__(params, spec, streams, access)
        self.alpha = self.column("alpha")

    def scores(self, round: Round) -> FloatArray:
        mean, variance = self.model.predict(round)
        return np.asarray(mean + self.alpha[:, None] * np.sqrt(variance))

    def explain(self, round: Round) -> Explanation:
        mean, variance = self.model.predict(round)
        return Explanation(
            "bonus", self.scores(round), mean, np.sqrt(variance), self.alpha[:, None], "alpha", logit=True
        )
