"""Evaluate and differentiate R multilayer perceptrons of equal widths at once.

All weights of a row are stored in one vector of a tensor (R, p), layer after layer, weights before
biases; the matrices of a layer are views of it. An optimiser step is therefore a few operations,
whatever the depth. Gradients are computed by hand: that of a layer is delta' h, where h is its
input and delta the derivative with respect to its output before the ReLU. torch is imported on
first use, so that linear agents do not load it."""

from __future__ import annotations

import copy
import itertools
import math
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from bandits.base.extras import require
from bandits.base.types import FloatArray

if TYPE_CHECKING:
    from torch import Tensor

# not mps, which lacks the float64 of the covariances
DEVICES = ("auto", "cpu", "cuda")
# Rows x weights x batch of a step of training from which on CUDA takes no longer than the
# processor. Measured on an H100 beside 16 cores: at .44 million it takes 1.7 to 2.2 times as long,
# at 7 million .5 to 1.1 times, at 550 million .04 times. `benchmarks/speed/devices.py` repeats it.
CUDA_FROM = 4_000_000


def device(work: float = math.inf) -> str:
    """Return the device for networks, as BANDITS_DEVICE requests.

    ``auto``, the default, means CUDA where torch finds it and the work is worth it (`CUDA_FROM`),
    else the CPU.

    Parameters
    ----------
    work : float
        Rows times weights times batch of a step of training.

    Raises
    ------
    ValueError
        BANDITS_DEVICE is not a known device, or torch does not find it.
    """
    require("torch")
    import torch

    available = {"cpu": True, "cuda": torch.cuda.is_available()}
    requested = os.environ.get("BANDITS_DEVICE", "auto")
    if requested not in DEVICES:
        raise ValueError(f"BANDITS_DEVICE must be one of {', '.join(DEVICES)}; got '{requested}'")
    if requested == "auto":
        return "cuda" if available["cuda"] and work >= CUDA_FROM else "cpu"
    if not available[requested]:
        raise ValueError(
            f"BANDITS_DEVICE is '{requested}', which torch does not find on this machine"
        )
    return requested


def describe_device(device: str) -> str:
    """State where networks are computed, where torch finds CUDA: numbers of the two devices differ
    by rounding. Empty elsewhere.
    """
    import torch

    if not torch.cuda.is_available():
        return ""
    return f"networks computed on {'the processor' if device == 'cpu' else 'CUDA'}"


def count_weights(widths: Sequence[int], tables: Sequence[int] = (), embedding: int = 0) -> int:
    """Count the weights and biases p of one network, including its embedding tables."""
    return sum((a + 1) * b for a, b in itertools.pairwise(widths)) + sum(tables) * embedding


class ForwardPass(NamedTuple):
    """Activations of a forward pass over a batch of B inputs per row.

    Attributes
    ----------
    inputs : list of Tensor (R, B, in)
        Input h of every layer; the last one is the embedding phi(x) read by the output layer.
    out : Tensor (R, B, out)
    ids : Tensor (R, B, tables), optional
        Rows of the embedding tables that were read.
    """

    inputs: list[Tensor]
    out: Tensor
    ids: Tensor | None = None


