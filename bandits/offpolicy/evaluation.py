"""Evaluate a target policy on a log: estimates, intervals, support and alarms."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bandits.base.errors import UserError
from bandits.base.formatting import count_of, short
from bandits.base.types import FloatArray

from .anytime import anytime
from .assumptions import FEW, adaptive, assumptions
from .balance import balance
from .estimators import REGISTRY, Rounds
from .gain import gain, half_width_in_errors
from .intervals import (
    Interval,
    bootstrap,
    check_level,
    debiased,
    normal,
    truncated_bernstein,
    within,
)
from .log import DecisionLog
from .named_targets import read_target
from .reading import read_log
from .regression import cross_fit, estimated_propensities, read_model
from .simulated import known_experiment, learned_agent, true_value, value_of_visits
from .stored_run import KEPT, stored_policy
from .support import CONSTANT, MIN_ESS, Alarm, Support, alarms, few_rewards, measure, verdict
from .targets import Matrix, Target, blocks
from .visits import OF_VISITS, ess_by_length, gather, support_of, whole_visits
from .weight_histogram import Histogram, histogram, slope, weight_grid

INTERVALS = ("normal", "bootstrap", "bernstein", "anytime")
# that are estimated one by one
MAX_POSITIONS = 50
# intervals for large samples
ADJUSTED = ("normal", "bootstrap")
# the first of these that is computed is the one that conclusions use
MAIN = ("dr", "snips", "ips")
# where the target is the logging policy: the mean reward of the log
MAIN_OF_SAME = ("snips", "ips", "dr")
MAIN_OF_VISITS = "wpdis"
# each estimator once
ALL = {**REGISTRY, **OF_VISITS}
# least and largest reward
CLICKS = (0.0, 1.0)
# of propensities, relative
ROUNDING = 0.01


class Truth(NamedTuple):
    """The known value of the target policy, where a simulator has one."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Evaluation:
    """What a log states about a target policy.

    Attributes
    ----------
    n : int
        Rows of the log that were evaluated, or visits.
    target : str
    estimates : mapping of str to Interval
        By estimator; NaN where a ratio has the denominator 0.
    tuned : mapping of str to float
        Parameters that SLOPE++ chose, by estimator.
    support : Support
    alarms : tuple of Alarm
    truth : Truth, optional
    verdict : str
        In words, which differences the log can resolve.
    main : str
        The estimator that conclusions use.
    logged : float
        Mean reward of the log.
    gain : Interval
        Value of the target minus that of the logging policy, by the main estimator, paired by
        decision; its interval is of the kind of the others.
    weights : Histogram, optional
        Of the importance weights; None without propensities.
    level : float
        Confidence level of all intervals.
    positions : mapping of str to Interval
        By position of slates, what the main estimator states for the rows of that position; empty
        where the log has one row per event.
    same : bool
        The target is the policy that made the log: it gives what was shown the probability that the
        log states, but for rounding, and no difference of their rewards is shown.
    notes : tuple of str
        What was left out of the log or assumed when it was read, in sentences.
    relative : bool
        Whether a share of what the logging policy earned means something: rewards are not negative
        and not all 0.
    unit : {"decision", "visit"}
        What a value is the mean reward of.
    ess_by_length : sequence of float
        Effective number of visits up to each step of a visit; empty where the unit is a decision.
    interval : {"normal", "bootstrap", "bernstein", "anytime"}
    """

    n: int
    target: str
    estimates: Mapping[str, Interval]
    tuned: Mapping[str, float]
    support: Support
    alarms: tuple[Alarm, ...]
    truth: Truth | None
    verdict: str
    main: str
    logged: float
    gain: Interval
    weights: Histogram | None
    level: float
    positions: Mapping[str, Interval] = field(default_factory=dict)
    same: bool = False
    notes: tuple[str, ...] = ()
    relative: bool = True
    unit: str = "decision"
    ess_by_length: Sequence[float] = ()
    interval: str = "normal"

    @property
    def has_intervals(self) -> bool:
        """Whether enough decisions carry the estimates for intervals for large samples; the others
        hold for every number.
        """
        # a share of a large log may be alarming, and enough for an interval
        few = self.support.ess < MIN_ESS or any(a.kind == "max_weight" for a in self.alarms)
        return not (few and self.interval in ADJUSTED)

    def as_dict(self) -> dict[str, Any]:
        """Return the content of ``estimates.json``; numbers that are not finite are None."""
        return {
            "n": self.n,
            "target": self.target,
            "estimates": {
                k: {f: _finite(x) for f, x in e._asdict().items()}
                for k, e in self.estimates.items()
            },
            "ess": _finite(self.support.ess),
            "max_weight": _finite(self.support.max_weight),
            "mean_weight": _finite(self.support.mean_weight),
            "mean_weight_error": _finite(self.support.mean_weight_error),
            "unsupported_mass": _finite(self.support.unsupported_mass),
            "alarms": [alarm._asdict() for alarm in self.alarms],
            "truth": None if self.truth is None else self.truth._asdict(),
            "main": self.main,
            "logged": _finite(self.logged),
            "gain": {name: _finite(x) for name, x in self.gain._asdict().items()},
            **({"notes": list(self.notes)} if self.notes else {}),
            **(
                {"unit": self.unit, "ess_by_length": list(self.ess_by_length)}
                if self.ess_by_length
                else {}
            ),
            **(
                {
                    "positions": {
                        k: {f: _finite(x) for f, x in e._asdict().items()}
                        for k, e in self.positions.items()
                    }
                }
                if self.positions
                else {}
            ),
        }


