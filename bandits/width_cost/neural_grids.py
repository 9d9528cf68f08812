"""The sizes at which the methods for networks are timed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from bandits.base.randomness import Streams
from bandits.models.neural.initialisation import initial_weights
from bandits.models.neural.mlp import BatchedMLP

from . import agreement
from .complexity import FULL_MATRIX, NEURAL_METHODS, dual_capacity
from .request import NeuralRequest
from .results import Agreement, Timing
from .sizes import CostAxis, Sizes
from .timing import MEMORY_BUDGET, SHORT_PAST, Grids, GridStep, clock, one_thread, repeat, size_grid

if TYPE_CHECKING:
    from torch import Tensor

# bytes of one p x p matrix
MATRIX_BUDGET = 128 * 2**20
# weights of the smallest network
MIN_WEIGHTS = 120
FEW_CANDIDATES = 50
# candidates with one backward pass each
MAX_PASSES = 500
# candidates that are measured at most, and that other grids have where more are requested
MAX_CANDIDATES, MANY_CANDIDATES = 5000, 1000


class NeuralGrids(Grids):
    """Networks of growing width, observations of the dual, and candidates."""

    request: NeuralRequest
    smallest = Sizes(2, 10, (2, 2, 1))
    activity = "Comparing the widths"

    @property
    def weight(self) -> int:
        return 10 * len(agreement.CASES)

    def plan(self) -> list[tuple[str, CostAxis, Sizes]]:
        base = self.request.sizes
        networks = network_grid(base)
        todo: list[tuple[str, CostAxis, Sizes]] = [(kind, "p", sizes) for sizes in networks for kind in NEURAL_METHODS]
        # with many candidates, the growth with p would not show
        if base.K > 2 * FEW_CANDIDATES:
            todo += [(kind, "p", sizes._replace(K=FEW_CANDIDATES)) for sizes in networks for kind in FULL_MATRIX]
        todo += [("dual", "t", base._replace(t=t)) for t in size_grid(50, 5000, base.t, (1, 2, 3, 5))]
        return todo + [(kind, "K", base._replace(K=K)) for K in size_grid(10, 2000, base.K) for kind in NEURAL_METHODS]

    def anchored(self, kind: str, axis: CostAxis, sizes: Sizes, largest: float) -> Sizes:
        if axis == "K" and kind in FULL_MATRIX and largest < sizes.p:
            # a cheap network allows many candidates
            cheap = [step.widths for step in network_grid(sizes) if step.p * 3 <= largest]
            return sizes._replace(widths=cheap[-1] if cheap else network_grid(sizes)[0].widths)
        if axis != "K" and sizes.K > MAX_CANDIDATES:
            sizes = sizes._replace(K=MANY_CANDIDATES)
        if kind == "dual" and axis != "t" and not self.fits(kind, sizes):
            return sizes._replace(t=1000)
        return sizes

    def fits(self, kind: str, sizes: Sizes) -> bool:
        most = MAX_PASSES if kind == "passes" else MAX_CANDIDATES
        if most < sizes.K:
            return False
        # while it predicts
        if kind == "ensemble" and 4 * sizes.members * sizes.K * sum(sizes.widths) > MEMORY_BUDGET:
            return False
        matrix = 4 * sizes.p**2 if kind in FULL_MATRIX else 8 * dual_capacity(sizes.t + 1) ** 2 if kind == "dual" else 0
        return matrix <= MATRIX_BUDGET and NEURAL_METHODS[kind].memory(sizes) <= MEMORY_BUDGET

    def timed(self, kind: str, sizes: Sizes) -> tuple[Timing, GridStep]:
        from .neural_methods import REGISTRY

        began = clock()
        net, past, x = _inputs(sizes, self.request.seed)
        past = past if NEURAL_METHODS[kind].exponents["t"] else past[:SHORT_PAST]
        method = REGISTRY[kind].for_sizes(net, sizes)
        method.replay(past)
        setup = clock() - began
        # a first decision and update that are not timed
        method.widths(x)
        memory = method.allocated()
        method.update(0)
        decide, update = repeat(lambda: method.widths(x), method.update)
        return Timing(kind, sizes, decide, update, memory), GridStep(sizes, decide + update, setup)

    def comparisons(self) -> Iterator[tuple[int, str, Sequence[Agreement]]]:
        for i, case in enumerate(agreement.CASES):
            with one_thread():
                compared = agreement.compare_methods(self.request, case)
            yield 10 * (i + 1), self.activity, compared


def network_grid(base: Sizes) -> list[Sizes]:
    """Scale the hidden layers of the requested network, narrow ones first."""
    grid, half_steps = [base], 1
    while grid[0].p > MIN_WEIGHTS and len(grid) < 40:
        narrower = base.scaled(2 ** (-half_steps / 2)).rounded()
        if narrower.widths != grid[0].widths:
            grid.insert(0, narrower)
        elif max(narrower.widths[1:-1]) == 1:
            break
        half_steps += 1
    return [*grid, *(base.scaled(2**i).rounded() for i in (1, 2, 3))]


def _inputs(sizes: Sizes, seed: int) -> tuple[BatchedMLP, Tensor, Tensor]:
    """Draw a network, past observations (t, D) and candidates (K, D)."""
    import torch

    streams, widths = Streams(seed, (0,)), [int(width) for width in sizes.widths]
    net = BatchedMLP(initial_weights(streams, widths, part=1), widths)
    generator = streams.generator("world")
    past, x = (torch.from_numpy(generator.normal(size=(int(n), widths[0]))).float() for n in (sizes.t, sizes.K))
    return net, past, x
