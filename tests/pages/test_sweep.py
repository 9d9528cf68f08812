"""The page Sweep, its links, its pictures, and sweeps beside the runs of an app."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from bandits import sweeps
from bandits.base.errors import UserError
from bandits.experiments import url as experiment_link
from bandits.experiments.experiment import Experiment
from bandits.results.metric_registry import OBJECTIVES
from bandits.runtime.pool import Pool
from bandits.runtime.task_queue import Task
from bandits.sweeps import Landscape, Sweep, url
from bandits.sweeps.analysis.nearest import nearest_points
from bandits.sweeps.figures import grid, lines
from bandits.sweeps.manager import SweepManager
from bandits.sweeps.presets import presets
from bandits_app.runs import listing
from bandits_app.runs import sweeps as sweep_list
from bandits_app.session import workers
from bandits_app.sweep import selection
from tests.gate import Gate
from tests.pages.support import choose_entry, open_menu, open_page, panels
from tests.support import over, wait_for
from tests.sweeps.test_sweep import ALPHA, small

ROOT = Path(__file__).parents[2]

RIDGE = {"path": "agents.0.ridge", "values": [0.1, 1.0]}


@pytest.fixture(scope="module")
def two() -> Landscape:
    return sweeps.run(small([ALPHA, RIDGE]))


@pytest.fixture(scope="module")
def one() -> Landscape:
    return sweeps.run(small())


@pytest.fixture(scope="module")
def pool() -> Any:
    made = Pool(1)
    yield made
    made.close()


def finished(sweeper: SweepManager, sweep: Sweep, owner: str = "me") -> Any:
    found = sweeper.submit(sweep, owner)
    wait_for(lambda: not found.active, "the sweep")
    return found


# -- links
# ---------------------------------------------------------------------------------------------------------  # noqa: E501


@pytest.mark.parametrize(
    "sweep",
    [
        small(),
        small([ALPHA, RIDGE], search="halving", metric="pseudo_regret"),
        small([{"path": "agents.0.sharing", "values": ["per_arm", "shared"]}]),
        small([{"path": "simulator.shock_step", "values": [None, 100]}]),
        small([{**ALPHA, "extra": [0.0, 1.5]}]),
    ],
    ids=["range", "halving", "words", "none", "additional values"],
)
def test_a_link_holds_the_whole_sweep(sweep: Sweep) -> None:
    told = url.to_query(sweep)
    assert url.holds_sweep(told)
    assert url.parse_query(told).hash == sweep.hash
    assert "check" not in told


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"axes.0": "agents.0.alpha,1"}, "write path,low,high,number,scale"),
        ({"axes.0": "agents.0.alpha,1,2,3,cubic"}, "scale"),
        ({"axes.0": "x" * 5000}, "at most 4,000 are allowed"),
        ({"axes.2": "agents.0.ridge:1,2"}, "they must count from 0"),
        ({"refinements.0": "0.2,0.3"}, "write path:value,value"),
        (
            {"refinements.1": "agents.0.alpha:0.2"},
            "refinements are numbered 1; they must count from 0",
        ),
        ({"axes.0": "agents.0.alpha:1e999,2"}, "numbers must be finite"),
        ({"axes.0": "agents.0.alpha,NaN,2,3,linear"}, "numbers must be finite"),
        ({"agents.1": "random"}, "a sweep varies one agent"),
    ],
)
def test_a_link_is_judged_like_an_upload(changes: dict[str, str], said: str) -> None:
    with pytest.raises(UserError, match=said):
        url.parse_query({**url.to_query(small()), **changes})


# -- pictures
# ------------------------------------------------------------------------------------------------------  # noqa: E501


def test_the_map_shows_every_mean_and_outlines_the_region(two: Landscape) -> None:
    spec = grid.landscape_figure(two, "ctr", selected=0)
    heat, noisy, outline, star, ring = spec["data"]
    assert (noisy["name"], outline["name"]) == ("too noisy to tell", "tied")
    means = two.numbers("ctr").mean(axis=1).reshape(3, 2).T
    np.testing.assert_allclose(heat["z"], means)
    leader = two.leader("ctr")
    assert leader is not None
    assert (star["x"][0], star["y"][0]) == divmod(leader, 2)
    assert (ring["x"][0], ring["y"][0]) == (0, 0)
    assert all(grid.point_at(two, "ctr", *divmod(p, 2)) == p for p in range(6))
    assert grid.point_at(two, "ctr", 9, 9) is None
    assert spec["layout"]["xaxis"]["ticktext"] == ["0.1", "1", "10"]
    edges = np.stack([outline["x"], outline["y"]]).T.reshape(-1, 3, 2)
    tied = np.array([state == "tied" for state in two.states("ctr")]).reshape(3, 2).T
    inside = np.pad(tied, 1)
    borders = sum((inside != np.roll(inside, 1, axis)).sum() for axis in (0, 1))
    assert len(edges) == borders
    assert np.isnan(edges[:, 2]).all()
    assert np.allclose(np.abs(edges[:, 1] - edges[:, 0]).sum(axis=1), 1)


def test_the_own_setting_is_marked(two: Landscape, one: Landscape) -> None:
    for landscape, place in ((two, (1, 0)), (one, (2, None))):
        spec = grid.landscape_figure(landscape, "ctr", setting=2)
        (mark,) = (trace for trace in spec["data"] if trace.get("name") == "x")
        assert mark["x"][0] == place[0]
        assert place[1] is None or mark["y"][0] == place[1]
        assert spec["layout"]["meta"]["note"].endswith("✕ your setting.")


def test_a_curve_over_one_parameter(one: Landscape) -> None:
    spec = grid.landscape_figure(one, "pseudo_regret")
    points = next(trace for trace in spec["data"] if trace["name"] == "points")
    np.testing.assert_allclose(points["y"], one.numbers("pseudo_regret").mean(axis=1))
    assert "4 replications" in points["text"][0]
    assert grid.point_at(one, "ctr", 1.2, 0.5) == 1


def test_further_axes_stand_at_the_best_values() -> None:
    sweep = small(
        [ALPHA, RIDGE, {"path": "agents.0.sharing", "values": ["per_arm", "shared"]}], steps=60
    )
    landscape = sweeps.run(sweep)
    spec = grid.landscape_figure(landscape, "ctr")
    leader = landscape.leader("ctr")
    assert leader is not None
    best = sweep.values_at(leader)
    assert (
        spec["layout"]["title"]["text"]
        == f"Click-through rate at Sharing {grid.format_value(best[2])}"
    )
    shown = [p for p in range(sweep.size) if sweep.values_at(p)[2] == best[2]]
    means = landscape.numbers("ctr").mean(axis=1)[shown].reshape(3, 2).T
    np.testing.assert_allclose(spec["data"][0]["z"], means)


def test_a_landscape_of_nothing_waits() -> None:
    nothing = Landscape(small())
    for spec in (grid.landscape_figure(nothing, "ctr"), *grid.point_curves(nothing, None, "ctr")):
        assert spec["data"] == []
        assert "Waiting for the first results" in spec["layout"]["annotations"][0]["text"]


def test_the_curves_of_a_cell_stand_beside_the_best(two: Landscape) -> None:
    leader = two.leader("ctr")
    assert leader is not None
    other = (leader + 1) % 6
    names = [
        {trace["name"] for trace in spec["data"]} for spec in grid.point_curves(two, other, "ctr")
    ]
    assert names == [{"chosen", "best"}] * 2
    assert {trace["name"] for trace in grid.point_curves(two, leader, "ctr")[0]["data"]} == {
        "chosen"
    }


# -- what if
# ------------------------------------------------------------------------------------------------------  # noqa: E501


@pytest.mark.parametrize(
    ("changes", "values"),
    [
        ({"alpha": 1.0, "ridge": 1.0}, (1.0, 1.0)),
        ({"alpha": 0.9, "ridge": 0.2}, (1.0, 0.1)),
        # on a log scale .316 is half way
        ({"alpha": 0.3, "ridge": 0.1}, (0.1, 0.1)),
        ({"alpha": 0.33, "ridge": 0.1}, (1.0, 0.1)),
        ({"alpha": 0.05, "ridge": 0.1}, None),
        ({"alpha": 1.0, "ridge": 5.0}, None),
        ({"alpha": 1.0, "ridge": 1.0, "sharing": "shared"}, None),
        ({"alpha": 1.0, "ridge": 1.0, "label": "mine"}, (1.0, 1.0)),
    ],
    ids=str,
)
def test_the_nearest_swept_point_answers(
    two: Landscape, changes: dict[str, Any], values: Any
) -> None:
    asked = small(
        agent={"kind": "linucb", **changes}, axes=[{"path": "agents.0.gamma", "values": [0.5, 1.0]}]
    )
    found = nearest_points([(two.sweep, two.estimate_at)], asked.experiment)
    if values is None:
        assert found == []
        return
    (answer,) = found
    assert two.sweep.values_at(answer.point) == values
    assert answer.exact == (values == (changes["alpha"], changes["ridge"]))
    assert answer.estimate.mean == two.numbers("ctr")[answer.point].mean()
    assert nearest_points([(two.sweep, two.estimate_at)], small(seed=1).experiment) == []
    assert nearest_points([(two.sweep, two.estimate_at)], small(steps=200).experiment) == []


# -- beside the runs
# -----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_processes_come_to_the_same_bits(pool: Pool, two: Landscape, tmp_path: Path) -> None:
    found = finished(SweepManager(pool, tmp_path), two.sweep)
    assert (found.status, found.error, found.progress) == ("finished", "", 1.0)
    for metric in OBJECTIVES:
        np.testing.assert_array_equal(found.landscape.numbers(metric), two.numbers(metric))


def test_equal_sweeps_are_one_and_are_found_again(
    pool: Pool, one: Landscape, tmp_path: Path
) -> None:
    first = SweepManager(pool, tmp_path)
    found = finished(first, one.sweep)
    assert first.submit(one.sweep, "somebody else") is found
    later = SweepManager(pool, tmp_path)
    again = later.get(one.sweep.hash)
    assert again is not None
    assert again.status == "finished"
    assert np.array_equal(again.landscape.numbers("ctr"), one.numbers("ctr"))
    assert [line.sweep for line in later.stored_sweeps()] == [one.sweep]
    later.delete(again.id)
    assert later.get(one.sweep.hash) is None
    assert SweepManager(pool, tmp_path).get(again.id) is None


def test_who_stops_it_and_how_it_goes_on(pool: Pool, gate: Gate, tmp_path: Path) -> None:
    sweep = small([{**ALPHA, "number": 12}], seed=21)
    gate.hold(21, 100, passes=4)
    sweeper = SweepManager(pool, tmp_path)
    found = sweeper.submit(sweep, "me")
    with pytest.raises(UserError, match="only the user who started this sweep can stop it"):
        sweeper.stop(found, "you")
    with pytest.raises(UserError, match="this sweep is running"):
        sweeper.delete(found.id)
    wait_for(
        lambda: found.progress > 0.1,
        "some of it",
        lambda: "" if found.active else f"the sweep has {found.status}",
    )
    sweeper.stop(found, "me")
    wait_for(lambda: not found.active, "the end")
    gate.open()
    assert found.status == "stopped"
    assert 0 < found.progress < 1
    known = found.landscape.completed.sum()
    assert finished(sweeper, sweep) is found
    assert found.status == "finished"
    assert found.landscape.completed.all()
    assert known < found.landscape.completed.size
    whole = sweeps.run(sweep)
    assert np.array_equal(found.landscape.numbers("ctr"), whole.numbers("ctr"))


def test_one_owner_cannot_take_all_workers(pool: Pool, gate: Gate, tmp_path: Path) -> None:
    sweeper = SweepManager(pool, tmp_path)
    for seed in (1, 2):
        gate.hold(seed)
    going = [sweeper.submit(small([{**ALPHA, "number": 12}], seed=seed), "me") for seed in (1, 2)]
    with pytest.raises(UserError, match="you have 2 sweeps running"):
        sweeper.submit(small(seed=3), "me")
    third = sweeper.submit(small(seed=4), "you")
    # of theirs 24 blocks wait, one by one let go while one of its 12 waits for its turn
    while third.active:
        wait_for(
            lambda: not third.active or (third.id in waiting_tasks(pool) and standing(gate, 1, 2)),
            "a turn",
        )
        for seed in standing(gate, 1, 2):
            gate.hold(seed, passes=1)
    assert third.status == "finished"
    assert all(found.active for found in going)
    for found in going:
        sweeper.stop(found, "me")
    wait_for(lambda: not any(found.active for found in going), "the end")


def test_a_server_remembers_the_last_sweeps_and_finds_the_others_again(
    pool: Pool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bandits.sweeps.manager.MAX_ENDED_JOBS", 2)
    sweeper = SweepManager(pool, tmp_path)
    begun = [finished(sweeper, small(steps=40, seed=seed)) for seed in range(5)]
    assert [sweeper.get(one.id) is one for one in begun[3:]] == [True, True]
    again = sweeper.get(begun[0].id)
    assert again is not None
    assert again is not begun[0]
    assert again.status == "finished"
    assert np.array_equal(again.landscape.numbers("ctr"), begun[0].landscape.numbers("ctr"))


def test_a_cluster_that_cannot_be_used_costs_a_sentence(
    pool: Pool, one: Landscape, tmp_path: Path
) -> None:
    found = finished(SweepManager(pool, tmp_path, "tcp://192.0.2.1:8786"), one.sweep)
    assert found.status == "finished"
    assert "continuing on this machine" in found.error
    assert np.array_equal(found.landscape.numbers("ctr"), one.numbers("ctr"))


def test_a_server_does_not_take_what_would_take_days(pool: Pool, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="a server allows at most 5,000,000,000"):
        SweepManager(pool, tmp_path).submit(small(steps=10_000_000, replications=200), "me")


def test_a_run_gets_its_turn_between_blocks(pool: Pool, gate: Gate, tmp_path: Path) -> None:
    sweeper = SweepManager(pool, tmp_path)
    sweep = small([{**ALPHA, "number": 24}], seed=22)
    gate.hold(22)
    found = sweeper.submit(sweep, "me")
    job = pool.submit(small(seed=9).experiment, "you")
    gate.hold(22, passes=12)  # of 24
    wait_for(lambda: not job.active, "the run")
    assert job.status == "finished"
    assert found.active
    sweeper.stop(found, "me")
    wait_for(lambda: not found.active, "the end")


@pytest.mark.slow
def test_long_runs_leave_a_sweep_a_worker(gate: Gate, tmp_path: Path) -> None:
    pool = Pool(2)
    for seed in range(4):
        gate.hold(seed, 100)
    try:
        found = SweepManager(pool, tmp_path).submit(small([{**ALPHA, "number": 8}], seed=3), "me")
        going = [
            pool.submit(small(steps=10_000_000, seed=seed).experiment, "you") for seed in range(3)
        ]

        def queued() -> bool:
            """The runner has handed over as many blocks as it does."""
            left = int((~found.landscape.completed).sum()) // 2
            running = sum(isinstance(work, Task) for work in list(pool.processes))
            return sum(map(len, waiting_tasks(pool).values())) + running == min(left, 3)

        # of 16 blocks one is let go when the next ones wait
        while found.active:
            wait_for(
                lambda: not found.active or (queued() and standing(gate, 3)),
                "a worker for the sweep",
            )
            gate.hold(3, 100, passes=1)
        assert found.status == "finished"
        wait_for(lambda: going[0].step > 0, "a worker for a run", over(*going))
        assert all(job.active for job in going)
    finally:
        pool.close()


def waiting_tasks(pool: Pool) -> Any:
    """Tasks in the queue, by sweep."""
    return pool._supervisor.scheduler._tasks._waiting


def standing(gate: Gate, *seeds: int) -> list[int]:
    """Those of which a block stands still."""
    return [seed for seed in seeds if gate.stands(seed) is not None]


# -- the page
# ------------------------------------------------------------------------------------------------------  # noqa: E501


@pytest.fixture(scope="module")
def app_pool() -> Iterator[Pool]:
    """The app's own, which all sessions share."""
    made = workers.pool()
    yield made
    made.close()
    workers.pool.clear()
    selection._manager.clear()