def evaluate(
    log: DecisionLog | str | Path,
    target: Target | str | FloatArray,
    *,
    estimators: Sequence[str] | None = None,
    q: FloatArray | None = None,
    model: str | None = None,
    interval: str = "normal",
    level: float = 0.95,
    estimate_propensities: bool = False,
    reward_range: tuple[float, float] | None = None,
    truth: Truth | None = None,
    generator: np.random.Generator | None = None,
) -> Evaluation:
    """Estimate what a target policy would have earned in place of the logging policy.

    Parameters
    ----------
    log : DecisionLog, str or Path
        n rounds, K actions; a file or the name of a shipped log is read.
    target : Target, str or float64 (n, K)
        A policy, its text (`read_target`), its probabilities, or, where the log is one of a
        simulated run, an agent as JSON (it learns from the first half of the log and is evaluated
        on the other half) or ``run:ID:LABEL``, an agent of a stored run as it was after half of the
        log's steps.
    estimators : sequence of str, optional
        Names in `REGISTRY`, or in `OF_VISITS` where the log has visits; by default all that the
        log and the target allow, except `clipped_ips` and `replay`: of visits where it has some.
    q : float64 (n, K), optional
        Predicted rewards; by default cross-fitted.
    model : {"logistic", "ridge", "gradient_boosting"}, optional
        Regression for q; by default logistic for rewards of 0 and 1, otherwise ridge.
    interval : {"normal", "bootstrap", "bernstein", "anytime"}
        ``bernstein`` is for ips and clipped_ips, ``anytime`` for ips; both require the range of a
        reward, and rows without weights. Biased estimators have the interval
        of the unbiased one, `Estimator.reference`, extended to the estimate, where the log has
        propensities; their own would miss the bias.
    level : float
        Confidence level, between 0 and 1.
    estimate_propensities : bool
        Where the log has no propensities, estimate them; an alarm marks it.
    reward_range : (float, float), optional
        Least and largest possible reward, known before the log is seen; by default that of the kind
        of reward, such as clicks, where the log states it.
    truth : Truth, optional
        By default that of the simulator, where the log is one of a simulated run.
    generator : numpy.random.Generator, optional
        Draws folds, resamples and replayed actions; by default with the seed 0.

    Raises
    ------
    UserError
        An argument is not allowed, or the log lacks what an estimator requires.
    """
    generator = np.random.default_rng(0) if generator is None else generator
    log, target = _read(log, target, generator)
    check_level(level)
    if interval not in INTERVALS:
        raise UserError(f"interval '{short(interval)}': must be one of {', '.join(INTERVALS)}")
    estimated = log.propensities is None and estimate_propensities
    if estimated:
        log = log.with_propensities(estimated_propensities(log, generator), "estimated")
    target.check(log)
    names = _names(estimators, log, target, interval)
    bounds_of_reward = _range_for(interval, log, reward_range)
    if names[0] in OF_VISITS:
        return _of_visits(log, target, names, interval, level, estimated, truth, generator)
    if truth is None and log.visits is None:
        truth, unknown = _simulated_truth(log, target)
    else:
        unknown = []
    rounds = _rounds(log, target, names, q, model, generator)
    support = measure(log, target, None if log.propensities is None else rounds.weights)
    close = log.propensities is not None and bool((np.abs(rounds.weights - 1) <= ROUNDING).all())
    main = next((name for name in (MAIN_OF_SAME if close else MAIN) if name in names), names[0])
    interval_of = partial(
        _interval, kind=interval, reward_range=bounds_of_reward, generator=generator
    )
    compute = partial(interval_of, rounds=rounds, log=log)
    estimates: dict[str, Interval] = {}
    tuned: dict[str, float] = {}
    more = Interval(*[float("nan")] * 4)
    for name in names:
        part = _contributions(name, rounds, weighted=log.propensities is not None)
        if part.parameter is not None:
            tuned[name] = part.parameter
        # A fitted reward model has the noise of the same rewards: both estimates move together,
        # unlike contributions.
        adjusted = interval in ADJUSTED and (q is not None or not REGISTRY[name].model)
        found = compute(part.values, level=level)
        estimates[name] = debiased(
            found,
            part.values,
            part.unbiased,
            compute,
            level=level,
            groups=log.groups,
            adjusted=adjusted,
        )
        if name == main:
            more = gain(
                part.values,
                part.unbiased,
                rounds,
                log,
                kind=interval,
                level=level,
                reward_range=bounds_of_reward,
                adjusted=adjusted,
                generator=generator,
            )
    if close and np.ptp(rounds.weights) <= CONSTANT:
        # whatever the noise of predicted rewards
        more = Interval(0.0, 0.0, 0.0, 0.0)
    # differences of small weights matter where rewards are of both signs
    same = close and more.low <= 0 <= more.high
    flat = [REGISTRY[name].title for name, e in estimates.items() if e.standard_error == 0]
    bounds = _bounds(log, None if log.propensities is None else rounds.weights, support, same=same)
    # few decisions have few rewards too
    few = any(alarm.kind in FEW for alarm in bounds)
    if log.propensities is not None and interval in ADJUSTED and not few:
        bounds += few_rewards(rounds.weights, rounds.logged)
    found_alarms = (*assumptions(log, target, names, estimated, flat), *unknown, *bounds)
    logged = float(rounds.logged.mean())
    relative = logged > 0 and bool(log.rewards.min() >= 0)
    return Evaluation(
        n=len(log),
        target=target.name,
        estimates=estimates,
        tuned=tuned,
        support=support,
        alarms=found_alarms,
        truth=truth,
        verdict=verdict(
            len(log),
            logged,
            0.0 if same else half_width_in_errors(more, level),
            level,
            relative=relative,
        ),
        main=main,
        logged=logged,
        gain=more,
        weights=None if log.propensities is None else histogram(rounds.weights),
        level=level,
        positions=_by_position(log, rounds, main, partial(interval_of, level=level)),
        same=same,
        notes=(*log.notes, *adaptive(log, found_alarms)),
        relative=relative,
        interval=interval,
    )


