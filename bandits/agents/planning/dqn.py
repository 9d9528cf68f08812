"""Deep Q-network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from pydantic import model_validator

from bandits.agents.facts import Representation
from bandits.agents.neural.params import Width, hidden_param
from bandits.agents.neural.training import NetworkTraining
from bandits.base.params import param
from bandits.base.randomness import Streams
from bandits.base.types import (
    Feedback,
    FloatArray,
    IntArray,
    Round,
    SimulatorAccess,
    SimulatorSpec,
)
from bandits.models.neural import mlp
from bandits.models.neural.distinct_candidates import DistinctCandidates, expand, slot_index
from bandits.models.neural.initialisation import initial_weights
from bandits.models.neural.mlp import BatchedMLP
from bandits.models.neural.optimisers import make_optimiser
from bandits.models.neural.replay_buffer import ReplayBuffer

from .base import Loss, PlanningAgent, PlanningParams

if TYPE_CHECKING:
    from torch import Tensor

# a network with a larger absolute output is considered to have diverged
DIVERGED = 1e6


class DQN(PlanningAgent, NetworkTraining):
    """Learns the value of the rest of the visit by a network of state and item, from past steps.

    The network has one output, Q(s, a), and reads the features of a candidate, which hold the
    state. Its target is r + gamma max_b Q'(s', b) with an older copy Q' of the network; of
    ``n_step`` rewards where that is larger; r alone at the end of a visit.

    References
    ----------
    Mnih et al. (2015), Human-level control through deep reinforcement learning, Algorithm 1; van
    Hasselt, Guez, Silver (2016), Deep reinforcement learning with double Q-learning, equation 4.
    """

    class Params(PlanningParams):
        kind: Literal["dqn"] = "dqn"
        hidden: tuple[Width, ...] = hidden_param((64, 64), "values")
        learning_rate: float = param(
            1e-3,
            title="Learning rate",
            symbol=r"\eta",
            gt=0,
            le=1,
            typical=(1e-5, 0.1),
            log=True,
            basic=True,
            help=(
                "Step size of Adam. Larger values learn faster but may diverge; usually 0.0001 to "
                "0.001."
            ),
        )
        epsilon: float = param(
            0.05,
            title="Final exploration",
            symbol=r"\varepsilon",
            ge=0,
            le=1,
            sweep=(0.01, 0.5),
            help=(
                "Probability of a random item after the decay; at the start it is 1. Larger values "
                "explore more; usually 0.01 to 0.1."
            ),
        )
        decay: int = param(
            10_000,
            title="Exploration decay",
            unit="steps",
            ge=1,
            le=100_000_000,
            basic=True,
            typical=(1000, 500_000),
            help=(
                "Steps over which the exploration falls from 1 to its final value. Larger values "
                "explore longer; usually half of the run."
            ),
        )
        buffer: int = param(
            10_000,
            title="Replay buffer size",
            unit="steps",
            ge=10,
            le=100_000,
            structural=True,
            help=(
                "Number of latest steps that are stored for training. Larger buffers forget later "
                "and take more memory; usually 10,000 to 100,000."
            ),
        )
        batch: int = param(
            64,
            title="Batch size",
            ge=1,
            le=4096,
            structural=True,
            help=(
                "Steps per training. Larger batches have less noisy gradients and take longer; "
                "usually 64 to 128."
            ),
        )
        train_every: int = param(
            10,
            title="Training interval",
            unit="steps",
            ge=1,
            le=10_000,
            structural=True,
            help=(
                "Steps between two trainings. Larger values run faster and learn more slowly; "
                "usually 1 to 10."
            ),
        )
        target_every: int = param(
            500,
            title="Target interval",
            unit="steps",
            ge=1,
            le=1_000_000,
            structural=True,
            help=(
                "Steps after which the network of the targets is replaced by the current one; 1 "
                "does without one. Larger values are more stable and slower; usually 500 to 10,000."
            ),
        )
        learning_starts: int = param(
            1000,
            title="Learning start",
            unit="steps",
            ge=0,
            le=1_000_000,
            structural=True,
            help=(
                "Steps before the first training. Larger values train on more varied steps at "
                "first; usually 100 to 10,000."
            ),
        )
        double: bool = param(
            True,
            title="Double",
            structural=True,
            help=(
                "Whether the network chooses the next item whose value the older copy states, "
                "which lowers the bias of the maximum."
            ),
        )
        n_step: int = param(
            1,
            title="Reward steps",
            ge=1,
            le=5,
            structural=True,
            help=(
                "Number of rewards in a target, before the value of the state after them. Larger "
                "values learn from later rewards sooner and vary more; usually 1 to 3."
            ),
        )
        loss: Loss = param(
            "huber",
            title="Loss",
            structural=True,
            help="squared: the squared error. huber: errors above 1 count linearly.",
        )

        @model_validator(mode="after")
        def _buffer_holds_a_batch(self) -> Self:
            if self.buffer < self.batch + self.n_step:
                raise ValueError(
                    f"buffer is {self.buffer:,}; it must be at least batch and n_step together, "
                    f"{self.batch + self.n_step:,}"
                )
            return self

    title = "DQN"
    formula = r"r+\gamma\max_b Q(s',b;\,w')\approx Q(s,a;\,w)"
    colour = "#B8A500"
    dash = "dash"
    exploration_param = "epsilon"
    # a batched matrix product depends on the number of rows in its last bits
    alone = False
    row_by_row = False

    def __init__(
        self, params: Sequence[Any], spec: SimulatorSpec, streams: Streams, access: SimulatorAccess
    ) -> None:
        super().__init__(params, spec, streams, access)
        p = self.params[0]
        self.widths = (spec.n_features, *p.hidden, 1)
        self.device = mlp.device(len(self.params) * mlp.count_weights(self.widths) * p.batch)
        weights = initial_weights(streams, self.widths, part=1)
        self.net, self.older = (
            BatchedMLP(weights, self.widths, device=self.device) for _ in range(2)
        )
        self.optimiser = make_optimiser("adam", self.net.flat, self.column("learning_rate"))
        self.candidates = DistinctCandidates(spec, self.device)
        self.n_actions = spec.n_distinct or spec.n_candidates
        width = self.n_actions * spec.n_features
        # of each step all candidates, the one that was shown, and 1 unless the visit ended
        self.replay = ReplayBuffer(len(self.params), width, p.buffer)
        self.discount, self.epsilon = self.column("discount"), self.column("epsilon")
        self.decay = self.column("decay")
        self._encoded: tuple[int, Tensor, IntArray | None] | None = None

    @classmethod
    def test_params(cls) -> list[dict[str, Any]]:
        small = {"hidden": (6, 4), "buffer": 30, "batch": 4, "learning_starts": 5, "decay": 30}
        return [
            {**small, "train_every": 2, "target_every": 7},
            {**small, "train_every": 3, "double": False, "n_step": 3, "loss": "squared"},
        ]

    @classmethod
    def representation(cls, params: Any) -> Representation | None:  # noqa: ARG003
        return "network"

    @classmethod
    def memory(cls, params: Any, spec: SimulatorSpec) -> int:
        width = (spec.n_distinct or spec.n_candidates) * spec.n_features
        widths = (spec.n_features, *params.hidden, 1)
        batch = 2 * params.batch * (width + (spec.n_distinct or spec.n_candidates) * sum(widths))
        # with a saved copy, and while it grows
        stored = 2 * ReplayBuffer.memory(width, params.buffer)
        return int(stored + 8 * batch + 64 * mlp.count_weights(widths) + 4096)

    # choice

    def _encode(self, round: Round) -> tuple[Tensor, IntArray | None]:
        if self._encoded is None or self._encoded[0] != round.step:
            self._encoded = round.step, *self.candidates.of(round)
        return self._encoded[1:]

    def values(self, round: Round) -> FloatArray:
        x, index = self._encode(round)
        return expand(self.net.forward(x).out[..., 0], index, DIVERGED)

    def exploration(self, step: int) -> FloatArray:
        return np.maximum(self.epsilon, 1 - (1 - self.epsilon) * step / self.decay)

    # learning

    def learn(self, round: Round, slate: IntArray, feedback: Feedback) -> None:
        p, (x, index) = self.params[0], self._encode(round)
        shown = slot_index(index, slate)
        goes_on = np.ones(slate.shape)
        if feedback.ended is not None:
            goes_on[feedback.ended] = 0
        flat = x.cpu().numpy().reshape(len(x), 1, -1)
        self.replay.add(flat, shown, feedback.rewards, goes_on[..., None])
        self._encoded = None
        n = self.replay.count
        if n > max(p.learning_starts, p.batch + p.n_step) and n % p.train_every == 0:
            index_of = self.sample()
            inputs, target = self.transitions(index_of)
            ones = np.ones((*target.shape, 1))
            items = self.index_tensor(np.zeros(target.shape, np.int64))
            self.train_step(self.tensor(inputs), items, target, self.tensor(ones))
        if n % p.target_every == 0:
            self.older.flat.copy_(self.net.flat)

    def sample(self) -> IntArray:
        """Draw the numbers (R, B) of stored steps whose next ``n_step`` states are known."""
        first = self.replay.count - self.replay.size
        last = self.replay.count - self.params[0].n_step
        generators = [
            self.streams.generator("agent", row=r, part=2, block=self.train_steps)
            for r in self.streams.rows
        ]
        return np.stack([g.integers(first, last, self.params[0].batch) for g in generators])

    def transitions(self, numbers: IntArray) -> tuple[Any, Tensor]:
        """Return the inputs (R, B, D) of steps and their targets (R, B)."""
        import torch

        R, B = numbers.shape
        A, D = self.n_actions, self.spec.n_features
        stored, rows = self.replay, np.arange(R)[:, None]
        candidates = stored.x.reshape(-1, R, A, D)
        at = numbers % stored.capacity
        inputs = candidates[at, rows, stored.item[at, rows]]
        # rewards until the visit ends
        target, weight = np.zeros((R, B)), np.ones((R, B))
        for i in range(self.params[0].n_step):
            at = (numbers + i) % stored.capacity
            target += weight * stored.reward[at, rows]
            weight *= self.discount[:, None] * stored.weight[at, rows, 0]
        if not weight.any():
            return inputs, self.tensor(target)
        after = candidates[(numbers + self.params[0].n_step) % stored.capacity, rows]
        after = self.tensor(after.reshape(R, B * A, D))
        older = self.older.forward(after).out.view(R, B, A)
        chooser = self.net.forward(after).out.view(R, B, A) if self.params[0].double else older
        best = older.gather(2, chooser.argmax(dim=2, keepdim=True))[..., 0]
        earned, share = self.tensor(target), self.tensor(weight)
        # a diverged value must not reach the target of a visit that has ended
        return inputs, torch.where(share == 0, earned, earned + share * best)

    def loss_derivative(self, output: Tensor, rewards: Tensor) -> Tensor:
        error = output - rewards
        return 2 * error if self.params[0].loss == "squared" else error.clamp(-1, 1)

    # saving

    def state_dict(self) -> dict[str, Any]:
        replay = {f"replay.{name}": value for name, value in self.replay.state_dict().items()}
        older = {"older": self.older.flat.cpu().numpy().copy()}
        return {**self.weights(), **older, **replay, **super().state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        import torch

        super().load_state_dict(state)
        self.load_weights(state)
        self.older.flat.copy_(torch.from_numpy(state["older"]))
        prefix = "replay."
        self.replay.load_state_dict(
            {n[len(prefix) :]: v for n, v in state.items() if n.startswith(prefix)}
        )
        self._encoded = None
