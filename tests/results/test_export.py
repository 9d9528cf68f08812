"""Exports: exact tables, a script that reproduces the run, a report that loads nothing from the
network.
"""

from __future__ import annotations

import io
import json
import math
import os
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from bandits import Experiment, History, Result, __version__, run
from bandits.results import metrics
from bandits.results.comparison.conclusion import main_comparison
from bandits.results.export import report, script, table_csv, table_parquet
from bandits.results.figures.board import board
from bandits.simulators.datasets import csv_table, uploads
from tests.support import experiment

ROOT = Path(__file__).parents[2]
HOSTILE = (
    "</script><script>alert(1)</script>",
    "<img src=https://elsewhere.example/x onerror=alert(1)>",
    "<!--<script>",
    "\"'><a href='https://elsewhere.example'>here</a>",
    "{title}{{}}",
    "]]>&lt;b&gt;",
    "=HYPERLINK(1)",
    "\u2028x",
)


@pytest.fixture(scope="module")
def result() -> Result:
    return run(experiment("linucb", "beta_ts", "random", steps=600))


def hostile(result: Result, label: str) -> Result:
    """Return the result with a label that validation would refuse for the first agent."""
    e = result.experiment
    agent = e.agents[0].model_copy(update={"label": label})
    bad = e.model_copy(update={"agents": (agent, *e.agents[1:])})
    return Result(bad, dict(zip(bad.labels, result.histories.values(), strict=True)))


# -- tables
# --------------------------------------------------------------------------------------------------------  # noqa: E501


def test_csv_preserves_all_digits(result: Result) -> None:
    back = pd.read_csv(io.StringIO(table_csv(result)))
    pd.testing.assert_frame_equal(back, result.table(), check_dtype=False, check_exact=True)
    assert [t.kind for t in back.dtypes[2:]] == ["i", "f", "f", "f"]


def test_parquet_preserves_types(result: Result) -> None:
    data = table_parquet(result)
    pd.testing.assert_frame_equal(
        pd.read_parquet(io.BytesIO(data)), result.table(), check_exact=True
    )
    assert data == table_parquet(result)


def test_the_exploration_rate_is_exported_where_the_run_holds_it() -> None:
    """Without checks tables lack the metric and keep all others."""
    new = run(experiment("linucb", {"kind": "epsilon_greedy", "epsilon": 1.0}, "random", steps=400))
    histories = {}
    for label, history in new.histories.items():
        kept = {
            name: v
            for name, v in history.state_dict().items()
            if not name.startswith("exploration.")
        }
        histories[label] = new.experiment.empty_history()
        histories[label].load_state_dict(kept)
    old = Result(new.experiment, histories)
    for read in (
        lambda result: pd.read_csv(io.StringIO(table_csv(result))),
        lambda result: pd.read_parquet(io.BytesIO(table_parquet(result))),
    ):
        table, without = read(new), read(old)
        rates = table[table.metric == "exploration_rate"]
        for label, history in new.histories.items():
            rows = rates[rates.agent == label]
            assert list(rows.step) == [c.step for c in history.exploration_checks]
            np.testing.assert_allclose(
                rows.mid, [c.explored.mean() for c in history.exploration_checks]
            )
        assert rates[rates.agent == list(new.histories)[1]].mid.mean() > 0.5
        rest = table[table.metric != "exploration_rate"].reset_index(drop=True)
        pd.testing.assert_frame_equal(rest, without)
    assert "exploration_rate" not in old.summary()["agents"]["LinUCB"]
    assert "exploration_rate" in new.summary()["agents"]["LinUCB"]


@pytest.mark.parametrize(
    "label", ["=1+1", "+x", "-x", "@x", "\tx", "\rx", "\nx", "=cmd|' /C calc'!A0", "a=b"]
)
def test_cells_are_never_formulas_and_numbers_stay_numbers(result: Result, label: str) -> None:
    text = table_csv(hostile(result, label))
    back = pd.read_csv(io.StringIO(text), keep_default_na=False)
    names = set(back.agent)
    assert len(names) == 3
    assert not any(name[0] in "=+-@\t\r\n" for name in names)
    assert (label if label == "a=b" else f"'{label}").replace("\r", " ") in names
    np.testing.assert_array_equal(back.mid, result.table().mid)
    # a negative number stays a number
    assert (back.low < 0).any()