def visit(**query: str) -> AppTest:
    at = AppTest.from_file(str(ROOT / "pages" / "main.py"), default_timeout=120)
    for name, text in query.items():
        at.query_params[name] = text
    at = at.switch_page("sweep.py").run()
    assert not at.exception
    return at


def run(at: AppTest) -> AppTest:
    at.button[[b.label for b in at.button].index("Run")].click().run()
    assert not at.exception
    return at


def ended(at: AppTest) -> AppTest:
    # a link alone computes nothing
    if selection.manager().get(at.session_state["sweep-seen"]) is None:
        assert panels(at) == []
        run(at)
    found = selection.manager().get(at.session_state["sweep-seen"])
    assert found is not None
    wait_for(lambda: not found.active, "the sweep")
    at.run()
    assert not at.exception
    return at


def titles(at: AppTest) -> list[str]:
    (found,) = panels(at)
    return [cell["figure"]["layout"]["title"]["text"] for cell in found["cells"]]


def box(at: AppTest, label: str) -> Any:
    return next(b for b in at.selectbox if b.label == label)


def test_a_link_is_run_and_shown(app_pool: Pool, two: Landscape) -> None:
    at = ended(visit(**url.to_query(two.sweep)))
    assert titles(at) == ["Click-through rate", "Click-through rate over time", "Cumulative regret"]
    said = " ".join(m.value for m in at.markdown)
    assert "tied with the best, losing at most 5 %: " in said
    # noise is no reason to choose
    assert re.search(r"Exploration bonus 0\.1, Ridge 0\.1 earned most .* 3 other points are", said)
    table = next(frame for frame in at.dataframe if "Parameter" in frame.value)
    assert set(table.value["Parameter"]) == {"Exploration bonus", "Ridge"}
    # the controls say what is shown, so that pressing Run finds the very same sweep
    assert any("6 points × 4 replications × 300 steps" in c.value for c in at.caption)
    before = at.session_state["sweep-seen"]
    assert run(at).session_state["sweep-seen"] == before
    box(at, "Metric").set_value("pseudo_regret").run()
    assert titles(at)[0] == "Cumulative regret"


