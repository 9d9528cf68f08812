"""How sure a network is: the width sqrt(g' A^-1 g) of its output, A = ridge I + sum g g' over what it has learned.

g is the gradient of the output by all p weights, taken when the choice was made and kept as it was (Zhou, Li, Gu 2020,
Algorithm 1). Four ways to the same number, or nearly:

`Diagonal`  A's diagonal only: p numbers; far from the truth where p is much larger than the steps.
`Primal`    A^-1 itself, p x p.
`Dual`      the t x t Cholesky factor of ridge I + G G': exact at any p, from the factors of the gradients alone.
`Sketch`    frequent directions: the largest directions of G G' in l rows, with a bound on what it leaves out.

`Exact` begins with the dual. A network of up to 1,448 weights goes over to the primal when the dual would cost more;
the dual of a larger one stays exact up to the limit that is set, and goes over to the sketch there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from bandits.base.types import FloatArray

from .incremental_cholesky import IncrementalCholesky, doubled
from .mlp import GradientFactors

if TYPE_CHECKING:
    from torch import Tensor

Arrays = dict[str, Any]
REFRESH = 512  # rank-one updates of the primal's inverse before it is computed afresh
PRIMAL_BYTES = 32 * 2**20  # what one row's p x p matrices may take: p up to 1,448
CHUNK = 64  # gradients that are written out at once
LEAST = 1e-30  # squared widths are not below this: rounding must not make a root imaginary


class Confidence(Protocol):
    """A width for every candidate, and what shrinks it."""

    def squared_widths(self, candidates: GradientFactors) -> Tensor:
        """g' A^-1 g of every candidate, float64 (R, K)."""

    def add(self, chosen: GradientFactors, counts: Tensor) -> None:
        """A += g g' for one gradient per row, (R, 1, ...); rows where ``counts (R,)`` is 0 stay as they are."""

    def state_dict(self) -> Arrays:
        """NumPy arrays from which `load_state_dict` goes on."""

    def load_state_dict(self, state: Arrays) -> None:
        """Put a saved state back."""


class Diagonal:
    """The diagonal of A, and 1 / A_ii for its inverse."""

    name = "diagonal"

    def __init__(self, ridge: FloatArray, n_weights: int, device: str = "cpu") -> None:
        import torch

        self.diagonal = torch.tensor(ridge, dtype=torch.float32, device=device)[:, None].repeat(1, n_weights)

    def squared_widths(self, candidates: GradientFactors) -> Tensor:
        parts, start, candidates = [], 0, candidates.float()
        inverse = self.diagonal.reciprocal()
        for h, d in zip(candidates.h, candidates.delta, strict=True):
            a, b = h.shape[2], d.shape[2]
            weight = inverse[:, start : start + a * b].view(-1, b, a)
            bias = inverse[:, None, start + a * b : start + (a + 1) * b]
            # sum_ij delta_i^2 h_j^2 / A_ij, and the biases, whose input is 1
            parts.append(((h.square() @ weight.transpose(1, 2)) + bias).mul_(d.square()).sum(2))
            start += (a + 1) * b
        return sum(parts[1:], start=parts[0]).double()

    def add(self, chosen: GradientFactors, counts: Tensor) -> None:
        gradient = chosen.float().dense()[:, 0]
        self.diagonal.addcmul_(gradient, gradient * counts[:, None].to(gradient.dtype))

    def state_dict(self) -> Arrays:
        return {"diagonal": self.diagonal.cpu().numpy().copy()}

    def load_state_dict(self, state: Arrays) -> None:
        import torch

        self.diagonal.copy_(torch.from_numpy(state["diagonal"]))


