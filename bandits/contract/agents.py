"""The contract of agents."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from bandits.agents import REGISTRY
from bandits.agents.guards.base import unguarded
from bandits.agents.propensity import choice_counts
from bandits.agents.rows import row_axis
from bandits.base.selection import top_k
from bandits.experiments.lane import COLUMNS, Lane, Trace, build_lane

from .environments import DEMANDING, ENVIRONMENTS, ROWS, STEPS, capabilities, make_simulator
from .expectations import expect, expect_array, expect_equal

REDRAWS = 50


class Case(NamedTuple):
    """An agent under some parameters in an environment."""

    kind: str
    params: tuple[tuple[str, Any], ...]
    environment: str

    def __str__(self) -> str:
        return "-".join(
            map(str, (self.kind, *(value for _, value in self.params), self.environment))
        )

    def lane(self, rows: tuple[int, ...] = ROWS, **changes: Any) -> Lane:
        """Create the environment and the agent."""
        cls, simulator = REGISTRY[self.kind], make_simulator(self.environment, rows)
        params = [cls.Params(**{**dict(self.params), **changes})] * len(rows)
        lane = build_lane(cls, params, simulator)
        # enough for checks of their form, and fast
        unguarded(lane.agent).n_redraws = 8
        return lane

    def trace(self) -> Trace:
        """Return the first steps, which no other call has disturbed."""
        return _trace(self)


@functools.cache
def _trace(case: Case) -> Trace:
    return case.lane().advance(STEPS)


def cases(
    kind: str, environments: tuple[str, ...] = tuple(ENVIRONMENTS), *, reduced: bool = False
) -> Iterator[Case]:
    """Yield an agent's cases: its first test parameters in all environments, the others in
    `DEMANDING` ones, or in all if none of these fits.

    Parameters
    ----------
    kind : str
    environments : tuple of str
        Those to choose from; an agent meets the ones whose capabilities it needs.
    reduced : bool
        Test the other parameters in two environments only.
    """
    cls = REGISTRY[kind]
    demanding = ("petshop", "cascade") if reduced else DEMANDING
    for i, params in enumerate(cls.test_params()):
        required = cls.requires(cls.Params(kind=kind, **params))
        fitting = [name for name in environments if required <= capabilities(name)]
        if i > 0:
            fitting = [name for name in fitting if name in demanding] or fitting
        for environment in fitting:
            yield Case(kind, tuple(params.items()), environment)


def scores_and_slates_are_valid(case: Case) -> None:
    """Scores have the right type and no NaN, and the environment answers the slates they
    lead to.
    """
    lane = case.lane()
    simulator, agent, s = lane.simulator, lane.agent, lane.simulator.spec
    R, K, S = len(ROWS), s.n_candidates, s.slate
    rows, alive = np.arange(R)[:, None], np.ones(R, np.bool_)
    agent.prepare()
    for step in range(STEPS):
        round = simulator.round_at(step)
        scores = agent.scores(round)
        expect_array(scores, "scores", "float64", (R, K))
        expect(~np.isnan(scores), f"scores must not be NaN (step {step})")
        slate = top_k(scores, round.available, alive, S, simulator.streams.ties, step)
        expect_array(slate, "the slate", "int64", (R, S))
        expect(alive, "a row must not be stopped")
        expect(
            all(len(set(shown)) == S for shown in slate.tolist()),
            "the items of a slate must be distinct",
        )
        expect(round.available[rows, slate], "the items of a slate must be available")
        feedback, truth = simulator.respond(round, slate, simulator.uniforms.at(step))
        expect_array(feedback.rewards, "rewards", "float64", (R, S))
        expect_array(feedback.examined, "examined", "bool", (R, S))
        expect(np.isfinite(feedback.rewards), "rewards must be finite")
        expect(
            feedback.rewards[~feedback.examined] == 0,
            "slots that were not examined must have the reward 0",
        )
        known = "truth" in s.capabilities
        for name, values in truth._asdict().items():
            if name == "lost" and values is None:
                continue
            expect_array(values, f"truth.{name}", "float64", (R,))
            expect(
                np.isfinite(values) == known,
                f"truth.{name} must be finite, and NaN without the capability truth",
            )
        for name in ("value", "random_value") if known else ():
            below = getattr(truth, name) <= truth.best_value + 1e-12
            expect(below, f"truth.{name} must not exceed truth.best_value")
        agent.learn(round, slate, feedback)
        simulator.move(round, slate, simulator.uniforms.at(step))


def trace_holds_what_was_shown(case: Case) -> None:
    """A run records available items, and the optimum that the oracle reaches."""
    simulator, trace = make_simulator(case.environment), case.trace()
    s = simulator.spec
    expect_array(trace.items, "items of the trace", "int64", (STEPS, len(ROWS), s.slate))
    expect_array(trace.segments, "segments of the trace", "int64", (STEPS, len(ROWS)))
    for name in COLUMNS[2:]:
        column = getattr(trace, name)
        expect_array(column, f"{name} of the trace", "float64", (STEPS, len(ROWS)))
        known = "truth" in s.capabilities or name == "rewards"
        expect(
            np.isfinite(column) == known,
            f"{name} of the trace must be finite, and NaN without the truth",
        )
    expect(trace.alive, "a row must not be stopped")
    for step, round in enumerate(simulator.rounds(trace.items)):
        expect_equal(
            trace.segments[step],
            round.segments,
            "segments of the trace must be those of the rounds",
        )
        for r in range(len(ROWS)):
            offered, shown = (
                set(round.items[r, round.available[r]].tolist()),
                trace.items[step, r].tolist(),
            )
            expect(
                set(shown) <= offered and len(set(shown)) == s.slate,
                "shown items must be distinct and available",
            )
    if "truth" in s.capabilities:
        oracle = Case("oracle", (("maximises", "step"),), case.environment).trace()
        # agents that move the state differently meet different optima
        other = oracle if simulator.state else trace
        best = np.isclose(oracle.value, other.best_value, rtol=1e-12, atol=0)
        expect(best, "the oracle must reach best_value at every step")
        expect_equal(
            oracle.rewards, other.best_rewards, "best_rewards must be the rewards of the oracle"
        )


def probabilities_are_frequencies_of_choice(case: Case) -> None:
    """`probabilities` states the distribution of the first slot.

    The number of choices minus the sum of their probabilities is a martingale, which Freedman's
    inequality bounds by x with probability 1 - exp(-x^2 / (2 V + 2 x / 3)), V the sum of p (1 - p),
    at any sample size."""
    exact = case.lane().agent.propensity == "exact"
    rows = tuple(range(32)) if exact else ROWS
    lane = case.lane(rows, **({"epsilon": 0.5} if case.kind == "epsilon_greedy" else {}))
    agent, simulator, K = lane.agent, lane.simulator, lane.simulator.spec.n_candidates
    surplus, variance = np.zeros(K), np.zeros(K)
    for step in range(125 if exact else STEPS):
        round = simulator.round_at(step)
        p = agent.probabilities(round)
        expect_array(p, "probabilities", "float64", (len(rows), K))
        expect(
            np.isclose(p.sum(axis=1), 1, rtol=1e-5, atol=1e-12),
            "probabilities of a row must sum to 1",
        )
        expect(p >= 0, "probabilities must not be negative")
        expect(p[~round.available] == 0, "probabilities of unavailable candidates must be 0")
        shown = lane.advance(1).items[0, :, 0]
        chosen = round.items == shown[:, None]
        surplus += (chosen - p).sum(axis=0)
        variance += (p * (1 - p)).sum(axis=0)
        if agent.propensity == "deterministic":
            message = (
                "probabilities of a deterministic agent must be positive for the item it shows; "
                "see propensity"
            )
            expect(p[chosen] > 0, message)
    if exact:
        log_odds = np.log(2 * K / 1e-9)
        limit = log_odds / 3 + np.sqrt((log_odds / 3) ** 2 + 2 * variance * log_odds)
        expect(np.abs(surplus) <= limit, "probabilities must be the frequencies of choice")


def probabilities_change_nothing(case: Case) -> None:
    """Calls of `probabilities` do not change what the agent shows."""
    lane, traces = case.lane(), []
    for step in range(STEPS):
        lane.agent.probabilities(lane.simulator.round_at(step))
        traces.append(lane.advance(1))
    _expect_same(traces, case, "probabilities must not change what is shown later")


def probabilities_belong_to_the_row(case: Case) -> None:
    """`probabilities` of a row do not depend on the other rows, and agree with independent redraws
    of the scores.
    """
    lane, alone = case.lane(), case.lane(ROWS[1:2])
    agent, own = lane.agent, alone.agent
    unguarded(agent).n_redraws = unguarded(own).n_redraws = REDRAWS
    for until in (STEPS // 4, STEPS // 2):
        lane.advance(until - lane.step)
        alone.advance(until - alone.step)
        round, single = lane.simulator.round_at(until), alone.simulator.round_at(until)
        p, q = agent.probabilities(round), own.probabilities(single)
        message = (
            "probabilities of a row must not depend on the other rows; use the generator as "
            "redraws documents"
        )
        if unguarded(agent).alone:
            expect_equal(q[0], p[1], message)
        expect_equal(agent.probabilities(round), p, "probabilities must be the same at every call")
        if next(agent.redraws(round, agent.streams.of_rows("propensity")), None) is None:
            continue
        n = 2 * REDRAWS
        counts = choice_counts(agent, round, n=n, part=1)
        stated = p if agent.propensity == "exact" else (p * REDRAWS + counts) / (REDRAWS + n)
        error = np.sqrt(stated * (1 - stated) * (1 / n + (agent.propensity != "exact") / REDRAWS))
        apart = np.abs(counts / n - p) > 6 * error + 3 / REDRAWS
        expect(~apart, "probabilities must be the frequencies of choice under redraws")


def explanations_add_up_to_the_scores(case: Case) -> None:
    """The parts that `explain` states add up to the scores, and calls of it change nothing."""
    lane = case.lane()
    R, K = len(ROWS), lane.simulator.spec.n_candidates
    agent, traces = lane.agent, []
    for step in range(STEPS):
        round = lane.simulator.round_at(step)
        parts = agent.explain(round)
        scores = agent.scores(round)
        expect_equal(parts.score, scores, "explain(round).score must equal scores(round)")
        for name, part in (("mean", parts.mean), ("width", parts.width)):
            if part is not None:
                expect_array(part, f"explain(round).{name}", "float64", (R, K))
        randomised = np.zeros(R, np.bool_) if parts.randomised is None else parts.randomised
        expect_array(randomised, "explain(round).randomised", "bool", (R,))
        if parts.how == "greedy":
            expect(parts.mean is not None, "explain: greedy needs mean")
            assert parts.mean is not None
            expect_equal(
                parts.mean[~randomised],
                scores[~randomised],
                "a greedy explanation's mean must be the score",
            )
        if parts.how in ("bonus", "sample"):
            expect(
                parts.mean is not None and parts.width is not None,
                f"explain: {parts.how} needs mean and width",
            )
            assert parts.mean is not None
            assert parts.width is not None
            expect(parts.width >= 0, "explain(round).width must not be negative")
            broadcasts = np.broadcast_shapes(np.shape(parts.scale), (R, K)) == (R, K)
            expect(broadcasts, f"explain(round).scale must broadcast to {(R, K)}")
        if parts.how == "bonus" and parts.mean is not None and parts.width is not None:
            known = np.isfinite(parts.width)
            total = (parts.mean + parts.scale * parts.width)[known]
            expect_equal(
                total, scores[known], "mean + scale * width of an explanation must equal the scores"
            )
            expect(
                np.isposinf(scores[~known]), "candidates of infinite width must have the score +inf"
            )
            scale = agent.column(parts.parameter)
            expect_equal(
                np.ravel(parts.scale),
                scale,
                f"explain(round).scale must be the parameter {parts.parameter}",
            )
        drawn = list(itertools.islice(agent.redraws(round, np.random.default_rng(step)), 2))
        expected = {"monte_carlo": {2}, "exact": {0, 2}, "deterministic": {0}}[agent.propensity]
        message = (
            "redraws must yield scores without end where propensity is monte_carlo, none where "
            "deterministic"
        )
        expect(len(drawn) in expected, message)
        for other in drawn:
            expect_array(other, "redraws", "float64", (R, K))
        traces.append(lane.advance(1))
    _expect_same(traces, case, "explain and redraws must not change what is shown later")


# score: at the start, where choices are random or forced
_HOW = {"bonus": {"bonus", "score"}, "posterior": {"sample", "score"}, None: {"greedy", "score"}}


def declared_capabilities_are_those_of_the_model(case: Case) -> None:
    """`uncertainty`, `exploration_param`, `spans_arms`, `prior_precision`, `slot_treatment` agree
    with the agent.
    """
    lane = case.lane()
    agent, p = lane.agent, lane.agent.params[0]
    cls = type(agent)
    agent.prepare()
    spectrum = agent.spectrum(lane.simulator.bases(bool(cls.spans_arms(p))))
    none = (spectrum is None) == (cls.spans_arms(p) is None)
    expect(none, "spans_arms must be None exactly where spectrum returns None")
    # before any data
    if spectrum is not None:
        values, prior = spectrum[~np.isnan(spectrum)], cls.prior_precision(p)
        message = f"before any data all eigenvalues must equal prior_precision, {prior}"
        if cls.starts_with_data(p):
            expect(
                prior is not None and bool((values > prior * (1 - 1e-6)).all()),
                message.replace("equal", "exceed"),
            )
        else:
            expect(prior is not None and np.allclose(values, prior, rtol=1e-6, atol=0), message)
    explained, uncertainty = agent.explain(lane.simulator.round_at(0)), cls.uncertainty_of(p)
    message = (
        f"an agent with uncertainty {uncertainty!r} must not explain its scores as "
        f"{explained.how!r}"
    )
    expect(explained.how in _HOW[uncertainty], message)
    sampled = explained.how == "sample"
    expect(
        not sampled or agent.propensity != "deterministic",
        "an agent that draws samples is not deterministic",
    )
    if cls.exploration_param is not None:
        value = getattr(p, cls.exploration_param, None)
        message = (
            "exploration_param must name a numeric parameter or be None; got "
            f"{cls.exploration_param!r}"
        )
        expect(isinstance(value, (int, float)) and not isinstance(value, bool), message)
    expect(
        (cls.slot_treatment(p) is None) == (not cls.learns),
        "slot_treatment must be None where learns is False",
    )


def state_is_arrays_and_plain_values(case: Case) -> None:
    """The state can be saved without pickles."""
    lane = case.lane()
    lane.advance(5)
    for name, value in lane.state_dict().items():
        expect(
            _is_plain(value),
            f"the state '{name}' must be an array or a plain value; got {type(value).__name__}",
        )
    if not type(lane.agent).row_by_row:
        return
    for name, value in lane.agent.state_dict().items():
        rows = (
            value.shape[row_axis(name)]
            if isinstance(value, np.ndarray) and value.ndim > row_axis(name)
            else 0
        )
        expect(
            rows == len(ROWS),
            f"the state '{name}' must have an axis of rows (see row_axis), or row_by_row be False",
        )


def _is_plain(value: Any) -> bool:
    if isinstance(value, dict):
        return all(isinstance(k, str) and _is_plain(v) for k, v in value.items())
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "biuf"
    return type(value) in (bool, int, float, str)


def saved_state_continues_to_the_bit(case: Case) -> None:
    """A run that is saved after half of the steps and loaded continues as if it had not been
    interrupted.
    """
    first, second = case.lane(), case.lane()
    begun = first.advance(STEPS // 2)
    second.agent.prepare()
    second.load_state_dict(first.state_dict())
    message = (
        "after load_state_dict(state_dict()) a run must continue to the bit; is an array missing "
        "in state?"
    )
    _expect_same([begun, second.advance(STEPS - STEPS // 2)], case, message)


def memory_is_known_before_allocation(case: Case) -> None:
    """`memory` returns a whole number of bytes per row that covers the state."""
    lane = case.lane()
    needed = type(lane.agent).memory(lane.agent.params[0], lane.simulator.spec)
    held = sum(a.nbytes for a in lane.agent.state_dict().values() if isinstance(a, np.ndarray))
    expect(type(needed) is int, f"memory must return an int; got {type(needed).__name__}")
    expect(
        needed * len(ROWS) >= held,
        f"memory returns {needed:,} bytes per row; the state takes {held:,} for {len(ROWS)}",
    )


def _expect_same(traces: list[Trace], case: Case, message: str) -> None:
    expected = case.trace()
    for name in COLUMNS:
        actual = np.concatenate([getattr(trace, name) for trace in traces])
        expect_equal(actual, getattr(expected, name), message)


CHECKS: tuple[Callable[[Case], None], ...] = (
    scores_and_slates_are_valid,
    trace_holds_what_was_shown,
    probabilities_are_frequencies_of_choice,
    probabilities_change_nothing,
    probabilities_belong_to_the_row,
    explanations_add_up_to_the_scores,
    declared_capabilities_are_those_of_the_model,
    state_is_arrays_and_plain_values,
    saved_state_continues_to_the_bit,
    memory_is_known_before_allocation,
)
