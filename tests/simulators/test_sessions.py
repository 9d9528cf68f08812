"""Visits of many clicks: the exact optimum, simulated visits, the state, bounds and refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bandits.base.errors import UserError
from bandits.base.randomness import Streams
from bandits.experiments.experiment import read
from bandits.experiments.lane import COLUMNS
from bandits.experiments.lockstep import Lockstep, make_lane, run_to_end
from bandits.results.metric_registry import METRICS
from bandits.simulators.sessions import Sessions, solve

# of an independent trial: mean over the personas from mood 2 on, with 40 steps at most
OPTIMA = {1.0: 7.2452, 0.75: 7.3419, 0.5: 7.5012, 0.0: 9.8380}
SHORT_SIGHTED = {1.0: 4.9888, 0.5: 6.5737, 0.0: 9.8380}
UNIFORM = {1.0: 2.2957, 0.5: 2.5369, 0.0: 2.8328}


def experiment(*agents: Any, steps: int = 2000, replications: int = 4, **options: Any) -> Any:
    return read(
        {
            "simulator": {"kind": "sessions", **options},
            "agents": [{"kind": a} if isinstance(a, str) else a for a in agents],
            "steps": steps,
            "replications": replications,
        }
    )


@pytest.mark.parametrize("consequence", OPTIMA)
def test_value_iteration_equals_an_independent_trial(consequence: float) -> None:
    found = solve(Sessions.Params(consequence=consequence))
    assert found.optimal == pytest.approx(OPTIMA[consequence], abs=1e-3)
    if consequence in SHORT_SIGHTED:
        assert found.short_sighted == pytest.approx(SHORT_SIGHTED[consequence], abs=1e-3)
        assert found.uniform == pytest.approx(UNIFORM[consequence], abs=1e-3)
    if consequence:
        assert found.fixed == pytest.approx(7.1087, abs=1e-3)


def test_without_a_limit_of_steps_it_equals_the_trial_too() -> None:
    found = solve(Sessions.Params(limit=None))
    assert found.optimal == pytest.approx(7.8571, abs=1e-3)
    assert found.short_sighted == pytest.approx(4.9941, abs=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"intent": 0.4, "reward": "purchase"}, {"limit": None}])
def test_simulated_visits_earn_what_value_iteration_states(options: dict[str, Any]) -> None:
    """About 3,000 to 8,000 visits each; the benchmark of docs/SESSIONS.md makes 200,000."""
    e = experiment(
        "oracle",
        {"kind": "oracle", "maximises": "step"},
        "random",
        replications=100,
        steps=600,
        n_products=10,
        observed="nothing",
        **options,
    )
    exact = solve(e.simulator)
    run = Lockstep(e)
    run_to_end(run)
    expected = exact.optimal, exact.short_sighted, exact.uniform
    for history, value in zip(run.histories.values(), expected, strict=True):
        clicks, visits = history.sums["clicks"][-1], history.sums["visits"][-1]
        ratio = clicks.sum() / visits.sum()
        error = (clicks - ratio * visits).std(ddof=1) * np.sqrt(len(visits)) / visits.sum()
        # a visit that the end of the run cuts off
        assert abs(ratio - value) < 4 * error + value / visits.mean()


@pytest.mark.slow
def test_what_choices_lose_adds_up_to_the_distance_from_the_optimum() -> None:
    e = experiment("random", "oracle", replications=100, steps=600, n_products=10)
    run = Lockstep(e)
    run_to_end(run)
    random, oracle = run.histories.values()
    exact = solve(e.simulator)
    lost = METRICS["visit_regret"].estimate(random)
    assert lost.low - 0.05 < exact.optimal - exact.uniform < lost.high + 0.05
    assert METRICS["visit_regret"].rows(oracle) == pytest.approx(0, abs=1e-9)
    length = METRICS["visit_length"].rows(random)
    assert length == pytest.approx(600 / random.sums["visits"][-1])


@pytest.mark.parametrize("observed", ["history", "mood", "nothing"])
def test_a_run_does_not_depend_on_chunks_rows_or_interruptions(observed: str) -> None:
    e = experiment("linucb", steps=60, n_products=10, observed=observed, intent=0.5)
    whole = make_lane(e, 0).advance(60)
    first, second = make_lane(e, 0), make_lane(e, 0)
    begun = first.advance(23)
    second.load_state_dict(first.state_dict())
    rest = second.advance(37)
    alone = make_lane(e, 0, rows=[2]).advance(60)
    for name in (*COLUMNS, "ended", "lost"):
        column = getattr(whole, name)
        np.testing.assert_array_equal(
            np.concatenate([getattr(begun, name), getattr(rest, name)]), column
        )
        np.testing.assert_array_equal(getattr(alone, name)[:, 0], column[:, 2])


def test_agents_serve_the_same_visitors_with_the_same_numbers() -> None:
    """Visitor n has the same persona and the same click numbers, at whichever step it comes."""
    a, b = (Sessions(Sessions.Params(), Streams(3, range(4))) for _ in range(2))
    b.visitor += 5
    while (waiting := a.visitor < 5).any():
        a.move(a.round_at(0), np.zeros((4, 1), np.int64), a.uniforms.at(0))
        # those who have come are kept
        a.visitor[~waiting] = 5
    a.visited[:] = 0
    round = a.round_at(7)
    np.testing.assert_array_equal(round.users, b.round_at(900).users)
    np.testing.assert_array_equal(a.uniforms.at(7), b.uniforms.at(900))
    assert len(np.unique(a.uniforms.at(0))) == 4


def test_the_history_shows_the_last_five_clicks() -> None:
    shop = Sessions(Sessions.Params(n_products=20), Streams(3, range(2)))
    for kind in (3, 9, 2):
        shop.move(shop.round_at(0), np.full((2, 1), kind + 10), np.zeros((2, 1)))
        shop.visited[:] = 0
    round = shop.round_at(3)
    seen = round.features[:, 0, -50:].reshape(2, 5, 10)
    for row in range(2):
        known = shop.clicked[row] < 10
        np.testing.assert_array_equal(seen[row].argmax(axis=1)[known], shop.clicked[row][known])
        assert seen[row].sum() == known.sum()
    contexts, index = round.contexts.distinct or (None, np.empty(0))
    assert contexts is not None
    np.testing.assert_array_equal(contexts.dense(round.context)[:, index], round.features)


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"mood_up": 0.8, "treat_down": 0.9, "consequence": 0.5, "lift": 5}, "lift"),
        ({"mood_up": 1, "treat_down": 1, "leave": [0.1, 0.1, 0.1, 0.1, 2]}, "leave"),
        ({"leave": [0, 0.1, 0.1, 0.1, 0.1], "limit": None}, "leave"),
        ({"consequence": 1.5}, "consequence"),
        ({"limit": 0}, "limit"),
        ({"observed": "everything"}, "observed"),
        ({"n_products": 9}, "n_products"),
    ],
)
def test_what_is_impossible_is_refused_in_one_sentence(options: dict[str, Any], field: str) -> None:
    with pytest.raises(UserError, match=field) as refused:
        experiment("random", **options)
    assert "\n" not in str(refused.value)


def test_a_guard_that_shows_past_steps_again_is_refused() -> None:
    with pytest.raises(UserError, match=r"guards\.0.*visits"):
        experiment({"kind": "linucb", "guards": [{"kind": "delay", "steps": 5}]})
