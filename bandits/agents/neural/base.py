"""Base class of the agents with a network: encoding of rounds, training, saving."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from bandits.agents.facts import Representation
from bandits.base.randomness import Streams
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
from bandits.models.neural import mlp
from bandits.models.neural.distinct_candidates import DistinctCandidates, expand, slot_index
from bandits.models.neural.initialisation import initial_weights
from bandits.models.neural.mlp import BatchedMLP, ForwardPass
from bandits.models.neural.optimisers import make_optimiser
from bandits.models.neural.replay_buffer import ReplayBuffer
from bandits.models.position_bias import targets

from .params import NeuralParams
from .training import DEFAULT_PASSES, FULL_BATCH_CHUNK
from .warm_start import WarmStart

if TYPE_CHECKING:
    from torch import Tensor

# a network with a larger absolute output is considered to have diverged
DIVERGED = 1e6


class NetworkInput(NamedTuple):
    """Inputs ``x (R, K', D)`` of a round, and each candidate's index in them, (R, K)."""

    step: int
    x: Tensor
    candidate_index: IntArray | None


class NeuralAgent(WarmStart):
    """Agent that predicts rewards from features by ``copies`` networks per row."""

    PARTS: ClassVar[tuple[str, ...]] = ("replay",)
    """Names of the attributes with a state of their own."""
    uses_ids = False
    """Whether the indices of user and item follow the features in the input."""
    WEIGHT_BYTES: ClassVar[int] = 48
    """Bytes per weight: float32, with gradient, moments, work space, and a saved copy."""
    # a batched matrix product depends on the number of rows in its last bits
    alone = False
    row_by_row = False

    def __init__(
        self, params: Sequence[Any], spec: SimulatorSpec, streams: Streams, access: SimulatorAccess
    ) -> None:
        super().__init__(params, spec, streams, access)
        p = self.params[0]
        self.widths = (spec.n_features, *p.hidden, self.count_outputs(p, spec))
        self.copies = self.count_copies(p)
        self.device = mlp.device(self.step_work())
        self.net = self.make_networks()
        rates = np.repeat(self.column("learning_rate"), self.copies)
        self.optimiser = make_optimiser(p.optimiser, self.net.flat, rates)
        self.candidates = DistinctCandidates(spec, self.device)
        self.replay = ReplayBuffer(len(self.params), self.input_width(), p.buffer, self.copies)
        self.n_observed = 0
        self._input: NetworkInput | None = None
        self._forward_pass: ForwardPass | None = None
        self._evaluated_step = -1

    @classmethod
    def representation(cls, params: Any) -> Representation | None:  # noqa: ARG003
        return "network"

    @classmethod
    def generalises(cls, params: Any) -> bool:  # noqa: ARG003
        return True

    def log_input(self, log: LoggedData) -> Float32Array:
        x = super().log_input(log)
        return np.column_stack([x, log.users, log.items]).astype(np.float32) if self.uses_ids else x

    @classmethod
    def test_params(cls) -> list[dict[str, Any]]:
        return [{"hidden": (6, 4), "every": 7, "updates": 5}]

    @classmethod
    def count_copies(cls, params: Any) -> int:  # noqa: ARG003
        """Count the networks per row."""
        return 1

    @classmethod
    def count_outputs(cls, params: Any, spec: SimulatorSpec) -> int:  # noqa: ARG003
        """Count the outputs of a network: one for its input candidate, or one per item."""
        return 1

    def initial_weights(self) -> FloatArray:
        """Draw initial weights (R * copies, p) from each row's own stream."""
        return initial_weights(self.streams, self.widths, part=1, copies=self.copies)

    def step_work(self) -> int:
        """Count rows x weights x observations of a step of training, which decide on the device."""
        p = self.params[0]
        observations = {
            "newest": self.spec.slate,
            "replay": p.batch,
            # the compiled gradient of the processor costs a fraction of all observations
            "everything": 0 if self.one_layer() else min(p.buffer, FULL_BATCH_CHUNK),
        }[p.training]
        return len(self.params) * self.copies * mlp.count_weights(self.widths) * int(observations)

    def make_networks(self) -> BatchedMLP:
        """Create the networks with their initial weights."""
        return BatchedMLP(self.initial_weights(), self.widths, device=self.device)

    def input_width(self) -> int:
        """Count the columns of the network input."""
        return self.spec.n_features + (2 if self.uses_ids else 0)

    # evaluation

    def encode(self, round: Round) -> NetworkInput:
        """Convert the candidates to tensors, once per step."""
        if self._input is None or self._input.step != round.step:
            self.clear_cache()
            # all candidates are distinct
            if self.uses_ids:
                x = round.contexts.dense_single(round.context, more=2)
                x[..., -2], x[..., -1] = round.users[:, None], round.items
                self._input = NetworkInput(round.step, self.tensor(x), None)
            else:
                self._input = NetworkInput(round.step, *self.candidates.of(round))
        return self._input

    def forward_pass(self, round: Round) -> ForwardPass:
        """Evaluate the networks on the distinct candidates, once per step."""
        x = self.encode(round).x
        if self._forward_pass is None:
            self._forward_pass = self.net.forward(self.per_network(x))
        return self._forward_pass

    def clear_cache(self) -> None:
        """Discard the cached round, after a change of the round or of the weights."""
        self._input = self._forward_pass = None

    def checked_output(self, forward_pass: ForwardPass) -> Tensor:
        """Return the predictions, NaN where a network has diverged, which stops its row."""
        out = self.output(forward_pass)
        return out.masked_fill(out.abs() > DIVERGED, float("nan"))

    def candidate_index(self, round: Round) -> IntArray | None:
        """Return the index of each candidate in the evaluated inputs, (R, K).

        None if the order is the same.
        """
        return self.encode(round).candidate_index

    def mean(self, round: Round) -> FloatArray:
        """Predict the reward (or its log-odds) of every candidate, float64 (R, K)."""
        return expand(self.output(self.forward_pass(round)), self.candidate_index(round), DIVERGED)

    def embedding(self, round: Round) -> FloatArray:
        """Return the last hidden layer of every candidate, float64 (R, K, m), of the first network
        of each row.
        """
        z = self.net.forward(self.per_network(self.encode(round).x)).inputs[-1]
        array: FloatArray = z[:: self.copies].cpu().double().numpy()
        index = self.candidate_index(round)
        return array if index is None else np.take_along_axis(array, index[:, :, None], axis=1)

    # training

    def learn(self, round: Round, slate: IntArray, feedback: Feedback) -> None:
        """Train on the observations at once, or store them and train at intervals."""
        p = self.params[0]
        self.update_posterior(
            round, slot_index(self.candidate_index(round), slate), slate, feedback
        )
        self.n_observed += slate.shape[1]
        items = round.items[np.arange(len(slate))[:, None], slate]
        x = self.shown_input(round, slate, items)
        counts = self.exposure(feedback)
        weight = counts[:, :, None] * self.bootstrap_weights(round.step)[:, None]
        rewards = targets(feedback, counts)
        if p.training == "newest":
            self.train_step(x, self.index_tensor(items), self.tensor(rewards), self.tensor(weight))
        else:
            self.replay.add(x.cpu().numpy(), items, rewards, weight)
            if self.n_observed // p.every > (self.n_observed - slate.shape[1]) // p.every:
                self.train()
        self.clear_cache()

    def shown_input(self, round: Round, slate: IntArray, items: IntArray) -> Tensor:  # noqa: ARG002
        """Return the network's input for the ``items (R, S)`` on the slate, (R, S, ...)."""
        encoded = self.encode(round)
        return self.gather(encoded.x, slot_index(encoded.candidate_index, slate))

    def update_posterior(
        self, round: Round, shown: IntArray, slate: IntArray, feedback: Feedback
    ) -> None:
        """Update what is learned at every step, such as a covariance or linear head.

        ``shown (R, S)`` are the indices of the distinct candidates on the slate.
        """

    def bootstrap_weights(self, step: int) -> FloatArray:  # noqa: ARG002
        """Return the weight of this step's observations for each network, (R, copies)."""
        return np.ones((len(self.params), self.copies))

    # saving

    def load_weights(self, state: dict[str, Any]) -> None:
        super().load_weights(state)
        self.clear_cache()

    def state_dict(self) -> dict[str, Any]:
        state: dict[str, Any] = {"seen": self.n_observed, **self.weights()}
        for part in self.PARTS:
            state |= {
                f"{part}.{name}": value for name, value in getattr(self, part).state_dict().items()
            }
        return state | super().state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        self.n_observed = int(state["seen"])
        self.load_weights(state)
        for part in self.PARTS:
            prefix = f"{part}."
            getattr(self, part).load_state_dict(
                {n[len(prefix) :]: v for n, v in state.items() if n.startswith(prefix)}
            )

    @classmethod
    def requires(cls, params: Any) -> frozenset[str]:
        return super().requires(params) | (
            frozenset({"binary"}) if params.loss == "log" else frozenset()
        )

    @classmethod
    def alternatives(cls, spec: SimulatorSpec) -> list[dict[str, Any]]:
        loss = [{"loss": "squared"}] if "binary" not in spec.capabilities else []
        return [*super().alternatives(spec), *loss]

    @classmethod
    def memory(cls, params: Any, spec: SimulatorSpec) -> int:
        widths = (spec.n_features, *params.hidden, cls.count_outputs(params, spec))
        copies = cls.count_copies(params)
        batch = max(
            spec.n_candidates, FULL_BATCH_CHUNK if params.training == "everything" else params.batch
        )
        weights = cls.WEIGHT_BYTES * mlp.count_weights(widths) * copies
        activations = 3 * 4 * batch * sum(widths) * copies
        stored = (
            0
            if params.training == "newest"
            else ReplayBuffer.memory(spec.n_features, params.buffer, copies)
        )
        # as tensors and in chunks; or with a saved copy
        stored *= 3 if params.training == "everything" else 2
        return int(weights + activations + stored + 64 * spec.n_candidates + 1024)

    @classmethod
    def least_work(cls, params: Any, spec: SimulatorSpec, steps: int) -> float:
        # it trains in another way
        if not isinstance(params, NeuralParams):
            return 0.0
        widths = (spec.n_features, *params.hidden, cls.count_outputs(params, spec))
        # a forward pass and a gradient
        example = float(4 * mlp.count_weights(widths) * cls.count_copies(params))
        observations, updates = steps * spec.slate, params.updates or DEFAULT_PASSES
        if params.training == "newest":
            return float(example * observations)
        everything = params.training == "everything"
        stored = (
            min(observations // 2, params.buffer)
            if everything or params.updates is None
            else params.batch
        )
        # those that find so many stored observations
        trainings = max(observations - stored, 0) // params.every
        return float(example * trainings * updates * stored)
