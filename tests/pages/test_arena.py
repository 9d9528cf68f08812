"""The page Arena in every state, through app.py, with real workers."""

from __future__ import annotations

import gc
import json
import re
import weakref
from collections.abc import Callable, Iterator
from typing import Any, Literal, get_args, get_origin
from urllib.parse import parse_qsl

import pytest
import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.testing.v1 import AppTest

from bandits import Experiment, UserError, read, run
from bandits.agents import REGISTRY as AGENTS
from bandits.base.formatting import count, description, number
from bandits.base.params import declaration, entry_kinds
from bandits.experiments import url
from bandits.experiments.presets import presets
from bandits.experiments.snapshots import snapshot_steps
from bandits.results import decision as whys
from bandits.results import metrics
from bandits.results.change.lost_clicks import without_changes
from bandits.results.comparison import paired_tests
from bandits.results.comparison.conclusion import (
    leader_comparisons,
    learning_summary,
    main_comparison,
    ranking,
    reference_comparisons,
)
from bandits.results.decision_report import explain_decision
from bandits.results.export import report
from bandits.results.metric_registry import METRICS
from bandits.results.result import Result
from bandits.results.visit import per_visit
from bandits.runtime.pool import Job, Pool
from bandits.runtime.supervisor import ATTEMPTS
from bandits.simulators import REGISTRY as SIMULATORS
from bandits.simulators.petshop import CLICK_RATES
from bandits_app.arena import controls, explanations, run_buttons
from bandits_app.run_view import board as board_module
from bandits_app.run_view import unchanged
from bandits_app.session import followed
from bandits_app.widgets import folded
from bandits_app.widgets.live_panel import panel as live
from tests.gate import Gate
from tests.pages.support import (
    board,
    choose_entry,
    ended,
    open_menu,
    open_page,
    panel,
    panels,
    plots,
    refusals,
    sentences,
    status,
    under_way,
)
from tests.support import experiment, over, same, thinned, wait_for


@pytest.fixture
def endless(pool: Pool, gate: Gate) -> Iterator[Callable[[int], Job]]:
    """Runs that last until the test is over: they stand still at step 1,000 of 3,000."""
    begun: list[Job] = []

    def begin(seed: int) -> Job:
        gate.hold(seed, 1000)
        begun.append(pool.submit(experiment(steps=3000, seed=seed)))
        return begun[-1]

    yield begin
    for job in begun:
        pool.stop(job)


def arena(job: Job | None = None) -> AppTest:
    """The Arena, opened by the link to a run."""
    return settled(open_page("arena", url.to_query(job.experiment) if job is not None else None))


def settled(at: AppTest) -> AppTest:
    assert not at.exception
    assert at.title[0].value == "Arena"
    return at


def press(at: AppTest, label: str) -> AppTest:
    (button,) = [b for b in at.button if b.label == label and not b.disabled]
    return settled(button.click().run())


def widget(at: AppTest, ending: str) -> Any:
    (found,) = [e for e in at.sidebar if (getattr(e, "key", None) or "").endswith(ending)]
    return found


def setting(at: AppTest, name: str) -> Any:
    """A field of the experiment itself; those of agents and guards have longer keys."""
    (found,) = [
        e for e in at.sidebar if re.fullmatch(rf"\w+-{name}", getattr(e, "key", None) or "")
    ]
    return found


def choose_preset(at: AppTest, name: str) -> AppTest:
    """Choose a preset in its menu."""
    return settled(choose_entry(at, "presets", name))


def held_preset(at: AppTest) -> str | None:
    """The preset that the controls hold, which the menu marks."""
    held = [
        b.key
        for b in open_menu(at, "presets").button
        if (b.key or "").startswith("preset-") and b.proto.type == "primary"
    ]
    return held[0].removeprefix("preset-") if held else None


def name_box(at: AppTest, number: int) -> Any:
    """The box with an agent's name; its key holds the name, which may follow a parameter."""
    (found,) = [e for e in at.sidebar.text_input if f"agent{number}-label" in (e.key or "")]
    return found


def choose(at: AppTest, simulator: str) -> AppTest:
    """Choose a simulator in its menu."""
    return settled(choose_entry(at, "simulators", simulator))


def address(at: AppTest) -> str:
    """The run that the address names."""
    given = {
        name: text if isinstance(text, str) else text[0] for name, text in at.query_params.items()
    }
    found = url.parse_query(given)
    assert found.same
    return found.experiment.hash


def draft(at: AppTest) -> Experiment:
    """What the controls say."""
    return read(at.session_state["draft"].data())


# states


def test_the_arena_opens_with_a_race_and_not_with_a_form(pool: Pool) -> None:
    at = arena()
    assert draft(at) == presets()["race"].experiment
    assert address(at) == presets()["race"].experiment.hash
    assert len(plots(at)) == 4


@pytest.mark.slow
def test_a_run_that_waits_says_how_many_are_before_it(
    pool: Pool, endless: Callable[[int], Job]
) -> None:
    race = pool.get(presets()["race"].experiment.hash)
    assert race is None or ended(race)
    # two more than there are workers
    busy = [endless(seed) for seed in range(900, 902 + pool.workers)]
    wait_for(lambda: pool.queue_position(busy[-1]) == 1, "all workers to be busy", over(*busy))
    assert re.fullmatch(
        r"Queued for \d+ s: next, starts when another run ends", status(arena(busy[-2]))
    )
    at = arena(busy[-1])
    assert re.fullmatch(r"Queued for \d+ s: 1 run ahead", status(at))
    assert "waiting" in board(at)
    assert [p["data"] for p in plots(at)] == [[]] * 4
    assert all(p["layout"]["annotations"][0]["text"].endswith(".") for p in plots(at))
    at = press(at, "Stop")
    assert status(at) == "Stopped at step 0 of 3,000; results so far are kept"


def test_a_link_to_a_long_run_waits_for_run(pool: Pool, gate: Gate) -> None:
    long = experiment("linucb", steps=10_000_000, seed=911)
    gate.hold(911, 100)
    # a test before this one may have left a run that has not ended yet
    before = pool.live_jobs()
    at = open_page("arena", url.to_query(long))
    # the page, and the page drawn again
    for _ in range(2):
        at = settled(at.run())
        assert status(at) == "Not started: a long run waits for Run"
        assert (draft(at), address(at)) == (long, long.hash)
        assert not {"Pause", "Resume"} & {button.label for button in at.button}
        assert "Press Run to update" not in "".join(c.value for c in at.caption)
    assert pool.get(long.hash) is None
    assert not set(pool.live_jobs()) - set(before)
    at = press(at, "Run")
    job = pool.get(long.hash)
    assert job is not None
    assert job.active
    assert status(press(at, "Stop")).startswith("Stopped at step")


def test_a_live_run_grows_and_can_be_stopped(
    pool: Pool, gate: Gate, endless: Callable[[int], Job]
) -> None:
    job = under_way(endless(910))
    at = arena(job)
    assert status(at).startswith("Step ")
    assert "leads" in board(at)
    # during a run nothing is called significant
    assert sentences(at) == []
    before = plots(at)[1]["data"]
    size = job.result.histories["LinUCB"].size
    gate.hold(910, 2000)
    wait_for(lambda: job.result.histories["LinUCB"].size > size, "more points", over(job))
    after = plots(settled(at.run()))[1]["data"]
    assert max(after[1]["x"]) >= max(before[1]["x"])
    at = press(at, "Stop")
    assert job.status == "stopped"
    assert status(at).startswith("Stopped at step ")
    assert status(at).endswith("; results so far are kept")
    at.run()
    assert all(p["data"] for p in plots(at)[:2])
    assert any(s.startswith("The run has not reached its end.") for s in sentences(at))
    assert [b.disabled for b in at.button if b.label == "Stop"] == [True]


def test_the_conclusions_compare_with_the_agent_that_the_user_chooses(pool: Pool) -> None:
    job = ended(pool.submit(experiment("linucb", "lints", "random", steps=2000, seed=920)))
    at = arena(job)
    choice = next(box for box in at.selectbox if box.label == "Compared with")
    leader = ranking(job.result)[0]
    assert choice.options == [f"the leader ({leader})", "LinUCB", "LinTS", "Random"]
    caption = next(c.value for c in at.caption if "glossary#bonferroni-correction" in c.value)
    assert caption.startswith("Corrected for the 3 pairs of agents")
    at = settled(choice.set_value("Random").run())
    assert sentences(at)[:2] == reference_comparisons(job.result, "Random")
    assert sentences(at)[:2] != leader_comparisons(job.result)
    at = settled(
        next(box for box in at.selectbox if box.label == "Compared with").set_value("").run()
    )
    assert sentences(at)[:2] == leader_comparisons(job.result)


def test_an_agent_that_is_called_the_leader_can_be_chosen(pool: Pool) -> None:
    job = ended(
        pool.submit(
            experiment("linucb", "lints", {"kind": "random", "label": "the leader"}, steps=2000)
        )
    )
    at = arena(job)
    assert ranking(job.result)[0] != "the leader"
    assert sentences(at)[:2] == leader_comparisons(job.result)
    choice = next(box for box in at.selectbox if box.label == "Compared with")
    assert len(set(choice.options)) == 4
    at = settled(choice.set_value("the leader").run())
    assert sentences(at)[:2] == reference_comparisons(job.result, "the leader")


