"""Worked examples: closed forms, the sources' digits, and the agents' own models."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from scipy.special import betainc

from bandits.lessons import svg
from bandits.lessons.expressions import evaluate, parse
from bandits.lessons.sources import WorkedSource
from bandits.lessons.worked import REGISTRY, WorkedExample
from bandits.lessons.worked.articles import VISITOR, Articles
from bandits.lessons.worked.base import Shop
from bandits.lessons.worked.logbook import Logbook
from bandits.lessons.worked.peeking import false_alarms
from bandits.lessons.worked.popularity_log import PopularityLog
from bandits.lessons.worked.posteriors import Posteriors
from bandits.lessons.worked.rare_feature import CLICKS, GRAM, RARE, RareFeature
from bandits.lessons.worked.rollout import DECISIONS, Rollout, signed_rewards
from bandits.lessons.worked.trial import Trial
from bandits.models.linear.ridge import Ridge
from bandits.serving import rollout as serving


def model(gram: np.ndarray, b: np.ndarray, ridge: float) -> Ridge:
    """The agents' own ridge model after the same observations."""
    made = Ridge(np.array([ridge]), len(b), 1, "per_arm")
    made.refit(gram[None, None], b[None, None], np.array([[4]]))
    return made


def test_the_rare_feature_has_the_quoted_weights_and_the_closed_form() -> None:
    values = RareFeature.values(RareFeature.Params())
    for name, quoted in (
        ("plain_common", 0.1919),
        ("plain_rare", 0.8081),
        ("ridge_common", 0.1940),
        ("ridge_rare", 0.4030),
    ):
        assert round(values[name], 4) == quoted
    assert values["plain_rare"] == pytest.approx(80 / 99, abs=1e-12)
    assert values["plain_common"] == pytest.approx(19 / 99, abs=1e-12)
    assert values["ridge_rare"] == pytest.approx((101 * 1 - 1 * 20) / (101 * 2 - 1), abs=1e-12)
    assert values["plain_error"] == pytest.approx(
        20 - CLICKS @ np.linalg.solve(GRAM, CLICKS), abs=1e-12
    )


@pytest.mark.parametrize("ridge", [0.5, 1.0, 7.0])
def test_the_examples_compute_what_the_agents_compute(ridge: float) -> None:
    rare = model(GRAM, CLICKS, ridge)
    np.testing.assert_allclose(RareFeature.weights(ridge), rare.theta[0, 0], atol=1e-12)
    variance = RARE @ rare.inverse[0, 0] @ RARE
    assert RareFeature.width(RARE, ridge) == pytest.approx(np.sqrt(variance), abs=1e-12)
    params = Logbook.Params(ridge=ridge)
    D, c = Logbook.data(params)
    np.testing.assert_allclose(
        Logbook.weights(params), model(D.T @ D, D.T @ c, ridge).theta[0, 0], atol=1e-12
    )


def test_the_shadow_of_the_ellipse_is_the_bonus() -> None:
    params = RareFeature.Params(ridge=2.0, alpha=1.5)
    ellipse = RareFeature.figures(params)[1]["data"][0]
    predictions = RARE[0] * ellipse["y"] + RARE[1] * ellipse["x"]
    bonus = RareFeature.values(params)["bonus_rare"]
    assert (predictions.max() - predictions.min()) / 2 == pytest.approx(bonus, rel=1e-3)
    *lines, shadow = RareFeature.figures(params)[1]["data"][1:4]
    for line, extreme in zip(lines, (predictions.min(), predictions.max()), strict=True):
        # it touches the ellipse
        np.testing.assert_allclose(line["x"] + line["y"], extreme, atol=1e-3)
    along = [np.diff(shadow[axis])[0] for axis in ("x", "y")]
    assert sum(along) / 2 == pytest.approx(bonus, abs=1e-12)
    assert np.dot(along, [np.diff(lines[0][axis])[0] for axis in ("x", "y")]) == pytest.approx(
        0, abs=1e-12
    )


