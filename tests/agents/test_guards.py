"""Guards do what their parameters state, around every kind of agent, and nothing else."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bandits import UserError, read, run
from bandits.agents import REGISTRY
from bandits.agents.guards.base import unguarded
from bandits.agents.guards.cap import allowed
from bandits.agents.guards.floor import count_shows, mixed, random_slots
from bandits.agents.linear.linucb import LinUCB
from bandits.agents.rows import row_axis
from bandits.base.types import Feedback, FloatArray, IntArray, Round
from bandits.contract import agents as contract
from bandits.experiments.history import History
from bandits.experiments.lane import Lane
from bandits.experiments.lockstep import make_lane
from bandits.results.decision import why
from bandits.results.decision_report import explain_decision
from bandits.results.guard_cost import fallback_sentences, fallbacks
from tests.support import often, thinned

SHOP = {"kind": "petshop", "n_products": 10, "n_users": 60}
STACKS: dict[str, list[dict[str, Any]]] = {
    "floor": [{"kind": "floor", "epsilon": 0.3}],
    "new arms": [{"kind": "floor", "epsilon": 0.1, "shows": 4, "new": 0.3}],
    "cap": [{"kind": "cap", "share": 0.8, "window": 10}],
    "delay": [{"kind": "delay", "steps": 7}],
    "geometric": [{"kind": "delay", "steps": 3, "law": "geometric"}],
    "batch": [{"kind": "batch", "steps": 6}],
    "reset": [{"kind": "reset", "every": 9}],
    "fallback": [{"kind": "fallback", "to": "popularity", "median_ms": 5, "p99_ms": 90}],
    "all": [
        {"kind": "fallback", "median_ms": 5, "p99_ms": 90},
        {"kind": "floor", "epsilon": 0.2, "shows": 3},
        {"kind": "cap", "share": 0.9, "window": 10},
        {"kind": "delay", "steps": 4},
        {"kind": "batch", "steps": 5},
        {"kind": "reset", "every": 11},
    ],
}
CHECKS = [
    contract.scores_and_slates_are_valid,
    contract.trace_holds_what_was_shown,
    contract.probabilities_are_frequencies_of_choice,
    contract.probabilities_change_nothing,
    contract.state_is_arrays_and_plain_values,
    contract.saved_state_continues_to_the_bit,
]
NETWORK = (("hidden", (4,)), ("every", 7), ("updates", 2))
CASES = [
    *(("linucb", (), name, "petshop") for name in STACKS),
    *(("lints", (), name, "petshop") for name in ("floor", "fallback", "all")),
    *(("neural_greedy", NETWORK, name, "cascade") for name in ("delay", "reset", "all")),
    ("linucb", (), "all", "cascade"),
]


def case_of(kind: str, more: Any, name: str, environment: str) -> contract.Case:
    return contract.Case(
        kind, (("guards", LinUCB.Params(guards=STACKS[name]).guards), *more), environment
    )


def experiment(*agents: dict[str, Any], steps: int = 400, rows: int = 4, **simulator: Any) -> Any:
    data = {
        "simulator": {**SHOP, **simulator},
        "agents": list(agents),
        "steps": steps,
        "replications": rows,
    }
    return read(data)


def lane_of(*guards: dict[str, Any], kind: str = "linucb", **settings: Any) -> Lane:
    return make_lane(experiment({"kind": kind, "guards": list(guards)}, **settings), 0)


CHECKED = [
    pytest.param(check, case, id=f"{check.__name__}-{case[0]}-{case[2]}-{case[3]}")
    for check in CHECKS
    for case in CASES
]


@pytest.mark.parametrize(
    ("check", "case"), thinned(CHECKED, lambda n: n % 3 == 0, lambda n: n % 6 == 1)
)
def test_guarded_agents_fulfil_the_contract(
    check: Callable[[contract.Case], None], case: Any
) -> None:
    check(case_of(*case))


def test_no_guards_leave_hashes_as_they_were_and_guards_leave_other_agents_alone() -> None:
    plain, beside = {"kind": "lints"}, {"kind": "linucb"}
    assert experiment(plain, beside).hash == experiment({**plain, "guards": []}, beside).hash
    one = run(experiment({**plain, "label": "a"}, beside), workers=0)
    other = run(experiment({**plain, "label": "a", "guards": STACKS["all"]}, beside), workers=0)
    for name, sums in one.histories["LinUCB"].sums.items():
        assert np.array_equal(sums, other.histories["LinUCB"].sums[name])
    assert not np.array_equal(
        one.histories["a"].sums["clicks"], other.histories["a"].sums["clicks"]
    )


@pytest.mark.parametrize("stack", STACKS.values(), ids=list(STACKS))
def test_rows_do_not_depend_on_their_neighbours(stack: list[dict[str, Any]]) -> None:
    e = experiment({"kind": "lints", "guards": stack}, steps=120)
    together = make_lane(e, 0).advance(120)
    for row in range(4):
        alone = make_lane(e, 0, rows=[row])
        parts = [alone.advance(n).items for n in (1, 50, 69)]
        assert np.array_equal(np.concatenate(parts)[:, 0], together.items[:, row])


def test_guards_of_one_stack_draw_independently() -> None:
    """Two floors of 1/2: the agent decides a quarter of the time, not half of it as with common
    random numbers.
    """
    steps, rows = 100, 32
    floor = {"kind": "floor", "epsilon": 0.5}
    lane = lane_of(floor, floor, kind="oracle", steps=steps, rows=rows)
    # where the first slot shows what the agent alone would show
    alone = lane_of(kind="oracle", steps=steps, rows=rows).advance(steps).items
    first = int((lane.advance(steps).items == alone).sum())
    # a random arm is that of ten in a tenth of the cases
    share = 0.25 + 0.75 / 10
    assert abs(first / (steps * rows) - share) < 4.5 * np.sqrt(share * (1 - share) / (steps * rows))


# floor


def shares_of(guard: dict[str, Any], segment: int) -> float:
    segments = guard.get("segments")
    return float(segments[segment] if segments else guard["epsilon"])


@st.composite
def exact_stacks(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Random stacks with a floor as the outermost guard of the policy."""
    unit = st.floats(0.1, 0.5).map(lambda x: round(x, 3))
    floor: dict[str, Any] = {"kind": "floor", "epsilon": draw(unit)}
    if draw(st.booleans()):
        floor["segments"] = [draw(unit) for _ in range(4)]
    if draw(st.booleans()):
        # every arm stays new
        floor |= {"shows": 1000, "new": draw(st.floats(0.1, 0.3))}
    inside = draw(
        st.lists(
            st.sampled_from(
                [
                    {"kind": "cap", "share": 0.4, "window": 50},
                    {"kind": "fallback", "to": "random", "median_ms": 5, "p99_ms": 60},
                    {"kind": "fallback", "to": "popularity", "median_ms": 5, "p99_ms": 60},
                    {"kind": "floor", "epsilon": 0.2},
                ]
            ),
            max_size=2,
        )
    )
    outside = draw(
        st.lists(
            st.sampled_from(
                [
                    {"kind": "delay", "steps": 20},
                    {"kind": "delay", "steps": 5, "law": "geometric"},
                    {"kind": "batch", "steps": 15},
                    {"kind": "reset", "every": 100},
                ]
            ),
            max_size=2,
        )
    )
    return [*inside, floor, *outside]