class Primal:
    """A and A^-1, float64 (R, p, p); rank-one updates, the inverse afresh every `REFRESH` of them."""

    name = "primal"

    def __init__(self, A: Tensor, updates: int = 0) -> None:
        self.A = A
        self.inverse = _inverse(A)
        self.updates = updates

    @classmethod
    def empty(cls, ridge: FloatArray, n_weights: int, device: str = "cpu") -> Primal:
        """A = ridge I."""
        import torch

        eye = torch.eye(n_weights, dtype=torch.float64, device=device)
        return cls(torch.tensor(ridge, device=device)[:, None, None] * eye)

    def squared_widths(self, candidates: GradientFactors) -> Tensor:
        g = candidates.double().dense()
        return ((g @ self.inverse) * g).sum(2).clamp_min(LEAST)

    def add(self, chosen: GradientFactors, counts: Tensor) -> None:
        g = chosen.double().dense()[:, 0] * counts[:, None].double()
        self.A.baddbmm_(g[:, :, None], g[:, None, :])
        self.updates += 1
        if self.updates % REFRESH == 0:
            self.inverse = _inverse(self.A)
            return
        v = (self.inverse @ g[:, :, None])[:, :, 0]
        scale = 1 + (g * v).sum(1)
        self.inverse.baddbmm_(v[:, :, None] / -scale[:, None, None], v[:, None, :])

    def state_dict(self) -> Arrays:
        return {"A": self.A.cpu().numpy().copy(), "inverse": self.inverse.cpu().numpy().copy(), "updates": self.updates}

    def load_state_dict(self, state: Arrays) -> None:
        import torch

        # into memory of torch's own: another alignment can mean other last bits
        self.A.copy_(torch.from_numpy(state["A"]))
        self.inverse.copy_(torch.from_numpy(state["inverse"]))
        self.updates = int(state["updates"])


class Dual:
    """g' A^-1 g = (g.g - k' (ridge I + G G')^-1 k) / ridge, k = G g, without any vector of length p.

    The inner products come from the factors of the gradients, which are all that is stored of them. All is float64:
    in float32, near-repeated contexts cost whole per cents of the width and break the factor. It is a difference of
    numbers as large as g.g / ridge: where those are beyond about 1e10, widths lose their digits.
    """

    name = "dual"

    def __init__(self, ridge: FloatArray, device: str = "cpu", capacity: int = 64) -> None:
        import torch

        self.ridge = torch.tensor(ridge, dtype=torch.float64, device=device)
        self.factor, self._first = IncrementalCholesky(self.ridge, capacity), capacity
        self._past: GradientFactors | None = None  # buffers (R, capacity, width)

    @property
    def size(self) -> int:
        """Observations t."""
        return self.factor.size

    @property
    def past(self) -> GradientFactors:
        """Factors of the gradients so far, in float64."""
        assert self._past is not None
        return self._past.rows(0, self.size)

    def squared_widths(self, candidates: GradientFactors) -> Tensor:
        candidates = candidates.double()
        explained = self.factor.explained(self.past.times(candidates)) if self.size else 0.0
        return ((candidates.norms() - explained) / self.ridge[:, None]).clamp_min_(LEAST)

    def add(self, chosen: GradientFactors, counts: Tensor) -> None:
        one = counts[:, None, None].double()
        chosen = GradientFactors([h.double() for h in chosen.h], [d.double() * one for d in chosen.delta])
        t = self.size
        self._keep(chosen)
        inner = self.past.times(chosen) if t else chosen.h[0].new_zeros((len(counts), 0, 1))
        self.factor.grow(inner, chosen.norms()[:, 0])

    def extend(self, gradients: GradientFactors) -> None:
        """Come from the beginning to the state after many gradients (R, t, ...) at once."""
        assert self.size == 0
        gradients = gradients.double()
        self._keep(gradients)
        self.factor.remake(gradients.times(gradients))

    def _keep(self, new: GradientFactors) -> None:
        """Put gradients behind those that are there; the buffers are as long as the factor's, or twice that."""
        import torch

        t, n = self.size, new.h[0].shape[1]
        if self._past is None:
            R, capacity = len(self.ridge), max(self.factor.capacity, n)

            def room(x: Tensor) -> Tensor:
                return torch.zeros((R, capacity, x.shape[2]), dtype=x.dtype, device=x.device)

            self._past = GradientFactors([room(h) for h in new.h], [room(d) for d in new.delta])
        elif t + n > self._past.h[0].shape[1]:
            self._past = GradientFactors(
                *([torch.nn.functional.pad(x, (0, 0, 0, t)) for x in side] for side in self._past)
            )
        for kept, added in zip(self._past.h + self._past.delta, new.h + new.delta, strict=True):
            kept[:, t : t + n] = added

    def dense(self, start: int, end: int) -> Tensor:
        """Some rows of G, float64 (R, end - start, p)."""
        return self.past.rows(start, end).dense()

    def state_dict(self) -> Arrays:
        state: Arrays = {"size": self.size}
        if self.size:
            state["inverse"] = self.factor.inverse.cpu().numpy().copy()
            for i, (h, d) in enumerate(zip(*self.past, strict=True)):
                state |= {f"h{i}": h.cpu().numpy().copy(), f"delta{i}": d.cpu().numpy().copy()}
        return state

    def load_state_dict(self, state: Arrays) -> None:
        import torch

        size = int(state["size"])
        self.factor, self._past = (
            IncrementalCholesky(self.ridge, doubled(self._first, size)),
            None,
        )  # as long as it had grown
        if size == 0:
            return
        layers = sum(name.startswith("delta") for name in state)

        def put(name: str) -> Tensor:
            return torch.from_numpy(state[name]).to(self.ridge.device)

        self._keep(GradientFactors([put(f"h{i}") for i in range(layers)], [put(f"delta{i}") for i in range(layers)]))
        self.factor.load(put("inverse"))


