"""Multilayer perceptrons with a row axis: R networks of equal widths, trained and asked together.

All weights of a row lie in one vector (R, p), layer after layer, weights before biases; a layer's matrices are views.
So an optimiser is a handful of operations, whatever the depth. Gradients are written by hand: a layer's is
delta' h, with h the layer's input and delta the derivative by its output before the ReLU. torch is imported on first
use: linear runs never pay for it.
"""

from __future__ import annotations

import copy
import itertools
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numba import njit

from bandits.base.randomness import Streams
from bandits.base.types import FloatArray

if TYPE_CHECKING:
    from torch import Tensor

DEVICES = ("auto", "cpu", "cuda")  # not mps: it has no float64, in which covariances are kept


def device() -> str:
    """Where networks compute: BANDITS_DEVICE, or (auto) CUDA, then the processor.

    Raises
    ------
    ValueError
        BANDITS_DEVICE names no device, or one that torch does not find here.
    """
    import torch

    has = {"cpu": True, "cuda": torch.cuda.is_available()}
    wanted = os.environ.get("BANDITS_DEVICE", "auto")
    if wanted not in DEVICES:
        raise ValueError(f"BANDITS_DEVICE is '{wanted}'; it can be {', '.join(DEVICES)}")
    if wanted == "auto":
        return next(name for name in ("cuda", "cpu") if has[name])
    if not has[wanted]:
        raise ValueError(f"BANDITS_DEVICE is '{wanted}', which torch does not find here")
    return wanted


def size(widths: Sequence[int], tables: Sequence[int] = (), embedding: int = 0) -> int:
    """Number of weights and biases p of one network, those of its embedding tables included."""
    return sum((a + 1) * b for a, b in itertools.pairwise(widths)) + sum(tables) * embedding


class ForwardPass(NamedTuple):
    """What went through the networks.

    Attributes
    ----------
    inputs : list of Tensor (R, B, in)
        Input h of every layer; the last is the embedding phi(x) that the last layer reads.
    out : Tensor (R, B, out)
    ids : Tensor (R, B, tables), optional
        Rows of the embedding tables that were read.
    """

    inputs: list[Tensor]
    out: Tensor
    ids: Tensor | None = None


class GradientFactors(NamedTuple):
    """The gradient of each output, unmultiplied: that of a layer is the outer product of delta and (h, 1).

    Attributes
    ----------
    h : list of Tensor (R, B, in)
    delta : list of Tensor (R, B, out)
    """

    h: list[Tensor]
    delta: list[Tensor]

    def take(self, rows: Tensor, which: Tensor) -> GradientFactors:
        """Those of ``which (R, S)``; ``rows`` is arange(R) as a column."""
        return GradientFactors([h[rows, which] for h in self.h], [d[rows, which] for d in self.delta])

    def rows(self, start: int, end: int) -> GradientFactors:
        """Those from ``start`` to before ``end``."""
        return GradientFactors([h[:, start:end] for h in self.h], [d[:, start:end] for d in self.delta])

    def times(self, other: GradientFactors) -> Tensor:
        """Inner products of gradients, (R, B, B'): over layers, (delta . delta') (h . h' + 1)."""
        parts = [
            (h @ k.transpose(1, 2)).add_(1).mul_(d @ e.transpose(1, 2))
            for h, k, d, e in zip(self.h, other.h, self.delta, other.delta, strict=True)
        ]
        return sum(parts[1:], start=parts[0])

    def norms(self) -> Tensor:
        """Squared lengths of the gradients, (R, B)."""
        parts = [h.square().sum(2).add_(1).mul_(d.square().sum(2)) for h, d in zip(self.h, self.delta, strict=True)]
        return sum(parts[1:], start=parts[0])

    def dense(self) -> Tensor:
        """The gradients themselves, (R, B, p), in the order of the weights."""
        import torch

        parts = []
        for h, d in zip(self.h, self.delta, strict=True):
            parts += [(d[..., :, None] * h[..., None, :]).flatten(2), d]
        return torch.cat(parts, dim=2)

    def double(self) -> GradientFactors:
        """In float64."""
        return GradientFactors([h.double() for h in self.h], [d.double() for d in self.delta])

    def float(self) -> GradientFactors:
        """In float32."""
        return GradientFactors([h.float() for h in self.h], [d.float() for d in self.delta])