MEAN_Z: list[float] = []


@settings(max_examples=50, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(exact_stacks(), st.sampled_from(["linucb", "epsilon_greedy", "ucb1"]))
def test_exposure_is_at_least_the_floor_and_propensities_are_right(
    stack: list[dict[str, Any]], kind: str
) -> None:
    steps, rows, K = 60, 32, 10
    lane = lane_of(*stack, kind=kind, steps=steps, rows=rows)
    assert lane.agent.propensity == "exact"
    floor = next(g for g in reversed(stack) if g["kind"] == "floor")
    truth = lane.simulator.access().probabilities
    shown, seen = np.zeros((4, K)), np.zeros(4)
    gaps: list[FloatArray] = []
    for step in range(steps):
        round = lane.simulator.round_at(step)
        p = lane.agent.probabilities(round)
        trace = lane.advance(1)
        chosen = trace.items[0, :, 0]
        np.add.at(shown, (round.segments, chosen), 1)
        np.add.at(seen, round.segments, 1)
        possible = p > 0
        # a fixed policy: random among the possible arms
        target = possible / possible.sum(axis=1, keepdims=True)
        at = np.arange(rows), chosen
        gaps.append(target[at] / p[at] * trace.rewards[0] - (target * truth(round)).sum(axis=1))
    least = np.array([shares_of(floor, g) for g in range(4)]) + (
        floor["new"] if "shows" in floor else 0.0
    )
    share = (np.minimum(least, 1) / K)[:, None]
    error = np.sqrt(share * (1 - share) / np.maximum(seen, 1)[:, None])
    # 50 stacks x 40 cells
    assert ((shown / seen[:, None]) >= share - 4.5 * error).all()
    gap = np.array(gaps)
    z = gap.sum() / np.sqrt(np.square(gap).sum())
    assert abs(z) < 4
    MEAN_Z.append(abs(z))


def test_propensities_have_no_systematic_error() -> None:
    """Mean |z| of the stacks above.

    It is 0.80 for a standard normal, with a standard error of .085 over 50.
    """
    if len(MEAN_Z) < 40:  # run alone
        test_exposure_is_at_least_the_floor_and_propensities_are_right()
    assert np.mean(MEAN_Z) < 1


@pytest.mark.parametrize(
    "floor",
    [
        {"epsilon": 0.2},
        {"epsilon": 0.04, "per": "arm"},
        {"segments": [0.0, 0.5, 0.1, 0.3]},
        {"epsilon": 0.1, "shows": 3, "new": 0.2},
    ],
    ids=str,
)
def test_a_floor_mixes_as_stated(floor: dict[str, Any]) -> None:
    lane = lane_of({"kind": "floor", **floor}, kind="oracle", rows=64, steps=8)
    lane.advance(7)
    shows = lane.agent.shows  # type: ignore[attr-defined]
    round = lane.simulator.round_at(7)
    available = np.ones((64, 10), np.bool_)
    available[:, 9] = False
    for offered in (round.available, available):
        p = lane.agent.probabilities(round._replace(available=offered))
        greedy = unguarded(lane.agent).probabilities(round._replace(available=offered))
        for r, segment in enumerate(round.segments):
            n = offered[r].sum()
            epsilon = floor["segments"][segment] if "segments" in floor else floor["epsilon"]
            epsilon *= 10 if "per" in floor else 1
            new = offered[r] & (shows[r] < 3) if "shows" in floor else np.zeros(10, np.bool_)
            share = 0.2 if new.any() else 0.0
            expected = (
                (1 - epsilon - share) * greedy[r]
                + epsilon * offered[r] / n
                + share * new / max(new.sum(), 1)
            )
            np.testing.assert_allclose(p[r], expected, atol=1e-12)
        slots = lane.agent.slot_probabilities(round._replace(available=offered))
        np.testing.assert_allclose(slots[:, 0], p, atol=1e-12)


@pytest.mark.parametrize(
    ("first", "offered"), [("1100", "1111"), ("1000", "1110"), ("0000", "1011"), ("1101", "1101")]
)
def test_slots_of_a_random_order_are_those_of_all_orders(first: str, offered: str) -> None:
    """Some candidates come first, the others behind them, each in every order."""
    ahead, available = (np.array([[bit == "1" for bit in bits]]) for bits in (first, offered))
    behind = np.flatnonzero(available & ~ahead)
    size = int(available.sum())
    orders = [
        a + b
        for a in itertools.permutations(np.flatnonzero(ahead))
        for b in itertools.permutations(behind)
    ]
    expected = np.mean([np.eye(4)[list(order)] for order in orders], axis=0)
    for shown in range(1, size + 1):
        np.testing.assert_allclose(
            random_slots(ahead, shown, available)[0], expected[:shown], atol=1e-12
        )


def test_a_floor_decides_where_its_random_number_is_below_the_share() -> None:
    """Against a plain implementation: shares by segment, items in any order, new arms only where
    they are available.
    """
    rng, R, K, n = np.random.default_rng(5), 300, 6, 9
    scores, uniforms = rng.random((R, K)), rng.random((R, K + 1))
    scores[0, 2] = np.nan
    epsilon, segments = np.array([0.1, 0.5, 0.0]), rng.integers(0, 3, R)
    items = np.stack([rng.permutation(n)[:K] for _ in range(R)])
    available, shows = rng.random((R, K)) < 0.7, rng.integers(0, 4, (R, n))
    out, decides = mixed(scores, uniforms, epsilon, segments, items, available, shows, 1, 0.4)
    new = available & (np.take_along_axis(shows, items, axis=1) < 1)
    share = np.where(new.any(axis=1), 0.4, 0.0)
    explores = uniforms[:, 0] < epsilon[segments]
    tries = ~explores & (uniforms[:, 0] < epsilon[segments] + share)
    assert np.array_equal(decides, explores | tries)
    assert 20 < tries.sum() < 100
    drawn = np.where(np.isnan(scores), np.nan, uniforms[:, 1:] + (new & tries[:, None]))
    assert np.array_equal(out, np.where(decides[:, None], drawn, scores), equal_nan=True)
    slate, before = rng.integers(0, K, (R, 1)), shows.copy()
    count_shows(shows, items, slate)
    assert np.array_equal((shows - before).argmax(axis=1), items[np.arange(R), slate[:, 0]])
    assert (shows - before).sum() == R


def test_a_floor_does_not_hide_that_its_agent_has_diverged() -> None:
    lane = lane_of({"kind": "floor", "epsilon": 0.5}, rows=4)
    unguarded(lane.agent).model.theta[2] = np.nan  # type: ignore[attr-defined]
    lane.advance(3)
    assert lane.alive.tolist() == [True, True, False, True]
    lane = lane_of({"kind": "floor", "epsilon": 0.5}, rows=64)
    unguarded(lane.agent).model.theta[:] = np.nan  # type: ignore[attr-defined]
    lane.advance(1)
    # although the floor decides in about half of the rows
    assert not lane.alive.any()


def test_stacks_over_sampling_agents_are_marked() -> None:
    for stack in STACKS.values():
        for own, propensity in (({"sharing": "shared"}, "monte_carlo"), ({}, "exact")):
            e = experiment({"kind": "lints", "guards": stack, **own})
            assert make_lane(e, 0).agent.propensity == propensity
    assert lane_of({"kind": "delay"}).agent.propensity == "deterministic"
    assert lane_of({"kind": "floor"}).agent.propensity == "exact"
    drawn = itertools.islice(
        lane_of(*STACKS["all"], kind="lints").agent.redraws(
            lane_of().simulator.round_at(0), np.random.default_rng(0)
        ),
        3,
    )
    assert len({scores.tobytes() for scores in drawn}) == 3


def test_new_arms_get_their_share_until_they_have_been_shown() -> None:
    lane = lane_of(
        {"kind": "floor", "epsilon": 0.0, "shows": 5, "new": 0.5}, kind="oracle", steps=600, rows=8
    )
    items = lane.advance(600).items[:, :, 0]
    counts = np.stack([np.bincount(items[:, r], minlength=10) for r in range(8)])
    assert (counts >= 5).all()
    oracle = lane_of(kind="oracle", steps=600, rows=8).advance(600).items[:, :, 0]
    for r in range(8):
        done = max(np.flatnonzero(items[:, r] == k)[4] for k in range(10))
        assert np.array_equal(items[done + 1 :, r], oracle[done + 1 :, r])


@pytest.mark.parametrize("epsilon", [0.0, 0.4])
def test_a_floor_shows_new_arms_as_often_as_stated(epsilon: float) -> None:
    """With two new arms of ten, decisions other than the agent's are of a new arm as often as the
    shares say.
    """
    steps, rows = 100, 32
    lane = lane_of(
        {"kind": "floor", "epsilon": epsilon, "shows": 1000, "new": 0.3}, kind="oracle", rows=rows
    )
    lane.agent.shows[:, :8] = 1000  # type: ignore[attr-defined]
    new = other = 0
    expected_new = expected_other = 0.0
    alone = lane_of(kind="oracle", rows=rows).advance(steps).items[:, :, 0]
    for best in alone:
        chosen = lane.advance(1).items[0, :, 0]
        new += int(((chosen >= 8) & (chosen != best)).sum())
        other += int(((chosen < 8) & (chosen != best)).sum())
        # rows in which one of the new arms is the agent's choice
        among = (best >= 8).sum()
        expected_new += (0.3 / 2 + epsilon / 10) * (2 * rows - among)
        expected_other += epsilon / 10 * (8 * rows - (rows - among))
    n = steps * rows
    for found, expected in ((new, expected_new), (other, expected_other)):
        assert abs(found - expected) <= 4.5 * np.sqrt(expected * (1 - expected / n))


# cap


@settings(max_examples=often(15, 40), deadline=None)
@given(
    st.floats(0.1, 0.9), st.integers(10, 60), st.sampled_from(["linucb", "oracle", "popularity"])
)
def test_no_arm_exceeds_its_share_of_any_window(share: float, window: int, kind: str) -> None:
    items = (
        lane_of({"kind": "cap", "share": share, "window": window}, kind=kind, steps=150)
        .advance(150)
        .items[:, :, 0]
    )
    for n in (1, 5, 10, window - 1, window):
        most = max(
            (items[i : i + n] == k).sum(axis=0).max() for i in range(151 - n) for k in range(10)
        )
        assert most <= np.ceil(share * window - 1e-9)
    for step in range(150):
        n = min(step + 1, window)
        last = items[step + 1 - n : step + 1]
        assert max((last == k).sum(axis=0).max() for k in range(10)) <= np.ceil(share * n - 1e-9)


def test_a_wide_cap_changes_nothing() -> None:
    assert np.array_equal(
        lane_of({"kind": "cap", "share": 1}).advance(200).items, lane_of().advance(200).items
    )


def test_a_slate_gets_enough_arms_the_least_shown_first() -> None:
    shows, items = np.array([[5, 3, 4, 9]]), np.arange(4)[None]
    everything = np.ones((1, 4), np.bool_)
    for size, limit, expected in (
        (1, 3, [1]),
        (2, 3, [1, 2]),
        (3, 4, [0, 1, 2]),
        (2, 10, [0, 1, 2, 3]),
    ):
        assert (
            np.flatnonzero(allowed(shows, items, everything, limit, size)[0]).tolist() == expected
        )
    assert np.flatnonzero(allowed(shows, items, everything & (items != 1), 3, 1)[0]).tolist() == [2]


def test_a_capped_agent_takes_the_best_arm_left() -> None:
    lane = lane_of({"kind": "cap", "share": 0.2, "window": 50}, kind="oracle", steps=120)
    truth = lane.simulator.access().probabilities
    past: list[IntArray] = []
    for step in range(120):
        round = lane.simulator.round_at(step)
        chosen = lane.advance(1).items[0, :, 0]
        n = min(step + 1, 50)
        for r, item in enumerate(chosen):
            last = [int(shown[r]) for shown in past[max(0, len(past) - n + 1) :]]
            free = [k for k in range(10) if last.count(k) + 1 <= np.ceil(0.2 * n - 1e-9)]
            assert truth(round)[r, item] == max(truth(round)[r, k] for k in free)
        past.append(chosen)


def test_propensities_under_a_cap_are_those_of_the_arms_left() -> None:
    lane, past = (
        lane_of({"kind": "cap", "share": 0.2, "window": 20}, kind="random", steps=80),
        list[IntArray](),
    )
    stopped = 0
    for step in range(80):
        p = lane.agent.probabilities(lane.simulator.round_at(step))
        n = min(step + 1, 20)
        shows = np.zeros((4, 10), np.int64)
        for items in past[max(0, step - n + 1) :]:
            shows[np.arange(4), items] += 1
        free = shows < np.ceil(0.2 * n - 1e-9)
        np.testing.assert_allclose(p, free / free.sum(axis=1, keepdims=True), atol=1e-12)
        stopped += int((~free).sum())
        past.append(lane.advance(1).items[0, :, 0])
    assert stopped > 40


def test_a_cap_keeps_a_floor_inside_from_trying_an_arm_at_its_limit() -> None:
    """Where the one new arm may not be shown, its share of the decisions is the agent's again."""
    inside = {"kind": "floor", "epsilon": 0.0, "shows": 1000, "new": 0.3}
    lane = lane_of(
        inside, {"kind": "cap", "share": 0.4, "window": 20}, kind="oracle", steps=100, rows=16
    )
    guard: Any = lane.agent
    guard.inner.shows[:, 1:] = 1000
    truth, stopped = lane.simulator.access().probabilities, 0
    for step in range(100):
        round = lane.simulator.round_at(step)
        free = guard.allowed(round).available
        best = np.where(free, truth(round), -1.0).max(axis=1)
        rows = np.flatnonzero(~free[:, 0])
        chosen = lane.advance(1).items[0, :, 0]
        assert np.array_equal(truth(round)[rows, chosen[rows]], best[rows])
        stopped += len(rows)
    assert stopped > 100


# delays


class Recorder(LinUCB):
    """LinUCB that keeps what it learns from."""

    class Params(LinUCB.Params):
        kind: Any = "recorder"  # type: ignore[assignment]

    title = "Recorder"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.learned: list[tuple[int, FloatArray, IntArray, FloatArray]] = []

    def learn(self, round: Round, slate: IntArray, feedback: Feedback) -> None:
        self.learned.append(
            (round.step, round.features.copy(), slate.copy(), feedback.rewards.copy())
        )
        super().learn(round, slate, feedback)


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[Lane, list[Any], list[int]]]:
    """Return a function that runs the recorder under guards: its lane, what it learned from, and
    when.
    """

    def played(*guards: dict[str, Any], steps: int = 200, simulator: str = "petshop") -> Any:
        monkeypatch.setitem(REGISTRY, "linucb", Recorder)
        monkeypatch.setattr(Recorder, "Params", LinUCB.Params)
        own = SHOP if simulator == "petshop" else {"kind": simulator, "n_arms": 4, "n_features": 3}
        e = read(
            {
                "simulator": own,
                "agents": [{"kind": "linucb", "guards": list(guards)}],
                "steps": steps,
            }
        )
        lane = make_lane(e, 0)
        agent: Any = unguarded(lane.agent)
        arrived: list[int] = []
        for step in range(steps):
            lane.advance(1)
            arrived += [step] * (len(agent.learned) - len(arrived))
        return lane, agent.learned, arrived

    return played