class Sketch:
    """Frequent directions (Ghashami et al. 2016): B of l rows with 0 <= G'G - B'B <= shrunk I.

    The width is that of ridge I + B'B: up to rounding it is never too small, and at most sqrt(1 + shrunk / ridge)
    times too wide.
    """

    name = "sketch"

    def __init__(self, ridge: FloatArray, n_weights: int, rows: int, device: str = "cpu") -> None:
        import torch

        self.ridge = torch.tensor(ridge, dtype=torch.float64, device=device)
        self.rows = rows
        self.factor = IncrementalCholesky(self.ridge, 2 * rows)
        self._room = torch.zeros((len(ridge), 2 * rows, n_weights), dtype=torch.float64, device=device)
        self.shrunk = torch.zeros(len(ridge), dtype=torch.float64, device=device)

    @property
    def B(self) -> Tensor:  # noqa: N802
        """The directions, (R, rows in use, p)."""
        return self._room[:, : self.factor.size]

    def squared_widths(self, candidates: GradientFactors) -> Tensor:
        candidates = candidates.double()
        explained = self.factor.explained(self.B @ candidates.dense().transpose(1, 2))
        return ((candidates.norms() - explained) / self.ridge[:, None]).clamp_min_(LEAST)

    def add(self, chosen: GradientFactors, counts: Tensor) -> None:
        self.extend(chosen.double().dense() * counts[:, None, None].double())

    def extend(self, gradients: Tensor) -> None:
        """Take in gradients, float64 (R, n, p)."""
        for i in range(gradients.shape[1]):
            if self.factor.size == self._room.shape[1]:
                self._shrink()
            g = gradients[:, i, :, None]
            inner, n = self.B @ g, self.factor.size
            self._room[:, n] = gradients[:, i]
            self.factor.grow(inner, g.square().sum((1, 2)))

    def _shrink(self) -> None:
        """Half of the rows become free: all squared singular values give up the (l + 1)-th."""
        import torch

        inner = self.B @ self.B.transpose(1, 2)
        sound = inner.isfinite().all(2).all(1)[:, None, None]  # a row that has diverged must not stop the others
        values, vectors = torch.linalg.eigh(inner.where(sound, 0.0))  # ascending; B'B = sum of s_i^2 v_i v_i'
        values, vectors = values.flip(1).clamp_min(0), vectors.flip(2)
        least = values[:, self.rows]
        kept = (values[:, : self.rows] - least[:, None]).clamp_min(0)
        scale = (kept / values[:, : self.rows].clamp_min(LEAST)).sqrt()
        self._room[:, : self.rows] = (vectors[:, :, : self.rows].transpose(1, 2) @ self.B) * scale[:, :, None]
        self._room[:, self.rows :] = 0
        self.shrunk += least
        B = self._room[:, : self.rows]
        self.factor.remake(B @ B.transpose(1, 2))

    def state_dict(self) -> Arrays:
        kept = {"B": self.B, "shrunk": self.shrunk, "inverse": self.factor.inverse}
        return {name: value.cpu().numpy().copy() for name, value in kept.items()}

    def load_state_dict(self, state: Arrays) -> None:
        import torch

        self.factor.load(torch.from_numpy(state["inverse"]).to(self.ridge.device))
        self._room.zero_()
        self.B.copy_(torch.from_numpy(state["B"]))
        self.shrunk.copy_(torch.from_numpy(state["shrunk"]))


