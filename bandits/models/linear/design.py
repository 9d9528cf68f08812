"""Design matrices of generalised linear models, and the span of the features that they hold."""

from __future__ import annotations

from typing import Any

import numpy as np

from bandits.base.types import FloatArray, IntArray, Round, SimulatorSpec

from . import ridge_kernels
from .nonstationary import DiscountedRidge, SlidingWindowRidge
from .ridge import Ridge

# squared sine of the smallest angle to a span at which a vector counts as outside
NEW = 1e-9


def make_design(
    ridge: FloatArray, gamma: FloatArray, spec: SimulatorSpec, params: Any
) -> Ridge | DiscountedRidge:
    """Create the models that keep M = ridge I + sum x x' and its inverse.

    These are ridge models: the variance that `Ridge.predict` returns is x' M^-1 x, and their means
    have no use here.

    Parameters
    ----------
    ridge, gamma : float64 (R,)
    spec : SimulatorSpec
    params : Params
        Has ``sharing``, ``gamma`` and ``window``.
    """
    if params.window is not None:
        return SlidingWindowRidge(ridge, spec, params.sharing, params.window)
    if params.gamma < 1:
        return DiscountedRidge(ridge, gamma, spec, params.sharing)
    return Ridge(ridge, spec.n_features, spec.n_items, params.sharing)


def design_memory(params: Any, spec: SimulatorSpec) -> int:
    """Compute the bytes per row of the models of `make_design`."""
    if params.gamma < 1:
        return DiscountedRidge.memory(spec, params.sharing)
    ring = 0 if params.window is None else SlidingWindowRidge.ring_memory(spec, params.window)
    return Ridge.memory(spec, params.sharing) + ring


class FeatureSpan:
    """The span of the features that each model has observed, as the projection onto its orthogonal
    complement.

    Parameters
    ----------
    rows, models, n_features : int
        R, M and D.

    Attributes
    ----------
    complement : float64 (R, M, D, D)
        P, the projection onto the vectors that are orthogonal to all features observed; its rank is
        D minus theirs.
    """

    def __init__(self, rows: int, models: int, n_features: int) -> None:
        self.complement = np.empty((rows, models, n_features, n_features))
        self.complement[:] = np.eye(n_features)
        self._zero = np.zeros((rows, models, n_features))

    @staticmethod
    def memory(models: int, n_features: int) -> int:
        """Compute the bytes per row."""
        return 8 * models * (n_features**2 + n_features)

    def distance(self, round: Round, model: IntArray) -> FloatArray:
        """Compute the squared distance |P x|^2 of every candidate from the span of its model,
        float64 (R, K).

        It is 0 within rounding: where the sine of the angle to the span is below 3e-5.

        Parameters
        ----------
        round : Round
        model : int64 (R, K)
            The model of each candidate.
        """
        values, columns, _ = round.contexts
        _, squared = ridge_kernels.ridge_predict(
            values, columns, round.context, model, self._zero, self.complement
        )
        length = (values**2).sum(axis=2)[round.context]
        return np.where(squared > NEW * length, squared, 0.0)

    def add(self, round: Round, model: IntArray, slate: IntArray, exposures: FloatArray) -> None:
        """Add the features of the slots with an exposure to the spans of their models.

        Parameters
        ----------
        round : Round
        model : int64 (R, K)
        slate : int64 (R, S)
        exposures : float64 (R, S)
        """
        rows, features = np.arange(len(slate)), round.features
        for slot in range(slate.shape[1]):
            shown = slate[:, slot]
            own, x = model[rows, shown], features[rows, shown]
            outside = (self.complement[rows, own] @ x[:, :, None])[..., 0]
            squared = (outside**2).sum(axis=1)
            new = (squared > NEW * (x**2).sum(axis=1)) & (exposures[:, slot] > 0)
            unit = (
                np.where(new[:, None], outside, 0.0) / np.sqrt(np.where(new, squared, 1.0))[:, None]
            )
            self.complement[rows, own] -= unit[:, :, None] * unit[:, None, :]
