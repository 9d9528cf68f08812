"""Implement the confidence widths of LinUCB in three ways, with one model per arm and in float64."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from bandits.base.types import FloatArray
from bandits.models.linear import ridge_kernels


class LinearMethod(ABC):
    """Mean x' A^-1 b and width sqrt(x' A^-1 x) of every arm; A = ridge I + sum of x x' per arm.

    Parameters
    ----------
    K, d : int
        Arms and features.
    ridge : float

    References
    ----------
    Li, Chu, Langford, Schapire (2010), A contextual-bandit approach to personalized news article recommendation,
    Algorithm 1.
    """

    kind: ClassVar[str]

    @abstractmethod
    def __init__(self, K: int, d: int, ridge: float) -> None: ...

    @abstractmethod
    def predict(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Compute means and widths, two of (K,), for the features ``x (K, d)``."""

    @abstractmethod
    def update(self, arm: int, x: FloatArray, reward: float) -> None:
        """Update the model of one arm with its features ``x (d,)``."""

    @abstractmethod
    def inverses(self) -> FloatArray:
        """Return A^-1 of every arm as this method uses it, (K, d, d)."""

    def allocated(self) -> int:
        """Count the bytes of the arrays that learning changes."""
        arrays = [value for name, value in vars(self).items() if not name.startswith("_")]
        return sum(value.nbytes for value in arrays if isinstance(value, np.ndarray))


class InverseAtEachStep(LinearMethod):
    """Every A is inverted at every decision: O(K d^3)."""

    kind = "inverse"

    def __init__(self, K: int, d: int, ridge: float) -> None:
        self.A, self.b = np.tile(ridge * np.eye(d), (K, 1, 1)), np.zeros((K, d))
        self.inverse = np.empty_like(self.A)

    def predict(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        self.inverse[...] = np.linalg.inv(self.A)
        return _predicted(self.inverse, self.b, x)

    def update(self, arm: int, x: FloatArray, reward: float) -> None:
        self.A[arm] += x[:, None] * x
        self.b[arm] += reward * x

    def inverses(self) -> FloatArray:
        return np.asarray(np.linalg.inv(self.A))


class ShermanMorrison(LinearMethod):
    """A^-1 is stored and updated by the Sherman-Morrison formula: O(K d^2)."""

    kind = "rank_one"

    def __init__(self, K: int, d: int, ridge: float) -> None:
        self.inverse, self.b = np.tile(np.eye(d) / ridge, (K, 1, 1)), np.zeros((K, d))

    def predict(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        return _predicted(self.inverse, self.b, x)

    def update(self, arm: int, x: FloatArray, reward: float) -> None:
        u = self.inverse[arm] @ x
        self.inverse[arm] -= u[:, None] * (u / (1 + x @ u))
        self.b[arm] += reward * x

    def inverses(self) -> FloatArray:
        return self.inverse


class Compiled(LinearMethod):
    """The kernels of this package's linear agents (`bandits.models.linear.ridge_kernels`): O(K d^2)."""

    kind = "compiled"

    def __init__(self, K: int, d: int, ridge: float) -> None:
        self.A = np.tile(ridge * np.eye(d), (1, K, 1, 1))
        self.inverse = np.tile(np.eye(d) / ridge, (1, K, 1, 1))
        self.b, self.theta = np.zeros((1, K, d)), np.zeros((1, K, d))
        self.count = np.zeros((1, K), np.int64)
        # arguments of the kernels that stay the same: one context, all features
        self._columns, self._context = np.arange(d)[None, None], np.zeros(1, np.int64)
        self._model, self._slate = np.arange(K)[None], np.zeros((1, 1), np.int64)
        self._examined, self._factor = np.ones((1, 1), np.bool_), np.zeros((1, K, 0, 0))

    def predict(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        # with as many values as features, the kernel does not read the columns
        mean, variance = ridge_kernels.ridge_predict(
            x[None], self._columns, self._context, self._model, self.theta, self.inverse
        )
        return mean[0], np.sqrt(variance[0])

    def update(self, arm: int, x: FloatArray, reward: float) -> None:
        # a slate of one candidate, so that the features of the other arms need not be passed
        ridge_kernels.ridge_update(
            x[None, None], self._columns, self._context, np.array([[arm]]), self._slate, np.array([[reward]]),
            self._examined, self.A, self.inverse, self.b, self.theta, self.count, self._factor,
        )  # fmt: skip

    def inverses(self) -> FloatArray:
        return np.asarray(self.inverse[0])


def _predicted(inverse: FloatArray, b: FloatArray, x: FloatArray) -> tuple[FloatArray, FloatArray]:
    u = (inverse @ x[:, :, None])[:, :, 0]
    return np.einsum("kd,kd->k", u, b), np.sqrt(np.einsum("kd,kd->k", u, x))


LINEAR_REGISTRY: dict[str, type[LinearMethod]] = {
    cls.kind: cls for cls in (InverseAtEachStep, ShermanMorrison, Compiled)
}  # fmt: skip
