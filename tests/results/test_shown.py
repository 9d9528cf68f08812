"""Who is shown what: shares of categories by user segment, beside those of the optimal choice."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest

from bandits import read, run
from bandits.results.items.shown import BEST, maps, shown
from bandits.results.result import Result
from bandits.simulators.petshop_rates import CATEGORIES, CLICK_RATES, SPOKEN_PERSONAS


@lru_cache(maxsize=2)
def played(kind: str = "petshop") -> Result:
    simulator = {"kind": kind, "n_products": 20, "n_users": 300}
    agents = [{"kind": "oracle"}, {"kind": "random"}]
    return run(
        read({"simulator": simulator, "agents": agents, "steps": 800, "replications": 4}),
        workers=0,
    )


def test_the_optimal_choice_is_the_category_with_the_highest_rate() -> None:
    """The simulator's table states it; the oracle shows it always."""
    found = shown(played())
    wanted = np.eye(len(CATEGORIES))[np.argmax(CLICK_RATES, axis=1)]
    np.testing.assert_array_equal(found[BEST], wanted)
    np.testing.assert_array_equal(found["Oracle"], wanted)


def test_shares_are_counted_from_what_was_shown() -> None:
    share = shown(played())["Random"]
    np.testing.assert_allclose(share.sum(axis=1), 1)
    # some 800 decisions of each segment over all replications
    np.testing.assert_allclose(share, 1 / len(CATEGORIES), atol=5 * (0.2 * 0.8 / 600) ** 0.5)


def test_equally_good_categories_share_the_optimal_choice() -> None:
    e = read(
        {
            "simulator": {"kind": "petshop", "n_products": 20, "click_rates": [[0.3] * 5] * 4},
            "agents": [{"kind": "random"}],
            "steps": 200,
            "replications": 2,
        }
    )
    np.testing.assert_allclose(shown(run(e, workers=0))[BEST], 1 / 5)


def test_one_map_for_the_truth_and_for_each_agent() -> None:
    plots = maps(played())
    assert [plot["layout"]["title"]["text"] for plot in plots] == [BEST, "Oracle", "Random"]
    (cells,) = plots[1]["data"]
    assert (cells["x"], cells["y"]) == (list(CATEGORIES), list(SPOKEN_PERSONAS))


@pytest.mark.parametrize(("kind", "known"), [("sessions", ["Oracle", "Random"]), ("wheel", [])])
def test_maps_need_segments_and_categories(kind: str, known: list[str]) -> None:
    """During a visit the best choice depends on what was shown before."""
    simulator = {"kind": kind}
    agents = [{"kind": "oracle"}, {"kind": "random"}]
    e = read({"simulator": simulator, "agents": agents, "steps": 60, "replications": 2})
    assert list(shown(run(e, workers=0))) == known


def test_agents_without_steps_have_no_map() -> None:
    e = played().experiment
    assert shown(Result(e, {"Random": e.empty_history()})) == {}
