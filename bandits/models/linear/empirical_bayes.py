"""Empirical Bayes priors of linear models that belong together: their mean and covariance, from
their own data.

The weights of the models of a group are draws from N(mu, sigma^2 S). Given S, mu is the generalised
least squares estimate over all models (their weights integrated out) [1]_, with the ridge as its
own prior; S follows by one step of expectation maximisation [2]_. Matrices are in units of the
noise variance sigma^2, as A is.

References
----------
.. [1] Laird, Ware (1982), Random-effects models for longitudinal data.
.. [2] Dempster, Laird, Rubin (1977), Maximum likelihood from incomplete data via the EM algorithm,
       section 4.5.
.. [3] MacKay (1992), Bayesian interpolation, section 4: the noise variance.
"""

from __future__ import annotations

from typing import ClassVar, Literal, NamedTuple

import numpy as np

from bandits.base.types import (
    BoolArray,
    Feedback,
    FloatArray,
    IntArray,
    KeyArray,
    PredrawnSteps,
    Round,
    SimulatorSpec,
)

from .forgetting_logistic import fit_all
from .logistic import Logistic
from .ridge import Ridge

Prior = Literal["zero", "category", "pooled", "given"]


class GroupPrior(NamedTuple):
    """The prior of the models of one group: N(mean, sigma^2 covariance)."""

    mean: FloatArray
    covariance: FloatArray


def group_prior(
    gram: FloatArray, b: FloatArray, prior: FloatArray, ridge: float, noise: float
) -> GroupPrior:
    """Estimate the prior of a group from the data of its models.

    Parameters
    ----------
    gram : float64 (n, D, D)
        sum x x' of each model.
    b : float64 (n, D)
        sum r x.
    prior : float64 (D, D)
        Precision so far, S^-1.
    ridge : float
        Precision of the prior of mu.
    noise : float
        sigma^2.
    """
    inverse = np.linalg.inv(prior + gram)
    through = gram @ inverse
    weight = (gram - through @ gram).sum(axis=0)
    target = (b - (through @ b[..., None])[..., 0]).sum(axis=0)
    mean = np.linalg.solve(ridge * np.eye(len(prior)) + weight, target)
    away = (inverse @ (b + prior @ mean)[..., None])[..., 0] - mean
    covariance = inverse.mean(axis=0) + away.T @ away / (len(gram) * max(noise, 1e-9))
    return GroupPrior(mean, (covariance + covariance.T) / 2)


def noise_variance(
    gram: FloatArray, b: FloatArray, theta: FloatArray, inverse: FloatArray, squares: float, n: int
) -> float:
    """Estimate sigma^2: the sum of squared residuals over the observations less the effective
    parameters [3]_.

    Parameters
    ----------
    gram, inverse : float64 (M, D, D)
    b, theta : float64 (M, D)
        ``b`` without the prior's part.
    squares : float
        Sum of all squared rewards.
    n : int
        Observations.
    """
    fitted = (gram @ theta[..., None])[..., 0]
    residual = squares - 2 * float((theta * b).sum()) + float((theta * fitted).sum())
    # traces of G A^-1: both are symmetric
    effective = float((gram * inverse).sum())
    return max(residual, 0.0) / max(n - effective, 1e-9)


