"""The sizes at which the methods for networks are timed, and their widths at the same decisions of
NeuralUCB.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.stats import rankdata

from bandits.base.randomness import Streams
from bandits.base.types import FloatArray
from bandits.experiments.experiment import Experiment
from bandits.experiments.lockstep import make_lane
from bandits.models.neural.gradient_covariance import ExactCovariance
from bandits.models.neural.initialisation import initial_weights
from bandits.models.neural.mlp import BatchedMLP, GradientFactors

from .complexity import FULL_MATRIX, NEURAL_METHODS, CostAxis, Sizes, dual_capacity
from .request import NeuralRequest
from .results import Agreement, Timing
from .timing import MEMORY_BUDGET, SHORT_PAST, Grids, GridStep, clock, one_thread, repeat, size_grid

if TYPE_CHECKING:
    from torch import Tensor

    from bandits.agents.neural.neural_ucb import NeuralUCB

    from .neural_methods import WidthMethod

# decisions that are compared; half as many with a small network
DECISIONS = 200
# larger requests are reduced to save time
MAX_PAST, MAX_ARMS, MAX_WEIGHTS = 200, 200, 50_000
# sizes for which a p x p inverse can be computed at every step
SMALL_WEIGHTS, SMALL_PAST = 310, 50
# widths kept for the figure
PLOTTED = 300
# an ensemble and dropout measure another uncertainty, on another scale
COMPARED = ("diagonal", "last")
# bytes of one p x p matrix
MATRIX_BUDGET = 128 * 2**20
# weights of the smallest network
MIN_WEIGHTS = 120
FEW_CANDIDATES = 50
# candidates with one backward pass each
MAX_PASSES = 500
# candidates that are measured at most, and that other grids have where more are requested
MAX_CANDIDATES, MANY_CANDIDATES = 5000, 1000


class AgreementCase(NamedTuple):
    """Simulator for a comparison, with a small network or the requested one."""

    simulator: str
    title: str
    small: bool = False


CASES = (
    AgreementCase("petshop", "Pet shop"),
    AgreementCase("synthetic", "Quadratic rewards"),
    AgreementCase("petshop", "Pet shop, small", small=True),
)


def compare_methods(request: NeuralRequest, case: AgreementCase) -> list[Agreement]:
    """Run NeuralUCB with exact widths and compare others at its last decisions.

    All methods use the agent's network, which continues to learn, and are updated with the agent's
    choices. The network is small for the methods with a p x p matrix."""
    hidden = list(request.hidden)
    D = request.n_features if case.simulator == "synthetic" else 9
    sizes = request.sizes._replace(widths=(D, *hidden, 1))
    while sizes.p > (SMALL_WEIGHTS if case.small else MAX_WEIGHTS) and max(hidden) > 1:
        hidden = [max(1, width // 2) for width in hidden]
        sizes = sizes._replace(widths=(D, *hidden, 1))
    decisions = DECISIONS // 2 if case.small else DECISIONS
    past, K = (
        min(request.past, SMALL_PAST if case.small else MAX_PAST),
        min(request.n_candidates, MAX_ARMS),
    )
    simulator: dict[str, Any] = {"kind": "petshop", "n_products": K}
    if case.simulator == "synthetic":
        simulator = {"kind": "synthetic", "n_arms": K, "n_features": D}
    agent = {
        "kind": "neural_ucb",
        "hidden": hidden,
        "covariance": "exact",
        "exact_up_to": past + decisions,
    }
    experiment = Experiment.model_validate(
        {
            "simulator": simulator,
            "agents": [agent],
            "steps": past + decisions,
            "replications": 1,
            "seed": request.seed,
        }
    )
    lane = make_lane(experiment, 0)
    kinds = FULL_MATRIX if case.small else COMPARED
    recorder = WidthRecorder(lane.agent, kinds)  # type: ignore[arg-type]
    lane.advance(past)
    recorder.recording = True
    lane.advance(decisions)
    return [recorder.agreement(kind, case.title, past) for kind in kinds]


class WidthRecorder:
    """Exact covariance for an agent that records the widths of other methods too."""

    def __init__(self, agent: NeuralUCB, kinds: tuple[str, ...]) -> None:
        from .neural_methods import REGISTRY

        assert isinstance(agent.confidence, ExactCovariance)
        self.exact, self.net, self.alpha = agent.confidence, agent.net, float(agent.alpha[0])
        self.methods: dict[str, WidthMethod] = {kind: REGISTRY[kind](agent.net) for kind in kinds}
        self.recording = False
        self.records: dict[str, list[tuple[FloatArray, FloatArray, FloatArray]]] = {
            kind: [] for kind in kinds
        }
        self._x: Tensor | None = None
        agent.confidence = self

    def squared_widths(self, candidates: GradientFactors) -> Tensor:
        """Compute the exact squared widths, and record those of all methods."""
        squared = self.exact.squared_widths(candidates)
        x = self._x = candidates.h[0][0].clone()
        exact = _array(squared[0].sqrt())
        mean = _array(self.net.forward(x[None]).out[0, :, 0]) if self.recording else exact
        for kind, method in self.methods.items():
            widths = _array(method.widths(x))
            if self.recording:
                self.records[kind].append((mean, exact, widths))
        return squared

    def add(self, chosen: GradientFactors, root_weights: Tensor) -> None:
        """Update all methods with the agent's choice."""
        self.exact.add(chosen, root_weights)
        assert self._x is not None
        arm = int((self._x == chosen.h[0][0, 0]).all(1).int().argmax())
        for method in self.methods.values():
            method.update(arm)

    def state_dict(self) -> dict[str, Any]:
        return self.exact.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.exact.load_state_dict(state)

    def agreement(self, kind: str, simulator: str, past: int) -> Agreement:
        """Compare the recorded widths of one method with the exact ones."""
        # each (n, K)
        mean, exact, widths = (np.stack(column) for column in zip(*self.records[kind], strict=True))
        every = -(-exact.size // PLOTTED)
        ranks = spearman(exact, widths)
        # undefined for equal widths
        ranks = ranks[np.isfinite(ranks)]
        return Agreement(
            kind,
            simulator,
            int(self.net.flat.shape[1]),
            past,
            len(exact),
            rank=float(ranks.mean()) if len(ranks) else float("nan"),
            same=float(
                np.mean(
                    (mean + self.alpha * widths).argmax(1) == (mean + self.alpha * exact).argmax(1)
                )
            ),
            scale=float(np.exp(np.log(widths / exact).mean())),
            exact=tuple(exact.ravel()[::every].tolist()),
            widths=tuple(widths.ravel()[::every].tolist()),
        )


def spearman(a: FloatArray, b: FloatArray) -> FloatArray:
    """Compute the rank correlations of the rows of ``a (n, K)`` and ``b (n, K)``.

    NaN where all values of a row are equal.
    """
    a, b = (
        ranks - ranks.mean(axis=1, keepdims=True)
        for ranks in (rankdata(a, axis=1), rankdata(b, axis=1))
    )
    with np.errstate(invalid="ignore"):
        return np.asarray((a * b).sum(1) / np.sqrt((a * a).sum(1) * (b * b).sum(1)))


def _array(values: Any) -> FloatArray:
    return np.asarray(values.double().cpu().numpy())


class NeuralGrids(Grids):
    """Networks of growing width, observations of the dual, and candidates."""

    request: NeuralRequest
    smallest = Sizes(2, 10, (2, 2, 1))
    activity = "Comparing the widths"

    @property
    def weight(self) -> int:
        return 10 * len(CASES)

    def plan(self) -> list[tuple[str, CostAxis, Sizes]]:
        base = self.request.sizes
        networks = network_grid(base)
        todo: list[tuple[str, CostAxis, Sizes]] = [
            (kind, "p", sizes) for sizes in networks for kind in NEURAL_METHODS
        ]
        # with many candidates, the growth with p would not show
        if base.K > 2 * FEW_CANDIDATES:
            todo += [
                (kind, "p", sizes._replace(K=FEW_CANDIDATES))
                for sizes in networks
                for kind in FULL_MATRIX
            ]
        todo += [
            ("dual", "t", base._replace(t=t)) for t in size_grid(50, 5000, base.t, (1, 2, 3, 5))
        ]
        return todo + [
            (kind, "K", base._replace(K=K))
            for K in size_grid(10, 2000, base.K)
            for kind in NEURAL_METHODS
        ]

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
        matrix = (
            4 * sizes.p**2
            if kind in FULL_MATRIX
            else 8 * dual_capacity(sizes.t + 1) ** 2
            if kind == "dual"
            else 0
        )
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
        for i, case in enumerate(CASES):
            with one_thread():
                compared = compare_methods(self.request, case)
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
    past, x = (
        torch.from_numpy(generator.normal(size=(int(n), widths[0]))).float()
        for n in (sizes.t, sizes.K)
    )
    return net, past, x
