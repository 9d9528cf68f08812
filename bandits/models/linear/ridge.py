"""Bayesian ridge regression, batched over rows and models.

A = ridge I + sum x x', b = sum r x, theta = A^-1 b; posterior N(theta, sigma^2 A^-1). The inverse
follows by rank-one updates. It is computed afresh every 4,096 updates of a model, and where an
update would cancel too many digits (`rank_one.HUGE`)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, ClassVar, Literal

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

from . import hybrid_kernels, play_kernels, ridge_kernels

Sharing = Literal["per_arm", "shared", "hybrid", "per_category"]


# bytes of the matrices that are decomposed at a time
AT_ONCE = 2**22


class Ridge:
    """Ridge models of R rows: one per arm, one shared by all arms, hybrid (both), or one per
    category of arms.

    Parameters
    ----------
    ridge : float64 (R,)
        lambda > 0; also of the shared part of the hybrid.
    n_features, n_items : int
        D and the number of arms.
    sharing : {"per_arm", "shared", "hybrid", "per_category"}
        Hybrid: Li et al. (2010), Algorithm 2, with z = x; equal to one ridge on [x; one-hot(arm)
        (x) x].
    joint : bool
        Keep the Cholesky factor that draws from a posterior shared by several candidates.
    groups : int64 (R, n_items), optional
        Category of each arm, from 0 (``per_category``).

    Attributes
    ----------
    A, inverse : float64 (R, M, D, D)
    b, theta : float64 (R, M, D)
        M models: one per arm or category, or 1. In the hybrid ``theta`` is A_a^-1 b_a.
    count : int64 (R, M)
        Observations of each model.
    """

    STATE: ClassVar[tuple[str, ...]] = ("A", "inverse", "b", "theta", "count", "factor")
    HYBRID: ClassVar[tuple[str, ...]] = ("A0", "shared", "b0", "beta")
    compiled: ClassVar[bool] = True
    """Whether `play` learns as `update` does."""

    def __init__(
        self,
        ridge: FloatArray,
        n_features: int,
        n_items: int,
        sharing: Sharing,
        *,
        joint: bool = False,
        groups: IntArray | None = None,
    ) -> None:
        self.ridge, self.sharing, self.groups = ridge, sharing, groups
        R, D, M = len(ridge), n_features, 1 if sharing == "shared" else n_items
        if groups is not None:
            M = int(groups.max()) + 1
        eye = np.eye(D)
        self.A = np.empty((R, M, D, D))
        self.A[:] = ridge[:, None, None, None] * eye
        self.inverse = np.empty((R, M, D, D))
        self.inverse[:] = (1 / ridge)[:, None, None, None] * eye
        self.b, self.theta = np.zeros((R, M, D)), np.zeros((R, M, D))
        self.count = np.zeros((R, M), np.int64)
        root = np.sqrt(ridge)[:, None, None] * eye
        self.factor = np.zeros((R, M, 0, 0))
        if sharing == "hybrid":
            self.A0, self.shared = self.A[:, 0].copy(), self.inverse[:, 0].copy()
            self.b0, self.beta = np.zeros((R, D)), np.zeros((R, D))
            self.factor = root if joint else np.zeros((R, 0, 0))
        elif sharing != "per_arm" and joint:
            self.factor = np.repeat(root[:, None], M, axis=1)
        self._rows = np.arange(R)[:, None]
        # bases of arms, and of categories
        self._merged: tuple[list[FloatArray], list[FloatArray]] | None = None
        self._one = np.zeros((R, 1), np.int64)
        # features, and the result of `equal_features`
        self._equal: tuple[FloatArray, IntArray, IntArray] | None = None

    @property
    def state(self) -> tuple[str, ...]:
        """Names of the arrays that learning changes."""
        return self.STATE + (self.HYBRID if self.sharing == "hybrid" else ())

    @staticmethod
    def memory(spec: SimulatorSpec, sharing: Sharing) -> int:
        """Compute the bytes per row."""
        models, matrices = n_models(spec, sharing), 3 if sharing == "per_category" else 2
        return 8 * (
            models * (matrices * spec.n_features**2 + 2 * spec.n_features + 1)
            + 4 * spec.n_features**2
        )

    def models(self, round: Round) -> IntArray:
        """Return the model index of every candidate, int64 (R, K).

        Raises
        ------
        ValueError
            The round has another number of features than the models; compiled kernels would read
            beyond the arrays.
        """
        check_features(round, self.b.shape[2])
        if self.groups is not None:
            return np.asarray(self.groups[self._rows, round.items])
        if self.sharing != "shared":
            return round.items
        if self._one.shape != round.items.shape:
            self._one = np.zeros(round.items.shape, np.int64)
        return self._one

    def mean(self, round: Round) -> FloatArray:
        """Compute the posterior mean of every candidate's reward, float64 (R, K)."""
        if self.sharing == "hybrid":
            return self.predict(round)[0]
        values, columns, _ = round.contexts
        return ridge_kernels.ridge_mean(
            values, columns, round.context, self.models(round), self.theta
        )

    def predict(self, round: Round) -> tuple[FloatArray, FloatArray]:
        """Compute posterior mean and x' A^-1 x (the variance over sigma^2) of every candidate, two
        of (R, K).
        """
        values, columns, _ = round.contexts
        models = self.models(round)
        if self.sharing == "hybrid":
            mean, variance, _ = hybrid_kernels.hybrid_predict(
                values,
                columns,
                round.context,
                models,
                self.ridge,
                self.theta,
                self.inverse,
                self.beta,
                self.shared,
            )
            return mean, variance
        return ridge_kernels.ridge_predict(
            values, columns, round.context, models, self.theta, self.inverse
        )

    def sample(self, round: Round, sigma: FloatArray, normals: FloatArray) -> FloatArray:
        """Compute each candidate's reward under ONE posterior draw per model, float64 (R, K).

        Parameters
        ----------
        sigma : float64 (R,)
            Standard deviation of the reward noise.
        normals : float64 (R, W)
            Standard normals, W = `noise_width`.

        Notes
        -----
        Per-arm models have one candidate each and are independent, so theta~ . x is drawn directly
        from N(theta . x, sigma^2 x' A_a^-1 x). A shared theta~ is drawn as a vector; that of a
        category from the D normals of its first candidate."""
        values, columns, _ = round.contexts
        models = self.models(round)
        D = self.b.shape[2]
        if self.sharing == "per_arm":
            mean, variance = self.predict(round)
            return mean + sigma[:, None] * np.sqrt(variance) * normals
        if self.sharing == "shared":
            theta = self.draw(sigma, normals)
            return ridge_kernels.ridge_mean(values, columns, round.context, models, theta[:, None])
        if self.sharing == "per_category":
            # of each candidate
            own = normals.reshape(len(normals), -1, D)
            return ridge_kernels.ridge_sample(
                values, columns, round.context, models, self.theta, self.factor, sigma, own
            )
        beta = self.draw(sigma, normals[:, :D])
        mean, _, own = hybrid_kernels.hybrid_predict(
            values,
            columns,
            round.context,
            models,
            self.ridge,
            self.theta,
            self.inverse,
            beta,
            self.shared,
        )
        return mean + sigma[:, None] * np.sqrt(own) * normals[:, D:]

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
        """Advance T predrawn steps in one compiled loop.

        None with dense features, hybrid or category models.

        Parameters
        ----------
        ties : uint64 (R,)
            Keys for breaking ties (`bandits.base.selection`).
        scale : float64 (R,), optional
            Factor of the width sqrt(x' A^-1 x) in the score; without it the score is the mean.
        noise : float64 (T, R, `noise_width`), optional
            Standard normals of a posterior draw: see `sample`.
        epsilon, exploration : float64 (T, R), (T, R, 2), optional
            Probability of a random item, and the uniforms that decide whether and which.
        gaps, exploration : float64 (T, R), (T, R, K), optional
            Weight of inverse gaps, and the uniforms that decide which item
            (`bandits.base.selection.inverse_gaps`).

        Returns
        -------
        int64 (T, R), optional
            The items shown.
        """
        values, columns, n_features = steps.contexts
        if self.sharing in ("hybrid", "per_category") or values.shape[2] == n_features:
            return None
        R, drawn = steps.context.shape[1], noise is not None
        arguments: tuple[Any, ...] = (
            steps.context,
            steps.probabilities,
            steps.row,
            steps.uniforms,
            alive,
            ties,
            steps.start,
            self.A,
            self.inverse,
            self.b,
            self.theta,
            self.count,
            self.factor,
            np.zeros(R) if scale is None else scale,
            scale is not None and not (drawn and self.sharing == "shared"),
            np.empty((0, 0, 0)) if noise is None else noise,
            np.empty((0, 0)) if epsilon is None else epsilon,
            np.empty((0, 0)) if gaps is None else gaps,
            np.empty((0, 0, 0)) if exploration is None else exploration,
        )
        if self.sharing == "per_arm":
            return play_kernels.play_per_arm(values, columns, *arguments)
        if self._equal is None or self._equal[0] is not values:
            self._equal = values, *equal_features(values, columns)
        return play_kernels.play_shared(values, columns, *self._equal[1:], *arguments)

    def draw(self, sigma: FloatArray, normals: FloatArray) -> FloatArray:
        """Draw the shared parameter of each row from N(theta, sigma^2 A^-1), float64 (R, D)."""
        hybrid = self.sharing == "hybrid"
        center, factor = (
            (self.beta, self.factor) if hybrid else (self.theta[:, 0], self.factor[:, 0])
        )
        noise = ridge_kernels.posterior_noise(
            np.ascontiguousarray(factor), np.ascontiguousarray(normals)
        )
        drawn: FloatArray = center + sigma[:, None] * noise
        return drawn

    @staticmethod
    def noise_width(spec: SimulatorSpec, sharing: Sharing) -> int:
        """Count the standard normals that `sample` needs per row and step."""
        if sharing == "per_category":
            return spec.n_candidates * spec.n_features
        shared = 0 if sharing == "per_arm" else spec.n_features
        return shared + (0 if sharing == "shared" else spec.n_candidates)

    def update(self, round: Round, slate: IntArray, feedback: Feedback) -> None:
        """Update the models with the examined slots of the slate."""
        self._update(round, slate, feedback.rewards, feedback.examined)

    def _update(
        self, round: Round, slate: IntArray, rewards: FloatArray, examined: BoolArray
    ) -> None:
        values, columns, _ = round.contexts
        seen = (values, columns, round.context, self.models(round), slate, rewards, examined)
        own = (self.A, self.inverse, self.b, self.theta, self.count)
        if self.sharing == "hybrid":
            shared = (self.A0, self.shared, self.b0, self.beta, self.factor)
            hybrid_kernels.hybrid_update(*seen, self.ridge, *own, *shared)
        else:
            ridge_kernels.ridge_update(*seen, *own, self.factor)

    def refit(self, gram: FloatArray, b: FloatArray, count: IntArray) -> None:
        """Fit afresh from sums: ``gram`` sum x x' (R, M, D, D), ``b`` sum r x (R, M, D), ``count
        (R, M)``.
        """
        if self.sharing == "hybrid":
            raise ValueError("a hybrid model cannot be refitted from sums per arm")
        self.A[...] = gram + self.ridge[:, None, None, None] * np.eye(gram.shape[-1])
        self.b[...], self.count[...] = b, count
        # a diverged row must not stop the others
        sound = np.asarray(np.isfinite(self.A).all(axis=(2, 3)))
        safe = np.where(sound[..., None, None], self.A, np.eye(gram.shape[-1]))
        self.inverse[...] = np.where(
            sound[..., None, None], each_matrix(np.linalg.inv, safe), np.nan
        )
        self.theta[...] = (self.inverse @ self.b[..., None])[..., 0]
        if self.factor.shape[-1]:
            self.factor[...] = np.where(
                sound[..., None, None], each_matrix(np.linalg.cholesky, safe), np.nan
            )

    def spectrum(self, bases: list[FloatArray]) -> FloatArray:
        """Compute the eigenvalues of A on the span of the available features; see `spectrum`."""
        if self.groups is not None:
            if self._merged is None or self._merged[0] is not bases:
                self._merged = bases, merged_bases(bases, self.groups)
            bases = self._merged[1]
        return spectrum(self.A, bases)


