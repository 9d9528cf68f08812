"""Optimise R networks at once by SGD, Adam or RMSprop, one learning rate per row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numba import njit

from bandits.base.types import FloatArray

if TYPE_CHECKING:
    from torch import Tensor


class SGD:
    """Stochastic gradient descent with one learning rate per row.

    Parameters
    ----------
    flat : Tensor (R, p)
        The weights; changed in place.
    learning_rate : float64 (R,)
    """

    state: tuple[str, ...] = ()
    """Names of the attributes that are saved with the weights."""

    def __init__(self, flat: Tensor, learning_rate: FloatArray) -> None:
        import torch

        self.flat = flat
        self.rate = torch.tensor(learning_rate, dtype=flat.dtype, device=flat.device)[:, None]

    def step(self, gradient: Tensor) -> None:
        """Make one step against ``gradient (R, p)``."""
        self.flat.addcmul_(gradient, self.rate, value=-1)

    def state_dict(self) -> dict[str, Any]:
        """Copy the state as NumPy arrays for `load_state_dict`."""
        values = {name: getattr(self, name) for name in self.state}
        return {
            n: v.copy() if isinstance(v, np.ndarray) else v.cpu().numpy().copy()
            for n, v in values.items()
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state of `state_dict`."""
        import torch

        for name in self.state:
            target = getattr(self, name)
            if isinstance(target, np.ndarray):
                target[...] = state[name]
            else:
                target.copy_(torch.from_numpy(state[name]))


class Adam(SGD):
    """Adam [1]_ with one learning rate per row, equal to torch.optim.Adam.

    Attributes
    ----------
    first, second : Tensor (R, p)
        Moving averages of the gradient and of its square.
    count : int64 (1,)
        Steps so far.

    References
    ----------
    .. [1] Kingma, Ba (2015), Adam: a method for stochastic optimization.
    """

    state = ("first", "second", "count")
    BETAS, EPSILON = (0.9, 0.999), 1e-8

    def __init__(self, flat: Tensor, learning_rate: FloatArray) -> None:
        import torch

        super().__init__(flat, learning_rate)
        self.first, self.second = torch.zeros_like(flat), torch.zeros_like(flat)
        self.count = np.zeros(1, np.int64)

    def step(self, gradient: Tensor) -> None:
        import torch

        self.count += 1
        (b1, b2), t = self.BETAS, int(self.count[0])
        # epsilon and rate absorb the bias corrections: one pass less over the weights
        epsilon = self.EPSILON * (1 - b2**t) ** 0.5
        rate = self.rate * ((1 - b2**t) ** 0.5 / (1 - b1**t))
        if self.flat.device.type == "cpu":
            weights, first, second = self.flat.numpy(), self.first.numpy(), self.second.numpy()
            constants = np.array([1 - b1, b2, 1 - b2, epsilon], weights.dtype)
            _adam_step(weights, gradient.numpy(), first, second, rate[:, 0].numpy(), constants)
            return
        self.first.lerp_(gradient, 1 - b1)
        self.second.mul_(b2).addcmul_(gradient, gradient, value=1 - b2)
        self.flat.sub_(torch.div(self.first, torch.sqrt(self.second).add_(epsilon)).mul_(rate))


class RMSprop(SGD):
    """RMSprop [1]_ with one learning rate per row, as TensorFlow 1 computes it.

    The average of squared gradients begins at 1, so that the first steps are small. From the same
    average, steps equal those of torch.optim.RMSprop with alpha .9, whose average begins at 0.

    Attributes
    ----------
    second : Tensor (R, p)
        Moving average of the square of the gradient.

    References
    ----------
    .. [1] Tieleman, Hinton (2012), Lecture 6.5: RMSprop, COURSERA: neural networks for machine
           learning.
    """

    state = ("second",)
    DECAY, EPSILON = 0.9, 1e-10

    def __init__(self, flat: Tensor, learning_rate: FloatArray) -> None:
        import torch

        super().__init__(flat, learning_rate)
        self.second = torch.ones_like(flat)

    def step(self, gradient: Tensor) -> None:
        self.second.mul_(self.DECAY).addcmul_(gradient, gradient, value=1 - self.DECAY)
        self.flat.sub_((gradient * self.rate).div_((self.second + self.EPSILON).sqrt_()))


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def _adam_step(
    flat: Any, gradient: Any, first: Any, second: Any, rate: Any, constants: Any
) -> None:
    """Make one Adam step in a single pass over the weights (R, p).

    The operations of torch would make eight passes.
    """
    c1, b2, c2, epsilon = constants
    for r in range(len(flat)):
        w, g, m, v, a = flat[r], gradient[r], first[r], second[r], rate[r]
        for i in range(len(w)):
            m[i] += (g[i] - m[i]) * c1
            v[i] = v[i] * b2 + g[i] * g[i] * c2
            w[i] -= a * m[i] / (np.sqrt(v[i]) + epsilon)


def make_optimiser(name: str, flat: Tensor, learning_rate: FloatArray) -> SGD:
    """Create the optimiser ``adam``, ``sgd`` or ``rmsprop`` for the weights ``flat (R, p)``."""
    return {"adam": Adam, "sgd": SGD, "rmsprop": RMSprop}[name](flat, learning_rate)
