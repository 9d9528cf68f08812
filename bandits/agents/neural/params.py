"""Parameters shared by the agents that train a network during the run."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from bandits.agents.params import LearnerParams
from bandits.base.params import param

from .warm_start import pretrain_param

Width = Annotated[int, Field(ge=1, le=1024)]


TRAINING = {
    "newest": "one step on each new observation, which is then discarded",
    "replay": "at intervals, steps on random batches of the replay buffer",
    "everything": "at intervals, steps on the whole replay buffer (slow)",
}


def training_param(*ways: str) -> Any:
    """Declare on what a network is trained, among these ways of `TRAINING`."""
    text = " ".join(f"{way}: {TRAINING[way]}." for way in ways)
    return param("replay", title="Training", structural=True, help=text)


def hidden_param(default: tuple[int, ...], use: str = "rewards") -> Any:
    """Declare the widths of the hidden layers of a network of ``use``."""
    return param(
        default,
        title="Hidden layers",
        structural=True,
        min_length=1,
        max_length=6,
        strict=False,
        help=(
            f"Widths of the hidden layers. Wider and deeper networks fit more complex {use} and "
            "take longer (usually one to three layers of 16 to 128 units)."
        ),
    )


class NeuralParams(LearnerParams):
    """Parameters of a network that learns during the run."""

    hidden: tuple[Width, ...] = hidden_param((32, 16))
    learning_rate: float = param(
        1e-3,
        title="Learning rate",
        symbol=r"\eta",
        gt=0,
        le=1,
        typical=(1e-4, 1),
        log=True,
        basic=True,
        usual=(1e-4, 0.1),
        help=(
            "Step size of the optimiser. Larger values learn faster but may diverge (usually "
            "0.0001 to 0.1)."
        ),
    )
    optimiser: Literal["adam", "sgd", "rmsprop"] = param(
        "adam",
        title="Optimiser",
        structural=True,
        help=(
            "adam: adaptive step sizes. sgd: plain stochastic gradient descent. rmsprop: "
            "adaptive step sizes without momentum, as in TensorFlow 1."
        ),
    )
    loss: Literal["squared", "log"] = param(
        "squared",
        title="Loss",
        structural=True,
        help=(
            "squared: the output is the expected reward. log: for rewards of 0 and 1; the output "
            "is the log-odds."
        ),
    )
    training: Literal["newest", "replay", "everything"] = training_param(
        "newest", "replay", "everything"
    )
    every: int = param(
        10,
        title="Training interval",
        unit="observations",
        ge=1,
        le=100_000,
        structural=True,
        help=(
            "Observations between two trainings (replay, everything). Larger values train less "
            "often and run faster (usually 1 to 100)."
        ),
    )
    updates: int | None = param(
        5,
        title="Steps per training",
        empty="five passes",
        ge=1,
        le=10_000,
        structural=True,
        help=(
            "Steps of the optimiser at each training (replay, everything). Larger values fit the "
            "buffer more closely and take longer (usually 1 to 100). Empty: the steps of five "
            "passes through the buffer, in whole batches."
        ),
    )
    batch: int = param(
        32,
        title="Batch size",
        ge=1,
        le=4096,
        structural=True,
        help=(
            "Observations per step of the optimiser (replay). Larger batches have less noisy "
            "gradients and take longer (usually 16 to 128)."
        ),
    )
    buffer: int = param(
        20_000,
        title="Replay buffer size",
        unit="observations",
        ge=100,
        le=1_000_000,
        structural=True,
        help=(
            "Number of latest observations stored for training (replay, everything). Larger "
            "buffers forget later and take more memory (usually 1,000 to 100,000)."
        ),
    )
    pretrain: int = pretrain_param()