def n_models(spec: SimulatorSpec, sharing: str) -> int:
    """Count the models of a row, at most."""
    categories = spec.n_categories or spec.n_items
    return {"shared": 1, "per_category": categories}.get(sharing, spec.n_items)


def merged_bases(bases: list[FloatArray], groups: IntArray) -> list[FloatArray]:
    """Return an orthonormal basis (D, m) of the span of each category's features, in any of the
    rows.

    Parameters
    ----------
    bases : list of float64 (D, m_k)
        Those of the arms.
    groups : int64 (R, n_items)
    """
    out = []
    for g in range(int(groups.max()) + 1):
        own = np.concatenate([bases[k] for k in np.flatnonzero((groups == g).any(axis=0))], axis=1)
        vectors, values, _ = np.linalg.svd(own, full_matrices=False)
        out.append(np.ascontiguousarray(vectors[:, values > 1e-9]))
    return out


def equal_features(values: FloatArray, columns: IntArray) -> tuple[IntArray, IntArray]:
    """Group the candidates of each context by their feature vectors.

    Returns
    -------
    int64 (C, K)
        The candidates, those with the same vector side by side.
    int64 (C, U + 1)
        Where each of at most U groups begins, then K.
    """
    stored = np.concatenate([values, columns], axis=2)
    of = [np.unique(x, axis=0, return_inverse=True)[1].reshape(-1) for x in stored]
    order = np.stack([np.argsort(groups, kind="stable") for groups in of])
    largest = max(int(groups.max()) for groups in of)
    begin = np.stack([np.searchsorted(np.sort(groups), range(largest + 2)) for groups in of])
    return order, begin


