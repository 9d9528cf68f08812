"""Ridge models for non-stationary environments: a sliding window, or a discount factor."""

from __future__ import annotations

import numpy as np
from numba import njit

from bandits.base.types import BoolArray, Feedback, FloatArray, IntArray, Round, SimulatorSpec

from . import ridge_kernels
from .ridge import Ridge, Sharing, check_features, each_matrix, spectrum


@njit(cache=True, nogil=True)
def discount_predict(
    values: FloatArray,
    columns: IntArray,
    context: IntArray,
    model: IntArray,
    step: int,
    gamma: FloatArray,
    ridge: FloatArray,
    stamp: IntArray,
    vectors: FloatArray,
    eigenvalues: FloatArray,
    turned: FloatArray,
    target: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Compute mean and variance of every candidate, two of float64 (R, K).

    In eigenvector coordinates of the discounted Gram matrix: y = (age g + ridge)^-1 Q'x; mean = age
    y . Q'b, variance = y' (age^2 Q' G~ Q + ridge I) y, with age = gamma^(step - stamp)."""
    R, K = model.shape
    N, D = values.shape[2], target.shape[2]
    mean, variance = np.empty((R, K)), np.empty((R, K))
    y = np.empty(D)
    for r in range(R):
        c = context[r]
        for k in range(K):
            m = model[r, k]
            age = gamma[r] ** (step - stamp[r, m])
            total = 0.0
            for j in range(D):
                inner = 0.0
                for n in range(N):
                    inner += vectors[r, m, columns[c, k, n], j] * values[c, k, n]
                y[j] = inner / (age * eigenvalues[r, m, j] + ridge[r])
                total += age * y[j] * target[r, m, j]
            quadratic = 0.0
            for i in range(D):
                inner = 0.0
                for j in range(D):
                    inner += turned[r, m, i, j] * y[j]
                quadratic += y[i] * (age * age * inner + ridge[r] * y[i])
            mean[r, k] = total
            variance[r, k] = max(quadratic, 0.0)
    return mean, variance


@njit(cache=True, nogil=True)
def discount_update(
    values: FloatArray,
    columns: IntArray,
    context: IntArray,
    model: IntArray,
    slate: IntArray,
    rewards: FloatArray,
    examined: BoolArray,
    step: int,
    gamma: FloatArray,
    gram: FloatArray,
    gram2: FloatArray,
    b: FloatArray,
    stamp: IntArray,
    vectors: FloatArray,
    eigenvalues: FloatArray,
    turned: FloatArray,
    target: FloatArray,
) -> None:
    """Discount the models of the examined slots to the end of this step, add the observations,
    decompose afresh.
    """
    R, S = slate.shape
    N = values.shape[2]
    for r in range(R):
        c = context[r]
        for s in range(S):
            if not examined[r, s]:
                continue
            k = slate[r, s]
            m = model[r, k]
            age = gamma[r] ** (step + 1 - stamp[r, m])
            gram[r, m] *= age
            gram2[r, m] *= age * age
            b[r, m] *= age
            stamp[r, m] = step + 1
            for i in range(N):
                a = columns[c, k, i]
                b[r, m, a] += rewards[r, s] * values[c, k, i]
                for j in range(N):
                    product = values[c, k, i] * values[c, k, j]
                    gram[r, m, a, columns[c, k, j]] += product
                    gram2[r, m, a, columns[c, k, j]] += product
            values_found, basis = np.linalg.eigh(gram[r, m])
            basis = np.ascontiguousarray(basis)
            transposed = np.ascontiguousarray(basis.T)
            vectors[r, m] = basis
            eigenvalues[r, m] = np.maximum(values_found, 0.0)
            turned[r, m] = transposed @ gram2[r, m] @ basis
            target[r, m] = transposed @ b[r, m]


class SlidingWindowRidge(Ridge):
    """Ridge models of the last ``window`` steps.

    Observations that leave the window are removed by rank-one downdates.

    The window counts global time: a step leaves it whether or not its arm was chosen since.

    References
    ----------
    Cheung, Simchi-Levi, Zhu (2019), Learning to optimize under non-stationarity: SW-UCB.
    """

    compiled = False
    RING = ("ring_values", "ring_columns", "ring_model", "ring_reward", "ring_seen")

    def __init__(
        self, ridge: FloatArray, spec: SimulatorSpec, sharing: Sharing, window: int
    ) -> None:
        super().__init__(ridge, spec.n_features, spec.n_items, sharing)
        shape = (window, len(ridge), spec.slate)
        self.window = window
        self.ring_values = np.zeros((*shape, spec.n_stored))
        self.ring_columns = np.zeros((*shape, spec.n_stored), np.int64)
        self.ring_model = np.zeros(shape, np.int64)
        self.ring_reward = np.zeros(shape)
        self.ring_seen = np.zeros(shape, np.bool_)
        self._rows = np.arange(len(ridge))[:, None]

    @property
    def state(self) -> tuple[str, ...]:
        return super().state + self.RING

    def update(self, round: Round, slate: IntArray, feedback: Feedback) -> None:
        at = round.step % self.window
        ridge_kernels.ridge_forget(
            self.ring_values[at],
            self.ring_columns[at],
            self.ring_model[at],
            self.ring_reward[at],
            self.ring_seen[at],
            self.A,
            self.inverse,
            self.b,
            self.theta,
            self.count,
        )
        super().update(round, slate, feedback)
        values, columns, _ = round.contexts
        context = round.context[:, None]
        self.ring_values[at], self.ring_columns[at] = (
            values[context, slate],
            columns[context, slate],
        )
        self.ring_model[at] = self.models(round)[self._rows, slate]
        self.ring_reward[at], self.ring_seen[at] = feedback.rewards, feedback.examined

    def replace_window(
        self,
        step: IntArray,
        slot: IntArray,
        values: FloatArray,
        model: IntArray,
        rewards: FloatArray,
        seen: BoolArray,
    ) -> None:
        """Replace what the window will take back, after `refit` to the same observations with other
        features.

        Parameters
        ----------
        step, slot : int64 (n,)
            Of the observations, all within the window; those that are not given are not taken back.
        values : float64 (n, R, D)
        model : int64 (n, R)
        rewards : float64 (n, R)
        seen : bool (n, R)
        """
        # a diverged row takes nothing back
        at, sound = step % self.window, np.isfinite(self.A).all(axis=(1, 2, 3))
        self.ring_seen[...] = False
        self.ring_values[at, :, slot], self.ring_columns[at, :, slot] = (
            values,
            np.arange(values.shape[2]),
        )
        self.ring_model[at, :, slot], self.ring_reward[at, :, slot] = model, rewards
        self.ring_seen[at, :, slot] = seen & sound

    def draw(self, sigma: FloatArray, normals: FloatArray) -> FloatArray:
        """Draw the shared parameter.

        The factor of A, which downdates do not keep, is computed at every draw.
        """
        factor = np.ascontiguousarray(_cholesky(self.A[:, :1])[:, 0])
        noise = ridge_kernels.posterior_noise(factor, np.ascontiguousarray(normals))
        return np.asarray(self.theta[:, 0] + sigma[:, None] * noise)

    @staticmethod
    def ring_memory(spec: SimulatorSpec, window: int) -> int:
        """Compute the bytes per row that the window adds."""
        return window * spec.slate * (16 * spec.n_stored + 17)


class DiscountedRidge:
    """Ridge models in which an observation k steps old has weight gamma^k.

    The ridge is not discounted.

    V = sum gamma^k x x' + ridge I and V~ = sum gamma^2k x x' + ridge I, b = sum gamma^k r x; theta
    = V^-1 b and the variance is x' V^-1 V~ V^-1 x. Every model is discounted at every step, chosen
    or not.

    Between two updates of a model V = gamma^k G + ridge I, with G as it was. With G = Q diag(g) Q'
    that is Q diag(gamma^k g + ridge) Q', so discounting costs nothing; a model that is updated is
    decomposed afresh.

    References
    ----------
    Russac, Vernade, Cappé (2019), Weighted linear bandits for non-stationary environments,
    Algorithm 1.

    Attributes
    ----------
    gram, gram2 : float64 (R, M, D, D)
        sum gamma^k x x' and sum gamma^2k x x', at the model's ``stamp``.
    b : float64 (R, M, D)
    stamp : int64 (R, M)
        Step after which the model was last updated.
    """

    state = ("gram", "gram2", "b", "stamp", "vectors", "values", "turned", "target")

    def __init__(
        self, ridge: FloatArray, gamma: FloatArray, spec: SimulatorSpec, sharing: Sharing
    ) -> None:
        R, D, M = len(ridge), spec.n_features, 1 if sharing == "shared" else spec.n_items
        self.ridge, self.gamma, self.sharing = ridge, gamma, sharing
        self.gram, self.gram2 = np.zeros((R, M, D, D)), np.zeros((R, M, D, D))
        self.b = np.zeros((R, M, D))
        self.stamp = np.zeros((R, M), np.int64)
        # eigenvectors and -values of gram; gram2 and b in their coordinates
        self.vectors = np.tile(np.eye(D), (R, M, 1, 1))
        self.values = np.zeros((R, M, D))
        self.turned, self.target = np.zeros((R, M, D, D)), np.zeros((R, M, D))
        self._step = 0

    @staticmethod
    def memory(spec: SimulatorSpec, sharing: Sharing) -> int:
        """Compute the bytes per row."""
        models = 1 if sharing == "shared" else spec.n_items
        return 8 * models * (5 * spec.n_features**2 + 3 * spec.n_features + 1)

    def models(self, round: Round) -> IntArray:
        """Return the model index of every candidate, int64 (R, K); see `Ridge.models`."""
        check_features(round, self.b.shape[2])
        return np.zeros_like(round.items) if self.sharing == "shared" else round.items

    def mean(self, round: Round) -> FloatArray:
        """Compute theta . x of every candidate, float64 (R, K)."""
        return self.predict(round)[0]

    def predict(self, round: Round) -> tuple[FloatArray, FloatArray]:
        """Compute theta . x and x' V^-1 V~ V^-1 x of every candidate, two of float64 (R, K)."""
        values, columns, _ = round.contexts
        return discount_predict(
            values,
            columns,
            round.context,
            self.models(round),
            round.step,
            self.gamma,
            self.ridge,
            self.stamp,
            self.vectors,
            self.values,
            self.turned,
            self.target,
        )

    def sample(self, round: Round, sigma: FloatArray, normals: FloatArray) -> FloatArray:
        """Compute each candidate's reward under ONE draw from N(theta, sigma^2 V^-1 V~ V^-1),
        float64 (R, K).

        Parameters
        ----------
        sigma : float64 (R,)
        normals : float64 (R, W)
            Standard normals, W = `Ridge.noise_width`; see `Ridge.sample`.
        """
        if self.sharing == "per_arm":
            mean, variance = self.predict(round)
            return np.asarray(mean + sigma[:, None] * np.sqrt(variance) * normals)
        values, columns, _ = round.contexts
        theta = self.draw(round.step, sigma, normals)
        return ridge_kernels.ridge_mean(
            values, columns, round.context, self.models(round), theta[:, None]
        )

    def draw(self, step: int, sigma: FloatArray, normals: FloatArray) -> FloatArray:
        """Draw the shared parameter of each row at a step, float64 (R, D).

        V = age G + ridge I and V~ = age^2 G~ + ridge I = L L', so the draw is V^-1 (age b + sigma L
        z), with age = gamma^(step - stamp). It is a continuous function of the data: eigenvectors
        appear in V^-1 alone."""
        age = (self.gamma ** (step - self.stamp[:, 0]))[:, None]
        covariance = age[..., None] ** 2 * self.gram2[:, 0] + self.ridge[:, None, None] * np.eye(
            self.b.shape[2]
        )
        factor = _cholesky(covariance[:, None])[:, 0]
        drawn = age * self.b[:, 0] + sigma[:, None] * (factor @ normals[..., None])[..., 0]
        y = (self.vectors[:, 0].swapaxes(1, 2) @ drawn[..., None])[..., 0]
        y /= age * self.values[:, 0] + self.ridge[:, None]
        return np.asarray((self.vectors[:, 0] @ y[..., None])[..., 0])

    def update(self, round: Round, slate: IntArray, feedback: Feedback) -> None:
        """Update the models with the examined slots of the slate."""
        values, columns, _ = round.contexts
        discount_update(
            values,
            columns,
            round.context,
            self.models(round),
            slate,
            feedback.rewards,
            feedback.examined,
            round.step,
            self.gamma,
            self.gram,
            self.gram2,
            self.b,
            self.stamp,
            self.vectors,
            self.values,
            self.turned,
            self.target,
        )
        self._step = round.step + 1

    def refit(self, gram: FloatArray, gram2: FloatArray, b: FloatArray, step: int) -> None:
        """Fit afresh from sums up to a step, whose observations have weight 1.

        NaN for a row that is not finite.

        Parameters
        ----------
        gram, gram2 : float64 (R, M, D, D)
            sum gamma^k x x' and sum gamma^2k x x'.
        b : float64 (R, M, D)
            sum gamma^k r x.
        step : int
        """
        self.gram[...], self.gram2[...], self.b[...] = gram, gram2, b
        finite = np.asarray(np.isfinite(gram).all(axis=(2, 3)))
        values, self.vectors[...] = np.linalg.eigh(np.where(finite[..., None, None], gram, 0.0))
        self.values[...] = np.where(finite[..., None], np.maximum(values, 0.0), np.nan)
        transposed = self.vectors.swapaxes(2, 3)
        self.turned[...] = transposed @ gram2 @ self.vectors
        self.target[...] = (transposed @ b[..., None])[..., 0]
        self.stamp[...], self._step = step + 1, step + 1

    def spectrum(self, bases: list[FloatArray]) -> FloatArray:
        """Compute the eigenvalues of V at the present step; see `Ridge.spectrum`."""
        age = self.gamma[:, None] ** (max(self._step, int(self.stamp.max())) - self.stamp)
        now = age[:, :, None, None] * self.gram
        now += self.ridge[:, None, None, None] * np.eye(now.shape[-1])
        return spectrum(now, bases)


def _cholesky(matrices: FloatArray) -> FloatArray:
    """Return Cholesky factors of (R, M, D, D); NaN for a row that has diverged."""
    return each_matrix(np.linalg.cholesky, matrices)
