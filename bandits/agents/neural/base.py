"""What the agents with a network share: its parameters, what it is shown, how it is trained, how it is saved."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple

import numpy as np
from pydantic import Field

from bandits.agents.base import Agent, LearnerParams, Representation
from bandits.base.params import param
from bandits.base.randomness import Streams
from bandits.base.types import Feedback, FloatArray, IntArray, Round, WorldAccess, WorldSpec
from bandits.models.neural import full_batch, mlp
from bandits.models.neural.mlp import BatchedMLP, ForwardPass
from bandits.models.neural.replay_buffer import Candidates, ReplayBuffer, places, spread
from bandits.models.position_bias import targets

if TYPE_CHECKING:
    from torch import Tensor

Width = Annotated[int, Field(ge=1, le=1024)]
EXPLODED = 1e6  # an output beyond this is taken for a network that has diverged
WHOLE = 1024  # observations at once where a step sees all of them: what stays in the processor's cache
PASSES = 5  # through the buffer, when ``updates`` is empty


class NeuralParams(LearnerParams):
    """Parameters of a network that learns during the race."""

    hidden: tuple[Width, ...] = param(
        (64, 32), title="Hidden layers", structural=True, min_length=1, max_length=6, strict=False,
        help="Widths of the hidden layers.",
    )  # fmt: skip
    learning_rate: float = param(
        1e-3, title="Learning rate", symbol=r"\eta", gt=0, le=1, typical=(1e-4, 1), log=True, basic=True,
        help="Step size of the optimiser.",
    )  # fmt: skip
    optimiser: Literal["adam", "sgd"] = param(
        "adam", title="Optimiser", structural=True, help="adam: steps of adapted size. sgd: plain gradient descent.",
    )  # fmt: skip
    loss: Literal["squared", "log"] = param(
        "squared", title="Loss", structural=True,
        help="squared: the output is the expected reward. log: for rewards of 0 and 1; the output is a log-odds.",
    )  # fmt: skip
    training: Literal["newest", "replay", "everything"] = param(
        "replay", title="Training", structural=True,
        help="newest: one step on each new observation, then it is gone. replay: now and then some steps on "
        "batches of what is remembered. everything: each of these steps on all of it (slow).",
    )  # fmt: skip
    every: int = param(
        10, title="Train every", unit="observations", ge=1, le=100_000, structural=True,
        help="Only with training from memory: observations between two trainings.",
    )  # fmt: skip
    updates: int | None = param(
        5, title="Steps per training", empty="five passes", ge=1, le=10_000, structural=True,
        help="Only with training from memory: batches the optimiser sees at each. Empty: as many as five passes "
        "through all that is remembered take, in whole batches.",
    )  # fmt: skip
    batch: int = param(
        32, title="Batch", ge=1, le=4096, structural=True,
        help="Only with training in batches from memory: observations per step of the optimiser.",
    )  # fmt: skip
    buffer: int = param(
        20_000, title="Memory", unit="observations", ge=100, le=1_000_000, structural=True,
        help="Only with training from memory: the latest so many observations are remembered.",
    )  # fmt: skip


class Look(NamedTuple):
    """One round as the networks see it: ``x (R, K', D)``, and which of them each candidate is."""

    step: int
    x: Tensor
    which: IntArray | None


class NeuralAgent(Agent):
    """An agent with one network per row (or ``copies`` of them) that maps a candidate's features to its reward."""

    PARTS: ClassVar[tuple[str, ...]] = ("replay",)
    """Attributes with a state of their own."""
    copies = 1
    root: float | None = 1.0
    """What the network's output is multiplied by; None if it is something else that is trained."""
    identified = False
    """Whether the networks are shown the numbers of user and item too, behind the features."""
    WEIGHT_BYTES: ClassVar[int] = 48
    """Of each weight: float32, with gradient, moments, work space, and a copy saved."""
    alone = False  # one matrix is multiplied in another order than many

    def __init__(self, params: Sequence[Any], spec: WorldSpec, streams: Streams, access: WorldAccess) -> None:
        super().__init__(params, spec, streams, access)
        p = self.params[0]
        self.device = mlp.device()
        self.widths = (spec.n_features, *p.hidden, self.count_outputs(p, spec))
        self.copies = self.count_copies(p)
        self.net = self.make_networks()
        rates = np.repeat(self.column("learning_rate"), self.copies)
        self.optimiser = mlp.optimiser(p.optimiser, self.net.flat, rates)
        self.candidates = Candidates(spec, self.device)
        self.replay = ReplayBuffer(len(self.params), self.shown_width(), p.buffer, self.copies)
        self.seen = 0  # observations so far
        self.improvements = 0  # steps of the optimiser so far
        self._looked: Look | None = None
        self._passed: ForwardPass | None = None

    @classmethod
    def representation(cls, params: Any) -> Representation | None:  # noqa: ARG003
        return "network"

    @classmethod
    def generalises(cls, params: Any) -> bool:  # noqa: ARG003
        return True

    @classmethod
    def test_params(cls) -> list[dict[str, Any]]:
        return [{"hidden": (6, 4), "every": 7, "updates": 5}]  # a small network, trained often

    @classmethod
    def count_copies(cls, params: Any) -> int:  # noqa: ARG003
        """Networks per row."""
        return 1

    @classmethod
    def count_outputs(cls, params: Any, spec: WorldSpec) -> int:  # noqa: ARG003
        """Outputs of a network: one for the candidate it is shown, or one for every item."""
        return 1

    def first_weights(self) -> FloatArray:
        """Initial weights (R * copies, p), from each row's own stream."""
        return mlp.initial(self.streams, self.widths, part=1, copies=self.copies)

    def make_networks(self) -> BatchedMLP:
        """The networks as they begin."""
        return BatchedMLP(self.first_weights(), self.widths, device=self.device)

    def shown_width(self) -> int:
        """Columns of what the networks are shown."""
        return self.spec.n_features + (2 if self.identified else 0)

    # what it sees

    def look(self, round: Round) -> Look:
        """The candidates as tensors; once per step, however often it is asked."""
        if self._looked is None or self._looked.step != round.step:
            self.forget()
            if self.identified:  # every candidate is one of a kind
                users = np.broadcast_to(round.users[:, None], round.items.shape)
                shown = np.concatenate([round.features, users[..., None], round.items[..., None]], axis=2)
                self._looked = Look(round.step, self.tensor(shown), None)
            else:
                self._looked = Look(round.step, *self.candidates.of(round))
        return self._looked

    def passed(self, round: Round) -> ForwardPass:
        """What the networks make of the candidates, likewise."""
        x = self.look(round).x
        if self._passed is None:
            self._passed = self.net.forward(self.per_network(x))
        return self._passed

    def forget(self) -> None:
        """What was kept of a round holds no longer: another has come, or the weights have changed."""
        self._looked = self._passed = None

    def per_network(self, x: Tensor) -> Tensor:
        """A tensor of rows (R, ...) as one of networks (R * copies, ...)."""
        return x if self.copies == 1 else x.repeat_interleave(self.copies, dim=0)

    def output(self, passed: ForwardPass) -> Tensor:
        """What the networks say, (R * copies, B)."""
        return passed.out[..., 0]

    def believed(self, passed: ForwardPass) -> Tensor:
        """The same, with NaN where a network has diverged: that stops its row."""
        out = self.output(passed)
        return out.masked_fill(out.abs() > EXPLODED, float("nan"))

    def mean(self, round: Round) -> FloatArray:
        """What the network says of every candidate, float64 (R, K)."""
        return spread(self.believed(self.passed(round)), self.look(round).which)

    @property
    def log_odds(self) -> bool:
        """Whether what the networks say are log-odds."""
        return bool(self.params[0].loss == "log")

    # how it learns

    def learn(self, round: Round, slate: IntArray, feedback: Feedback) -> None:
        """Remember what happened; train on it, or now and then on what is remembered."""
        look, p = self.look(round), self.params[0]
        at = places(look.which, slate)
        self.absorb(round, at, slate, feedback)
        self.seen += slate.shape[1]
        x, items = self.taken(look.x, at), np.take_along_axis(round.items, slate, axis=1)
        shows = self.shows(feedback)
        weight, rewards = shows[:, :, None] * self.bootstrap(round.step)[:, None], targets(feedback, shows)
        if p.training == "newest":
            self.improve(x, self.index(items), self.tensor(rewards), self.tensor(weight))
        else:
            self.replay.add(x.cpu().numpy(), items, rewards, weight)
            if self.seen // p.every > (self.seen - slate.shape[1]) // p.every:
                self.train()
        self.forget()

    def absorb(self, round: Round, at: IntArray, slate: IntArray, feedback: Feedback) -> None:
        """What an agent learns at once, beside the network: its confidence, its linear head.

        ``at (R, S)`` says which of the distinct candidates the slate shows.
        """

    def bootstrap(self, step: int) -> FloatArray:  # noqa: ARG002
        """How much this step's observation counts for each network, (R, copies)."""
        return np.ones((len(self.params), self.copies))

    def train(self) -> None:
        """Some steps on batches from memory, drawn from each row's own stream, or each on all of it."""
        p, size = self.params[0], self.replay.size
        if p.training == "everything":
            self.train_on_everything(PASSES if p.updates is None else p.updates)
            return
        dice = [self.streams.generator("agent", row=r, part=2, block=self.improvements) for r in self.streams.rows]
        batch = min(p.batch, size)
        if p.updates is None:
            steps = size // batch
            order = np.stack(
                [np.concatenate([g.permutation(size)[: steps * batch] for _ in range(PASSES)]) for g in dice]
            )
            index = order.reshape(len(dice), PASSES * steps, batch)
        else:
            index = np.stack([g.integers(0, size, (p.updates, batch)) for g in dice])
        for i in range(index.shape[1]):
            x, items, rewards, weight = self.replay.batch(index[:, i])
            self.improve(self.tensor(x), self.index(items), self.tensor(rewards), self.tensor(weight))

    def improve(self, x: Tensor, items: Tensor, rewards: Tensor, weight: Tensor) -> None:
        """One step of the optimiser.

        Parameters
        ----------
        x : Tensor (R, B, D)
        items : Tensor (R, B)
        rewards : Tensor (R, B)
        weight : Tensor (R, B, copies)
        """
        total = self.flat_weight(weight).sum(1, keepdim=True).clamp_min(1.0)
        self.descend(self.gradient(x, items, rewards, weight, total))

    def train_on_everything(self, steps: int) -> None:
        """Steps of the optimiser that each see all that is remembered, a part after the other."""
        import torch

        if self.fused():
            self._train_fused(steps)
            return
        n = self.replay.size
        index = np.broadcast_to(np.arange(n), (len(self.params), n))
        features, own, earned, counts = self.replay.batch(index)
        seen = (self.tensor(features), self.index(own), self.tensor(earned), self.tensor(counts))
        places = [slice(start, start + WHOLE) for start in range(0, n, WHOLE)]
        total = self.flat_weight(seen[3]).sum(1, keepdim=True).clamp_min(1.0)
        summed = torch.zeros_like(self.net.flat)
        for _ in range(steps):
            summed.zero_()
            for part in places:
                x, items, rewards, weight = (tensor[:, part] for tensor in seen)
                summed += self.gradient(x, items, rewards, weight, total)
            self.descend(summed)

    def fused(self) -> bool:
        """Whether one pass in the cache does for a step on everything; see `full_batch`."""
        one_layer = len(self.widths) == 3 and self.widths[-1] == 1 and self.copies == 1
        return one_layer and not self.net.tables and self.device == "cpu" and self.root is not None

    def _train_fused(self, steps: int) -> None:
        n, (D, H, _) = self.replay.size, self.widths
        memory, root = self.replay, self.root
        assert root is not None
        rows = [
            full_batch.gathered(memory.x[:n, r], memory.item[:n, r], memory.reward[:n, r], memory.weight[:n, r, 0])
            for r in range(len(self.params))
        ]
        flat, gradient = self.net.flat.numpy(), self.net.gradient.numpy()
        for _ in range(steps):
            for r, everything in enumerate(rows):
                full_batch.gradient(flat[r], D, H, *everything, root, self.log_odds, gradient[r])
            self.descend(self.net.gradient)

    def descend(self, gradient: Tensor) -> None:
        """One step of the optimiser."""
        self.optimiser.step(self.regularised(gradient))
        self.improvements += 1

    def flat_weight(self, weight: Tensor) -> Tensor:
        """Weights (R, B, copies) by network, (R * copies, B)."""
        return weight.transpose(1, 2).reshape(-1, weight.shape[1])

    def gradient(self, x: Tensor, items: Tensor, rewards: Tensor, weight: Tensor, total: Tensor) -> Tensor:
        """Gradient (R * copies, p) of the loss of these observations, divided by ``total (R * copies, 1)``."""
        x, items, rewards = (self.per_network(tensor) for tensor in (x, items, rewards))
        return self.network_gradient(x, items, rewards, self.flat_weight(weight), total)

    def network_gradient(self, x: Tensor, items: Tensor, rewards: Tensor, weight: Tensor, total: Tensor) -> Tensor:
        """The same of observations that each network has for itself, (R * copies, B, ...)."""
        passed = self.forward(x)
        own = None if passed.out.shape[2] == 1 else items[..., None]  # each item its output, or one for all
        output = self.output(passed) if own is None else passed.out.gather(2, own)[..., 0]
        error = self.slope(output, rewards) * weight
        error = (error / total)[..., None]
        delta = error if own is None else error.new_zeros(passed.out.shape).scatter_(2, own, error)
        return self.backward(passed, delta)

    def slope(self, output: Tensor, rewards: Tensor) -> Tensor:
        """Derivative of the loss of one observation by the output."""
        if self.params[0].loss == "log":
            return output.sigmoid() - rewards
        return 2 * (output - rewards)

    def forward(self, x: Tensor) -> ForwardPass:
        """The pass that is trained on."""
        return self.net.forward(x)

    def backward(self, passed: ForwardPass, delta: Tensor) -> Tensor:
        """Its gradient."""
        return self.net.backward(passed, delta)

    def regularised(self, gradient: Tensor) -> Tensor:
        """The gradient with that of a penalty, where there is one."""
        return gradient

    # tensors and arrays

    def tensor(self, array: Any) -> Tensor:
        """float32, on the networks' device."""
        import torch

        return torch.from_numpy(np.ascontiguousarray(array, dtype=np.float32)).to(self.device)

    def index(self, array: IntArray) -> Tensor:
        """int64, on the networks' device."""
        import torch

        return torch.from_numpy(np.ascontiguousarray(array)).to(self.device)

    def taken(self, x: Tensor, at: IntArray) -> Tensor:
        """``x[r, at[r]]``, (R, S, ...)."""
        import torch

        rows = torch.arange(len(at), device=x.device)[:, None]
        return x[rows, self.index(at)]

    # what is saved

    def weights(self) -> dict[str, Any]:
        """What training has made of the networks, as arrays."""
        state = {"improvements": self.improvements, "weights": _array(self.net.flat)}
        return state | {f"optimiser.{name}": _array(getattr(self.optimiser, name)) for name in self.optimiser.state}

    def load_weights(self, state: dict[str, Any]) -> None:
        """Put that back."""
        self.improvements = int(state["improvements"])
        _put(self.net.flat, state["weights"])
        for name in self.optimiser.state:
            _put(getattr(self.optimiser, name), state[f"optimiser.{name}"])
        self.forget()

    def state_dict(self) -> dict[str, Any]:
        state: dict[str, Any] = {"seen": self.seen, **self.weights()}
        for part in self.PARTS:
            state |= {f"{part}.{name}": value for name, value in getattr(self, part).state_dict().items()}
        return state | super().state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        self.seen = int(state["seen"])
        self.load_weights(state)
        for part in self.PARTS:
            prefix = f"{part}."
            getattr(self, part).load_state_dict({n[len(prefix) :]: v for n, v in state.items() if n.startswith(prefix)})

    @classmethod
    def requires(cls, params: Any) -> frozenset[str]:
        return cls.needs | (frozenset({"binary"}) if params.loss == "log" else frozenset())

    @classmethod
    def memory(cls, params: Any, spec: WorldSpec) -> int:
        widths = (spec.n_features, *params.hidden, cls.count_outputs(params, spec))
        copies = cls.count_copies(params)
        batch = max(spec.n_candidates, WHOLE if params.training == "everything" else params.batch)
        weights = cls.WEIGHT_BYTES * mlp.size(widths) * copies
        activations = 3 * 4 * batch * sum(widths) * copies
        remembers = 0 if params.training == "newest" else ReplayBuffer.memory(spec.n_features, params.buffer, copies)
        remembers *= 3 if params.training == "everything" else 2  # as tensors, and in parts; or with a copy saved
        return int(weights + activations + remembers + 64 * spec.n_candidates + 1024)


def _array(value: Any) -> Any:
    return value.copy() if isinstance(value, np.ndarray) else value.cpu().numpy().copy()


def _put(into: Any, value: Any) -> None:
    import torch

    if isinstance(into, np.ndarray):
        into[...] = value
    else:
        into.copy_(torch.from_numpy(value))