def test_shapes_of_weights_are_drawn_on_one_scale_and_are_as_long_as_the_text_states() -> None:
    errors, ellipse = RareFeature.figures(RareFeature.Params())
    assert all(figure["layout"]["yaxis"]["scaleanchor"] == "x" for figure in (errors, ellipse))
    for trace in (*errors["data"][:4], ellipse["data"][0]):
        assert np.ptp(trace["x"]) > 5 * np.ptp(trace["y"])
    drawn = svg.figure({**ellipse, "data": ellipse["data"][:1]})
    points = np.array(
        [point.split(",") for point in drawn.split('points="')[1].split('"')[0].split()],
        dtype=float,
    )
    wide, high = np.ptp(points, axis=0)
    assert wide / high == pytest.approx(
        np.ptp(ellipse["data"][0]["x"]) / np.ptp(ellipse["data"][0]["y"]), rel=0.01
    )


def test_a_logbook_without_penalty_leaves_an_unseen_weight_open() -> None:
    values = Logbook.values(Logbook.Params(ridge=0.0))
    assert np.isnan(values["weight_fish"])
    assert values["weight_puppy"] == 0.5
    changed = Logbook.values(Logbook.Params(visitor_d="fish_hobbyist"))
    assert (changed["visits_budget"], changed["weight_fish"]) == (0, 0.5)


def test_shop_and_trial_have_the_quoted_numbers() -> None:
    shop, trial = Shop.values(Shop.Params()), Trial.values(Trial.Params())
    assert (round(shop["random"], 4), round(shop["best"], 4), round(shop["log_loss"], 4)) == (
        0.2105,
        0.5125,
        0.3995,
    )
    assert (round(trial["low"], 2), round(trial["high"], 2)) == (0.43, 0.63)


def test_the_first_bonuses_of_the_listing_are_quoted_and_the_agents() -> None:
    found = Articles.bonuses(VISITOR, 1.0)
    assert [round(bonus, 2) for bonus in found] == [21.50, 21.16, 41.77]
    x = Articles.features(VISITOR, 1.0)
    shared = model(np.zeros((9, 9)), np.zeros(9), 1.0)
    widths = np.sqrt(np.einsum("kd,de,ke->k", x, shared.inverse[0, 0], x))
    np.testing.assert_allclose(found, 1.5 * widths, rtol=1e-12)


def test_false_alarms_begin_at_the_level_and_grow() -> None:
    curve = false_alarms()
    assert curve[0] == pytest.approx(0.05, abs=0.005)
    # Armitage, McPherson, Rowe (1969)
    assert curve[9] == pytest.approx(0.193, abs=0.01)
    assert (np.diff(curve) >= 0).all()


@pytest.mark.parametrize("example", REGISTRY.values(), ids=list(REGISTRY))
def test_every_example_draws_and_names_its_numbers(example: type[WorkedExample]) -> None:
    params = example.Params()
    assert set(example.known) <= set(example.values(params))
    assert example.tables(params) or example.figures(params)
    for figure in example.figures(params):
        assert figure["layout"]["meta"]["note"]
        assert all(len(trace["x"]) == len(trace["y"]) for trace in figure["data"])


def test_expressions_hold_arithmetic_and_comparisons_only() -> None:
    sources = {"storm": WorkedSource(RareFeature, RareFeature.Params())}
    assert evaluate(parse("storm.visits / (storm.clicks - 10) + max(1, -2)"), sources) == 11
    assert evaluate(parse("0 < storm.ridge <= 1 and storm.alpha < 2"), sources) is True
    assert evaluate(parse("0 < storm.ridge < 1"), sources) is False


def test_the_ten_clicks_are_counted_by_hand() -> None:
    """C A C B C C A C B A are five clicks on C, three on A and two on B."""
    values = PopularityLog.values(PopularityLog.Params(rounds=10))
    assert (values["clicks"], values["most"], values["remembered"]) == (10, 5, 1)