class Exact:
    """The dual at first; past ``limit`` observations the primal if its matrices fit (then past p too), else the sketch.

    Parameters
    ----------
    ridge : float64 (R,)
    n_weights : int
        p.
    limit : int
        Observations that the dual goes up to: its matrix is then 8 limit^2 bytes a row.
    sketch : int
        Rows l of the sketch.
    """

    def __init__(
        self, ridge: FloatArray, n_weights: int, *, limit: int = 2000, sketch: int = 64, device: str = "cpu"
    ) -> None:
        self.ridge, self.n_weights, self.sketch, self.device = ridge, n_weights, sketch, device
        self.limit = self.turn(n_weights, limit)
        self.way: Dual | Primal | Sketch = Dual(ridge, device)

    @staticmethod
    def fits(n_weights: int) -> bool:
        """Whether the primal's two p x p matrices are within `PRIMAL_BYTES`."""
        return 16 * n_weights**2 <= PRIMAL_BYTES

    @classmethod
    def turn(cls, n_weights: int, limit: int) -> int:
        """Observations that the dual goes up to: p, where the primal follows it and p is less than the limit."""
        return min(limit, n_weights) if cls.fits(n_weights) else limit

    @classmethod
    def memory(cls, n_weights: int, n_factors: int, limit: int, sketch: int) -> int:
        """Bytes per row, by arithmetic, at its largest; ``n_factors`` numbers are stored per gradient."""
        t = doubled(64, cls.turn(n_weights, limit))
        dual = 8 * (
            t * t * 9 // 4 + 2 * t * n_factors
        )  # with the old buffers while new ones are made, and a copy saved
        after = 32 * n_weights**2 if cls.fits(n_weights) else 48 * 2 * sketch * n_weights
        return dual + after + 16 * CHUNK * n_weights

    def squared_widths(self, candidates: GradientFactors) -> Tensor:
        return self.way.squared_widths(candidates)

    def add(self, chosen: GradientFactors, counts: Tensor) -> None:
        if isinstance(self.way, Dual) and self.way.size >= self.limit:
            self.way = self._after(self.way)
        self.way.add(chosen, counts)

    def _after(self, dual: Dual) -> Primal | Sketch:
        """What goes on from where the dual ends, a few gradients at a time: written out they are long."""
        import torch

        parts = (dual.dense(start, start + CHUNK) for start in range(0, dual.size, CHUNK))
        if not self.fits(self.n_weights):
            sketch = Sketch(self.ridge, self.n_weights, self.sketch, self.device)
            for G in parts:
                sketch.extend(G)
            return sketch
        eye = torch.eye(self.n_weights, dtype=torch.float64, device=self.device)
        A = torch.tensor(self.ridge, device=self.device)[:, None, None] * eye
        for G in parts:
            A.baddbmm_(G.transpose(1, 2), G)
        return Primal(A, dual.size)

    def error(self) -> FloatArray | None:
        """How many times too wide a width can be at most, float64 (R,); None where it is exact."""
        if not isinstance(self.way, Sketch):
            return None
        return np.asarray((1 + self.way.shrunk.cpu().numpy() / self.ridge) ** 0.5)

    def told(self) -> str:
        """Which way it is in, in words."""
        if isinstance(self.way, Dual):
            return f"exact covariance in the dual, {self.way.size:,} × {self.way.size:,}"
        if isinstance(self.way, Primal):
            return f"exact covariance in the primal, {self.n_weights:,} × {self.n_weights:,}"
        error = self.error()
        assert error is not None
        return f"sketch of {self.sketch} directions; its widths are at most {error.max():,.2f} times the exact ones"

    def state_dict(self) -> Arrays:
        return {"way": self.way.name, **{f"{self.way.name}.{n}": v for n, v in self.way.state_dict().items()}}

    def load_state_dict(self, state: Arrays) -> None:
        name = state["way"]
        if name == "dual":
            self.way = Dual(self.ridge, self.device)
        elif name == "primal":
            self.way = Primal.empty(self.ridge, self.n_weights, self.device)
        else:
            self.way = Sketch(self.ridge, self.n_weights, self.sketch, self.device)
        self.way.load_state_dict({n.split(".", 1)[1]: v for n, v in state.items() if n.startswith(f"{name}.")})


def _inverse(A: Tensor) -> Tensor:
    """Of symmetric positive matrices; a row that has diverged gives NaN there and spares the others."""
    import torch

    # by columns as it comes, by rows once it has been saved: products with either differ in their last bits
    return torch.cholesky_inverse(torch.linalg.cholesky_ex(A).L).contiguous()
