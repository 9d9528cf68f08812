"""Compute exact confidence widths of large networks from inner products of gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bandits.base.types import FloatArray

from .mlp import GradientFactors

if TYPE_CHECKING:
    from torch import Tensor


# lower bound: rounding must not make a square root imaginary
MIN_SQUARED_WIDTH = 1e-30


def doubled_capacity(capacity: int, n: int) -> int:
    """Return the capacity that holds n rows, doubled as often as necessary."""
    while capacity < n:
        capacity *= 2
    return capacity


class IncrementalCholesky:
    """L^-1, float64 (R, n, n), where L L' = ridge I + G G' and G has n rows.

    Storing the inverse replaces the triangular solve of every decision by a matrix product; it is
    extended by one row just as L is.

    Parameters
    ----------
    ridge : Tensor, float64 (R,)
    capacity : int
        Rows allocated at first; doubled when they are used up.
    """

    def __init__(self, ridge: Tensor, capacity: int = 64) -> None:
        import torch

        self.ridge, self.size = ridge, 0
        self._buffer = torch.zeros(
            (len(ridge), capacity, capacity), dtype=torch.float64, device=ridge.device
        )

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
        # the next row of L, as a column
        row = self.inverse.bmm(inner)
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
            # in place; torch has no triangular inverse
            lapack.dtrtri(L.T, lower=0, overwrite_c=1)
        self.load(torch.from_numpy(factors).to(gram.device))

    def load(self, inverse: Tensor) -> None:
        """Replace the factor by ``inverse (R, n, n)`` = L^-1."""
        import torch

        n = inverse.shape[1]
        if n > self.capacity:
            self._buffer = torch.zeros(
                (len(self.ridge), n, n), dtype=torch.float64, device=self.ridge.device
            )
        self._buffer.zero_()
        self._buffer[:, :n, :n] = inverse
        self.size = n


class DualCovariance:
    """The t x t dual: no vector of length p is computed.

    g' A^-1 g = (g.g - k' (ridge I + G G')^-1 k) / ridge, k = G g

    Inner products are computed from the factors of the gradients, and only these factors are
    stored. Everything is float64: in float32, nearly repeated contexts change the width by several
    per cent and make the factorisation fail. The width is a difference of numbers as large as g.g /
    ridge; where those exceed about 1e10, digits are lost.

    Parameters
    ----------
    ridge : float64 (R,)
    device : str
    capacity : int
        Observations allocated at first.
    """

    name = "dual"

    def __init__(self, ridge: FloatArray, device: str = "cpu", capacity: int = 64) -> None:
        import torch

        self.ridge = torch.tensor(ridge, dtype=torch.float64, device=device)
        self.factor, self._initial_capacity = IncrementalCholesky(self.ridge, capacity), capacity
        # buffers (R, capacity, width)
        self._past: GradientFactors | None = None

    @property
    def size(self) -> int:
        """Number of observations t."""
        return self.factor.size

    @property
    def past(self) -> GradientFactors:
        """Factors of the stored gradients, float64."""
        assert self._past is not None
        return self._past.between(0, self.size)

    def squared_widths(self, candidates: GradientFactors) -> Tensor:
        candidates = candidates.double()
        reduction = (
            self.factor.quadratic_form(self.past.inner_products(candidates)) if self.size else 0.0
        )
        return ((candidates.squared_norms() - reduction) / self.ridge[:, None]).clamp_min_(
            MIN_SQUARED_WIDTH
        )

    def add(self, chosen: GradientFactors, root_weights: Tensor) -> None:
        scale = root_weights[:, None, None].double()
        chosen = GradientFactors(
            [h.double() for h in chosen.h], [d.double() * scale for d in chosen.delta]
        )
        t = self.size
        self._store(chosen)
        inner = (
            self.past.inner_products(chosen)
            if t
            else chosen.h[0].new_zeros((len(root_weights), 0, 1))
        )
        self.factor.append_row(inner, chosen.squared_norms()[:, 0])

    def extend(self, gradients: GradientFactors) -> None:
        """Add many gradients (R, t, ...) at once to an empty covariance."""
        assert self.size == 0
        gradients = gradients.double()
        self._store(gradients)
        self.factor.factorise(gradients.inner_products(gradients))

    def _store(self, new: GradientFactors) -> None:
        """Append gradients to the buffers.

        The buffers have the capacity of the Cholesky factor, or twice that.
        """
        import torch

        t, n = self.size, new.h[0].shape[1]
        if self._past is None:
            R, capacity = len(self.ridge), max(self.factor.capacity, n)

            def buffer(x: Tensor) -> Tensor:
                return torch.zeros((R, capacity, x.shape[2]), dtype=x.dtype, device=x.device)

            self._past = GradientFactors([buffer(h) for h in new.h], [buffer(d) for d in new.delta])
        elif t + n > self._past.h[0].shape[1]:
            self._past = GradientFactors(
                *([torch.nn.functional.pad(x, (0, 0, 0, t)) for x in side] for side in self._past)
            )
        for stored, added in zip(self._past.h + self._past.delta, new.h + new.delta, strict=True):
            stored[:, t : t + n] = added

    def dense(self, start: int, end: int) -> Tensor:
        """Compute the rows ``start`` to ``end`` of G, float64 (R, end - start, p)."""
        return self.past.between(start, end).dense()

    def state_dict(self) -> dict[str, Any]:
        state: dict[str, Any] = {"size": self.size}
        if self.size:
            state["inverse"] = self.factor.inverse.cpu().numpy().copy()
            for i, (h, d) in enumerate(zip(*self.past, strict=True)):
                state |= {f"h{i}": h.cpu().numpy().copy(), f"delta{i}": d.cpu().numpy().copy()}
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        import torch

        size = int(state["size"])
        self.factor = IncrementalCholesky(
            self.ridge, doubled_capacity(self._initial_capacity, size)
        )
        self._past = None
        if size == 0:
            return
        layers = sum(name.startswith("delta") for name in state)

        def loaded(name: str) -> Tensor:
            return torch.from_numpy(state[name]).to(self.ridge.device)

        h, delta = ([loaded(f"{name}{i}") for i in range(layers)] for name in ("h", "delta"))
        self._store(GradientFactors(h, delta))
        self.factor.load(loaded("inverse"))