def test_ticks_of_a_figure_stand_where_its_points_do() -> None:
    title: Any = {"title": {"text": "t"}}
    x, y = np.array([0.0, 5.0, 10.0]), np.array([0.0, 2.0, 4.0])
    trace = {"x": x, "y": y, "mode": "markers", "marker": {"color": "red"}, "name": "a"}
    text = svg.figure({"layout": {**title, "xaxis": title, "yaxis": title}, "data": [trace]})
    points = np.array(re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)"', text), float)
    below = re.findall(r'<text x="([\d.]+)" y="\d+" text-anchor="middle">([\d.]+)</text>', text)
    left = re.findall(r'<text x="\d+" y="([\d.]+)" text-anchor="end">([\d.]+)</text>', text)
    for ticks, value, place in ((below, x, points[:, 0]), (left, y, points[:, 1] + 4)):
        at, number = np.array(ticks, float).T
        assert len(number) > 2
        line = np.polyfit(number, at, 1)
        np.testing.assert_allclose(np.polyval(line, number), at, atol=0.2)
        np.testing.assert_allclose(np.polyval(line, value), place, atol=0.3)


@pytest.mark.parametrize(("pulls", "rate"), [(4, 0.25), (30, 0.6)])
def test_the_new_lever_is_shown_as_often_as_it_has_the_larger_draw(pulls: int, rate: float) -> None:
    params = Posteriors.Params(pulls=pulls, rate=rate)
    a, b = Posteriors.posterior(params)
    new = np.random.default_rng(3).beta(a[1], b[1], 40_000)
    values = Posteriors.values(params)
    # given its draw, that of the known lever is smaller with this probability
    smaller = betainc(a[0], b[0], new)
    error = smaller.std() / np.sqrt(len(new))
    assert values["chance"] == pytest.approx(smaller.mean(), abs=4 * error)
    assert values["points"] == round(pulls * rate)
    (plot,) = Posteriors.figures(params)
    densities = [trace for trace in plot["data"] if len(trace["x"]) > 2]
    for trace in densities:
        assert np.trapezoid(trace["y"], trace["x"]) == pytest.approx(1, abs=1e-3)
    drawn = [trace["x"][0] for trace in plot["data"] if len(trace["x"]) == 2]
    assert drawn == [values["draw_known"], values["draw_new"]]


def test_the_gate_of_the_lesson_is_that_of_the_service() -> None:
    g, share = np.random.default_rng(0), 0.2
    new = g.random(300) < share
    rewards = (g.random(300) < 0.3).astype(float)
    gate = serving.Rollout(serving.RolloutParams(steps=(share,)))
    for reward, challenger in zip(rewards, new, strict=True):
        gate.observe(reward, challenger=bool(challenger), share=share)
    np.testing.assert_allclose(gate._signed, signed_rewards(rewards, new, share), atol=1e-12)
    worse, equal = (Rollout.values(Rollout.Params(share=0.5, worse=loss)) for loss in (0.6, 0.0))
    assert worse["caught"] == 1
    assert worse["stopped"] < 2_000
    assert equal["caught"] == 0
    assert equal["stopped"] == DECISIONS


def test_the_stop_of_a_rollout_is_marked_and_the_stopped_are_counted() -> None:
    worse, equal = (Rollout.Params(share=0.5, worse=loss) for loss in (0.6, 0.0))
    for params, count in ((worse, "20"), (equal, "0")):
        marks = [each for each in Rollout.figures(params)[0]["data"] if each["name"] == "stopped"]
        assert len(marks) == (count != "0")
        assert all(each["x"][0] == each["x"][1] < 2_000 for each in marks)
        ((rollouts, stopped, _),) = Rollout.tables(params)[0].rows
        assert (rollouts, stopped) == ("20", count)
        assert Rollout.slow_values(params) == {"stopped_equal": 0}
