"""Neural-linear Thompson sampling for clicks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from bandits.agents.base import LearnerParams
from bandits.base.explanation import Explanation
from bandits.base.params import override_default, param
from bandits.base.randomness import Streams, block_length
from bandits.base.types import Feedback, FloatArray, IntArray, Round, WorldAccess, WorldSpec
from bandits.models.neural import mlp
from bandits.models.neural.mlp import BatchedMLP
from bandits.models.neural.replay_buffer import ReplayBuffer, of_all, places, spread
from bandits.models.position_bias import targets

from .base import EXPLODED, NeuralAgent, NeuralParams, Width

if TYPE_CHECKING:
    from torch import Tensor


class NeuralClickTS(NeuralAgent):
    """Thompson sampling on the log-odds of a click, linear in a network's last layer [1]_.

    logit_a ~ N(phi_a . beta, sigma^2 phi_a' S^+ phi_a), S = epsilon I + sum phi phi' over what was shown

    What is shown is collected. Whenever the buffer is full, network and beta make one pass of stochastic gradient
    descent on the log loss, batch by batch, each phi is added to S as it was before its batch, and the buffer is
    emptied: no datum is seen twice. phi_a is linear in the layer below (there is a ReLU before it only if asked for, as
    a warning: then some coordinates of phi are 0 for every candidate, and the smallest eigenvalue of S stays epsilon).

    Notes
    -----
    The published draw is an independent one per candidate, though all share beta (``draw`` shared is the honest one),
    and its pseudo-inverse, in single precision, takes directions hardly seen for certain (``inverse`` exact does not).
    With ``vectors`` tuned, the vectors of user and item start as they are shown and are trained with the rest.

    References
    ----------
    .. [1] Su et al. (2023), Long-term value of exploration: measurements, findings and algorithms, section 4.
    """

    class Params(LearnerParams):
        # what every network's parameters have; here there is no choice
        optimiser: ClassVar[str] = "sgd"
        loss: ClassVar[str] = "log"
        training: ClassVar[str] = "replay"
        kind: Literal["neural_click_ts"] = "neural_click_ts"
        sigma2: float = param(
            1e-4, title="Exploration", symbol=r"\sigma^2", ge=0, le=100, typical=(1e-6, 1), log=True, basic=True,
            help="Scale of the variance of the log-odds: larger draws wander further from the mean.",
        )  # fmt: skip
        epsilon: float = param(
            1e-6, title="Prior precision", symbol=r"\varepsilon", gt=0, le=1e4, typical=(1e-6, 1), log=True,
            help="What S starts with in every direction: the smaller, the greater the doubt before any data.",
        )  # fmt: skip
        hidden: tuple[Width, ...] = override_default(NeuralParams, "hidden", (32, 16))
        learning_rate: float = override_default(NeuralParams, "learning_rate", 1e-3)
        buffer: int = param(
            32, title="Train every", unit="items shown", ge=1, le=100_000, typical=(1, 1000), structural=True,
            help="Items shown between trainings; each is trained on once.",
        )  # fmt: skip
        batch: int = override_default(NeuralParams, "batch", 32)
        draw: Literal["independent", "shared"] = param(
            "independent", title="Draw", structural=True,
            help="independent: every candidate has its own, as published. shared: one draw of beta for all of them.",
        )  # fmt: skip
        inverse: Literal["pseudo", "exact"] = param(
            "pseudo", title="Inverse", structural=True,
            help="pseudo: directions hardly seen are taken for certain, as published. exact: they are doubted most.",
        )  # fmt: skip
        relu: bool = param(
            False, title="ReLU before the head", structural=True,
            help="On: the last hidden layer is cut off at zero, and some of its units are zero for every candidate.",
        )  # fmt: skip
        vectors: Literal["fixed", "tuned"] = param(
            "fixed", title="Vectors of users and items", structural=True,
            help="fixed: features are what they are. tuned: the two vectors they consist of are trained too.",
        )  # fmt: skip

    title = "Neural click TS"
    formula = (
        r"\phi_a^\top\beta+\sigma\sqrt{\phi_a^\top S^+\phi_a}\;\xi_a,\quad\xi_a\sim\mathcal N(0,1),\quad"
        r"S=\varepsilon I+\textstyle\sum\phi\phi^\top"
    )
    uncertainty = "posterior"
    colour = "#009E73"
    dash = "dashdot"
    needs = frozenset({"binary"})
    propensity = "monte_carlo"

    @classmethod
    def prior_precision(cls, params: Any) -> float | None:
        return float(params.epsilon)

    @classmethod
    def test_params(cls) -> list[dict[str, Any]]:
        small = {"hidden": (6, 4), "buffer": 20, "batch": 8}
        return [small, {**small, "draw": "shared"}, {**small, "inverse": "exact"}]

    def __init__(self, params: Sequence[Any], spec: WorldSpec, streams: Streams, access: WorldAccess) -> None:
        import torch

        p, R, m = params[0], len(params), params[0].hidden[-1]
        self.identified = p.vectors == "tuned"
        super().__init__(params, spec, streams, access)
        self.replay = ReplayBuffer(R, self.shown_width(), p.buffer + spec.slate)
        self.sigma = np.sqrt(self.column("sigma2"))
        self.S = self.column("epsilon")[:, None, None] * np.eye(m)
        self.state = ("S",)
        self._half: FloatArray | None = None
        width = spec.n_features // 2 if self.identified else 0
        n = (spec.n_users, spec.n_items) if self.identified else (0, 0)
        # how far the vectors of users and items have moved
        self.moved = [torch.zeros((R, count, width), device=self.device) for count in n]
        width = spec.n_candidates if p.draw == "independent" else m
        self.normals = streams.blocks("agent", lambda g, n: g.standard_normal((n, width)), width=width)

    def make_networks(self) -> BatchedMLP:
        first = self.first_weights()
        first[:, -1] = 0  # phi . beta has no constant
        return BatchedMLP(first, self.widths, device=self.device, linear_last=not self.params[0].relu)

    # what it sees

    def per_network(self, x: Tensor) -> Tensor:
        """What goes into the network: the features, with the vectors where they have moved to."""
        import torch

        if not self.identified:
            return x
        rows = torch.arange(len(x), device=x.device)[:, None]
        away = [moved[rows, ids] for moved, ids in zip(self.moved, self.ids(x), strict=True)]
        away.append(x.new_zeros((*x.shape[:2], self.spec.n_features - 2 * away[0].shape[2])))
        return x[..., :-2] + torch.cat(away, dim=2)

    @staticmethod
    def ids(shown: Tensor) -> tuple[Tensor, Tensor]:
        """Numbers of users and items, two of (R, B)."""
        return shown[..., -2].long(), shown[..., -1].long()

    def believed_of(self, round: Round) -> tuple[Tensor, FloatArray]:
        """Log-odds (R, K') of the distinct candidates, and phi S^+^(1/2) (R, K', m)."""
        passed = self.passed(round)
        phi: FloatArray = passed.inputs[-1].cpu().double().numpy()
        return self.believed(passed), phi @ self.half_inverse

    @property
    def half_inverse(self) -> FloatArray:
        """W with W W' = S^+, (R, m, m)."""
        if self._half is None:
            sound = np.asarray(np.isfinite(self.S).all(axis=(1, 2)))[:, None, None]
            values, vectors = np.linalg.eigh(np.where(sound, self.S, np.eye(self.S.shape[1])))
            least = 0.0
            if self.params[0].inverse == "pseudo":  # what torch.linalg.pinv cuts off in single precision
                least = values[:, -1:] * values.shape[1] * np.finfo(np.float32).eps
            kept = values > least
            self._half = vectors * np.where(kept, np.where(kept, values, 1.0) ** -0.5, 0.0)[:, None, :]
        return self._half

    # how it chooses

    def scores(self, round: Round) -> FloatArray:
        return self.drawn(round, self.normals.at(round.step))

    def drawn(self, round: Round, normals: FloatArray) -> FloatArray:
        """Scores by these standard normals: of every candidate, or of every direction of beta."""
        mean, doubt = self.believed_of(round)
        which = self.look(round).which
        if self.params[0].draw == "shared":
            return spread(mean, which) + self.sigma[:, None] * of_all((doubt @ normals[:, :, None])[..., 0], which)
        width = np.sqrt((doubt**2).sum(axis=2))
        return spread(mean, which) + self.sigma[:, None] * of_all(width, which) * normals

    def explain(self, round: Round) -> Explanation:
        mean, doubt = self.believed_of(round)
        which = self.look(round).which
        width = of_all(np.sqrt((doubt**2).sum(axis=2)), which)
        return Explanation("sample", self.scores(round), spread(mean, which), width, self.sigma[:, None], logit=True)

    def redraws(self, round: Round, generator: np.random.Generator) -> Iterator[FloatArray]:
        shape = self.normals.at(round.step).shape
        while True:
            yield self.drawn(round, generator.standard_normal(shape))

    # how it learns

    def learn(self, round: Round, slate: IntArray, feedback: Feedback) -> None:
        look, shows = self.look(round), self.shows(feedback)
        x, items = self.taken(look.x, places(look.which, slate)), np.take_along_axis(round.items, slate, axis=1)
        self.replay.add(x.cpu().numpy(), items, targets(feedback, shows), shows[:, :, None])
        self.seen += slate.shape[1]
        while self.replay.size >= self.params[0].buffer:
            self.train()
        self.forget()

    def train(self) -> None:
        """One pass through the buffer, in the order in which it was filled; what has come beyond it is left in it."""
        n, R = self.params[0].buffer, len(self.params)
        for start in range(0, n, self.params[0].batch):
            index = np.arange(start, min(n, start + self.params[0].batch))
            x, items, rewards, weight = self.replay.batch(np.broadcast_to(index, (R, len(index))))
            self.improve(self.tensor(x), self.index(items), self.tensor(rewards), self.tensor(weight))
        self.replay.drop(n)
        self._half = None

    def improve(self, x: Tensor, items: Tensor, rewards: Tensor, weight: Tensor) -> None:  # noqa: ARG002
        import torch

        passed, shows = self.net.forward(self.per_network(x)), weight[..., 0]
        phi: FloatArray = passed.inputs[-1].cpu().double().numpy()
        phi[~(np.abs(phi).max(axis=(1, 2)) <= EXPLODED)] = np.nan
        self.S += phi.transpose(0, 2, 1) @ (phi * shows.cpu().double().numpy()[..., None])
        total = shows.sum(1, keepdim=True).clamp_min(1.0)
        delta = (self.slope(self.output(passed), rewards) * shows / total)[..., None]
        if self.identified:
            below = self.net.deltas(passed, delta)[0] @ self.net.layers[0][0] * self.optimiser.rate[:, None]
            rows, width = torch.arange(len(x), device=x.device)[:, None], self.moved[0].shape[2]
            for i, (moved, ids) in enumerate(zip(self.moved, self.ids(x), strict=True)):
                moved.index_put_((rows, ids), -below[..., i * width : (i + 1) * width], accumulate=True)
        gradient = self.net.backward(passed, delta)
        gradient[:, -1] = 0
        self.descend(gradient)

    def spectrum(self, bases: list[FloatArray]) -> FloatArray | None:  # noqa: ARG002 - phi has a space of its own
        sound = np.asarray(np.isfinite(self.S).all(axis=(1, 2)))[:, None, None]
        values = np.linalg.eigvalsh(np.where(sound, self.S, np.eye(self.S.shape[1])))[:, None, ::-1]
        return np.where(sound, values, np.nan)

    @classmethod
    def spans_arms(cls, params: Any) -> bool | None:  # noqa: ARG003
        return False

    # what is saved

    def weights(self) -> dict[str, Any]:
        moved = {f"moved{i}": moved.cpu().numpy().copy() for i, moved in enumerate(self.moved)}
        return super().weights() | (moved if self.identified else {})

    def load_weights(self, state: dict[str, Any]) -> None:
        import torch

        super().load_weights(state)
        self._half = None
        for i, moved in enumerate(self.moved if self.identified else ()):
            moved.copy_(torch.from_numpy(state[f"moved{i}"]))

    @classmethod
    def requires(cls, params: Any) -> frozenset[str]:
        return super().requires(params) | (frozenset({"vectors"}) if params.vectors == "tuned" else frozenset())

    @classmethod
    def memory(cls, params: Any, spec: WorldSpec) -> int:
        D, K, m = spec.n_features, spec.n_candidates, params.hidden[-1]
        widths = (D, *params.hidden, 1)
        moved = 4 * (spec.n_users + spec.n_items) * D if params.vectors == "tuned" else 0
        width = K if params.draw == "independent" else m
        remembered = ReplayBuffer.memory(D + 2, params.buffer + spec.slate) * 2
        at_once = 4 * 4 * max(K, params.batch) * (sum(widths) + 4 * m)
        return int(
            8 * 4 * mlp.size(widths) + 2 * moved + remembered + at_once + 8 * 8 * m * m
            + 8 * block_length(width) * width + 8 * 41 * m + 64 * K + 1024
        )  # fmt: skip
