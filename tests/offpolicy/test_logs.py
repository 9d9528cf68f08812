"""Logs written and read back are equal.

Bad input is refused in one sentence that names the place.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bandits import read
from bandits.base.errors import UserError
from bandits.cli import main as cli
from bandits.offpolicy import (
    DecisionLog,
    evaluate,
    from_frame,
    read_log,
    reading,
    recording,
    write_dsjson,
    write_parquet,
)
from bandits.offpolicy.dsjson import lines, read_dsjson
from bandits.offpolicy.user_table import in_order, read_map, suggested_map
from bandits.results.export import parquet_of
from bandits.tables.problems import RowsError
from tests.offpolicy.support import full_log, simulate


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 1000),
    left_out=st.sets(
        st.sampled_from(
            [
                "kinds",
                "distributions",
                "features",
                "available",
                "segments",
                "event_ids",
                "times",
                "versions",
                "rows",
                "steps",
                "contexts",
            ]
        )
    ),
)
def test_a_log_written_and_read_back_is_equal(
    seed: int, left_out: set[str], tmp_path_factory: Any
) -> None:
    log = full_log(np.random.default_rng(seed), 12)
    changes: dict[str, Any] = dict.fromkeys(left_out)
    if "features" in left_out:
        changes["feature_names"] = ()
    log, folder = replace(log, **changes), tmp_path_factory.mktemp("log")
    write_parquet(log, folder / "a.parquet")
    write_dsjson(log, folder / "a.dsjson")
    assert read_log(folder / "a.parquet") == log
    assert read_log(folder / "a.dsjson") == log
    assert log != replace(log, rewards=log.rewards + 1)


def test_parquet_has_the_stated_columns_and_zstd(tmp_path: Path) -> None:
    log = full_log(np.random.default_rng(0))
    write_parquet(log, tmp_path / "a.parquet")
    file = pq.ParquetFile(tmp_path / "a.parquet")
    names = {
        "row",
        "step",
        "event_id",
        "segment",
        "context",
        "action",
        "position",
        "propensity",
        "propensity_kind",
        "reward",
        "version",
        "propensities",
    }
    assert names <= set(file.schema_arrow.names)
    assert file.metadata.row_group(0).column(0).compression == "ZSTD"
    many = simulate(np.random.default_rng(0), 20, 201).log
    write_parquet(many, tmp_path / "b.parquet")
    assert "propensities" not in pq.ParquetFile(tmp_path / "b.parquet").schema_arrow.names
    assert read_log(tmp_path / "b.parquet") == replace(many, distributions=None)


def test_a_changed_value_does_not_fit_the_checksum(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    write_parquet(full_log(np.random.default_rng(0)), path)
    table = pq.read_table(path)
    rewards = table.column("reward").to_pylist()
    place = table.column_names.index("reward")
    changed = table.set_column(place, "reward", [[rewards[0] + 1, *rewards[1:]]])
    pq.write_table(changed.replace_schema_metadata(table.schema.metadata), path)
    with pytest.raises(UserError, match="does not fit its checksum"):
        read_log(path)
    path.write_bytes(path.read_bytes()[:500])
    with pytest.raises(UserError, match="is not a Parquet file, or is damaged"):
        read_log(path)


def test_a_line_of_dsjson_has_the_fields_of_the_format() -> None:
    log = full_log(np.random.default_rng(0))
    first = next(lines(log))
    entry = json.loads(first)
    action, available = int(log.actions[0]), np.flatnonzero(np.asarray(log.available)[0])
    assert first.startswith('{"_label_cost": ')
    assert entry["_label_cost"] == -log.rewards[0]
    assert entry["_label_Action"] == entry["_labelIndex"] + 1 == entry["a"][0]
    assert entry["c"]["_multi"][entry["_labelIndex"]] == {"item": log.names[action]}
    assert len(entry["c"]["_multi"]) == len(available) == len(entry["a"])
    assert entry["_label_probability"] == entry["p"][0] == np.asarray(log.propensities)[0]
    assert sorted(entry["a"]) == list(range(1, len(available) + 1))
    assert sum(entry["p"]) == pytest.approx(1)
    assert (entry["Version"], entry["EventId"], entry["VWState"]) == ("1", "e0", {"m": "v0"})


FOREIGN = {
    "_label_cost": -1.0,
    "_label_probability": 0.75,
    "_label_Action": 2,
    "_labelIndex": 1,
    "Version": "1",
    "Timestamp": "2026-01-01T00:00:00Z",
    "EventId": "x",
    "a": [2, 1],
    "p": [0.75, 0.25],
    "VWState": {"m": "m1"},
    "c": {"User": {"age": 3, "city": "Rome"}, "_multi": [{"id": "news"}, {"id": "sport"}]},
}


def test_dsjson_of_another_writer_is_read() -> None:
    other = {
        **FOREIGN,
        "EventId": "y",
        "_label_cost": 0,
        "c": {**FOREIGN["c"], "User": {"age": 4}},
        "_skipLearn": False,
    }  # type: ignore[dict-item]
    skipped = {**FOREIGN, "EventId": "z", "_skipLearn": True}
    log = read_dsjson(json.dumps(entry) for entry in (FOREIGN, other, skipped))
    assert log.names == ("news", "sport")
    assert log.actions.tolist() == [1, 1]
    assert log.rewards.tolist() == [1, 0]
    assert np.asarray(log.distributions).tolist() == [[0.25, 0.75]] * 2
    assert log.feature_names == ("User.age", "User.city=Rome")
    assert np.asarray(log.features).tolist() == [[3, 1], [4, 0]]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"_label_cost": "x"}, "line 2, a value cannot be read"),
        ({"_label_cost": float("inf")}, "line 2, reward: must be a finite number; got -inf"),
        ({"_label_probability": 0}, "line 2, propensity: must be above 0 and at most 1; got 0"),
        ({"_label_Action": 3}, "line 2, _label_Action: must be between 1 and 2; got 3"),
        ({"_labelIndex": 0}, "line 2, _labelIndex: must be 1; got 0"),
        ({"a": [2, 3]}, "line 2, a: actions must be between 1 and 2"),
        ({"p": [0.75]}, "line 2, p: must have one probability for each different action"),
        (
            {"p": [0.75, 0.5]},
            "line 2, propensities: the probabilities must sum to 1; their sum is 1.25",
        ),
        (
            {"p": [0.5, 0.5]},
            "line 2, propensity: must be the entry of the logged action in propensities, 0.5; "
            "got 0.75",
        ),
        ({"EventId": "w"}, "line 2, event_id: must be unique; 'w' appears twice"),
        ({"c": {"_multi": []}}, "line 2, c._multi: must be a list of candidates"),
        ({"pdrop": 1}, "line 2, pdrop: must be at least 0 and below 1; got 1"),
        ({"pdrop": "x"}, "line 2, pdrop: must be at least 0 and below 1; got x"),
    ],
)
def test_bad_dsjson_is_refused(change: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UserError) as refused:
        read_dsjson([json.dumps({**FOREIGN, "EventId": "w"}), json.dumps({**FOREIGN, **change})])
    assert sentence in str(refused.value)


@pytest.mark.parametrize("text", ["{", "[1]", "3", '{"EventId": "x"}', "[" * 100_000])
def test_lines_that_are_no_decisions_are_refused(text: str) -> None:
    with pytest.raises(
        UserError, match=r"^line 1: (must be one JSON object|a reward without its decision)"
    ):
        read_dsjson([text])
    with pytest.raises(UserError, match=r"a log must have 1 to 2,000,000 rows; got 0"):
        read_dsjson(["\n"])


TABLE = {
    "action": ["a", "b", "a"],
    "reward": [1, 0, 1],
    "propensity": [0.5, 0.25, 1.0],
    "event_id": ["x", "y", "z"],
    "candidates": ["a|b", "a|b|c", "a"],
    "position": [1, 2, 1],
}


def table(**columns: list[Any]) -> pd.DataFrame:
    return pd.DataFrame({**TABLE, **columns})


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ({"propensity": [0.5, 0, 1]}, "row 3, propensity: must be above 0 and at most 1; got 0"),
        (
            {"propensity": [0.5, -0.1, 1]},
            "row 3, propensity: must be above 0 and at most 1; got -0.1",
        ),
        (
            {"propensity": [0.5, 1.1, 1]},
            "row 3, propensity: must be above 0 and at most 1; got 1.1",
        ),
        (
            {"propensity": [0.5, None, 1]},
            "row 3, propensity: must be above 0 and at most 1; it is missing",
        ),
        ({"propensity": ["0.5", "half", "1"]}, "row 3, propensity: must be a number; got 'half'"),
        ({"reward": ["1", "click", "0"]}, "row 3, reward: must be a number; got 'click'"),
        ({"reward": [1, 0, float("inf")]}, "row 4, reward: must be a finite number; got inf"),
        (
            {"action": ["a", "b", "c"]},
            "row 4, action: must be one of the candidates of its row; got c",
        ),
        ({"action": ["a", None, "a"]}, "row 3, action: is required; it is missing"),
        (
            {"event_id": ["x", "y", "x"]},
            "row 4, event_id: must be unique; 'x' appears twice at position 1",
        ),
        ({"position": [1, 1.5, 2]}, "row 3, position: must be a whole number; got 1.5"),
    ],
)
def test_bad_values_of_a_table_are_refused(
    columns: dict[str, Any], sentence: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.csv"
    table(**columns).to_csv(path, index=False)
    with pytest.raises(ValueError, match="row") as refused:
        read_log(path)
    assert str(refused.value) == re.sub(r"^row (\d),", r"row \1 (line \1 of the file),", sentence)


WRONG = "propensity: must be above 0 and at most 1; got 2"


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("item,propensity,reward\na,.5,1\nb,2,0\n", "row 3 (line 3 of the file)"),
        (
            "\ufeffitem,propensity,reward\r\n\r\na,.5,1\r\n  \r\nb,2,0\r\n\r\n",
            "row 5 (line 5 of the file)",
        ),
        ('item,propensity,reward\n"a\n\nx",.5,1\nb,2,0\n', "row 3 (the header is row 1)"),
        ('item,propensity,reward\n"a\nx",.5,1\nb,2,0\n', "row 3 (the header is row 1)"),
        ("item,propensity,reward\n,.5,1\nb,2,0\n", "row 2 (line 2 of the file)"),
        ("item,propensity,reward\n,,\nb,2,0\n", "row 3 (line 3 of the file)"),
    ],
)
def test_a_row_of_a_csv_file_is_named_as_an_editor_and_a_spreadsheet_do(
    text: str, place: str, tmp_path: Path
) -> None:
    (tmp_path / "a.csv").write_text(text, "utf-8")
    with pytest.raises(UserError) as refused:
        read_log(tmp_path / "a.csv", {"action": "item"})
    wrong = "action: is required; it is missing" if "\n,.5" in text else WRONG
    assert str(refused.value).split(" (and")[0] == f"{place}, {wrong}"


def test_rows_of_other_files_are_named_too(tmp_path: Path) -> None:
    pd.DataFrame({"action": ["a", "b"], "propensity": [0.5, 2.0], "reward": 1.0}).to_parquet(
        tmp_path / "a.parquet"
    )
    with pytest.raises(UserError) as refused:
        read_log(tmp_path / "a.parquet")
    assert str(refused.value) == f"row 2 of the table, {WRONG}"
    lines = [
        FOREIGN,
        {**FOREIGN, "_skipLearn": True},
        {**FOREIGN, "EventId": "y", "_label_probability": 2},
    ]
    (tmp_path / "a.dsjson").write_text("\n\n".join(map(json.dumps, lines)), "utf-8")
    with pytest.raises(UserError) as refused:
        read_log(tmp_path / "a.dsjson")
    assert str(refused.value) == f"line 5, {WRONG}"


def test_a_part_of_a_log_names_rows_as_the_file_does(tmp_path: Path) -> None:
    table(propensity=[0.5, 0.25, 0.125]).to_csv(tmp_path / "a.csv", index=False)
    part = read_log(tmp_path / "a.csv").select(np.array([False, False, True]))
    with pytest.raises(
        UserError, match=r"^row 4 \(line 4 of the file\), propensity: must be above 0"
    ):
        replace(part, propensities=np.zeros(1))
    bare = DecisionLog(actions=np.arange(3), rewards=np.ones(3), names=("a", "b", "c")).select(
        np.array([2])
    )
    with pytest.raises(UserError, match=r"^row 3, reward"):
        replace(bare, rewards=np.array([np.nan]))


@pytest.mark.parametrize(
    ("vectors", "sentence"),
    [
        (
            ["[0.5, 0.5]", "[0.5, 0.6]", "[1, 0]"],
            "row 2, propensities: the probabilities must sum to 1; their sum is 1.1",
        ),
        (
            ["[0.5, 0.5]", "[1.5, -0.5]", "[1, 0]"],
            "row 2, propensities: the probability of action 0 must be between 0",
        ),
        (
            ["[0.5, 0.5]", "[1]", "[1, 0]"],
            "row 2, propensities: must have 2 entries as the first row has; got 1",
        ),
        (["[0.5, 0.5]", "[a, 1]", "[1, 0]"], "row 2, propensities: entries must be numbers"),
        (
            ["[.5, .5]", "[.5, .6]", "[1, 0]"],
            "row 2, propensities: the probabilities must sum to 1; their sum is 1.1",
        ),
        (["[0.5, 0.5]", '["a", 1]', "[1, 0]"], "row 2, propensities: entries must be numbers"),
    ],
)
def test_bad_vectors_are_refused(vectors: list[str], sentence: str) -> None:
    frame = pd.DataFrame({"action": [0, 1, 0], "reward": 1.0, "propensities": vectors})
    with pytest.raises(UserError) as refused:
        from_frame(frame)
    assert sentence in str(refused.value)


@pytest.mark.parametrize(("actions", "row"), [(["a", 1], 1), ([1, 2], 2)])
def test_actions_beside_vectors_are_their_places(actions: list[Any], row: int) -> None:
    frame = pd.DataFrame({"action": actions, "reward": 1.0, "propensities": ["[0.5, 0.5]"] * 2})
    with pytest.raises(
        UserError, match=f"row {row}, action: must be its place in propensities, 0 to 1; got"
    ):
        from_frame(frame)


def test_a_table_is_read_by_its_mapping(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {
            "item_id": [10, 9, 10],
            "click": [1, 0, 0],
            "score": [0.5, 0.25, 0.5],
            "age": [30, 40, 50],
            "city": ["Rome", "Bonn", "Rome"],
            "pi": [0.1, 0.2, 0.3],
        }
    )
    mapping = read_map("action=item_id,reward=click,propensity=score,features=age|city")
    for name in ("a.csv", "a.parquet"):
        frame.to_csv(tmp_path / name, index=False) if name == "a.csv" else frame.to_parquet(
            tmp_path / name
        )
        log = read_log(tmp_path / name, mapping)
        assert log.names == ("9", "10")
        assert log.actions.tolist() == [1, 0, 1]
        assert log.feature_names == ("age", "city=Rome")
        assert np.asarray(log.features).tolist() == [[30, 1], [40, 0], [50, 1]]
        found = evaluate(log, "column:pi", estimators=["ips", "snips"])
        assert found.estimates["ips"].value == pytest.approx((0.1 / 0.5) / 3)
        assert found.as_dict()["unsupported_mass"] is None


DIALECT = "aktion,reward,propensity\nGröße M,1.79,0.5\nGröße M,0.6,0.5\nGröße S,0.87,0.5\n"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", DIALECT.encode()),
        ("a.csv", DIALECT.replace(",", ";").replace(".", ",").encode("cp1252")),
        ("a.csv", DIALECT.replace(",", "\t").encode("utf-16")),
        ("a.csv.gz", gzip.compress(DIALECT.encode(), mtime=0)),
    ],
)
def test_the_dialects_of_a_table_are_the_same_log(
    name: str, content: bytes, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(content)
    assert reading.column_names(tmp_path / name) == ["aktion", "reward", "propensity"]
    log = read_log(tmp_path / name, {"action": "aktion"})
    found = evaluate(log, "always:Größe M", estimators=["ips"]).estimates["ips"]
    assert found.value == pytest.approx((1.79 + 0.6) / 0.5 / 3)


def test_names_and_ids_are_texts(tmp_path: Path) -> None:
    ids = ["1234567890123456789", "", "1234567890123456788", "", "1", "01"]
    items = ["None", "NA", "00123", "1e5", "10e4", "123"]
    offered = "|".join([*items, "banner"])
    rows = "".join(
        f"{event},{item},1,0.5,{offered},NA\n" for event, item in zip(ids, items, strict=True)
    )
    (tmp_path / "a.csv").write_text(f"event_id,action,reward,propensity,candidates,segment\n{rows}")
    log = read_log(tmp_path / "a.csv")
    assert [log.names[a] for a in log.actions] == items
    assert log.names == tuple(sorted({*items, "banner"}))
    assert len(set(log.event_ids)) == 6  # type: ignore[arg-type]
    assert set(log.segments) == {"NA"}  # type: ignore[arg-type]
    assert evaluate(log, "always:1e5", estimators=["ips"]).estimates["ips"].value == pytest.approx(
        1 / 0.5 / 6
    )


def test_all_that_is_wrong_is_reported_at_once_and_can_be_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, header = tmp_path / "a.csv", "action,reward,propensity\n"
    good = "a,1,0.5\nb,0,0.5,\n" * 20
    path.write_text(header + "a,1,0.5,9\n" + good + "a,x,0.5\nb,1,0\n,1,0.5\nb,1\n")
    with pytest.raises(RowsError) as refused:
        read_log(path)
    assert refused.value.count == 5
    assert refused.value.sentences == [
        "row 2 has 4 cells, the header has 3",
        "row 46 has 2 cells, the header has 3",
        "row 43 (line 43 of the file), reward: must be a number; got 'x'",
        "row 45 (line 45 of the file), action: is required; it is missing",
        "row 44 (line 44 of the file), propensity: must be above 0 and at most 1; got 0",
    ]
    log = read_log(path, skip=True)
    (tmp_path / "good.csv").write_text(header + good)
    assert log == read_log(tmp_path / "good.csv")
    assert log.notes == (
        "5 rows of 45 left out, because they hold what is not allowed (first: row 2 has 4 cells, "
        "the header has 3).",
    )
    assert cli.main(["evaluate", str(path), "--target", "random"]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert sum(line.startswith("error: row ") for line in lines) == 5
    assert "--skip-rows leaves out these 5 rows" in lines
    assert cli.main(["evaluate", str(path), "--target", "random", "--skip-rows"]) == 0
    assert "note: 5 rows of 45 left out" in capsys.readouterr().out


def test_missing_rewards_are_left_out_or_count_as_stated(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("action,reward,propensity\n" + "a,1,0.5\nb,0,0.5\n" * 9 + "a,,0.5\nb,NA,0.5\n")
    log = read_log(path)
    assert (len(log), log.rewards.mean()) == (18, 0.5)
    assert log.notes == (
        "2 of 20 decisions left out, because the reward is missing (first: row 20 (line 20 of the "
        "file)).",
    )
    log = read_log(path, pending=0)
    assert (len(log), log.rewards.mean()) == (20, 0.45)
    assert log.notes[0].startswith("2 of 20 rewards missing; they count as 0 (first: row 20")
    lines = [{**FOREIGN, "EventId": "a"}, {**FOREIGN, "EventId": "b", "_label_cost": None}]
    found = read_dsjson(map(json.dumps, lines))
    assert len(found) == 1
    assert "1 of 2 decisions left out" in found.notes[0]
    path.write_text("action,reward,propensity\na,,0.5\nb,,0.5\n")
    with pytest.raises(UserError, match="reward: is required; it is missing in all rows"):
        read_log(path)


NAMES = st.one_of(
    st.sampled_from(
        [
            *("None", "NA", "nan", "007", "7", "1.0", "1", "1e5", "100000", "true", "True"),
            *(" x", "x ", "", '"', "'", "a|b", "[1]", '["a"]', "=1+1", "-5", "a,b", "a;b", "\t"),
            *("\n", "\r", "é\0", "1234567890123456789", "1234567890123456788", "\u2028", "{}"),
        ]
    ),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=6),
)


def in_order_of_names(log: DecisionLog) -> DecisionLog:
    """Number the actions of a log as a reader of tables does."""
    names = in_order(set(log.names))
    order = [log.names.index(name) for name in names]
    back = np.argsort(order)
    wide = {
        name: None if (each := getattr(log, name)) is None else each[:, order]
        for name in ("available", "distributions")
    }
    return replace(log, names=names, actions=back[log.actions], **wide)


@settings(max_examples=150, deadline=None)
@given(
    names=st.lists(NAMES.filter(bool), min_size=2, max_size=6, unique=True),
    texts=st.lists(NAMES, min_size=12, max_size=12),
    fixed=st.booleans(),
    vectors=st.booleans(),
    seed=st.integers(0, 100),
)
def test_what_is_exported_is_read_back_to_the_same_log(
    names: list[str],
    texts: list[str],
    fixed: bool,
    vectors: bool,
    seed: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Over hostile names, as CSV, Parquet and dsjson; a table takes an empty one for missing."""
    g, n, K = np.random.default_rng(seed), 12, len(names)
    available = np.ones((n, K), bool)
    if not fixed:
        available[::2, 0] = False
    p = g.random((n, K)) * available
    p /= p.sum(axis=1, keepdims=True)
    actions = np.array([g.choice(K, p=row) for row in p])
    array = np.array([*texts, None], object)[:-1]
    log = DecisionLog(
        actions=actions,
        rewards=g.normal(size=n),
        names=tuple(names),
        propensities=p[np.arange(n), actions],
        kinds=np.array(["exact"] * n, object),
        distributions=p if vectors else None,
        available=None if fixed else available,
        features=g.normal(size=(n, 2)),
        feature_names=("age, years", 'a"b'),
        segments=array,
        times=array,
        versions=array,
        event_ids=np.array([f"{i} {text}" for i, text in enumerate(texts)], object),
        rows=np.arange(n),
        steps=np.arange(n),
        contexts=np.arange(n),
        row_weights=g.random(n),
        columns={"pi": g.random(n)},
    )
    path = tmp_path_factory.mktemp("log") / "log.parquet"
    write_parquet(log, path)
    for ending in (".parquet", ".dsjson", ".csv"):
        other = path.with_suffix(ending)
        if other != path:
            reading.convert(path, other)
        columns = reading.column_names(other)
        back = read_log(other, None if columns is None else suggested_map(columns))
        if ending == ".csv":
            # columns have the order of the file
            assert back == in_order_of_names(log)
        else:
            assert back == log