class GradientFactors(NamedTuple):
    """Gradients of single outputs in factored form.

    The gradient of a layer is the outer product of delta and (h, 1).

    Attributes
    ----------
    h : list of Tensor (R, B, in)
    delta : list of Tensor (R, B, out)
    """

    h: list[Tensor]
    delta: list[Tensor]

    def take(self, rows: Tensor, index: Tensor) -> GradientFactors:
        """Select ``index (R, S)`` of the batch; ``rows (R, 1)`` is arange(R)."""
        return GradientFactors(
            [h[rows, index] for h in self.h], [d[rows, index] for d in self.delta]
        )

    def between(self, start: int, end: int) -> GradientFactors:
        """Select the part of the batch from ``start`` to before ``end``."""
        return GradientFactors(
            [h[:, start:end] for h in self.h], [d[:, start:end] for d in self.delta]
        )

    def inner_products(self, other: GradientFactors) -> Tensor:
        """Compute the inner products of gradients, (R, B, B').

        They are the sum over layers of (delta . delta') (h . h' + 1).
        """
        parts = [
            (h @ k.transpose(1, 2)).add_(1).mul_(d @ e.transpose(1, 2))
            for h, k, d, e in zip(self.h, other.h, self.delta, other.delta, strict=True)
        ]
        return sum(parts[1:], start=parts[0])

    def squared_norms(self) -> Tensor:
        """Compute the squared norms of the gradients, (R, B)."""
        parts = [
            h.square().sum(2).add_(1).mul_(d.square().sum(2))
            for h, d in zip(self.h, self.delta, strict=True)
        ]
        return sum(parts[1:], start=parts[0])

    def dense(self) -> Tensor:
        """Multiply the factors: gradients (R, B, p) in the order of the weights."""
        import torch

        parts = []
        for h, d in zip(self.h, self.delta, strict=True):
            parts += [(d[..., :, None] * h[..., None, :]).flatten(2), d]
        return torch.cat(parts, dim=2)

    def double(self) -> GradientFactors:
        """Convert to float64."""
        return GradientFactors([h.double() for h in self.h], [d.double() for d in self.delta])

    def float(self) -> GradientFactors:
        """Convert to float32."""
        return GradientFactors([h.float() for h in self.h], [d.float() for d in self.delta])