def test_the_best_so_far_is_one_of_the_points_that_are_as_far(app_pool: Pool, gate: Gate) -> None:
    gate.hold(24, 100, passes=5)
    at = run(visit(**url.to_query(small([{**ALPHA, "number": 12}], seed=24))))
    found = selection.manager().get(at.session_state["sweep-seen"])
    assert found is not None
    wait_for(lambda: found.landscape.completed.sum() >= 4, "some points")
    at.run()
    (said,) = (m.value for m in at.markdown if m.value.startswith("**Best so far, of "))
    points, rows = map(int, re.findall(r"of (\d+) points? with (\d+) replications", said)[0])
    n = found.landscape.completed.sum(axis=1)
    assert rows <= n.max()
    assert 1 <= points <= (n > 0).sum()
    gate.open()
    wait_for(lambda: not found.active, "the end")
    assert not any("so far" in m.value for m in at.run().markdown)


def test_a_preset_fills_the_controls(app_pool: Pool) -> None:
    at = visit()
    preset = presets()["varied"]
    choose_entry(at, "sweep-presets", "varied")
    assert not at.exception
    assert open_menu(at, "sweep-presets").button(key="sweep-preset-varied").proto.type == "primary"
    shown = [c.value for c in at.caption]
    assert preset.about in shown
    # nothing is started
    assert any("20 points × 6 replications × 5,000 steps" in text for text in shown)
    box(at, "Second parameter").set_value("agents.0.alpha").run()
    assert not at.exception
    assert (
        open_menu(at, "sweep-presets").button(key="sweep-preset-varied").proto.type == "secondary"
    )