@pytest.mark.parametrize("simulator", ["petshop", "synthetic"])
def test_delayed_rewards_come_with_the_features_as_they_were_shown(
    recorder: Any, simulator: str
) -> None:
    _, learned, arrived = recorder({"kind": "delay", "steps": 30}, simulator=simulator)
    assert [shown + 30 for shown, *_ in learned] == arrived == list(range(30, 200))
    fresh = make_lane(lane_experiment(simulator), 0).simulator
    for shown, features, slate, rewards in learned:
        round = fresh.round_at(shown)
        assert np.array_equal(features, round.features)
        expected, _ = fresh.respond(round, slate, fresh.uniforms.at(shown))
        assert np.array_equal(rewards, expected.rewards)


def lane_experiment(simulator: str) -> Any:
    own = SHOP if simulator == "petshop" else {"kind": simulator, "n_arms": 4, "n_features": 3}
    return read({"simulator": own, "agents": [{"kind": "random"}], "steps": 200})


def test_geometric_delays_have_their_mean_and_lose_nothing(recorder: Any) -> None:
    _, learned, arrived = recorder({"kind": "delay", "steps": 20, "law": "geometric"}, steps=3000)
    steps = [shown for shown, *_ in learned]
    assert len(set(steps)) == len(steps)
    waits = np.array(arrived) - np.array(steps)
    assert waits.min() >= 0
    # ten times the mean is the longest
    assert set(range(2800)) <= set(steps)
    error = np.sqrt(20 * 21 / len(waits))
    # those that still wait are the longest
    assert abs(waits.mean() - 20) < 4.5 * error + 0.2


