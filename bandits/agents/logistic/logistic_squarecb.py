"""SquareCB on logistic models."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from bandits.agents.inverse_gap import InverseGapAgent, InverseGapParams
from bandits.base.params import override_default
from bandits.base.types import FloatArray, Round

from .base import LogisticAgent, LogisticParams


class LogisticSquareCB(InverseGapAgent, LogisticAgent):
    """SquareCB with logistic regression [1]_: inverse gap weighting of estimated click
    probabilities.

    P(a) = 1 / (K + c t^rho (y_b - y_a)) for all candidates a but the best one b, which has the
    rest; y_a = 1 / (1 + exp(-theta_a . x_a)). See `SquareCB`.

    References
    ----------
    .. [1] Foster, Rakhlin (2020), Beyond UCB: optimal and efficient contextual bandits with
           regression oracles, Algorithm 1, with a generalised linear model as the oracle.
    """

    class Params(InverseGapParams, LogisticParams):
        kind: Literal["logistic_squarecb"] = "logistic_squarecb"
        ridge: float = override_default(LogisticParams, "ridge", 0.1)

    title = "Logistic SquareCB"
    exploration_param = "gap_weight"
    formula = r"P(a)=\frac{1}{K+c\,t^{\rho}\,(\hat y_b-\hat y_a)},\quad\hat y_a=\frac{1}{1+e^{-\hat\theta_a^\top x_a}},\quad b=\arg\max\hat y"  # noqa: E501
    colour = "#E69F00"
    dash = "longdash"

    def estimates(self, round: Round) -> FloatArray:
        with np.errstate(over="ignore"):
            return np.asarray(1 / (1 + np.exp(-self.model.predict(round)[0])))

    @classmethod
    def test_params(cls) -> list[dict[str, Any]]:
        small = {"refit": 10, "history": 20}
        return [small, {**small, "sharing": "shared", "window": 20}]