def test_a_comma_in_the_name_of_a_column_belongs_to_it() -> None:
    assert read_map("action=item,reward=revenue, EUR,propensity=p, or so") == {
        "action": "item",
        "reward": "revenue, EUR",
        "propensity": "p, or so",
    }


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("action", "map: each part must be ROLE=COLUMN; got 'action'"),
        ("akt=x", "map: 'akt' is no role; allowed are action, reward"),
        ("action=a,action=b", "map: the role action appears twice"),
    ],
)
def test_bad_mappings_are_refused(text: str, sentence: str) -> None:
    with pytest.raises(UserError) as refused:
        read_map(text)
    assert sentence in str(refused.value)


def test_columns_that_are_missing_are_named() -> None:
    with pytest.raises(
        UserError, match=r"column 'action' is required; the table has x; name it by map"
    ):
        from_frame(pd.DataFrame({"x": [1]}))
    with pytest.raises(UserError, match=r"column 'y' for reward: the table has x"):
        from_frame(pd.DataFrame({"x": [1]}), {"reward": "y"})


def test_files_that_are_too_large_or_of_another_kind_are_refused(
    tmp_path: Path, monkeypatch: Any
) -> None:
    for name in ("a.csv", "a.parquet", "a.dsjson"):
        (tmp_path / name).write_bytes(b"\xff\x00{" * 10)
        with pytest.raises(UserError):
            read_log(tmp_path / name)
    (tmp_path / "a.txt").write_text("x")
    with pytest.raises(UserError, match=r"'a.txt': a log must end in .parquet, .csv"):
        read_log(tmp_path / "a.txt")
    with pytest.raises(FileNotFoundError):
        read_log(tmp_path / "b.csv")
    with pytest.raises(UserError, match="is no shipped log; known are open_bandit/bts/all"):
        read_log("open_bandit/bts/none")
    pd.DataFrame(TABLE).to_parquet(tmp_path / "c.parquet")
    monkeypatch.setattr(reading, "MAX_UNPACKED", 10)
    with pytest.raises(UserError, match=r"'c.parquet': must have at most 10.B unpacked; got"):
        read_log(tmp_path / "c.parquet")
    monkeypatch.setattr(reading, "MAX_BYTES", 10)
    with pytest.raises(UserError, match=r"'a.csv': a file must have at most 10.B; it has 30.B"):
        read_log(tmp_path / "a.csv")


