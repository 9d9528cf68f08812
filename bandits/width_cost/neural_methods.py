"""Implement seven methods that compute or approximate confidence widths.

Each is written as an experienced programmer would.

All use one network (R = 1), whose weights may change between decisions. A decision calls `widths`;
`update` then adds the gradient of the chosen candidate as it was at the decision."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from bandits.base.errors import UserError
from bandits.base.randomness import Streams
from bandits.models.neural.dual_covariance import DualCovariance, IncrementalCholesky
from bandits.models.neural.gradient_covariance import DiagonalCovariance
from bandits.models.neural.initialisation import initial_weights
from bandits.models.neural.mlp import BatchedMLP, GradientFactors, dropout_masks

from .complexity import MEMBERS, NEURAL_METHODS, PASSES, Sizes, dual_capacity

RIDGE = 1.0
# that one method may allocate
MAX_BYTES = 2**30
# probability that dropout keeps a unit; it does not affect the time
KEEP = 0.8
# of the further networks of an ensemble; it does not affect the time either
LEARNING_RATE = 1e-4
# the network and the candidates belong to the caller
_NOT_HELD = ("_net", "_module", "_x")


class WidthMethod(ABC):
    """Widths sqrt(g' A^-1 g) of all candidates; A = ridge I + sum of g g'.

    Parameters
    ----------
    net : BatchedMLP
        One row, one output.
    t : int
        Observations for which memory is allocated.
    members, passes : int
        Networks of an ensemble and forward passes of dropout, for the methods that use them.

    Raises
    ------
    UserError
        The method would need too much memory; raised before anything is allocated.
    """

    kind: ClassVar[str]

    def __init__(
        self, net: BatchedMLP, *, t: int = 0, members: int = MEMBERS, passes: int = PASSES
    ) -> None:
        complexity, sizes = NEURAL_METHODS[self.kind], Sizes(1, t, net.widths, members, passes)
        if (memory := complexity.memory(sizes)) > MAX_BYTES:
            raise UserError(
                f"{complexity.title} needs {memory / 1e9:,.1f} GB for {int(sizes.p):,} weights and "
                f"{t:,} observations; at most {MAX_BYTES / 1e9:.1f} GB are allowed"
            )
        self._net = net

    @classmethod
    def for_sizes(cls, net: BatchedMLP, sizes: Sizes) -> WidthMethod:
        """Create the method for the observations, members and passes that ``sizes`` states."""
        return cls(net, t=int(sizes.t))

    @abstractmethod
    def widths(self, x: Tensor) -> Tensor:
        """Compute the widths (K,) of candidates ``x (K, D)``; keep their gradients."""

    @abstractmethod
    def update(self, arm: int) -> None:
        """Update A += g g' with a candidate of the last decision."""

    def replay(self, x: Tensor) -> None:
        """Add the observations ``x (t, D)`` at the present weights of the network."""
        for row in x:
            self.widths(row[None])
            self.update(0)

    def allocated(self) -> int:
        """Count the bytes of all tensors that it holds, without those of the network."""
        return sum(
            {t.data_ptr(): t.untyped_storage().nbytes() for t in _tensors(vars(self))}.values()
        )


def _tensors(holder: Any) -> Iterator[Tensor]:
    """Find all tensors in the attributes of an object, without those of the network."""
    if isinstance(holder, Tensor):
        yield holder
    elif isinstance(holder, dict):
        for name, value in holder.items():
            if name not in _NOT_HELD:
                yield from _tensors(value)
    elif isinstance(holder, (list, tuple)):
        for value in holder:
            yield from _tensors(value)
    elif isinstance(holder, BatchedMLP):
        # its layers are views
        yield from (holder.flat, holder.gradient)
    elif isinstance(holder, (DualCovariance, DiagonalCovariance, IncrementalCholesky)):
        yield from _tensors(vars(holder))


def _module(net: BatchedMLP) -> torch.nn.Module:
    """Convert the network to a torch module that shares its weights."""
    layers: list[torch.nn.Module] = []
    for weight, bias in net.layers:
        linear = torch.nn.Linear(weight.shape[2], weight.shape[1], device="meta")
        linear.weight = torch.nn.Parameter(weight[0])
        linear.bias = torch.nn.Parameter(bias[0])
        layers += [linear, torch.nn.ReLU()]
    return torch.nn.Sequential(*layers[:-1])


class BackwardPassWidths(WidthMethod):
    """One backward pass per candidate; A is inverted at every decision."""

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
            row.copy_(
                torch.cat(
                    [w.grad.flatten() for w in self._module.parameters() if w.grad is not None]
                )
            )
        self.inverse = torch.cholesky_inverse(torch.linalg.cholesky(self.A))
        return ((self.gradients @ self.inverse) * self.gradients).sum(1).sqrt()

    def update(self, arm: int) -> None:
        g = self.gradients[arm]
        self.A.addr_(g, g)


class JacobianWidths(WidthMethod):
    """All gradients at once by torch.func; A^-1 by Sherman-Morrison updates."""

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
        gradients = self._jacobian(weights, x)
        self.gradients = torch.cat([g.flatten(1) for g in gradients.values()], dim=1)
        return ((self.gradients @ self.inverse) * self.gradients).sum(1).sqrt()

    def update(self, arm: int) -> None:
        g = self.gradients[arm]
        v = self.inverse @ g
        self.inverse.addr_(v, v, alpha=-1 / (1 + float(g @ v)))


class _FactoredWidths(WidthMethod):
    """Factored gradients with a covariance of `bandits.models.neural`."""

    covariance: DualCovariance | DiagonalCovariance

    def widths(self, x: Tensor) -> Tensor:
        self.candidates = self._factors(x)
        return self.covariance.squared_widths(self.candidates)[0].sqrt()

    def update(self, arm: int) -> None:
        chosen = self.candidates.take(torch.zeros((1, 1), dtype=torch.long), torch.tensor([[arm]]))
        self.covariance.add(chosen, torch.ones(1))

    def _factors(self, x: Tensor) -> GradientFactors:
        return self._net.factors(self._net.forward(x[None]))


class DualWidths(_FactoredWidths):
    """A t x t matrix of inner products, in float64."""

    kind = "dual"

    def __init__(self, net: BatchedMLP, *, t: int = 0) -> None:
        super().__init__(net, t=t)
        self.covariance = DualCovariance(np.array([RIDGE]), capacity=dual_capacity(t))

    def replay(self, x: Tensor) -> None:
        assert isinstance(self.covariance, DualCovariance)
        self.covariance.extend(self._factors(x))


class DiagonalWidths(_FactoredWidths):
    """The diagonal of A."""

    kind = "diagonal"

    def __init__(self, net: BatchedMLP, *, t: int = 0) -> None:
        super().__init__(net, t=t)
        self.covariance = DiagonalCovariance(np.array([RIDGE]), net.flat.shape[1])


class LastLayerWidths(WidthMethod):
    """Ridge regression on the embedding, including the bias of the last layer."""

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


class EnsembleWidths(WidthMethod):
    """Standard deviation of the predictions of M networks (Osband et al., 2016; Lu, Van
    Roy, 2017).
    """

    kind = "ensemble"

    def __init__(self, net: BatchedMLP, *, t: int = 0, members: int = MEMBERS) -> None:
        super().__init__(net, t=t, members=members)
        weights = initial_weights(Streams(0, tuple(range(1, members))), net.widths, part=1)
        self.networks = BatchedMLP(weights, net.widths, double=net.flat.dtype == torch.float64)

    @classmethod
    def for_sizes(cls, net: BatchedMLP, sizes: Sizes) -> WidthMethod:
        return cls(net, members=sizes.members)

    def widths(self, x: Tensor) -> Tensor:
        self._x = x
        further = self.networks.forward(x.expand(len(self.networks.flat), *x.shape)).out
        self.predictions = torch.cat([self._net.forward(x[None]).out, further])[:, :, 0]
        return self.predictions.std(0)

    def update(self, arm: int) -> None:
        x = self._x[arm].expand(len(self.networks.flat), 1, -1)
        forward = self.networks.forward(x)
        # of the squared error for the reward 1
        gradient = self.networks.backward(forward, forward.out - 1)
        self.networks.flat.sub_(gradient, alpha=LEARNING_RATE)


class DropoutWidths(WidthMethod):
    """Standard deviation over T dropout masks, each for all candidates (Gal, Ghahramani, 2016)."""

    kind = "dropout"

    def __init__(self, net: BatchedMLP, *, t: int = 0, passes: int = PASSES) -> None:
        super().__init__(net, t=t, passes=passes)
        self._passes, self._generator = passes, torch.Generator().manual_seed(0)

    @classmethod
    def for_sizes(cls, net: BatchedMLP, sizes: Sizes) -> WidthMethod:
        return cls(net, passes=sizes.passes)

    def widths(self, x: Tensor) -> Tensor:
        units, keep = sum(self._net.widths[1:-1]), torch.full((1, 1, 1), KEEP, dtype=x.dtype)
        self.predictions = torch.empty((self._passes, len(x)), dtype=x.dtype)
        for row in self.predictions:
            masks = dropout_masks(
                torch.rand((1, 1, units), generator=self._generator), self._net.widths, keep
            )
            row.copy_(self._net.forward(x[None], masks).out[0, :, 0])
        return self.predictions.std(0)

    def update(self, arm: int) -> None:
        """Do nothing: only the training of the network changes the predictions."""


_CLASSES: tuple[type[WidthMethod], ...] = (
    BackwardPassWidths,
    JacobianWidths,
    DualWidths,
    DiagonalWidths,
    LastLayerWidths,
    EnsembleWidths,
    DropoutWidths,
)
REGISTRY: dict[str, type[WidthMethod]] = {cls.kind: cls for cls in _CLASSES}
