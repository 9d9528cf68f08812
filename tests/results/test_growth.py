"""Lines of known growth beside the cumulative regret."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest

from bandits import run
from bandits.results import metrics
from bandits.results.figures.board import board
from bandits.results.figures.growth import growth
from bandits.results.figures.style import Spec
from bandits.results.result import Result
from tests.support import experiment


@lru_cache(maxsize=1)
def small_run() -> Result:
    return run(experiment("oracle", "ucb1", "random", steps=2000, replications=2), workers=0)


def references(spec: Spec) -> dict[str, Spec]:
    return {t["name"]: t for t in spec["data"] if t.get("meta") == "reference"}


def test_the_lines_meet_the_leading_learner_at_half_of_the_run() -> None:
    """The oracle, which loses nothing, does not lead."""
    found = growth(small_run())
    assert found is not None
    assert (found.label, found.step) == ("UCB1", 1000)
    own = metrics.pseudo_regret(small_run().histories["UCB1"])
    middle = list(own.x).index(1000)
    for line in found.lines.values():
        assert line.mid[middle] == pytest.approx(own.mid[middle])
    root, log = found.lines["√T"].mid, found.lines["log T"].mid
    assert root[-1] / root[middle] == pytest.approx(2**0.5)
    assert log[-1] / log[middle] == pytest.approx(np.log(2001) / np.log(1001))


def test_they_are_drawn_on_request_beside_the_regret_alone() -> None:
    result = small_run()
    assert not references(board(result)[1])
    rate, regret, *others = board(result, growth=True)
    assert list(references(regret)) == ["√T", "log T"]
    assert "both meet UCB1 at step 1,000" in regret["layout"]["meta"]["note"]
    assert not {"√T", "log T"} & {name for spec in (rate, *others) for name in references(spec)}
    assert "√T" in {t.name for t in result.plot("pseudo_regret", growth=True).data}
    earned = references(board(result, x="earned", growth=True)[1])["√T"]
    assert earned["x"][-1] == metrics.cumulative_clicks(result.histories["UCB1"]).mid[-1]


def test_there_are_none_where_nothing_is_lost_or_known() -> None:
    only = run(experiment("oracle", steps=100, replications=2), workers=0)
    assert growth(only) is None
    waiting = experiment("ucb1", steps=100)
    assert growth(Result(waiting, {"UCB1": waiting.empty_history()})) is None
    assert growth(Result(waiting, {})) is None