# -- script
# --------------------------------------------------------------------------------------------------------  # noqa: E501


@pytest.mark.slow
def test_the_script_reproduces_the_summary_in_a_new_process(result: Result, tmp_path: Path) -> None:
    text = script(result.experiment)
    assert len(text.strip().splitlines()) <= 16
    assert all(len(line) <= 120 for line in text.splitlines() if line.startswith("#"))
    assert "pip install" in text
    (tmp_path / "again.py").write_text(text, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "again.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert [line.split(" {")[0] for line in done.stdout.splitlines()] == list(
        result.experiment.labels
    )
    result.save(tmp_path / "direct")
    small_result, direct = tmp_path / "results", tmp_path / "direct"
    assert (small_result / "summary.json").read_bytes() == (direct / "summary.json").read_bytes()
    assert (small_result / "experiment.json").read_bytes() == (
        direct / "experiment.json"
    ).read_bytes()


# -- report
# --------------------------------------------------------------------------------------------------------  # noqa: E501


class Page(HTMLParser):
    """Parser of the elements of a page and the text of each kind of element."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self._open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.texts.setdefault(tag, []).append("")
        if tag not in ("meta", "br"):
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open:
            self.texts[self._open[-1]][-1] += data

    def figures(self) -> Any:
        (at,) = [
            i
            for i, (_, a) in enumerate(t for t in self.tags if t[0] == "script")
            if a.get("id") == "figures"
        ]
        return json.loads(self.texts["script"][at])


def plain(value: Any) -> Any:
    """Convert a figure to JSON values."""
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def elements(page: Page) -> list[str]:
    return [tag for tag, _ in page.tags]


def test_the_report_contains_the_figures_of_the_board_and_makes_no_requests(result: Result) -> None:
    page = Page(report(result))
    assert page.figures() == plain(board(result))
    assert len(page.figures()) == 4
    for tag, attributes in page.tags:
        assert not {"src", "href", "action", "data", "srcset", "poster"} & set(attributes), tag
        assert not any(name.startswith("on") for name in attributes)
    policy = next(a["content"] for t, a in page.tags if t == "meta" and "http-equiv" in a)
    assert policy is not None
    # the content security policy blocks requests to other hosts
    assert policy.startswith("default-src 'none'")
    assert "http" not in policy
    assert page.texts["h1"] == [", ".join(result.experiment.labels)]
    assert json.loads(page.texts["pre"][0]) == json.loads(result.experiment.model_dump_json())
    assert page.texts["pre"][1] == script(result.experiment)
    assert result.experiment.hash in page.texts["p"]


def test_the_report_begins_with_the_conclusion_of_the_page() -> None:
    result = small_result("linucb", "ab_test", "oracle", steps=600, replications=4)
    first, others = main_comparison(result)
    assert "per 1,000 visitors" in first
    page = Page(report(result))
    assert first in page.texts["b"]
    assert set(others) <= set(page.texts["li"])


def test_the_report_uses_the_selected_window(result: Result) -> None:
    assert Page(report(result, window=100)).figures() == plain(board(result, 100))


def test_the_report_states_date_version_seed_and_caveats(result: Result) -> None:
    page = Page(
        report(result, date=datetime(2026, 11, 22, 14, 5, tzinfo=timezone(timedelta(hours=2))))
    )
    assert (
        page.texts["small"][0]
        == f"Report of 2026-11-22 12:05 UTC, Bandit Playground {__version__}, seed 42"
    )
    items = page.texts["li"]
    for start in (
        "No real users were served",
        "Intervals and bands are 95 % confidence intervals",
        "Regret uses",
    ):
        assert sum(item.startswith(start) for item in items) == 1
    assert "over 3 replications" in " ".join(items)
    assert any("3 replications are few" in item for item in items)
    alone = Page(report(small_result("random", replications=1))).texts["li"]
    assert any("no intervals" in item for item in alone)
    assert not any("paired" in item or "few" in item for item in alone)


def test_the_script_names_what_it_needs() -> None:
    name = uploads.save_dataset(
        csv_table.inspect(csv_table.sample()), target="species", title="iris"
    )
    e = experiment("random", simulator={"kind": "classification", "data": name}, steps=20)
    assert "# It needs the uploaded data" in script(e)
    assert "# It needs" not in script(experiment("random"))
    uploads.delete(name)


@pytest.mark.parametrize("label", HOSTILE)
def test_labels_are_escaped_in_the_report(result: Result, label: str) -> None:
    harmless, page = Page(report(result)), Page(report(hostile(result, label)))
    assert elements(page) == elements(harmless)
    assert label in page.texts["h1"][0]
    assert any(label in text for text in page.texts["th"])
    assert any(label in text for text in page.texts["li"])
    names = {trace.get("name") for figure in page.figures() for trace in figure["data"]}
    # Plotly interprets names as HTML
    assert label.replace("<", "&lt;") in names


def stop_rows(histories: dict[str, History], label: str, rows: slice) -> None:
    """Replace rows by diverged ones: all their sums are NaN."""
    for sums in histories[label].sums.values():
        sums[1:, rows] = np.nan
    histories[label].alive = histories[label].alive.copy()
    histories[label].alive[rows] = False


def small_result(*agents: str, **changes: Any) -> Result:
    return run(experiment(*agents, **changes))


def stopped(rows: slice, *labels: str) -> Result:
    result = small_result("linucb", "random")
    for label in labels:
        stop_rows(result.histories, label, rows)
    return result


def partial(*labels: str) -> Result:
    whole = small_result("linucb", "random")
    return Result(whole.experiment, {label: whole.histories[label] for label in labels})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        pytest.param(
            lambda: stopped(slice(None), "LinUCB"),
            "all replications diverged",
            id="diverged everywhere",
        ),
        pytest.param(
            lambda: stopped(slice(0, 1), "LinUCB"),
            "2 of 3 replications",
            id="diverged in one",
        ),
        pytest.param(
            lambda: stopped(slice(None), "LinUCB", "Random"),
            "all replications diverged",
            id="all diverged",
        ),
        pytest.param(
            lambda: small_result("linucb", "random", replications=1),
            "1 replication,",
            id="one replication",
        ),
        pytest.param(lambda: small_result("beta_ts", "random"), "ridge model", id="no spectra"),
        pytest.param(lambda: partial("LinUCB"), "not started", id="an agent still waiting"),
        pytest.param(lambda: partial(), "not finished, at step 0", id="not started"),
        pytest.param(
            lambda: small_result("random", steps=1, replications=1), "1 steps", id="a single step"
        ),
    ],
)
def test_partial_and_diverged_results_have_a_report_and_tables(
    make: Callable[[], Result], message: str
) -> None:
    odd = make()
    page = Page(report(odd))
    assert message in " ".join(t for tag in page.texts for t in page.texts[tag])
    assert page.figures() == plain(board(odd))
    assert page.tags.count(("tr", {})) == 1 + len(odd.experiment.labels)
    text = " ".join(t for tag in ("td", "li", "p") for t in page.texts.get(tag, []))
    assert "nan" not in text.lower().split()
    back = pd.read_csv(io.StringIO(table_csv(odd)))
    pd.testing.assert_frame_equal(back, odd.table(), check_dtype=False, check_exact=True)
    assert len(pd.read_parquet(io.BytesIO(table_parquet(odd)))) == len(back)


def test_an_unfinished_run_has_a_summary_before_its_first_counts() -> None:
    """Counts are stored on a coarser grid than sums."""
    e = Experiment.model_validate(
        {"agents": [{"kind": "random"}], "steps": 20_000, "replications": 2}
    )
    whole = run(e.model_copy(update={"steps": 50}))
    (label,) = e.labels
    partial = History(e.steps, 2, 50)
    partial.load_state_dict(whole.histories[label].state_dict())
    assert partial.size > 1
    assert partial.count_size == 1
    under_way = Result(e, {label: partial})
    assert under_way.summary()["agents"][label]["entropy"] == {
        "mean": None,
        "low": None,
        "high": None,
    }
    assert under_way.summary()["agents"][label]["ctr"]["mean"] == metrics.click_rate(partial).mean()
    assert "not finished, at step 50" in report(under_way)
    assert "The run has not reached its end." in report(under_way)
