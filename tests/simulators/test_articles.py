"""Three articles: listing 16.3 of chapter 16, its trap of unscaled features, and what products of
features mend.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bandits import run
from bandits.base.randomness import Streams
from bandits.base.types import FloatArray
from bandits.experiments.experiment import UserError, read
from bandits.experiments.presets import presets
from bandits.simulators.articles import ARTICLES, RATES, VISITOR, VISITORS, Articles
from bandits.sweeps.presets import presets as sweep_presets
from tests.contract.worlds import make

ENCODINGS = ("concatenation", "interaction")
SCALES = ("none", "minmax")
FIRST = {"none": [21.50, 21.16, 41.77], "minmax": [2.79, 2.60, 3.36]}


def simulator_of(**options: Any) -> Articles:
    return Articles(Articles.Params(**options), Streams(5, (0, 1, 2)))


def first_bonuses(**options: Any) -> FloatArray:
    lane = make(
        "linucb", Articles, rows=(0, 1), options=options, alpha=1.5, ridge=1.0, sharing="shared"
    )
    found = lane.agent.explain(lane.simulator.round_at(0))
    assert found.width is not None
    np.testing.assert_array_equal(found.width[0], found.width[1])
    return np.asarray(1.5 * found.width[0])


@pytest.mark.parametrize("scale", SCALES)
def test_the_first_bonuses_are_those_of_the_listing(scale: str) -> None:
    assert [round(b, 2) for b in first_bonuses(scale=scale)] == FIRST[scale]


@pytest.mark.parametrize("scale", SCALES)
def test_products_of_features_are_those_of_visitor_and_article(scale: str) -> None:
    beside, product = simulator_of(scale=scale), simulator_of(scale=scale, encoding="interaction")
    x, y = beside.round_at(0).features[0], product.round_at(0).features[0]
    np.testing.assert_allclose(y, [np.outer(row[:5], row[5:]).ravel() for row in x], rtol=1e-15)
    if scale == "none":
        np.testing.assert_array_equal(x, np.hstack([np.tile(VISITOR, (3, 1)), ARTICLES]))


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("scale", SCALES)
def test_click_rates_are_those_of_device_and_engagement(encoding: str, scale: str) -> None:
    built = simulator_of(encoding=encoding, scale=scale)
    devices = set()
    for step in range(60):
        features = built.round_at(step).features
        for x, p in zip(features, built.probabilities(built.round_at(step)), strict=True):
            # article 1: tech is 1
            visitor = x[0, :5] if encoding == "concatenation" else x[0].reshape(5, 4)[:, 0]
            device = int(visitor[:3].argmax())
            devices.add(device)
            np.testing.assert_allclose(p, RATES[device] + 0.1 * (visitor[4] - 0.5), rtol=1e-12)
    assert devices == {0, 1, 2}
    # another article for each device
    assert (RATES.argmax(axis=1) == [0, 1, 2]).all()


def test_visitors_are_uniform_over_the_grid() -> None:
    drawn = simulator_of().draw_features(np.random.default_rng(0), 40_000)[:, 0, :5]
    mean, sd = VISITORS.mean(axis=0), VISITORS.std(axis=0)
    assert (np.abs(drawn.mean(axis=0) - mean) / (sd / 200) < 4).all()
    assert np.unique(drawn, axis=0).shape == VISITORS.shape


@pytest.mark.slow
def test_products_reach_the_best_choice_and_sums_do_not() -> None:
    """The preset: a model that is shared prefers one article for all.

    The limit is its best column of rates.
    """
    experiment = presets()["articles"].experiment
    summary = run(experiment, workers=0).summary()["agents"]
    limit, best = RATES.mean(axis=0).max(), RATES.max(axis=1).mean()
    assert summary["LinUCB shared"]["ctr"]["low"] < limit + 0.01
    assert summary["LinUCB per arm"]["ctr"]["low"] > 0.9 * best > limit
    mended = read(
        {
            **experiment.model_dump(mode="json"),
            "simulator": {"kind": "articles", "encoding": "interaction"},
        }
    )
    assert run(mended, workers=0).summary()["agents"]["LinUCB shared"]["ctr"]["low"] > 0.9 * best


@pytest.mark.parametrize("scale", SCALES)
def test_before_it_learns_the_agent_shows_the_oldest_article_to_everybody(scale: str) -> None:
    """As under the preset's batch of 500: the third article has the longest features in all four
    cases.
    """
    assert [guard.kind for guard in presets()["articles"].experiment.agents[1].guards] == ["batch"]
    for encoding in ENCODINGS:
        options = {"scale": scale, "encoding": encoding}
        lane = make("linucb", Articles, rows=(0, 1), options=options, alpha=1.5, sharing="shared")
        scores = [lane.agent.explain(lane.simulator.round_at(step)).score for step in range(500)]
        assert {int(best) for score in scores for best in score.argmax(axis=1)} == {2}


def test_the_sweep_preset_compares_all_four_features() -> None:
    axes = {axis.path: list(axis.values) for axis in sweep_presets()["articles"].sweep.axes}
    assert axes == {"simulator.encoding": list(ENCODINGS), "simulator.scale": list(SCALES)}


def test_unknown_encodings_and_scales_are_refused() -> None:
    for options, text in (
        ({"encoding": "sum"}, "simulator.encoding"),
        ({"scale": "norm"}, "simulator.scale"),
    ):
        with pytest.raises(UserError, match=text):
            read({"simulator": {"kind": "articles", **options}, "agents": [{"kind": "random"}]})


@pytest.mark.parametrize("kind", ["classification", "wheel"])
def test_interaction_is_another_name_of_block(kind: str) -> None:
    def named(encoding: str) -> Any:
        agents = [{"kind": "linucb", "sharing": "shared"}]
        return read({"simulator": {"kind": kind, "encoding": encoding}, "agents": agents})

    assert named("interaction") == named("block") != named("context")
    assert named("interaction").hash == named("block").hash
    with pytest.raises(UserError, match=r"simulator\.encoding"):
        named("product")
