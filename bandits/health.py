"""Does an agent explore well? Verdicts on one run, each with what healthy looks like.

A verdict is a rule of thumb with its threshold in the sentence; it says where to look, not what is true.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np
from scipy.stats import chi2
from threadpoolctl import threadpool_limits

from . import metrics
from .agents import AgentParams
from .agents.linear import LinearParams
from .engine import Lane
from .experiment import Experiment
from .metrics import Band
from .params import extra
from .positions import Position
from .randomness import Streams
from .result import Result
from .rounds import FloatArray
from .simulators import Simulator
from .trace import BINS, History
from .words import number, percent

Verdict = Literal["healthy", "watch", "alarm", "none"]
LOOKED = 4000  # steps of the oracle, and random choices that models are fitted to, at most
CELLS = 4_000_000  # candidates that these may weigh: it is done for a visitor who waits
EARLY = 100  # steps before which nothing is judged, or a tenth of the run
GAIN = 0.2  # by which a network must foresee more than a line, for the line to have failed


class Finding(NamedTuple):
    """One diagnostic of one agent.

    Attributes
    ----------
    title, healthy : str
        What it looks at, and what healthy looks like.
    verdict : {"healthy", "watch", "alarm", "none"}
        none: it cannot be said, and ``told`` says why.
    told : str
        This run, in one sentence.
    """

    title: str
    healthy: str
    verdict: Verdict
    told: str


class Oracle(NamedTuple):
    """What perfect knowledge would show in the same world.

    Attributes
    ----------
    entropy : float
        Selection entropy over a window of its choices, mean over rows.
    rare : float
        Share of the items with less than 1 % of that traffic.
    """

    entropy: float
    rare: float


class Line(NamedTuple):
    """Whether rewards are linear in the features, on random choices that no agent made.

    Attributes
    ----------
    fitted, residual, error : float64 (bins,)
        Of held-out choices by what a line foresees: mean fitted value, mean residual and its standard error.
    p_value : float
        Of all mean residuals being zero (chi-square).
    gain : float
        How much more of the held-out squared error a network takes away than a line does: .2 is 20 % more. NaN where
        neither foresees anything.
    condition : float
        Condition number of what the random choices alone would have gathered: that of the features.
    """

    fitted: FloatArray
    residual: FloatArray
    error: FloatArray
    p_value: float
    gain: float
    condition: float = math.nan


class Slots(NamedTuple):
    """How much less an item is clicked further down a slate, as against the first slot.

    Attributes
    ----------
    true : float64 (S,)
        b_k.
    counted : float64 (S,)
        Clicks per look, by the first slot's. Who comes far down has not clicked above: these are not all customers.
    estimated, error : float64 (S,)
        Clicks, by the clicks that looks would bring without a bias, and its standard error.
    """

    true: FloatArray
    counted: FloatArray
    estimated: FloatArray
    error: FloatArray


def findings(
    result: Result, label: str, oracle: Oracle | None = None, line: Line | None = None, slots: Slots | None = None
) -> dict[str, Finding]:
    """All diagnostics of one agent, by name; `oracle_of`, `line_of` and `slots_of` make what some compare with."""
    history = result.histories[label]
    params = result.experiment.agents[result.experiment.labels.index(label)]
    found = _all(history, params, oracle, line)
    if slots is not None:
        found["slots"] = _slots(params, slots)
    too_early = history.step < max(EARLY, history.steps / 10)
    if not history.alive.any() or too_early:
        why = "It is too early to say." if too_early else "No run is left."
        return {name: f._replace(verdict="none", told=why) for name, f in found.items()}
    return found


def _all(history: History, params: AgentParams, oracle: Oracle | None, line: Line | None) -> dict[str, Finding]:
    return {
        "smallest": _smallest(history, params),
        "condition": _condition(history, params, line),
        "dimension": _dimension(history, params),
        "doubt": _doubt(history, params),
        "lock_in": _lock_in(history, oracle),
        "calibration": _calibration(history, params),
        "places": _places(history, params),
        "foresight": _foresight(history),
        "line": _line(params, line),
    }


# curves that only diagnostics draw


def effective_dimension(history: History, params: AgentParams) -> Band | None:
    """sum (1 - ridge / eigenvalue): directions of which more is known from data than from the prior; mean over arms."""
    ridge = _ridge(params)
    if not history.spectra or ridge is None:
        return None
    values = [np.nansum(np.maximum(1 - ridge / s.eigenvalues, 0), axis=2).mean(axis=1) for s in history.spectra]
    return metrics.band(np.array([s.step for s in history.spectra]), np.stack(values), history.alive)


def doubt(history: History) -> Band | None:
    """The scaled width of what the agent would have shown first, at every snapshot; None if it states no doubt."""
    return _of_checkups(history, [c.doubt for c in history.checkups])


def foresight(history: History) -> Band | None:
    """Share of the variance of the candidates' true worth that the agent foresaw; None if it foresees nothing."""
    return _of_checkups(history, [c.explained for c in history.checkups])


