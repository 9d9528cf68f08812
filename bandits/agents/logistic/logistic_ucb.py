"""Logistic UCB and GLM-UCB."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Self

import numpy as np
from pydantic import model_validator

from bandits.agents.model_params import bonus_param
from bandits.base.explanation import Explanation
from bandits.base.params import param
from bandits.base.randomness import Streams
from bandits.base.types import Feedback, FloatArray, IntArray, Round, SimulatorAccess, SimulatorSpec
from bandits.models.linear.design import FeatureSpan, design_memory, make_design
from bandits.models.linear.given_prior import given_sums
from bandits.models.linear.ridge import Ridge
from bandits.models.position_bias import weighted

from .base import LogisticAgent, LogisticParams


class LogisticUCB(LogisticAgent):
    """Upper confidence bound on the logit of a click [1]_: LinUCB for 0/1 rewards.

    score_a = theta_a . x_a + alpha sqrt(x_a' H_a^-1 x_a)

    The optimistic click probability is sigmoid(score), which has the same order, so the logit is
    the score. By default uncertainty is measured by H = lambda I + sum mu (1 - mu) x x', the
    curvature of the log loss at the MAP, in which an observation counts by its information: little
    where a click is nearly certain or nearly impossible. Both papers measure it by the design
    matrix M = lambda I + sum x x' (``width`` design).

    GLM-UCB [2]_ has ``width`` design, ``bonus`` probability and ``alpha_schedule`` sqrt_log:

    score_a = mu(theta_a . x_a) + alpha sqrt(log t) sqrt(x_a' M_a^-1 x_a), mu the sigmoid

    t is the number of the step, as in the paper: 1 at the first step, after t - 1 observations.
    ``bonus`` logit with ``width`` design is the score of UCB-GLM [1]_.

    Notes
    -----
    Differences from GLM-UCB: the ridge, in M and in the estimate, replaces the projection of an
    estimate of maximum likelihood that leaves the admissible set. Set ``refit`` to 1 for an exact
    estimate at every step. ``alpha`` stands for the constant of the paper's rho(t), which depends
    on unknown bounds.

    The paper begins with D plays of linearly independent features. Its arms are fixed; here they
    change from step to step, so each of the ``forced`` first steps shows the available candidate
    whose features are farthest from the span of those that its model has observed, and where all
    lie in their spans, the one with the largest width. The rank of the design grows at each of
    these steps while a candidate can make it grow: it is full after D of them in a shared model,
    and after D for every arm in models per arm, wherever the features offered allow it.

    The estimate solves sum (r - mu(theta . x)) x = lambda theta. Some texts print it as the argmin
    of the norm of sum (r - mu) x - sum r x; the rewards cancel in that, so that nothing would be
    learned.

    In models that forget, the design matrix forgets as that of LinUCB does: exactly, at every step.

    References
    ----------
    .. [1] Li, Lu, Zhou (2017), Provably optimal algorithms for generalized linear contextual
           bandits: UCB-GLM.
    .. [2] Filippi, Cappé, Garivier, Szepesvári (2010), Parametric bandits: the generalized linear
       case, equation 6 and Algorithm 1: GLM-UCB.
    """

    class Params(LogisticParams):
        kind: Literal["logistic_ucb"] = "logistic_ucb"
        alpha: float = bonus_param(0.1)
        width: Literal["laplace", "design"] = param(
            "laplace",
            title="Confidence width",
            structural=True,
            later=True,
            help=(
                "Matrix that measures uncertainty. laplace: curvature of the log loss, in which "
                "nearly certain outcomes count little. design: sum of xx′, in which all "
                "observations count the same (GLM-UCB, UCB-GLM); its widths are smaller."
            ),
        )
        bonus: Literal["logit", "probability"] = param(
            "logit",
            title="Bonus scale",
            structural=True,
            later=True,
            help=(
                "Quantity to which the exploration bonus is added. logit: the log-odds of a "
                "click (UCB-GLM). probability: the click probability (GLM-UCB), on which the "
                "same α explores more."
            ),
        )
        alpha_schedule: Literal["fixed", "sqrt_log"] = param(
            "fixed",
            title="Bonus schedule",
            structural=True,
            later=True,
            help=(
                "Change of the exploration bonus over time. fixed: α at every step. sqrt_log: α "
                "times the square root of log t at step t (GLM-UCB), which explores more the "
                "longer the run."
            ),
        )
        forced: int = param(
            0,
            title="Forced plays",
            unit="steps",
            ge=0,
            le=1_000_000,
            typical=(0, 200),
            structural=True,
            later=True,
            help=(
                "Number of first steps that show the candidate whose features add most to those "
                "observed. Larger values explore more at the start; usually 0, or one for each "
                "feature of every model (GLM-UCB)."
            ),
        )

        @classmethod
        def closest(cls, values: dict[str, Any]) -> dict[str, Any]:
            values = super().closest(values)
            window = values.get("window")
            return (
                values
                if window is None
                else {**values, "forced": min(values.get("forced", 0), window)}
            )

        @model_validator(mode="after")
        def _forced_plays_are_kept(self) -> Self:
            if self.window is not None and self.forced > self.window:
                raise ValueError(
                    f"{self.kind}: forced is {self.forced:,}; with a window of {self.window:,} "
                    f"steps it must be at most {self.window:,}"
                )
            return self

    title = "Logistic UCB"
    formula = (
        r"\hat\theta_a^\top x_a+\alpha\sqrt{x_a^\top H_a^{-1}x_a},"
        r"\quad H_a=\lambda I+\sum\mu(1-\mu)\,xx^\top,\ \mu=\frac{1}{1+e^{-\hat\theta_a^\top x}};"
        r"\quad\text{GLM-UCB: }\mu(\hat\theta_a^\top x_a)+\alpha\sqrt{\log t}\,\sqrt{x_a^\top A_a^{-1}x_a},"  # noqa: E501
        r"\ A_a=\lambda I+\sum xx^\top"
    )
    uncertainty = "bonus"
    exploration_param = "alpha"
    colour = "#56B4E9"
    dash = "longdash"

    def __init__(
        self, params: Sequence[Any], spec: SimulatorSpec, streams: Streams, access: SimulatorAccess
    ) -> None:
        super().__init__(params, spec, streams, access)
        p = params[0]
        self.alpha, self.forced = self.column("alpha"), p.forced
        self.design = self.span = None
        if p.width == "design":
            self.design = make_design(self.column("ridge"), self.column("gamma"), spec, p)
            if p.prior == "given":
                assert isinstance(self.design, Ridge)
                clicks, misses = self.column("prior_clicks"), self.column("prior_misses")
                gram, b = given_sums(access.round_at, spec, clicks, misses)
                self.design.refit(gram, b, np.zeros(b.shape[:2], np.int64))
            self.state += tuple(f"design.{name}" for name in self.design.state)
        if p.forced:
            self.span = FeatureSpan(
                len(params), 1 if p.sharing == "shared" else spec.n_items, spec.n_features
            )
            self.state += ("span.complement",)

    def components(self, round: Round) -> tuple[FloatArray, FloatArray]:
        """Compute mean and confidence width of every candidate, on the scale of the bonus, two of
        float64 (R, K).
        """
        # imported slowly, and seldom needed
        from scipy.special import expit

        p = self.params[0]
        mean, variance = self.model.predict(round)
        if self.design is not None:
            variance = self.design.predict(round)[1]
        width = np.sqrt(variance)
        if p.alpha_schedule == "sqrt_log":
            width = np.sqrt(np.log(round.step + 1)) * width
        return (expit(mean) if p.bonus == "probability" else mean), width

    def scores(self, round: Round) -> FloatArray:
        mean, width = self.components(round)
        if self.span is None or round.step >= self.forced:
            return np.asarray(mean + self.alpha[:, None] * width)
        new = self.span.distance(round, self.model.models(round))
        # below every new one; a diverged row stops
        known = np.where(np.isnan(mean), np.nan, -1 / (1 + width))
        return np.where(new > 0, new, known)

    def explain(self, round: Round) -> Explanation:
        from scipy.special import expit

        if round.step < self.forced:
            return Explanation("score", self.scores(round), expit(self.model.predict(round)[0]))
        logit = self.params[0].bonus == "logit"
        return Explanation(
            "bonus",
            self.scores(round),
            *self.components(round),
            self.alpha[:, None],
            "alpha",
            logit,
        )

    def learn(self, round: Round, slate: IntArray, feedback: Feedback) -> None:
        super().learn(round, slate, feedback)
        exposures = self.exposure(feedback)
        if self.design is not None:
            self.design.update(*weighted(round, slate, feedback, exposures))
        if self.span is not None and round.step < self.forced:
            self.span.add(round, self.model.models(round), slate, exposures)

    def spectrum(self, bases: list[FloatArray]) -> FloatArray | None:
        return super().spectrum(bases) if self.design is None else self.design.spectrum(bases)

    @classmethod
    def test_params(cls) -> list[dict[str, Any]]:
        published = {
            "width": "design",
            "bonus": "probability",
            "alpha_schedule": "sqrt_log",
            "forced": 7,
        }
        kept = {"refit": 10, "history": 20, **published}
        ways: list[dict[str, Any]] = [{}, {"gamma": 0.98}, {"window": 20}]
        own = [
            {**kept, "sharing": "shared"},
            *({**kept, "sharing": "per_arm", **way} for way in ways),
        ]
        return [*super().test_params(), *own]

    @classmethod
    def memory(cls, params: Any, spec: SimulatorSpec) -> int:
        models = 1 if params.sharing == "shared" else spec.n_items
        design = design_memory(params, spec) if params.width == "design" else 0
        span = FeatureSpan.memory(models, spec.n_features) if params.forced else 0
        return super().memory(params, spec) + design + span
