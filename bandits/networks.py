"""Multilayer perceptrons trained offline on a log. torch is imported on first use: linear runs never pay for it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from .rounds import Log

Float32 = NDArray[np.float32]


class Fitted(NamedTuple):
    """Weights of a trained network, NumPy arrays by name, and how well it predicted what it had not seen."""

    weights: dict[str, Float32]
    validation_loss: float


def fit_click_model(
    log: Log,
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
) -> Fitted:
    """Train a click model by Adam on the log loss; the last tenth of the log validates.

    With ``n_users > 0`` the input is a user's and an item's embedding, else the candidate's features (D). One
    thread, own generator: the same numbers everywhere on one kind of processor.

    Returns
    -------
    Fitted
        ``user (n_users, E)`` and ``item (n_items, E)`` or neither, and ``w0 (in, out), b0, w1, ...``.
    """
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1):
            generator = torch.Generator().manual_seed(seed)
            sizes = [2 * embedding if n_users else n_features, *hidden, 1]
            tensors = _initial(torch, generator, sizes, n_users, n_items, embedding)
            return _train(torch, generator, tensors, log, n_features, learning_rate, batch, epochs)
    finally:
        torch.set_num_threads(threads)


def _initial(
    torch: Any, generator: Any, sizes: list[int], n_users: int, n_items: int, embedding: int
) -> dict[str, Any]:
    """torch's own defaults: N(0, 1) embeddings, uniform(-1/sqrt(in), 1/sqrt(in)) layers."""
    tensors: dict[str, Any] = {}
    if n_users:
        tensors["user"] = torch.randn((n_users, embedding), generator=generator)
        tensors["item"] = torch.randn((n_items, embedding), generator=generator)
    for i, (fan_in, fan_out) in enumerate(itertools.pairwise(sizes)):
        bound = fan_in**-0.5
        tensors[f"w{i}"] = (torch.rand((fan_in, fan_out), generator=generator) * 2 - 1) * bound
        tensors[f"b{i}"] = (torch.rand(fan_out, generator=generator) * 2 - 1) * bound
    return {name: tensor.requires_grad_() for name, tensor in tensors.items()}


def _train(
    torch: Any,
    generator: Any,
    tensors: dict[str, Any],
    log: Log,
    n_features: int,
    learning_rate: float,
    batch: int,
    epochs: int,
) -> Fitted:
    users, items = torch.from_numpy(log.users), torch.from_numpy(log.items)
    values = torch.from_numpy(log.values.astype(np.float32))
    columns = torch.from_numpy(np.ascontiguousarray(log.columns))
    rewards = torch.from_numpy(log.rewards.astype(np.float32))
    layers = sum(name.startswith("w") for name in tensors)
    embedded = "user" in tensors

    def logits(index: Any) -> Any:
        if embedded:
            embeddings = torch.nn.functional.embedding
            x = torch.cat([embeddings(users[index], tensors["user"]), embeddings(items[index], tensors["item"])], dim=1)
        else:
            x = torch.zeros((len(index), n_features)).scatter_(1, columns[index], values[index])
        for i in range(layers):
            x = x @ tensors[f"w{i}"] + tensors[f"b{i}"]
            x = torch.relu(x) if i < layers - 1 else x
        return x[:, 0]

    loss = torch.nn.BCEWithLogitsLoss()
    optimiser = torch.optim.Adam(list(tensors.values()), lr=learning_rate, fused=True)
    n = len(rewards)
    held_out = torch.arange(n - n // 10, n)
    for _ in range(epochs):
        for index in torch.randperm(n - n // 10, generator=generator).split(batch):
            optimiser.zero_grad(set_to_none=True)
            loss(logits(index), rewards[index]).backward()
            optimiser.step()
    with torch.no_grad():
        validation = float(loss(logits(held_out), rewards[held_out])) if len(held_out) else float("nan")
    return Fitted({name: t.detach().numpy().copy() for name, t in tensors.items()}, validation)


def click_logits(weights: dict[str, Float32], x: Float32) -> Float32:
    """The network's output before the sigmoid, float32 (..., ), for inputs ``x (..., in)``."""
    layers = sum(name.startswith("w") for name in weights)
    for i in range(layers):
        x = np.matmul(x, weights[f"w{i}"]) + weights[f"b{i}"]
        x = np.maximum(x, 0, out=x) if i < layers - 1 else x
    return x[..., 0]
