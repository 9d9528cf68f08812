"""The page Diagnostics: verdicts and figures of the current run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from streamlit.testing.v1 import AppTest

from bandits.diagnostics.background import ReferenceTask
from bandits.diagnostics.figures import MARKS
from bandits.experiments import url
from bandits.runtime.pool import Job, Pool
from bandits.simulators.datasets import csv_table, uploads
from tests.gate import Gate
from tests.pages.support import open_page, panel
from tests.support import experiment, wait_for
from ui import session

SHOP = "town,age,bought\n" + "".join(
    f"{'Rome' if i % 2 else 'Oslo'},{20 + i},{'yes' if i % 3 else 'no'}\n" for i in range(40)
)


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    """The app's own."""
    made = session.pool()
    yield made
    made.close()
    session.pool.clear()


def page(job: Job, *, by_link: bool = True) -> AppTest:
    at = open_page("diagnostics", url.to_query(job.experiment)) if by_link else open_page("diagnostics", job=job.id)
    assert not at.exception
    return at


def status_line(at: AppTest) -> str:
    """Return the caption on the run and its reference values."""
    return next(c.value for c in at.caption if "Finished:" in c.value)


def titles(at: AppTest) -> list[str]:
    return [cell["figure"]["layout"]["title"]["text"] for cell in panel(at)["cells"]]


def test_verdicts_of_all_agents_and_figures_of_one(pool: Pool) -> None:
    job = pool.submit(experiment("linucb", "lints", "random", seed=971, steps=600))
    wait_for(lambda: job.status == "finished", "the run")
    at = page(job)
    (table,) = at.dataframe
    assert list(table.value.columns) == ["Diagnostic / agent", "LinUCB", "LinTS", "Random"]
    assert len(table.value) == 11
    cells = table.value.drop(columns="Diagnostic / agent").to_numpy().ravel()
    assert {cell.split()[0] for cell in cells} <= set(MARKS.values())
    drawn = titles(at)
    assert drawn[0] == "Spectrum over time"
    assert len(drawn) == 12
    assert f"{MARKS['none']} Smallest eigenvalue" not in drawn
    (choice,) = at.selectbox
    at = choice.set_value("Random").run()
    assert not at.exception
    assert f"{MARKS['none']} Smallest eigenvalue" in titles(at)
    assert any("Finished: 600 steps" in c.value for c in at.caption)


def test_a_run_whose_data_are_gone_has_no_reference_values(pool: Pool) -> None:
    name = uploads.save_dataset(csv_table.inspect(SHOP.encode()), target="bought", title="Shop")
    world = {"kind": "classification", "data": name, "encoding": "context"}
    job = pool.submit(experiment("linucb", "random", simulator=world, seed=972, steps=300))
    wait_for(lambda: job.status == "finished", "the run")
    uploads.delete(name)
    at = page(job, by_link=False)
    wait_for(lambda: "being computed" not in status_line(at.run()), "the end of the comparison")
    assert f"No reference values: data '{name}' is not stored here" in status_line(at)
    assert [b.label for b in at.button] == ["Recompute reference values"]
    table = at.dataframe[0].value.set_index("Diagnostic / agent")
    assert list(table.columns) == ["LinUCB", "Random"]
    assert set(table.loc["Linearity check"]) == {MARKS["none"]}


def test_the_page_does_not_wait_for_reference_values(pool: Pool) -> None:
    job = pool.submit(experiment("linucb", "random", seed=973, steps=600))
    wait_for(lambda: job.status == "finished", "the run")
    with ReferenceTask._turn:
        at = page(job)
        assert "being computed" in status_line(at)
        before = titles(at)
        table = at.dataframe[0].value.set_index("Diagnostic / agent")
        assert set(table.loc["Premature convergence"]) == {MARKS["none"]}
        assert table.loc["Smallest eigenvalue", "LinUCB"] != MARKS["none"]
    wait_for(lambda: "being computed" not in status_line(at.run()), "the comparison")
    table = at.dataframe[0].value.set_index("Diagnostic / agent")
    assert MARKS["none"] not in set(table.loc["Premature convergence"])
    assert [title[2:] for title in titles(at)[1:]] == [title[2:] for title in before[1:]]  # none more, none less


def test_a_queued_run_has_no_verdicts_yet(pool: Pool, gate: Gate) -> None:
    for i in range(pool.workers + 1):
        gate.hold(980 + i)
    waiting = [pool.submit(experiment(seed=980 + i)) for i in range(pool.workers + 1)]
    try:
        at = page(waiting[-1])
        assert any("no results to diagnose yet" in m.value for m in at.markdown)
        assert not at.dataframe
    finally:
        for job in waiting:
            pool.stop(job)


def test_a_two_stage_simulator_shows_the_regret_of_its_index(pool: Pool) -> None:
    world = {"kind": "ranking", "n_items": 900, "n_candidates": 20, "slate": 3, "retrieval": "nearest", "breadth": 2}
    e = experiment("lints", "random", seed=975, steps=150, simulator=world)
    job = pool.submit(e)
    wait_for(lambda: job.status == "finished", "the run")
    at = page(job)
    (_, table) = at.dataframe
    rows = dict(table.value.to_numpy().tolist())
    assert {"Recall", "Search time", "Regret of the index", "Regret of LinTS", "Regret of Random"} <= set(rows)
    assert [h.value for h in at.subheader] == ["Candidate retrieval"]