def test_a_batch_is_learned_at_once_and_in_its_order(recorder: Any) -> None:
    _, learned, arrived = recorder({"kind": "batch", "steps": 40})
    assert [shown for shown, *_ in learned] == list(range(200))
    assert arrived == [step - step % 40 + 39 for step in range(200)]


def test_late_feedback_through_two_guards_adds_up(recorder: Any) -> None:
    _, learned, arrived = recorder({"kind": "batch", "steps": 10}, {"kind": "delay", "steps": 7})
    for (shown, *_), at in zip(learned, arrived, strict=True):
        # at the end of the batch in which it arrives
        assert at == (shown + 7) - (shown + 7) % 10 + 9
    assert [shown for shown, *_ in learned] == list(range(193))


def test_a_delay_inside_a_batch_begins_when_the_batch_ends(recorder: Any) -> None:
    _, learned, arrived = recorder({"kind": "delay", "steps": 7}, {"kind": "batch", "steps": 10})
    assert arrived == [shown - shown % 10 + 9 + 7 for shown, *_ in learned]
    assert [shown for shown, *_ in learned] == list(range(190))


@pytest.mark.parametrize(
    "inside", [{"kind": "batch", "steps": 40}, {"kind": "delay", "steps": 15}], ids=str
)
def test_a_late_guard_inside_a_random_delay_loses_nothing(
    recorder: Any, inside: dict[str, Any]
) -> None:
    _, learned, arrived = recorder(
        inside, {"kind": "delay", "steps": 20, "law": "geometric"}, steps=1500
    )
    shown = [step for step, *_ in learned]
    assert len(set(shown)) == len(shown)
    assert set(range(1200)) <= set(shown)
    if inside["kind"] == "batch":
        assert {at % 40 for at in arrived} == {39}
    else:
        assert min(at - step for at, step in zip(arrived, shown, strict=True)) == 15


