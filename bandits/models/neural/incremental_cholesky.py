"""The Cholesky factor of ridge I + G G' while G grows by one row after another, kept as its inverse."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


def doubled(capacity: int, n: int) -> int:
    """The room for n rows where it doubles as often as it must."""
    while capacity < n:
        capacity *= 2
    return capacity


class IncrementalCholesky:
    """L^-1, float64 (R, n, n), where L L' = ridge I + G G' and G has n rows.

    The inverse turns the triangular system of every decision into a product, and grows by one row as L does.

    Parameters
    ----------
    ridge : Tensor, float64 (R,)
    capacity : int
        Rows to begin with; it doubles when they are full.
    """

    def __init__(self, ridge: Tensor, capacity: int = 64) -> None:
        import torch

        self.ridge, self.size = ridge, 0
        self._room = torch.zeros((len(ridge), capacity, capacity), dtype=torch.float64, device=ridge.device)

    @property
    def capacity(self) -> int:
        """Rows there is room for."""
        return int(self._room.shape[1])

    @property
    def inverse(self) -> Tensor:
        """L^-1, (R, n, n)."""
        return self._room[:, : self.size, : self.size]

    def explained(self, inner: Tensor) -> Tensor:
        """k' (ridge I + G G')^-1 k of every column of ``inner (R, n, K)``, k = G g: (R, K)."""
        return self.inverse.bmm(inner).square().sum(1)

    def grow(self, inner: Tensor, norms: Tensor) -> None:
        """One more row g of G, by ``inner (R, n, 1)`` = G g and ``norms (R,)`` = g.g."""
        import torch

        n, left = self.size, norms + self.ridge
        if n == self.capacity:
            self._room = torch.nn.functional.pad(self._room, (0, n, 0, n))
        row = self.inverse.bmm(inner)  # L's next row, as a column
        # the pivot is ridge (1 + g' A^-1 g): what is less is rounding
        root = torch.maximum(left - row.square().sum((1, 2)), self.ridge).sqrt()
        self._room[:, n, :n] = -(row.transpose(1, 2).bmm(self.inverse))[:, 0] / root[:, None]
        self._room[:, n, n] = 1 / root
        self.size += 1

    def remake(self, gram: Tensor) -> None:
        """All rows at once, from ``gram (R, n, n)`` = G G', which is not kept and may be written over."""
        import torch
        from scipy.linalg import lapack

        gram.diagonal(dim1=1, dim2=2).add_(self.ridge[:, None])
        factors = torch.linalg.cholesky_ex(gram).L.contiguous().cpu().numpy()
        for L in factors:
            lapack.dtrtri(L.T, lower=0, overwrite_c=1)  # in place; torch has no inverse of a triangle
        self.load(torch.from_numpy(factors).to(gram.device))

    def load(self, inverse: Tensor) -> None:
        """Take over an L^-1."""
        import torch

        n = inverse.shape[1]
        if n > self.capacity:
            self._room = torch.zeros((len(self.ridge), n, n), dtype=torch.float64, device=self.ridge.device)
        self._room.zero_()
        self._room[:, :n, :n] = inverse
        self.size = n
