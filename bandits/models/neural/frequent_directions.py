"""Approximate the covariance of gradients by frequent directions.

A sketch of l rows has a known bound on its error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bandits.base.types import FloatArray

from .dual_covariance import MIN_SQUARED_WIDTH, IncrementalCholesky
from .mlp import GradientFactors

if TYPE_CHECKING:
    from torch import Tensor


class SketchCovariance:
    """Frequent directions [1]_: a matrix B of l rows with 0 <= G'G - B'B <= shrunk I.

    Widths are those of ridge I + B'B: up to rounding never smaller than the exact ones, and at most
    sqrt(1 + shrunk / ridge) times as large.

    Parameters
    ----------
    ridge : float64 (R,)
    n_weights : int
        p.
    rows : int
        l; up to 2 l rows are stored between two reductions.
    device : str

    Attributes
    ----------
    shrunk : Tensor, float64 (R,)
        Sum of the squared singular values removed so far.

    References
    ----------
    .. [1] Ghashami, Liberty, Phillips, Woodruff (2016), Frequent directions: simple and
           deterministic matrix sketching.
    """

    name = "sketch"

    def __init__(self, ridge: FloatArray, n_weights: int, rows: int, device: str = "cpu") -> None:
        import torch

        self.ridge = torch.tensor(ridge, dtype=torch.float64, device=device)
        self.rows = rows
        self.factor = IncrementalCholesky(self.ridge, 2 * rows)
        self._buffer = torch.zeros(
            (len(ridge), 2 * rows, n_weights), dtype=torch.float64, device=device
        )
        self.shrunk = torch.zeros(len(ridge), dtype=torch.float64, device=device)

    @property
    def sketch(self) -> Tensor:
        """The sketch B, (R, rows in use, p), a view."""
        return self._buffer[:, : self.factor.size]

    def squared_widths(self, candidates: GradientFactors) -> Tensor:
        candidates = candidates.double()
        reduction = self.factor.quadratic_form(self.sketch @ candidates.dense().transpose(1, 2))
        return ((candidates.squared_norms() - reduction) / self.ridge[:, None]).clamp_min_(
            MIN_SQUARED_WIDTH
        )

    def add(self, chosen: GradientFactors, root_weights: Tensor) -> None:
        self.extend(chosen.double().dense() * root_weights[:, None, None].double())

    def extend(self, gradients: Tensor) -> None:
        """Add gradients, float64 (R, n, p)."""
        for i in range(gradients.shape[1]):
            if self.factor.size == self._buffer.shape[1]:
                self._shrink()
            g = gradients[:, i, :, None]
            inner, n = self.sketch @ g, self.factor.size
            self._buffer[:, n] = gradients[:, i]
            self.factor.append_row(inner, g.square().sum((1, 2)))

    def _shrink(self) -> None:
        """Free half of the rows of B.

        The (l + 1)-th squared singular value is subtracted from all of them.
        """
        import torch

        inner = self.sketch @ self.sketch.transpose(1, 2)
        # a row that has diverged must not stop the others
        finite = inner.isfinite().all(2).all(1)[:, None, None]
        # ascending; B'B = sum of s_i^2 v_i v_i'
        values, vectors = torch.linalg.eigh(inner.where(finite, 0.0))
        values, vectors = values.flip(1).clamp_min(0), vectors.flip(2)
        smallest = values[:, self.rows]
        remaining = (values[:, : self.rows] - smallest[:, None]).clamp_min(0)
        scale = (remaining / values[:, : self.rows].clamp_min(MIN_SQUARED_WIDTH)).sqrt()
        self._buffer[:, : self.rows] = (
            vectors[:, :, : self.rows].transpose(1, 2) @ self.sketch
        ) * scale[:, :, None]
        self._buffer[:, self.rows :] = 0
        self.shrunk += smallest
        B = self._buffer[:, : self.rows]
        self.factor.factorise(B @ B.transpose(1, 2))

    def state_dict(self) -> dict[str, Any]:
        state = {"B": self.sketch, "shrunk": self.shrunk, "inverse": self.factor.inverse}
        return {name: value.cpu().numpy().copy() for name, value in state.items()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        import torch

        self.factor.load(torch.from_numpy(state["inverse"]).to(self.ridge.device))
        self._buffer.zero_()
        self.sketch.copy_(torch.from_numpy(state["B"]))
        self.shrunk.copy_(torch.from_numpy(state["shrunk"]))
