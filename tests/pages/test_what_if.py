"""The view What if?: logs, target policies, evaluations, files, and the decision log in the
Arena.
"""

from __future__ import annotations

import io
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from streamlit.testing.v1 import AppTest

from bandits.experiments import presets, url
from bandits.experiments.experiment import Experiment
from bandits.offpolicy import open_bandit, parquet, reading, record
from bandits.offpolicy.user_table import suggested_map
from bandits.runtime.pool import Pool
from bandits.simulators.datasets import kept_logs
from bandits.tables.csv_reader import read_csv
from bandits_app.data.log_source import MAX_MEGABYTES, recorded
from tests.pages.support import ended, open_page, panels, refusals
from tests.support import experiment, thinned, wait_for


def visit(pool: Pool, e: Experiment) -> AppTest:
    ended(pool.submit(e))
    at = open_page("data/what_if", url.to_query(e))
    assert not at.exception
    return at


def box(at: AppTest, label: str) -> Any:
    return next(b for b in at.selectbox if b.label == label)


def evaluated(at: AppTest) -> AppTest:
    next(b for b in at.button if b.label == "Evaluate").click().run()
    wait_for(lambda: not at.run().get("progress"), "the evaluation")
    assert not at.exception
    return at


def titles(at: AppTest) -> list[str]:
    return [cell["figure"]["layout"]["title"]["text"] for p in panels(at) for cell in p["cells"]]


@pytest.mark.slow
def test_an_agent_is_evaluated_on_the_log_of_another(pool: Pool) -> None:
    at = visit(pool, experiment("linucb", "epsilon_greedy", "lints", seed=61, steps=400))
    assert box(at, "Log").options[:3] == ["Run: LinUCB", "Run: ε-greedy", "Run: LinTS"]
    assert len(box(at, "Log").options) == 3 + len(open_bandit.NAMES) + 1
    assert box(at, "Log").value == "run:ε-greedy"
    assert box(at, "Target policy").value == "agent:LinTS"
    box(at, "Target policy").select("agent:LinUCB").run()
    assert any("1,200 decisions, 10 items in the simulator Pet shop" in c.value for c in at.caption)
    evaluated(at)
    assert titles(at) == ["Estimated value", "Importance weights"]
    texts = [m.value for m in at.markdown]
    assert any("LinUCB would have earned" in text for text in texts)
    assert any("The simulator knows the true value" in text for text in texts)
    assert any("the other 600 decisions" in c.value for c in at.caption)
    assert any("Its confidence bonus shrinks no more" in c.value for c in at.caption)
    assert [b.label for b in at.get("download_button")] == [
        "Estimates (JSON)",
        "Decision log (Parquet)",
    ]
    box(at, "Target policy").select("random").run()
    assert not panels(at)
    assert any("Press **Evaluate**" in c.value for c in at.caption)


@pytest.mark.parametrize(
    "name",
    thinned(
        [(name,) for name in open_bandit.NAMES],
        lambda _: False,
        lambda n: open_bandit.NAMES[n] in ("open_bandit/bts/men", "open_bandit/random/women"),
    ),
)
def test_the_open_bandit_sample_says_what_it_can_answer(pool: Pool, name: str) -> None:
    at = visit(pool, experiment("linucb", seed=62, steps=200))
    box(at, "Log").select(name).run()
    assert any("CC BY 4.0" in c.value for c in at.caption)
    assert "Thompson sampling of the shop" in box(at, "Target policy").options
    first = box(at, "Target policy").value
    box(at, "Target policy").select("always").run()
    assert box(at, "Item").options
    assert first == ("random" if "/bts/" in name else f"bts:{name.split('/')[2]}")
    box(at, "Target policy").select("random").run()
    evaluated(at)
    said = " ".join(m.value for m in at.markdown).replace("\u00a0", " ")
    few = name == "open_bandit/bts/women"
    assert ("o find a difference of 10 %" in said) is ("/bts/" in name and not few)
    assert ("too few decisions carry that for a confidence interval" in said) is few
    (numbers, *_) = (t.value for t in at.table)
    assert any("interval" in column for column in numbers) is not few
    assert any("No intervals: too few decisions" in c.value for c in at.caption) is few
    together = "Switch-DR and DR with shrinkage are biased"
    assert any(together in c.value.replace("\u00a0", " ") for c in at.caption) is not few
    assert ("Choosing at random is the policy that made this log" in said) is ("/random/" in name)