def test_a_link_of_a_halving_is_run_as_one(app_pool: Pool) -> None:
    sweep = small([ALPHA, RIDGE], search="halving", metric="pseudo_regret", seed=5)
    at = ended(visit(**url.to_query(sweep)))
    assert at.session_state["sweep-seen"] == sweep.hash


@pytest.mark.slow
def test_a_search_by_optuna_is_run_and_shown(app_pool: Pool) -> None:
    ridge = {"path": "agents.0.ridge", "low": 0.1, "high": 1.0}
    own = {"search": "optuna", "number": 12, "batch": 6, "metric": "pseudo_regret"}
    sweep = sweeps.read(small([ALPHA, ridge]).model_dump(mode="json") | own)
    at = ended(visit(**url.to_query(sweep)))
    # the controls say all of it
    assert at.session_state["sweep-seen"] == sweep.hash
    assert titles(at)[:3] == [
        "Click-through rate: best so far",
        "Click-through rate against Exploration bonus",
        "Click-through rate against Ridge",
    ]
    assert any("tied with the best" in m.value for m in at.markdown)
    assert any(
        "there is nothing to refine; more **Points** search further" in m.value for m in at.markdown
    )
    assert "sweep-refine" not in [b.key for b in at.button]
    table = next(frame for frame in at.dataframe if "Explained variance" in frame.value)
    assert set(table.value["Parameter"]) == {"Exploration bonus", "Ridge"}
    at.button(key="sweep-open").click().run()
    assert not at.exception
    found = selection.manager().get(sweep.hash)
    assert found is not None
    best = found.landscape.best("ctr")
    assert best is not None
    assert at.session_state["job"] == found.landscape.sweep.point(best.point).hash
    # with the best point in the sidebar
    at.switch_page("sweep.py").run()
    assert not at.exception
    assert any(
        m.value.startswith("Your setting") and "is the best point" in m.value for m in at.markdown
    )


