"""Update the inverse Cholesky factor of ridge I + G G' as G gains rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


MIN_SQUARED_WIDTH = 1e-30  # lower bound: rounding must not make a square root imaginary


def doubled_capacity(capacity: int, n: int) -> int:
    """Return the capacity that holds n rows, doubled as often as necessary."""
    while capacity < n:
        capacity *= 2
    return capacity


class IncrementalCholesky:
    """L^-1, float64 (R, n, n), where L L' = ridge I + G G' and G has n rows.

    Storing the inverse replaces the triangular solve of every decision by a matrix product; it is extended by one row
    just as L is.

    Parameters
    ----------
    ridge : Tensor, float64 (R,)
    capacity : int
        Rows allocated at first; doubled when they are used up.
    """

    def __init__(self, ridge: Tensor, capacity: int = 64) -> None:
        import torch

        self.ridge, self.size = ridge, 0
        self._buffer = torch.zeros((len(ridge), capacity, capacity), dtype=torch.float64, device=ridge.device)

    @property
    def capacity(self) -> int:
        """Number of rows allocated."""
        return int(self._buffer.shape[1])

    @property
    def inverse(self) -> Tensor:
        """L^-1, (R, n, n), a view."""
        return self._buffer[:, : self.size, : self.size]

    def quadratic_form(self, inner: Tensor) -> Tensor:
        """Compute k' (ridge I + G G')^-1 k, (R, K).

        The vectors k = G g are the columns of ``inner (R, n, K)``.
        """
        return self.inverse.bmm(inner).square().sum(1)

    def append_row(self, inner: Tensor, norms: Tensor) -> None:
        """Extend the factor by a row g of G.

        Parameters
        ----------
        inner : Tensor (R, n, 1)
            G g.
        norms : Tensor (R,)
            g.g.
        """
        import torch

        n, diagonal = self.size, norms + self.ridge
        if n == self.capacity:
            self._buffer = torch.nn.functional.pad(self._buffer, (0, n, 0, n))
        row = self.inverse.bmm(inner)  # the next row of L, as a column
        # the squared pivot is ridge (1 + g' A^-1 g) >= ridge; anything smaller is rounding error
        pivot = torch.maximum(diagonal - row.square().sum((1, 2)), self.ridge).sqrt()
        self._buffer[:, n, :n] = -(row.transpose(1, 2).bmm(self.inverse))[:, 0] / pivot[:, None]
        self._buffer[:, n, n] = 1 / pivot
        self.size += 1

    def factorise(self, gram: Tensor) -> None:
        """Compute the factor from ``gram (R, n, n)`` = G G', which may be overwritten."""
        import torch
        from scipy.linalg import lapack

        gram.diagonal(dim1=1, dim2=2).add_(self.ridge[:, None])
        factors = torch.linalg.cholesky_ex(gram).L.contiguous().cpu().numpy()
        for L in factors:
            lapack.dtrtri(L.T, lower=0, overwrite_c=1)  # in place; torch has no triangular inverse
        self.load(torch.from_numpy(factors).to(gram.device))

    def load(self, inverse: Tensor) -> None:
        """Replace the factor by ``inverse (R, n, n)`` = L^-1."""
        import torch

        n = inverse.shape[1]
        if n > self.capacity:
            self._buffer = torch.zeros((len(self.ridge), n, n), dtype=torch.float64, device=self.ridge.device)
        self._buffer.zero_()
        self._buffer[:, :n, :n] = inverse
        self.size = n
