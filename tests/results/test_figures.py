"""Figures: what is drawn, in which colour, and with how many points."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import plotly.graph_objects as go
import pytest

from bandits import Experiment, History, run
from bandits.agents import REGISTRY
from bandits.experiments.lockstep import make_lane
from bandits.experiments.snapshots import LEVELS
from bandits.results import metrics
from bandits.results.describe import ParameterChange
from bandits.results.figures.board import Options, bands, board
from bandits.results.figures.curves import MAX_POINTS, curves, figure, thin
from bandits.results.figures.style import (
    COUNT,
    NUMBER,
    RATE,
    REFERENCE,
    STEP,
    Spec,
    palette,
    styles,
    tick_text,
)
from bandits.results.metrics import Band
from bandits.results.result import Result
from tests.support import experiment, history

BOARD = ("ctr", "pseudo_regret", "entropy", "spectrum")
TITLES = ["Click-through rate", "Cumulative regret", "Selection entropy", "Eigenvalue spectrum"]


@lru_cache(maxsize=1)
def small_run() -> Result:
    return run(experiment("linucb", "lints", "random", "linucb", steps=6000))


def lines(spec: Spec) -> dict[str, Spec]:
    """Return the curves of a plot by name, without bands, markers and references."""
    drawn = (t for t in spec["data"] if "fill" not in t and "marker" not in t)
    return {t["name"]: t for t in drawn if t.get("meta") != "reference"}


def straight(points: int, rows: int = 4) -> Band:
    x = np.arange(points, dtype=float)
    return Band(x, 2 * x, 2 * x - 1, 2 * x + 1, rows)


def test_the_board_has_four_plots_with_every_agent() -> None:
    specs = board(small_run())
    assert [s["layout"]["title"]["text"] for s in specs] == TITLES
    for spec in specs[:3]:
        assert list(lines(spec)) == ["LinUCB", "LinTS", "Random", "LinUCB 2"]
    # the random agent has no design matrix
    assert list(lines(specs[3])) == ["LinUCB", "LinTS", "LinUCB 2"]
    assert specs[3]["layout"]["yaxis"]["type"] == "log"
    assert all(s["layout"]["meta"]["note"] for s in specs)


MATRICES = [
    kind
    for kind, cls in REGISTRY.items()
    if cls.representation(cls.Params()) == "features" and cls.spans_arms(cls.Params()) is not None
]


@pytest.mark.parametrize("kind", MATRICES)
def test_all_of_a_is_what_its_spectrum_on_the_whole_space_is(kind: str) -> None:
    """Eight of nine directions of the pet shop occur; the ninth stays at the ridge."""
    e = experiment(kind, steps=60)
    lane = make_lane(e, 0)
    lane.advance(60)
    models = 10 if lane.agent.spans_arms(lane.agent.params[0]) else 1
    whole = lane.agent.spectrum([np.eye(9)] * models)
    spanned = lane.agent.spectrum(lane.simulator.bases(models > 1))
    assert whole is not None
    assert spanned is not None
    drawn = bands(run(e), ["spectrum"], Options(whole=True))["spectrum"]
    np.testing.assert_allclose(
        drawn[e.labels[0]].mid, np.median(whole.reshape(-1, 9), axis=0), rtol=1e-6
    )
    assert spanned.shape[2] < len(drawn[e.labels[0]].mid) == 9


def test_lines_show_the_numbers_of_the_metrics() -> None:
    result = small_run()
    click_rate, regret, entropy, spectrum = (lines(s) for s in board(result, window=500))
    for label, h in result.histories.items():
        for drawn, band in (
            (click_rate, metrics.ctr(h, 500)),
            (regret, metrics.pseudo_regret(h)),
            (entropy, metrics.entropy(h, 500)),
            (spectrum, metrics.spectrum(h)),
        ):
            if band is None:
                assert label not in drawn
                continue
            x, y = drawn[label]["x"], drawn[label]["y"]
            value = dict(zip(band.x, band.mid, strict=True))
            assert y.tolist() == [value[step] for step in x]
            # the first steps of a rate are noise
            assert x[0] <= max(band.x[0], 500 / 20 + 2 * h.grid[1])
            assert x[-1] == band.x[-1]


def test_references_are_thin_dashed_lines_in_a_neutral_colour() -> None:
    (click_rate, *others) = board(small_run())
    references = [t for t in click_rate["data"] if t.get("meta") == "reference"]
    assert [t["name"] for t in references] == ["oracle", "random choice"]
    assert references[0]["y"][-1] > references[1]["y"][-1]
    assert {(t["line"]["dash"], t["line"]["color"]) for t in references} == {("dash", REFERENCE)}
    assert not any(t.get("meta") == "reference" for s in others for t in s["data"])


def test_lines_are_thinned_to_screen_resolution() -> None:
    result = small_run()
    assert len(result.ctr["LinUCB"].x) > MAX_POINTS
    for spec in board(result):
        for trace in spec["data"]:
            assert len(trace["x"]) == len(trace["y"]) <= MAX_POINTS + 2


def test_against_clicks_every_agent_has_its_own_axis() -> None:
    result = small_run()
    for spec in board(result, x="earned")[:3]:
        assert spec["layout"]["xaxis"]["title"]["text"] == "clicks earned"
        for label, line in lines(spec).items():
            assert line["x"][-1] == metrics.cumulative_clicks(result.histories[label]).mid[-1]
            assert (np.diff(line["x"]) >= 0).all()
    regret = lines(board(result, x="earned")[1])["LinUCB"]
    earned = metrics.cumulative_clicks(result.histories["LinUCB"])
    lost = dict(
        zip(earned.mid, metrics.pseudo_regret(result.histories["LinUCB"]).mid, strict=False)
    )
    assert regret["y"][-1] == lost[regret["x"][-1]]


def test_a_logarithmic_axis_leaves_out_step_zero() -> None:
    rate, regret, entropy, spectrum = board(small_run(), x="log step", log_regret=True)
    for spec in (rate, regret, entropy):
        assert spec["layout"]["xaxis"]["type"] == "log"
        assert all(trace["x"].min() > 0 for trace in spec["data"])
    assert regret["layout"]["yaxis"]["type"] == "log"
    assert "type" not in spectrum["layout"]["xaxis"]


def test_the_spectrum_of_one_arm_at_one_step() -> None:
    result = small_run()
    taken = [s.step for s in result.histories["LinUCB"].spectra]
    drawn = board(result, at=taken[2] + 1, arm=3)[3]
    for label, line in lines(drawn).items():
        wanted = metrics.spectrum(result.histories[label], taken[2], 3)
        assert wanted is not None
        np.testing.assert_array_equal(line["y"], wanted.mid)
    assert f"at step {taken[2]:,}" in drawn["layout"]["meta"]["note"]
    assert "over replications, at" in drawn["layout"]["meta"]["note"]


def test_the_previous_run_is_drawn_dotted_thin_and_behind_and_names_the_change() -> None:
    result = small_run()
    before = bands(run(experiment("linucb", "ucb1", steps=4000)), BOARD)
    changes = {"LinUCB": ParameterChange("alpha 0", "alpha 0 to 0.5", "LinUCB")}
    for spec in board(result, before=before, changes=changes)[:3]:
        ghosts = [t for t in spec["data"] if t.get("meta") == "before"]
        # no agent is called UCB1
        assert [t["name"] for t in ghosts] == ["LinUCB, previous run (alpha 0 to 0.5)"]
        assert spec["layout"]["meta"]["ends"][ghosts[0]["name"]] == "before: alpha 0"
        # drawn first: behind
        assert spec["data"][: len(ghosts)] == ghosts
        assert {t["line"]["dash"] for t in ghosts} == {"dot"}
        assert [t["line"]["color"] for t in ghosts] == [styles(result.experiment)["LinUCB"].color]
        assert max(len(t["x"]) for t in ghosts) <= MAX_POINTS // 2 + 1
    far = bands(run(experiment("linucb", "ucb1", steps=4000)), BOARD, until=1000)
    longer = board(run(experiment("linucb", steps=1000)), before=far)
    # only steps that both runs have
    assert max(t["x"].max() for s in longer[:3] for t in s["data"]) == 1000
    note = board(result, before=before, changes=changes)[0]["layout"]["meta"]["note"]
    assert "Dotted: previous run (LinUCB: alpha 0 to 0.5)." in note
    assert "Dotted" not in board(result)[0]["layout"]["meta"]["note"]


def test_hiding_an_agent_hides_all_its_traces() -> None:
    for spec in board(small_run(), before=bands(small_run(), BOARD)):
        assert all(
            t["legendgroup"] in small_run().experiment.labels
            for t in spec["data"]
            if t.get("meta") != "reference"
        )


@pytest.mark.parametrize("points", [0, 1, 2, 399, 400, 401, 799, 801, 2001])
def test_thinning_keeps_the_first_and_the_last_point(points: int) -> None:
    band = straight(points)
    kept = thin(band)
    assert len(kept.x) <= MAX_POINTS + 1
    assert len(kept.x) > min(points, MAX_POINTS) // 2 - 1
    assert kept.x[:1].tolist() == band.x[:1].tolist()
    assert kept.x[-1:].tolist() == band.x[-1:].tolist()
    np.testing.assert_array_equal(kept.mid, 2 * kept.x)
    assert kept.rows == band.rows


def test_a_band_is_a_closed_outline() -> None:
    (outline, line) = curves({"a": straight(50)}, {"a": palette(["linucb"])[0]}, title="", note="")[
        "data"
    ]
    assert outline["fill"] == "toself"
    np.testing.assert_array_equal(
        outline["y"], np.concatenate([2 * line["x"] + 1, 2 * line["x"][::-1] - 1])
    )
    np.testing.assert_array_equal(outline["x"], np.concatenate([line["x"], line["x"][::-1]]))
    assert outline["hoverinfo"] == "skip"
    alone = curves({"a": straight(50, rows=1)}, {"a": palette(["linucb"])[0]}, title="", note="")
    # one replication has no interval
    assert len(alone["data"]) == 1


def test_one_replication_has_no_interval_in_titles() -> None:
    note = board(run(experiment(replications=1)))[0]["layout"]["meta"]["note"]
    assert "interval" not in note
    assert (
        "95 % confidence interval of the mean over 3 replications"
        in board(run(experiment()))[0]["layout"]["meta"]["note"]
    )


def test_the_oracle_is_an_expected_value_that_a_curve_can_exceed_by_chance() -> None:
    note = board(run(experiment()))[0]["layout"]["meta"]["note"]
    assert "expected values: a curve can lie above the oracle by chance" in note


@pytest.mark.parametrize("kind", REGISTRY)
def test_every_kind_has_a_distinct_style_alone_and_with_others(kind: str) -> None:
    kinds = list(REGISTRY)
    looks = dict(zip(kinds, palette(kinds), strict=True))
    assert len(set(looks.values())) == len(kinds)
    # the oracle uses any free style
    if kind != "oracle":
        assert palette([kind]) == [looks[kind]]
        assert (
            dict(zip(kinds[::-1], palette(kinds[::-1]), strict=True))[kind].color
            == looks[kind].color
        )


def test_no_style_of_an_agent_is_dotted_like_the_previous_run() -> None:
    for company in (
        list(REGISTRY),
        ["linucb"] * 12,
        ["oracle"] * 12,
        *([kind] for kind in REGISTRY),
    ):
        assert "dot" not in {look.dash for look in palette(company)}
    assert "dot" not in {line["line"]["dash"] for line in lines(board(small_run())[0]).values()}


def test_lines_have_names_for_their_ends() -> None:
    rate, regret, entropy, spectrum = board(small_run())
    agents = list(small_run().experiment.labels)
    assert list(rate["layout"]["meta"]["ends"]) == [*agents, "oracle", "random choice"]
    for spec in (regret, entropy):
        assert list(spec["layout"]["meta"]["ends"]) == agents
    assert list(spectrum["layout"]["meta"]["ends"]) == ["LinUCB", "LinTS", "LinUCB 2"]
    assert "ends" not in curves({}, {}, title="t", note="n")["layout"]["meta"]


def test_numbers_are_written_by_one_rule_in_all_figures() -> None:
    """Steps with thousands separators, rates with three decimals, clicks with one, all else three
    digits.
    """
    rate, regret, entropy, spectrum = board(small_run())
    assert [s["layout"]["xaxis"]["hoverformat"] for s in (rate, regret, entropy)] == [STEP] * 3
    assert [s["layout"]["yaxis"]["hoverformat"] for s in (rate, regret, entropy, spectrum)] == [
        RATE,
        COUNT,
        RATE,
        NUMBER,
    ]
    assert board(small_run(), x="earned")[0]["layout"]["xaxis"]["hoverformat"] == COUNT
    assert board(small_run(), fourth="calibration_95")[3]["layout"]["yaxis"]["hoverformat"] == RATE
    drawn = figure(regret)
    for axis in (drawn.layout.xaxis, drawn.layout.yaxis):
        # 5,000 and never 5k
        assert (axis.exponentformat, axis.separatethousands) == ("none", True)
    assert drawn.layout.yaxis.hoverformat == COUNT
    steps = board(small_run(), x="log step")[0]["layout"]["xaxis"]["ticktext"]
    assert "1,000" in steps
    assert [tick_text(v) for v in (0.001, 0.5, 5000, 1e6, 1e7, 5e-5)] == [
        "0.001",
        "0.5",
        "5,000",
        "1,000,000",
        "10<sup>7</sup>",
        "5·10<sup>-5</sup>",
    ]


def test_twelve_agents_of_one_kind_have_distinct_styles() -> None:
    company = [*REGISTRY, "linucb", "linucb", "lints"]
    assert len(set(palette(company))) == len(company)
    for kinds in (["linucb"] * 12, ["oracle"] * 12):
        looks = palette(kinds)
        assert len(set(looks)) == 12
        assert len({look.color for look in looks[:7]}) == 7


def test_a_duplicate_agent_uses_no_colour_of_another_kind() -> None:
    first, second, other = palette(["linucb", "linucb", "lints"])
    assert (first, other) == (palette(["linucb"])[0], palette(["lints"])[0])
    assert second.color not in (first.color, other.color)


def test_an_agent_that_is_added_changes_no_style() -> None:
    company = ["linucb", "linucb", "epsilon_greedy"]
    for kind in REGISTRY:
        assert palette([*company, kind])[:3] == palette(company)


def test_an_agent_keeps_its_colour_in_all_plots() -> None:
    looks = styles(small_run().experiment)
    for spec in board(small_run()):
        for label, trace in lines(spec).items():
            assert (trace["line"]["color"], trace["line"]["dash"]) == looks[label]


def test_an_empty_plot_states_the_reason() -> None:
    e = experiment()
    for spec in board(Result(e, {})):
        (sentence,) = spec["layout"]["annotations"]
        assert sentence["text"].endswith(".")
    waiting = board(Result(e, {label: History(e.steps, 3, 10) for label in e.labels}))
    assert [len(spec["data"]) for spec in (waiting[0], *waiting[2:])] == [0, 0, 0]
    assert waiting[0]["layout"]["annotations"]
    without = board(run(experiment("random", "ucb1")))[3]
    assert without["data"] == []
    assert "ridge model" in without["layout"]["annotations"][0]["text"]


def test_labels_cannot_contain_markup() -> None:
    for spec in board(small_run()):
        assert "annotations" not in spec["layout"]
    name = "<img src=x onerror=alert(1)>"
    spec = curves({name: straight(5)}, {name: palette(["linucb"])[0]}, title="t", note="n")
    assert all("<" not in t["name"] for t in spec["data"])
    # experiments refuse such a name
    with pytest.raises(ValueError, match="label"):
        Experiment.model_validate({"agents": [{"kind": "random", "label": name}]})


@pytest.mark.parametrize("dark", [False, True])
def test_a_spec_converts_to_a_plotly_figure(dark: bool) -> None:
    for spec in board(small_run()):
        made = figure(spec, dark=dark)
        assert isinstance(made, go.Figure)
        assert len(made.data) == len(spec["data"])
        assert made.layout.title.text == spec["layout"]["title"]["text"]
        assert made.to_json()


def test_the_fourth_plot_can_be_the_calibration() -> None:
    result = small_run()
    for level in LEVELS:
        drawn = board(result, fourth=f"calibration_{100 * level:.0f}")[3]
        assert drawn["layout"]["title"]["text"] == "Calibration"
        assert f"{100 * level:.0f} %" in drawn["layout"]["meta"]["note"]
        assert list(lines(drawn)) == ["LinUCB", "LinTS", "LinUCB 2"]
        (goal,) = [t for t in drawn["data"] if t.get("meta") == "reference"]
        assert set(goal["y"]) == {level}
        for label, line in lines(drawn).items():
            curve = metrics.calibration(result.histories[label], level)
            assert curve is not None
            np.testing.assert_array_equal(line["y"], curve.mid)
    against = board(result, fourth="calibration_95", x="earned")[3]
    (goal,) = [t for t in against["data"] if t.get("meta") == "reference"]
    assert goal["x"][1] == max(line["x"][-1] for line in lines(against).values())


def test_the_fourth_plot_can_be_the_exploration_rate() -> None:
    result = small_run()
    drawn = board(result, fourth="exploration_rate")[3]
    assert drawn["layout"]["title"]["text"] == "Exploration rate"
    assert list(lines(drawn)) == list(result.histories)
    for label, line in lines(drawn).items():
        curve = metrics.exploration_rate(result.histories[label])
        assert curve is not None
        np.testing.assert_array_equal(line["y"], curve.mid)
    outlines = [t["y"] for t in drawn["data"] if t.get("fill") == "toself"]
    assert all(0 <= y.min() <= y.max() <= 1 for y in outlines)
    earned = board(result, fourth="exploration_rate", x="earned")[3]
    assert earned["layout"]["xaxis"]["title"]["text"] == "clicks earned"


def test_stopped_replications_are_marked_on_the_curve() -> None:
    """Two of four replications stop at different steps.

    An agent without active replications has no curve to mark.
    """
    rng = np.random.default_rng(3)
    clicks = (rng.random((300, 4)) < 0.4).astype(float)
    clicks[120:, 1], clicks[200:, 2] = np.nan, np.nan
    nothing = np.full((300, 4), np.nan)
    nothing[:40] = 1.0
    e = experiment("linucb", "lints", "random", steps=300, replications=4)
    made = {
        "LinUCB": history(clicks, n_items=10, alive=[True, False, False, True]),
        "LinTS": history(nothing, n_items=10, alive=[False] * 4),
        "Random": history(np.nan_to_num(clicks), n_items=10),
    }
    rate, regret, entropy, spectrum = board(Result(e, made), window=50)
    for spec in (rate, regret, entropy):
        marks = {t["name"]: t for t in spec["data"] if t.get("marker", {}).get("symbol") == "x"}
        assert list(marks) == ["LinUCB"]
        assert marks["LinUCB"]["x"].tolist() == [120, 200]
        assert marks["LinUCB"]["text"] == [
            "1 replication stopped near step 120",
            "1 replication stopped near step 200",
        ]
        curve = lines(spec)["LinUCB"]
        value = dict(zip(curve["x"], curve["y"], strict=True))
        assert marks["LinUCB"]["y"].tolist() == [value[120], value[200]]
    assert not any("marker" in t for t in spectrum["data"])


@pytest.mark.parametrize(
    ("low", "high", "shown"),
    [
        (3.0, 4.0, None),
        (2.0, 8.0, ["2", "5"]),
        (2.0, 80.0, ["2", "5", "10", "20", "50"]),
        (2.0, 8000.0, ["10", "100", "1,000"]),
    ],
)
def test_a_logarithmic_axis_has_numbers_even_within_a_decade(
    low: float, high: float, shown: list[str] | None
) -> None:
    x, y = np.array([1.0, 2.0]), np.array([low, high])
    looks = dict(zip("a", palette(["linucb"]), strict=True))
    spec = curves({"a": Band(x, y, y, y, 3)}, looks, title="t", note="n", log_y=True)
    axis = spec["layout"]["yaxis"]
    ticks = dict(zip(axis.pop("tickvals", []), axis.pop("ticktext", []), strict=True))
    assert axis == {"title": {"text": ""}, "type": "log", "hoverformat": NUMBER}
    assert ([text for tick, text in ticks.items() if low <= tick <= high] or None) == shown
