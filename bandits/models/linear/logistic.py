"""Bayesian logistic regression, batched over rows and models: MAP and Laplace posterior.

theta = argmin of sum log loss + lambda/2 |theta|^2; H = lambda I + sum mu (1 - mu) x x' at theta;
posterior N(theta, H^-1). Updates run at two speeds. After each observation the posterior so far
serves as a Gaussian prior: the MAP moves along H^-1 x by a scalar, and H grows by rank one. Every
``refit`` observations of a model the MAP of the whole history is found by Newton's method, and H is
computed there.

References
----------
Spiegelhalter, Lauritzen (1990), Sequential updating of conditional probabilities on directed
graphical structures; Chapelle, Li (2011), An empirical evaluation of Thompson sampling, Algorithm 3
(with a diagonal H); Bishop (2006), Pattern recognition and machine learning, section 4.5.1."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np

from bandits.base.types import Feedback, FloatArray, IntArray, Round, SimulatorSpec

from . import logistic_kernels, ridge_kernels
from .logistic_fit import History
from .logistic_kernels import Posterior
from .ridge import spectrum

Sharing = Literal["per_arm", "shared"]
Covariance = Literal["full", "diagonal"]


class Logistic:
    """Logistic models of R rows: one per arm, or one shared by all arms.

    Parameters
    ----------
    ridge : float64 (R,)
        lambda > 0.
    spec : SimulatorSpec
    sharing : {"per_arm", "shared"}
    refit : int
        Observations of a model from one exact fit to the next; 0 for never.
    history : int
        L, the history of the exact fit: exposures and clicks of L distinct pairs of model and
        feature vector per row. When it is full, the posterior becomes the prior and the history
        starts empty: until then the fit is that of all observations, afterwards that of the later
        ones given a Laplace posterior of the rest.
    covariance : {"full", "diagonal"}
        Diagonal keeps the diagonal of H alone, in updates too: O(N) per observation. Only an exact
        fit computes the whole of H, temporarily.
    joint : bool
        Keep the Cholesky factor that `draw` needs for a posterior shared by several candidates.
    """

    STATE: ClassVar[tuple[str, ...]] = tuple(
        [f"posterior.{name}" for name in Posterior._fields]
        + [f"history.{name}" for name in History._fields]
    )

    def __init__(
        self,
        ridge: FloatArray,
        spec: SimulatorSpec,
        sharing: Sharing,
        *,
        refit: int,
        history: int,
        covariance: Covariance = "full",
        joint: bool = False,
    ) -> None:
        R, D, M = len(ridge), spec.n_features, 1 if sharing == "shared" else spec.n_items
        self.sharing, self.refit = sharing, refit
        self.diagonal = covariance == "diagonal" or D == 1
        H = np.empty((R, M, 1 if self.diagonal else D, D))
        H[:] = ridge[:, None, None, None] * (1.0 if self.diagonal else np.eye(D))
        inverse = np.empty_like(H)
        inverse[:] = (1 / ridge)[:, None, None, None] * (1.0 if self.diagonal else np.eye(D))
        factored = joint and sharing == "shared" and not self.diagonal
        self.posterior = Posterior(
            theta=np.zeros((R, M, D)),
            H=H,
            inverse=inverse,
            factor=np.sqrt(H) if factored else np.zeros((R, M, 0, 0)),
            seen=np.zeros((R, M), np.int64),
            center=np.zeros((R, M, D)),
            anchor=H.copy() if refit else np.zeros((R, M, 0, 0)),
        )
        self.history = make_history(R, history + 1 if refit else 0, spec.n_stored)
        self._one = np.zeros((R, 1), np.int64)

    @property
    def state(self) -> tuple[str, ...]:
        """Names of the arrays that learning changes."""
        return self.STATE

    @staticmethod
    def memory(
        spec: SimulatorSpec, sharing: Sharing, *, refit: int, history: int, covariance: Covariance
    ) -> int:
        """Compute the bytes per row."""
        D, models = spec.n_features, 1 if sharing == "shared" else spec.n_items
        matrix = D if covariance == "diagonal" else D * D
        fit = 16 * D * D if refit else 0
        return (
            fit
            + 8 * models * (4 * matrix + 2 * D + 1)
            + history_memory(history + 1 if refit else 0, spec.n_stored)
        )

    def models(self, round: Round) -> IntArray:
        """Return the model index of every candidate, int64 (R, K)."""
        if self.sharing != "shared":
            return round.items
        if self._one.shape != round.items.shape:
            self._one = np.zeros(round.items.shape, np.int64)
        return self._one

    def predict(self, round: Round) -> tuple[FloatArray, FloatArray]:
        """Compute mean theta . x and variance x' H^-1 x of every candidate's logit, two of float64
        (R, K).
        """
        values, columns, _ = round.contexts
        kernel = logistic_kernels.diagonal_predict if self.diagonal else ridge_kernels.ridge_predict
        p = self.posterior
        return kernel(values, columns, round.context, self.models(round), p.theta, p.inverse)

    def sample(self, round: Round, sigma: FloatArray, normals: FloatArray) -> FloatArray:
        """Compute the logits under ONE draw theta~ ~ N(theta, sigma^2 H^-1) per model, float64 (R,
        K).

        Parameters
        ----------
        sigma : float64 (R,)
        normals : float64 (R, W)
            Standard normals, W = `ridge.Ridge.noise_width`: one per candidate if models are per arm
            (their logits are independent and drawn directly), one per feature if all arms share one
            theta~.
        """
        if self.sharing == "per_arm":
            mean, variance = self.predict(round)
            return mean + sigma[:, None] * np.sqrt(variance) * normals
        values, columns, _ = round.contexts
        theta = self.draw(sigma, normals)
        return ridge_kernels.ridge_mean(
            values, columns, round.context, self.models(round), theta[:, None]
        )

    def draw(self, sigma: FloatArray, normals: FloatArray) -> FloatArray:
        """Draw the shared parameter of each row from N(theta, sigma^2 H^-1), float64 (R, D)."""
        p = self.posterior
        if self.diagonal:
            noise = normals * np.sqrt(p.inverse[:, 0, 0])
        else:
            noise = ridge_kernels.posterior_noise(
                np.ascontiguousarray(p.factor[:, 0]), np.ascontiguousarray(normals)
            )
        drawn: FloatArray = p.theta[:, 0] + sigma[:, None] * noise
        return drawn

    def update(
        self, round: Round, slate: IntArray, feedback: Feedback, shows: FloatArray | None = None
    ) -> None:
        """Update the models; ``shows (R, S)`` is the exposure of each slot, by default 1 if it was
        examined.
        """
        shows = feedback.examined.astype(np.float64) if shows is None else shows
        values, columns, _ = round.contexts
        logistic_kernels.update(
            values,
            values.view(np.int64),
            columns,
            round.context,
            self.models(round),
            slate,
            feedback.rewards,
            shows,
            self.posterior,
            self.history,
            self.refit,
        )

    def spectrum(self, bases: list[FloatArray]) -> FloatArray:
        """Compute the eigenvalues of H on the span of the available features.

        See `ridge.spectrum`.
        """
        H = self.posterior.H
        if self.diagonal:
            H = H[:, :, 0, :, None] * np.eye(H.shape[3])
        return spectrum(H, bases)


def make_history(rows: int, size: int, n_stored: int) -> History:
    """Create an empty history of up to ``size`` distinct pairs of model and feature vector."""
    slots = 1 << (2 * size).bit_length()
    return History(
        values=np.zeros((rows, size, n_stored)),
        columns=np.zeros((rows, size, n_stored), np.int64),
        model=np.zeros((rows, size), np.int64),
        shows=np.zeros((rows, size)),
        clicks=np.zeros((rows, size)),
        used=np.zeros(rows, np.int64),
        slots=np.full((rows, slots), -1),
    )


def history_memory(size: int, n_stored: int) -> int:
    """Compute the bytes of one row of a history."""
    return 8 * (size * (2 * n_stored + 3) + 1 + (1 << (2 * size).bit_length()))