def places(history: History) -> FloatArray | None:
    """Shares of the truths in each tenth of the agent's beliefs at the end, (BINS,), mean over rows."""
    known = [c.places[history.alive] for c in history.checkups]
    if not known or not len(known[-1]) or np.isnan(known[-1]).all():
        return None
    return np.asarray(np.nanmean(known[-1], axis=0))


def _of_checkups(history: History, values: list[FloatArray]) -> Band | None:
    if not values or np.isnan(np.stack(values)).all():
        return None
    steps = np.array([c.step for c in history.checkups])
    known = np.isfinite(np.stack(values)[:, history.alive]).all(axis=1)
    if not known.any():
        return None
    return metrics.band(steps[known], np.stack(values)[known], history.alive)


# what they are compared with


def oracle_of(experiment: Experiment) -> Oracle | None:
    """The oracle in this world, for some thousand steps of some rows; None where there is none, or too many arms."""
    rows = list(range(min(experiment.replications, 4)))
    if (steps := _affordable(experiment)) is None:
        return None
    simulator = _world(experiment, rows)
    if "truth" not in simulator.setting.offers:
        return None
    from .agents.oracle import Oracle as Agent

    lane = Lane(simulator, Agent([Agent.Params()] * len(rows), simulator.setting, simulator.streams, simulator.world()))
    history = History.of(steps, len(rows), simulator.setting)
    history.extend(lane.advance(steps))
    entropy, rare = _traffic(history)
    return Oracle(entropy, rare)