class BatchedMLP:
    """R multilayer perceptrons with ReLU between their layers, and embeddings below them where there are tables.

    Parameters
    ----------
    weights : float (R, p)
        Initial weights, as `initial` draws them.
    widths : sequence of int
        D (with the embeddings), the hidden widths, and the number of outputs.
    tables : sequence of int
        Entries of each embedding table. The last columns of what the networks are shown are then numbers of entries,
        one for each table, in whose place the entries themselves go in.
    embedding : int
        Width of an entry.
    device : str
    double : bool
        Compute in float64 instead of float32.
    linear_last : bool
        No ReLU between the last hidden layer and the output.

    Attributes
    ----------
    flat : Tensor (R, p)
    layers : list of (Tensor (R, out, in), Tensor (R, out))
        Views of ``flat``.
    """

    def __init__(
        self,
        weights: FloatArray,
        widths: Sequence[int],
        *,
        tables: Sequence[int] = (),
        embedding: int = 0,
        device: str = "cpu",
        double: bool = False,
        linear_last: bool = False,
    ) -> None:
        import torch

        self.widths, self.tables, self.embedding = tuple(widths), tuple(tables), embedding
        self.bent = len(self.widths) - 2 - linear_last  # layers with a ReLU behind them
        self.flat = torch.tensor(weights, dtype=torch.float64 if double else torch.float32, device=device)
        self.layers = self.views(self.flat)
        self.gradient = torch.zeros_like(self.flat)
        self._gradients = self.views(self.gradient)

    def views(self, flat: Tensor) -> list[tuple[Tensor, Tensor]]:
        """Matrices and biases of every layer in a vector of weights (R, p)."""
        found, start = [], 0
        for a, b in itertools.pairwise(self.widths):
            weight = flat[:, start : start + a * b].view(-1, b, a)
            found.append((weight, flat[:, start + a * b : start + (a + 1) * b]))
            start += (a + 1) * b
        return found

    def picked(self, index: Any) -> BatchedMLP:
        """Some of the networks as they are now, to ask and not to train."""
        import torch

        few = copy.copy(self)
        few.flat = self.flat[torch.as_tensor(index, device=self.flat.device)]
        few.layers = few.views(few.flat)
        return few

    def entries(self, flat: Tensor) -> list[Tensor]:
        """Embedding tables in a vector of weights (R, p), each (R, entries, width): they come after the layers."""
        found, start = [], size(self.widths)
        for n in self.tables:
            found.append(flat[:, start : start + n * self.embedding].view(-1, n, self.embedding))
            start += n * self.embedding
        return found

    def embedded(self, x: Tensor) -> tuple[Tensor, Tensor | None]:
        """What goes into the first layer, and the entries' numbers."""
        import torch

        if not self.tables:
            return x, None
        features, ids = x[..., : -len(self.tables)], x[..., -len(self.tables) :].long()
        rows = torch.arange(len(x), device=x.device)[:, None]
        parts = [table[rows, ids[..., i]] for i, table in enumerate(self.entries(self.flat))]
        return torch.cat([features, *parts], dim=2), ids

    def forward(self, x: Tensor, masks: Sequence[Tensor] | None = None) -> ForwardPass:
        """Outputs for ``x (R, B, D)``.

        Parameters
        ----------
        x : Tensor (R, B, D)
        masks : sequence of Tensor (R, B or 1, width), optional
            Dropout: what each hidden layer's output is multiplied by, 0 or 1 / (1 - rate).
        """
        import torch

        x, ids = self.embedded(x)
        inputs, last = [x], len(self.layers) - 1
        for i, (weight, bias) in enumerate(self.layers):
            x = torch.baddbmm(bias[:, None, :], x, weight.transpose(1, 2))
            if i < self.bent:
                x = x.relu_() if masks is None else x.relu_().mul_(masks[i])
            if i < last:
                inputs.append(x)
        return ForwardPass(inputs, x, ids)

    def deltas(self, passed: ForwardPass, delta: Tensor, masks: Sequence[Tensor] | None = None) -> list[Tensor]:
        """Derivatives by the outputs of every layer before the ReLU, first layer first, from that by the last.

        Parameters
        ----------
        delta : Tensor (R, B, out)
        """
        import torch

        found = [delta]
        for i in range(len(self.layers) - 1, 0, -1):
            weight = self.layers[i][0]
            delta = delta * weight if delta.shape[2] == 1 else delta @ weight
            if i <= self.bent:
                delta = torch.ops.aten.threshold_backward(delta, passed.inputs[i], 0)  # ReLU's, in one pass
            if masks is not None:
                delta.mul_(masks[i - 1])
            found.append(delta)
        return found[::-1]

    def backward(self, passed: ForwardPass, delta: Tensor, masks: Sequence[Tensor] | None = None) -> Tensor:
        """Gradient (R, p), summed over the batch, of a loss whose derivative by the outputs is ``delta (R, B, out)``.

        The tensor returned is used again by the next call.
        """
        import torch

        found = self.deltas(passed, delta, masks)
        for (weight, bias), h, d in zip(self._gradients, passed.inputs, found, strict=True):
            weight.copy_(torch.bmm(d.transpose(1, 2), h))
            torch.sum(d, 1, out=bias)
        if passed.ids is not None:
            rows = torch.arange(len(delta), device=delta.device)[:, None]
            below = found[0] @ self.layers[0][0]
            start = below.shape[2] - len(self.tables) * self.embedding
            for i, table in enumerate(self.entries(self.gradient)):
                d = below[..., start + i * self.embedding : start + (i + 1) * self.embedding]
                table.zero_().index_put_((rows, passed.ids[..., i]), d, accumulate=True)
        return self.gradient

    def factors(self, passed: ForwardPass) -> GradientFactors:
        """Gradients by all weights of each of the (R, B) single outputs; not of networks with embeddings."""
        import torch

        assert not self.tables

        return GradientFactors(passed.inputs, self.deltas(passed, torch.ones_like(passed.out)))