def test_without_optuna_the_page_says_so(app_pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    # an import of it fails
    monkeypatch.setitem(sys.modules, "optuna", None)
    at = visit()
    at.segmented_control[0].set_value("optuna").run()
    assert box(at, "Sampler").value == "tpe"
    run(at)
    assert any("Optuna, which is not installed" in e.value for e in at.error)


def test_a_cell_opens_in_the_arena(app_pool: Pool, one: Landscape) -> None:
    at = ended(visit(**url.to_query(one.sweep)))
    best = one.best()
    assert best is not None
    at.button(key="sweep-open").click().run()
    assert not at.exception
    assert at.title[0].value == "Arena"
    assert at.session_state["job"] == one.sweep.points[best.point].hash


def test_the_controls_of_a_sweep_are_there_again_after_another_page(
    app_pool: Pool, two: Landscape
) -> None:
    at = visit(**url.to_query(two.sweep))
    box(at, "Second parameter").set_value("agents.0.sharing").run()
    at = ended(run(at))
    seen = at.session_state["sweep-seen"]
    assert seen != two.sweep.hash
    at = at.switch_page("arena.py").run().switch_page("sweep.py").run()
    assert not at.exception
    assert at.session_state["sweep-seen"] == seen
    assert box(at, "Second parameter").value == "agents.0.sharing"
    assert any("9 points × 4 replications × 300 steps" in c.value for c in at.caption)
    # one point of it is in the Arena's controls
    at.button(key="sweep-open").click().run()
    at = at.switch_page("sweep.py").run()
    assert box(at, "Second parameter").value == "agents.0.sharing"
    at = at.switch_page("arena.py").run()
    next(n for n in at.number_input if n.label.startswith("Steps")).set_value(400).run()
    # of another experiment now, which the page says
    at = at.switch_page("sweep.py").run()
    assert not at.exception
    assert box(at, "Second parameter").value == "agents.0.sharing"
    assert any("9 points × 4 replications × 400 steps" in c.value for c in at.caption)


def test_the_first_visit_offers_a_sweep_of_the_arenas_agent(app_pool: Pool) -> None:
    at = visit()
    assert box(at, "Agent to sweep").value == "LinUCB"
    assert [box(at, f"{n} parameter").value for n in ("First", "Second")] == [
        "agents.0.alpha",
        "agents.0.ridge",
    ]
    # nine and seven values on log scales, with 0 and the setting 0.5 as additional values of the
    # first
    assert any("77 points × 16 replications" in c.value for c in at.caption)
    assert [t.value for t in at.text_input if t.label == "Additional values"] == ["0, 0.5", ""]
    assert [n.label for n in at.main.number_input] == ["From", "To", "Number of values"] * 2
    assert any("The map is computed" in c.value for c in at.caption)
    box(at, "Second parameter").set_value("agents.0.sharing").run()
    assert not at.exception
    assert at.multiselect[0].value == ["per_arm", "shared", "hybrid"]
    at.multiselect[0].set_value(["shared"]).run()
    assert [w.value for w in at.warning] == ["Sharing has 1 values; a sweep needs at least 2."]
    assert next(b for b in at.button if b.label == "Run").disabled


def test_only_the_swept_agent_is_in_the_sidebar(app_pool: Pool) -> None:
    at = visit()
    assert any(s.label.startswith("Exploration bonus") for s in at.sidebar.slider)
    # of another agent
    assert not any(s.label.startswith("Exploration rate") for s in at.sidebar.slider)
    choice = box(at, "Agent to sweep")
    choice.set_value(next(label for label in choice.options if "greedy" in label)).run()
    assert not at.exception
    assert not any(s.label.startswith("Exploration bonus") for s in at.sidebar.slider)
    assert any(s.label.startswith("Exploration rate") for s in at.sidebar.slider)


def test_the_menu_of_agents_can_be_searched(app_pool: Pool) -> None:
    at = open_menu(visit(), "add")

    def offered(query: str) -> set[str]:
        next(t for t in at.text_input if t.label == "Search").set_value(query).run()
        assert not at.exception
        return {b.key for b in at.button if b.key and b.key.startswith("add-")}

    assert offered("as in VW") == {"add-epsilon_greedy", "add-squarecb", "add-bag"}
    assert not offered("quantum")
    assert any(c.value == "No agent has these words." for c in at.caption)


def test_every_agent_can_be_swept(app_pool: Pool) -> None:
    at = visit()
    choose_entry(at, "add", "sgd_ts")
    assert not at.exception
    assert box(at, "Agent to sweep").value == "SGD-TS"
    assert not at.warning
    assert not next(b for b in at.button if b.label == "Run").disabled


def test_the_log_scale_can_be_switched_on_for_any_range(app_pool: Pool) -> None:
    at = visit()
    first = next(t for t in at.toggle if t.label == "Log scale")
    first.set_value(False).run()
    low = next(n for n in at.main.number_input if n.label == "From")
    low.set_value(0.0).run()
    assert [w.value for w in at.warning] == []
    next(t for t in at.toggle if t.label == "Log scale").set_value(True).run()
    assert not at.exception
    assert [w.value for w in at.warning] == []
    assert any("On a log scale, the range begins at 0.03" in c.value for c in at.caption)
    text = next(t for t in at.text_input if t.label == "Additional values")
    text.set_value("0, many").run()
    assert len(at.warning) == 1
    assert "many" in at.warning[0].value
    assert next(b for b in at.button if b.label == "Run").disabled


def test_the_setting_is_marked_and_the_sweep_is_refined(app_pool: Pool) -> None:
    sweep = small(
        [{**ALPHA, "high": 1.0, "number": 2}], {"kind": "linucb", "alpha": 0.1}, steps=600
    )
    at = ended(visit(**url.to_query(sweep)))
    assert any(m.value.startswith("Your setting (Exploration bonus **0.1**)") for m in at.markdown)
    assert any(
        "more than a factor of 2 from its neighbour" in m.value or "of the grid" in m.value
        for m in at.markdown
    )
    at.button(key="sweep-refine").click().run()
    assert not at.exception
    at = ended(at)
    found = selection.manager().get(at.session_state["sweep-seen"])
    assert found is not None
    assert found.sweep.stages[0].hash == sweep.hash
    assert found.sweep.looks == 2
    assert [c for c in at.caption if c.value.startswith("Finished in ")]
    assert at.query_params["refinements.0"]
    assert any("level 1.25 %; refinements may use the rest of 5 %)" in m.value for m in at.markdown)
    # the controls hold the refined sweep
    assert run(at).session_state["sweep-seen"] == found.id
    at.button(key="sweep-unrefined").click().run()
    assert run(at).session_state["sweep-seen"] == sweep.hash


def test_a_broken_link_is_one_sentence(app_pool: Pool) -> None:
    at = visit(**{**url.to_query(small()), "axes.0": "agents.0.alpha,1"})
    assert any("write path,low,high,number,scale" in e.value for e in at.error)


@pytest.mark.usefixtures("console")
def test_runs_lists_sweeps_to_open_star_annotate_and_delete(app_pool: Pool, two: Landscape) -> None:
    ended(visit(**url.to_query(two.sweep)))
    at = (
        AppTest.from_file(str(ROOT / "pages" / "main.py"), default_timeout=120)
        .run()
        .switch_page("runs.py")
        .run()
    )
    assert not at.exception
    name = two.sweep.hash

    def select() -> AppTest:
        rows = [sweep_list.row(entry) for entry in selection.manager().stored_sweeps()]
        place = next(i for i, row in enumerate(rows) if row.id == name)
        at.session_state[listing.key(rows, "sweep")] = {"selection": {"rows": [place]}}
        return at.run()

    def press(label: str) -> AppTest:
        # those of sweeps are below those of runs
        found = [b for b in at.button if b.label == label][-1]
        return found.click().run()

    frame = next(d.value for d in at.dataframe if "Sweep" in d.value)
    # other tests have some too
    lines = frame[frame["Sweep"] == "LinUCB: Exploration bonus, Ridge"].to_dict("records")
    best = next(e.best for e in selection.manager().stored_sweeps() if e.sweep.hash == name)
    assert best is not None
    columns = "Best setting", "Reward per step", "Simulator", "Length"
    expected = best.label, best.ctr.mean, "Pet shop", two.sweep.experiment.steps
    assert expected in [tuple(line[column] for column in columns) for line in lines]
    at = select()
    at = press("Star")
    at = select()
    at = press("Notes")
    at.text_area(key=f"Notes-{name}").set_value("refine later")
    at = press("Save")
    entry = next(e for e in selection.manager().stored_sweeps() if e.sweep.hash == name)
    assert (entry.starred, entry.notes) == (True, "refine later")
    at = select()
    at = press("Open in Sweep")
    assert not at.exception
    assert at.title[0].value == "Sweep"
    assert [box(at, f"{n} parameter").value for n in ("First", "Second")] == [
        "agents.0.alpha",
        "agents.0.ridge",
    ]
    at = at.switch_page("runs.py").run()
    at = select()
    at = at.button(key="destructive-sweeps").click().run()
    # it is asked first
    assert selection.manager().get(name) is not None
    at = press("Delete permanently")
    assert not at.exception
    assert selection.manager().get(name) is None


def test_the_arena_says_what_a_sweep_knows(app_pool: Pool, one: Landscape) -> None:
    ended(visit(**url.to_query(one.sweep)))
    at = AppTest.from_file(str(ROOT / "pages" / "main.py"), default_timeout=120)
    point = one.sweep.points[0].agents[0].model_dump(mode="json")
    agents = [point, {**point, "alpha": 0.12, "label": "Other"}]
    both = Experiment.model_validate(
        {**one.sweep.points[0].model_dump(mode="json"), "agents": agents}
    )
    for name, text in experiment_link.to_query(both).items():
        at.query_params[name] = text
    at = at.switch_page("arena.py").run()
    job = app_pool.get(both.hash)
    assert job is not None
    wait_for(lambda: not job.active, "the end of the run")
    slider = next(s for s in at.run().slider if "Exploration" in s.label)
    slider.set_value(0.2).run()
    assert not at.exception
    said = [c.value for c in at.caption if "From a previous sweep" in c.value]
    assert len(said) == 1
    # the run above shows it as it is
    assert "Other" not in said[0]
    assert "at the nearest point, Exploration bonus 0.1" in said[0]
    # it has not measured it to its end
    job.status = "stopped"
    said = [c.value for c in at.run().caption if "From a previous sweep" in c.value]
    job.status = "finished"
    assert [("Other" in sentence) for sentence in said] == [False, True]
    other = both.model_copy(update={"seed": both.seed + 1})
    at = open_page("arena", experiment_link.to_query(other))
    next(box for box in at.sidebar.number_input if "Seed" in box.label).set_value(both.seed).run()
    # the run above had other users
    assert sum("From a previous sweep" in c.value for c in at.caption) == 2


def test_the_conclusion_on_choices_stands_above_the_figures(app_pool: Pool) -> None:
    sharing = {"path": "agents.0.sharing", "values": ["per_arm", "shared"]}
    sweep = small([{"path": "agents.0.alpha", "values": [0.1, 0.3, 10.0]}, sharing], replications=8)
    at = ended(visit(**url.to_query(sweep)))
    job = selection.manager().get(sweep.hash)
    assert job is not None
    sentence = lines.comparison(job.landscape, "ctr")
    assert "exploration bonus = " in sentence
    places = [i for i, each in enumerate(at.main) if sentence in str(getattr(each, "value", ""))]
    components = [
        (i, getattr(e.proto, "bidi_component", e.proto))
        for i, e in enumerate(at.main)
        if "bidi" in e.type
    ]
    (figures,) = [i for i, found in components if found.component_name.endswith("live_panel")]
    assert len(places) == 1
    assert places[0] < figures


def test_nothing_is_said_to_lose_against_another_simulator(app_pool: Pool) -> None:
    alpha = {"path": "agents.0.alpha", "values": [0.1, 10.0]}

    def said(*axes: dict[str, Any]) -> tuple[bool, bool]:
        at = ended(visit(**url.to_query(small(list(axes)))))
        return any("our setting" in m.value for m in at.markdown), any(
            s.value == "Sensitivity" for s in at.subheader
        )

    assert said(alpha, {"path": "agents.0.ridge", "values": [0.1, 10.0]}) == (True, True)
    assert said(alpha, {"path": "simulator.shock_step", "values": [None, 100]}) == (False, False)
    assert said({"path": "simulator.shock_step", "values": [None, 100, 200]}) == (False, True)


def test_the_notice_of_a_simulator_stays_on_its_page(pool: Pool) -> None:
    at = open_page("sweep")
    at = choose_entry(at, "simulators", "synthetic")
    assert any("Static MLP (requires" in c.value.replace("\\", "") for c in at.sidebar.caption)
    at = at.switch_page("arena.py").run()
    assert not any("Left out" in c.value for c in at.sidebar.caption)


def test_a_number_out_of_range_is_refused_and_the_settings_stay(pool: Pool) -> None:
    at = open_page("sweep")
    box(at, "Agent to sweep").set_value("LinTS").run()
    box(at, "Second parameter").set_value("agents.0.sharing").run()
    before = [c.value for c in at.caption if " points × " in c.value]
    assert len(before) == 1

    def steps() -> Any:
        return next(n for n in at.sidebar.number_input if n.label == "Steps T")

    right = steps().value
    at = steps().set_value(0).run()
    assert not at.exception
    assert [e.value for e in at.error] == [
        "Steps is 0; it must be a whole number from 1 to 10,000,000."
    ]
    assert next(b for b in at.button if b.label == "Run").disabled
    assert not any("Press **Run**" in c.value for c in at.caption)
    at = steps().set_value(right).run()
    assert not at.error
    assert box(at, "Agent to sweep").value == "LinTS"
    assert box(at, "Second parameter").value == "agents.0.sharing"
    assert [c.value for c in at.caption if " points × " in c.value] == before


def test_the_settings_of_another_agent_are_not_shown_for_an_invalid_experiment(pool: Pool) -> None:
    at = open_page("sweep")
    assert box(at, "First parameter").value == "agents.0.alpha"
    next(n for n in at.sidebar.number_input if n.label == "Steps T").set_value(0).run()
    assert box(at, "First parameter").value == "agents.0.alpha"
    at = box(at, "Agent to sweep").set_value("LinTS").run()
    assert not at.exception
    assert not [s for s in at.main.selectbox if s.label == "First parameter"]
    assert any("The settings need a valid experiment" in c.value for c in at.caption)


def test_the_setting_is_the_best_tied_or_worse(app_pool: Pool) -> None:
    def verdict(alpha: float) -> str:
        axis = {"path": "agents.0.alpha", "values": [0.1, 0.12, 10.0]}
        at = ended(
            visit(**url.to_query(small([axis], {"kind": "linucb", "alpha": alpha}, steps=600)))
        )
        (found,) = [m.value for m in at.markdown if m.value.startswith("Your setting")]
        return str(found.partition("), ✕ in the plot, ")[2])

    first, second, far = map(verdict, (0.1, 0.12, 10.0))
    best, tied = (first, second) if first.startswith("is the best point") else (second, first)
    assert best == "is the best point."
    assert tied.startswith("is too noisy to tell: the estimated loss is 0.0")
    assert far.startswith("is worse than the best by ")