class PriorState:
    """Priors of the models of R rows, and the models' matrices with another prior in place.

    Parameters
    ----------
    kind : {"category", "pooled"}
    ridge : float64 (R,)
    groups : int64 (R, M)
        Group of each model; all 0 where they are pooled.
    n_features : int
        D.

    Attributes
    ----------
    precision : float64 (R, G, D, D)
    target : float64 (R, G, D)
        Precision times mean.
    """

    def __init__(self, kind: Prior, ridge: FloatArray, groups: IntArray, n_features: int) -> None:
        self.kind, self.ridge, self.groups = kind, ridge, groups
        R, G, D = len(ridge), int(groups.max()) + 1, n_features
        self.precision = np.empty((R, G, D, D))
        self.precision[:] = ridge[:, None, None, None] * np.eye(D)
        self.target = np.zeros((R, G, D))

    @staticmethod
    def memory(n_items: int, n_features: int) -> int:
        """Compute the bytes per row, with those of an estimate."""
        return 8 * (8 * (n_features + 1) * n_features + n_items * (1 + 5 * n_features**2))

    def estimate_category(
        self, r: int, g: int, A: FloatArray, b: FloatArray, seen: BoolArray, noise: float
    ) -> GroupPrior | None:
        """Estimate the prior of a category from its models with data; None with fewer than two.

        Parameters
        ----------
        A : float64 (M, D, D)
        b : float64 (M, D)
            Those of row r, with the prior in force.
        seen : bool (M,)
            Models with data.
        """
        known = seen & (self.groups[r] == g)
        if np.count_nonzero(known) < 2:
            return None
        prior = self.precision[r, g]
        return group_prior(
            A[known] - prior, b[known] - self.target[r, g], prior, float(self.ridge[r]), noise
        )

    def replace(
        self, r: int, g: int, mean: FloatArray, covariance: FloatArray | None
    ) -> tuple[FloatArray, FloatArray]:
        """Replace the prior of a group; return what its models' A and b gain, (D, D) and (D,)."""
        precision = self.precision[r, g] if covariance is None else np.linalg.inv(covariance)
        precision = (precision + precision.T) / 2
        target = precision @ mean
        gained = precision - self.precision[r, g], target - self.target[r, g]
        self.precision[r, g], self.target[r, g] = precision, target
        return gained


