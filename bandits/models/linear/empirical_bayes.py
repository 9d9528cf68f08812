"""Empirical Bayes priors of linear models that belong together: their mean and covariance, from their own data.

The weights of the models of a group are draws from N(mu, sigma^2 S). Given S, mu is the generalised least squares
estimate over all models (their weights integrated out) [1]_, with the ridge as its own prior; S follows by one step of
expectation maximisation [2]_. Matrices are in units of the noise variance sigma^2, as A is.

References
----------
.. [1] Laird, Ware (1982), Random-effects models for longitudinal data.
.. [2] Dempster, Laird, Rubin (1977), Maximum likelihood from incomplete data via the EM algorithm, section 4.5.
.. [3] MacKay (1992), Bayesian interpolation, section 4: the noise variance.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from bandits.base.types import BoolArray, FloatArray, IntArray

Prior = Literal["zero", "category", "pooled", "given"]


class GroupPrior(NamedTuple):
    """The prior of the models of one group: N(mean, sigma^2 covariance)."""

    mean: FloatArray
    covariance: FloatArray


def group_prior(gram: FloatArray, b: FloatArray, prior: FloatArray, ridge: float, noise: float) -> GroupPrior:
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
    """Estimate sigma^2: the sum of squared residuals over the observations less the effective parameters [3]_.

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
    effective = float((gram * inverse).sum())  # traces of G A^-1: both are symmetric
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
        return group_prior(A[known] - prior, b[known] - self.target[r, g], prior, float(self.ridge[r]), noise)

    def replace(self, r: int, g: int, mean: FloatArray, covariance: FloatArray | None) -> tuple[FloatArray, FloatArray]:
        """Replace the prior of a group; return what its models' A and b gain, (D, D) and (D,)."""
        precision = self.precision[r, g] if covariance is None else np.linalg.inv(covariance)
        precision = (precision + precision.T) / 2
        target = precision @ mean
        gained = precision - self.precision[r, g], target - self.target[r, g]
        self.precision[r, g], self.target[r, g] = precision, target
        return gained
