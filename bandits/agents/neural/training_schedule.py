"""Options of the training of a network that published programs use: falling learning rate, gradient limit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from bandits.base.params import param
from bandits.models.neural.initialisation import initial_weights

from .base import NeuralAgent
from .params import NeuralParams

if TYPE_CHECKING:
    from torch import Tensor

    from bandits.base.types import FloatArray


class ScheduleParams(NeuralParams):
    """Parameters of a network with a learning rate that can fall and a limit on its gradient."""

    learning_rate_decay: float = param(
        0.0, title="Learning rate decay", ge=0, le=100, typical=(0, 1), later=True,
        help="Fall of the learning rate: after s steps of the optimiser it is divided by 1 + decay × s. Larger values "
        "stop learning sooner (usually 0 to 1); 0 keeps the learning rate.",
    )  # fmt: skip
    decay_from: Literal["training", "start"] = param(
        "training", title="Decay counted from", structural=True, later=True,
        help="Which steps s the learning rate decay counts. training: those of the current training; each training "
        "begins with the full learning rate. start: all steps so far, pre-training included.",
    )  # fmt: skip
    gradient_limit: float | None = param(
        None, title="Gradient limit", empty="none", gt=0, le=1e6, typical=(1, 10), structural=True, later=True,
        help="Largest norm of a gradient: longer ones are shortened to it. Larger values let rare large errors change "
        "the network more (usually 1 to 10).",
    )  # fmt: skip
    initial_scale: float | None = param(
        None, title="Initial weight bound", empty="by layer", gt=0, le=10, typical=(0.05, 1), structural=True,
        later=True,
        help="Largest initial weight b: weights are uniform between −b and b, biases 0. Larger values start from less "
        "smooth functions (usually 0.05 to 1). Empty: 1/√inputs of each layer, for biases too.",
    )  # fmt: skip


class TrainingSchedule(NeuralAgent):
    """Agent whose learning rate can fall, whose gradients can be limited and whose initial weights can be scaled."""

    PRETRAIN_OPTIONS: ClassVar[tuple[str, ...]] = ("learning_rate_decay", "gradient_limit", "initial_scale")
    trained_before = 0
    """Steps of the optimiser before the current training."""

    def initial_weights(self) -> FloatArray:
        scale = self.params[0].initial_scale
        return initial_weights(self.streams, self.widths, part=1, copies=self.copies, scale=scale)

    def train(self) -> None:
        self.trained_before = self.train_steps
        super().train()

    def apply_gradient(self, gradient: Tensor) -> None:
        p, decay = self.params[0], self.column("learning_rate_decay")
        if p.gradient_limit is not None:
            norm = gradient.norm(dim=1, keepdim=True)
            gradient = gradient * (p.gradient_limit / norm.clamp_min(p.gradient_limit))
        if decay.any():
            steps = self.train_steps - (self.trained_before if p.decay_from == "training" else 0)
            rates = self.column("learning_rate") / (1 + decay * steps)
            self.optimiser.rate = self.tensor(rates.repeat(self.copies))[:, None]
        super().apply_gradient(gradient)

    @classmethod
    def test_params(cls) -> list[dict[str, Any]]:
        small, *others = super().test_params()
        options = {"optimiser": "rmsprop", "learning_rate_decay": 0.5, "gradient_limit": 1.0, "initial_scale": 0.3}
        return [small, *others, {**small, **options}, {**small, "learning_rate_decay": 0.1, "decay_from": "start"}]