def table(**columns: Any) -> bytes:
    g = np.random.default_rng(1)
    n = 400
    items = g.integers(0, 3, n)
    frame = {"item": items, "clicked": (g.random(n) < 0.3).astype(int), "p": np.full(n, 1 / 3)}
    frame |= {"feature_age": g.integers(20, 60, n), "target": np.where(items == 0, 0.5, 0.25)}
    out = io.BytesIO()
    pd.DataFrame({**frame, **columns}).drop(
        columns=[k for k, v in columns.items() if v is None]
    ).to_csv(out, index=False)
    return out.getvalue()


def with_file(at: AppTest, content: bytes, name: str = "log.csv") -> AppTest:
    box(at, "Log").select("file").run()
    return at.file_uploader[0].upload(name, content, "text/csv").run()


@pytest.mark.slow
def test_a_file_with_propensities(pool: Pool) -> None:
    at = with_file(visit(pool, experiment("linucb", seed=63, steps=200)), table())
    assert [box(at, label).value for label in ("Action", "Reward", "Propensity")] == [
        "item",
        "clicked",
        "p",
    ]
    assert next(m for m in at.multiselect if m.label == "Features").value == ["feature_age"]
    assert "Probabilities in a column" in box(at, "Target policy").options
    box(at, "Target policy").select("column").run()
    assert box(at, "Column").options == ["target"]
    evaluated(at)
    assert any("The policy in the column target would have earned" in m.value for m in at.markdown)
    assert titles(at) == ["Estimated value", "Importance weights"]
    assert at.warning == []
    box(at, "Propensity").select_index(0).run()
    assert any("only DM and replay are possible" in c.value for c in at.caption)


@pytest.mark.stress
def test_the_controls_stay_where_a_file_is_refused(pool: Pool) -> None:
    at = visit(pool, experiment("linucb", seed=63, steps=200))
    box(at, "Log").select("file").run()

    def usable() -> tuple[bool, bool]:
        return not box(at, "Target policy").disabled, not next(
            b for b in at.button if b.label == "Evaluate"
        ).disabled

    assert usable() == (False, False)
    with_file(at, table())
    box(at, "Target policy").select("always").run()
    assert usable() == (True, True)
    with_file(at, table(p=2.0))
    (refusal,) = refusals(at)
    assert refusal.startswith(
        "Row 2 (line 2 of the file), propensity: must be above 0 and at most 1; got 2"
    )
    assert usable() == (False, False)
    assert box(at, "Action").value == "item"
    assert box(at, "Target policy").options == ["Always one item"]
    with_file(at, table())
    assert usable() == (True, True)
    assert box(at, "Target policy").value == "always"


@pytest.mark.slow
def test_a_file_without_propensities_says_what_is_still_possible(pool: Pool) -> None:
    at = with_file(visit(pool, experiment("linucb", seed=64, steps=200)), table(p=None))
    assert any("only DM and replay are possible" in c.value for c in at.caption)
    box(at, "Target policy").select("always").run()
    evaluated(at)
    assert titles(at) == ["Estimated value"]
    assert any("because it has no propensities" in m.value for m in at.markdown)
    assert any("leaves out the error of the predicted rewards" in w.value for w in at.warning)
    next(t for t in at.toggle if t.label == "Estimate propensities").set_value(True).run()
    evaluated(at)
    assert titles(at) == ["Estimated value", "Importance weights"]
    assert any("Propensities are estimated" in w.value for w in at.warning)


@pytest.mark.stress
def test_wrong_rows_are_listed_and_left_out_by_a_button(pool: Pool) -> None:
    p = np.where(np.arange(400) % 200 == 6, 0.0, 1 / 3)
    at = with_file(visit(pool, experiment("linucb", seed=69, steps=200)), table(p=p))
    assert "2 rows hold what is not allowed" in refusals(at)[0]
    assert any(
        "Row 208 (line 208" in m.value or "row 208 (line 208" in m.value for m in at.markdown
    )
    next(b for b in at.button if b.label == "Leave out these 2 rows").click().run()
    assert refusals(at) == []
    assert any(
        "398 decisions" in c.value and "2 rows of 400 left out" in c.value for c in at.caption
    )
    evaluated(at)