def test_conclusions_are_computed_once_and_do_not_block_other_sessions(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = ended(pool.submit(experiment("linucb", "lints", "random", steps=2000, seed=925)))
    blocked, compute = list[bool](), main_comparison

    def computed(result: Result, reference: str | None) -> tuple[str, list[str]]:
        blocked.append(board_module._frames()._lock.locked() or job.lock.locked())
        return compute(result, reference)

    monkeypatch.setattr(board_module, "main_comparison", computed)
    at = arena(job)
    arena(job)
    settled(at.select_slider(key="view-window").set_value(100).run())
    assert blocked == [False]


def test_no_page_keeps_a_run_in_memory_that_the_pool_has_dropped(pool: Pool) -> None:
    before = ended(pool.submit(experiment(steps=2000, seed=927)))
    shown = weakref.ref(before)
    arena(before)
    del before
    with pool._change:
        pool._jobs.clear()
    wait_for(
        lambda: gc.collect() >= 0 and shown() is None, "the end of the last reference to the run"
    )


def test_the_correction_of_the_sentence_on_the_shock_is_stated(pool: Pool) -> None:
    simulator = {"kind": "petshop", "n_products": 10, "shock_step": 600}
    agents = ("linucb", "lints", "random")
    shocked = ended(pool.submit(experiment(*agents, simulator=simulator, steps=2000, seed=926)))
    ending = "hold together; the one after the shock is corrected separately."
    assert any(ending in s for s in sentences(arena(shocked)))
    plain = ended(pool.submit(experiment(*agents, steps=2000, seed=926)))
    ending = "The intervals of the differences over the whole run hold together."
    assert any(s.endswith(ending) for s in sentences(arena(plain)))


def test_a_finished_run_shows_its_numbers(pool: Pool) -> None:
    job = ended(pool.submit(experiment("linucb", "lints", "random", steps=2000, seed=920)))
    at = arena(job)
    assert status(at).startswith("Finished: 2,000 steps, 3 replications, in ")
    order = ranking(job.result)
    assert sorted(order, key=board(at).index) == order
    best = metrics.estimate(metrics.click_rate(job.histories[order[0]]))
    assert f"{best.mean:.3f} ± {(best.high - best.low) / 2:.3f}" in board(at)
    assert sentences(at)[:2] == leader_comparisons(job.result)
    assert sentences(at)[2] == learning_summary(job.result)
    click_rate = {t["name"]: t for t in plots(at)[0]["data"] if "fill" not in t}
    assert click_rate["LinTS"]["y"][-1] == pytest.approx(
        metrics.ctr(job.histories["LinTS"]).mid[-1], rel=1e-6
    )
    window = at.select_slider(key="view-window")
    assert window.value == 1000
    at = settled(window.set_value(100).run())
    click_rate = {t["name"]: t for t in plots(at)[0]["data"] if "fill" not in t}
    assert click_rate["LinTS"]["y"][-1] == pytest.approx(
        metrics.ctr(job.histories["LinTS"], 100).mid[-1], rel=1e-6
    )


@pytest.mark.slow
def test_a_run_whose_workers_keep_dying_is_told_in_a_sentence_and_can_be_repeated(
    pool: Pool, endless: Callable[[int], Job]
) -> None:
    job = under_way(endless(930))
    at = arena(job)

    def given_up() -> bool:
        if (process := pool.processes.get(job)) is not None:
            process.kill()
            process.wait()
        return not job.active

    wait_for(given_up, "the pool to give up")
    at = settled(at.run())
    assert status(at) == f"Failed: its worker process died {ATTEMPTS} times"
    # its results are kept
    assert "leads" in board(at)
    at = press(at, "Run")
    again = pool.get(job.id)
    assert again is not None
    assert again is not job
    assert again.active
    at = press(at, "Stop")
    assert again.status == "stopped"


def test_what_cannot_be_run_is_refused_in_one_sentence_and_the_result_stays(pool: Pool) -> None:
    job = ended(pool.submit(experiment({"kind": "linucb"}, {"kind": "random"}, seed=940)))
    at = arena(job)
    before, buttons = board(at), [b.label for b in at.main.button]
    number = next(iter(at.session_state["draft"].agents))
    name_box(at, number).set_value("![x](http://x/y.png)")
    at = press(settled(at.run()), "Run")
    (said,) = refusals(at)
    assert said.startswith("LinUCB, Name is ![x](http://x/y.png); it must be a text of 1 to 40 ")
    assert said.endswith(".")
    assert said.count(". ") == said.count("\n") == 0  # one sentence
    # quoted, not drawn
    assert "![x](" not in at.error[0].value
    assert (board(at), address(at)) == (before, job.id)
    # a run that is on can still be stopped
    assert [b.label for b in at.main.button] == buttons
    name_box(at, number).set_value("Mine")
    at = press(settled(at.run()), "Run")
    assert not at.error
    assert address(at) != job.id


def test_run_says_that_a_result_is_there_already(pool: Pool) -> None:
    at = arena(ended(pool.submit(experiment({"kind": "linucb"}, {"kind": "random"}, seed=941))))
    assert not at.toast
    (said,) = press(at, "Run").toast
    assert said.value.startswith("Already computed")


def small_baselines(seed: int) -> Experiment:
    """The default experiment, shorter and with a small log for the network that is trained
    on one.
    """
    data = presets()["race"].experiment.model_dump(mode="json")
    agents = [
        {**a, **({"interactions": 1000, "epochs": 1} if a["kind"] == "static_mlp" else {})}
        for a in data["agents"]
    ]
    return read({**data, "agents": agents, "steps": 30, "replications": 2, "seed": seed})


# those that plan visits need another simulator
OF_THE_SHOP = [kind for kind, cls in AGENTS.items() if "visits" not in cls.needs]


@pytest.mark.parametrize(
    "kind", thinned([(kind,) for kind in SIMULATORS], lambda _: False, lambda n: n == 1)
)
def test_the_default_experiment_runs_in_every_simulator_and_comes_back(
    pool: Pool, kind: str
) -> None:
    start = small_baselines(938)
    at = choose(arena(ended(pool.submit(start))), kind)
    moved = draft(at)
    assert moved.simulator.kind == kind
    if kind != "petshop":
        preset = presets()[SIMULATORS[kind].preset].experiment
        assert (moved.steps, moved.replications, moved.simulator) == (
            preset.steps,
            preset.replications,
            preset.simulator,
        )
    kept = {agent.kind for agent in moved.agents}
    for agent, label in zip(start.agents, start.labels, strict=True):
        assert agent.kind in kept or any(
            f" {label} (" in c.value.replace("\\", "").partition("Left out:")[2]
            for c in at.sidebar.caption
        )
    setting(at, "steps").set_value(6)
    widget(at, "-replications").set_value(2)
    at = press(settled(at.run()), "Run")
    assert refusals(at) == []
    job = pool.get(address(at))
    assert job is not None
    assert job.experiment.simulator.kind == kind
    assert ended(job).status == "finished", job.error
    at = choose(settled(at.run()), "petshop")
    assert draft(at) == (start if kind != "petshop" else job.experiment)


@pytest.mark.slow
def test_the_choice_of_a_simulator_is_undone_and_redone(pool: Pool) -> None:
    start = small_baselines(937)
    at = choose(arena(ended(pool.submit(start))), "wheel")
    moved = draft(at)
    at = choose(at, "ranking")
    assert [c.value for c in at.sidebar.caption if "Left out" in c.value]
    at = press(press(at, "Undo"), "Undo")
    assert draft(at) == start
    assert not [c.value for c in at.sidebar.caption if "Left out" in c.value]
    at = press(at, "Redo")
    assert draft(at) == moved
    assert draft(press(at, "Reset")) == start


@pytest.mark.slow
def test_agents_that_the_user_has_changed_are_taken_to_the_next_simulator(pool: Pool) -> None:
    at = choose(
        arena(ended(pool.submit(experiment("linucb", "lints", steps=5, seed=936)))), "synthetic"
    )
    number = list(at.session_state["draft"].agents)[-1]
    name_box(at, number).set_value("Mine")
    at = choose(settled(at.run()), "wheel")
    assert "Mine" in draft(at).labels


def test_an_impossible_combination_is_named_and_repaired_with_one_button(pool: Pool) -> None:
    simulator = {"kind": "ranking", "n_items": 500, "n_candidates": 20, "embedding": 16}
    agents = ("random", {"kind": "linucb", "sharing": "shared"})
    at = arena(ended(pool.submit(experiment(*agents, simulator=simulator, steps=5, seed=939))))
    number = list(at.session_state["draft"].agents)[-1]
    widget(at, f"agent{number}-sharing").set_value("per_arm")
    widget(at, "-n_items").set_value(500_000.0)
    at = settled(at.run())
    # before Run is pressed
    (sentence,) = refusals(at)
    assert "GiB of memory" in sentence
    assert refusals(press(at, "Run")) == [sentence]
    said = [c.value.replace("\\", "") for c in at.main.caption]
    assert (
        ":material/build: **The repair.** Changed: LinUCB: Sharing shared instead of per arm."
        in said
    )
    assert "Undo" in [b.label for b in at.button if not b.disabled]
    at = press(at, "Repair and run")
    assert refusals(at) == []
    assert [agent.kind for agent in draft(at).agents] == ["random", "linucb"]
    assert draft(at).agents[1].sharing == "shared"
    assert address(at) == draft(at).hash
    assert refusals(press(at, "Undo")) == [sentence]


def test_an_agent_that_does_not_fit_is_named_and_removed_with_one_button(pool: Pool) -> None:
    at = arena(ended(pool.submit(experiment("random", "neural_linucb", steps=5, seed=934))))
    at = choose(at, "ranking")
    number = next(
        n for n, a in at.session_state["draft"].agents.items() if a["kind"] == "neural_linucb"
    )
    at = settled(widget(at, f"agent{number}-pretrain").set_value(100).run())
    assert refusals(at) == [
        "Neural-LinUCB requires logged interactions, which Ranking does not provide."
    ]
    assert any("agents." in e.value for e in at.error) is False
    at = press(at, "Repair and run")
    assert refusals(at) == []
    assert next(a for a in draft(at).agents if a.kind == "neural_linucb").pretrain == 0
    assert [c.value for c in at.main.caption if "Previous result" in c.value] == []
    press(at, "Stop")


def test_cards_of_agents_are_one_line_with_name_and_main_parameter(pool: Pool) -> None:
    stated = {"kind": "linucb", "label": "LinUCB alpha 1.5", "alpha": 1.5}
    floor = {"kind": "random", "label": "Floor"}
    agents = ({"kind": "linucb", "alpha": 0.25}, {"kind": "linucb", "alpha": 2.0}, stated, floor)
    at = arena(ended(pool.submit(experiment(*agents, seed=933))))
    cards = [e for e in at.sidebar.expander if "Floor" in e.label or "LinUCB" in e.label]
    assert [c.label for c in cards] == [
        "**LinUCB** :gray[α 0.25]",
        "**LinUCB 2** :gray[α 2]",
        "**LinUCB alpha 1.5**",
        "**Floor**",
    ]
    assert [c.proto.expanded for c in cards] == [True, False, False, False]
    at = settled(choose_entry(at, "add", "ucb1"))
    cards = [e for e in at.sidebar.expander if "LinUCB" in e.label or "UCB1" in e.label]
    # the new one is open
    assert [c.proto.expanded for c in cards] == [False, False, False, True]


def test_a_name_that_states_a_parameter_follows_it(pool: Pool) -> None:
    agents = (
        {"kind": "linucb", "label": "alpha 0.25", "alpha": 0.25},
        {"kind": "linucb", "label": "alpha 2"},
    )
    at = arena(ended(pool.submit(experiment(*agents, "random", seed=934))))

    def moved(value: float) -> list[str]:
        nonlocal at
        at = settled(
            next(s for s in at.sidebar.slider if s.key.endswith("-alpha")).set_value(value).run()
        ).run()
        return [e.label for e in at.sidebar.expander if e.label.startswith(("**alpha", "**LinUCB"))]

    assert moved(1.0) == ["**alpha 1**", "**alpha 2** :gray[α 0.5]"]
    assert [t.value for t in at.sidebar.text_input if t.label == "Name"] == [
        "alpha 1",
        "alpha 2",
        "",
    ]
    # the other agent has that name
    assert moved(2.0) == ["**LinUCB** :gray[α 2]", "**alpha 2** :gray[α 0.5]"]
    assert not at.exception


def test_menus_group_agents_and_simulators_and_describe_each(pool: Pool) -> None:
    at = choose(arena(ended(pool.submit(experiment("random", seed=932)))), "wheel")
    at = open_menu(open_menu(at, "simulators"), "add")
    captions = [c.value.replace("\\", "") for c in at.sidebar.caption]
    for kind in SIMULATORS:
        assert description(SIMULATORS[kind]) in captions
    assert any(
        text.startswith("Not available in Wheel: ") and "Static MLP" in text for text in captions
    )
    headings = [m.value for m in at.sidebar.markdown if m.value.startswith("**")]
    assert headings == [
        *(f"**{name}**" for name in ("Linear", "Trees", "Neural", "Context free")),
        *(f"**{name}**" for name in ("Recommendation", "Data sets", "Known functions")),
    ]


def test_a_preset_that_was_not_run_yet_stands_above_a_dimmed_previous_result(pool: Pool) -> None:
    at = arena(ended(pool.submit(experiment(seed=931))))
    assert not [h for h in at.get("html") if "st-key-result{animation:dim" in h.proto.body]
    at = choose_preset(at, "wheel")
    assert [h for h in at.get("html") if "st-key-result{animation:dim" in h.proto.body]
    assert [
        c.value
        for c in at.caption
        if "Previous result" in c.value and presets()["wheel"].about in c.value
    ]


def test_only_who_started_a_run_can_end_it(pool: Pool, gate: Gate) -> None:
    mine = arena(ended(pool.submit(experiment(seed=944))))
    gate.hold(944, 1000)
    widget(mine, "-steps").set_value(3000)
    mine = press(settled(mine.run()), "Run")
    job = pool.get(address(mine))
    assert job is not None
    under_way(job)
    yours = press(arena(job), "Stop")
    assert refusals(yours) == ["Only the user who started this run may pause, resume or stop it."]
    assert job.status == "running"
    mine = press(settled(mine.run()), "Pause")
    wait_for(lambda: job not in pool.processes, "its worker to be free")
    assert status(settled(mine.run())).startswith("Paused at step ")
    paused = job.step
    mine = press(mine, "Resume")
    gate.hold(944, 2000)
    wait_for(lambda: job.step > paused, "the run to go on", over(job))
    press(settled(mine.run()), "Stop")
    assert job.status == "stopped"


@pytest.mark.parametrize("label", ["Run", "Continue"])
def test_no_press_is_lost_where_the_page_is_interrupted(
    pool: Pool, monkeypatch: pytest.MonkeyPatch, label: str
) -> None:
    """Another event begins the page anew before it has reached the button."""
    at = arena(ended(pool.submit(experiment(seed=945))))
    if label == "Run":
        widget(at, "-steps").set_value(600)
        at = settled(at.run())
    choose, times = run_buttons.choose_preset, iter([True])

    def interrupted(row: DeltaGenerator, preset: str | None) -> None:
        if next(times, False):
            st.rerun()
        choose(row, preset)

    monkeypatch.setattr(run_buttons, "choose_preset", interrupted)
    at = press(at, label)
    assert next(times, None) is None
    job = pool.get(address(at))
    assert job is not None
    # chosen, or twice the 300 of the run
    assert job.experiment.steps == 600
    assert status(settled(arena(ended(job)))).startswith("Finished: ")


def test_a_run_that_ends_takes_no_refusal_away(
    pool: Pool, endless: Callable[[int], Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page draws itself anew when a run ends: perhaps just after something was refused."""
    job = under_way(endless(918))
    at = arena(job)

    def refuse(e: Experiment, **_: object) -> Job:
        raise UserError("there is no such thing")

    def drawn_as_it_ends(packed: bytes, *, key: str) -> None:
        pool.stop(job)
        wait_for(lambda: not job.active, "the end")

    monkeypatch.setattr(followed, "submit_and_follow", refuse)
    monkeypatch.setattr(live, "mount", drawn_as_it_ends)
    at = press(at, "Run")
    assert job.status == "stopped"
    assert refusals(at) == ["There is no such thing."]
    assert refusals(settled(at.run())) == []


def test_a_finished_run_can_be_continued(pool: Pool) -> None:
    at = press(arena(ended(pool.submit(experiment(seed=945)))), "Continue")
    longer = pool.get(address(at))
    assert longer is not None
    assert longer.experiment.steps == draft(at).steps == 600
    # it is what is shown
    assert not any("Press **Run**" in c.value for c in at.caption)
    assert ended(longer).status == "finished"


def test_invalid_widths_are_refused_below_their_field(pool: Pool) -> None:
    at = arena(ended(pool.submit(experiment({"kind": "random"}, seed=941))))
    at = settled(choose_entry(at, "add", "static_mlp"))
    for typed in ("64, -3", "many", "", "64; 32", "1.5", ", ".join(["8"] * 7), "99999"):
        widget(at, "-hidden").set_value(typed)
        at = settled(at.run())
        (refusal,) = [
            m.value for m in at.sidebar.markdown if m.value.startswith(":small[:red[hidden")
        ]
        assert refusal.endswith("The value stays 64, 32.]"), typed
        assert tuple(at.session_state["draft"].data()["agents"][1]["hidden"]) == (64, 32)


def opened(given: dict[str, str]) -> AppTest:
    """The Arena, opened by an address."""
    return settled(open_page("arena", given))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {"simulator": "casino"},
            "Simulator, kind is 'casino'; it must be one of petshop, classification",
        ),
        (
            {"simulator": "petshop", "agents.0": "linucb", "agents.0.alpha": "1e999"},
            "LinUCB, alpha is '1e999'; numbers must be finite",
        ),
        ({"agents.0": "linucb", "agents.1": "psychic"}, "Agent 2, kind is 'psychic'"),
        ({"agents.1": "linucb"}, "they must count from 0"),
        ({"agents.0": "linucb", "steps": "many"}, "Steps is 'many'; it must be a whole number"),
        (
            {"agents.0": "linucb", "agents.0.label": "<img src=x onerror=alert(1)>"},
            "LinUCB, Name is <img src=x",
        ),
        ({"agents.0": "é" * 500}, "must be one of"),
        ({"agents.0": "www.example.com/login"}, "www.example.com/login"),
    ],
)
def test_a_link_that_cannot_be_run_is_refused_in_one_sentence(
    pool: Pool, given: dict[str, str], said: str
) -> None:
    at = opened(given)
    (refusal,) = refusals(at)
    assert said in refusal
    # quoted, not drawn
    assert "<img" not in at.error[0].value.replace("\\<", "")
    assert address(at) == presets()["race"].experiment.hash
    # no result of another experiment below it
    assert not at.get("progress")


def test_beside_a_refused_link_the_first_experiment_is_offered(pool: Pool) -> None:
    at = opened({"simulator": "casino"})
    refused = refusals(at)
    assert refusals(settled(at.run())) == refused != []
    at = press(at, "Show Baselines on the pet shop")
    assert not at.error
    assert plots(at)


def test_a_link_to_an_impossible_combination_is_repaired_with_one_button(pool: Pool) -> None:
    given = {
        "simulator": "wheel",
        "agents.0": "beta_ts",
        "agents.1": "random",
        "steps": "20",
        "seed": "930",
    }
    at = opened(given)
    assert refusals(at) == [
        "Beta Thompson requires rewards of 0 or 1, which Wheel does not provide."
    ]
    assert not at.get("progress")
    at = press(at, "Remove Beta Thompson and run")
    assert not at.error
    assert (draft(at).labels, draft(at).simulator.kind, draft(at).seed) == (
        ("Random",),
        "wheel",
        930,
    )
    assert address(at) == draft(at).hash
    assert plots(at)


def test_run_or_a_preset_ends_a_refused_link(pool: Pool) -> None:
    for leave in (
        lambda at: press(at, "Run"),
        lambda at: choose_preset(at, "wheel"),
    ):
        at = opened({"simulator": "casino"})
        assert refusals(at)
        at = leave(at)
        assert not at.error
        assert plots(at)


def test_an_address_that_says_nothing_of_an_experiment_is_no_error(pool: Pool) -> None:
    for given in ({"run": "../../etc/passwd"}, {"utm_source": "mail"}, {"x.y": "<script>"}):
        assert address(opened(given)) == presets()["race"].experiment.hash


def test_a_link_runs_what_is_not_here_and_loads_it_into_the_controls(pool: Pool) -> None:
    e = experiment({"kind": "linucb", "label": "Mine", "alpha": 0.37}, "random", seed=946)
    at = opened(url.to_query(e))
    assert draft(at) == e
    assert address(at) == e.hash
    job = pool.get(e.hash)
    assert job is not None
    for label, history in run(e).histories.items():
        same(ended(job).histories[label], history)


def test_a_link_that_was_edited_is_followed_and_says_so(pool: Pool) -> None:
    e = experiment({"kind": "linucb", "alpha": 0.37}, "random", seed=947)
    at = opened({**url.to_query(e), "agents.0.alpha": "0.73"})
    assert draft(at).agents[0].alpha == 0.73
    assert address(at) != e.hash

    def says_so() -> bool:
        return any("This link was edited" in c.value for c in at.caption)

    assert says_so()
    at = settled(at.run())
    # as long as that run is shown
    assert says_so()
    widget(at, "-alpha").set_value(2.5)
    at = press(settled(at.run()), "Run")
    assert not says_so()
    widget(at, "-alpha").set_value(0.73)
    at = press(settled(at.run()), "Run")
    assert not says_so()  # by hand
    assert not any("This link was edited" in c.value for c in opened(url.to_query(e)).caption)


def test_a_link_is_opened_whole_where_another_event_interrupts_the_page(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    follow, interrupted = followed.follow, []

    def interrupt(job: Job) -> Job:
        follow(job)
        if not interrupted:
            interrupted.append(job)
            st.rerun()
        return job

    monkeypatch.setattr(followed, "follow", interrupt)
    e = experiment({"kind": "linucb", "alpha": 0.37}, "random", seed=950)
    at = opened({**url.to_query(e), "agents.0.alpha": "0.73"})
    assert len(interrupted) == 1
    assert draft(at).agents[0].alpha == 0.73
    assert any("This link was edited" in c.value for c in at.caption)


def test_other_pages_say_that_a_link_was_edited(pool: Pool) -> None:
    e = experiment({"kind": "linucb", "alpha": 0.37}, "random", seed=951)
    query = url.to_query(e)
    assert len(open_page("labs/change", query).toast) == 0
    at = open_page("labs/change", {**query, "agents.0.alpha": "0.73"})
    assert "This link was edited" in at.toast[0].value


def test_pages_can_be_left_and_come_back_to(pool: Pool) -> None:
    job = ended(pool.submit(experiment(seed=942)))
    at = arena(job)
    widget(at, "-alpha").set_value(2.5)
    at.run()
    assert at.switch_page("home.py").run().title[0].value == "Bandit Playground"
    at = settled(at.switch_page("arena.py").run())
    # what was set stays set
    assert draft(at).agents[0].alpha == 2.5
    assert widget(at, "-alpha").value == 2.5
    assert address(at) == job.id


def test_a_run_that_was_deleted_is_not_begun_again_by_itself(pool: Pool) -> None:
    job = ended(pool.submit(experiment(seed=948)))
    at = arena(job)
    pool.delete(job.id)
    at = settled(at.run())
    assert pool.get(job.id) is None
    assert address(at) == presets()["race"].experiment.hash
    # its settings are still in the controls
    assert draft(at) == job.experiment


def test_equal_experiments_of_two_visitors_are_one_run(pool: Pool) -> None:
    job = pool.submit(experiment(seed=943))
    one, two = arena(job), arena(job)
    for at in (one, two):
        widget(at, "-alpha").set_value(3.0)
        press(settled(at.run()), "Run")
    assert address(one) == address(two) != job.id


def test_what_was_changed_is_undone_redone_and_reset(pool: Pool) -> None:
    at = arena(ended(pool.submit(experiment(seed=957))))
    begun = draft(at)
    for alpha in (2.0, 3.0):
        widget(at, "-alpha").set_value(alpha)
        at = settled(at.run())
    at = settled(choose_entry(at, "add", "oracle"))
    assert len(draft(at).agents) == 3
    for alpha, agents in ((3.0, 2), (2.0, 2), (begun.agents[0].alpha, 2)):
        at = press(at, "Undo")
        assert (draft(at).agents[0].alpha, len(draft(at).agents)) == (alpha, agents)
        # the widgets follow
        assert widget(at, "-alpha").value == alpha
    assert draft(at) == begun
    at = press(press(at, "Redo"), "Redo")
    assert widget(at, "-alpha").value == 3.0
    widget(at, "-alpha").set_value(0.7)
    at = settled(at.run())
    # a new change ends what was ahead
    assert [b.disabled for b in at.button if b.label == "Redo"] == [True]
    at = press(at, "Reset")
    assert draft(at) == begun
    # a reset can be undone too
    at = press(at, "Undo")
    assert draft(at).agents[0].alpha == 0.7


def run_again(at: AppTest, pool: Pool) -> AppTest:
    """Press Run and wait for the end."""
    at = press(at, "Run")
    job = pool.get(address(at))
    assert job is not None
    ended(job)
    return settled(at.run())


def ghosts(at: AppTest) -> list[list[str]]:
    return [[t["name"] for t in plot["data"] if t.get("meta") == "before"] for plot in plots(at)]


def test_the_previous_run_is_dotted_and_names_what_changed(pool: Pool) -> None:
    first = ended(pool.submit(experiment(steps=600, seed=958)))
    at = arena(first)
    assert ghosts(at) == [[]] * 4
    widget(at, "-alpha").set_value(3.0)
    at = run_again(settled(at.run()), pool)
    change = f"alpha {first.experiment.agents[0].alpha:g} to 3"
    # the random agent is unchanged: its two curves would coincide
    name = f"LinUCB, previous run ({change})"
    assert ghosts(at) == [[name]] * 4
    caption = panel(at)["caption"]
    assert caption.startswith(f"Dotted: previous run. LinUCB, {change}: ")
    job = pool.get(address(at))
    assert job is not None
    gain = paired_tests.compare(job.histories["LinUCB"], first.histories["LinUCB"]).difference
    assert f"{count(abs(gain.mean))} fewer clicks than with alpha 0.5 (95 % CI " in caption
    # the tiles are those of every other tab
    assert "previous" not in board(at)
    at = settled(at.toggle(key="view-previous").set_value(False).run())
    assert ghosts(at) == [[]] * 4


def test_a_submission_that_another_event_interrupts_keeps_the_previous_run(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = ended(pool.submit(experiment(steps=600, seed=959)))
    at = arena(first)
    widget(at, "-alpha").set_value(3.0)
    at.run()
    follow, interrupted = followed.follow, []

    def interrupted_once(job: Job) -> Job:
        st.session_state.job = job.id
        if job is not first and not interrupted:
            interrupted.append(job)
            # as Streamlit does, for any event, while the address is written
            st.rerun()
        return follow(job)

    monkeypatch.setattr(followed, "follow", interrupted_once)
    at = run_again(at, pool)
    assert len(interrupted) == 1
    assert panel(at)["caption"].startswith("Dotted: previous run. LinUCB, alpha ")


@pytest.mark.parametrize(
    "changed",
    thinned(
        ["-seed", "-steps", "-replications", "-n_products"],
        lambda number: number == 3,
        lambda number: number == 0,
    ),
)
def test_a_run_with_other_random_numbers_is_no_previous_run(pool: Pool, changed: str) -> None:
    at = arena(
        ended(pool.submit(experiment(seed=962, simulator={"kind": "petshop", "n_products": 5})))
    )
    widget(at, "-alpha").set_value(3.0)
    found = widget(at, changed)
    found.set_value(found.value + 1)
    at = run_again(settled(at.run()), pool)
    assert ghosts(at) == [[]] * 4
    assert "Dotted" not in panel(at)["caption"]


def test_two_tabs_show_the_same_moment(
    pool: Pool, gate: Gate, endless: Callable[[int], Job]
) -> None:
    """Status, tiles and curves of a live run belong to one step, and are the same in both tabs."""
    job = under_way(endless(966))
    wait_for(lambda: {h.step for h in job.histories.values()} == {1000}, "the gate", over(job))
    one, two = arena(job), arena(job)
    for at in (one, two):
        assert status(at).startswith("Step 1,000 of 3,000")
        assert max(t["x"].max() for t in plots(at)[1]["data"]) == 1000
    assert (board(one), sentences(one)) == (board(two), sentences(two))
    gate.open(966)
    ended(job)
    one, two = settled(one.run()), settled(two.run())
    assert status(one) == status(two)
    assert board(one) == board(two)
    assert sentences(one) == sentences(two) != []


def test_axes_spectrum_and_window_are_chosen_for_all_plots(pool: Pool) -> None:
    job = ended(pool.submit(experiment(steps=2000, seed=959)))
    at = arena(job)
    h = job.histories["LinUCB"]
    at = settled(at.segmented_control(key="view-x").set_value("earned").run())
    last = [max(t["x"][-1] for t in p["data"] if t["name"] == "LinUCB") for p in plots(at)[:3]]
    assert last == pytest.approx([metrics.cumulative_clicks(h).mid[-1]] * 3, rel=1e-6)
    assert plots(at)[0]["layout"]["xaxis"]["title"]["text"] == "clicks earned"
    at = settled(at.segmented_control(key="view-x").set_value("log step").run())
    assert [p["layout"]["xaxis"].get("type") for p in plots(at)] == ["log", "log", "log", None]
    assert all(min(t["x"]) > 0 for p in plots(at)[:3] for t in p["data"])
    at = settled(at.toggle(key="view-log").set_value(True).run())
    assert plots(at)[1]["layout"]["yaxis"]["type"] == "log"
    at = settled(at.toggle(key="view-growth").set_value(True).run())
    assert {"√T", "log T"} <= {trace["name"] for trace in plots(at)[1]["data"]}
    (step,) = [s for s in at.select_slider if s.key.startswith("view-at")]
    (arm,) = [n for n in at.number_input if n.key.startswith("view-arm")]
    step.set_value(snapshot_steps(2000)[3])
    arm.set_value(4)
    drawn = plots(settled(at.run()))[3]
    wanted = metrics.spectrum(h, snapshot_steps(2000)[3], 4)
    assert wanted is not None
    (line,) = [t for t in drawn["data"] if t["name"] == "LinUCB" and "fill" not in t]
    assert line["y"].tolist() == pytest.approx(wanted.mid.tolist(), rel=1e-6)
    assert f"at step {snapshot_steps(2000)[3]:,}" in drawn["layout"]["meta"]["note"]
    drawn = plots(settled(at.selectbox(key="view-fourth").set_value("Exploration rate").run()))[3]
    (line,) = [t for t in drawn["data"] if t["name"] == "LinUCB" and "fill" not in t]
    assert line["y"].tolist() == pytest.approx(
        [c.explored.mean() for c in h.exploration_checks], rel=1e-6
    )
    at = settled(at.selectbox(key="view-fourth").set_value("Calibration").run())
    at = settled(at.segmented_control(key="view-level").set_value(0.8).run())
    drawn = plots(at)[3]
    assert drawn["layout"]["title"]["text"] == "Calibration"
    curve = metrics.calibration(h, 0.8)
    assert curve is not None
    (line,) = [t for t in drawn["data"] if t["name"] == "LinUCB" and "fill" not in t]
    assert line["y"].tolist() == pytest.approx(curve.mid.tolist(), rel=1e-6)


def test_presenting_leaves_the_run_and_its_buttons(pool: Pool) -> None:
    at = arena_in_presentation(pool)
    at.main.slider[0].set_value(2.5)
    at = press(at.run(), "Exit presentation")
    assert at.title[0].value == "Arena"
    assert at.sidebar.button
    # what was set in the presentation stays
    assert draft(at).agents[0].alpha == widget(at, "-alpha").value == 2.5


def arena_in_presentation(pool: Pool) -> AppTest:
    at = arena(ended(pool.submit(experiment(seed=960))))
    at.button(key="present").click().run()
    assert not at.exception
    assert not at.title
    assert "Pet shop" in at.subheader[0].value
    assert any(
        "html{font-size" in h.proto.body and "stSidebar" in h.proto.body for h in at.get("html")
    )
    assert {b.label for b in at.main.button} == {"Run", "Continue", "Stop", "Exit presentation"}
    # the random agent has no parameter
    assert [s.label for s in at.main.slider] == ["Exploration bonus α"]
    assert panel(at)["fill"] == "alone"
    # the main conclusion alone
    assert len(sentences(at)) == 1
    assert len(plots(at)) == 4
    return at


@pytest.mark.parametrize(
    ("agent", "shown"),
    [
        ({"kind": "linucb"}, ["alpha", "ridge"]),
        ({"kind": "linucb", "gamma": 0.99}, ["alpha", "ridge", "gamma"]),
        ({"kind": "lints"}, ["sigma2", "ridge"]),
        ({"kind": "epsilon_greedy"}, ["epsilon", "decay", "ridge"]),
        ({"kind": "neural_linucb"}, ["alpha", "learning_rate", "ridge"]),
        ({"kind": "beta_ts"}, ["prior_clicks", "prior_misses"]),
    ],
)
def test_formulas_show_the_parameters_that_act_the_main_one_first(
    agent: dict[str, Any], shown: list[str]
) -> None:
    cls = AGENTS[agent["kind"]]
    assert explanations._acting(cls.Params.model_validate(agent), cls.formula) == shown


def test_the_link_the_formulas_and_the_downloads_are_there(pool: Pool) -> None:
    job = ended(pool.submit(experiment("linucb", "beta_ts", seed=961)))
    at = arena(job)
    (shared,) = [c.value for c in at.code if c.value.startswith("http")]
    given = dict(parse_qsl(shared.split("?", 1)[1]))
    assert url.parse_query(given) == (job.experiment, True)
    shown = [element.value for element in at.main.latex]
    for kind in ("linucb", "beta_ts"):
        assert any(AGENTS[kind].formula in text for text in shown)
    assert len([b for b in at.get("download_button")]) == 5


def asked(at: AppTest) -> tuple[dict[str, Any], str]:
    """The figure and the answer to Why this arm?"""
    (cell,) = panels(at)[-1]["cells"]
    (said,) = [
        m.value for m in at.main.markdown if m.value.startswith("**") and " chose " in m.value
    ]
    return cell["figure"], said.replace("\\", "").replace("**", "")


@pytest.mark.slow
def test_a_run_that_rests_is_asked_why_it_showed_an_arm(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    e = experiment("linucb", "lints", "random", steps=600, seed=964)
    at = arena(ended(pool.submit(e)))
    # closed, it computes nothing
    assert len(panels(at)) == 1
    at.session_state["why-open"] = True
    at = settled(at.run())
    figure, said = asked(at)
    assert said == " ".join(explain_decision(whys.why(e, "LinUCB", 600, 0)))
    assert figure["layout"]["title"]["text"] == "LinUCB at step 600"
    (agent,) = [s for s in at.selectbox if s.label == "Agent"]
    at = settled(agent.set_value("LinTS").run())
    for label, value in (("Step", 17), ("Replication", 3)):
        (number,) = [n for n in at.number_input if n.label == label]
        at = settled(number.set_value(value).run())
    figure, said = asked(at)
    assert said == " ".join(explain_decision(whys.why(e, "LinTS", 17, 2)))
    assert len(figure["layout"]["yaxis"]["ticktext"]) == 5
    monkeypatch.setattr(whys.EXPLANATIONS, "seconds", 1e-3)
    (number,) = [n for n in at.number_input if n.label == "Step"]
    at = settled(number.set_value(500).run())
    assert refusals(at)[0].startswith("Stopped after 1 ms, the limit for one of the explanations")
    assert len(panels(at)) == 1


def test_a_run_that_moves_is_not_asked_why(pool: Pool, endless: Callable[[int], Job]) -> None:
    job = under_way(endless(965))
    at = arena(job)
    assert "Why this arm?" not in [e.label for e in at.expander]
    at = press(at, "Pause")
    wait_for(lambda: job not in pool.processes, "its worker to be free")
    assert "Why this arm?" in [e.label for e in settled(at.run()).expander]
    at.button(key="present").click().run()
    assert not at.exception
    assert "Why this arm?" not in [e.label for e in at.expander]


# controls


def test_controls_that_differ_from_the_run_say_so(pool: Pool) -> None:
    at = arena(ended(pool.submit(experiment(seed=950))))

    def told() -> bool:
        return any("controls have changed" in c.value for c in at.caption)

    assert not told()
    widget(at, "-alpha").set_value(3.5)
    at = settled(at.run())
    assert told()
    at = press(at, "Run")
    assert not told()


def spoken(field: Any) -> str:
    """A field's help, its options called as in the box, with what its slider shows."""
    text = str(field.description)
    for option in get_args(field.annotation) if get_origin(field.annotation) is Literal else ():
        text = text.replace(f"{option}:", f"{option.replace('_', ' ')}:")
    return f"{text} Shaded: the usual range." if declaration(field)["usual"] else text


@pytest.mark.parametrize(
    "kind", thinned(OF_THE_SHOP, lambda number: number % 6 == 0, lambda number: number % 6 == 3)
)
def test_every_agent_can_be_added_duplicated_named_and_removed(pool: Pool, kind: str) -> None:
    at = arena(ended(pool.submit(experiment({"kind": "random"}, seed=951))))
    at = settled(choose_entry(at, "add", kind))
    assert [a.kind for a in draft(at).agents] == ["random", kind]
    number = list(at.session_state["draft"].agents)[-1]
    for name, field in AGENTS[kind].Params.model_fields.items():
        if entry_kinds(AGENTS[kind].Params, name):
            assert widget(at, f"agent{number}-{name}-0-0-add").proto.help == field.description
        elif name != "kind" and not declaration(field)["slates"]:
            told = widget(at, f"agent{number}-{name}")
            assert told.proto.help == spoken(field)
            assert told.label.startswith(field.title)
    name_box(at, number).set_value("Mine")
    at = settled(at.run())
    assert draft(at).labels == ("Random", "Mine")
    at = settled(widget(at, f"agent{number}-copy").click().run())
    copy = AGENTS[kind].title
    assert draft(at).labels == ("Random", "Mine", copy if kind != "random" else "Random 2")
    assert draft(at).agents[2].model_dump(exclude={"label"}) == draft(at).agents[1].model_dump(
        exclude={"label"}
    )
    at = settled(widget(at, f"agent{number}-remove").click().run())
    assert [a.kind for a in draft(at).agents] == ["random", kind]
    assert draft(at).agents[1].label is None


def test_there_is_always_one_agent_and_there_are_never_more_than_twelve(pool: Pool) -> None:
    at = arena(ended(pool.submit(experiment({"kind": "random"}, seed=952))))
    assert widget(at, "-remove").disabled
    full = experiment(*["random"] * 12, seed=952, steps=10)
    at = arena(ended(pool.submit(full)))
    assert all(b.disabled for b in at.sidebar.button if (b.key or "").endswith("-copy"))
    assert len(draft(at).labels) == 12
    assert status(at).startswith("Finished")


def test_every_field_of_every_simulator_has_its_widget_and_help(pool: Pool) -> None:
    at = arena(ended(pool.submit(experiment({"kind": "random"}, seed=953))))
    for kind in (*SIMULATORS, "petshop"):
        at = choose(at, kind)
        if kind != "petshop":  # there it began
            assert draft(at).simulator == presets()[SIMULATORS[kind].preset].experiment.simulator
        fields_have_widgets_and_help(at, kind)


def fields_have_widgets_and_help(at: AppTest, kind: str) -> None:
    for name, field in SIMULATORS[kind].Params.model_fields.items():
        if name == "kind":
            continue
        if name == "changes":
            added = widget(at, f"simulator-{kind}-changes-0-0-add")
            assert (added.proto.help, added.label) == (field.description, "Add to changes")
            assert [
                change.title for change in entry_kinds(SIMULATORS[kind].Params, name).values()
            ] == added.options
            continue
        told = widget(at, f"simulator-{kind}-{name}")
        if name == "click_rates":
            assert tuple(map(tuple, told.value.to_numpy())) == CLICK_RATES
            assert any(field.description in c.value for c in at.sidebar.caption)
        else:
            assert told.proto.help == spoken(field)
            assert told.label.startswith(field.title)
    described = Experiment.model_fields
    for name in ("steps", "replications", "seed"):
        assert setting(at, name).proto.help == described[name].description


def other(at: AppTest, ending: str, field: Any) -> Any:
    """Give a widget another value than it has.

    Returns that value as the experiment should hold it.
    """
    found = widget(at, ending)
    for name, choice in (("-data", "wine"), ("-log", "open_bandit/random/all")):
        if ending.endswith(name):
            found.set_value(choice)
            return choice
    if get_origin(field.annotation) is Literal:
        choice = next(o for o in get_args(field.annotation) if o != found.value)
        found.set_value(choice)
        return choice
    if ending.endswith("-hidden"):
        found.set_value("16,8, 4")
        return (16, 8, 4)
    if ending.endswith("-persona_shares"):
        found.set_value("0.4, 0.3, 0.2, 0.1")
        return (0.4, 0.3, 0.2, 0.1)
    if ending.endswith("-n_pictures"):
        found.set_value("4, 9")
        return (4, 9)
    if field.annotation is bool:
        value = not found.value
    elif type(found).__name__ == "SelectSlider":
        value = next(float(o) for o in found.options if float(o) != found.value)
    elif type(found).__name__ == "Slider":
        value = found.max if found.value != found.max else found.min
    elif isinstance(found.value, str):
        # texts that have a form of their own
        return field.default
    else:
        # a number: one more, or one where there was none
        value = 7 if found.value is None else found.value + 1
        limits = [getattr(m, "le", getattr(m, "lt", None)) for m in field.metadata]
        if any(limit is not None and value > limit for limit in limits):
            value = (1.0 if found.value is None else found.value) / 2
    found.set_value(value)
    return value


@pytest.mark.parametrize(
    "kind", thinned(OF_THE_SHOP, lambda _: False, lambda number: number % 12 == 0)
)
def test_every_widget_of_an_agent_reaches_the_experiment(pool: Pool, kind: str) -> None:
    at = arena(ended(pool.submit(experiment("random", seed=954))))
    at = settled(choose_entry(at, "add", kind))
    number = list(at.session_state["draft"].agents)[-1]
    fields = {
        n: f
        for n, f in AGENTS[kind].Params.model_fields.items()
        if n not in ("kind", "label", "guards")
    }
    # the pet shop shows one product at a time
    fields = {n: f for n, f in fields.items() if not declaration(f)["slates"]}
    expected = {}
    for name, field in fields.items():
        expected[name] = other(at, f"agent{number}-{name}", field)
        # one at a time, as people do
        at = settled(at.run())
        agent = at.session_state["draft"].data()["agents"][-1]
        assert {n: tuple(agent[n]) if n == "hidden" else agent[n] for n in expected} == expected
    at = settled(at.run())
    assert {n: widget(at, f"agent{number}-{n}").value for n in expected if n != "hidden"} == {
        n: v for n, v in expected.items() if n != "hidden"
    }


@pytest.mark.parametrize(
    "kind", thinned(SIMULATORS, lambda number: number == 1, lambda number: number % 6 == 0)
)
def test_every_widget_of_a_simulator_reaches_the_experiment(pool: Pool, kind: str) -> None:
    start = experiment({"kind": "random", "label": "Mine"}, seed=955, simulator={"kind": kind})
    at = arena(ended(pool.submit(start)))
    # tested elsewhere
    own = ("kind", "click_rates", "changes")
    fields = {n: f for n, f in SIMULATORS[kind].Params.model_fields.items() if n not in own}
    expected = {}
    for name, field in fields.items():
        expected[name] = other(at, f"simulator-{kind}-{name}", field)
        at = settled(at.run())
        assert {n: getattr(draft(at).simulator, n) for n in expected} == expected
    for ending, value in (("-steps", 50), ("-replications", 2), ("-seed", 2**53 - 1)):
        widget(at, ending).set_value(value)
    at = settled(at.run())
    assert (draft(at).steps, draft(at).replications, draft(at).seed) == (50, 2, 2**53 - 1)


@pytest.mark.parametrize(
    "kind",
    thinned(
        [kind for kind, cls in SIMULATORS.items() if "changes" in cls.Params.model_fields],
        lambda number: number == 0,
        lambda number: number % 4 == 2,
    ),
)
def test_every_change_that_is_added_reaches_the_experiment(pool: Pool, kind: str) -> None:
    at = arena(
        ended(pool.submit(experiment({"kind": "random"}, seed=957, simulator={"kind": kind})))
    )
    kinds = entry_kinds(SIMULATORS[kind].Params, "changes")
    for i, change in enumerate(kinds):
        at = settled(widget(at, f"simulator-{kind}-changes-0-{i}-add").select(change).run())
        assert [c.kind for c in draft(at).simulator.changes] == list(kinds)[: i + 1]
    at = settled(widget(at, f"simulator-{kind}-changes-0-0-at").set_value(7).run())
    assert draft(at).simulator.changes[0].at == 7
    if "shock" in kinds:
        at = settled(widget(at, f"simulator-{kind}-changes-0-0-how").set_value("reverse").run())
        assert draft(at).simulator.changes[0].how == "reverse"
    at = settled(widget(at, f"simulator-{kind}-changes-0-0-remove").click().run())
    assert [c.kind for c in draft(at).simulator.changes] == list(kinds)[1:]


def test_every_guard_that_is_added_reaches_the_experiment(pool: Pool) -> None:
    at = arena(ended(pool.submit(experiment({"kind": "linucb"}, seed=958))))
    number = list(at.session_state["draft"].agents)[-1]
    kinds = entry_kinds(AGENTS["linucb"].Params, "guards")
    for i, guard in enumerate(kinds):
        at = settled(widget(at, f"agent{number}-guards-0-{i}-add").select(guard).run())
        assert [g.kind for g in draft(at).agents[0].guards] == list(kinds)[: i + 1]
    at = settled(widget(at, f"agent{number}-guards-0-0-epsilon").set_value(0.2).run())
    at = settled(widget(at, f"agent{number}-guards-0-1-remove").click().run())
    guards = draft(at).agents[0].guards
    assert [g.kind for g in guards] == [kind for kind in kinds if kind != "cap"]
    assert guards[0].epsilon == 0.2


def test_visits_of_many_clicks_are_shown_by_what_they_earn(pool: Pool) -> None:
    agents = (
        {"kind": "linucb"},
        {"kind": "q_learning"},
        {"kind": "oracle", "label": "Oracle next click", "maximises": "step"},
        {"kind": "oracle", "label": "Oracle"},
    )
    world = {"kind": "sessions", "n_products": 20, "observed": "mood"}
    e = experiment(*agents, simulator=world, steps=1500, replications=4, seed=957)
    job = ended(pool.submit(e))
    at = arena(job)
    leader, *rest = panel(at)["legend"]
    assert (leader["label"], leader["detail"]) == ("Oracle", "leads")
    earned = {
        label: METRICS["per_visit"].estimate(history).mean
        for label, history in job.result.histories.items()
    }
    assert leader["rate"] == number(earned["Oracle"])
    for tile in rest:
        lost = earned["Oracle"] - earned[tile["label"]]
        assert tile["detail"] == f"−{number(lost)} clicks per visit"
    shown = sentences(at)
    assert shown[: len(per_visit(job.result))] == per_visit(job.result)
    assert not any("more clicks than" in text or "of the gap between" in text for text in shown)
    assert not [box for box in at.selectbox if box.label == "Compared with"]


def test_settings_are_drawn_where_they_are_open_and_kept_where_they_are_closed(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(controls, "is_open", folded.is_open)
    e = experiment(
        {"kind": "linucb", "alpha": 0.7, "gamma": 0.99}, {"kind": "linucb", "label": "second"}
    )
    at = arena(ended(pool.submit(e)))
    draft = at.session_state["draft"]
    first, second = draft.agents
    assert draft.open_cards == {first}

    def names(number: int) -> set[str]:
        start = f"{draft.version}-agent{number}-"
        keys = {str(e.key) for e in at.sidebar if str(getattr(e, "key", "")).startswith(start)}
        return {key.removeprefix(start) for key in keys}

    assert "alpha" in names(first)
    assert "gamma" not in names(first)
    assert names(second) == {"card"}
    widget(at, f"agent{first}-alpha").set_value(0.4).run()
    assert draft.agents[first]["alpha"] == 0.4
    assert read(draft.data()).agents[0].gamma == 0.99  # type: ignore[attr-defined]
    at.session_state[f"{draft.version}-agent{first}-more"] = True
    at.run()
    assert {"gamma", "remove"} <= names(first)
    # what is entered and closed in one run counts
    (name,) = [t for t in at.sidebar.text_input if t.label == "Name"]
    name.set_value("mine")
    at.session_state[f"{draft.version}-agent{first}-more"] = False
    at.run()
    assert draft.agents[first]["label"] == "mine"
    widget(at, f"agent{first}-alpha").set_value(0.3)
    draft.open_cards = set()
    at.run()
    assert draft.agents[first]["alpha"] == 0.3
    at.run().run()
    assert names(first) == {"card"}
    assert (draft.agents[first]["label"], draft.agents[first]["alpha"]) == ("mine", 0.3)
    at.session_state["simulator-petshop-more"] = True
    at.run()
    (users,) = [n for n in at.sidebar.number_input if n.label == "Users"]
    users.set_value(78)
    at.session_state["simulator-petshop-more"] = False
    at.run()
    assert draft.simulator["n_users"] == 78
    at.run().run()
    assert not [n for n in at.sidebar.number_input if n.label == "Users"]
    assert draft.simulator["n_users"] == 78
    assert not at.exception


@pytest.mark.parametrize(
    "name", thinned(presets(), lambda number: number % 16 == 0, lambda number: number % 16 == 8)
)
def test_presets_load_into_the_controls(pool: Pool, name: str) -> None:
    at = arena(ended(pool.submit(experiment(seed=956))))
    at = choose_preset(at, name)
    assert draft(at) == presets()[name].experiment
    assert held_preset(at) == name
    assert any(presets()[name].about in c.value for c in at.caption)
    # only Run runs it
    assert status(at).startswith("Finished: 300 steps")
    at = settled(setting(at, "steps").set_value(99).run())
    # the controls hold something else
    assert held_preset(at) is None


@pytest.mark.slow
def test_a_preset_on_real_data_is_run(pool: Pool) -> None:
    """Linear agents do better than the more frequent class, a share of 0.65."""
    at = choose_preset(arena(ended(pool.submit(experiment(seed=956)))), "magic")
    # the network's training takes longer than all runs
    network = list(at.session_state["draft"].agents)[3]
    at = settled(widget(at, f"agent{network}-remove").click().run())
    at = settled(setting(at, "steps").set_value(1000).run())
    at = run_again(settled(setting(at, "replications").set_value(2).run()), pool)
    assert status(at).startswith("Finished: 1,000 steps, 2 replications")
    tiles = panel(at)["legend"]
    assert len(tiles) == 4
    assert float(tiles[0]["rate"]) > 0.7
    assert "of the gap between random choice and the oracle" in "".join(sentences(at))


# -- sliders that answer
# -----------------------------------------------------------------------------------------------


def told_to_browser(at: AppTest) -> dict[str, Any]:
    """What the part of the page that follows sliders was told."""
    protos = [
        getattr(found.proto, "bidi_component", found.proto) for found in at.get("bidi_component")
    ]
    (proto,) = [proto for proto in protos if proto.component_name.endswith("instant_sliders")]
    told: dict[str, Any] = json.loads(proto.json)
    return told


def test_sliders_are_followed_while_only_agents_differ_from_the_run_that_is_shown(
    pool: Pool,
) -> None:
    e = experiment(
        {"kind": "linucb", "alpha": 0.5}, "lints", "neural_greedy", "random", seed=971, steps=100
    )
    at = arena(ended(pool.submit(e)))
    told = told_to_browser(at)
    assert read(told["experiment"]) == e
    names = {(s["label"], s["name"]): s for s in told["sliders"].values()}
    assert {("LinUCB", "alpha"), ("LinUCB", "ridge"), ("LinTS", "sigma2")} <= names.keys()
    assert all(key.split("-")[-1] == s["name"] for key, s in told["sliders"].items())
    assert names["LinUCB", "alpha"]["options"] is None
    assert 1.0 in names["LinUCB", "ridge"]["options"]
    assert (names["LinUCB", "alpha"]["value"], names["LinUCB", "ridge"]["value"]) == (0.5, 1.0)
    assert not names["LinUCB", "alpha"]["slow"]
    slow = [s for (label, _), s in names.items() if label == "Neural greedy"]
    assert {s["slow"] for s in slow} == {"Runs on release: trains a network."}
    assert [s["note"] for s in slow] == [slow[0]["slow"], *[""] * (len(slow) - 1)]  # once per agent
    before = names["LinUCB", "alpha"]["frame"], names["LinUCB", "ridge"]["frame"]
    at = settled(widget(at, "-alpha").set_value(0.6).run())
    assert {s["label"] for s in told_to_browser(at)["sliders"].values()} == {
        "LinTS",
        "Neural greedy",
    }
    key = next(
        key for key, s in told["sliders"].items() if (s["label"], s["name"]) == ("LinUCB", "alpha")
    )
    assert told["moved"] == []
    # it alone is elsewhere than in the run
    assert told_to_browser(at)["moved"] == [key]
    at = press(at, "Run")
    assert told_to_browser(at)["moved"] == []
    again = {(s["label"], s["name"]): s for s in told_to_browser(at)["sliders"].values()}
    # what was tried stays
    assert again["LinUCB", "alpha"]["frame"] == before[0]
    assert again["LinUCB", "ridge"]["frame"] != before[1]
    at = settled(widget(at, "-alpha").set_value(0.7).run())
    at = settled(widget(at, "-steps").set_value(99).run())
    assert told_to_browser(at)["sliders"] == {}
    # the steps differ too
    assert told_to_browser(at)["moved"] == []


def test_slow_agents_name_their_kept_runs(pool: Pool) -> None:
    def rated(rate: float) -> Experiment:
        agent = {"kind": "neural_greedy", "learning_rate": rate, "hidden": (4,)}
        return experiment(agent, "random", seed=974, steps=60, replications=1)

    for rate in (0.02, 0.005):
        ended(pool.submit(rated(rate)))
    told = told_to_browser(arena(ended(pool.submit(rated(0.01)))))
    slow = [s for s in told["sliders"].values() if s["label"] == "Neural greedy"]
    assert {s["name"]: s["kept"] for s in slow if s["kept"]} == {"learning_rate": [0.005, 0.02]}
    assert "the nearest of 2 stored runs" in next(s["note"] for s in slow if s["kept"])


def test_a_run_begun_by_a_slider_gives_way_to_the_next(
    pool: Pool, endless: Callable[[int], Job]
) -> None:
    """One begun by *Run* stays, and so does one that was read."""

    def script() -> None:
        import streamlit as st

        from bandits import read
        from bandits_app.session import followed

        followed.submit_and_follow(read(st.session_state.wanted), by_slider=st.session_state.by)

    def wanted(alpha: float, *, by: bool) -> Job:
        e = experiment({"kind": "linucb", "alpha": alpha}, "random", seed=972, steps=3000)
        at.session_state["wanted"], at.session_state["by"] = e.model_dump_json(), by
        at.run()
        assert not at.exception
        job = pool.get(e.hash)
        assert job is not None
        return job

    endless(972)
    at = AppTest.from_function(script)
    pressed = wanted(0.1, by=False)
    first, second = wanted(0.2, by=True), wanted(0.3, by=True)
    assert pool.get(first.id) is None
    assert (pressed.live, second.live) == (True, True)
    third = wanted(0.4, by=False)
    assert pool.get(second.id) is None
    # joined, not begun
    assert wanted(0.1, by=True) is pressed
    fourth = wanted(0.5, by=True)
    assert (pressed.live, third.live) == (True, True)
    pool.pause(fourth, fourth.owner)  # on purpose
    pool.stop(third, third.owner)
    wanted(0.6, by=True)
    assert fourth.status == "paused"
    for job in pool.live_jobs():
        pool.stop(job, job.owner)


def test_a_slider_run_that_nobody_read_is_not_kept(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has ended, but the next value followed at once; one that was shown for longer stays."""

    def script() -> None:
        import streamlit as st

        from bandits import read
        from bandits_app.session import followed

        followed.submit_and_follow(read(st.session_state.wanted), by_slider=True)

    def released(alpha: float) -> Job:
        e = experiment({"kind": "linucb", "alpha": alpha}, "random", seed=973, steps=50)
        at.session_state["wanted"] = e.model_dump_json()
        at.run()
        assert not at.exception
        job = pool.get(e.hash)
        assert job is not None
        return ended(job)

    at = AppTest.from_function(script)
    monkeypatch.setattr(followed, "LOOK", 1e9)
    first, second = released(0.1), released(0.2)
    monkeypatch.setattr(followed, "LOOK", 0.0)
    third = released(0.3)
    assert [pool.get(job.id) is not None for job in (first, second, third)] == [False, True, True]


def test_the_values_of_a_logarithmic_slider_are_those_of_the_page(pool: Pool) -> None:
    """A value beside the grid stays among them after another is chosen."""
    at = arena(
        ended(pool.submit(experiment({"kind": "lints", "sigma2": 0.25}, "random", seed=973)))
    )
    for value in (0.25, 0.05, 0.25):
        at = settled(widget(at, "-sigma2").set_value(value).run())
        at = press(at, "Run")
        (told,) = [s for s in told_to_browser(at)["sliders"].values() if s["name"] == "sigma2"]
        assert [f"{option:g}" for option in told["options"]] == widget(at, "-sigma2").options
        assert 0.25 in told["options"]


@pytest.mark.parametrize(
    ("changes", "shown"),
    [
        ([], "never"),
        ([{"kind": "shock", "at": 200}], "200 (in Changes)"),
        (
            [
                {"kind": "season", "period": 50},
                {"kind": "shock", "at": 250},
                {"kind": "shock", "at": 90},
            ],
            "90, 250 (in Changes)",
        ),
        ([{"kind": "season", "period": 50}], "never (see Changes)"),
    ],
)
def test_an_empty_market_shock_names_the_one_among_the_changes(
    changes: list[dict[str, Any]], shown: str
) -> None:
    e = experiment(
        "random", simulator={"kind": "petshop", "n_products": 10, "changes": changes}, seed=77
    )
    at = open_page("arena", url.to_query(e))
    assert not at.exception
    (box,) = [n for n in at.number_input if n.label == "Market shock (step)"]
    assert box.value is None
    assert box.proto.placeholder == shown
    # the last one is removed: what is shown follows at once
    if changes:
        [b for b in at.button if b.key and "-changes-" in b.key][-1].click().run()
        (box,) = [n for n in at.number_input if n.label == "Market shock (step)"]
        now = {1: "never", 3: "250 (in Changes)"}[len(changes)]
        assert box.proto.placeholder == now


def test_the_pages_about_changes_are_linked_below_the_results() -> None:
    e = experiment("random", seed=78)
    at = open_page("arena", url.to_query(e))
    links = [(link.proto.page, link.proto.query_string) for link in at.get("page_link")]
    assert links == [("labs", "view=change"), ("labs", "view=guards"), ("data", "view=what_if")]


def test_agents_are_compared_at_their_best_on_request(pool: Pool) -> None:
    """The comparison is a titled run of its own, which the page follows and describes."""
    e = experiment("linucb", "random", seed=79, steps=20, replications=4)
    ended(pool.submit(e))
    at = open_page("arena", url.to_query(e))
    at.button(key="at-best").click().run()
    wait_for(lambda: not at.session_state["at-best-task"].active, "the sweeps")
    at.run()
    assert not at.exception
    best = pool.get(at.session_state.job)
    assert best is not None
    assert best.experiment.seed == e.seed + 1
    ended(best)
    at.run()
    assert any("LinUCB with alpha" in c.value and "(best of 9; " in c.value for c in at.caption)
    assert pool.store is not None
    store = pool.store
    wait_for(lambda: store.notes(best.id), "the notes")
    (run,) = [run for run in store.runs() if run.id == best.id]
    assert run.title.startswith("Each at its best: ")
    assert "took part in no choice" in run.notes


def test_the_clicks_lost_to_changes_are_computed_on_request(pool: Pool) -> None:
    changes = [{"kind": "shock", "at": 300}]
    e = experiment(
        "linucb",
        seed=77,
        steps=600,
        simulator={"kind": "petshop", "n_products": 10, "changes": changes},
    )
    ended(pool.submit(e))
    at = open_page("arena", url.to_query(e))
    at.button(key="unchanged").click().run()
    assert not at.exception
    unchanged_job = pool.get(without_changes(e).hash)
    assert unchanged_job is not None
    ended(unchanged_job)
    at.run()
    assert any(
        "Clicks lost to the changes, against the same run without them" in m.value
        for m in at.markdown
    )
    assert not [b for b in at.button if b.key == "unchanged"]
    job = pool.get(e.hash)
    assert job is not None
    assert "Clicks lost to the changes" in report(unchanged.result_of(job))


@pytest.mark.parametrize(
    ("label", "value", "sentence"),
    thinned(
        [
            ("Steps T", 0, "Steps is 0; it must be a whole number from 1 to 10,000,000."),
            (
                "Replications R",
                5000,
                "Replications is 5000; it must be a whole number from 1 to 4,096.",
            ),
            ("Seed", -5, "Seed is -5; it must be a whole number from 0 to 9,007,199,254,740,991."),
            (
                "Products K",
                1,
                "Pet shop, Products is 1; it must be a whole number from 2 to 10,000,000.",
            ),
            (
                "Market shock (step)",
                0,
                "Pet shop, Market shock is 0; it must be a whole number from 1 to 100,000,000 or "
                "empty.",
            ),
        ],
        lambda number: number in (0, 4),
        lambda number: number in (0, 4),
    ),
)
def test_a_number_out_of_range_is_refused_and_not_run(
    pool: Pool, label: str, value: int, sentence: str
) -> None:
    """A browser would keep a number to itself that is out of the control's bounds: Run would run
    the former one.
    """
    at = arena(ended(pool.submit(experiment("random", seed=79))))
    (number,) = [n for n in at.sidebar.number_input if n.label == label]
    before, shown = number.value, at.session_state["job"]
    at = press(number.set_value(value).run(), "Run")
    assert not at.exception
    assert [e.value for e in at.error] == [sentence]
    assert at.session_state["job"] == shown
    (number,) = [n for n in at.sidebar.number_input if n.label == label]
    at = number.set_value(before).run()
    assert not at.error


def test_a_seed_out_of_range_stays_with_another_simulator(pool: Pool) -> None:
    at = arena(ended(pool.submit(experiment("random", seed=80))))
    (number,) = [n for n in at.sidebar.number_input if n.label == "Seed"]
    at = number.set_value(-1).run()
    at = choose_entry(at, "simulators", "synthetic")
    assert not at.exception
    assert [e.value for e in at.error] == [
        "Seed is -1; it must be a whole number from 0 to 9,007,199,254,740,991."
    ]
    (number,) = [n for n in at.sidebar.number_input if n.label == "Seed"]
    assert number.value == -1
    at = number.set_value(3).run()
    assert not at.error
