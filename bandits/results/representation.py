"""What a network has learned of the items: their embeddings on two principal axes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bandits.agents.guards.base import unguarded
from bandits.agents.neural.base import NeuralAgent
from bandits.base.formatting import percent
from bandits.base.types import FloatArray, IntArray
from bandits.experiments.lane import Lane
from bandits.results.figures.parts import axis, drawing, hover, points
from bandits.results.figures.style import NUMBER, REFERENCE, Spec, distinct_styles

# whose visitors the embeddings are averaged over
ROUNDS = 20
# items that are drawn
MOST = 500


class Representation(NamedTuple):
    """Embeddings of the items: the last hidden layer, averaged over the visitors of some rounds.

    Attributes
    ----------
    items : int64 (n,)
        Those that were candidates in these rounds.
    names : list of str
        Of the items.
    categories : int64 (n,)
        Index of the category; 0 where the simulator has none.
    category_names : list of str
        Empty where the simulator has none.
    points : float64 (n, 2)
        On the first two principal axes.
    explained : float64 (2,)
        Shares of the variance among items that the axes hold; 0 where all items are equal.
    width : int
        Units of the layer.
    rounds : int
    """

    items: IntArray
    names: list[str]
    categories: IntArray
    category_names: list[str]
    points: FloatArray
    explained: FloatArray
    width: int
    rounds: int


def representation(lane: Lane, row: int) -> Representation | None:
    """Embed the items by the network of an agent as it is now, in the next rounds.

    None for agents without such a network, and where it has diverged.
    """
    agent, simulator = unguarded(lane.agent), lane.simulator
    if not isinstance(agent, NeuralAgent):
        return None
    n = simulator.spec.n_items
    # where choices move the state, rounds are those of the present one
    rounds = 1 if simulator.state else ROUNDS
    total, seen = np.zeros((n, agent.widths[-2])), np.zeros(n)
    for step in range(lane.step, lane.step + rounds):
        round = simulator.round_at(step)
        items, available = round.items[row], round.available[row]
        np.add.at(total, items[available], agent.embedding(round)[row, available])
        np.add.at(seen, items[available], 1.0)
    agent.clear_cache()
    found = np.flatnonzero(seen)[:MOST]
    mean = total[found] / seen[found, None]
    if not np.isfinite(mean).all():
        return None
    names = simulator.category_names() if "categories" in simulator.spec.capabilities else []
    categories = simulator.categories()[row, found] if names else np.zeros(len(found), np.int64)
    projected, explained = principal_axes(mean)
    return Representation(
        items=found,
        names=[simulator.name(int(item), row) for item in found],
        categories=categories,
        category_names=names,
        points=projected,
        explained=explained,
        width=mean.shape[1],
        rounds=rounds,
    )


def principal_axes(z: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Project vectors (n, m) on their first two principal axes.

    Returns
    -------
    float64 (n, 2)
        The largest coordinate of each axis is positive.
    float64 (2,)
        Shares of the variance; 0 if all vectors are equal up to rounding.
    """
    centred = z - z.mean(axis=0)
    left, values, _ = np.linalg.svd(centred, full_matrices=False)
    points, explained = np.zeros((len(z), 2)), np.zeros(2)
    k = min(2, len(values))
    # single precision of the networks
    if (total := float((values**2).sum())) > 1e-10 * float((z**2).sum()):
        points[:, :k] = left[:, :k] * values[:k]
        explained[:k] = values[:k] ** 2 / total
    largest = points[np.abs(points).argmax(axis=0), range(2)]
    return points * np.where(largest < 0, -1.0, 1.0), explained


def figure(found: Representation, label: str) -> Spec:
    """Draw the items on the two axes, coloured by category."""
    looks = distinct_styles(found.category_names)
    groups = [(name, looks[name].color) for name in found.category_names] or [("", REFERENCE)]
    data = []
    for g, (name, color) in enumerate(groups):
        own = found.categories == g
        texts = [
            f"{found.names[i]} (item {found.items[i]})".replace("<", "&lt;")
            for i in np.flatnonzero(own)
        ]
        x, y = found.points[own].T
        data.append(points(name.replace("<", "&lt;"), x, y, color, 9, **hover(texts)))
        data[-1]["marker"]["opacity"] = 0.75
    axes = [
        axis(f"axis {i + 1} ({percent(share)})", hoverformat=NUMBER, zeroline=False)
        for i, share in enumerate(found.explained)
    ]
    return drawing(
        data,
        f"Learned representation of {label}",
        note(found),
        x=axes[0],
        y=axes[1],
        legend=bool(found.category_names),
        hovermode="closest",
    )


def note(found: Representation) -> str:
    """Explain the figure in words."""
    if not found.explained.any():
        return (
            "All items have the same embedding: the network reads no features by which they differ."
        )
    over = "of the visitor" if found.rounds == 1 else f"over the next {found.rounds} visitors"
    return (
        f"Each dot is an item: the mean {over} of the {found.width} units of the last hidden "
        "layer before this step, on its first two principal axes. In brackets: share of the "
        "variance among items. Items that are close have similar mean estimates."
    )
