"""Training of R networks at once: random batches of a replay buffer, or all of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bandits.agents.base import Agent
from bandits.base.types import IntArray
from bandits.models.neural import full_batch
from bandits.models.neural.mlp import BatchedMLP, ForwardPass, describe_device
from bandits.models.neural.optimisers import SGD
from bandits.models.neural.replay_buffer import ReplayBuffer

if TYPE_CHECKING:
    from torch import Tensor

# observations evaluated at once in a full-batch step, to fit the processor's cache
FULL_BATCH_CHUNK = 1024
# through the buffer at each training, when ``updates`` is empty
DEFAULT_PASSES = 5


class NetworkTraining(Agent):
    """Training of an agent's networks by gradient steps on stored observations."""

    net: BatchedMLP
    optimiser: SGD
    replay: ReplayBuffer
    widths: tuple[int, ...]
    device: str
    copies = 1
    """Networks per row."""
    output_scale: float | None = 1.0
    """Factor of the network's output.

    None if the training does not minimise the loss of a scaled output.
    """
    train_steps = 0
    """Steps of the optimiser so far."""

    @property
    def log_odds(self) -> bool:
        """Whether the predictions are log-odds."""
        return bool(self.params[0].loss == "log")

    def per_network(self, x: Tensor) -> Tensor:
        """Repeat the rows (R, ...) for each network, (R * copies, ...)."""
        return x if self.copies == 1 else x.repeat_interleave(self.copies, dim=0)

    def output(self, forward_pass: ForwardPass) -> Tensor:
        """Return the predictions of the networks, (R * copies, B)."""
        return forward_pass.out[..., 0]

    def train(self) -> None:
        """Train on random batches of the replay buffer, or on all of it."""
        p = self.params[0]
        if p.training == "everything":
            self.train_full_batch(DEFAULT_PASSES if p.updates is None else p.updates)
            return
        generators = [
            self.streams.generator("agent", row=r, part=2, block=self.train_steps)
            for r in self.streams.rows
        ]
        batch = min(p.batch, self.replay.size)
        if p.updates is None:
            index = self.replay.shuffled_batches(generators, batch, DEFAULT_PASSES)
        else:
            index = self.replay.random_batches(generators, batch, p.updates)
        for i in range(index.shape[1]):
            x, items, rewards, weight = self.replay.batch(index[:, i])
            self.train_step(
                self.tensor(x), self.index_tensor(items), self.tensor(rewards), self.tensor(weight)
            )

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

    def one_layer(self) -> bool:
        """Return whether each row has one network with one hidden layer and one output."""
        return len(self.widths) == 3 and self.widths[-1] == 1 and self.copies == 1

    def can_fuse(self) -> bool:
        """Tell whether the compiled full-batch gradient applies; see `full_batch`."""
        return (
            self.one_layer()
            and not self.net.tables
            and self.device == "cpu"
            and self.output_scale is not None
        )

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

    def gradient(
        self, x: Tensor, items: Tensor, rewards: Tensor, weight: Tensor, total: Tensor
    ) -> Tensor:
        """Compute the gradient (R * copies, p) of a batch's loss, divided by ``total``."""
        x, items, rewards = (self.per_network(tensor) for tensor in (x, items, rewards))
        return self.network_gradient(x, items, rewards, self.flat_weight(weight), total)

    def network_gradient(
        self, x: Tensor, items: Tensor, rewards: Tensor, weight: Tensor, total: Tensor
    ) -> Tensor:
        """Compute the gradient of a batch per network, (R * copies, B, ...)."""
        forward_pass = self.forward(x)
        # the output of the item, if there are many
        own = None if forward_pass.out.shape[2] == 1 else items[..., None]
        output = (
            self.output(forward_pass) if own is None else forward_pass.out.gather(2, own)[..., 0]
        )
        error = self.loss_derivative(output, rewards) * weight
        error = (error / total)[..., None]
        delta = (
            error
            if own is None
            else error.new_zeros(forward_pass.out.shape).scatter_(2, own, error)
        )
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

    def note(self) -> str:
        return describe_device(self.device)

    # saving; the keys are those of stored checkpoints

    def weights(self) -> dict[str, Any]:
        """Copy the state of the networks and the optimiser as arrays."""
        state = {"improvements": self.train_steps, "weights": self.net.flat.cpu().numpy().copy()}
        return state | {
            f"optimiser.{name}": value for name, value in self.optimiser.state_dict().items()
        }

    def load_weights(self, state: dict[str, Any]) -> None:
        """Restore a state of `weights`."""
        import torch

        self.train_steps = int(state["improvements"])
        self.net.flat.copy_(torch.from_numpy(state["weights"]))
        self.optimiser.load_state_dict(
            {name: state[f"optimiser.{name}"] for name in self.optimiser.state}
        )

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

        # NumPy's indexing costs less than torch's
        if self.device == "cpu":
            return torch.from_numpy(x.numpy()[np.arange(len(index))[:, None], index])
        rows = torch.arange(len(index), device=x.device)[:, None]
        return x[rows, self.index_tensor(index)]
