"""Neural click TS: neural-linear Thompson sampling on the log-odds of a click."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numba import njit

from bandits.agents.model_params import gamma_param
from bandits.agents.params import LearnerParams
from bandits.base.explanation import Explanation
from bandits.base.params import override_default, param
from bandits.base.randomness import Streams, block_length
from bandits.base.types import (
    Feedback,
    Float32Array,
    FloatArray,
    IntArray,
    LoggedData,
    Round,
    SimulatorAccess,
    SimulatorSpec,
)
from bandits.models.neural.batch_gradient import loss_gradient
from bandits.models.neural.distinct_candidates import expand_array
from bandits.models.neural.mlp import BatchedMLP, count_weights
from bandits.models.neural.replay_buffer import ReplayBuffer
from bandits.models.position_bias import targets

from .base import DIVERGED
from .params import NeuralParams, Width
from .vectors import VectorAgent
from .warm_start import pretrain_param

if TYPE_CHECKING:
    from torch import Tensor


@njit(cache=True, nogil=True)
def last_layer_width(phi: Float32Array, root: FloatArray) -> FloatArray:
    """Compute sqrt(phi' W W' phi) of every candidate in double precision, float64 (R, K).

    Parameters
    ----------
    phi : float32 (R, K, m)
    root : float64 (R, m, m)
        W, whose product W W' is the covariance.
    """
    R, K, m = phi.shape
    out = np.empty((R, K))
    double = np.empty((m, K))
    for r in range(R):
        for k in range(K):
            for i in range(m):
                double[i, k] = phi[r, k, i]
        turned = np.dot(np.ascontiguousarray(root[r].T), double)
        variance = out[r]
        variance[:] = 0.0
        # candidates innermost: several in one instruction
        for i in range(m):
            for k in range(K):
                variance[k] += turned[i, k] * turned[i, k]
        for k in range(K):
            variance[k] = np.sqrt(variance[k])
    return out


class NeuralClickTS(VectorAgent):
    """Thompson sampling on log-odds that are linear in a network's last layer [1]_.

    logit_a ~ N(phi_a . beta, sigma^2 phi_a' S^+ phi_a), S = epsilon I + sum phi phi' over the items
    shown

    Whenever the buffer is full, network and beta make one pass of stochastic gradient descent on
    the log loss, batch by batch; each phi is added to S as computed before its batch, and the
    buffer is emptied. Each observation is used once. phi_a is linear in the layer below. The option
    of a ReLU before it shows why: some coordinates of phi are then 0 for every candidate, and the
    smallest eigenvalue of S stays at epsilon.

    It can forget: with ``gamma``, a training discounts the sum in S to its step, so that a phi that
    is k steps old has weight gamma^k; epsilon is not discounted. beta and network forget at the
    rate of their gradient descent. There is no window, because S would need every phi as it was.

    Notes
    -----
    The published algorithm draws independently for each candidate although all share beta (``draw``
    shared draws from the joint posterior), and its pseudo-inverse in single precision gives
    directions with almost no data a variance of 0 (``inverse`` exact does not). With ``vectors``
    tuned, the vectors of user and item are trained with the network, from their given values. With
    ``head_learning_rate``, beta has a step size of its own, and the network below keeps
    ``learning_rate``.

    References
    ----------
    .. [1] Su et al. (2023), Long-term value of exploration: measurements, findings and algorithms,
           section 4.
    """

    class Params(LearnerParams):
        # fields of the other neural agents, with fixed values here
        optimiser: ClassVar[str] = "sgd"
        loss: ClassVar[str] = "log"
        training: ClassVar[str] = "replay"
        kind: Literal["neural_click_ts"] = "neural_click_ts"
        sigma2: float = param(
            0.1,
            title="Posterior scale",
            symbol=r"\sigma^2",
            ge=0,
            le=100,
            typical=(1e-6, 1),
            log=True,
            basic=True,
            usual=(0.001, 1),
            help=(
                "Factor of the posterior variance of the log-odds. Larger values draw samples "
                "farther from the mean and explore more (usually 0.001 to 1)."
            ),
        )
        epsilon: float = param(
            1.0,
            title="Prior precision",
            symbol=r"\lambda",
            gt=0,
            le=1e4,
            typical=(1e-6, 1),
            log=True,
            help=(
                "Initial eigenvalue of A in every direction. Larger values mean less uncertainty "
                "before any data (usually 0.000001 to 1)."
            ),
        )
        hidden: tuple[Width, ...] = override_default(NeuralParams, "hidden", (32, 16))
        learning_rate: float = override_default(NeuralParams, "learning_rate", 1.0)
        head_learning_rate: float | None = param(
            None,
            title="Head learning rate",
            gt=0,
            le=10,
            typical=(1e-3, 1),
            log=True,
            later=True,
            empty="that of the network",
            help=(
                "Step size of the last layer apart from the layers below. Larger values "
                "learn faster but may diverge (usually 0.001 to 1); empty means the learning "
                "rate of the network."
            ),
        )
        buffer: int = param(
            32,
            title="Training interval",
            unit="items shown",
            ge=1,
            le=100_000,
            typical=(1, 1000),
            structural=True,
            help=(
                "Items shown between two trainings; each is used once. Larger values train less "
                "often (usually 1 to 1,000)."
            ),
        )
        batch: int = override_default(NeuralParams, "batch", 8)
        draw: Literal["independent", "shared"] = param(
            "independent",
            title="Posterior draw",
            structural=True,
            help=(
                "independent: one draw per candidate, as published. shared: one draw of β for "
                "all candidates."
            ),
        )
        inverse: Literal["pseudo", "exact"] = param(
            "exact",
            title="Inverse",
            structural=True,
            help=(
                "pseudo: directions with almost no data have variance 0, as published. exact: "
                "they have the largest variance."
            ),
        )
        relu: bool = param(
            False,
            title="ReLU before head",
            structural=True,
            help=(
                "Applies a ReLU to the last hidden layer. Some of its units are then 0 for every "
                "candidate."
            ),
        )
        vectors: Literal["fixed", "tuned"] = param(
            "fixed",
            title="Input vectors",
            structural=True,
            help=(
                "fixed: the vectors of user and item stay as given. tuned: they are trained with "
                "the network."
            ),
        )
        gamma: float = gamma_param()
        pretrain: int = pretrain_param()

        def mode(self) -> str:
            own = ("discounted", self.gamma < 1), ("head rate", self.head_learning_rate is not None)
            return " ".join(name for name, there in own if there)

    PRETRAIN_READS: ClassVar[tuple[str, ...]] = (
        "hidden",
        "pretrain",
        "learning_rate",
        "head_learning_rate",
        "relu",
        "vectors",
    )
    title = "Neural click TS"
    formula = (
        r"\hat\theta^\top\phi_a+\sigma\sqrt{\phi_a^\top A^+\phi_a}\;\xi_a,\quad\xi_a\sim\mathcal N(0,1),\quad"  # noqa: E501
        r"A=\lambda I+\textstyle\sum\phi\phi^\top"
    )
    uncertainty = "posterior"
    exploration_param = "sigma2"
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
        ways: list[dict[str, Any]] = [{"draw": "shared"}, {"inverse": "exact"}, {"gamma": 0.98}]
        return [small, *({**small, **way} for way in (*ways, {"head_learning_rate": 0.1}))]

    @classmethod
    def forgets(cls, params: Any) -> bool:
        return bool(params.gamma < 1)

    def __init__(
        self, params: Sequence[Any], spec: SimulatorSpec, streams: Streams, access: SimulatorAccess
    ) -> None:
        p, m = params[0], params[0].hidden[-1]
        super().__init__(params, spec, streams, access)
        if p.vectors == "tuned":
            self.tables = self.make_tables(tuned=True)
        self.replay = ReplayBuffer(len(params), self.input_width(), p.buffer + spec.slate)
        self.sigma = np.sqrt(self.column("sigma2"))
        self.S = self.column("epsilon")[:, None, None] * np.eye(m)
        self.state = ("S",)
        # to which S is discounted
        self.gamma, self.trained_step = self.column("gamma"), np.zeros(1, np.int64)
        if p.gamma < 1:
            self.state += ("trained_step",)
        self._root_inverse: FloatArray | None = None
        # relative to the layers below, (R, 1)
        self._head_rate: Tensor | None = None
        if p.head_learning_rate is not None:
            self._head_rate = self.tensor(
                self.column("head_learning_rate") / self.column("learning_rate")
            )[:, None]
        width = spec.n_candidates if p.draw == "independent" else m
        self.normals = streams.blocks(
            "agent", lambda g, n: g.standard_normal((n, width)), width=width
        )

    def make_networks(self) -> BatchedMLP:
        weights = self.initial_weights()
        # phi . beta has no constant term
        weights[:, -1] = 0
        return BatchedMLP(
            weights, self.widths, device=self.device, linear_last=not self.params[0].relu
        )

    def input_width(self) -> int:
        return super().input_width() if self.params[0].vectors == "fixed" else 1

    # evaluation

    def width(self, round: Round) -> FloatArray:
        """Compute the standard deviation sqrt(phi' S^+ phi) of every candidate, (R, K)."""
        phi: Float32Array = self.forward_pass(round).inputs[-1].cpu().numpy()
        return expand_array(last_layer_width(phi, self.root_inverse), self.candidate_index(round))

    def deviation(self, round: Round, normals: FloatArray) -> FloatArray:
        """Compute phi S^+^(1/2) z with one z for all candidates, (R, K)."""
        phi: FloatArray = self.forward_pass(round).inputs[-1].cpu().double().numpy()
        drawn = (phi @ self.root_inverse @ normals[:, :, None])[..., 0]
        return expand_array(drawn, self.candidate_index(round))

    @property
    def root_inverse(self) -> FloatArray:
        """W with W W' = S^+, (R, m, m)."""
        if self._root_inverse is None:
            finite = np.asarray(np.isfinite(self.S).all(axis=(1, 2)))[:, None, None]
            values, vectors = np.linalg.eigh(np.where(finite, self.S, np.eye(self.S.shape[1])))
            threshold = 0.0
            # the threshold of torch.linalg.pinv in single precision
            if self.params[0].inverse == "pseudo":
                threshold = values[:, -1:] * values.shape[1] * np.finfo(np.float32).eps
            kept = values > threshold
            self._root_inverse = (
                vectors * np.where(kept, np.where(kept, values, 1.0) ** -0.5, 0.0)[:, None, :]
            )
        return self._root_inverse

    # choice

    def scores(self, round: Round) -> FloatArray:
        return self.sampled_scores(round, self.normals.at(round.step))

    def sampled_scores(self, round: Round, normals: FloatArray) -> FloatArray:
        """Compute scores from standard normals, of every candidate or direction of beta."""
        shared = self.params[0].draw == "shared"
        draw = self.deviation(round, normals) if shared else self.width(round) * normals
        return self.mean(round) + self.sigma[:, None] * draw

    def explain(self, round: Round) -> Explanation:
        mean, width = self.mean(round), self.width(round)
        return Explanation(
            "sample", self.scores(round), mean, width, self.sigma[:, None], logit=True
        )

    def redraws(self, round: Round, generator: np.random.Generator) -> Iterator[FloatArray]:
        shape = self.normals.at(round.step).shape
        while True:
            yield self.sampled_scores(round, generator.standard_normal(shape))

    # training

    def learn(self, round: Round, slate: IntArray, feedback: Feedback) -> None:
        counts, items = self.exposure(feedback), round.items[np.arange(len(slate))[:, None], slate]
        if self.tables is None:
            x = self.shown_input(round, slate, items).cpu().numpy()
        else:
            # of vectors that change, the user's index
            x = np.broadcast_to(round.users[:, None, None], (*items.shape, 1))
        self.replay.add(x, items, targets(feedback, counts), counts[:, :, None])
        self.n_observed += slate.shape[1]
        while self.replay.size >= self.params[0].buffer:
            self.train()
        self.clear_cache()

    def train(self) -> None:
        """Make one pass through a full buffer in order; later observations stay in it."""
        n, R = self.params[0].buffer, len(self.params)
        weight = self.discount(n)
        for start in range(0, n, self.params[0].batch):
            index = np.arange(start, min(n, start + self.params[0].batch))
            self.descend(
                *self.replay.batch(np.broadcast_to(index, (R, len(index)))), weight[:, index]
            )
        self.replay.drop(n)
        self._root_inverse = None

    def discount(self, n: int) -> FloatArray:
        """Discount S, apart from its prior, to the present step.

        Return the weights of n observations, (R, n).
        """
        if self.params[0].gamma == 1:
            return np.ones((len(self.params), n))
        now = (self.n_observed - 1) // self.spec.slate
        taken = (self.n_observed - self.replay.size + np.arange(n)) // self.spec.slate
        prior = self.column("epsilon")[:, None, None] * np.eye(self.S.shape[1])
        self.S[...] = prior + (self.gamma ** (now - self.trained_step))[:, None, None] * (
            self.S - prior
        )
        self.trained_step[:] = now
        return np.asarray(self.gamma[:, None] ** (now - taken))

    def descend(
        self, x: Any, items: IntArray, rewards: Any, weight: Any, decay: FloatArray
    ) -> None:
        """Make one step of gradient descent on a batch ``(R, B, ...)`` of the buffer, and add its
        phi to S.

        ``decay (R, B)`` is the weight of each phi in S beside its exposure.
        """
        users, counts = x[..., 0].astype(np.int64), self.tensor(weight[..., 0])
        if self.tables is not None:
            x = self.tables.pairs(users, items)
        phi, gradient, below = self.differentiate(self.tensor(x), self.tensor(rewards), counts)
        phi[~(np.abs(phi).max(axis=(1, 2)) <= DIVERGED)] = np.nan
        self.S += phi.transpose(0, 2, 1) @ (phi * (weight * decay[..., None]))
        if self.tables is not None:
            self.tables.add(users, items, (-below * self.optimiser.rate[:, None]).cpu().numpy())
        gradient[:, -1] = 0
        if self._head_rate is not None:
            gradient[:, -1 - self.widths[-2] :] *= self._head_rate
        self.apply_gradient(gradient)

    def differentiate(
        self, x: Tensor, rewards: Tensor, counts: Tensor
    ) -> tuple[FloatArray, Tensor, Tensor]:
        """Differentiate the mean log loss by the weights (R, p) and by x (R, B, D).

        Phi (R, B, m) comes first.
        """
        total = counts.sum(1, keepdim=True).clamp_min(1.0)
        if self.compiled:
            found = loss_gradient(
                self.net, x.numpy(), rewards.numpy(), (counts / total).numpy(), log_odds=True
            )
            return found.phi.astype(np.float64), self.net.gradient, self.tensor(found.input)
        forward_pass = self.net.forward(x)
        phi: FloatArray = forward_pass.inputs[-1].cpu().double().numpy()
        delta = (self.loss_derivative(self.output(forward_pass), rewards) * counts / total)[
            ..., None
        ]
        deltas = self.net.backpropagate(forward_pass, delta)
        return phi, self.net.gradients(forward_pass, deltas), deltas[0] @ self.net.layers[0][0]

    def pretrain_step(
        self, x: Float32Array, items: IntArray, rewards: FloatArray, weight: FloatArray
    ) -> None:
        # nothing is added to S
        self.descend(x, items, rewards, weight, np.zeros(items.shape))

    def log_input(self, log: LoggedData) -> Float32Array:
        return (
            super().log_input(log) if self.tables is None else log.users[:, None].astype(np.float32)
        )

    def spectrum(self, bases: list[FloatArray]) -> FloatArray | None:  # noqa: ARG002
        finite = np.asarray(np.isfinite(self.S).all(axis=(1, 2)))[:, None, None]
        values = np.linalg.eigvalsh(np.where(finite, self.S, np.eye(self.S.shape[1])))[
            :, None, ::-1
        ]
        return np.where(finite, values, np.nan)

    @classmethod
    def spans_arms(cls, params: Any) -> bool | None:  # noqa: ARG003
        return False

    # saving

    def weights(self) -> dict[str, Any]:
        changes = self.tables.changes if self.tables else ()
        return super().weights() | {f"moved{i}": change.copy() for i, change in enumerate(changes)}

    def load_weights(self, state: dict[str, Any]) -> None:
        super().load_weights(state)
        self._root_inverse = None
        if self.tables:
            self.tables.load([state["moved0"], state["moved1"]])

    @classmethod
    def requires(cls, params: Any) -> frozenset[str]:
        return super().requires(params) | (
            frozenset({"vectors"}) if params.vectors == "tuned" else frozenset()
        )

    @classmethod
    def alternatives(cls, spec: SimulatorSpec) -> list[dict[str, Any]]:
        return [
            *([{"pretrain": 0}] if "log" not in spec.capabilities else []),
            {"vectors": "fixed"},
        ]

    @classmethod
    def spectrum_width(cls, params: Any, spec: SimulatorSpec) -> int:  # noqa: ARG003
        return int(params.hidden[-1])

    @classmethod
    def memory(cls, params: Any, spec: SimulatorSpec) -> int:
        D, K, m = spec.n_features, spec.n_candidates, params.hidden[-1]
        widths = (D, *params.hidden, 1)
        # vectors and their changes
        moved = 4 * (spec.n_users + spec.n_items) * D if params.vectors == "tuned" else 0
        width = K if params.draw == "independent" else m
        stored = ReplayBuffer.memory(D + 2, params.buffer + spec.slate) * 2
        activations = 4 * 4 * max(K, params.batch) * (sum(widths) + 4 * m)
        return int(
            8 * 4 * count_weights(widths)
            + 2 * moved
            + stored
            + activations
            + 8 * 8 * m * m
            + 8 * block_length(width) * width
            + cls.spectra_memory(params, spec)
            + 64 * K
            + 1024
        )