def _read(
    log: DecisionLog | str | Path, target: Target | str | FloatArray, generator: np.random.Generator
) -> tuple[DecisionLog, Target]:
    """Return the log, or the half of it that an agent is evaluated on, and the target."""
    log = log if isinstance(log, DecisionLog) else read_log(log)
    if isinstance(target, str) and target.lstrip().startswith("{"):
        return learned_agent(log, target)
    if isinstance(target, str) and target.startswith(KEPT):
        return stored_policy(log, target)
    if isinstance(target, str):
        return log, read_target(target, generator)
    return log, target if isinstance(target, Target) else Matrix(target)


def _bounds(
    log: DecisionLog,
    weights: FloatArray | None,
    support: Support,
    *,
    visits: int = 0,
    same: bool,
) -> list[Alarm]:
    """Raise the alarms of the support and, where the mean weight shows nothing, of its balance."""
    found = [
        alarm
        for alarm in alarms(visits or len(log), support, "visit" if visits else "decision")
        if not (same and alarm.kind == "mean_weight")
    ]
    off = any(alarm.kind in ("mean_weight", "unsupported") for alarm in found)
    if weights is not None and not same and not off:
        found += balance(log, weights)
    return found


def _of_visits(
    log: DecisionLog,
    target: Target,
    names: Sequence[str],
    interval: str,
    level: float,
    estimated: bool,
    truth: Truth | None,
    generator: np.random.Generator,
) -> Evaluation:
    """Estimate what a visit would have earned; visits are independent, their steps are not."""
    whole, cut = whole_visits(log)
    if log.row_weights is not None:
        raise UserError("row_weight: not possible where values are per visit")
    truth, unknown = (truth, []) if truth is not None else _simulated_truth(log, target)
    assert log.propensities is not None
    # the target sees the whole log
    chosen = target.logged(log)
    kept = np.isin(np.asarray(log.visits), np.unique(np.asarray(whole.visits)))
    weights = (chosen / log.propensities)[kept]
    visits = gather(whole, weights)
    products, logged = visits.products, visits.logged
    n, support = len(logged), support_of(whole, target, products)
    compute = partial(bootstrap, generator=generator) if interval == "bootstrap" else normal
    parts = {name: OF_VISITS[name].contributions(visits) for name in names}
    main = MAIN_OF_VISITS if MAIN_OF_VISITS in names else names[0]
    estimates, gains = (
        {
            name: compute(values, level=level)
            if np.isfinite(values).all()
            else Interval(*[float("nan")] * 4)
            for name, values in each.items()
        }
        for each in (parts, {main: parts[main] - logged})
    )
    close = bool((np.abs(weights - 1) <= ROUNDING).all())
    more = gains[main]
    same = close and more.low <= 0 <= more.high
    flat = [OF_VISITS[name].title for name, e in estimates.items() if e.standard_error == 0]
    bounds = _bounds(whole, weights, support, visits=n, same=same)
    if not any(alarm.kind in FEW for alarm in bounds):
        bounds += few_rewards(np.ones(n), parts[main], "visit")
    left = f"{count_of(cut, 'visits')} left out, because the end of the log may cut them off."
    mean = float(logged.mean())
    relative = mean > 0 and bool(log.rewards.min() >= 0)
    error = 0.0 if same else half_width_in_errors(more, level)
    found_alarms = (*assumptions(log, target, names, estimated, flat), *unknown, *bounds)
    return Evaluation(
        n=n,
        target=target.name,
        estimates=estimates,
        tuned={},
        support=support,
        alarms=found_alarms,
        truth=truth,
        verdict=verdict(n, mean, error, level, relative=relative, unit="visit"),
        main=main,
        logged=mean,
        gain=more,
        weights=histogram(products),
        level=level,
        same=same,
        notes=(*log.notes, *([left] if cut else []), *adaptive(log, found_alarms)),
        relative=relative,
        unit="visit",
        ess_by_length=ess_by_length(visits).tolist(),
        interval=interval,
    )


