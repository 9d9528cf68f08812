"""The Runs page: what goes on, what was interrupted, what is kept, and nothing lost that was not
confirmed.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from bandits import Experiment, run
from bandits.base.errors import UserError
from bandits.base.files import pack
from bandits.experiments import url
from bandits.experiments.lockstep import Lockstep, load_histories
from bandits.experiments.presets import presets
from bandits.lessons import lessons
from bandits.results import metrics
from bandits.results.comparison.run_comparison import paired
from bandits.runtime.pool import Job, Pool
from bandits.storage.run_store import Store, StoredRun
from bandits_app.runs import dialogs, listing, run_lists
from bandits_app.session import workers
from tests.gate import Gate
from tests.pages.support import open_page, panel, status
from tests.support import experiment, over, same, thinned, wait_for

HOSTILE = (
    '<img src=x onerror="alert(1)"> **bold** :smile: ![i](http://x/y.png) \u202e =cmd $x^2$ é😀'
)


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pool]:
    """The app's own, which all sessions share, on a shelf that no other test has filled."""
    workers.pool.clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BANDITS_HOME", str(tmp_path_factory.mktemp("shelf")))
        made = workers.pool()
        yield made
        made.close()
    workers.pool.clear()


@pytest.fixture
def store(pool: Pool) -> Iterator[Store]:
    """The app's own, empty but for what a test puts there."""
    assert pool.store is not None
    yield pool.store
    for job in pool.live_jobs():
        pool.discard(job.id)
    for e in pool.unfinished():
        pool.discard(e.hash)
    for each in pool.store.runs():
        pool.delete(each.id)


# most tests keep the same few runs
finished = cache(run)


def put(store: Store, *agents: Any, **changes: Any) -> Experiment:
    """Keep a finished run."""
    e = experiment(*agents, **changes)
    store.put(e, finished(e).histories, 1.0)
    return e


def leave_behind(store: Store, e: Experiment) -> Lockstep:
    """Keep the checkpoint of a run that was interrupted after 1,000 steps."""
    lockstep = Lockstep(e)
    for _ in lockstep.advance(1000):
        pass
    store.keep_checkpoint(
        e.hash, e, pack({k: np.asarray(v) for k, v in lockstep.state_dict().items()})
    )
    return lockstep


def visit() -> AppTest:
    return settled(open_page("runs"))


def told(at: AppTest) -> dict[str, str]:
    """What the address says."""
    return {
        name: text if isinstance(text, str) else text[0] for name, text in at.query_params.items()
    }


def settled(at: AppTest, title: str = "Runs") -> AppTest:
    assert not at.exception
    assert at.title[0].value == title
    return at


def button(at: AppTest, label: str) -> Any:
    (found,) = [b for b in at.button if b.label == label]
    return found


def press(at: AppTest, label: str, title: str = "Runs") -> AppTest:
    found = button(at, label)
    assert not found.disabled
    return settled(found.click().run(), title)


def listed(at: AppTest) -> Any:
    """The table of finished runs."""
    return at.dataframe[0].value


def pick(
    at: AppTest, store: Store, *chosen: Experiment, among: list[StoredRun] | None = None
) -> AppTest:
    """Tick the rows of these runs."""
    rows = store.runs() if among is None else among
    places = [i for i, each in enumerate(rows) if each.experiment in chosen]
    assert len(places) == len(chosen)
    at.session_state[listing.key(run_lists.rows_of(rows))] = {"selection": {"rows": places}}
    return settled(at.run())


def text(at: AppTest) -> str:
    """All that the page says outside its tables."""
    said = [e.value for kind in (at.markdown, at.caption, at.error, at.subheader) for e in kind]
    return "\n".join([*said, *(h.proto.body for h in at.get("html"))])


