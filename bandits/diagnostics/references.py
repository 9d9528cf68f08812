"""What agents are compared with, and no agent did: the oracle, a line and a network, slates in random order."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import chdtrc
from threadpoolctl import threadpool_limits

from bandits.base.randomness import Streams
from bandits.base.types import FloatArray
from bandits.experiments.experiment import Experiment
from bandits.experiments.history import History
from bandits.experiments.lane import Lane
from bandits.results.metrics import WINDOW
from bandits.simulators import Simulator

from .curves import segment_traffic, traffic
from .position_bias import examination

LOOKED = 4000  # steps of the oracle, and random choices that models are fitted to, at most
CELLS = 4_000_000  # candidates that these may weigh: it is done for a visitor who waits
SLATES = 20  # that are shown again and again to learn what slots do
EARLY = 100  # steps under which nothing can be said
GAIN = 0.2  # by which a network must foresee more than a line, for the line to have failed


class Oracle(NamedTuple):
    """What perfect knowledge would show in the same world.

    Attributes
    ----------
    entropy : float
        Selection entropy over a window of its choices, mean over rows.
    rare : float
        Share of the items with less than 1 % of that traffic.
    segments : tuple of float
        Selection entropy within each segment of the users; empty where they form no groups.
    steps : int
        Of which all of these are: another's are to be of as many.
    """

    entropy: float
    rare: float
    segments: tuple[float, ...] = ()
    steps: int = WINDOW


class Line(NamedTuple):
    """Whether rewards are linear in the features, on random choices that no agent made.

    Attributes
    ----------
    fitted, residual, error : float64 (bins,)
        Of held-out choices by what a line foresees: mean fitted value, what a straight line through the mean rewards
        leaves of them, and the standard error of such a mean. A fit that is off by what few choices teach is off by a
        slope and a constant; what they leave is bent.
    p_value : float
        Of nothing being left (chi-square, with two degrees of freedom fewer than bins).
    gain : float
        How much more of the held-out squared error a network takes away than a line does: .2 is 20 % more. NaN where
        neither foresees anything.
    condition : float
        Condition number of what the random choices alone would have gathered: that of the features.
    beyond : float
        By how many standard errors (paired by choice) the gain lies above `GAIN`.
    """

    fitted: FloatArray
    residual: FloatArray
    error: FloatArray
    p_value: float
    gain: float
    condition: float = math.nan
    beyond: float = math.inf


class Slots(NamedTuple):
    """How much less an item is clicked further down a slate, as against the first slot.

    Attributes
    ----------
    true : float64 (S,)
        b_k.
    counted : float64 (S,)
        Clicks per look, by the first slot's. Who comes far down has not been tempted above: other items are left.
    estimated, error : float64 (S,)
        From clicks alone, with a chance for every item of its own (`examination`), and its standard error.
    """

    true: FloatArray
    counted: FloatArray
    estimated: FloatArray
    error: FloatArray


def oracle_of(experiment: Experiment) -> Oracle | None:
    """The oracle in this world, for some thousand steps of some rows; None where there is none, or too many arms."""
    rows = list(range(min(experiment.replications, 4)))
    if (steps := _affordable(experiment)) is None:
        return None
    simulator = _world(experiment, rows)
    if "truth" not in simulator.spec.capabilities:
        return None
    from bandits.agents.context_free.oracle import Oracle as Agent

    lane = Lane(simulator, Agent([Agent.Params()] * len(rows), simulator.spec, simulator.streams, simulator.access()))
    history = History(
        steps, len(rows), simulator.spec.n_items, len(simulator.segment_names()), bucket_size=simulator.spec.bucket_size
    )
    history.extend(lane.advance(steps))
    entropy, rare = traffic(history, window := min(WINDOW, steps))
    by_segment = segment_traffic(history, window)
    return Oracle(entropy, rare, () if by_segment is None else tuple(by_segment.tolist()), window)


def _affordable(experiment: Experiment) -> int | None:
    """Steps that can be lived without keeping anybody waiting for long."""
    steps = _looks(experiment)
    return None if steps < EARLY else min(steps, max(experiment.steps, EARLY))


def _looks(experiment: Experiment) -> int:
    return min(LOOKED, CELLS // experiment.simulator_class().describe(experiment.simulator).n_candidates)


def line_of(experiment: Experiment) -> Line | None:
    """A line and a network, fitted to the same random choices and asked about others (5 steps in 8, and 3).

    None where there is too much to weigh.
    """
    from sklearn.linear_model import Ridge
    from sklearn.neural_network import MLPRegressor
    from sklearn.preprocessing import StandardScaler

    if (steps := _affordable(experiment)) is None:
        return None
    simulator = _world(experiment, [0])
    x, y = _random_choices(simulator, max(steps, 4 * EARLY))
    half = 5 * len(x) // 8
    scale = StandardScaler().fit(x[:half])
    seen, held, rewards, left = scale.transform(x[:half]), scale.transform(x[half:]), y[:half], y[half:]
    with threadpool_limits(1):
        line = Ridge(1.0).fit(seen, rewards)
        net = MLPRegressor(
            hidden_layer_sizes=(32, 16), max_iter=300, early_stopping=True, random_state=0, learning_rate_init=3e-3
        )
        net.fit(seen, rewards)
    fitted, bent = line.predict(held), net.predict(held)
    nothing = (left - rewards.mean()) ** 2
    taken = [nothing - (left - guess) ** 2 for guess in (fitted, bent)]  # squared error that each takes away
    line_, net_ = (float(t.mean()) for t in taken)
    best = max(taken, key=lambda t: float(t.mean()))
    known = float(best.mean()) > 3 * float(best.std()) / len(best) ** 0.5  # three standard errors
    gain = math.nan if not known else net_ / line_ - 1 if line_ > 0 else math.inf
    more = taken[1] - (1 + GAIN) * taken[0]
    beyond = float(more.mean()) / max(float(more.std()) / len(more) ** 0.5, 1e-12)
    design = np.linalg.eigvalsh(x.T @ x)
    spanned = design[design > design[-1] * 1e-10]
    return Line(*bend(fitted, left), gain, float(spanned[-1] / spanned[0]), beyond)


def bend(fitted: FloatArray, rewards: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, float]:
    """What a straight line through held-out rewards, by what was foreseen of them, leaves: see `Line`.

    Parameters
    ----------
    fitted, rewards : float64 (n,)

    Returns
    -------
    fitted, residual, error : float64 (bins,)
    p_value : float
    """
    clicks = set(np.unique(rewards)) <= {0.0, 1.0}
    bins = int(np.clip(rewards.sum() // 10, 3, 10)) if clicks else 10  # some clicks in each
    parts = [p for p in np.array_split(np.argsort(fitted, kind="stable"), bins) if len(p) > 1]
    means, earned = (np.array([values[p].mean() for p in parts]) for values in (fitted, rewards))
    sizes = np.array([len(p) for p in parts])
    straight = _straight(fitted, rewards, np.ones(len(fitted)))
    chance = np.clip(straight[0] + straight[1] * means, 1 / sizes, 1 - 1 / sizes)
    spread = (rewards - straight[0] - straight[1] * fitted).var()
    error = np.sqrt((chance * (1 - chance) if clicks else np.full(len(parts), spread)) / sizes)
    constant, slope = _straight(means, earned, 1 / np.maximum(error, 1e-12))
    residual = earned - constant - slope * means
    statistic = float(((residual / np.maximum(error, 1e-12)) ** 2).sum())
    freedom = len(parts) - 2
    return means, residual, error, float(chdtrc(freedom, statistic)) if freedom > 0 else 1.0


def _straight(x: FloatArray, y: FloatArray, weight: FloatArray) -> FloatArray:
    """Constant and slope by least squares, (2,)."""
    design = np.column_stack([np.ones(len(x)), x]) * weight[:, None]
    return np.asarray(np.linalg.lstsq(design, y * weight, rcond=None)[0])


def has_slots(experiment: Experiment) -> bool:
    """Whether its world shows several items at once; it need not be here to say so."""
    return int(getattr(experiment.simulator, "slate", 1)) > 1


def slots_of(experiment: Experiment) -> Slots | None:
    """Some good slates, each shown to its user again and again in random order; None where one item is shown.

    Only which items these are is taken from the truth; what a slot does is estimated from looks and clicks. None too
    where too much would have to be weighed.
    """
    steps = _looks(experiment)  # however few the run has: a ratio of few clicks has no honest interval
    if steps < EARLY or not has_slots(experiment):
        return None
    simulator, dice = _world(experiment, [0]), np.random.default_rng(1)
    S, true = simulator.spec.slate, np.array(simulator.spec.positions or [1.0] * simulator.spec.slate)
    looks, clicks = np.zeros((2, SLATES, S, S))  # by slate, item and slot
    rounds = [simulator.round_at(step) for step in range(SLATES)]
    best = [np.argsort(-simulator.probabilities(round)[0], kind="stable")[:S] for round in rounds]
    for step in range(steps):
        order, m = dice.permutation(S), step % SLATES
        feedback, _ = simulator.respond(rounds[m], best[m][None, order], simulator.uniforms.at(step))
        looks[m, order, np.arange(S)] += feedback.examined[0]
        clicks[m, order, np.arange(S)] += feedback.rewards[0]
    rate = clicks.sum(axis=(0, 1)) / np.maximum(looks.sum(axis=(0, 1)), 1)
    first = float(rate[0]) or math.nan
    return Slots(true, rate / first, *examination(looks.reshape(-1, S), clicks.reshape(-1, S)))


def _world(experiment: Experiment, rows: list[int]) -> Simulator:
    return experiment.simulator_class()(experiment.simulator, Streams(experiment.seed, rows))


def _random_choices(simulator: Simulator, n: int) -> tuple[FloatArray, FloatArray]:
    """Features (n, D) of a random candidate in each of n rounds, and what it earned when shown first."""
    dice, slots = np.random.default_rng(0), simulator.spec.slate
    x, y = np.zeros((n, simulator.spec.n_features)), np.empty(n)
    for step in range(n):
        round = simulator.round_at(step)
        shown = dice.choice(np.flatnonzero(round.available[0]), slots, replace=False)
        feedback, _ = simulator.respond(round, shown[None], simulator.uniforms.at(step))
        values, columns, _ = round.contexts
        at = round.context[0], shown[0]
        x[step, columns[at]], y[step] = values[at], feedback.rewards[0, 0]
    return x, y