def initial(
    streams: Streams,
    widths: Sequence[int],
    *,
    part: int,
    copies: int = 1,
    symmetric: bool = False,
    entries: int = 0,
) -> FloatArray:
    """Initial weights (R * copies, p), float64, from each row's own stream.

    Parameters
    ----------
    streams : Streams
    widths : sequence of int
    part : int
        Part of the agent's stream.
    copies : int
        Networks per row, one after the other.
    symmetric : bool
        As in NeuralUCB, Algorithm 1: two equal halves whose last layers have opposite signs, weights N(0, 4/m) and
        N(0, 2/m), no biases; the output is 0 at first. Otherwise torch's default, uniform(-1/sqrt(in), 1/sqrt(in)).
    entries : int
        Numbers in embedding tables, N(0, 1) as torch's default.
    """
    rows = []
    for row in streams.rows:
        generator = streams.generator("agent", row=row, part=part)
        for _ in range(copies):
            layers = _symmetric(generator, widths) if symmetric else _uniform(generator, widths)
            rows.append(np.concatenate([layers, generator.standard_normal(entries)]))
    return np.stack(rows)


def _uniform(generator: np.random.Generator, widths: Sequence[int]) -> FloatArray:
    parts = [generator.uniform(-1, 1, (a + 1) * b) / np.sqrt(a) for a, b in itertools.pairwise(widths)]
    return np.concatenate(parts)