def _simulated_truth(log: DecisionLog, target: Target) -> tuple[Truth | None, list[Alarm]]:
    """Return the true value where the log is one of a simulated run.

    An alarm where it cannot be computed.
    """
    if not (log.experiment and target.whole):
        return None, []
    known = true_value if log.visits is None else value_of_visits
    try:
        return Truth(*known(log, target)[:3]), []
    except UserError as error:
        return None, [Alarm("truth", f"The true value is not known: {error}.")]


def _names(
    asked: Sequence[str] | None, log: DecisionLog, target: Target, interval: str
) -> list[str]:
    """Return the estimators to compute: of visits or of decisions, which are not mixed."""
    if asked is None:
        first = [OF_VISITS] if log.visits is not None and log.propensities is not None else []
        for registry in (*first, REGISTRY):
            allowed = estimators_of(interval, visits=registry is OF_VISITS)
            names = [
                name
                for name, e in registry.items()
                if name in allowed and e.usual and not _obstacle(name, log, target)
            ]
            if names:
                return names
        asked = allowed[:1]
    for name in asked:
        if name not in ALL:
            raise UserError(f"estimator '{short(name)}': must be one of {', '.join(ALL)}")
        if obstacle := _obstacle(name, log, target):
            raise UserError(f"estimator {name}: {obstacle}")
        if name not in (allowed := estimators_of(interval, visits=name in OF_VISITS)):
            raise UserError(
                f"estimator {name}: the interval {interval} is only for {', '.join(allowed)}"
                if allowed
                else f"estimator {name}: the interval {interval} requires the range of a value, "
                "which is not known of a visit; normal and bootstrap remain"
            )
    of_visits = [name for name in asked if name in OF_VISITS]
    if of_visits and len(of_visits) < len(asked):
        raise UserError(
            f"estimators {', '.join(asked)}: {', '.join(of_visits)} estimate a value per visit, "
            "the others per decision; ask for one kind at a time"
        )
    return list(dict.fromkeys(asked))


