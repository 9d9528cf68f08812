"""The five ways themselves, each as somebody who knows the trade would write it.

All look at one network (R = 1) whose weights may change between decisions. A decision is `widths`, then `update` adds
the gradient of the candidate that was chosen, as it was.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from bandits.base.errors import UserError
from bandits.models.neural.dual_covariance import DualCovariance
from bandits.models.neural.gradient_covariance import DiagonalCovariance
from bandits.models.neural.incremental_cholesky import IncrementalCholesky
from bandits.models.neural.mlp import BatchedMLP, GradientFactors

from .complexity import WAYS, capacity
from .request import Sizes

RIDGE = 1.0
LIMIT = 2**30  # bytes that no way may hold


class Way(ABC):
    """sqrt(g' A^-1 g) for every candidate, A = ridge I + sum of g g' over what was chosen.

    Parameters
    ----------
    net : BatchedMLP
        One row, one output.
    t : int
        Observations to be ready for.

    Raises
    ------
    UserError
        By arithmetic, before anything is allocated.
    """

    kind: ClassVar[str]

    def __init__(self, net: BatchedMLP, *, t: int = 0) -> None:
        about, sizes = WAYS[self.kind], Sizes(1, t, net.widths)
        if (need := about.held(sizes)) > LIMIT:
            raise UserError(
                f"{about.title} would hold {need / 1e9:,.1f} GB for {int(sizes.p):,} weights and {t:,} observations; "
                f"at most {LIMIT / 1e9:.1f} GB are allocated here"
            )
        self._net = net

    @abstractmethod
    def widths(self, x: Tensor) -> Tensor:
        """Widths (K,) of the candidates with features ``x (K, D)``, which are remembered for the update."""

    @abstractmethod
    def update(self, arm: int) -> None:
        """A += g g' for one of the candidates of the last decision."""

    def fill(self, x: Tensor) -> None:
        """Come to the state after the observations ``x (t, D)``, at the network's present weights."""
        for row in x:
            self.widths(row[None])
            self.update(0)

    def held(self) -> int:
        """Bytes of all tensors it holds at present, the network's own not counted."""
        return sum({t.data_ptr(): t.untyped_storage().nbytes() for t in _tensors(vars(self))}.values())


def _tensors(holder: Any) -> Iterator[Tensor]:
    """All tensors that can be reached; what belongs to the network hides behind an underscore or is a module's."""
    if isinstance(holder, Tensor):
        yield holder
    elif isinstance(holder, dict):
        for name, value in holder.items():
            if name not in ("_net", "_module"):
                yield from _tensors(value)
    elif isinstance(holder, (list, tuple)):
        for value in holder:
            yield from _tensors(value)
    elif isinstance(holder, (DualCovariance, DiagonalCovariance, IncrementalCholesky)):
        yield from _tensors(vars(holder))


def _module(net: BatchedMLP) -> torch.nn.Module:
    """The same network as a torch module on the same weights."""
    layers: list[torch.nn.Module] = []
    for weight, bias in net.layers:
        linear = torch.nn.Linear(weight.shape[2], weight.shape[1], device="meta")
        linear.weight = torch.nn.Parameter(weight[0])
        linear.bias = torch.nn.Parameter(bias[0])
        layers += [linear, torch.nn.ReLU()]
    return torch.nn.Sequential(*layers[:-1])


class BackwardPassWidths(Way):
    """A backward pass per candidate; A inverted at every decision."""

    kind = "passes"

    def __init__(self, net: BatchedMLP, *, t: int = 0) -> None:
        super().__init__(net, t=t)
        self._module = _module(net)
        self.A = RIDGE * torch.eye(net.flat.shape[1], dtype=net.flat.dtype)

    def widths(self, x: Tensor) -> Tensor:
        self.gradients = torch.empty((len(x), len(self.A)), dtype=x.dtype)
        for row, features in zip(self.gradients, x, strict=True):
            self._module.zero_grad()
            self._module(features).backward()
            row.copy_(torch.cat([w.grad.flatten() for w in self._module.parameters() if w.grad is not None]))
        self.inverse = torch.cholesky_inverse(torch.linalg.cholesky(self.A))
        return ((self.gradients @ self.inverse) * self.gradients).sum(1).sqrt()

    def update(self, arm: int) -> None:
        g = self.gradients[arm]
        self.A.addr_(g, g)


class JacobianWidths(Way):
    """All gradients at once by torch.func; A^-1 kept, and updated by Sherman and Morrison."""

    kind = "jacobian"

    def __init__(self, net: BatchedMLP, *, t: int = 0) -> None:
        super().__init__(net, t=t)
        module = self._module = _module(net)
        self.inverse = torch.eye(net.flat.shape[1], dtype=net.flat.dtype) / RIDGE

        def output(weights: dict[str, Tensor], features: Tensor) -> Tensor:
            return torch.func.functional_call(module, weights, (features,))[0]  # type: ignore[no-any-return]

        self._jacobian = torch.func.vmap(torch.func.grad(output), in_dims=(None, 0))

    def widths(self, x: Tensor) -> Tensor:
        weights = {name: w.detach() for name, w in self._module.named_parameters()}
        found = self._jacobian(weights, x)
        self.gradients = torch.cat([g.flatten(1) for g in found.values()], dim=1)
        return ((self.gradients @ self.inverse) * self.gradients).sum(1).sqrt()

    def update(self, arm: int) -> None:
        g = self.gradients[arm]
        v = self.inverse @ g
        self.inverse.addr_(v, v, alpha=-1 / (1 + float(g @ v)))


class _Factored(Way):
    """Gradients by their factors, which `bandits.models.neural.gradient_covariance` knows how to use."""

    confidence: DualCovariance | DiagonalCovariance

    def widths(self, x: Tensor) -> Tensor:
        self.candidates = self._factors(x)
        return self.confidence.squared_widths(self.candidates)[0].sqrt()

    def update(self, arm: int) -> None:
        chosen = self.candidates.take(torch.zeros((1, 1), dtype=torch.long), torch.tensor([[arm]]))
        self.confidence.add(chosen, torch.ones(1))

    def _factors(self, x: Tensor) -> GradientFactors:
        return self._net.factors(self._net.forward(x[None]))


class DualWidths(_Factored):
    """A t x t matrix of inner products; in float64, which it needs."""

    kind = "dual"

    def __init__(self, net: BatchedMLP, *, t: int = 0) -> None:
        super().__init__(net, t=t)
        self.confidence = DualCovariance(np.array([RIDGE]), capacity=capacity(t))

    def fill(self, x: Tensor) -> None:
        assert isinstance(self.confidence, DualCovariance)
        self.confidence.extend(self._factors(x))


class DiagonalWidths(_Factored):
    """A's diagonal."""

    kind = "diagonal"

    def __init__(self, net: BatchedMLP, *, t: int = 0) -> None:
        super().__init__(net, t=t)
        self.confidence = DiagonalCovariance(np.array([RIDGE]), net.flat.shape[1])


class LastLayerWidths(Way):
    """Ridge regression on the embedding, the bias of the last layer with it."""

    kind = "last"

    def __init__(self, net: BatchedMLP, *, t: int = 0) -> None:
        super().__init__(net, t=t)
        self.inverse = torch.eye(net.widths[-2] + 1, dtype=torch.float64) / RIDGE

    def widths(self, x: Tensor) -> Tensor:
        z = self._net.forward(x[None]).inputs[-1][0]
        self.embedded = torch.nn.functional.pad(z.double(), (0, 1), value=1.0)
        return ((self.embedded @ self.inverse) * self.embedded).sum(1).sqrt()

    def update(self, arm: int) -> None:
        z = self.embedded[arm]
        v = self.inverse @ z
        self.inverse.addr_(v, v, alpha=-1 / (1 + float(z @ v)))


REGISTRY: dict[str, type[Way]] = {
    way.kind: way for way in (BackwardPassWidths, JacobianWidths, DualWidths, DiagonalWidths, LastLayerWidths)
}