def _symmetric(generator: np.random.Generator, widths: Sequence[int]) -> FloatArray:
    parts = []
    for i, (a, b) in enumerate(itertools.pairwise(widths)):
        last, half = i == len(widths) - 2, (b // 2, a // 2)
        if last:
            w = generator.normal(0, np.sqrt(2 / a), (b, half[1]))
            weight = np.concatenate([w, -w], axis=1)
        elif i == 0:  # every half sees the whole input
            w = generator.normal(0, np.sqrt(4 / b), (half[0], a))
            weight = np.concatenate([w, w])
        else:
            w, zero = generator.normal(0, np.sqrt(4 / b), half), np.zeros(half)
            weight = np.block([[w, zero], [zero, w]])
        parts += [weight.ravel(), np.zeros(b)]
    return np.concatenate(parts)


class SGD:
    """Stochastic gradient descent with one learning rate per row.

    Parameters
    ----------
    flat : Tensor (R, p)
        The weights; changed in place.
    learning_rate : float (R,)
    """

    state: tuple[str, ...] = ()

    def __init__(self, flat: Tensor, learning_rate: FloatArray) -> None:
        import torch

        self.flat = flat
        self.rate = torch.tensor(learning_rate, dtype=flat.dtype, device=flat.device)[:, None]

    def step(self, gradient: Tensor) -> None:
        """One step against ``gradient (R, p)``."""
        self.flat.addcmul_(gradient, self.rate, value=-1)


class Adam(SGD):
    """Adam (Kingma, Ba 2015) with one learning rate per row, as torch.optim.Adam.

    Attributes
    ----------
    first, second : Tensor (R, p)
        Moving averages of the gradient and of its square.
    count : int64 (1,)
        Steps done.
    """

    state = ("first", "second", "count")
    BETAS, EPSILON = (0.9, 0.999), 1e-8

    def __init__(self, flat: Tensor, learning_rate: FloatArray) -> None:
        import torch

        super().__init__(flat, learning_rate)
        self.first, self.second = torch.zeros_like(flat), torch.zeros_like(flat)
        self.count = np.zeros(1, np.int64)

    def step(self, gradient: Tensor) -> None:
        import torch

        self.count += 1
        (b1, b2), t = self.BETAS, int(self.count[0])
        # epsilon and rate take the bias corrections, so that the long vectors are passed over once less
        epsilon = self.EPSILON * (1 - b2**t) ** 0.5
        rate = self.rate * ((1 - b2**t) ** 0.5 / (1 - b1**t))
        if self.flat.device.type == "cpu":
            weights, first, second = self.flat.numpy(), self.first.numpy(), self.second.numpy()
            constants = np.array([1 - b1, b2, 1 - b2, epsilon], weights.dtype)
            _adam(weights, gradient.numpy(), first, second, rate[:, 0].numpy(), constants)
            return
        self.first.lerp_(gradient, 1 - b1)
        self.second.mul_(b2).addcmul_(gradient, gradient, value=1 - b2)
        self.flat.sub_(torch.div(self.first, torch.sqrt(self.second).add_(epsilon)).mul_(rate))


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def _adam(flat: Any, gradient: Any, first: Any, second: Any, rate: Any, constants: Any) -> None:
    """Adam's step in one pass over the weights (R, p): eight operations of torch pass through memory eight times."""
    c1, b2, c2, epsilon = constants
    for r in range(len(flat)):
        w, g, m, v, a = flat[r], gradient[r], first[r], second[r], rate[r]
        for i in range(len(w)):
            m[i] += (g[i] - m[i]) * c1
            v[i] = v[i] * b2 + g[i] * g[i] * c2
            w[i] -= a * m[i] / (np.sqrt(v[i]) + epsilon)


def optimiser(name: str, flat: Tensor, learning_rate: FloatArray) -> SGD:
    """``adam`` or ``sgd``."""
    return {"adam": Adam, "sgd": SGD}[name](flat, learning_rate)


def masks(uniforms: Any, widths: Sequence[int], keep: Tensor) -> list[Tensor]:
    """Dropout masks of the hidden layers from uniforms (R, B, sum of hidden widths): 0, or 1 / keep, keep (R, 1, 1)."""
    found, start = [], 0
    for width in widths[1:-1]:
        found.append((uniforms[..., start : start + width] < keep).to(keep.dtype) / keep)
        start += width
    return found