def estimators_of(interval: str, *, visits: bool = False) -> tuple[str, ...]:
    """Return the estimators that an interval of `INTERVALS` is for, of visits or of decisions."""
    if visits:
        return tuple(OF_VISITS) if interval in ADJUSTED else ()
    if interval == "anytime":
        return ("ips",)
    return tuple(name for name, e in REGISTRY.items() if e.bounded or interval != "bernstein")


def _obstacle(name: str, log: DecisionLog, target: Target) -> str:
    estimator = ALL[name]
    if name in OF_VISITS and log.visits is None:
        return "requires a log with visits (column visit); this one has none"
    if estimator.weights and log.propensities is None:
        return (
            "requires propensities, and the log has none; dm, replay or estimated propensities "
            "remain"
        )
    if (estimator.model or not estimator.weights) and not target.whole:
        return (
            f"requires the target's probabilities of all actions; {short(target.name)} has those "
            "of the logged ones"
        )
    return ""


def _rounds(
    log: DecisionLog,
    target: Target,
    names: Sequence[str],
    q: FloatArray | None,
    model: str | None,
    generator: np.random.Generator,
) -> Rounds:
    """Compute what the estimators need; predicted rewards only where one needs them."""
    n, nothing = len(log), np.zeros(len(log))
    chosen = target.logged(log)
    logged_q = target_q = nothing
    weights = nothing if log.propensities is None else chosen / log.propensities
    if any(REGISTRY[name].model for name in names):
        if q is not None and q.shape != (n, log.n_actions):
            raise UserError(
                f"q: must have the shape (n, K) = ({n}, {log.n_actions}); got {q.shape}"
            )
        logged_q, target_q = (
            given(log, target, q) if q is not None else fitted(log, target, model, generator)
        )
        if not np.isfinite(target_q).all():
            i = int((~np.isfinite(target_q)).argmax())
            raise UserError(
                f"{log.places[i]}, q: must hold finite numbers; the target's mean is {target_q[i]}"
            )
    accepted = (generator.random(n) < chosen).astype(np.float64) if "replay" in names else nothing
    return Rounds(log.rewards, weights, logged_q, target_q, accepted, log.row_weights)


