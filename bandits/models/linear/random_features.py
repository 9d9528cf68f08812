"""Random Fourier features: with them a linear model expresses what is not linear."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numba import njit

from bandits.base.randomness import Streams
from bandits.base.types import Contexts, FloatArray, IntArray, Round, WorldSpec

PART = 100  # of the agents' stream: nobody else draws from it


@njit(cache=True, nogil=True)
def transform(values: FloatArray, columns: IntArray, waves: FloatArray, shifts: FloatArray) -> FloatArray:
    """sqrt(2 / m) cos(w . x + b) of every vector, (C, K, m); ``waves (D, m)``, ``shifts (m,)``.

    Vector by vector: its bits depend on no other.
    """
    C, K, N = values.shape
    m = len(shifts)
    out = np.empty((C, K, m))
    scale = np.sqrt(2.0 / m)
    for c in range(C):
        for k in range(K):
            z = out[c, k]
            z[:] = shifts
            for i in range(N):
                x, wave = values[c, k, i], waves[columns[c, k, i]]
                for j in range(m):
                    z[j] += x * wave[j]
            for j in range(m):
                z[j] = scale * np.cos(z[j])
    return out


class RandomFourierFeatures:
    """m random waves of the features instead of the features themselves [1]_.

    z(x) = sqrt(2 / m) cos(W x / bandwidth + b), W ~ N(0, I), b ~ U(0, 2 pi)

    E z(x) . z(y) = exp(-|x - y|^2 / (2 bandwidth^2)): ridge regression on z approximates one with that kernel, and the
    error falls like 1 / sqrt(m).

    W and b follow from the experiment's seed alone: all rows and agents see the same waves, and of fewer waves the
    first. So they are no state, and neither chunks nor company change a bit; but a band over rows speaks for these
    waves, not for all.

    Parameters
    ----------
    setting : WorldSpec
        Of the world.
    streams : Streams
    n : int
        m.
    bandwidth : float
        Distance in feature space over which rewards are alike.

    References
    ----------
    .. [1] Rahimi, Recht (2007), Random features for large-scale kernel machines, Algorithm 1.
    """

    def __init__(self, spec: WorldSpec, streams: Streams, n: int, bandwidth: float) -> None:
        normals = streams.generator("agent", part=PART).standard_normal((n, spec.n_features))
        self.waves = np.ascontiguousarray(normals.T / bandwidth)  # (D, m)
        self.shifts = 2 * np.pi * streams.generator("agent", part=PART, block=1).random(n)
        self._world = spec
        self._columns = np.empty((0, 0, n), np.int64)
        self._seen: Contexts | None = None
        self._made: Contexts | None = None

    @staticmethod
    def lifted(spec: WorldSpec, n: int) -> WorldSpec:
        """What a model of n waves is told about its world; of 0 waves, what there is."""
        return replace(spec, n_features=n, n_stored=n) if n else spec

    @staticmethod
    def memory(spec: WorldSpec, n: int) -> int:
        """Bytes per row, by arithmetic: the waves of a round's candidates."""
        return 0 if spec.fixed_contexts else 16 * spec.n_candidates * n

    @staticmethod
    def shared_memory(spec: WorldSpec, n: int, layouts: int) -> int:
        """Bytes that rows share, by arithmetic: the waves, those of fixed contexts, and their spans."""
        contexts = layouts * spec.fixed_contexts
        return 8 * n * (3 * spec.n_features + n + 3 * contexts * spec.n_candidates)

    def round(self, round: Round) -> Round:
        """The round with the waves of its features."""
        return round._replace(contexts=self.contexts(round.contexts))

    def contexts(self, contexts: Contexts) -> Contexts:
        """The waves of every context; where a world keeps its contexts, they are computed once."""
        if self._made is None or contexts is not self._seen:
            values = transform(contexts.values, contexts.columns, self.waves, self.shifts)
            if self._columns.shape != values.shape:
                self._columns = np.ascontiguousarray(np.broadcast_to(np.arange(values.shape[2]), values.shape))
            self._seen, self._made = contexts, Contexts(values, self._columns, values.shape[2])
        return self._made

    def bases(self, per_arm: bool) -> list[FloatArray]:
        """Orthonormal basis (m, n) of the span of what can occur: of each arm, or (one) of all arms together.

        Where contexts are fixed the last round has shown them all. Elsewhere it is the whole space: m waves of vectors
        of which there are more than m different ones are linearly independent, almost surely.
        """
        s, models = self._world, self._world.n_items if per_arm else 1
        if self._made is None or not s.fixed_contexts or s.n_items > s.n_candidates:
            return [np.eye(len(self.shifts))] * models
        z = self._made.values  # (C, K, m)
        return [_span(z[:, k]) for k in range(models)] if per_arm else [_span(z.reshape(-1, z.shape[2]))]


def _span(features: FloatArray) -> FloatArray:
    """Orthonormal basis (m, n) of the row space of ``features (C, m)``."""
    _, sizes, vectors = np.linalg.svd(np.unique(features, axis=0), full_matrices=False)
    return np.ascontiguousarray(vectors[sizes > sizes[0] * 1e-5].T)