def check_features(round: Round, n_features: int) -> None:
    """Raise ValueError unless the candidates of a round have as many features as a model."""
    if (n := round.contexts.n_features) != n_features:
        raise ValueError(
            f"the round has {n} features and the model {n_features}; a linear agent passes "
            "self.transformed(round)"
        )


def each_matrix(decompose: Callable[[FloatArray], Any], matrices: FloatArray) -> FloatArray:
    """Decompose matrices (R, M, D, D); NaN where the decomposition fails."""
    try:
        return np.asarray(decompose(matrices))
    except np.linalg.LinAlgError:
        out = np.full(matrices.shape, np.nan)
        for place in np.ndindex(*matrices.shape[:2]):
            with suppress(np.linalg.LinAlgError):
                out[place] = decompose(matrices[place])
        return out


def spectrum(A: FloatArray, bases: list[FloatArray]) -> FloatArray:
    """Compute the eigenvalues of design matrices ``A (R, M, D, D)`` on the span of the available
    features.

    Parameters
    ----------
    bases : list of float64 (D, m_k)
        Orthonormal basis of that span: one per arm, or a single one for a shared model.

    Returns
    -------
    float64 (R, M, m)
        Descending, NaN-padded.
    """
    R, M, D, _ = A.shape
    out = np.full((R, M, max(basis.shape[1] for basis in bases)), np.nan)
    at_once = max(1, AT_ONCE // (8 * D * D))
    # those of equal width at once
    for width in {basis.shape[1] for basis in bases[:M]}:
        arms = [m for m in range(M) if bases[m].shape[1] == width]
        B = np.stack([bases[m] for m in arms])
        for begin in range(0, R * len(arms), at_once):
            row, arm = np.divmod(np.arange(begin, min(begin + at_once, R * len(arms))), len(arms))
            model, basis = np.take(arms, arm), B[arm]
            restricted = basis.transpose(0, 2, 1) @ A[row, model] @ basis
            # a diverged row has no eigenvalues
            sound = np.isfinite(restricted).all(axis=(1, 2))
            values = np.full(restricted.shape[:2], np.nan)
            values[sound] = np.linalg.eigvalsh(restricted[sound])[:, ::-1]
            out[row, model, :width] = values
    return out