def test_the_number_of_rows_is_bounded(monkeypatch: Any) -> None:
    monkeypatch.setattr("bandits.offpolicy.user_table.MAX_ROWS", 2)
    with pytest.raises(UserError, match="a log must have 1 to 2 rows; got 3"):
        from_frame(table())
    monkeypatch.setattr("bandits.offpolicy.dsjson.MAX_CELLS", 3)
    with pytest.raises(
        UserError, match="rows times actions must be at most 3; got 2 rows and 2 actions"
    ):
        read_dsjson([json.dumps({**FOREIGN, "EventId": str(i)}) for i in range(2)])
    monkeypatch.setattr("bandits.offpolicy.user_table.MAX_ROWS", 3)
    monkeypatch.setattr("bandits.offpolicy.user_table.MAX_CELLS", 8)
    with pytest.raises(UserError, match="candidates: rows times actions must be at most 8; got 9"):
        from_frame(table())
    monkeypatch.setattr("bandits.offpolicy.dsjson.MAX_ROWS", 1)
    with pytest.raises(UserError, match="a log must have 1 to 1 rows; got 2"):
        read_dsjson([json.dumps({**FOREIGN, "EventId": str(i)}) for i in range(2)])


def test_arrays_that_do_not_fit_are_refused() -> None:
    names, actions, rewards = ("a", "b"), np.array([0, 1]), np.array([0.0, 1.0])
    with pytest.raises(UserError, match="rewards: must have 2 rows as actions has; got 1"):
        DecisionLog(actions=actions, rewards=rewards[:1], names=names)
    with pytest.raises(
        UserError, match=r"available: must have the shape \(n, K\) = \(2, 2\); got \(2, 3\)"
    ):
        DecisionLog(actions=actions, rewards=rewards, names=names, available=np.ones((2, 3), bool))
    with pytest.raises(UserError, match="row 2, action: must be between 0 and 1; got 2"):
        DecisionLog(actions=actions * 2, rewards=rewards, names=names)
    with pytest.raises(UserError, match="row 1, age: must be a finite number; got nan"):
        DecisionLog(
            actions=actions,
            rewards=rewards,
            names=names,
            features=np.array([[np.nan], [1.0]]),
            feature_names=("age",),
        )


def paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    for key, part in (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    ):
        yield (*path, key)
        yield from paths(part, (*path, key))


VALUES = (
    None,
    True,
    -1,
    0,
    2.5,
    10**400,
    1e400,
    "x",
    [],
    [1],
    ["a"],
    {},
    {"a": 1},
    [[1]],
    [None],
    -(10**30),
    "9" * 5000,
)


@pytest.mark.filterwarnings("error::RuntimeWarning")
@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_a_damaged_dsjson_is_read_or_refused_in_one_sentence(data: Any) -> None:
    entries = [json.loads(line) for line in lines(full_log(np.random.default_rng(0), 3))]
    *above, last = data.draw(st.sampled_from(list(paths(entries))[1:]))
    if not above:
        return
    place = entries
    for key in above:
        place = place[key]
    if data.draw(st.booleans()):
        place[last] = data.draw(st.sampled_from(VALUES))
    else:
        del place[last]
    try:
        read_dsjson(json.dumps(entry) for entry in entries)
    except UserError as error:
        refused = str(error)
        assert len(refused.splitlines()) == 1


def test_a_log_that_is_too_long_for_a_text_is_refused(tmp_path: Path) -> None:
    rows = reading.MAX_TEXT_ROWS + 1
    # no log: reading it would fail
    (tmp_path / "a.parquet").write_bytes(parquet_of(pd.DataFrame({"reward": np.zeros(rows)})))
    with pytest.raises(
        UserError, match="may have 200,000 decisions; this one has 200,001: take Parquet"
    ):
        reading.convert(tmp_path / "a.parquet", tmp_path / "a.csv")


