"""Random Fourier features: nonlinear functions of the features for linear models."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numba import njit

from bandits.base.randomness import Streams
from bandits.base.types import Contexts, FloatArray, IntArray, Round, SimulatorSpec

# of the agents' stream, reserved for the frequencies
PART = 100


@njit(cache=True, nogil=True)
def transform(
    values: FloatArray, columns: IntArray, frequencies: FloatArray, shifts: FloatArray
) -> FloatArray:
    """Compute sqrt(2 / m) cos(w . x + b) of every vector, (C, K, m), for ``frequencies (D, m)``,
    ``shifts (m,)``.

    Vector by vector, so that the bits of one depend on no other.
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
                x, frequency = values[c, k, i], frequencies[columns[c, k, i]]
                for j in range(m):
                    z[j] += x * frequency[j]
            for j in range(m):
                z[j] = scale * np.cos(z[j])
    return out


class RandomFourierFeatures:
    """Replaces the features by m random Fourier features [1]_.

    z(x) = sqrt(2 / m) cos(W x / bandwidth + b), W ~ N(0, I), b ~ U(0, 2 pi)

    E z(x) . z(y) = exp(-|x - y|^2 / (2 bandwidth^2)): ridge regression on z approximates one with
    that kernel, and the error falls like 1 / sqrt(m).

    W and b depend on the experiment's seed alone: all rows and agents have the same frequencies,
    and a smaller m takes the first of them. So they are not part of the state; but an interval over
    rows holds for these frequencies only.

    Parameters
    ----------
    spec : SimulatorSpec
        Of the simulator.
    streams : Streams
    n : int
        m.
    bandwidth : float
        Distance in feature space over which rewards are similar.

    References
    ----------
    .. [1] Rahimi, Recht (2007), Random features for large-scale kernel machines, Algorithm 1.
    """

    def __init__(self, spec: SimulatorSpec, streams: Streams, n: int, bandwidth: float) -> None:
        normals = streams.generator("agent", part=PART).standard_normal((n, spec.n_features))
        self.frequencies = np.ascontiguousarray(normals.T / bandwidth)  # (D, m)
        self.shifts = 2 * np.pi * streams.generator("agent", part=PART, block=1).random(n)
        self._spec = spec
        self._columns = np.empty((0, 0, n), np.int64)
        self._source: Contexts | None = None
        self._transformed: Contexts | None = None

    @staticmethod
    def transformed_spec(spec: SimulatorSpec, n: int) -> SimulatorSpec:
        """Return the spec with n transformed features; unchanged if n is 0."""
        return replace(spec, n_features=n, n_stored=n) if n else spec

    @staticmethod
    def memory(spec: SimulatorSpec, n: int) -> int:
        """Compute the bytes per row: the transformed features of a round's candidates."""
        return 0 if spec.fixed_contexts else 16 * spec.n_candidates * n

    @staticmethod
    def shared_memory(spec: SimulatorSpec, n: int, layouts: int) -> int:
        """Compute the bytes that rows share: frequencies, transformed fixed contexts, and their
        spans.
        """
        contexts = layouts * spec.fixed_contexts
        return 8 * n * (3 * spec.n_features + n + 3 * contexts * spec.n_candidates)

    def round(self, round: Round) -> Round:
        """Return the round with transformed features."""
        return round._replace(contexts=self.contexts(round.contexts))

    def contexts(self, contexts: Contexts) -> Contexts:
        """Transform every context; fixed contexts are transformed once."""
        if self._transformed is None or contexts is not self._source:
            values = transform(contexts.values, contexts.columns, self.frequencies, self.shifts)
            if self._columns.shape != values.shape:
                self._columns = np.broadcast_to(np.arange(values.shape[2]), values.shape).copy()
            self._source, self._transformed = (
                contexts,
                Contexts(values, self._columns, values.shape[2]),
            )
        return self._transformed

    def bases(self, per_arm: bool) -> list[FloatArray]:
        """Compute orthonormal bases (m, n) of the span of possible vectors: one per arm, or one for
        all arms.

        Fixed contexts were all in the last round. Otherwise it is the whole space: the m
        transformed features of more than m distinct vectors are linearly independent, almost
        surely."""
        s, models = self._spec, self._spec.n_items if per_arm else 1
        if self._transformed is None or not s.fixed_contexts or s.n_items > s.n_candidates:
            return [np.eye(len(self.shifts))] * models
        z = self._transformed.values  # (C, K, m)
        return (
            [_span(z[:, k]) for k in range(models)]
            if per_arm
            else [_span(z.reshape(-1, z.shape[2]))]
        )


def _span(features: FloatArray) -> FloatArray:
    """Compute an orthonormal basis (m, n) of the row space of ``features (C, m)``."""
    _, sizes, vectors = np.linalg.svd(np.unique(features, axis=0), full_matrices=False)
    return np.ascontiguousarray(vectors[sizes > sizes[0] * 1e-5].T)