def test_roles_are_guessed_from_the_content_where_no_name_is_usual() -> None:
    """A column of different times is no action, and no column has two roles."""
    g, n = np.random.default_rng(0), 60
    frame = pd.DataFrame(
        {
            "moment": [f"2026-01-01T00:{i:02}:00" for i in range(n)],
            "banner": g.choice(["red", "blue"], n),
            "euros": g.choice([0.0, 1.5, 20.0], n),
            "chance": 0.5,
        }
    )
    beginning = read_csv(frame.to_csv(index=False).encode(), reading.LIMITS)
    assert suggested_map(list(frame), beginning) == {
        "action": "banner",
        "reward": "euros",
    }


@pytest.mark.parametrize(
    ("content", "message"),
    thinned(
        [
            (
                table(p=np.where(np.arange(400) == 6, 0.0, 1 / 3)),
                "Row 8 (line 8 of the file), propensity",
            ),
            (
                table(p=np.where(np.arange(400) == 6, 1.2, 1 / 3)),
                "Row 8 (line 8 of the file), propensity",
            ),
            (table(clicked=["yes"] * 400), "Row 2 (line 2 of the file), clicked: must be a number"),
            (b"\xff\xfe\x00", "the file is not text in UTF-16"),
        ],
        lambda number: number == 0,
        lambda _: False,
    ),
)
def test_a_wrong_file_is_refused_in_one_sentence(pool: Pool, content: bytes, message: str) -> None:
    at = with_file(visit(pool, experiment("linucb", seed=65, steps=200)), content)
    assert not at.exception
    (refusal,) = refusals(at)
    assert message.casefold() in refusal.casefold()


@pytest.mark.slow
def test_the_arena_exports_decisions(pool: Pool) -> None:
    e = experiment("linucb", "epsilon_greedy", seed=66, steps=300)
    ended(pool.submit(e))
    at = open_page("arena", url.to_query(e))
    assert box(at, "Decisions of").value == "ε-greedy"
    at.number_input(key=f"log-rows-{e.hash[:12]}").set_value(2).run()
    next(b for b in at.button if b.label == "Record decisions").click().run()
    wait_for(
        lambda: any(b.label == "Decisions (Parquet)" for b in at.run().get("download_button")),
        "the log",
    )
    assert not at.exception
    log = parquet.from_table(pq.read_table(recorded(e, "ε-greedy", 2).path))
    assert log == record(e, "ε-greedy", rows=[0, 1])
    at.segmented_control(key="log-format").set_value("dsjson").run()
    assert "Decisions (dsjson)" in [b.label for b in at.get("download_button")]


@pytest.mark.slow
def test_a_run_that_cannot_be_logged_says_why(pool: Pool) -> None:
    large = {"kind": "ranking", "n_items": 100_000, "n_candidates": 20}
    e = experiment("random", simulator=large, seed=67, steps=250, replications=1)
    at = visit(pool, e)
    assert box(at, "Log").value == open_bandit.NAMES[0]
    at = open_page("arena", url.to_query(e))
    assert any("a row for each of 10 slots" in c.value for c in at.caption)


@pytest.mark.stress
def test_a_file_is_kept_and_replayed_in_the_arena(
    pool: Pool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = visit(pool, experiment("linucb", seed=68, steps=200))
    monkeypatch.setenv("BANDITS_HOME", str(tmp_path))
    at = with_file(at, table(p=None))
    assert [e.label for e in at.expander] == ["Formulas"]  # no log is kept
    press(at, "Save and run")
    assert "state that every item was equally likely" in refusals(at)[0]
    next(c for c in at.checkbox if c.label == "Every item was equally likely").check().run()
    press(at, "Save and run")
    assert not at.exception
    (info,) = kept_logs.listing()
    assert (info.title, info.events, info.items, info.features) == ("log", 400, 3, 1)
    assert pool.get(presets.on_log(info.id).hash) is not None
    owner = at.session_state["owner"]
    at = open_page("data/what_if", "", owner="another visitor")
    box(at, "Log").select("file").run()
    assert next(b for b in at.button if b.label == "Delete log").disabled
    at = open_page("data/what_if", "", owner=owner)
    box(at, "Log").select("file").run()
    press(at, "Delete log")
    assert kept_logs.listing() == []


def press(at: AppTest, label: str) -> None:
    next(b for b in at.button if b.label == label).click().run()


def test_the_server_takes_files_as_large_as_the_page_says() -> None:
    """Streamlit's own limit answers larger ones with an error code instead of a sentence."""
    config = tomllib.loads(
        (Path(__file__).parents[2] / ".streamlit" / "config.toml").read_text(encoding="utf-8")
    )
    assert config["server"]["maxUploadSize"] == MAX_MEGABYTES
