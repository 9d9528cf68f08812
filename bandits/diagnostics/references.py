"""Reference values that no agent of the run produced: the oracle, a linearity check, the position
bias.
"""

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
from bandits.experiments.lane import build_lane
from bandits.results.metrics import WINDOW
from bandits.simulators import Simulator

from .curves import recent_entropy, recent_segment_entropy


def estimate_position_bias(
    impressions: FloatArray, clicks: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Estimate each slot's click probability relative to slot 1, given examination, by maximum
    likelihood.

    Users scan a slate downwards and stop at the first click (cascade model), so those who reach a
    lower slot have rejected the items above it, and clicks per examination confound the slot with
    the items that remain. With a click probability b_k p_i of item i in slot k, the likelihood is a
    product over examinations. It is maximised by alternating between p given b and b given p, with
    clicks as Poisson counts, for which the many nuisance parameters p_i leave b without bias. The
    standard errors are those of b with every p_i unknown.

    Parameters
    ----------
    impressions, clicks : float64 (n, S)
        Examinations and clicks of each of n items (an item for one user) in each slot.

    Returns
    -------
    b, error : float64 (S,)
        b_1 = 1. NaN for slots that were never examined, and for all if slot 1 was never clicked.
    """
    # an item without clicks carries no information about slots
    informative = clicks.any(axis=1)
    impressions, clicks = impressions[informative], clicks[informative]
    per_item, per_slot = clicks.sum(axis=1), clicks.sum(axis=0)
    b, error = np.ones(impressions.shape[1]), np.zeros(impressions.shape[1])
    if not per_slot[0]:
        return np.full(len(b), np.nan), np.full(len(b), np.nan)
    for _ in range(2000):
        p = per_item / (impressions @ b)
        new = per_slot / np.maximum(p @ impressions, 1e-300)
        before, b = b, new / new[0]
        if np.abs(b - before).max() < 1e-10:
            break
    expected = impressions * p[:, None] * b
    information = np.diag(expected.sum(axis=0)) - expected.T @ (
        expected / expected.sum(axis=1, keepdims=True)
    )
    clicked = np.flatnonzero(per_slot)[1:]
    error[clicked] = b[clicked] * np.sqrt(
        np.diag(np.linalg.pinv(information[np.ix_(clicked, clicked)]))
    )
    unclicked = per_slot == 0
    # the estimate that one click would give
    error[unclicked] = 1 / np.maximum(p @ impressions, 1e-300)[unclicked]
    unexamined = ~impressions.any(axis=0)
    b[unexamined] = error[unexamined] = np.nan
    return b, error


# steps of the oracle, and randomly logged rewards
MAX_STEPS = 4000
# scored over all steps: a user waits for the result
MAX_CANDIDATES = 4_000_000
# shown repeatedly to estimate the position bias
N_SLATES = 20
# below which no rule gives a verdict
MIN_STEPS = 100
# explained variance of a network beyond a linear model's, relative to the latter
MAX_NETWORK_GAIN = 0.2


class OracleReference(NamedTuple):
    """The selections of the oracle in the same simulator.

    Attributes
    ----------
    entropy : float
        Selection entropy over its last ``steps`` steps, mean over replications.
    rare : float
        Share of the items with less than 1 % of that traffic.
    segments : tuple of float
        Selection entropy within each segment of the users; empty without segments.
    steps : int
        The window: an agent is to be compared over as many.
    """

    entropy: float
    rare: float
    segments: tuple[float, ...] = ()
    steps: int = WINDOW


class LinearityCheck(NamedTuple):
    """Whether rewards are linear in the features, on randomly logged data.

    Attributes
    ----------
    fitted, residual, error : float64 (bins,)
        Held-out rewards, binned by linear prediction: mean prediction, deviation of the mean reward
        from a straight line through all bins, and its standard error. The line absorbs the slope
        and the constant by which a model fitted to few data is off; what remains is curvature.
    p_value : float
        Of no curvature (chi-square with bins − 2 degrees of freedom).
    gain : float
        Held-out variance explained by a network relative to a linear model's, minus 1: 0.2 is 20 %
        more. NaN if neither explains any.
    condition : float
        Condition number of the design matrix of uniformly random choices.
    beyond : float
        Standard errors (paired by observation) by which the gain exceeds `MAX_NETWORK_GAIN`.
    """

    fitted: FloatArray
    residual: FloatArray
    error: FloatArray
    p_value: float
    gain: float
    condition: float = math.nan
    beyond: float = math.inf


class PositionBias(NamedTuple):
    """Click probability of an item in each slot relative to slot 1, given examination.

    Attributes
    ----------
    true : float64 (S,)
        That of the simulator.
    counted : float64 (S,)
        Clicks per examination relative to slot 1: biased, because users who reach a lower slot have
        rejected the items above it.
    estimated, error : float64 (S,)
        `estimate_position_bias` from clicks alone, and its standard error.
    """

    true: FloatArray
    counted: FloatArray
    estimated: FloatArray
    error: FloatArray


def oracle_reference(experiment: Experiment) -> OracleReference | None:
    """Run the oracle for some thousand steps.

    None if the simulator has no oracle or too many arms.
    """
    rows = list(range(min(experiment.replications, 4)))
    if (steps := _affordable_steps(experiment)) is None:
        return None
    simulator = _simulator(experiment, rows)
    if "truth" not in simulator.spec.capabilities:
        return None
    from bandits.agents.context_free.baselines import Oracle

    lane = build_lane(Oracle, [Oracle.Params()] * len(rows), simulator)
    history = History(
        steps,
        len(rows),
        simulator.spec.n_items,
        len(simulator.segment_names()),
        bucket_size=simulator.spec.bucket_size,
    )
    history.extend(lane.advance(steps))
    entropy, rare = recent_entropy(history, window := min(WINDOW, steps))
    by_segment = recent_segment_entropy(history, window)
    return OracleReference(
        entropy, rare, () if by_segment is None else tuple(by_segment.tolist()), window
    )


def _affordable_steps(experiment: Experiment) -> int | None:
    """Compute how many steps can be simulated while a user waits; None if too few to be of use."""
    steps = _max_steps(experiment)
    return None if steps < MIN_STEPS else min(steps, max(experiment.steps, MIN_STEPS))


def _max_steps(experiment: Experiment) -> int:
    candidates = experiment.simulator_class().describe(experiment.simulator).n_candidates
    return min(MAX_STEPS, MAX_CANDIDATES // candidates)


def linearity_check(experiment: Experiment) -> LinearityCheck | None:
    """Fit a linear model and a network to 5/8 of some thousand randomly logged rewards and test
    both on the rest.

    None if there are too many candidates.
    """
    from sklearn.linear_model import Ridge
    from sklearn.neural_network import MLPRegressor
    from sklearn.preprocessing import StandardScaler

    if (steps := _affordable_steps(experiment)) is None:
        return None
    simulator = _simulator(experiment, [0])
    x, y = _randomly_logged(simulator, max(steps, 4 * MIN_STEPS))
    n_train = 5 * len(x) // 8
    scaler = StandardScaler().fit(x[:n_train])
    train, test, y_train, y_test = (
        scaler.transform(x[:n_train]),
        scaler.transform(x[n_train:]),
        y[:n_train],
        y[n_train:],
    )
    with threadpool_limits(1):
        linear = Ridge(1.0).fit(train, y_train)
        network = MLPRegressor(
            hidden_layer_sizes=(32, 16),
            max_iter=300,
            early_stopping=True,
            random_state=0,
            learning_rate_init=3e-3,
        )
        network.fit(train, y_train)
    fitted, nonlinear = linear.predict(test), network.predict(test)
    of_mean = (y_test - y_train.mean()) ** 2
    gain, beyond = network_gain(
        of_mean - (y_test - fitted) ** 2, of_mean - (y_test - nonlinear) ** 2
    )
    eigenvalues = np.linalg.eigvalsh(x.T @ x)
    nonzero = eigenvalues[eigenvalues > eigenvalues[-1] * 1e-10]
    return LinearityCheck(
        *curvature_test(fitted, y_test), gain, float(nonzero[-1] / nonzero[0]), beyond
    )


def network_gain(linear: FloatArray, network: FloatArray) -> tuple[float, float]:
    """Compare what two models explain of each held-out reward: `gain` and `beyond` of
    `LinearityCheck`.

    Parameters
    ----------
    linear, network : float64 (n,)
        Squared error of the mean reward minus that of the model.
    """
    best = max(linear, network, key=lambda explained: float(explained.mean()))
    # by three standard errors
    predictable = float(best.mean()) > 3 * float(best.std()) / len(best) ** 0.5
    by_linear, by_network = float(linear.mean()), float(network.mean())
    gain = (
        math.nan if not predictable else by_network / by_linear - 1 if by_linear > 0 else math.inf
    )
    excess = network - (1 + MAX_NETWORK_GAIN) * linear
    return gain, float(excess.mean()) / max(float(excess.std()) / len(excess) ** 0.5, 1e-12)


def curvature_test(
    fitted: FloatArray, rewards: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, float]:
    """Test held-out rewards, binned by linear prediction, for deviations from a straight line: see
    `LinearityCheck`.

    Parameters
    ----------
    fitted, rewards : float64 (n,)

    Returns
    -------
    fitted, residual, error : float64 (bins,)
    p_value : float
    """
    binary = set(np.unique(rewards)) <= {0.0, 1.0}
    # some clicks in each
    bins = int(np.clip(rewards.sum() // 10, 3, 10)) if binary else 10
    parts = [p for p in np.array_split(np.argsort(fitted, kind="stable"), bins) if len(p) > 1]
    means, earned = (np.array([values[p].mean() for p in parts]) for values in (fitted, rewards))
    sizes = np.array([len(p) for p in parts])
    straight = _straight_line(fitted, rewards, np.ones(len(fitted)))
    probability = np.clip(straight[0] + straight[1] * means, 1 / sizes, 1 - 1 / sizes)
    variance = (rewards - straight[0] - straight[1] * fitted).var()
    error = np.sqrt(
        (probability * (1 - probability) if binary else np.full(len(parts), variance)) / sizes
    )
    constant, slope = _straight_line(means, earned, 1 / np.maximum(error, 1e-12))
    residual = earned - constant - slope * means
    statistic = float(((residual / np.maximum(error, 1e-12)) ** 2).sum())
    freedom = len(parts) - 2
    return means, residual, error, float(chdtrc(freedom, statistic)) if freedom > 0 else 1.0


def _straight_line(x: FloatArray, y: FloatArray, weight: FloatArray) -> FloatArray:
    """Fit constant and slope by weighted least squares, (2,)."""
    design = np.column_stack([np.ones(len(x)), x]) * weight[:, None]
    return np.asarray(np.linalg.lstsq(design, y * weight, rcond=None)[0])


def has_slates(experiment: Experiment) -> bool:
    """Whether the simulator shows several items at once; this requires none of its data."""
    return experiment.simulator_class().slate_size(experiment.simulator) > 1


def position_bias_check(experiment: Experiment) -> PositionBias | None:
    """Show a few good slates repeatedly in random order and estimate the position bias from their
    clicks.

    Only the choice of the items uses the simulator's truth. None without slates, or with too many
    candidates."""
    # however few the run has: a ratio of few clicks has no useful interval
    steps = _max_steps(experiment)
    if steps < MIN_STEPS or not has_slates(experiment):
        return None
    simulator, rng = _simulator(experiment, [0]), np.random.default_rng(1)
    S, true = (
        simulator.spec.slate,
        np.array(simulator.spec.positions or [1.0] * simulator.spec.slate),
    )
    # by slate, item and slot
    examined, clicks = np.zeros((2, N_SLATES, S, S))
    rounds = [simulator.round_at(step) for step in range(N_SLATES)]
    best = [np.argsort(-simulator.probabilities(round)[0], kind="stable")[:S] for round in rounds]
    for step in range(steps):
        order, m = rng.permutation(S), step % N_SLATES
        feedback, _ = simulator.respond(
            rounds[m], best[m][None, order], simulator.uniforms.at(step)
        )
        examined[m, order, np.arange(S)] += feedback.examined[0]
        clicks[m, order, np.arange(S)] += feedback.rewards[0]
    rate = clicks.sum(axis=(0, 1)) / np.maximum(examined.sum(axis=(0, 1)), 1)
    first = float(rate[0]) or math.nan
    estimate = estimate_position_bias(examined.reshape(-1, S), clicks.reshape(-1, S))
    return PositionBias(true, rate / first, *estimate)


def _simulator(experiment: Experiment, rows: list[int]) -> Simulator:
    return experiment.simulator_class()(experiment.simulator, Streams(experiment.seed, rows))


def _randomly_logged(simulator: Simulator, n: int) -> tuple[FloatArray, FloatArray]:
    """Show a random candidate first in each of n rounds: its features (n, D) and its
    rewards (n,).
    """
    rng, slots = np.random.default_rng(0), simulator.spec.slate
    x, y = np.zeros((n, simulator.spec.n_features)), np.empty(n)
    for step in range(n):
        round = simulator.round_at(step)
        shown = rng.choice(np.flatnonzero(round.available[0]), slots, replace=False)
        uniforms = simulator.uniforms.at(step)
        feedback, _ = simulator.respond(round, shown[None], uniforms)
        simulator.move(round, shown[None], uniforms)
        values, columns, _ = round.contexts
        at = round.context[0], shown[0]
        x[step, columns[at]], y[step] = values[at], feedback.rewards[0, 0]
    return x, y