def test_an_empty_shelf_says_how_it_fills_and_leads_to_the_arena(store: Store, pool: Pool) -> None:
    # the run of the first page
    for job in pool.live_jobs():
        pool.discard(job.id)
    at = visit()
    assert "There are no finished runs yet." in text(at)
    assert len(at.dataframe) == 0
    press(at, "Start a run in the Arena", "Arena")


def test_a_run_with_a_change_can_be_told_from_the_run_without_it(store: Store) -> None:
    changes = [{"kind": kind, "at": 100} for kind in ("shock", "launch")]
    put(store, "linucb")
    put(store, "linucb", simulator={"kind": "petshop", "changes": changes})
    frame = listed(visit())
    assert list(frame["Title"]) == ["LinUCB"] * 2
    assert list(frame["Changes"]) == ["market shock and launch", ""]
    put(
        store, "linucb", simulator={"kind": "petshop", "shock_step": 500}, steps=400
    )  # after its end
    assert list(listed(visit())["Changes"]) == ["", "market shock and launch", ""]


def test_runs_are_listed_newest_first_without_loading_them(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = put(store, "linucb", "random")
    second = put(store, "lints", steps=400, replications=2)
    store.tag(first.hash, "lesson 3, class")
    visit()
    loaded: list[str] = []
    monkeypatch.setattr(Store, "get", lambda _, run: loaded.append(run))
    frame = listed(at := visit())
    assert not {first.hash, second.hash} & set(loaded)
    assert list(frame["Title"]) == ["LinTS", "LinUCB, Random"]
    assert list(frame["Best agent"]) == ["LinTS", "LinUCB"]
    best = [each.headline for each in store.runs()]
    assert [headline is not None for headline in best] == [True, True]
    assert list(frame["Reward per step"]) == [headline.ctr.mean for headline in best if headline]
    assert list(frame["Regret"]) == pytest.approx([h.regret.mean for h in best if h], abs=0.5)
    assert list(frame["Simulator"]) == ["Pet shop"] * 2
    assert list(frame["Length"]) == [second.steps, first.steps]
    assert list(frame["Tags"]) == ["", "lesson 3, class"]
    assert not {"Notes", "Changes"} & set(frame)  # no run has any
    assert [when.timestamp() for when in frame["Date"]] == pytest.approx(
        [r.created for r in store.runs()], abs=1e-3
    )
    assert [b.label for b in at.button if b.disabled][-5:] == [
        "Open in the Arena",
        "Compare",
        "Star",
        "Edit",
        "Delete",
    ]


@pytest.mark.parametrize(
    ("asked", "found"),
    thinned(
        [
            ("", {"LinTS", "LinUCB, Random", "Für die Klasse"}),
            ("linucb", {"LinUCB, Random"}),
            ("RANDOM pet", {"LinUCB, Random"}),
            ("klasse", {"Für die Klasse"}),
            ("FÜR lesson", {"Für die Klasse"}),
            ("classification", {"Für die Klasse"}),
            ("lints lesson", set()),
            ("[.*(", set()),
        ],
        lambda number: number % 2 == 0,
    ),
)
def test_search_finds_runs_with_every_word(store: Store, asked: str, found: set[str]) -> None:
    put(store, "linucb", "random")
    put(store, "lints")
    wine = put(store, "popularity", simulator={"kind": "classification", "data": "wine"}, steps=50)
    store.rename(wine.hash, "Für die Klasse")
    store.tag(wine.hash, "lesson 3")
    at = settled(visit().text_input(key="shelf-search").set_value(asked).run())
    if found:
        assert set(listed(at)["Title"]) == found
        assert f"{len(found)} of 3 runs" in text(at)
    else:
        assert "No run contains all of these words." in text(at)
        assert len(at.dataframe) == 0


def test_runs_that_differ_in_one_agent_begin_with_it(store: Store) -> None:
    put(store, "random", "linucb", {"kind": "epsilon_greedy", "epsilon": 0.2})
    second = put(store, "random", "linucb", {"kind": "epsilon_greedy", "epsilon": 0.3})
    titles = ["ε-greedy (epsilon 0.3), Random, LinUCB", "ε-greedy (epsilon 0.2), Random, LinUCB"]
    assert list(listed(at := visit())["Title"]) == titles
    # in order, and once
    assert "Random, LinUCB, ε-greedy (epsilon 0.3)" in text(pick(at, store, second))
    for query in ("epsilon 0.3", "ε 0.3", "EPSILON-greedy 0.3"):
        at = settled(visit().text_input(key="shelf-search").set_value(query).run())
        assert list(listed(at)["Title"]) == ["Random, LinUCB, ε-greedy (epsilon 0.3)"]
    at = settled(visit().text_input(key="shelf-search").set_value("epsilon 3").run())
    assert "No run contains all of these words." in text(at)


@pytest.mark.usefixtures("console")
def test_a_choice_never_slips_to_another_run(store: Store) -> None:
    first = put(store, "linucb")
    at = pick(visit(), store, first)
    assert not button(at, "Delete").disabled
    # another run ends meanwhile, and takes the first row
    put(store, "lints")
    at = settled(at.run())
    assert list(listed(at)["Title"]) == ["LinTS", "LinUCB"]
    assert button(at, "Delete").disabled


def test_a_run_is_opened_in_the_arena(store: Store) -> None:
    e = put(store, {"kind": "linucb", "alpha": 3.0}, "random")
    at = press(pick(visit(), store, e), "Open in the Arena", "Arena")
    assert told(at) == url.to_query(e)
    assert at.session_state["draft"].data()["agents"][0]["alpha"] == 3.0
    assert status(at).startswith("Finished: 300 steps")


def test_a_damaged_run_is_set_aside_in_a_sentence_and_the_page_lives(
    store: Store, pool: Pool
) -> None:
    e, other = put(store, {"kind": "linucb", "alpha": 2.5}), put(store, "random")
    at = pick(visit(), store, e)
    content = str(store._index.find("id = ?", e.hash)[0]["content"])
    path = store._objects.path(content)
    path.write_bytes(path.read_bytes()[:-1])
    at = press(at, "Open in the Arena")
    assert [error.value.replace("\\", "") for error in at.error] == [
        "The stored file of this run was damaged and has been set aside. Its settings were loaded "
        "into the Arena; press Run there to compute it again."
    ]
    assert list(listed(at)["Title"]) == ["Random"]
    assert at.session_state["draft"].data()["agents"][0]["alpha"] == 2.5
    assert [each.id for each in store.runs()] == [other.hash]
    assert not settled(at.run()).error


def test_title_tags_and_notes_of_a_run_are_edited(store: Store) -> None:
    e = put(store, "linucb")
    at = press(pick(visit(), store, e), "Edit")
    at.text_input(key=f"Title-{e.hash}").set_value("  For the\n board   meeting ")
    at.text_input(key=f"Tags-{e.hash}").set_value("lesson 3, class ,,")
    at.text_area(key=f"Notes-{e.hash}").set_value(" Alpha 0.5\nwins. \0")
    at = press(at, "Save")
    (line,) = store.runs()
    assert (line.title, line.tags, line.notes) == (
        "For the board meeting",
        "lesson 3, class ,,",
        "Alpha 0.5\nwins.",
    )
    assert list(listed(at)["Title"]) == ["For the board meeting"]
    assert list(listed(at)["Notes"]) == ["Alpha 0.5 wins."]
    at = press(pick(at, store, e), "Edit")
    at.text_input(key=f"Title-{e.hash}").set_value(" \n ")
    press(at, "Save")
    # without a title it goes by its agents
    assert store.runs()[0].title == "LinUCB"


def test_runs_are_starred_and_the_starred_ones_can_be_shown_alone(store: Store) -> None:
    first, second = put(store, "linucb"), put(store, "random")
    at = press(pick(visit(), store, first), "Star")
    assert {each.id: each.starred for each in store.runs()} == {
        first.hash: True,
        second.hash: False,
    }
    assert list(listed(at)[listing.STAR]) == ["", listing.STAR]
    at = settled(at.toggle(key="shelf-starred").set_value(True).run())
    assert list(listed(at)["Title"]) == ["LinUCB"]
    starred = [each for each in store.runs() if each.starred]
    at = press(pick(at, store, first, among=starred), "Unstar")
    assert "No run is starred." in text(at)
    assert not any(each.starred for each in store.runs())


def test_a_selected_run_is_described_with_its_intervals(store: Store) -> None:
    e = put(store, {"kind": "linucb", "alpha": 0.5}, "random")
    store.note(e.hash, "<b>bold</b>")
    best = store.runs()[0].headline
    assert best is not None
    at = pick(visit(), store, e)
    assert (
        f"click-through rate {best.ctr.mean:.3f} (95 % CI {best.ctr.low:.3f} to "
        f"{best.ctr.high:.3f}), regret " in text(at)
    )
    assert "&lt;b&gt;bold&lt;/b&gt;" in text(at)
    assert "Pet shop, 300 steps, 3 replications, seed 42" in text(at)


@pytest.mark.usefixtures("console")
def test_names_are_text_whatever_is_in_them(store: Store, pool: Pool) -> None:
    e, other = put(store, "linucb"), put(store, "random")
    at = press(pick(visit(), store, e), "Edit")
    at.text_input(key=f"Title-{e.hash}").set_value(HOSTILE + "\0" + "x" * 500)
    at = press(at, "Save")
    title = store.runs()[1].title
    assert title.startswith("<img src=x")
    assert len(title) <= dialogs.MAX_LENGTH
    assert "\0" not in title
    for ask, key in (("Delete", "Cancel"), ("Edit", None)):
        at = press(pick(at, store, e), ask)
        assert "&lt;img src=x" in text(at)
        assert "<img" not in text(at)
        assert not any("bold" in m.value for m in at.markdown)
        at = press(at, key) if key else settled(at.run())
    at = press(pick(at, store, e, other), "Compare")
    assert "&lt;img src=x" in text(at)
    assert "<img" not in text(at)


@pytest.mark.usefixtures("console")
def test_nothing_is_deleted_before_it_is_confirmed(store: Store, pool: Pool) -> None:
    e, other, third = put(store, "linucb"), put(store, "random"), put(store, "lints")
    job = pool.get(e.hash)
    at = press(pick(visit(), store, e, other), "Delete")
    assert "<li><bdi>LinUCB (Pet shop, 300 steps, 3 replications, seed 42)</bdi></li>" in text(at)
    assert "<li><bdi>Random (Pet shop, 300 steps, 3 replications, seed 42)</bdi></li>" in text(at)
    assert "<li><bdi>LinTS" not in text(at)
    assert len(store.runs()) == 3
    at = press(at, "Cancel")
    assert len(store.runs()) == 3
    at = press(press(pick(at, store, e, other), "Delete"), "Delete permanently")
    assert list(listed(at)["Title"]) == ["LinTS"]
    assert [each.id for each in store.runs()] == [third.hash]
    assert job is not None
    # not from memory either
    assert pool.get(e.hash) is None


def test_only_the_browser_that_started_a_run_may_delete_it(store: Store, pool: Pool) -> None:
    mine, other = put(store, "linucb"), put(store, "random")
    pool.owners.record(mine.hash, "me")
    pool.owners.record(other.hash, "another visitor")
    at = settled(open_page("runs", owner="me"))
    for e, allowed in ((mine, True), (other, False)):
        at = pick(at, store, e)
        assert button(at, "Delete").disabled is not allowed
        assert ("browser that started" in button(at, "Delete").help) is not allowed
        assert button(at, "Edit").disabled is not allowed
    assert button(pick(at, store, mine, other), "Delete").disabled
    press(press(pick(at, store, mine), "Delete"), "Delete permanently")
    assert [each.id for each in store.runs()] == [other.hash]


@pytest.mark.usefixtures("console")
def test_a_run_that_goes_on_cannot_be_deleted(store: Store, pool: Pool, gate: Gate) -> None:
    gate.hold(70, 100)
    e = experiment("linucb", seed=70)
    store.put(e, load_histories(e), 1.0)
    at = press(pick(visit(), store, e), "Delete")
    # somebody else deletes it, and runs it again
    pool.delete(e.hash)
    job = pool.submit(e, "somebody else")
    at = press(at, "Delete permanently")
    assert "This run is active; stop it before you delete it" in text(at)
    assert job.active
    assert pool.get(e.hash) is job


def test_two_runs_are_compared(store: Store, pool: Pool) -> None:
    a = put(store, {"kind": "linucb", "alpha": 0.1}, "random")
    b = put(store, {"kind": "linucb", "alpha": 2.0}, "random", steps=500)
    at = pick(visit(), store, a)
    assert button(at, "Compare").disabled
    at = press(pick(at, store, a, b), "Compare")
    assert (
        "B compared with A:\n- steps 500 instead of 300\n- LinUCB: alpha 2 instead of 0.1"
        in text(at).replace("\\", "")
    )
    came, luck = (d.value for d in at.dataframe)
    results = {name: run(e) for name, e in (("A", a), ("B", b))}
    rate = metrics.estimate(metrics.click_rate(results["B"].histories["LinUCB"]))
    assert came["B"][0] == f"{rate.mean:.3f} ({rate.low:.3f} to {rate.high:.3f})"
    expected = paired(results)
    assert "**B compared with A up to step 300, 3 paired replications: " in text(at).replace(
        "\\", ""
    )
    assert "; Random earns the same in both.**" in text(at)
    # Random has common random numbers, and earns the same
    assert list(luck["Agent"]) == ["LinUCB"]
    assert list(luck["Up to step"]) == ["300"]
    assert (
        luck["Difference in clicks"][0].lstrip("+−") == f"{abs(expected[0].difference.mean):,.0f}"
    )
    shown = panel(at)
    for cell, title in zip(
        shown["cells"], ("Click-through rate", "Cumulative regret"), strict=True
    ):
        assert cell["figure"]["layout"]["title"]["text"] == title
        lines = {t["name"]: t for t in cell["figure"]["data"] if "fill" not in t}
        assert list(lines) == ["A · LinUCB", "A · Random", "B · LinUCB", "B · Random"]
    tiles = {tile["label"]: tile for tile in shown["legend"]}
    assert tiles["B · LinUCB"]["rate"] == f"{rate.mean:.3f}"
    assert tiles["B · LinUCB"]["spread"] == f" ± {(rate.high - rate.low) / 2:.3f}"
    assert tiles["A · LinUCB"]["color"] != tiles["B · LinUCB"]["color"]
    at = press(at, "Back to all runs")
    assert len(listed(at)) == 2


def test_a_comparison_in_which_all_agents_earn_the_same_has_no_table(
    store: Store, pool: Pool
) -> None:
    a, b = (
        put(store, "random", {"kind": "popularity", "label": label})
        for label in ("Popular", "Seen")
    )
    at = press(pick(visit(), store, a, b), "Compare")
    assert "None: the agents that can be compared earn the same." in text(at)


def test_rates_of_different_simulators_are_not_ranked_together(store: Store, pool: Pool) -> None:
    shop = put(store, "random", "oracle", seed=2)
    other, again = (
        put(store, "random", "oracle", simulator={"kind": "classification"}),
        put(store, "random", "oracle"),
    )
    at = press(pick(visit(), store, shop, other, again), "Compare")
    assert (
        text(at).count(
            "A and C cannot be paired: they differ in seed. Compare their intervals instead."
        )
        == 1
    )
    assert text(at).count("Rates of different simulators are not comparable.") == 2
    labels = [tile["label"] for tile in panel(at)["legend"]]
    assert {frozenset(labels[:2]), frozenset(labels[2:4])} == {
        frozenset({"A · Oracle", "C · Oracle"}),
        frozenset({"A · Random", "C · Random"}),
    }
    assert labels[4:] == ["B · Oracle", "B · Random"]


def test_after_a_comparison_no_run_is_selected(store: Store, pool: Pool) -> None:
    a, b = (
        put(store, {"kind": "linucb", "alpha": 0.1}),
        put(store, {"kind": "linucb", "alpha": 2.0}),
    )
    at = press(press(pick(visit(), store, a, b), "Compare"), "Back to all runs")
    assert len(listed(at)) == 2
    assert all(button(at, label).disabled for label in ("Compare", "Star", "Delete"))


def test_runs_that_do_not_pair_say_why_and_deleted_ones_are_not_compared(
    store: Store, pool: Pool
) -> None:
    a, b, c = (
        put(store, "linucb", seed=1),
        put(store, "linucb", seed=2),
        put(store, "lints", seed=2),
    )
    at = press(pick(visit(), store, a, b, c), "Compare")
    (setting, _) = (d.value for d in at.dataframe)
    assert list(setting["Setting"]) == ["seed", "LinUCB", "LinTS"]
    assert list(setting["C"]) == ["2", "–", "LinTS"]
    assert text(at).count("A and B cannot be paired: they differ in seed") == 1
    assert "B and C cannot be paired" not in text(at)
    pool.delete(a.hash)
    at = settled(at.run())
    assert (
        "These runs can be paired, but no agent has the same label or the same parameters in two "
        "of them." in text(at)
    )
    pool.delete(b.hash)
    # nothing left to compare: the list again
    assert len(listed(settled(at.run()))) == 1


def test_what_goes_on_is_told_and_can_be_opened(store: Store, pool: Pool, gate: Gate) -> None:
    gate.hold(71, 1000)
    job = pool.submit(experiment(steps=3000, seed=71))
    wait_for(lambda: job.result.histories, "the first points", over(job))
    at = visit()
    assert "Running" in [heading.value for heading in at.subheader]
    assert any("of 3,000" in str(p.proto.text) for p in at.get("progress"))
    (open_it,) = [b for b in at.button if b.key == f"going-{job.id}"]
    at = settled(open_it.click().run(), "Arena")
    assert told(at) == url.to_query(job.experiment)
    pool.stop(job)
    wait_for(lambda: job not in pool.processes, "its last checkpoint")
    # stopped: it can be resumed from here
    assert "Unfinished" in text(visit())


def test_an_interrupted_run_is_resumed_to_the_numbers_of_an_uninterrupted_one(
    store: Store, pool: Pool
) -> None:
    e = experiment("linucb", "random", steps=3000, seed=72)
    leave_behind(store, e)
    at = visit()
    assert "Unfinished" in text(at)
    assert "Pet shop, 3,000 steps, 3 replications, seed 72" in text(at)
    at = settled(at.button(key=f"resume-{e.hash}").click().run(), "Arena")
    job = ended(pool.get(e.hash))
    assert job.status == "finished"
    for label, history in run(e).histories.items():
        same(job.histories[label], history)
    assert "Unfinished" not in text(visit())


def test_whoever_opens_an_interrupted_run_sees_what_it_had_computed(
    store: Store, pool: Pool
) -> None:
    e = experiment("linucb", "random", steps=3000, seed=73)
    lockstep = leave_behind(store, e)
    at = settled(open_page("arena", url.to_query(e)), "Arena")
    assert status(at) == (
        "Stopped at step 1,000 of 3,000; results so far are kept · interrupted when the app ended"
    )
    rate = metrics.estimate(metrics.click_rate(lockstep.histories["LinUCB"]))
    assert {tile["label"]: tile["rate"] for tile in panel(at)["legend"]}[
        "LinUCB"
    ] == f"{rate.mean:.3f}"
    press(at, "Resume", "Arena")
    assert ended(pool.get(e.hash)).status == "finished"


def test_the_runs_of_lessons_are_named_as_the_page_lessons_numbers_them() -> None:
    """By the lesson, or its step where it has several runs; attempts by the task and the value."""
    named = set[str]()
    for number, lesson in enumerate(lessons().values()):
        for step in lesson.runs.values():
            if step.worked is None and (title := run_lists.lesson_title(step.resolved)):
                assert title.startswith(f"Lesson {number}")
                assert title not in named
                named.add(title)
    lesson = lessons()["explore-or-exploit"]
    task = lesson.tasks["tune"]
    tried = task.changed(lesson.runs[task.run], 0.4)
    assert run_lists.lesson_title(tried) == "Lesson 2, task: Yours alpha 0.4"


@pytest.mark.usefixtures("console")
def test_an_interrupted_run_is_discarded_when_that_is_confirmed(store: Store, pool: Pool) -> None:
    e = experiment(steps=3000, seed=74)
    leave_behind(store, e)
    at = settled(visit().button(key=f"destructive-discard-{e.hash}").click().run())
    assert "<li><bdi>LinUCB, Random</bdi></li>" in text(at)
    assert pool.unfinished() == [e]
    at = press(press(at, "Cancel"), "Discard")
    assert pool.unfinished() == [e]
    at = press(at, "Discard permanently")
    assert pool.unfinished() == []
    assert "Unfinished" not in text(at)


def test_a_stranger_discards_deletes_and_rewrites_nothing(store: Store, pool: Pool) -> None:
    unfinished, e = experiment(steps=3000, seed=75), put(store, "linucb")
    leave_behind(store, unfinished)
    for each in (unfinished, e):
        pool.owners.record(each.hash, "another visitor")
    at = pick(settled(open_page("runs", owner="me")), store, e)
    # without a pointer that rests on the button
    assert any(c.value.startswith("Discard: Only the browser that") for c in at.caption)
    for key in (f"destructive-discard-{unfinished.hash}", "destructive-runs", "edit-run"):
        pressed = at.button(key=key)
        assert pressed.disabled
        # a client may press it all the same
        pressed.proto.disabled = False
        at = settled(pressed.click().run())
        assert not {"Discard permanently", "Delete permanently", "Save"} & {
            b.label for b in at.button
        }
    for refused in (
        lambda: pool.discard(unfinished.hash, "me"),
        lambda: pool.delete(e.hash, "me"),
        lambda: pool.owners.require_editor(e.hash, "me"),
    ):
        with pytest.raises(UserError, match="only the browser that started"):
            refused()
    # the console may, and anyone where no owner is known
    pool.owners.require_editor(e.hash, None)
    pool.owners.require_editor(put(store, "lints").hash, "me")
    assert pool.unfinished() == [unfinished]


def test_home_goes_on_with_its_race_when_that_was_interrupted(
    store: Store, pool: Pool, gate: Gate
) -> None:
    e = presets()["race"].experiment
    # one of its agents is not ready before the test is over
    gate.hold(e.seed, e.steps, training=True)
    if (job := pool.get(e.hash)) is not None:
        pool.discard(e.hash, job.owner)
    made = Lockstep(e)
    store.keep_checkpoint(e.hash, e, pack({k: np.asarray(v) for k, v in made.state_dict().items()}))
    open_page()
    job = pool.get(e.hash)
    assert job is not None
    assert job.active
    assert not job.interrupted


def ended(job: Job | None) -> Job:
    assert job is not None
    wait_for(lambda: not job.active, "the end of the run")
    return job
