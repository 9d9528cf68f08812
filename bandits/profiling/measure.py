"""Time and memory of the ways over a small ladder of network sizes, observations and candidates."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from bandits.base.randomness import Streams
from bandits.models.neural.initialisation import initial_weights
from bandits.models.neural.mlp import BatchedMLP

from .complexity import SQUARE, WAYS, capacity
from .request import Axis, ProfileRequest, Sizes
from .results import Point, Step

if TYPE_CHECKING:
    from torch import Tensor

    from .methods import Way

BUDGET = 0.5  # seconds a decision with its update may take to be measured
SETUP = 1.5  # seconds until the state to be measured is reached
BYTES = 256 * 2**20  # what a way may hold to be measured
MATRIX = 128 * 2**20  # one p x p matrix
ENOUGH = 0.02  # seconds of repetitions
FILL = 3  # observations
SMALLEST = 120  # weights that the ladder begins with
FEW = 50  # candidates
MOST_PASSES = 500  # they take their time, whatever the network
_COARSE, _FINE = (1, 3), (1, 2, 3, 5)

# Processor time of this thread, which others who compute here cannot lengthen much; wall time where it is too coarse.
_clock = time.thread_time if time.get_clock_info("thread_time").resolution < 1e-5 else time.perf_counter


class Rung(NamedTuple):
    """What was spent on the last measurement of a ladder, to tell what the next would take."""

    sizes: Sizes
    seconds: float
    setup: float


def measure(question: ProfileRequest) -> Iterator[Step]:
    """Time every way, smallest sizes first, as far as budget and memory allow; then let them look at decisions.

    Yields
    ------
    Step
        How far it is, what comes next, and what was found, if anything.
    """
    from . import agreement

    base = question.sizes
    todo = _plan(base)
    total = len(todo) + len(agreement.SCENES) * 10
    rungs: dict[tuple[str, Axis, Sizes], Rung] = {}
    done: set[tuple[str, Sizes]] = set()
    widest: dict[str, float] = {}
    with one_thread():
        for kind in WAYS:  # whatever is imported or compiled on first use
            _timed(kind, Sizes(2, 10, (2, 2, 1)), question.seed)
    for i, (kind, axis, sizes) in enumerate(todo):
        sizes = _anchored(kind, axis, sizes, widest.get(kind, 0))
        found = None
        ladder_of = kind, axis, sizes.without(axis)
        if (kind, sizes) not in done and _fits(kind, sizes) and _affordable(kind, axis, sizes, rungs.get(ladder_of)):
            with one_thread():
                found, rungs[ladder_of] = _timed(kind, sizes, question.seed)
            done.add((kind, sizes))
            widest[kind] = max(widest.get(kind, 0), sizes.p)
        yield Step((i + 1) / total, f"{WAYS[kind].title} at {axis} = {sizes.at(axis):,.0f}", found)
    yield Step(len(todo) / total, "Looking at decisions", None, timed=True)
    for i, scene in enumerate(agreement.SCENES):
        with one_thread():
            compared = agreement.look(question, scene)
        for each in compared:
            yield Step((len(todo) + (i + 1) * 10) / total, "Looking at decisions", each, timed=True)


def ladder(low: float, high: float, through: float, steps: tuple[int, ...] = _COARSE) -> list[int]:
    """Round numbers from ``low`` to ``high``, and the one that was asked for."""
    found = {m * 10**e for e in range(7) for m in steps if low <= m * 10**e <= high}
    return sorted(found | {round(through)})


def networks_of(base: Sizes) -> list[Sizes]:
    """The network at a sequence of widths, narrow to wide, itself among them."""
    found, half_steps = [base], 1
    while found[0].p > SMALLEST and len(found) < 40:
        narrower = base.scaled(2 ** (-half_steps / 2)).rounded()
        if narrower.widths != found[0].widths:
            found.insert(0, narrower)
        elif max(narrower.widths[1:-1]) == 1:
            break
        half_steps += 1
    return [*found, *(base.scaled(2**i).rounded() for i in (1, 2, 3))]


def _plan(base: Sizes) -> list[tuple[str, Axis, Sizes]]:
    networks = networks_of(base)
    todo: list[tuple[str, Axis, Sizes]] = [(kind, "p", sizes) for sizes in networks for kind in WAYS]
    if base.K > 2 * FEW:  # so many candidates hide what p does
        todo += [(kind, "p", sizes._replace(K=FEW)) for sizes in networks for kind in SQUARE]
    todo += [("dual", "t", base._replace(t=t)) for t in ladder(50, 5000, base.t, _FINE)]
    return todo + [(kind, "K", base._replace(K=K)) for K in ladder(10, 2000, base.K) for kind in WAYS]


def _anchored(kind: str, axis: Axis, sizes: Sizes, widest: float) -> Sizes:
    """The sizes with what cannot be measured made smaller in the other directions: the lines need slopes from there."""
    if axis == "K" and kind in SQUARE and widest < sizes.p:
        cheap = [step.widths for step in networks_of(sizes) if step.p * 3 <= widest]  # and many candidates can be had
        return sizes._replace(widths=cheap[-1] if cheap else networks_of(sizes)[0].widths)
    if kind == "dual" and axis != "t" and not _fits(kind, sizes):
        return sizes._replace(t=1000)
    return sizes


def _fits(kind: str, sizes: Sizes) -> bool:
    if kind == "passes" and sizes.K > MOST_PASSES:
        return False
    matrix = 4 * sizes.p**2 if kind in SQUARE else 8 * capacity(sizes.t + 1) ** 2 if kind == "dual" else 0
    return matrix <= MATRIX and WAYS[kind].held(sizes) <= BYTES


def _affordable(kind: str, axis: Axis, sizes: Sizes, last: Rung | None) -> bool:
    """Whether the next rung keeps within the budgets, told from the last one by the steepest growth there can be."""
    if last is None:
        return True
    ratio = sizes.at(axis) / last.sizes.at(axis)
    setup = last.setup * ratio ** (3 if axis == "t" else WAYS[kind].steepest[axis])
    return last.seconds * ratio ** WAYS[kind].steepest[axis] <= BUDGET and setup <= SETUP


def _timed(kind: str, sizes: Sizes, seed: int) -> tuple[Point, Rung]:
    from .methods import REGISTRY

    began = _clock()
    net, past, x = _inputs(sizes, seed)
    past = past if WAYS[kind].steepest["t"] else past[:FILL]  # it does not matter how many there were
    way = REGISTRY[kind](net, t=int(sizes.t))
    way.fill(past)
    setup = _clock() - began
    way.widths(x)
    held = way.held()
    way.update(0)  # and so is everything warm
    decide, update = _repeat(way, x)
    return Point(kind, sizes, decide, update, held), Rung(sizes, decide + update, setup)


def _repeat(way: Way, x: Tensor) -> tuple[float, float]:
    """Median seconds of a decision and of its update."""
    spent: list[tuple[float, float]] = []
    began = _clock()
    while len(spent) < 3 or (_clock() - began < ENOUGH and len(spent) < 30):
        start = _clock()
        way.widths(x)
        middle = _clock()
        way.update(len(spent) % 2)
        spent.append((middle - start, _clock() - middle))
        if spent[0][0] > BUDGET:  # far slower than foretold
            break
    decide, update = (statistics.median(column) for column in zip(*spent, strict=True))
    return decide, update


def _inputs(sizes: Sizes, seed: int) -> tuple[BatchedMLP, Tensor, Tensor]:
    """A network as it begins, past observations (t, D) and candidates (K, D)."""
    import torch

    streams, (D, *_) = Streams(seed, (0,)), sizes.widths
    net = BatchedMLP(
        initial_weights(streams, [int(width) for width in sizes.widths], part=1), [int(w) for w in sizes.widths]
    )
    dice = streams.generator("world")
    past, x = (torch.from_numpy(dice.normal(size=(int(n), int(D)))).float() for n in (sizes.t, sizes.K))
    return net, past, x


@contextmanager
def one_thread() -> Iterator[None]:
    """torch on one thread for a while: what is measured does not depend on who else computes here."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
