"""Ridge models whose sums are released with noise, so that no single observation can be read from
what they show.

The sums of x x' and r x are released every `EVERY` observations by the tree mechanism: a release is
the sum of at most `LEVELS` blocks, each with Gaussian noise of its own, and every observation lies
in one block of each level [1]_. All releases together are (epsilon, delta)-differentially private
for one observation, with the noise of the analytic Gaussian mechanism [2]_. What follows from a
release (shift, eigenvalues, weights) costs nothing more.

References
----------
.. [1] Shariff, Sheffet (2018), Differentially private contextual linear bandits, section 4.
.. [2] Balle, Wang (2018), Improving the Gaussian mechanism for differential privacy, theorem 8.
"""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from bandits.base.randomness import Streams
from bandits.base.types import Feedback, FloatArray, IntArray, Round

from .ridge import Ridge, Sharing, each_matrix

# observations from one release to the next
EVERY = 100
# of the tree: enough for 2^17 - 1 releases; after these the models stay as they are
LEVELS = 17
DELTA = 1e-5
# of the agent's stream: the noise of level i is part _PART + i
_PART = 1000


def noise_deviation(epsilon: float, sensitivity: float, delta: float = DELTA) -> float:
    """Return the smallest sigma for which a Gaussian mechanism is (epsilon, delta)-differentially
    private.

    It solves Phi(s / 2 sigma - epsilon sigma / s) - e^epsilon Phi(-s / 2 sigma - epsilon sigma / s)
    = delta."""
    from scipy.special import log_ndtr, ndtr

    def leaked(sigma: float) -> float:
        near, far = sensitivity / (2 * sigma), epsilon * sigma / sensitivity
        return float(ndtr(near - far) - np.exp(epsilon + log_ndtr(-near - far)))

    low, high = 1e-6 * sensitivity, 1e6 * sensitivity
    for _ in range(200):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if leaked(middle) > delta else (low, middle)
    return high


def blocks(release: int) -> list[tuple[int, int]]:
    """Return level and number of the blocks of the tree that make up a release: those of the ones
    in its binary form.

    Block i of level l holds the batches from (i - 1) 2^l to i 2^l.
    """
    return [
        (level, release >> level) for level in range(release.bit_length()) if release >> level & 1
    ]


class PrivateRidge(Ridge):
    """Ridge models of which only noisy sums are used.

    Observations (x, r) longer than ``norm`` are shortened to it. To the noisy A = ridge I + sum x
    x' a multiple of I is added, the size of the noise, and eigenvalues below the ridge are raised
    to it.

    Parameters
    ----------
    ridge : float64 (R,)
    n_features, n_items : int
    sharing : {"per_arm", "shared"}
    epsilon, norm : float
        Privacy budget of one observation, and its largest Euclidean length.
    slate : int
        Observations in one step, S.
    streams : Streams

    Attributes
    ----------
    gram, moment : float64 (R, M, D, D), (R, M, D)
        The sums without noise, which only a release reads.
    seen : int64 (R,)
        Steps observed, the same in all rows.
    """

    compiled = False
    STATE: ClassVar[tuple[str, ...]] = (*Ridge.STATE, "gram", "moment", "seen")

    def __init__(
        self,
        ridge: FloatArray,
        n_features: int,
        n_items: int,
        sharing: Sharing,
        *,
        epsilon: float,
        norm: float,
        slate: int,
        streams: Streams,
        joint: bool = False,
    ) -> None:
        super().__init__(ridge, n_features, n_items, sharing, joint=joint)
        self.norm, self.streams = norm, streams
        # two neighbouring steps differ by sums of S matrices z z' each, of a model each: sqrt(2) S
        # norm^2 at most
        self.sigma = noise_deviation(epsilon, math.sqrt(2 * LEVELS) * slate * norm**2)
        self.gram, self.moment = np.zeros(self.A.shape), np.zeros(self.b.shape)
        self.seen = np.zeros(len(ridge), np.int64)

    def update(self, round: Round, slate: IntArray, feedback: Feedback) -> None:
        """Add the examined slots to the sums; release them after every `EVERY` steps."""
        rows = np.arange(len(slate))
        models = self.models(round)
        features = round.contexts.dense(round.context)
        for s in range(slate.shape[1]):
            at = slate[:, s]
            x, r = features[rows, at], feedback.rewards[:, s]
            length = np.sqrt(np.square(x).sum(axis=1) + r**2)
            scale = (
                np.minimum(1.0, self.norm / np.maximum(length, 1e-300)) * feedback.examined[:, s]
            )
            x, r, own = x * scale[:, None], r * scale, models[rows, at]
            self.gram[rows, own] += x[:, :, None] * x[:, None, :]
            self.moment[rows, own] += r[:, None] * x
            self.count[rows, own] += feedback.examined[:, s]
        self.seen += 1
        if not self.seen[0] % EVERY and (release := int(self.seen[0]) // EVERY) < 2**LEVELS:
            self.release(release)

    def noise(self, release: int) -> FloatArray:
        """Draw the noise of a release, symmetric, float64 (R, M, D + 1, D + 1).

        The last row and column are of r x.
        """
        R, M, D = self.b.shape
        i, j = np.triu_indices(D + 1)
        total = np.zeros((R, M, len(i)))
        for row, number in enumerate(self.streams.rows):
            for level, block in blocks(release):
                generator = self.streams.generator(
                    "agent", row=number, part=_PART + level, block=block
                )
                total[row] += generator.standard_normal((M, len(i)))
        out = np.zeros((R, M, D + 1, D + 1))
        out[..., i, j] = out[..., j, i] = self.sigma * total
        return out

    def release(self, release: int) -> None:
        """Fit the models to the sums with the noise of a release."""
        noise, D = self.noise(release), self.b.shape[2]
        # the largest eigenvalue of such a matrix is about 2 sqrt(D) times the deviation of its
        # entries
        shift = 2 * self.sigma * math.sqrt(len(blocks(release)) * D)
        added = (self.ridge + shift)[:, None, None, None] * np.eye(D)
        # a diverged row must not stop the others
        sound = np.asarray(np.isfinite(self.gram).all(axis=(2, 3)))[..., None, None]
        noisy = np.where(sound, self.gram + noise[..., :D, :D] + added, np.eye(D))
        values, vectors = np.linalg.eigh(noisy)
        values = np.maximum(values, self.ridge[:, None, None])
        self.A[...] = np.where(
            sound, (vectors * values[..., None, :]) @ vectors.swapaxes(2, 3), np.nan
        )
        self.inverse[...] = np.where(
            sound, (vectors / values[..., None, :]) @ vectors.swapaxes(2, 3), np.nan
        )
        self.b[...] = self.moment + noise[..., :D, D]
        self.theta[...] = (self.inverse @ self.b[..., None])[..., 0]
        if self.factor.shape[-1]:
            self.factor[...] = each_matrix(np.linalg.cholesky, np.where(sound, self.A, np.eye(D)))