def test_a_policy_is_frozen_between_batches() -> None:
    lane, frozen = lane_of({"kind": "batch", "steps": 25}), []
    for _ in range(100):
        frozen.append(unguarded(lane.agent).model.theta.copy())  # type: ignore[attr-defined]
        lane.advance(1)
    changes = [i for i in range(1, 100) if not np.array_equal(frozen[i], frozen[i - 1])]
    assert changes == [25, 50, 75]


# resets


def test_a_reset_begins_anew() -> None:
    lane, fresh = lane_of({"kind": "reset", "every": 50}), lane_of()
    lane.advance(50)
    state, beginning = unguarded(lane.agent).state_dict(), fresh.agent.state_dict()
    assert all(np.array_equal(state[name], beginning[name]) for name in beginning)
    lane.advance(1)
    assert any(
        not np.array_equal(value, beginning[n])
        for n, value in unguarded(lane.agent).state_dict().items()
    )


@pytest.mark.parametrize("kind", ["linucb", "lints", "logistic_ts", "beta_ts", "ucb1", "sgd_ts"])
@pytest.mark.parametrize("own", [{}, {"window": 30}], ids=["all", "window"])
def test_a_detector_resets_its_row_alone(
    kind: str, own: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    if own and "window" not in REGISTRY[kind].Params.model_fields:
        own = {}
    e = experiment(
        {"kind": kind, "guards": [{"kind": "reset", "monitor": "adwin"}], **own}, steps=100
    )
    lane, undisturbed = make_lane(e, 0), make_lane(experiment({"kind": kind, **own}, steps=100), 0)
    beginning = unguarded(lane.agent).state_dict()
    rings = np.array([False, True, False, False])
    detector = lane.agent.detector  # type: ignore[attr-defined]
    monkeypatch.setattr(detector, "update", lambda values, there: rings & (lane.step == 79))
    for _ in range(80):
        lane.advance(1)
        undisturbed.use_compiled = False
        undisturbed.advance(1)
    state, other = unguarded(lane.agent).state_dict(), undisturbed.agent.state_dict()
    for name, value in state.items():
        axis = row_axis(name)
        for row in range(4):
            expected = beginning if row == 1 else other
            assert np.array_equal(value.take(row, axis), expected[name].take(row, axis)), name


def test_a_detector_resets_after_a_shock() -> None:
    rates = [[p * q for q in (1.0, 0.1, 0.1, 0.1, 0.1)] for p in (0.9, 0.9, 0.9, 0.9)]
    turned = [row[::-1] for row in rates]
    agent = {"kind": "linucb", "alpha": 0.1, "guards": [{"kind": "reset", "monitor": "adwin"}]}
    changes = [{"kind": "shock", "at": 2000, "how": turned}]
    lane = make_lane(experiment(agent, steps=3000, rows=6, click_rates=rates, changes=changes), 0)
    lane.advance(2000)
    before = lane.agent.resets.copy()  # type: ignore[attr-defined]
    lane.advance(1000)
    assert (lane.agent.resets > before).all()  # type: ignore[attr-defined]


# fallback


class Faulty(LinUCB):
    """LinUCB that raises in one of its methods, or scores NaN, from a step on."""

    class Params(LinUCB.Params):
        kind: Any = "faulty"  # type: ignore[assignment]

    where = "scores"

    def scores(self, round: Round) -> FloatArray:
        if round.step >= 150 and self.where == "scores":
            raise RuntimeError("out of order")
        found = super().scores(round)
        if round.step >= 150 and self.where == "nan":
            found[1] = np.nan
        return found

    def explain(self, round: Round) -> Any:
        if round.step >= 150 and self.where == "explain":
            raise RuntimeError("out of order")
        return super().explain(round)

    def spectrum(self, bases: list[FloatArray]) -> Any:
        if self.where == "spectrum":
            raise RuntimeError("out of order")
        return super().spectrum(bases)

    def learn(self, round: Round, slate: IntArray, feedback: Feedback) -> None:
        if round.step >= 150 and self.where == "learn":
            raise RuntimeError("out of order")
        super().learn(round, slate, feedback)


@pytest.mark.parametrize(
    ("where", "to"),
    thinned(
        [
            (where, to)
            for where in ("scores", "learn", "nan")
            for to in ("random", "epsilon_greedy", "popularity")
        ],
        lambda number: number % 4 == 0,
        lambda number: number % 4 == 0,
    ),
)
def test_a_run_goes_on_when_its_agent_fails(
    where: str, to: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(REGISTRY, "linucb", Faulty)
    monkeypatch.setattr(Faulty, "Params", LinUCB.Params)
    monkeypatch.setattr(Faulty, "where", where)
    never = {"kind": "fallback", "to": to, "budget_ms": 1000}
    agents = [{"kind": "linucb", "guards": [never]}, {"kind": "lints"}]
    first, second = (run(experiment(*agents), workers=0) for _ in range(2))
    history = first.histories["LinUCB"]
    assert history.alive.all()
    assert np.isfinite(history.sums["clicks"]).all()
    expected = np.full(4, 400 - 150 - (where == "learn"))
    if where == "nan":
        expected = np.array([0, 250, 0, 0])
    assert np.array_equal(history.sums["fallbacks"][-1], expected)
    for name, sums in history.sums.items():
        assert np.array_equal(sums, second.histories["LinUCB"].sums[name])
    alone = run(experiment({"kind": "lints"}), workers=0).histories["LinTS"]
    assert np.array_equal(alone.sums["clicks"], first.histories["LinTS"].sums["clicks"])
    assert f"{expected.sum():,} decisions by the fallback" in history.note
    if where != "nan":
        assert "RuntimeError: out of order" in history.note
    assert any("the fallback made" in s for s in fallback_sentences(first))


def test_a_fallback_has_learned_from_all_decisions(monkeypatch: pytest.MonkeyPatch) -> None:
    """When the agent fails, popularity shows the item with the highest CTR so far, (clicks + 1) /
    (shows + 2).
    """
    monkeypatch.setitem(REGISTRY, "linucb", Faulty)
    monkeypatch.setattr(Faulty, "Params", LinUCB.Params)
    lane = lane_of({"kind": "fallback", "to": "popularity", "budget_ms": 1000})
    shows, clicks, rows = np.zeros((4, 10)), np.zeros((4, 10)), np.arange(4)
    for step in range(250):
        trace = lane.advance(1)
        items, ctr = trace.items[0, :, 0], (clicks + 1) / (shows + 2)
        if step >= 150:
            np.testing.assert_allclose(ctr[rows, items], ctr.max(axis=1), rtol=1e-12)
        shows[rows, items] += 1
        clicks[rows, items] += trace.rewards[0].reshape(4)
    assert (shows.max(axis=1) > 10).all()


def test_a_fallback_shares_no_random_numbers_with_its_agent() -> None:
    drawn = {
        "kind": "lints",
        "noise": "inverse_gamma",
        "guards": [{"kind": "fallback", "to": "random"}],
    }
    lane = make_lane(experiment(drawn), 0)
    fallback: Any = lane.agent
    agent: Any = unguarded(fallback)
    for step in range(5):
        own = agent.uniforms.at(step)
        instead = fallback.policy.scores(lane.simulator.round_at(step))
        # so that common numbers would be the same
        assert own.shape == instead.shape
        assert not np.intersect1d(own, instead).size


def test_redrawn_choices_of_a_failed_agent_are_those_of_its_policy() -> None:
    guard = {"kind": "fallback", "to": "epsilon_greedy", "budget_ms": 1000}
    lane = make_lane(experiment({"kind": "lints", "guards": [guard]}), 0)
    lane.advance(20)
    agent: Any = lane.agent
    agent.broken[:] = True
    round, n = lane.simulator.round_at(lane.step), 1000
    draws = agent.redraws(round, np.random.default_rng(5))
    best = np.array([next(draws).argmax(axis=1) for _ in range(n)])
    p = agent.policy.probabilities(round)
    share = (best[:, :, None] == np.arange(p.shape[1])).mean(axis=0)
    assert (np.abs(share - p) <= 4.5 * np.sqrt(p * (1 - p) / n)).all()


@pytest.mark.parametrize("where", ["explain", "spectrum"])
def test_a_run_goes_on_when_its_agent_cannot_be_examined(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(REGISTRY, "linucb", Faulty)
    monkeypatch.setattr(Faulty, "Params", LinUCB.Params)
    monkeypatch.setattr(Faulty, "where", where)
    found = run(
        experiment({"kind": "linucb", "guards": [{"kind": "fallback", "budget_ms": 1000}]}),
        workers=0,
    )
    assert found.histories["LinUCB"].alive.all()
    assert found.histories["LinUCB"].sums["fallbacks"][-1].sum() == 0


def test_response_times_have_their_median_and_percentile() -> None:
    limits = {4.0: 0.5, 80.0: 0.01}
    for budget, share in limits.items():
        guard = {"kind": "fallback", "budget_ms": budget, "median_ms": 4, "p99_ms": 80}
        fell = lane_of(guard, steps=3000, rows=8).advance(3000).fell_back
        assert fell is not None
        assert abs(fell.mean() - share) < 4.5 * np.sqrt(share * (1 - share) / fell.size)


def test_fallbacks_are_counted_and_priced() -> None:
    slow = {"kind": "fallback", "median_ms": 2, "p99_ms": 50}
    e = experiment({"kind": "oracle", "guards": [slow]}, {"kind": "linucb"}, steps=2000, rows=8)
    result = run(e, workers=0)
    found = fallbacks(result.histories["Oracle"])
    assert found is not None
    assert fallbacks(result.histories["LinUCB"]) is None
    # of a standard normal beyond ln 5 / (ln 25 / 2.326) = 1.163
    share = 1 - 0.876
    assert abs(found.share - share) < 0.02
    # the oracle's own choices lose nothing, the fallback's are random
    h = result.histories["Oracle"].sums
    lost = (h["best_value"][-1] - h["value"][-1]).mean()
    assert found.cost.low < lost < found.cost.high
    summary = result.summary()["agents"]
    assert summary["Oracle"]["fallbacks"]["decisions"]["mean"] == h["fallbacks"][-1].mean()
    assert "fallbacks" not in summary["LinUCB"]
    copy = History(2000, 8, 10, 4)
    copy.load_state_dict(result.histories["Oracle"].state_dict())
    assert fallbacks(copy) == found


# input


@pytest.mark.parametrize(
    ("guards", "words"),
    [
        (
            [{"kind": "floor", "epsilon": 0.6}],
            ("agents.0.guards.0.epsilon (LinUCB) is 0.6", "from 0 to 0.5"),
        ),
        ([{"kind": "floor", "epsilon": 0.03, "per": "arm"}], ("50 arms", "0.03", "1.5", "0.02")),
        (
            [{"kind": "floor", "segments": [0.1, 0.2]}],
            ("segments has 2 numbers", "4, one per segment"),
        ),
        (
            [{"kind": "floor", "segments": [0.1, 0.2, 0.3, 0.9]}],
            ("guards.0", "0.9", "from 0 to 0.5"),
        ),
        (
            [{"kind": "cap", "share": 0.01}],
            ("agents.0.guards.0.share (LinUCB) is 0.01", "from 0.02 to 1"),
        ),
        (
            [{"kind": "cap", "share": 0.1}, {"kind": "floor", "shows": 9, "new": 0.4}],
            ("share is 0.1", "0.401"),
        ),
        ([{"kind": "delay", "steps": 0}], ("guards.0.steps (LinUCB) is 0", "from 1 to 100,000")),
        ([{"kind": "fallback", "budget_ms": 0}], ("guards.0.budget_ms (LinUCB) is 0", "above 0")),
        (
            [{"kind": "fallback", "p99_ms": 0.5}],
            ("guards.0", "p99_ms is 0.5", "at least median_ms"),
        ),
        ([{"kind": "reset"}], ("guards.0", "either every (steps) or monitor")),
        ([{"kind": "reset", "every": 5, "monitor": "adwin"}], ("either every (steps) or monitor",)),
        (
            [{"kind": "flor"}],
            ("guards.0.kind (LinUCB) is 'flor'", "floor, cap, delay, batch, reset, fallback"),
        ),
        ([{"kind": "cap", "shar": 0.1}], ("guards.0.shar (LinUCB) is not a known field",)),
        ([{"kind": "batch"}] * 9, ("agents.0.guards", "at most 8")),
        ("floor", ("agents.0.guards (LinUCB) is floor", "a list")),
    ],
    ids=str,
)
def test_impossible_guards_are_refused_in_one_sentence(guards: Any, words: tuple[str, ...]) -> None:
    with pytest.raises(UserError) as error:
        read({"agents": [{"kind": "linucb", "guards": guards}]})
    assert all(word in str(error.value) for word in words), error.value
    assert "\n" not in str(error.value)


def test_too_small_a_cap_and_detectors_over_networks_are_refused() -> None:
    with pytest.raises(
        UserError, match=r"10 arms with a share of at most 0\.05 each fill 0\.5 of 1 slot"
    ):
        experiment({"kind": "linucb", "guards": [{"kind": "cap", "share": 0.05}]})
    with pytest.raises(UserError, match="cannot reset single replications of"):
        experiment({"kind": "neural_greedy", "guards": [{"kind": "reset", "monitor": "adwin"}]})


@pytest.mark.parametrize("stack", STACKS.values(), ids=list(STACKS))
def test_guards_pass_through_links_and_files(stack: list[dict[str, Any]]) -> None:
    from bandits.experiments.url import parse_query, to_query

    e = experiment({"kind": "linucb", "guards": stack})
    assert parse_query(to_query(e)).experiment.hash == e.hash
    assert read(e.model_dump_json()) == e


@pytest.mark.stress
def test_late_learning_costs_no_more_where_choice_is_random() -> None:
    """Posterior draws do not repeat one arm while they wait: paired, LinTS does not lose more."""
    for guard in ({"kind": "delay", "steps": 500}, {"kind": "batch", "steps": 500}):
        both = [
            {
                "kind": kind,
                "sharing": "shared",
                "label": f"{kind}{late}",
                "guards": [guard] if late else [],
            }
            for kind in ("linucb", "lints")
            for late in (0, 1)
        ]
        simulator = {"kind": "petshop", "features": "interaction"}
        found = run(
            read({"simulator": simulator, "agents": both, "steps": 20_000, "replications": 8})
        )
        values = {label: h.sums["value"][-1] for label, h in found.histories.items()}
        lost = [values[f"{kind}0"] - values[f"{kind}1"] for kind in ("linucb", "lints")]
        difference = lost[0] - lost[1]
        error = difference.std(ddof=1) / np.sqrt(8)
        assert difference.mean() > -2.365 * error, (guard, [x.mean() for x in lost])


@pytest.mark.parametrize("name", STACKS)
@pytest.mark.parametrize("kind", ["linucb", "lints"])
def test_single_decisions_of_guarded_agents_are_explained(kind: str, name: str) -> None:
    e = experiment({"kind": kind, "guards": STACKS[name]}, steps=60, rows=2)
    trace = make_lane(e, 0).advance(60)
    for step in (1, 30, 60):
        found = why(e, 0, step, 1)
        shown = next(c for c in found.candidates if c.slot == 1)
        assert shown.item == trace.items[step - 1, 1, 0]
        assert found.reward == trace.rewards[step - 1, 1]


def test_an_explanation_names_the_guard_that_decided() -> None:
    cap = experiment(
        {"kind": "linucb", "alpha": 0.0, "guards": [{"kind": "cap", "share": 0.25}]},
        steps=80,
        rows=2,
    )
    late = {"kind": "fallback", "to": "random", "budget_ms": 10, "median_ms": 10, "p99_ms": 50}
    slow = experiment({"kind": "linucb", "guards": [late]}, steps=80, rows=2)
    for e, words in ((cap, "at the limit of the exposure cap"), (slow, "the fallback stood in")):
        found = [why(e, 0, step) for step in range(60, 81, 3)]
        sentences = [explain_decision(each)[0] for each in found]
        assert any(each.startswith("A guard chose ") and words in each for each in sentences)
        assert all(
            ("A guard" in each) == bool(w.guard) for each, w in zip(sentences, found, strict=True)
        )
        assert not all(w.guard for w in found)


def test_a_geometric_delay_has_the_mean_that_it_states() -> None:
    """Of 20,000 steps: within four standard errors, .6 of 20 steps."""
    guard: Any = lane_of({"kind": "delay", "steps": 20, "law": "geometric"}).agent
    waits = np.array([guard.due_at(step, 0) for step in range(20_000)])
    assert abs(waits.mean() - 20) < 4 * np.sqrt(20 * 21 / 20_000)
    assert waits.min() == 0