class BatchedMLP:
    """R multilayer perceptrons with ReLU and optional embedding tables.

    Parameters
    ----------
    weights : float (R, p)
        Initial weights, see `initialisation.initial_weights`.
    widths : sequence of int
        D (with the embeddings), the hidden widths, and the number of outputs.
    tables : sequence of int
        Entries of each embedding table. The last columns of the input are then indices, one per
        table, which are replaced by the entries.
    embedding : int
        Width of an entry.
    device : str
    double : bool
        Compute in float64 instead of float32.
    linear_last : bool
        Omit the ReLU between the last hidden layer and the output.

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
        # layers followed by a ReLU
        self.n_relu = len(self.widths) - 2 - linear_last
        self.flat = torch.tensor(
            weights, dtype=torch.float64 if double else torch.float32, device=device
        )
        self.layers = self.views(self.flat)
        self.gradient = torch.zeros_like(self.flat)
        self._gradients = self.views(self.gradient)

    def views(self, flat: Tensor) -> list[tuple[Tensor, Tensor]]:
        """Return the matrix and bias of every layer as views of ``flat (R, p)``."""
        layers, start = [], 0
        for a, b in itertools.pairwise(self.widths):
            weight = flat[:, start : start + a * b].view(-1, b, a)
            layers.append((weight, flat[:, start + a * b : start + (a + 1) * b]))
            start += (a + 1) * b
        return layers

    def select(self, index: Any) -> BatchedMLP:
        """Copy some of the networks, for evaluation only."""
        import torch

        selected = copy.copy(self)
        selected.flat = self.flat[torch.as_tensor(index, device=self.flat.device)]
        selected.layers = selected.views(selected.flat)
        return selected

    def embedding_tables(self, flat: Tensor) -> list[Tensor]:
        """Return the embedding tables as views of ``flat (R, p)``.

        Each is (R, entries, width); they follow the layers.
        """
        tables, start = [], count_weights(self.widths)
        for n in self.tables:
            tables.append(flat[:, start : start + n * self.embedding].view(-1, n, self.embedding))
            start += n * self.embedding
        return tables

    def embed(self, x: Tensor) -> tuple[Tensor, Tensor | None]:
        """Replace the indices in the last columns by embeddings.

        Returns the input of the first layer, and the indices.
        """
        import torch

        if not self.tables:
            return x, None
        features, ids = x[..., : -len(self.tables)], x[..., -len(self.tables) :].long()
        rows = torch.arange(len(x), device=x.device)[:, None]
        parts = [
            table[rows, ids[..., i]] for i, table in enumerate(self.embedding_tables(self.flat))
        ]
        return torch.cat([features, *parts], dim=2), ids

    def forward(self, x: Tensor, masks: Sequence[Tensor] | None = None) -> ForwardPass:
        """Compute the outputs for ``x (R, B, D)``.

        Parameters
        ----------
        x : Tensor (R, B, D)
        masks : sequence of Tensor (R, B or 1, width), optional
            Dropout factors of the hidden layers' outputs, 0 or 1 / (1 - rate), see `dropout_masks`.
        """
        import torch

        x, ids = self.embed(x)
        inputs, last = [x], len(self.layers) - 1
        for i, (weight, bias) in enumerate(self.layers):
            x = torch.baddbmm(bias[:, None, :], x, weight.transpose(1, 2))
            if i < self.n_relu:
                x = x.relu_() if masks is None else x.relu_().mul_(masks[i])
            if i < last:
                inputs.append(x)
        return ForwardPass(inputs, x, ids)

    def backpropagate(
        self, forward_pass: ForwardPass, delta: Tensor, masks: Sequence[Tensor] | None = None
    ) -> list[Tensor]:
        """Compute the derivatives by every layer's output before the ReLU.

        The first layer comes first.

        Parameters
        ----------
        forward_pass : ForwardPass
        delta : Tensor (R, B, out)
            Derivative with respect to the output of the network.
        masks : sequence of Tensor, optional
            Those of the forward pass.
        """
        import torch

        deltas = [delta]
        for i in range(len(self.layers) - 1, 0, -1):
            weight = self.layers[i][0]
            delta = delta * weight if delta.shape[2] == 1 else delta @ weight
            if i <= self.n_relu:
                # the derivative of the ReLU in one pass
                delta = torch.ops.aten.threshold_backward(delta, forward_pass.inputs[i], 0)
            if masks is not None:
                delta.mul_(masks[i - 1])
            deltas.append(delta)
        return deltas[::-1]

    def backward(
        self, forward_pass: ForwardPass, delta: Tensor, masks: Sequence[Tensor] | None = None
    ) -> Tensor:
        """Compute the gradient (R, p) of a loss, summed over the batch.

        The returned tensor is overwritten by the next call.

        Parameters
        ----------
        forward_pass : ForwardPass
        delta : Tensor (R, B, out)
            Derivative of the loss with respect to the outputs.
        masks : sequence of Tensor, optional
            Those of the forward pass.
        """
        return self.gradients(forward_pass, self.backpropagate(forward_pass, delta, masks))

    def gradients(self, forward_pass: ForwardPass, deltas: Sequence[Tensor]) -> Tensor:
        """Compute the gradient (R, p) from the derivatives ``deltas`` of `backpropagate`.

        See `backward`.
        """
        import torch

        for (weight, bias), h, d in zip(self._gradients, forward_pass.inputs, deltas, strict=True):
            weight.copy_(torch.bmm(d.transpose(1, 2), h))
            torch.sum(d, 1, out=bias)
        if forward_pass.ids is not None:
            rows = torch.arange(len(deltas[0]), device=deltas[0].device)[:, None]
            below = deltas[0] @ self.layers[0][0]
            start = below.shape[2] - len(self.tables) * self.embedding
            for i, table in enumerate(self.embedding_tables(self.gradient)):
                d = below[..., start + i * self.embedding : start + (i + 1) * self.embedding]
                table.zero_().index_put_((rows, forward_pass.ids[..., i]), d, accumulate=True)
        return self.gradient

    def factors(self, forward_pass: ForwardPass) -> GradientFactors:
        """Factor the gradients of the single outputs (R, B) by all weights.

        Networks with embeddings are not supported.
        """
        import torch

        assert not self.tables

        return GradientFactors(
            forward_pass.inputs, self.backpropagate(forward_pass, torch.ones_like(forward_pass.out))
        )


def dropout_masks(uniforms: Any, widths: Sequence[int], keep: Tensor) -> list[Tensor]:
    """Compute dropout masks of the hidden layers: 0, or 1 / keep.

    Parameters
    ----------
    uniforms : Tensor (R, B, sum of hidden widths)
    widths : sequence of int
    keep : Tensor (R, 1, 1)
        Probability of keeping a unit.
    """
    masks, start = [], 0
    for width in widths[1:-1]:
        masks.append((uniforms[..., start : start + width] < keep).to(keep.dtype) / keep)
        start += width
    return masks
