"""Compute confidence widths sqrt(g' A^-1 g) from the gradients of a network.

A = ridge I + sum g g' over observations. g is the gradient of the output by all p weights, taken at
the time of the choice and not recomputed later [1]_. The representations of A:

`DiagonalCovariance`  the diagonal of A only: p numbers; inaccurate where p is much larger than the
number of steps. `PrimalCovariance`    A^-1 itself, p x p. `DualCovariance`      the t x t Cholesky
factor of ridge I + G G': exact for any p, from the factors of the gradients
                      (`dual_covariance`).
`SketchCovariance`    frequent directions: a rank-l approximation of G'G with an error bound
(`frequent_directions`).

`ExactCovariance` begins with the dual. For a network of up to 1,448 weights it switches to the
primal when the dual becomes more expensive; for a larger network it stays in the dual, exact, up to
a set limit and then switches to the sketch.

References
----------
.. [1] Zhou, Li, Gu (2020), Neural contextual bandits with UCB-based exploration, Algorithm 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from bandits.base.types import FloatArray

from .dual_covariance import MIN_SQUARED_WIDTH, DualCovariance, doubled_capacity
from .frequent_directions import SketchCovariance
from .mlp import GradientFactors

if TYPE_CHECKING:
    from torch import Tensor

Arrays = dict[str, Any]
# rank-one updates between recomputations of the primal's inverse
REFRESH = 512
# upper limit of one row's two p x p matrices: p up to 1,448
PRIMAL_BYTES = 32 * 2**20
# dense gradients computed at once
CHUNK = 64


class GradientCovariance(Protocol):
    """A representation of A: widths of candidates, and updates by chosen gradients."""

    def squared_widths(self, candidates: GradientFactors) -> Tensor:
        """Compute g' A^-1 g of every candidate, float64 (R, K)."""

    def add(self, chosen: GradientFactors, root_weights: Tensor) -> None:
        """Update A += w g g' with one gradient per row.

        Parameters
        ----------
        chosen : GradientFactors (R, 1, ...)
        root_weights : Tensor (R,)
            Square roots of the observations' weights w; 0 leaves a row unchanged.
        """

    def state_dict(self) -> Arrays:
        """Copy the state as NumPy arrays for `load_state_dict`."""

    def load_state_dict(self, state: Arrays) -> None:
        """Restore a state of `state_dict`."""


class DiagonalCovariance:
    """The diagonal of A; the inverse is 1 / A_ii."""

    name = "diagonal"

    def __init__(self, ridge: FloatArray, n_weights: int, device: str = "cpu") -> None:
        import torch

        self.diagonal = torch.tensor(ridge, dtype=torch.float32, device=device)[:, None].repeat(
            1, n_weights
        )

    def squared_widths(self, candidates: GradientFactors) -> Tensor:
        parts, start, candidates = [], 0, candidates.float()
        inverse = self.diagonal.reciprocal()
        for h, d in zip(candidates.h, candidates.delta, strict=True):
            a, b = h.shape[2], d.shape[2]
            weight = inverse[:, start : start + a * b].view(-1, b, a)
            bias = inverse[:, None, start + a * b : start + (a + 1) * b]
            # sum_ij delta_i^2 h_j^2 / A_ij over the weights, plus the biases, whose input is 1
            parts.append(((h.square() @ weight.transpose(1, 2)) + bias).mul_(d.square()).sum(2))
            start += (a + 1) * b
        return sum(parts[1:], start=parts[0]).double()

    def add(self, chosen: GradientFactors, root_weights: Tensor) -> None:
        gradient = chosen.float().dense()[:, 0]
        self.diagonal.addcmul_(
            gradient, gradient * root_weights[:, None].to(gradient.dtype).square()
        )

    def state_dict(self) -> Arrays:
        return {"diagonal": self.diagonal.cpu().numpy().copy()}

    def load_state_dict(self, state: Arrays) -> None:
        import torch

        self.diagonal.copy_(torch.from_numpy(state["diagonal"]))


class PrimalCovariance:
    """A and A^-1, float64 (R, p, p), by rank-one updates.

    The inverse is recomputed every `REFRESH` updates.
    """

    name = "primal"

    def __init__(self, A: Tensor, updates: int = 0) -> None:
        self.A = A
        self.inverse = _inverse(A)
        self.updates = updates

    @classmethod
    def empty(cls, ridge: FloatArray, n_weights: int, device: str = "cpu") -> PrimalCovariance:
        """Create A = ridge I."""
        import torch

        eye = torch.eye(n_weights, dtype=torch.float64, device=device)
        return cls(torch.tensor(ridge, device=device)[:, None, None] * eye)

    def squared_widths(self, candidates: GradientFactors) -> Tensor:
        g = candidates.double().dense()
        return ((g @ self.inverse) * g).sum(2).clamp_min(MIN_SQUARED_WIDTH)

    def add(self, chosen: GradientFactors, root_weights: Tensor) -> None:
        g = chosen.double().dense()[:, 0] * root_weights[:, None].double()
        self.A.baddbmm_(g[:, :, None], g[:, None, :])
        self.updates += 1
        if self.updates % REFRESH == 0:
            self.inverse = _inverse(self.A)
            return
        v = (self.inverse @ g[:, :, None])[:, :, 0]
        scale = 1 + (g * v).sum(1)
        self.inverse.baddbmm_(v[:, :, None] / -scale[:, None, None], v[:, None, :])

    def state_dict(self) -> Arrays:
        return {
            "A": self.A.cpu().numpy().copy(),
            "inverse": self.inverse.cpu().numpy().copy(),
            "updates": self.updates,
        }

    def load_state_dict(self, state: Arrays) -> None:
        import torch

        # copy into memory allocated by torch: a different alignment can change the last bits
        self.A.copy_(torch.from_numpy(state["A"]))
        self.inverse.copy_(torch.from_numpy(state["inverse"]))
        self.updates = int(state["updates"])