def test_cells_of_a_text_count_not_rows(tmp_path: Path) -> None:
    n, K = 20_001, 100
    log = DecisionLog(
        actions=np.zeros(n, np.int64),
        rewards=np.zeros(n),
        names=tuple(map(str, range(K))),
        propensities=np.full(n, 1 / K),
    )
    write_parquet(log, tmp_path / "a.parquet")
    with pytest.raises(UserError, match="may have 2,000,000 decisions times items and features"):
        reading.convert(tmp_path / "a.parquet", tmp_path / "a.dsjson")
    # the items are listed in one row alone
    reading.convert(tmp_path / "a.parquet", tmp_path / "a.csv")


@pytest.mark.parametrize("ending", [".csv", ".dsjson"])
def test_a_recorded_log_as_text_is_read_back(ending: str, tmp_path: Path) -> None:
    """What *What if?* recognises by itself: no mapping is given for what the header names."""
    log = recording.record(
        read(
            {
                "agents": [{"kind": "epsilon_greedy"}],
                "steps": 60,
                "replications": 2,
                "simulator": {
                    "kind": "petshop",
                    "n_products": 5,
                    "changes": [{"kind": "withdraw", "at": 20, "items": 1}],
                },
            }
        ),
        0,
    )
    write_parquet(log, tmp_path / "log.parquet")
    path = tmp_path / f"log{ending}"
    reading.convert(tmp_path / "log.parquet", path)
    columns = reading.column_names(path)
    back = read_log(path, None if columns is None else suggested_map(columns))
    if ending == ".dsjson":
        assert back == replace(log, experiment="", agent="")
    for name in ("actions", "rewards", "segments", "event_ids", "features", "available"):
        np.testing.assert_array_equal(getattr(back, name), getattr(log, name))
    np.testing.assert_allclose(back.propensities, log.propensities, rtol=1e-15)  # type: ignore[arg-type]
    np.testing.assert_allclose(back.distributions, log.distributions, rtol=1e-15)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "limit", "target"),
    [
        ("log.dsjson", 50_000, "'log.dsjson' takes"),
        ("log.csv", 20_000, "a log with 49 features takes"),
        ("log.csv", 100_000, "a model of rewards with 49 features on 60 rows takes"),
    ],
)
def test_what_takes_more_memory_than_there_is_is_refused_before(
    name: str,
    limit: float,
    target: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    rows = [(f"ab{i % 2}", i % 2, 0.5, f"user {i}") for i in range(60)]
    texts = {
        "log.csv": "action,reward,propensity,user\n"
        + "".join(f"{a},{r},{p},{u}\n" for a, r, p, u in rows),
        "log.dsjson": "".join(
            json.dumps(
                {
                    "_label_cost": -r,
                    "_label_probability": p,
                    "a": [r + 1, 2 - r],
                    "p": [p, 1 - p],
                    "c": {"user": u, "_multi": [{"id": "ab0"}, {"id": "ab1"}]},
                }
            )
            + "\n"
            for _, r, p, u in rows
        ),
    }
    (tmp_path / name).write_text(texts[name])
    command = ["evaluate", str(tmp_path / name), "--target", "always:ab1"]
    command += ["--map", "features=user"] if name == "log.csv" else []
    monkeypatch.setattr("bandits.base.memory.machine_memory", lambda: limit)
    assert cli.main(command) == 2
    refusal = capsys.readouterr().err
    assert refusal.startswith(f"error: {target}")
    assert "of memory" in refusal
    monkeypatch.setattr("bandits.base.memory.machine_memory", lambda: 1e9)
    assert cli.main(command) == 0