def _affordable(experiment: Experiment) -> int | None:
    """Steps that can be lived without keeping anybody waiting for long."""
    K = experiment.simulator_class().describe(experiment.simulator).n_candidates
    steps = min(LOOKED, CELLS // K)
    return None if steps < EARLY else min(steps, max(experiment.steps, EARLY))


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
    clicks = set(np.unique(y)) <= {0.0, 1.0}
    bins = int(np.clip(left.sum() // 10, 2, 10)) if clicks else 10  # some clicks in each
    parts = [p for p in np.array_split(np.argsort(fitted, kind="stable"), bins) if len(p) > 1]
    residual = np.array([(left - fitted)[p].mean() for p in parts])
    means = np.array([fitted[p].mean() for p in parts])
    sizes = np.array([len(p) for p in parts])
    chance = np.clip(means, 1 / sizes, 1 - 1 / sizes)
    variance = chance * (1 - chance) if clicks else np.full(len(parts), (left - fitted).var())
    error = np.sqrt(variance / sizes)
    statistic = float(((residual / np.maximum(error, 1e-12)) ** 2).sum())
    p_value = float(chi2.sf(statistic, len(parts)))
    design = np.linalg.eigvalsh(x.T @ x)
    spanned = design[design > design[-1] * 1e-10]
    return Line(means, residual, error, p_value, gain, float(spanned[-1] / spanned[0]))


def slots_of(experiment: Experiment) -> Slots | None:
    """The best items in random order, for some thousand slates; None where one item is shown, or too many weighed."""
    world = experiment.simulator_class().describe(experiment.simulator)
    steps = _affordable(experiment)
    if not world.positions or world.slate < 2 or steps is None:
        return None
    simulator, dice = _world(experiment, [0]), np.random.default_rng(1)
    clicks, looks, hoped = np.zeros((3, world.slate))
    for step in range(max(steps, 10 * EARLY)):
        round = simulator.round_at(step)
        p = simulator.probabilities(round)[0]
        slate = dice.permutation(np.argsort(-p, kind="stable")[: world.slate])
        feedback, _ = simulator.respond(round, slate[None], simulator.uniforms.at(step))
        clicks += feedback.rewards[0]
        looks += feedback.examined[0]
        hoped += feedback.examined[0] * p[slate]
    rate = clicks / np.maximum(looks, 1)
    estimated = clicks / np.maximum(hoped, 1e-12)
    error = np.sqrt(clicks) / np.maximum(hoped, 1e-12)
    return Slots(np.array(world.positions), rate / max(float(rate[0]), 1e-12), estimated, error)


def _world(experiment: Experiment, rows: list[int]) -> Simulator:
    return experiment.simulator_class()(experiment.simulator, Streams(experiment.seed, rows))


def _random_choices(simulator: Simulator, n: int) -> tuple[FloatArray, FloatArray]:
    """Features (n, D) of a random candidate in each of n rounds, and what it earned when shown first."""
    dice, slots = np.random.default_rng(0), simulator.setting.slate
    x, y = np.zeros((n, simulator.setting.n_features)), np.empty(n)
    for step in range(n):
        round = simulator.round_at(step)
        shown = dice.choice(np.flatnonzero(round.available[0]), slots, replace=False)
        feedback, _ = simulator.respond(round, shown[None], simulator.uniforms.at(step))
        values, columns, _ = round.contexts
        at = round.context[0], shown[0]
        x[step, columns[at]], y[step] = values[at], feedback.rewards[0, 0]
    return x, y


# the diagnostics

FORGETS = "It forgets on purpose, so its evidence does not add up."


def _forgets(params: AgentParams) -> bool:
    return bool(getattr(params, "window", 0)) or 0 < getattr(params, "gamma", 1.0) < 1.0


def _smallest(history: History, params: AgentParams) -> Finding:
    title = "Smallest eigenvalue"
    healthy = "Evidence in the least explored direction grows about like √t."
    band = metrics.smallest_eigenvalue(history)
    if band is None or not np.isfinite(band.mid).all():
        return Finding(title, healthy, "none", "This agent keeps no covariance.")
    if _forgets(params):
        return Finding(title, healthy, "none", FORGETS)
    growth = _power(band)
    if growth is None:
        return Finding(title, healthy, "none", "There are too few snapshots yet.")
    verdict: Verdict = "healthy" if growth >= 0.4 else "watch" if growth >= 0.1 else "alarm"
    how = {"healthy": "it grows", "watch": "it grows slowly", "alarm": "it stalls"}[verdict]
    power = number(round(growth, 2))
    told = f"At step {band.x[-1]:,.0f} it is {number(band.mid[-1])}; {how}: about t to the power {power} of late."
    return Finding(title, healthy, verdict, told)


def _condition(history: History, params: AgentParams, line: Line | None) -> Finding:
    title = "Condition number"
    band = metrics.condition_number(history)
    relative = line is not None and getattr(params, "sharing", "") == "shared" and not getattr(params, "fourier", 0)
    usual = math.sqrt(line.condition) if line is not None and relative else 1.0
    least = max(30.0, 3 * usual) if math.isfinite(usual) else 30.0
    than = f" (random choices: {number(usual)} times)" if relative and math.isfinite(usual) else ""
    healthy = f"The best known direction is known at most {number(least)} times as well (in standard deviations) as "
    healthy += "the least known: 30 times, or three times what random choices would come to."
    if band is None or not np.isfinite(band.mid[-1:]).all():
        return Finding(title, healthy, "none", "This agent keeps no covariance.")
    times = math.sqrt(max(band.mid[-1], 0))
    verdict: Verdict = "healthy" if times <= least else "watch" if times <= 10 * least else "alarm"
    return Finding(title, healthy, verdict, f"{number(times)} times as well, at step {band.x[-1]:,.0f}{than}.")


def _dimension(history: History, params: AgentParams) -> Finding:
    title = "Effective dimension"
    healthy = "Nine tenths of all directions are known from data rather than from the prior."
    band = effective_dimension(history, params)
    if band is None or not np.isfinite(band.mid[-1:]).all():
        return Finding(title, healthy, "none", "This agent keeps no covariance.")
    if _forgets(params):
        return Finding(title, healthy, "none", FORGETS)
    all_ = int((~np.isnan(history.spectra[-1].eigenvalues)).sum(axis=2).max())
    share = band.mid[-1] / all_
    verdict: Verdict = "healthy" if share >= 0.9 else "watch" if share >= 0.5 else "alarm"
    return Finding(title, healthy, verdict, f"{number(band.mid[-1])} of {all_}, at step {band.x[-1]:,.0f}.")


def _doubt(history: History, params: AgentParams) -> Finding:
    title = "Exploration bonus"
    healthy = "The doubt in what is shown first shrinks as it is shown, to less than half."
    band = doubt(history)
    if band is None:
        return Finding(title, healthy, "none", "This agent states no doubt.")
    if _forgets(params):
        return Finding(title, healthy, "none", "It forgets on purpose, so its doubt comes back.")
    if len(band.x) < 4:
        return Finding(title, healthy, "none", "There are too few snapshots yet.")
    if band.mid[0] <= 0:
        return Finding(title, healthy, "alarm", "It has no doubt at all, and so no reason to explore.")
    left = band.mid[-1] / band.mid[0]
    verdict: Verdict = "healthy" if left <= 0.5 else "watch" if left <= 0.9 else "alarm"
    told = f"{percent(left)} of what it was at step {band.x[0]:,.0f} is left at step {band.x[-1]:,.0f}."
    return Finding(title, healthy, verdict, told)


def _traffic(history: History, window: int = 1000) -> tuple[float, float]:
    """Selection entropy, and the share of the items with less than 1 % of the traffic, in the last window."""
    entropy = metrics.entropy(history, window)
    grid, n = history.count_grid[: history.count_size], history.count_size - 1
    start = int(np.searchsorted(grid, grid[n] - window, side="right")) - 1
    shown = history.counts[n] - history.counts[max(0, min(start, n - 1))]
    share = shown / np.maximum(shown.sum(axis=1, keepdims=True), 1)
    living = history.alive if history.alive.any() else slice(None)
    return float(entropy.mid[-1]), float((share[living] < 0.01).mean())


def _lock_in(history: History, oracle: Oracle | None) -> Finding:
    title = "Lock-in"
    healthy = "Choices are spread at least as widely as perfect knowledge would spread them."
    if history.count_size < 2:
        return Finding(title, healthy, "none", "Nothing has been counted yet.")
    entropy, rare = _traffic(history)
    rings = entropy < 0.5 and rare > 0
    rule = f"entropy {entropy:.2f}, {percent(rare)} of the {history.counted} under 1 % of the traffic"
    if not math.isfinite(entropy):
        return Finding(title, healthy, "none", "No run is left.")
    if oracle is None:
        verdict: Verdict = "watch" if rings else "healthy"
        return Finding(title, healthy, verdict, f"{rule[0].upper()}{rule[1:]}; nobody knows what would be right.")
    beside = f"the oracle itself: {oracle.entropy:.2f}, {percent(oracle.rare)}"
    if entropy < oracle.entropy - 0.1:
        verdict = "alarm" if rings else "watch"
        return Finding(title, healthy, verdict, f"Narrower than it should be: {rule} ({beside}).")
    if rings:
        told = f"The usual alarm (entropy under 0.5) would ring, and be wrong: {rule} ({beside})."
        return Finding(title, healthy, "healthy", told)
    return Finding(title, healthy, "healthy", f"{rule[0].upper()}{rule[1:]} ({beside}).")


def _optimistic(params: AgentParams) -> bool:
    """Whether its doubt is a bonus: an upper bound, which does right to be too wide."""
    strategy = getattr(params, "strategy", None)
    return strategy == "bonus" if strategy is not None else "alpha" in type(params).model_fields


def _calibration(history: History, params: AgentParams) -> Finding:
    title = "Calibration"
    healthy = "Its 50, 80 and 95 % intervals hold the truth in 50, 80 and 95 % of the cases, within 10"
    healthy += ", or more: an upper bound does right to be wide." if _optimistic(params) else "."
    bands = {level: metrics.calibration(history, level) for level in (0.5, 0.8, 0.95)}
    ends = {level: b.mid[-1] for level, b in bands.items() if b is not None and np.isfinite(b.mid[-1])}
    if len(ends) < 3:
        return Finding(title, healthy, "none", "This agent states no doubt.")
    off = [min(end - level, 0.0) if _optimistic(params) else end - level for level, end in ends.items()]
    worst = max(off, key=abs)
    verdict: Verdict = "healthy" if abs(worst) <= 0.1 else "watch" if abs(worst) <= 0.25 else "alarm"
    held = ", ".join(f"{100 * end:.0f}" for end in ends.values())
    why = "" if verdict == "healthy" else " It is too sure of itself." if worst < 0 else " It doubts too much."
    return Finding(title, healthy, verdict, f"They hold it in {held} %, at the end.{why}")


def _places(history: History, params: AgentParams) -> Finding:
    title = "Where the truth lies"
    healthy = "Each tenth of what it believes possible holds a tenth of the truths"
    healthy += ", or the middle holds more: an upper bound does right to be wide." if _optimistic(params) else "."
    found = places(history)
    if found is None:
        return Finding(title, healthy, "none", "This agent states no doubt.")
    distance = float(np.abs(np.cumsum(found) - np.arange(1, BINS + 1) / BINS).max())
    verdict: Verdict = "healthy" if distance <= 0.1 else "watch" if distance <= 0.25 else "alarm"
    middle = float(found @ (np.arange(BINS) + 0.5) / BINS)
    outer, told = float(found[0] + found[-1]), "evenly"
    centred = 0.4 <= middle <= 0.6 and outer <= 2 / BINS
    if verdict != "healthy" and centred and _optimistic(params):
        verdict, told = "healthy", "in the middle, as they may"
    elif verdict != "healthy":
        told = (
            "mostly above what it expects: it thinks too little of the arms" if middle > 0.6
            else "mostly below what it expects: it hopes too much" if middle < 0.4
            else "at the edges: it is too sure of itself" if outer > 2 / BINS
            else "in the middle: it doubts too much"
        )  # fmt: skip
    return Finding(title, healthy, verdict, f"They lie {told} (farthest from even: {percent(distance)}).")


def _foresight(history: History) -> Finding:
    title = "Foresight"
    healthy = "It foresees at least half of what makes candidates differ."
    band = foresight(history)
    if band is None or not np.isfinite(band.mid[-1]):
        return Finding(title, healthy, "none", "This agent does not say what it expects, or all arms are alike.")
    share = band.mid[-1]
    verdict: Verdict = "healthy" if share >= 0.5 else "watch"
    told = f"{percent(share)} of the variance of their true worth, at step {band.x[-1]:,.0f}."
    if share < 0:
        told = "Taken over all candidates it is farther off than calling them alike; the best it may know all the same."
    return Finding(title, healthy, verdict, told)


def _line(params: AgentParams, line: Line | None) -> Finding:
    title = "Is a line enough?"
    healthy = f"A network foresees at most {percent(GAIN)} more than a line does, and residuals are even."
    if not isinstance(params, LinearParams):
        return Finding(title, healthy, "none", "This is for agents that are linear in the reward.")
    if line is None:
        return Finding(title, healthy, "none", "No random choices were looked at.")
    if math.isnan(line.gain):
        return Finding(
            title, healthy, "none", "Neither a line nor a network foresees anything of a few thousand choices."
        )
    if getattr(params, "fourier", 0):
        return Finding(title, healthy, "none", "It sees waves of the features, with which its lines can bend.")
    curved = line.p_value < 0.01
    if line.gain > GAIN:
        more = (
            "something where a line foresees nothing" if math.isinf(line.gain)
            else f"{1 + line.gain:.0f} times as much" if line.gain >= 1 else f"{percent(line.gain)} more"
        )  # fmt: skip
        told = f"Of random choices a network foresees {more}{', and residuals bend' if curved else ''}: a line fails."
        own = params.sharing != "shared"
        told += " A line per arm, as this agent has, may still do." if own else ""
        return Finding(title, healthy, "watch" if own else "alarm", told)
    gain = "no more" if line.gain <= 0 else f"{percent(line.gain)} more"
    residuals = f"residuals are {'not ' if curved else ''}even (p = {line.p_value:.2g})"
    return Finding(title, healthy, "watch" if curved else "healthy", f"A network foresees {gain}; {residuals}.")


def _slots(params: AgentParams, slots: Slots) -> Finding:
    title = "Slots of the slate"
    healthy = "It counts an item further down as shown less, by as much as it is clicked less there."
    how = getattr(params, "position", None)
    if how is None:
        return Finding(title, healthy, "none", "This agent learns nothing from slates.")
    verdict, does = _WAYS[how]
    last = f"In slot {len(slots.true)} an item is clicked {number(slots.true[-1])} times as often as in the first."
    return Finding(title, healthy, verdict, f"It {does}. {last}")


_WAYS: dict[Position, tuple[Verdict, str]] = {
    "aware": ("healthy", "does"),
    "examined": ("watch", "learns from what was looked at, as if all slots were alike"),
    "ignored": ("alarm", "takes every slot for looked at"),
}


def _ridge(params: AgentParams) -> float | None:
    """What its covariance begins with."""
    for name in ("ridge", "epsilon"):
        if name in type(params).model_fields and extra(type(params).model_fields[name], "symbol"):
            return float(getattr(params, name))
    return None


def _power(band: Band) -> float | None:
    """Slope of log y on log t over the second half of the steps, by least squares."""
    late = (band.x >= band.x[-1] / 2) & (band.mid > 0)
    if late.sum() < 4:
        return None
    return float(np.polyfit(np.log(band.x[late]), np.log(band.mid[late]), 1)[0])
