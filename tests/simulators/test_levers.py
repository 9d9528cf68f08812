"""Levers: what means are, what rewards are, and which inputs are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bandits import UserError, read, run
from bandits.base.randomness import Streams
from bandits.experiments.history import History
from bandits.results.metric_registry import METRICS
from bandits.simulators.levers import Levers


def levers(rows: int = 4, **params: Any) -> Levers:
    return Levers(Levers.Params(**params), Streams(5, range(rows)))


def means(simulator: Levers, step: int = 0) -> Any:
    return simulator.probabilities(simulator.round_at(step))


def test_means_are_those_of_the_layout() -> None:
    fixed = means(levers(means="fixed", values=(0.6, 0.1, 0.1)))
    np.testing.assert_array_equal(fixed, np.tile([0.6, 0.1, 0.1], (4, 1)))
    good = means(levers(200, means="one_good", gap=0.1, layout="per_row"))
    assert ((good == 0.5).sum(axis=1) == 1).all()
    assert (np.sort(good, axis=1)[:, :-1] == 0.4).all()
    # each lever is the good one of some layout
    assert len(set(good.argmax(axis=1))) == 10
    drawn = means(levers(2000, means="normal", reward="gaussian", layout="per_row"))
    # 20,000 standard normals
    assert abs(drawn.mean()) < 4 / 20_000**0.5
    assert abs(drawn.std() - 1) < 4 / 40_000**0.5
    assert (np.ptp(means(levers(4)), axis=0) == 0).all()


@pytest.mark.parametrize("drawn", ["uniform", "normal", "one_good"])
def test_an_offset_moves_all_means_that_are_drawn_and_changes_no_gap(drawn: str) -> None:
    at_zero = levers(means=drawn, reward="gaussian", layout="per_row")
    moved = levers(means=drawn, reward="gaussian", layout="per_row", offset=4.0)
    np.testing.assert_array_equal(means(moved), means(at_zero) + 4)
    np.testing.assert_array_equal(moved.log(0, 20).means, at_zero.log(0, 20).means + 4)


def test_an_offset_moves_no_clicks_and_no_means_that_are_given() -> None:
    np.testing.assert_array_equal(means(levers(offset=4.0)), means(levers()))
    given = levers(means="fixed", reward="gaussian", offset=4.0)
    np.testing.assert_array_equal(means(given)[0], [0.6, 0.1, 0.1])


@pytest.mark.parametrize("reward", ["bernoulli", "gaussian", "student_t"])
def test_rewards_have_the_mean_and_the_noise_that_are_stated(reward: str) -> None:
    simulator = levers(1, means="fixed", values=(0.3, 0.7), reward=reward, noise=0.5, tail=5.0)
    round, n = simulator.round_at(0), 4000
    slate = np.ones((1, 1), np.int64)
    grid = (np.arange(n) + 0.5) / n
    drawn = np.array(
        [simulator.respond(round, slate, np.array([[u]]))[0].rewards[0, 0] for u in grid]
    )
    spread = {"bernoulli": 0.21**0.5, "gaussian": 0.5, "student_t": 0.5 * (5 / 3) ** 0.5}
    np.testing.assert_allclose(drawn.mean(), 0.7, atol=1e-3)
    np.testing.assert_allclose(drawn.std(), spread[reward], rtol=0.01)


def test_a_shock_moves_every_mean_and_a_season_returns() -> None:
    simulator = levers(
        means="fixed",
        values=(0.1, 0.2, 0.3),
        changes=({"kind": "shock", "at": 5, "how": "reverse"},),
    )
    np.testing.assert_array_equal(means(simulator, 4)[0], [0.1, 0.2, 0.3])
    np.testing.assert_array_equal(means(simulator, 5)[0], [0.3, 0.2, 0.1])
    season = levers(changes=({"kind": "season", "period": 40, "amplitude": 0.5},))
    np.testing.assert_allclose(means(season, 7), means(season, 47))
    assert (means(season, 7) != means(season, 17)).any()


def optimal(history: History) -> Any:
    return METRICS["optimal_choice"].rows(history)


def test_the_optimal_choice_is_the_share_of_pulls_of_any_best_lever() -> None:
    values = (0.5, 0.2, 0.5, 0.1)
    result = run(
        read(
            {
                "simulator": {"kind": "levers", "means": "fixed", "values": values},
                "agents": [{"kind": "oracle"}, {"kind": "random"}, {"kind": "ucb1"}],
                "steps": 300,
                "replications": 5,
            }
        )
    )
    assert (optimal(result.histories["Oracle"]) == 1).all()
    for history in result.histories.values():
        shown = history.counts[-1]
        np.testing.assert_allclose(optimal(history), (shown[:, 0] + shown[:, 2]) / 300, rtol=1e-12)


def test_a_history_without_optimal_choices_opens_and_continues_without_them() -> None:
    """Version 1.0 stored no such sum."""
    result = run(read({"simulator": {"kind": "levers"}, "agents": [{"kind": "ucb1"}], "steps": 50}))
    state = result.histories["UCB1"].state_dict()
    old = {k: v for k, v in state.items() if not k.endswith(".optimal")}
    assert len(old) == len(state) - 2
    history = History(100, result.experiment.replications, 10)
    history.load_state_dict(old)
    assert "optimal" not in history.sums
    assert np.isnan(optimal(history)).all()
    assert METRICS["optimal_choice"].curve is not None
    assert METRICS["optimal_choice"].curve(history, 10) is None


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"n_arms": 1}, "simulator.n_arms is 1"),
        ({"means": "fixed", "values": (0.2, 1.2)}, "simulator.values has 1.2"),
        ({"means": "fixed", "values": (0.2,)}, "simulator.values is [0.2]"),
        ({"means": "normal"}, "simulator.means normal"),
        ({"reward": "student_t", "tail": 1.0}, "simulator.tail is 1"),
    ],
)
def test_impossible_levers_are_refused_by_their_field(params: Any, sentence: str) -> None:
    with pytest.raises(UserError) as refusal:
        read({"simulator": {"kind": "levers", **params}, "agents": [{"kind": "random"}]})
    assert sentence in str(refusal.value)
    assert "\n" not in str(refusal.value)