def given(log: DecisionLog, target: Target, q: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return q of the logged actions and of the target policy, both float64 (n,), from q, float64
    (n, K).
    """
    target_q = np.empty(len(log))
    for rows in blocks(log):
        np.einsum("mk,mk->m", target.probabilities(log, rows), q[rows], out=target_q[rows])
    return q[np.arange(len(log)), log.actions], target_q


def fitted(
    log: DecisionLog, target: Target, model: str | None, generator: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Return cross-fitted q of the logged actions and of the target policy, both float64 (n,)."""
    binary = bool(np.isin(log.rewards, (0.0, 1.0)).all())
    regression = read_model(model or ("logistic" if binary else "ridge"))
    logged_q, target_q = np.empty(len(log)), np.empty(len(log))
    for rows, block in cross_fit(regression, log, generator, weights=log.row_weights):
        logged_q[rows] = block[np.arange(len(rows)), log.actions[rows]]
        target_q[rows] = np.einsum("mk,mk->m", target.probabilities(log, rows), block)
    return logged_q, target_q


class _Part(NamedTuple):
    """Contributions to an estimate and to the unbiased one that it refers to, and the parameter
    that was chosen.
    """

    values: FloatArray
    unbiased: FloatArray | None
    parameter: float | None


def _contributions(name: str, rounds: Rounds, *, weighted: bool = True) -> _Part:
    """Compute the contributions to an estimate; ``weighted``: whether the log has propensities."""
    estimator = REGISTRY[name]
    unbiased = REGISTRY[estimator.reference](rounds) if estimator.reference and weighted else None
    if not estimator.tuned:
        return _Part(estimator(rounds), unbiased, None)
    grid = weight_grid(rounds.weights, square=estimator.tuned == "shrinkage")
    value, contributions = slope(lambda x: estimator(rounds, **{estimator.tuned: x}), grid)
    return _Part(contributions, unbiased, value)


def _by_position(
    log: DecisionLog, rounds: Rounds, main: str, compute: Callable[..., Interval]
) -> dict[str, Interval]:
    """Estimate the value of each position of slates.

    Empty where each event has one row or there are more than `MAX_POSITIONS`, and for biased
    estimators."""
    if log.positions is None or log.groups is None or REGISTRY[main].reference:
        return {}
    positions = np.unique(log.positions).tolist()
    found = {}
    for position in positions if len(positions) <= MAX_POSITIONS else []:
        index = log.positions == position
        part, own = rounds.select(index), log.select(index)
        found[str(position)] = compute(_contributions(main, part).values, rounds=part, log=own)
    return found


def _interval(
    contributions: FloatArray,
    *,
    rounds: Rounds,
    log: DecisionLog,
    kind: str,
    level: float,
    reward_range: tuple[float, float],
    generator: np.random.Generator,
) -> Interval:
    """Compute the interval of one estimator."""
    if np.isnan(contributions).any():
        return Interval(*[float("nan")] * 4)
    low, high = reward_range
    if kind == "anytime":
        return anytime(
            rounds.weights, rounds.rewards, low=low, high=high, level=level, groups=log.groups
        )
    if kind == "bernstein":
        found = normal(contributions, level=level, groups=log.groups)
        bounds = truncated_bernstein(
            rounds.weights, rounds.rewards, low, high, level=level, groups=log.groups
        )
        return found.around(*bounds)
    compute = partial(bootstrap, generator=generator) if kind == "bootstrap" else normal
    return compute(contributions, level=level, groups=log.groups)


def _range_for(
    interval: str, log: DecisionLog, asked: tuple[float, float] | None
) -> tuple[float, float]:
    """Return the bounds of a reward; NaN where the interval does without."""
    if asked is not None and not (np.isfinite(asked).all() and asked[0] < asked[1]):
        raise UserError(
            f"reward range: must be two finite numbers in order; got {asked[0]:g} and {asked[1]:g}"
        )
    if interval in ADJUSTED:
        return float("nan"), float("nan")
    if log.row_weights is not None:
        raise UserError(
            f"interval {interval}: not offered for rows with weights, because a weighted mean is a "
            "ratio, for which it does not hold; normal and bootstrap remain"
        )
    if (known := asked or range_of_rewards(log)) is None:
        raise UserError(
            f"interval {interval}: requires the least and the largest possible reward, which the "
            "log cannot show: a rare large one may not be in it yet; give them as reward range "
            "(--reward-range LOW HIGH)"
        )
    within(log.rewards, *known, "rewards")
    return known


def range_of_rewards(log: DecisionLog) -> tuple[float, float] | None:
    """Return the bounds of a reward by its kind, where the log states it: clicks are 0 or 1."""
    if log.reward_range is None and (experiment := known_experiment(log)):
        spec = experiment.simulator_class().describe(experiment.simulator)
        return CLICKS if "binary" in spec.capabilities else None
    return log.reward_range


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