class ExactCovariance:
    """The dual up to a limit of observations, then the primal or the sketch.

    The primal is used if its matrices fit into memory.

    Parameters
    ----------
    ridge : float64 (R,)
    n_weights : int
        p.
    limit : int
        Observations up to which the dual is used; its matrix then has 8 limit^2 bytes per row.
    sketch : int
        Rows l of the sketch.
    device : str

    Attributes
    ----------
    method : DualCovariance, PrimalCovariance or SketchCovariance
        The representation in use.
    """

    def __init__(
        self,
        ridge: FloatArray,
        n_weights: int,
        *,
        limit: int = 2000,
        sketch: int = 64,
        device: str = "cpu",
    ) -> None:
        self.ridge, self.n_weights, self.sketch, self.device = ridge, n_weights, sketch, device
        self.limit = self.dual_limit(n_weights, limit)
        self.method: DualCovariance | PrimalCovariance | SketchCovariance = DualCovariance(
            ridge, device
        )

    @staticmethod
    def fits(n_weights: int) -> bool:
        """Tell whether the two p x p matrices of the primal are within `PRIMAL_BYTES`."""
        return 16 * n_weights**2 <= PRIMAL_BYTES

    @classmethod
    def dual_limit(cls, n_weights: int, limit: int) -> int:
        """Limit the observations of the dual: at most p where the primal follows."""
        return min(limit, n_weights) if cls.fits(n_weights) else limit

    @classmethod
    def memory(cls, n_weights: int, n_factors: int, limit: int, sketch: int) -> int:
        """Compute the maximum bytes per row, with ``n_factors`` numbers per gradient."""
        t = doubled_capacity(64, cls.dual_limit(n_weights, limit))
        # includes the old buffers while they are enlarged, and a saved copy
        dual = 8 * (t * t * 9 // 4 + 2 * t * n_factors)
        after = 32 * n_weights**2 if cls.fits(n_weights) else 48 * 2 * sketch * n_weights
        return dual + after + 16 * CHUNK * n_weights

    def squared_widths(self, candidates: GradientFactors) -> Tensor:
        return self.method.squared_widths(candidates)

    def add(self, chosen: GradientFactors, root_weights: Tensor) -> None:
        if isinstance(self.method, DualCovariance) and self.method.size >= self.limit:
            self.method = self._successor(self.method)
        self.method.add(chosen, root_weights)

    def _successor(self, dual: DualCovariance) -> PrimalCovariance | SketchCovariance:
        """Convert the dual to the primal or the sketch.

        Only a few gradients are dense at a time, to limit memory.
        """
        import torch

        parts = (dual.dense(start, start + CHUNK) for start in range(0, dual.size, CHUNK))
        if not self.fits(self.n_weights):
            sketch = SketchCovariance(self.ridge, self.n_weights, self.sketch, self.device)
            for G in parts:
                sketch.extend(G)
            return sketch
        eye = torch.eye(self.n_weights, dtype=torch.float64, device=self.device)
        A = torch.tensor(self.ridge, device=self.device)[:, None, None] * eye
        for G in parts:
            A.baddbmm_(G.transpose(1, 2), G)
        return PrimalCovariance(A, dual.size)

    def error(self) -> FloatArray | None:
        """Bound the ratio of the widths to the exact ones, float64 (R,).

        None while they are exact.
        """
        if not isinstance(self.method, SketchCovariance):
            return None
        return np.asarray((1 + self.method.shrunk.cpu().numpy() / self.ridge) ** 0.5)

    def describe(self) -> str:
        """Describe the representation in use, in one phrase."""
        if isinstance(self.method, DualCovariance):
            return f"exact covariance in the dual, {self.method.size:,} × {self.method.size:,}"
        if isinstance(self.method, PrimalCovariance):
            return f"exact covariance in the primal, {self.n_weights:,} × {self.n_weights:,}"
        error = self.error()
        assert error is not None
        return (
            f"sketch of {self.sketch} directions; widths at most {error.max():,.2f} times the "
            "exact ones"
        )

    def state_dict(self) -> Arrays:
        return {
            "way": self.method.name,
            **{f"{self.method.name}.{n}": v for n, v in self.method.state_dict().items()},
        }

    def load_state_dict(self, state: Arrays) -> None:
        name = state["way"]
        if name == "dual":
            self.method = DualCovariance(self.ridge, self.device)
        elif name == "primal":
            self.method = PrimalCovariance.empty(self.ridge, self.n_weights, self.device)
        else:
            self.method = SketchCovariance(self.ridge, self.n_weights, self.sketch, self.device)
        self.method.load_state_dict(
            {n.split(".", 1)[1]: v for n, v in state.items() if n.startswith(f"{name}.")}
        )


def _inverse(A: Tensor) -> Tensor:
    """Invert symmetric positive definite matrices.

    A row that has diverged becomes NaN and does not affect the others.
    """
    import torch

    # contiguous by rows, as after loading a saved state: products with the column order differ in
    # the last bits
    return torch.cholesky_inverse(torch.linalg.cholesky_ex(A).L).contiguous()
