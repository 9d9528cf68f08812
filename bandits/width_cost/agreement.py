"""Compare the widths of the methods at the same decisions of one NeuralUCB agent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.stats import rankdata

from bandits.base.types import FloatArray
from bandits.experiments.experiment import Experiment
from bandits.experiments.lockstep import make_lane
from bandits.models.neural.gradient_covariance import ExactCovariance
from bandits.models.neural.mlp import GradientFactors

from .complexity import FULL_MATRIX
from .request import NeuralRequest
from .results import Agreement

if TYPE_CHECKING:
    from torch import Tensor

    from bandits.agents.neural.neural_ucb import NeuralUCB

    from .neural_methods import WidthMethod

DECISIONS = 200  # that are compared; half as many with a small network
MAX_PAST, MAX_ARMS, MAX_WEIGHTS = 200, 200, 50_000  # larger requests are reduced to save time
SMALL_WEIGHTS, SMALL_PAST = 310, 50  # sizes for which a p x p inverse can be computed at every step
PLOTTED = 300  # widths kept for the figure


COMPARED = ("diagonal", "last")  # an ensemble and dropout measure another uncertainty, on another scale


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

    All methods use the agent's network, which continues to learn, and are updated with the agent's choices. The network
    is small for the methods with a p x p matrix.
    """
    hidden = list(request.hidden)
    D = request.n_features if case.simulator == "synthetic" else 9
    sizes = request.sizes._replace(widths=(D, *hidden, 1))
    while sizes.p > (SMALL_WEIGHTS if case.small else MAX_WEIGHTS) and max(hidden) > 1:
        hidden = [max(1, width // 2) for width in hidden]
        sizes = sizes._replace(widths=(D, *hidden, 1))
    decisions = DECISIONS // 2 if case.small else DECISIONS
    past, K = min(request.past, SMALL_PAST if case.small else MAX_PAST), min(request.n_candidates, MAX_ARMS)
    simulator: dict[str, Any] = {"kind": "petshop", "n_products": K}
    if case.simulator == "synthetic":
        simulator = {"kind": "synthetic", "n_arms": K, "n_features": D}
    agent = {"kind": "neural_ucb", "hidden": hidden, "covariance": "exact", "exact_up_to": past + decisions}
    experiment = Experiment.model_validate(
        {"simulator": simulator, "agents": [agent], "steps": past + decisions, "replications": 1, "seed": request.seed}
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
        self.records: dict[str, list[tuple[FloatArray, FloatArray, FloatArray]]] = {kind: [] for kind in kinds}
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
        ranks = ranks[np.isfinite(ranks)]  # undefined for equal widths
        return Agreement(
            kind, simulator, int(self.net.flat.shape[1]), past, len(exact),
            rank=float(ranks.mean()) if len(ranks) else float("nan"),
            same=float(np.mean((mean + self.alpha * widths).argmax(1) == (mean + self.alpha * exact).argmax(1))),
            scale=float(np.exp(np.log(widths / exact).mean())),
            exact=tuple(exact.ravel()[::every].tolist()), widths=tuple(widths.ravel()[::every].tolist()),
        )  # fmt: skip


def spearman(a: FloatArray, b: FloatArray) -> FloatArray:
    """Compute the rank correlations of the rows of ``a (n, K)`` and ``b (n, K)``.

    NaN where all values of a row are equal.
    """
    a, b = (ranks - ranks.mean(axis=1, keepdims=True) for ranks in (rankdata(a, axis=1), rankdata(b, axis=1)))
    with np.errstate(invalid="ignore"):
        return np.asarray((a * b).sum(1) / np.sqrt((a * a).sum(1) * (b * b).sum(1)))


def _array(values: Any) -> FloatArray:
    return np.asarray(values.double().cpu().numpy())
