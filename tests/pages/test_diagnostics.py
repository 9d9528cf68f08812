"""The view Diagnostics: verdicts and figures of the current run."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from bandits.diagnostics.figures import MARKS
from bandits.diagnostics.findings import LINE
from bandits.experiments import url
from bandits.runtime.pool import Job, Pool
from bandits.simulators.datasets import csv_table, uploads
from bandits_app.arena.diagnostics import NOT_INFORMATIVE
from bandits_app.run_view.board import _tiles
from tests.gate import Gate
from tests.pages.support import open_page, panels
from tests.support import experiment, hold, wait_for

SHOP = "town,age,bought\n" + "".join(
    f"{'Rome' if i % 2 else 'Oslo'},{20 + i},{'yes' if i % 3 else 'no'}\n" for i in range(40)
)


def page(job: Job, *, by_link: bool = True) -> AppTest:
    at = (
        open_page("arena/diagnostics", url.to_query(job.experiment))
        if by_link
        else open_page("arena/diagnostics", job=job.id)
    )
    assert not at.exception
    return at


def status_line(at: AppTest) -> str:
    """Return the caption on the run and its reference values."""
    return next(c.value for c in at.caption if "Finished:" in c.value)


def titles(at: AppTest) -> list[str]:
    """Return the titles of all figures of diagnostics: first those that require attention."""
    # the last two: rates of segments, and who is shown what
    *diagnosed, _, _ = panels(at)
    return [_title(cell) for each in diagnosed for cell in each["cells"]]


def _title(cell: dict[str, Any]) -> str:
    return str(cell["figure"]["layout"]["title"]["text"])


def conclusions(at: AppTest) -> list[str]:
    """Return the lines of the card, without colours."""
    return [m.value for m in at.markdown if "of the possible gain" in m.value]


def test_verdicts_of_all_agents_and_figures_of_one(pool: Pool) -> None:
    job = pool.submit(
        experiment({"kind": "linucb", "alpha": 10.0}, "lints", "random", seed=971, steps=600)
    )
    wait_for(lambda: job.status == "finished", "the run")
    at = page(job)
    table, *_ = at.dataframe
    assert sorted(table.value.columns) == ["Diagnostic / agent", "LinTS", "LinUCB", "Random"]
    assert len(table.value) == 13
    assert list(table.value["Diagnostic / agent"])[:2] == ["Exploration", "Regret"]
    cells = table.value.drop(columns="Diagnostic / agent").to_numpy().ravel()
    assert {cell.split()[0] for cell in cells} <= set(MARKS.values())
    (choice,) = at.selectbox
    urgent = titles(choice.set_value("LinUCB").run())
    assert {title[0] for title in urgent} <= {MARKS["watch"], MARKS["alarm"]}
    at = at.toggle(key="health-folded").set_value(True).run()
    assert not at.exception
    drawn = titles(at)
    assert drawn[: len(urgent)] == urgent
    assert len(drawn) == 14
    assert drawn[-1] == "Spectrum over time"
    assert f"{MARKS['none']} Smallest eigenvalue" not in drawn
    at = at.selectbox[0].set_value("Random").run()
    assert not at.exception
    assert f"{MARKS['none']} Smallest eigenvalue" in titles(at)
    assert any("No diagnostic of Random requires attention" in m.value for m in at.markdown)
    assert any("Finished: 600 steps" in c.value for c in at.caption)
    # who is shown what
    maps = [_title(cell) for cell in panels(at)[-1]["cells"]]
    assert maps == ["Optimal choice", "LinUCB (alpha 10)", "LinTS", "Random"]
    # the Arena's tiles state the share of optimal choices under the pointer
    (random,) = (tile for tile in _tiles(job, job.result) if tile["label"] == "Random")
    share = float(random["more"].removeprefix("Optimal choice: ").removesuffix("%").strip())
    # four of the 20 products are best for a visitor
    assert 10 < share < 30


@pytest.mark.slow
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
    assert sorted(table.columns) == ["LinUCB", "Random"]
    assert set(table.loc["Linearity check"]) == {NOT_INFORMATIVE}


@pytest.mark.slow
def test_the_page_does_not_wait_for_reference_values(pool: Pool) -> None:
    job = pool.submit(experiment("linucb", "random", seed=973, steps=600))
    wait_for(lambda: job.status == "finished", "the run")
    with hold(LINE):
        at = page(job)
        assert "being computed" in status_line(at)
        before = titles(at.toggle(key="health-folded").set_value(True).run())
        table = at.dataframe[0].value.set_index("Diagnostic / agent")
        assert set(table.loc["Premature convergence"]) == {NOT_INFORMATIVE}
        assert table.loc["Exploration", "LinUCB"] != NOT_INFORMATIVE
    wait_for(lambda: "being computed" not in status_line(at.run()), "the comparison")
    table = at.dataframe[0].value.set_index("Diagnostic / agent")
    assert table.loc["Premature convergence", "LinUCB"] != NOT_INFORMATIVE
    # none more, none less
    assert sorted(title[2:] for title in titles(at)) == sorted(title[2:] for title in before)


def test_the_page_opens_with_the_most_severe_conclusion(pool: Pool) -> None:
    agents = [
        {"kind": "linucb", "label": f"alpha {alpha:g}", "alpha": alpha} for alpha in (0.35, 10.0)
    ]
    job = pool.submit(experiment(*agents, seed=974, steps=1500, replications=4))
    wait_for(lambda: job.status == "finished", "the run")
    at = page(job)
    worst, best = conclusions(at)
    assert worst.startswith(
        f":red[**{MARKS['alarm']}**] **alpha 10 – too much exploration.** It loses "
    )
    assert "Less exploration earns more" in worst
    assert "alpha 0.35, with exploration bonus 0.35 instead of 10" in worst
    assert best.startswith(f":green[**{MARKS['healthy']}**] **alpha 0.35.** It loses ")
    assert list(at.dataframe[0].value.columns)[1:] == ["alpha 10", "alpha 0.35"]
    table = at.dataframe[0].value.set_index("Diagnostic / agent")
    assert table.loc["Exploration", "alpha 10"] == f"{MARKS['alarm']} too much"
    assert table.loc["Exploration", "alpha 0.35"] == f"{MARKS['healthy']} about right"
    assert at.selectbox[0].value == "alpha 10"
    at = (
        at.selectbox[0]
        .set_value("alpha 0.35")
        .run()
        .toggle(key="health-folded")
        .set_value(True)
        .run()
    )
    sentences = [c.value for c in at.caption if "because the agent loses little reward" in c.value]
    assert len(sentences) == 1
    notes = [
        cell["figure"]["layout"]["meta"]["note"] for each in panels(at) for cell in each["cells"]
    ]
    assert not [note for note in notes if "loses little reward" in note]


@pytest.mark.slow
def test_the_bonus_has_its_bound_and_the_linearity_check_its_plateau(pool: Pool) -> None:
    """A shared linear model in a quadratic simulator: both are drawn and stated where the page
    shows their figures.
    """
    world = {"kind": "synthetic", "function": "quadratic", "n_features": 8, "noise": 0.3}
    agent = {"kind": "linucb", "sharing": "shared", "alpha": 0.5}
    job = pool.submit(
        experiment(agent, "random", seed=976, steps=1500, replications=16, simulator=world)
    )
    wait_for(lambda: job.status == "finished", "the run")
    at = page(job)
    wait_for(lambda: "being computed" not in status_line(at.run()), "the reference values")
    at = at.selectbox[0].set_value("LinUCB").run().toggle(key="health-folded").set_value(True).run()
    assert not at.exception
    by_title = {
        cell["figure"]["layout"]["title"]["text"][2:]: cell["figure"]
        for each in panels(at)
        for cell in each["cells"]
    }
    bonus = by_title["Exploration bonus"]
    assert bonus["layout"]["showlegend"] is True
    (bound,) = [t for t in bonus["data"] if t["name"] == "√(1/λ min)"]
    assert (bound["meta"], bound["line"]["dash"], bound["showlegend"]) == (
        "reference",
        "dash",
        True,
    )
    smallest = np.stack(
        [s.eigenvalues.min(axis=(1, 2)) for s in job.result.histories["LinUCB"].spectra]
    )
    np.testing.assert_allclose(bound["y"], (smallest**-0.5).mean(axis=1), rtol=1e-5)
    assert "the largest confidence width" in bonus["layout"]["meta"]["note"]
    note = by_title["Linearity check"]["layout"]["meta"]["note"]
    assert re.search(
        r"lateau: over the last third the reward per step changes by \S+ \(95 % CI \S+ to \S+\) per",  # noqa: E501
        note,
    )
    assert "below it (without exploration)." in note


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


@pytest.mark.stress
def test_a_two_stage_simulator_shows_the_regret_of_its_index(pool: Pool) -> None:
    world = {
        "kind": "ranking",
        "n_items": 900,
        "n_candidates": 20,
        "slate": 3,
        "retrieval": "nearest",
        "breadth": 2,
    }
    e = experiment("lints", "random", seed=975, steps=150, simulator=world)
    job = pool.submit(e)
    wait_for(lambda: job.status == "finished", "the run")
    at = page(job)
    (_, table) = at.dataframe
    rows = dict(table.value.to_numpy().tolist())
    assert {
        "Recall",
        "Search time",
        "Regret of the index",
        "Regret of LinTS",
        "Regret of Random",
    } <= set(rows)
    assert [h.value for h in at.subheader] == ["Candidate retrieval"]


def test_segments_and_items_have_tables_of_what_they_got(pool: Pool) -> None:
    launch = {"kind": "launch", "at": 1000, "items": 2, "category": "Fish", "quality": 1.5}
    shop = {
        "kind": "petshop",
        "n_products": 20,
        "persona_shares": [0.5, 0.3, 0.15, 0.05],
        "changes": [launch],
    }
    job = pool.submit(
        experiment("linucb", "random", seed=979, steps=3000, replications=4, simulator=shop)
    )
    wait_for(lambda: job.status == "finished", "the run")
    at = page(job)
    assert "Fairness" in [s.value for s in at.subheader]
    segments, items = (
        d.value for d in at.dataframe if "Agent" in d.value.columns and len(d.value) in (2, 8)
    )
    assert segments.columns.tolist()[:2] == ["Agent", "Segment"]
    assert len(segments) == 8
    assert re.fullmatch(
        r"−?\d\.\d{3} \(−?\d\.\d{3} to −?\d\.\d{3}\)", segments["Disparity"].iloc[0]
    )
    assert items["Launch at 1,000: share"].str.contains(" of 0.").all()
