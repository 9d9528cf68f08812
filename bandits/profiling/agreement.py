"""Do the ways agree? All of them look at the same decisions of one agent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.stats import rankdata

from bandits.base.types import FloatArray
from bandits.experiments.experiment import Experiment
from bandits.experiments.race import make_lane
from bandits.models.neural.gradient_covariance import ExactCovariance
from bandits.models.neural.mlp import GradientFactors

from .complexity import SQUARE
from .request import ProfileRequest
from .results import Agreement

if TYPE_CHECKING:
    from torch import Tensor

    from bandits.agents.neural.neural_ucb import NeuralUCB

    from .methods import Way

DECISIONS = 200  # that are compared; half of them with a small network
MOST_PAST, MOST_ARMS = 200, 200  # what the comparison can wait for
MOST_WEIGHTS = 50_000  # likewise
SMALL, FEW = 310, 50  # weights and observations with which a p x p inverse can be had at every step
DRAWN = 300  # widths that are kept for the picture


class Scene(NamedTuple):
    """A world, and which ways are looked at there beside the exact one."""

    world: str
    title: str
    small: bool = False


SCENES = (
    Scene("petshop", "Pet shop"),
    Scene("synthetic", "Quadratic rewards"),
    Scene("petshop", "Pet shop, small", small=True),
)


def look(question: ProfileRequest, scene: Scene) -> list[Agreement]:
    """Let NeuralUCB with exact widths race, and ask the other ways at its last decisions.

    All ways see the agent's own network, which learns on, and add the gradients of what the agent chose. For the p x p
    ways the network is made small.
    """
    hidden = list(question.hidden)
    D = question.n_features if scene.world == "synthetic" else 9
    sizes = question.sizes._replace(widths=(D, *hidden, 1))
    while sizes.p > (SMALL if scene.small else MOST_WEIGHTS) and max(hidden) > 1:
        hidden = [max(1, width // 2) for width in hidden]
        sizes = sizes._replace(widths=(D, *hidden, 1))
    decisions = DECISIONS // 2 if scene.small else DECISIONS
    past, K = min(question.past, FEW if scene.small else MOST_PAST), min(question.n_candidates, MOST_ARMS)
    world: dict[str, Any] = {"kind": "petshop", "n_products": K}
    if scene.world == "synthetic":
        world = {"kind": "synthetic", "n_arms": K, "n_features": D}
    agent = {"kind": "neural_ucb", "hidden": hidden, "covariance": "exact", "exact_up_to": past + decisions}
    experiment = Experiment.model_validate(
        {"simulator": world, "agents": [agent], "steps": past + decisions, "replications": 1, "seed": question.seed}
    )
    lane = make_lane(experiment, 0)
    kinds = SQUARE if scene.small else ("diagonal", "last")
    witness = Witness(lane.agent, kinds)  # type: ignore[arg-type]
    lane.advance(past)
    witness.watching = True
    lane.advance(decisions)
    return [witness.says(kind, scene.title, past) for kind in kinds]


class Witness:
    """Stands in an agent's place of confidence: answers as the exact way does, and asks the others too."""

    def __init__(self, agent: NeuralUCB, kinds: tuple[str, ...]) -> None:
        from .methods import REGISTRY

        assert isinstance(agent.confidence, ExactCovariance)
        self.exact, self.net, self.alpha = agent.confidence, agent.net, float(agent.alpha[0])
        self.ways: dict[str, Way] = {kind: REGISTRY[kind](agent.net) for kind in kinds}
        self.watching = False
        self.seen: dict[str, list[tuple[FloatArray, FloatArray, FloatArray]]] = {kind: [] for kind in kinds}
        self._x: Tensor | None = None
        agent.confidence = self  # type: ignore[assignment]

    def squared_widths(self, candidates: GradientFactors) -> Tensor:
        """The exact ones."""
        squared = self.exact.squared_widths(candidates)
        x = self._x = candidates.h[0][0].clone()
        exact = _array(squared[0].sqrt())
        mean = _array(self.net.forward(x[None]).out[0, :, 0]) if self.watching else exact
        for kind, way in self.ways.items():
            widths = _array(way.widths(x))
            if self.watching:
                self.seen[kind].append((mean, exact, widths))
        return squared

    def add(self, chosen: GradientFactors, counts: Tensor) -> None:
        """What the agent chose, to all."""
        self.exact.add(chosen, counts)
        assert self._x is not None
        arm = int((self._x == chosen.h[0][0, 0]).all(1).int().argmax())
        for way in self.ways.values():
            way.update(arm)

    def says(self, kind: str, world: str, past: int) -> Agreement:
        """How one way did beside the exact one."""
        # each (n, K)
        mean, exact, widths = (np.stack(column) for column in zip(*self.seen[kind], strict=True))
        every = -(-exact.size // DRAWN)
        ranks = spearman(exact, widths)
        ranks = ranks[np.isfinite(ranks)]  # equal widths have no order
        return Agreement(
            kind, world, int(self.net.flat.shape[1]), past, len(exact),
            rank=float(ranks.mean()) if len(ranks) else float("nan"),
            same=float(np.mean((mean + self.alpha * widths).argmax(1) == (mean + self.alpha * exact).argmax(1))),
            scale=float(np.exp(np.log(widths / exact).mean())),
            exact=tuple(exact.ravel()[::every].tolist()), widths=tuple(widths.ravel()[::every].tolist()),
        )  # fmt: skip


def spearman(a: FloatArray, b: FloatArray) -> FloatArray:
    """Rank correlation of each row of ``a (n, K)`` with that of ``b (n, K)``; NaN where all of a row are equal."""
    a, b = (ranks - ranks.mean(axis=1, keepdims=True) for ranks in (rankdata(a, axis=1), rankdata(b, axis=1)))
    with np.errstate(invalid="ignore"):
        return np.asarray((a * b).sum(1) / np.sqrt((a * a).sum(1) * (b * b).sum(1)))


def _array(values: Any) -> FloatArray:
    return np.asarray(values.double().cpu().numpy())
