"""Figures of guards: what they draw is what the counts say."""

from __future__ import annotations

import numpy as np

from bandits import run
from bandits.experiments.guarding import with_and_without
from bandits.monitoring.figures import exposure, exposure_by_segment
from bandits.results import metrics
from bandits.results.items.fairness import less_shown_half
from tests.support import experiment

SHOP = {"kind": "petshop", "n_products": 10}


def test_exposure_by_segment_is_the_share_of_the_less_shown_half() -> None:
    plain = experiment(
        {"kind": "linucb", "alpha": 0.2}, "random", simulator=SHOP, steps=4000, replications=4
    )
    result = run(
        with_and_without(plain, {"kind": "floor", "epsilon": 0.3}, ["LinUCB", "Random"]), workers=0
    )
    spec = exposure_by_segment(result)
    assert spec is not None
    drawn = {trace["name"]: trace for trace in spec["data"]}
    shown = result.histories["LinUCB"].segments
    assert shown is not None
    last = np.sort(shown.counts[-1], axis=2)
    share = (last[:, :, :5].sum(axis=2) / last.sum(axis=2)).mean(axis=0)
    # 0 is drawn at the edge of the logarithmic axis
    np.testing.assert_allclose(drawn["LinUCB"]["x"][share > 0], share[share > 0])
    assert (share > 0).any()
    # half of what the floor draws, with noise
    assert (drawn["LinUCB exploration floor"]["x"] > 0.3 / 2 * 0.8).all()
    assert (drawn["LinUCB exploration floor"]["x"] > drawn["LinUCB"]["x"]).all()
    assert (drawn["Random"]["x"] > 0.4).all()
    assert (
        list(spec["layout"]["yaxis"]["ticktext"])
        == result.experiment.simulator_class().segment_names()
    )
    assert len(exposure(result)["data"]) == len(drawn)


def test_a_simulator_without_segments_has_no_such_figure() -> None:
    result = run(
        experiment("random", simulator={"kind": "synthetic"}, steps=300, replications=2), workers=0
    )
    assert exposure_by_segment(result) is None


def test_a_share_of_zero_is_drawn_at_the_left_end() -> None:
    """LinUCB without exploration shows a few arms only: the axis is logarithmic, and 0 has its own
    sign.
    """
    agents = [
        {"kind": "linucb", "alpha": 0},
        "random",
        {"kind": "linucb", "alpha": 0.1, "label": "some"},
    ]
    result = run(experiment(*agents, simulator=SHOP, steps=2000, replications=3), workers=0)
    spec = exposure_by_segment(result)
    assert spec is not None
    greedy, random, some = spec["data"]
    shares = less_shown_half(result.histories["LinUCB"])
    assert shares is not None
    zero = shares.mean(axis=0) == 0
    assert zero.any()
    assert [
        symbol == "triangle-left-open" for symbol in greedy["marker"]["symbol"]
    ] == zero.tolist()
    assert (greedy["x"][zero] < random["x"].min() / 10).all()
    for end in ("array", "arrayminus"):
        assert (greedy["error_x"][end][zero] == 0).all()
    assert set(random["marker"]["symbol"]) == {"circle"}
    few = less_shown_half(result.histories["some"])
    assert few is not None
    # it cannot be drawn
    assert min(metrics.estimate(segment).low for segment in few.T) < 0
    assert (some["x"] - some["error_x"]["arrayminus"] > 0).all()


def test_one_replication_has_no_bars_and_a_segment_without_visitors_no_point() -> None:
    shop = {**SHOP, "persona_shares": [1e-6, 0.4, 0.3, 0.299999]}
    result = run(
        experiment({"kind": "linucb", "alpha": 0}, simulator=shop, steps=500, replications=1),
        workers=0,
    )
    spec = exposure_by_segment(result)
    assert spec is not None
    (trace,) = spec["data"]
    empty = np.isnan(trace["x"])
    assert empty.sum() == 1
    assert [text.endswith(": –") for text in trace["text"]] == empty.tolist()
    known = ~empty & (np.array(trace["marker"]["symbol"]) == "circle")
    assert np.isnan(trace["error_x"]["array"][known]).all()
