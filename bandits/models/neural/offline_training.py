"""Train a multilayer perceptron offline on logged interactions.

torch is imported on first use, so that linear agents do not load it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from bandits.base.extras import require
from bandits.base.types import FloatArray, LoggedData

Float32 = NDArray[np.float32]


class Fitted(NamedTuple):
    """Weights of a trained network, by name, and its log loss.

    Attributes
    ----------
    weights : dict of str to float32
    validation_loss : float
        On held-out data, at the end.
    train_curve, validation_curve : float64 (E,)
        In each epoch: on the training data, the mean over batches while it was trained; on held-out
        data, after it.
    """

    weights: dict[str, Float32]
    validation_loss: float
    train_curve: FloatArray
    validation_curve: FloatArray


def n_held_out(n: int) -> int:
    """Return how many of n logged interactions are held out for validation: the last tenth."""
    return n // 10


def perfect_loss(log: LoggedData, held_out: int) -> float:
    """Compute the log loss of the true expected rewards on the last ``held_out`` interactions.

    NaN if unknown.
    """
    if log.means is None:
        return math.nan
    from scipy.special import xlog1py, xlogy

    y, p = log.rewards[len(log.rewards) - held_out :], log.means[len(log.rewards) - held_out :]
    return float(-np.mean(xlogy(y, p) + xlog1py(1 - y, -p)))


def fit_click_model(
    log: LoggedData,
    *,
    n_features: int,
    n_users: int,
    n_items: int,
    embedding: int,
    hidden: Sequence[int],
    learning_rate: float,
    batch: int,
    epochs: int,
    seed: int,
    held_out: int | None = None,
) -> Fitted:
    """Fit a multilayer perceptron to logged clicks by Adam on the log loss.

    The last ``held_out`` interactions of the log, by default a tenth, are held out for validation.
    With ``n_users > 0`` the input is the embeddings of user and item, else the features (D) of the
    candidate. Training uses one thread and its own generator: the numbers are the same on every
    machine with the same kind of processor.

    Parameters
    ----------
    log : LoggedData
    n_features, n_users, n_items : int
    embedding : int
        Width E of an embedding.
    hidden : sequence of int
        Widths of the hidden layers.
    learning_rate : float
    batch : int
        Interactions per step.
    epochs : int
    seed : int
    held_out : int, optional

    Returns
    -------
    Fitted
        ``user (n_users, E)`` and ``item (n_items, E)`` or neither, and ``w0 (in, out), b0, w1,
        ...``.
    """
    require("torch")
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1):
            generator = torch.Generator().manual_seed(seed)
            sizes = [2 * embedding if n_users else n_features, *hidden, 1]
            tensors = _initial(torch, generator, sizes, n_users, n_items, embedding)
            rest = n_held_out(len(log.rewards)) if held_out is None else held_out
            return _train(
                torch, generator, tensors, log, rest, n_features, learning_rate, batch, epochs
            )
    finally:
        torch.set_num_threads(threads)


def _initial(
    torch: Any, generator: Any, sizes: list[int], n_users: int, n_items: int, embedding: int
) -> dict[str, Any]:
    """Draw initial weights as torch does by default.

    Embeddings are N(0, 1), layers U(-1/sqrt(in), 1/sqrt(in)).
    """
    tensors: dict[str, Any] = {}
    if n_users:
        tensors["user"] = torch.randn((n_users, embedding), generator=generator)
        tensors["item"] = torch.randn((n_items, embedding), generator=generator)
    for i, (fan_in, fan_out) in enumerate(itertools.pairwise(sizes)):
        bound = fan_in**-0.5
        tensors[f"w{i}"] = (torch.rand((fan_in, fan_out), generator=generator) * 2 - 1) * bound
        tensors[f"b{i}"] = (torch.rand(fan_out, generator=generator) * 2 - 1) * bound
    return tensors


def _train(
    torch: Any,
    generator: Any,
    tensors: dict[str, Any],
    log: LoggedData,
    held_out: int,
    n_features: int,
    learning_rate: float,
    batch: int,
    epochs: int,
) -> Fitted:
    n = len(log.rewards) - held_out
    data = {
        "users": torch.from_numpy(log.users),
        "items": torch.from_numpy(log.items),
        "values": torch.from_numpy(log.values.astype(np.float32)),
        "columns": torch.from_numpy(np.ascontiguousarray(log.columns)),
        "rewards": torch.from_numpy(log.rewards.astype(np.float32))[:, None],
    }
    for tensor in tensors.values():
        tensor.grad = torch.zeros_like(tensor)
    optimiser = torch.optim.Adam(list(tensors.values()), lr=learning_rate, fused=True)
    loss_of, rest = (
        torch.nn.functional.binary_cross_entropy_with_logits,
        {k: v[n:] for k, v in data.items()},
    )
    train_curve, validation_curve = np.zeros(epochs), np.zeros(epochs)
    with torch.no_grad():
        for epoch in range(epochs):
            order, losses = torch.randperm(n, generator=generator), []
            shuffled = {name: column[order] for name, column in data.items()}
            for start in range(0, len(order), batch):
                part = {name: column[start : start + batch] for name, column in shuffled.items()}
                losses.append(loss_of(_backward(torch, tensors, part, n_features), part["rewards"]))
                optimiser.step()
            train_curve[epoch] = float(torch.stack(losses).mean())
            validation_curve[epoch] = float(
                loss_of(_forward(torch, tensors, rest, n_features)[-1], rest["rewards"])
            )
    weights = {name: t.numpy().copy() for name, t in tensors.items()}
    return Fitted(weights, float(validation_curve[-1]), train_curve, validation_curve)


def _forward(
    torch: Any, tensors: dict[str, Any], part: dict[str, Any], n_features: int
) -> list[Any]:
    """Compute the input h of every layer, followed by the logits (n, 1)."""
    if "user" in tensors:
        x = torch.cat([tensors["user"][part["users"]], tensors["item"][part["items"]]], dim=1)
    else:
        x = torch.zeros((len(part["rewards"]), n_features)).scatter_(
            1, part["columns"], part["values"]
        )
    h = [x]
    layers = sum(name.startswith("w") for name in tensors)
    for i in range(layers):
        out = torch.addmm(tensors[f"b{i}"], h[-1], tensors[f"w{i}"])
        h.append(out.relu_() if i < layers - 1 else out)
    return h


def _backward(torch: Any, tensors: dict[str, Any], part: dict[str, Any], n_features: int) -> Any:
    """Write the gradients of the mean log loss into ``grad``; returns the logits (n, 1).

    Computed by hand, this is three times as fast as autograd here. delta is the derivative of the
    loss with respect to a layer's output before the ReLU; the layer's gradient is h' delta."""
    *h, logits = _forward(torch, tensors, part, n_features)
    delta = (logits.sigmoid() - part["rewards"]).div_(len(logits))
    for i in range(len(h) - 1, -1, -1):
        torch.mm(h[i].t(), delta, out=tensors[f"w{i}"].grad)
        torch.sum(delta, 0, out=tensors[f"b{i}"].grad)
        if i > 0:
            delta = (delta @ tensors[f"w{i}"].t()).mul_(h[i] > 0)
    if "user" in tensors:
        back = delta @ tensors["w0"].t()
        embedding = tensors["user"].shape[1]
        tensors["user"].grad.zero_().index_add_(0, part["users"], back[:, :embedding])
        tensors["item"].grad.zero_().index_add_(0, part["items"], back[:, embedding:])
    return logits


def click_logits(weights: dict[str, Float32], x: Float32) -> Float32:
    """Compute the logits, float32 (...,), for inputs ``x (..., in)``."""
    layers = sum(name.startswith("w") for name in weights)
    for i in range(layers):
        x = np.matmul(x, weights[f"w{i}"]) + weights[f"b{i}"]
        x = np.maximum(x, 0, out=x) if i < layers - 1 else x
    return x[..., 0]
