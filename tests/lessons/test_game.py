"""Games by hand: the rewards are those of an ordinary run, and agents play the same levers."""

from __future__ import annotations

import numpy as np
import pytest

from bandits import UserError
from bandits.experiments.experiment import read
from bandits.experiments.lockstep import make_lane
from bandits.lessons import game, lessons
from bandits.lessons.answers import pulls_from_link, pulls_to_link

LESSON = lessons()["pull-the-levers"]


@pytest.mark.parametrize("name", LESSON.games)
def test_a_pull_gives_what_it_gives_to_an_agent_of_an_ordinary_run(name: str) -> None:
    played = LESSON.games[name].game(7)
    lane = make_lane(played.experiment, 0, (0,))
    lane.use_compiled = False
    trace = lane.advance(played.pulls)
    mine = played.by_hand([int(i) for i in trace.items[:, 0, 0]])
    np.testing.assert_array_equal(mine.rewards[0], trace.rewards[:, 0])
    np.testing.assert_array_equal(mine.best[0], trace.value[:, 0] == trace.best_value[:, 0])


def test_agents_differ_in_their_own_draws_alone() -> None:
    played = LESSON.games["ten"].game(3)
    # all games start from the same rewards: no game earns more than the best of them allows
    for label, games in played.agents.items():
        assert games.rewards.shape == (game.GAMES, 40), label
        assert (games.rewards.sum(axis=1) <= played.rewards.max(axis=1).sum()).all()
    thompson = played.agents["Thompson sampling"]
    assert len(np.unique(thompson.rewards.sum(axis=1))) > 5
    # the same levers again
    again = game.Game(played.experiment)
    np.testing.assert_array_equal(again.agents["Thompson sampling"].rewards, thompson.rewards)


def test_the_verdict_and_the_plots_hold_the_counts() -> None:
    played = LESSON.games["ten"].game(3)
    best = int(played.means[0].argmax())
    pulls = [best] * 17 + [(best + 1) % 10] * 23
    score = played.score(pulls)
    assert score.best == 17
    assert played.verdict(pulls).startswith("You pulled the best lever 17 times of 40; Thompson")
    known = played.known(pulls)
    assert [len(each) for each in known if each] in ([17, 23], [23, 17])
    assert sum(map(sum, known)) == score.points
    assert played.curves(pulls)["data"][-1]["y"][-1] == score.points
    others = [score, score, game.Score(3, 9.0)]
    dots = played.all_players(others, score)["data"]
    assert list(dots[0]["x"]) == [17, 3]
    assert dots[0]["text"] == ["2 players", "1 player"]
    assert [trace["name"] for trace in dots[2:]] == list(played.experiment.labels)


def test_a_visitor_has_dots_of_its_own_and_a_change_moves_the_best_lever() -> None:
    visitors, switch = (LESSON.games[name].game(5) for name in ("visitors", "switch"))
    assert len(visitors.visitors) == 2
    counts = [len(visitors.known([0] * 40, segment)[0]) for segment in np.unique(visitors.segments)]
    assert sum(counts) == 40
    assert min(counts) > 5
    best = switch.means.argmax(axis=1)
    assert len(set(best[:21])) == len(set(best[21:])) == 1
    assert best[0] != best[-1]


def test_pulls_of_a_link_are_those_of_the_game() -> None:
    made = {"ten": [0, 9, 4], "switch": [2]}
    assert pulls_from_link(LESSON, pulls_to_link(made)) == made
    assert pulls_from_link(LESSON, f"ten={'1' * 41};visitors=5;switch=3;x=1;ten=-1;long=1") == {}


@pytest.mark.parametrize(
    ("simulator", "steps", "words"),
    [
        ({"kind": "levers", "n_arms": 11}, 40, "at most 10"),
        ({"kind": "levers"}, 101, "at most 100"),
        ({"kind": "levers", "reward": "gaussian"}, 40, "rewards of 0 and 1"),
        ({"kind": "sessions"}, 40, "no visits"),
        ({"kind": "ranking"}, 40, "a game"),
    ],
)
def test_what_cannot_be_played_by_hand_is_refused(
    simulator: dict[str, object], steps: int, words: str
) -> None:
    experiment = read({"simulator": simulator, "agents": [{"kind": "random"}], "steps": steps})
    with pytest.raises(UserError, match=words):
        game.check(experiment)
