"""Base class of the agents with a network: encoding of rounds, training, saving."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from bandits.agents.base import Agent, Representation
from bandits.base.randomness import Streams
from bandits.base.types import Feedback, FloatArray, IntArray, Round, WorldAccess, WorldSpec
from bandits.models.neural import full_batch, mlp
from bandits.models.neural.distinct_candidates import DistinctCandidates, expand, slot_index
from bandits.models.neural.initialisation import initial_weights
from bandits.models.neural.mlp import BatchedMLP, ForwardPass
from bandits.models.neural.optimisers import make_optimiser
from bandits.models.neural.replay_buffer import ReplayBuffer
from bandits.models.position_bias import targets

if TYPE_CHECKING:
    from torch import Tensor

DIVERGED = 1e6  # a network with a larger absolute output is considered to have diverged
FULL_BATCH_CHUNK = 1024  # observations evaluated at once in a full-batch step, to fit the processor's cache
DEFAULT_PASSES = 5  # through the buffer at each training, when ``updates`` is empty


class NetworkInput(NamedTuple):
    """Inputs ``x (R, K', D)`` of a round, and each candidate's index in them, (R, K)."""

    step: int
    x: Tensor
    candidate_index: IntArray | None


class NeuralAgent(Agent):
    """Agent that predicts rewards from features by ``copies`` networks per row."""

    PARTS: ClassVar[tuple[str, ...]] = ("replay",)
    """Names of the attributes with a state of their own."""
    copies = 1
    """Networks per row."""
    output_scale: float | None = 1.0
    """Factor of the network's output; None if the training does not minimise the loss of a scaled output."""
    uses_ids = False
    """Whether the indices of user and item follow the features in the input."""
    WEIGHT_BYTES: ClassVar[int] = 48
    """Bytes per weight: float32, with gradient, moments, work space, and a saved copy."""
    alone = False  # a batched matrix product depends on the number of rows in its last bits

    def __init__(self, params: Sequence[Any], spec: WorldSpec, streams: Streams, access: WorldAccess) -> None:
        super().__init__(params, spec, streams, access)
        p = self.params[0]
        self.device = mlp.device()
        self.widths = (spec.n_features, *p.hidden, self.count_outputs(p, spec))
        self.copies = self.count_copies(p)
        self.net = self.make_networks()
        rates = np.repeat(self.column("learning_rate"), self.copies)
        self.optimiser = make_optimiser(p.optimiser, self.net.flat, rates)
        self.candidates = DistinctCandidates(spec, self.device)
        self.replay = ReplayBuffer(len(self.params), self.input_width(), p.buffer, self.copies)
        self.n_observed = 0
        self.train_steps = 0  # of the optimiser
        self._input: NetworkInput | None = None
        self._forward_pass: ForwardPass | None = None

    @classmethod
    def representation(cls, params: Any) -> Representation | None:  # noqa: ARG003
        return "network"

    @classmethod
    def generalises(cls, params: Any) -> bool:  # noqa: ARG003
        return True

    @classmethod
    def test_params(cls) -> list[dict[str, Any]]:
        return [{"hidden": (6, 4), "every": 7, "updates": 5}]

    @classmethod
    def count_copies(cls, params: Any) -> int:  # noqa: ARG003
        """Count the networks per row."""
        return 1

    @classmethod
    def count_outputs(cls, params: Any, spec: WorldSpec) -> int:  # noqa: ARG003
        """Count the outputs of a network: one for its input candidate, or one per item."""
        return 1

    def initial_weights(self) -> FloatArray:
        """Draw initial weights (R * copies, p) from each row's own stream."""
        return initial_weights(self.streams, self.widths, part=1, copies=self.copies)

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
            if self.uses_ids:  # all candidates are distinct
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

    def per_network(self, x: Tensor) -> Tensor:
        """Repeat the rows (R, ...) for each network, (R * copies, ...)."""
        return x if self.copies == 1 else x.repeat_interleave(self.copies, dim=0)

    def output(self, forward_pass: ForwardPass) -> Tensor:
        """Return the predictions of the networks, (R * copies, B)."""
        return forward_pass.out[..., 0]

    def checked_output(self, forward_pass: ForwardPass) -> Tensor:
        """Return the predictions, NaN where a network has diverged, which stops its row."""
        out = self.output(forward_pass)
        return out.masked_fill(out.abs() > DIVERGED, float("nan"))

    def mean(self, round: Round) -> FloatArray:
        """Predict the reward (or its log-odds) of every candidate, float64 (R, K)."""
        return expand(self.checked_output(self.forward_pass(round)), self.encode(round).candidate_index)

    @property
    def log_odds(self) -> bool:
        """Whether the predictions are log-odds."""
        return bool(self.params[0].loss == "log")

    # training

    def learn(self, round: Round, slate: IntArray, feedback: Feedback) -> None:
        """Train on the observations at once, or store them and train at intervals."""
        encoded, p = self.encode(round), self.params[0]
        shown = slot_index(encoded.candidate_index, slate)
        self.update_posterior(round, shown, slate, feedback)
        self.n_observed += slate.shape[1]
        x, items = self.gather(encoded.x, shown), np.take_along_axis(round.items, slate, axis=1)
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

    def update_posterior(self, round: Round, shown: IntArray, slate: IntArray, feedback: Feedback) -> None:
        """Update what is learned at every step, such as a covariance or linear head.

        ``shown (R, S)`` are the indices of the distinct candidates on the slate.
        """

    def bootstrap_weights(self, step: int) -> FloatArray:  # noqa: ARG002
        """Return the weight of this step's observations for each network, (R, copies)."""
        return np.ones((len(self.params), self.copies))

    def train(self) -> None:
        """Train on random batches of the replay buffer, or on all of it."""
        p = self.params[0]
        if p.training == "everything":
            self.train_full_batch(DEFAULT_PASSES if p.updates is None else p.updates)
            return
        generators = [self.streams.generator("agent", row=r, part=2, block=self.train_steps) for r in self.streams.rows]
        batch = min(p.batch, self.replay.size)
        if p.updates is None:
            index = self.replay.shuffled_batches(generators, batch, DEFAULT_PASSES)
        else:
            index = self.replay.random_batches(generators, batch, p.updates)
        for i in range(index.shape[1]):
            x, items, rewards, weight = self.replay.batch(index[:, i])
            self.train_step(self.tensor(x), self.index_tensor(items), self.tensor(rewards), self.tensor(weight))

    def train_step(self, x: Tensor, items: Tensor, rewards: Tensor, weight: Tensor) -> None:
        """Make one step of the optimiser on a batch.

        Parameters
        ----------
        x : Tensor (R, B, D)
        items : Tensor (R, B)
        rewards : Tensor (R, B)
        weight : Tensor (R, B, copies)
        """
        total = self.flat_weight(weight).sum(1, keepdim=True).clamp_min(1.0)
        self.apply_gradient(self.gradient(x, items, rewards, weight, total))

    def train_full_batch(self, steps: int) -> None:
        """Make steps of the optimiser on the whole replay buffer, evaluated in chunks."""
        import torch

        if self.can_fuse():
            self._train_fused(steps)
            return
        n = self.replay.size
        index = np.broadcast_to(np.arange(n), (len(self.params), n))
        arrays = self.replay.batch(index)
        stored = [self.index_tensor(a) if a.dtype == np.int64 else self.tensor(a) for a in arrays]
        chunks = [slice(start, start + FULL_BATCH_CHUNK) for start in range(0, n, FULL_BATCH_CHUNK)]
        total = self.flat_weight(stored[3]).sum(1, keepdim=True).clamp_min(1.0)
        summed = torch.zeros_like(self.net.flat)
        for _ in range(steps):
            summed.zero_()
            for chunk in chunks:
                x, items, rewards, weight = (tensor[:, chunk] for tensor in stored)
                summed += self.gradient(x, items, rewards, weight, total)
            self.apply_gradient(summed)

    def can_fuse(self) -> bool:
        """Tell whether the compiled full-batch gradient applies; see `full_batch`."""
        one_layer = len(self.widths) == 3 and self.widths[-1] == 1 and self.copies == 1
        return one_layer and not self.net.tables and self.device == "cpu" and self.output_scale is not None

    def _train_fused(self, steps: int) -> None:
        (D, H, _), scale = self.widths, self.output_scale
        assert scale is not None
        rows = [full_batch.group_by_item(*self.replay.row(r)) for r in range(len(self.params))]
        flat, gradient = self.net.flat.numpy(), self.net.gradient.numpy()
        for _ in range(steps):
            for r, observations in enumerate(rows):
                full_batch.gradient(flat[r], D, H, *observations, scale, self.log_odds, gradient[r])
            self.apply_gradient(self.net.gradient)

    def apply_gradient(self, gradient: Tensor) -> None:
        """Make one step of the optimiser against ``gradient (R * copies, p)``."""
        self.optimiser.step(self.add_penalty(gradient))
        self.train_steps += 1

    def flat_weight(self, weight: Tensor) -> Tensor:
        """Reshape weights (R, B, copies) to one row per network, (R * copies, B)."""
        return weight.transpose(1, 2).reshape(-1, weight.shape[1])

    def gradient(self, x: Tensor, items: Tensor, rewards: Tensor, weight: Tensor, total: Tensor) -> Tensor:
        """Compute the gradient (R * copies, p) of a batch's loss, divided by ``total``."""
        x, items, rewards = (self.per_network(tensor) for tensor in (x, items, rewards))
        return self.network_gradient(x, items, rewards, self.flat_weight(weight), total)

    def network_gradient(self, x: Tensor, items: Tensor, rewards: Tensor, weight: Tensor, total: Tensor) -> Tensor:
        """Compute the gradient of a batch per network, (R * copies, B, ...)."""
        forward_pass = self.forward(x)
        own = None if forward_pass.out.shape[2] == 1 else items[..., None]  # the output of the item, if there are many
        output = self.output(forward_pass) if own is None else forward_pass.out.gather(2, own)[..., 0]
        error = self.loss_derivative(output, rewards) * weight
        error = (error / total)[..., None]
        delta = error if own is None else error.new_zeros(forward_pass.out.shape).scatter_(2, own, error)
        return self.backward(forward_pass, delta)

    def loss_derivative(self, output: Tensor, rewards: Tensor) -> Tensor:
        """Compute the derivative of the loss of single observations by the output."""
        if self.params[0].loss == "log":
            return output.sigmoid() - rewards
        return 2 * (output - rewards)

    def forward(self, x: Tensor) -> ForwardPass:
        """Evaluate the networks for training."""
        return self.net.forward(x)

    def backward(self, forward_pass: ForwardPass, delta: Tensor) -> Tensor:
        """Compute the gradient of a forward pass for training."""
        return self.net.backward(forward_pass, delta)

    def add_penalty(self, gradient: Tensor) -> Tensor:
        """Add the gradient of a weight penalty, in agents with one."""
        return gradient

    # conversion

    def tensor(self, array: Any) -> Tensor:
        """Convert an array to a float32 tensor on the networks' device."""
        import torch

        return torch.from_numpy(np.ascontiguousarray(array, dtype=np.float32)).to(self.device)

    def index_tensor(self, array: IntArray) -> Tensor:
        """Convert an array to an int64 tensor on the networks' device."""
        import torch

        return torch.from_numpy(np.ascontiguousarray(array)).to(self.device)

    def gather(self, x: Tensor, index: IntArray) -> Tensor:
        """Select ``x[r, index[r]]``, (R, S, ...)."""
        import torch

        if self.device == "cpu":  # NumPy's indexing costs less than torch's
            return torch.from_numpy(x.numpy()[np.arange(len(index))[:, None], index])
        rows = torch.arange(len(index), device=x.device)[:, None]
        return x[rows, self.index_tensor(index)]

    # saving; the keys are those of stored checkpoints

    def weights(self) -> dict[str, Any]:
        """Copy the state of the networks and the optimiser as arrays."""
        state = {"improvements": self.train_steps, "weights": self.net.flat.cpu().numpy().copy()}
        return state | {f"optimiser.{name}": value for name, value in self.optimiser.state_dict().items()}

    def load_weights(self, state: dict[str, Any]) -> None:
        """Restore a state of `weights`."""
        import torch

        self.train_steps = int(state["improvements"])
        self.net.flat.copy_(torch.from_numpy(state["weights"]))
        self.optimiser.load_state_dict({name: state[f"optimiser.{name}"] for name in self.optimiser.state})
        self.clear_cache()

    def state_dict(self) -> dict[str, Any]:
        state: dict[str, Any] = {"seen": self.n_observed, **self.weights()}
        for part in self.PARTS:
            state |= {f"{part}.{name}": value for name, value in getattr(self, part).state_dict().items()}
        return state | super().state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        self.n_observed = int(state["seen"])
        self.load_weights(state)
        for part in self.PARTS:
            prefix = f"{part}."
            getattr(self, part).load_state_dict({n[len(prefix) :]: v for n, v in state.items() if n.startswith(prefix)})

    @classmethod
    def requires(cls, params: Any) -> frozenset[str]:
        return cls.needs | (frozenset({"binary"}) if params.loss == "log" else frozenset())

    @classmethod
    def alternatives(cls, spec: WorldSpec) -> list[dict[str, Any]]:
        return [{"loss": "squared"}] if "binary" not in spec.capabilities else []

    @classmethod
    def memory(cls, params: Any, spec: WorldSpec) -> int:
        widths = (spec.n_features, *params.hidden, cls.count_outputs(params, spec))
        copies = cls.count_copies(params)
        batch = max(spec.n_candidates, FULL_BATCH_CHUNK if params.training == "everything" else params.batch)
        weights = cls.WEIGHT_BYTES * mlp.count_weights(widths) * copies
        activations = 3 * 4 * batch * sum(widths) * copies
        stored = 0 if params.training == "newest" else ReplayBuffer.memory(spec.n_features, params.buffer, copies)
        stored *= 3 if params.training == "everything" else 2  # as tensors and in chunks; or with a saved copy
        return int(weights + activations + stored + 64 * spec.n_candidates + 1024)
