"""Logistic models per arm whose prior is estimated from those of other arms (see `empirical_bayes`)."""

from __future__ import annotations

import numpy as np

from bandits.base.types import Feedback, FloatArray, IntArray, Round, SimulatorSpec

from . import forgetting_kernels
from .empirical_bayes import Prior, PriorState
from .logistic import Logistic


class PriorLogistic(Logistic):
    """Logistic models, one per arm, with a prior that is estimated anew every ``every`` steps.

    With ``category`` it is the mean and the covariance of the models of the same category, estimated from their Laplace
    approximations: a model's data count as Gaussian with precision H minus that of the prior. With ``pooled`` its mean
    is the weights of one logistic model shared by all arms, and its precision the ridge. Where models are fitted
    exactly (``refit``), they are fitted to the new prior at once.

    Parameters
    ----------
    ridge : float64 (R,)
    spec : SimulatorSpec
    kind : {"category", "pooled"}
    every : int
        m.
    groups : int64 (R, n_items)
        Category of each arm; all 0 where they are pooled.
    """

    def __init__(
        self,
        ridge: FloatArray,
        spec: SimulatorSpec,
        kind: Prior,
        every: int,
        groups: IntArray,
        *,
        refit: int,
        history: int,
    ) -> None:
        super().__init__(ridge, spec, "per_arm", refit=refit, history=history)
        self.every, self.prior = every, PriorState(kind, ridge, groups, spec.n_features)
        self.pool = Logistic(ridge, spec, "shared", refit=refit, history=history) if kind == "pooled" else None

    @property
    def state(self) -> tuple[str, ...]:
        pool = () if self.pool is None else tuple(f"pool.{name}" for name in self.pool.state)
        return (*super().state, "prior.precision", "prior.target", *pool)

    def update(self, round: Round, slate: IntArray, feedback: Feedback, shows: FloatArray | None = None) -> None:
        super().update(round, slate, feedback, shows)
        if self.pool is not None:
            self.pool.update(round, slate, feedback, shows)
        if (round.step + 1) % self.every == 0:
            self.estimate()

    def estimate(self) -> None:
        """Estimate the priors from all data so far, and put them in place of those before."""
        changed = False
        for r, theta in enumerate(self.posterior.theta):
            if not np.isfinite(theta).all() or not self.posterior.seen[r].any():
                continue
            for g in range(self.prior.precision.shape[1]):
                changed |= self._estimate(r, g)
        if changed and self.refit:
            forgetting_kernels.fit_all(self.posterior, self.history)

    def _estimate(self, r: int, g: int) -> bool:
        p, prior = self.posterior, self.prior
        b = (p.H[r] @ p.theta[r][..., None])[..., 0]
        if self.pool is not None:
            more, gained = prior.replace(r, g, self.pool.posterior.theta[r, 0], None)
        else:
            found = prior.estimate_category(r, g, p.H[r], b, p.seen[r] > 0, 1.0)
            if found is None:
                return False
            more, gained = prior.replace(r, g, *found)
        arms = np.flatnonzero(prior.groups[r] == g)
        center = (p.anchor[r, arms] @ p.center[r, arms][..., None])[..., 0] + gained if self.refit else None
        p.H[r, arms] += more
        p.inverse[r, arms] = _inverse(p.H[r, arms])
        p.theta[r, arms] = (p.inverse[r, arms] @ (b[arms] + gained)[..., None])[..., 0]
        if center is not None:
            p.anchor[r, arms] += more
            p.center[r, arms] = (_inverse(p.anchor[r, arms]) @ center[..., None])[..., 0]
        return True


def _inverse(matrices: FloatArray) -> FloatArray:
    inverse = np.linalg.inv(matrices)
    return np.asarray((inverse + inverse.transpose(0, 2, 1)) / 2)
