"""Reward per step of each user segment over time."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from bandits import read, run
from bandits.results.items.segment_rates import BEST, best_rates, plots, segment_rates
from bandits.results.result import Result
from bandits.simulators.petshop_rates import CLICK_RATES, SPOKEN_PERSONAS


@lru_cache(maxsize=2)
def played(kind: str = "petshop") -> Result:
    agents = [{"kind": "oracle"}, {"kind": "random"}]
    e = {"simulator": {"kind": kind}, "agents": agents, "steps": 800, "replications": 4}
    return run(read(e), workers=0)


def test_rates_between_snapshots_add_up_to_the_clicks_of_the_run() -> None:
    result = played()
    history = result.histories["Random"]
    kept = history.segment_sums
    rates = segment_rates(history)
    assert kept is not None
    assert rates is not None
    visits = np.diff(kept.sums[: kept.reached(history.step), ..., 0].sum(axis=1), axis=0)
    clicks = sum(float(band.mid @ visits[visits[:, g] > 0, g]) for g, band in enumerate(rates))
    assert clicks == np.round(history.sums["clicks"][-1].sum())


def test_the_best_choice_has_the_rate_of_the_simulators_table() -> None:
    best = best_rates(played().histories["Random"])
    assert best is not None
    for band, row in zip(best, CLICK_RATES, strict=True):
        np.testing.assert_allclose(band.mid, max(row))


def test_one_plot_for_each_segment_with_a_line_for_each_agent() -> None:
    drawn = plots(played())
    assert [plot["layout"]["title"]["text"] for plot in drawn] == list(SPOKEN_PERSONAS)
    lines = [t["name"] for t in drawn[0]["data"] if not t.get("fill")]
    assert lines == ["Oracle", "Random", BEST]


def test_no_plots_without_segments_or_steps() -> None:
    result = played()
    assert not plots(played("wheel"))
    assert not plots(Result(result.experiment, {"Random": result.experiment.empty_history()}))