class PriorRidge(Ridge):
    """Ridge models, one per arm, with a prior that is estimated anew every ``every`` steps.

    With ``category`` it is the mean and the covariance of the models of the same category. With
    ``pooled`` its mean is the weights of one model shared by all arms, A^-1 b with A = ridge I +
    sum x x' over all of them, and its precision the ridge: in the hybrid of Li et al. the shared
    weights also know that arms differ.

    Parameters
    ----------
    ridge : float64 (R,)
    n_features, n_items : int
    kind : {"category", "pooled"}
    every : int
        m.
    groups : int64 (R, n_items)
        Category of each arm; all 0 where they are pooled.
    """

    STATE: ClassVar[tuple[str, ...]] = (*Ridge.STATE, "prior.precision", "prior.target", "squares")

    def __init__(
        self,
        ridge: FloatArray,
        n_features: int,
        n_items: int,
        kind: Prior,
        every: int,
        groups: IntArray,
    ) -> None:
        super().__init__(ridge, n_features, n_items, "per_arm")
        self.every, self.prior = every, PriorState(kind, ridge, groups, n_features)
        self.squares = np.zeros(len(ridge))

    def update(self, round: Round, slate: IntArray, feedback: Feedback) -> None:
        super().update(round, slate, feedback)
        self.squares += np.where(feedback.examined, feedback.rewards**2, 0.0).sum(axis=1)
        if (round.step + 1) % self.every == 0:
            self.estimate()

    def play(
        self,
        steps: PredrawnSteps,
        alive: BoolArray,
        ties: KeyArray,
        *,
        scale: FloatArray | None = None,
        noise: FloatArray | None = None,
        epsilon: FloatArray | None = None,
        gaps: FloatArray | None = None,
        exploration: FloatArray | None = None,
    ) -> IntArray | None:
        """Advance T predrawn steps, from one estimate of the prior to the next in compiled code.

        See `Ridge.play`.
        """
        found, begin = [], 0
        while begin < len(steps.context):
            step = steps.start + begin
            end = min(begin + self.every - step % self.every, len(steps.context))
            part = slice(begin, end)
            own = steps._replace(
                start=step,
                users=steps.users[part],
                segments=steps.segments[part],
                context=steps.context[part],
                row=steps.row[part],
                uniforms=steps.uniforms[part],
            )
            shown = super().play(
                own,
                alive,
                ties,
                scale=scale,
                noise=None if noise is None else noise[part],
                epsilon=None if epsilon is None else epsilon[part],
                gaps=None if gaps is None else gaps[part],
                exploration=None if exploration is None else exploration[part],
            )
            if shown is None:
                return None
            clicked = (own.uniforms < own.probabilities[own.row, shown]) & (shown >= 0)
            self.squares += clicked.sum(axis=0)
            if (steps.start + end) % self.every == 0:
                self.estimate()
            found.append(shown)
            begin = end
        return np.concatenate(found)

    def estimate(self) -> None:
        """Estimate the priors from all data so far, and put them in place of those before."""
        for r in range(len(self.ridge)):
            if np.isfinite(self.theta[r]).all() and self.count[r].any():
                (self._pool if self.prior.kind == "pooled" else self._estimate_categories)(r)

    def _pool(self, r: int) -> None:
        prior = self.prior
        own = prior.precision[r, 0]
        gram, b = (self.A[r] - own).sum(axis=0), (self.b[r] - prior.target[r, 0]).sum(axis=0)
        mean = np.linalg.solve(self.ridge[r] * np.eye(len(own)) + gram, b)
        _, gained = prior.replace(r, 0, mean, None)
        self.b[r] += gained
        self.theta[r] = (self.inverse[r] @ self.b[r][..., None])[..., 0]

    def _estimate_categories(self, r: int) -> None:
        prior, groups = self.prior, self.prior.groups[r]
        gram, b = self.A[r] - prior.precision[r, groups], self.b[r] - prior.target[r, groups]
        noise = noise_variance(
            gram,
            b,
            self.theta[r],
            self.inverse[r],
            float(self.squares[r]),
            int(self.count[r].sum()),
        )
        for g in range(prior.precision.shape[1]):
            found = prior.estimate_category(r, g, self.A[r], self.b[r], self.count[r] > 0, noise)
            if found is None:
                continue
            more, gained = prior.replace(r, g, *found)
            arms = np.flatnonzero(groups == g)
            self.A[r, arms] += more
            self.b[r, arms] += gained
            # models without data: the prior itself
            new = self.count[r, arms] == 0
            self.A[r, arms[new]], self.b[r, arms[new]] = prior.precision[r, g], prior.target[r, g]
            self.inverse[r, arms[new]], self.theta[r, arms[new]] = found.covariance, found.mean
            inverse = np.linalg.inv(self.A[r, arms[~new]])
            self.inverse[r, arms[~new]] = (inverse + inverse.transpose(0, 2, 1)) / 2
            self.theta[r, arms[~new]] = (
                self.inverse[r, arms[~new]] @ self.b[r, arms[~new]][..., None]
            )[..., 0]


class PriorLogistic(Logistic):
    """Logistic models, one per arm, with a prior that is estimated anew every ``every`` steps.

    With ``category`` it is the mean and the covariance of the models of the same category,
    estimated from their Laplace approximations: a model's data count as Gaussian with precision H
    minus that of the prior. With ``pooled`` its mean is the weights of one logistic model shared by
    all arms, and its precision the ridge. Where models are fitted exactly (``refit``), they are
    fitted to the new prior at once.

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
        self.pool = (
            Logistic(ridge, spec, "shared", refit=refit, history=history)
            if kind == "pooled"
            else None
        )

    @property
    def state(self) -> tuple[str, ...]:
        pool = () if self.pool is None else tuple(f"pool.{name}" for name in self.pool.state)
        return (*super().state, "prior.precision", "prior.target", *pool)

    def update(
        self, round: Round, slate: IntArray, feedback: Feedback, shows: FloatArray | None = None
    ) -> None:
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
            fit_all(self.posterior, self.history)

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
        center = (
            (p.anchor[r, arms] @ p.center[r, arms][..., None])[..., 0] + gained
            if self.refit
            else None
        )
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
