"""Draw the initial weights of multilayer perceptrons from random streams."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from bandits.base.randomness import Streams
from bandits.base.types import FloatArray


def initial_weights(
    streams: Streams,
    widths: Sequence[int],
    *,
    part: int,
    copies: int = 1,
    symmetric: bool = False,
    embedding_weights: int = 0,
    scale: float | None = None,
) -> FloatArray:
    """Draw weights, float64 (R * copies, p), in the order of `BatchedMLP.flat`.

    Parameters
    ----------
    streams : Streams
    widths : sequence of int
        Input width, hidden widths, output width.
    part : int
        Part of the agent's stream.
    copies : int
        Networks per row, one after the other.
    symmetric : bool
        Initialise as in [1]_: two equal halves whose last layers have opposite signs, weights N(0,
        4/m) and N(0, 2/m), biases 0, so that the output is 0 before training. Otherwise as torch
        does by default: U(-1/sqrt(in), 1/sqrt(in)).
    embedding_weights : int
        Numbers in the embedding tables, N(0, 1) as torch does by default.
    scale : float, optional
        Initialise with weights U(-scale, scale) and biases 0.

    References
    ----------
    .. [1] Zhou, Li, Gu (2020), Neural contextual bandits with UCB-based exploration, Algorithm 1.
    """
    rows = []
    for row in streams.rows:
        generator = streams.generator("agent", row=row, part=part)
        for _ in range(copies):
            layers = (
                _symmetric(generator, widths) if symmetric else _uniform(generator, widths, scale)
            )
            rows.append(np.concatenate([layers, generator.standard_normal(embedding_weights)]))
    return np.stack(rows)


def _uniform(
    generator: np.random.Generator, widths: Sequence[int], scale: float | None
) -> FloatArray:
    parts = []
    for a, b in itertools.pairwise(widths):
        if scale is None:
            parts.append(generator.uniform(-1, 1, (a + 1) * b) / np.sqrt(a))
        else:
            parts += [generator.uniform(-scale, scale, a * b), np.zeros(b)]
    return np.concatenate(parts)


def _symmetric(generator: np.random.Generator, widths: Sequence[int]) -> FloatArray:
    parts = []
    for i, (a, b) in enumerate(itertools.pairwise(widths)):
        last, half = i == len(widths) - 2, (b // 2, a // 2)
        if last:
            w = generator.normal(0, np.sqrt(2 / a), (b, half[1]))
            weight = np.concatenate([w, -w], axis=1)
        elif i == 0:
            # both halves read the whole input
            w = generator.normal(0, np.sqrt(4 / b), (half[0], a))
            weight = np.concatenate([w, w])
        else:
            w, zero = generator.normal(0, np.sqrt(4 / b), half), np.zeros(half)
            weight = np.block([[w, zero], [zero, w]])
        parts += [weight.ravel(), np.zeros(b)]
    return np.concatenate(parts)
