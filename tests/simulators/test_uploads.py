"""An uploaded CSV becomes a data set, or is refused in one sentence."""

from __future__ import annotations

import csv
import io
import itertools
import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn import datasets

from bandits import UserError, read, run
from bandits.base.files import home
from bandits.cli.main import main
from bandits.experiments import presets
from bandits.results.figures import board as figures
from bandits.runtime.pool import Pool
from bandits.simulators import classification
from bandits.simulators.classification import SIZES, Classification
from bandits.simulators.datasets import csv_table, kept_files, uploads
from bandits.simulators.datasets.csv_table import MAX_CELL, MAX_COLUMNS, MAX_ROWS, Table, inspect
from bandits.simulators.datasets.wrong_rows import without_wrong_rows
from bandits.storage.run_store import Store
from bandits.tables.problems import RowsError
from tests.contract import worlds
from tests.gate import Gate
from tests.support import experiment, often, same, wait_for

ROOT = Path(__file__).parents[2]
SMALL = "age,city,bought\n30,Rome,yes\n40,Oslo,no\n50,Rome,yes\n60,Oslo,no\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Set an empty upload folder and empty caches for every test."""
    monkeypatch.setenv("BANDITS_HOME", str(tmp_path))
    classification.load.cache_clear()
    yield tmp_path / "data"
    classification.load.cache_clear()


def to_csv(names: list[str], rows: list[list[Any]], **options: Any) -> bytes:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n", **options).writerows([names, *rows])
    return out.getvalue().encode()


def of_scikit_learn(name: str, *, named_classes: bool) -> bytes:
    """Return a data set as CSV: exact numbers, classes as names or as numbers."""
    bunch = getattr(datasets, f"load_{name}")()
    answers = [bunch.target_names[y] if named_classes else int(y) for y in bunch.target]
    names = [f"x{i}" for i in range(bunch.data.shape[1])]
    return to_csv(
        [*names, "answer"],
        [[*map(repr, x), y] for x, y in zip(bunch.data.tolist(), answers, strict=True)],
    )


def upload(
    text: str | bytes, target: str | None = None, title: str = "Mine", leave_out: Any = ()
) -> str:
    table = inspect(text if isinstance(text, bytes) else text.encode())
    return uploads.save_dataset(
        table, target=target or table.suggested_target(), leave_out=leave_out, title=title
    )


def sentence(caught: pytest.ExceptionInfo[UserError]) -> str:
    message = str(caught.value)
    assert message.isprintable()  # one line
    assert 0 < len(message) <= 400
    return message


def refused(text: str | bytes, target: str | None = None, **more: Any) -> str:
    with pytest.raises(UserError) as caught:
        upload(text, target, **more)
    return sentence(caught)


def experiment_on(data: str, **changes: Any) -> dict[str, Any]:
    agents = [
        {"kind": "linucb"},
        {"kind": "lints", "sharing": "shared"},
        {"kind": "static_mlp", "interactions": 1000},
    ]
    simulator = {"kind": "classification", "data": data}
    return {"simulator": simulator, "agents": agents, "steps": 400, "replications": 3, **changes}


# equality with built-in data


@pytest.mark.slow
def test_runs_on_uploaded_and_built_in_wine_are_bit_identical() -> None:
    name = upload(of_scikit_learn("wine", named_classes=True), "answer")
    uploaded, built_in = run(read(experiment_on(name))), run(read(experiment_on("wine")))
    assert uploaded.experiment.hash != built_in.experiment.hash
    for label, history in built_in.histories.items():
        same(uploaded.histories[label], history)


def test_logs_and_pre_training_equal_those_of_the_built_in_data() -> None:
    name = upload(of_scikit_learn("wine", named_classes=True), "answer")
    logs = [
        Classification(Classification.Params(data=data), worlds.Streams(3, (0,))).log(0, 500)
        for data in (name, "wine")
    ]
    assert all(np.array_equal(a, b) for a, b in zip(*logs, strict=True))


@pytest.mark.parametrize("data", ["wine", "digits", "breast_cancer"])
def test_numeric_classes_are_numbered_in_ascending_order(data: str) -> None:
    own, theirs = (
        classification.load(n)
        for n in (upload(of_scikit_learn(data, named_classes=False), "answer"), data)
    )
    assert np.array_equal(own.features, theirs.features)
    assert np.array_equal(own.labels, theirs.labels)
    assert own.classes == tuple(map(str, range(SIZES[data][2])))


# reading


def test_columns_are_typed_counted_and_described() -> None:
    table = inspect(
        b"id,size,colour,empty,n,kind\na1, 1.5 ,red,,1,x\na2,?, red ,NA,2,y\na3,-2e1,,nan,3,x\na4,0,blue,,4,y\n"  # noqa: E501
    )
    actual = {c.name: (c.kind, c.example, c.missing, c.distinct, c.problem) for c in table.columns}
    assert actual == {
        "id": ("category", "a1", 0, 4, ""),
        "size": ("number", "1.5", 1, 3, ""),
        "colour": ("category", "red", 1, 2, ""),
        "empty": ("number", "", 4, 0, ""),
        "n": ("number", "1", 0, 4, ""),
        "kind": ("category", "x", 0, 2, ""),
    }
    assert table.rows == (2, 3, 4, 5)
    assert table.column("colour").values == ("red", "red", "?", "blue")
    np.testing.assert_array_equal(table.column("size").values, [1.5, np.nan, -20, 0])


@pytest.mark.parametrize(
    "text",
    [
        "\ufeff" + SMALL,
        SMALL.replace(",", ";"),
        SMALL.replace(",", "\t"),
        SMALL.replace("\n", "\r\n"),
        SMALL.replace("\n", "\r"),
        SMALL.rstrip("\n"),
        "\n" + SMALL.replace("\n", "\n\n,,\n") + "\n\n",
        '"age","city","bought"\n"30","Rome","yes"\n40,Oslo,no\n 50 , Rome\t,yes\n60.0,Oslo,"no"\n',
    ],
)
def test_equal_tables_in_different_formats_are_the_same_data(text: str) -> None:
    assert upload(text, "bought") == upload(SMALL, "bought")
    assert len(uploads.listing()) == 1


def test_decimal_commas_with_semicolon_separators() -> None:
    table = inspect(b"a;b;c\n1,5;1.5;x\n-0,25;2;y\n,5;3e2;x\n1.000,5;1;y\n")
    assert [c.kind for c in table.columns] == ["number", "number", "category"]
    np.testing.assert_array_equal(table.column("a").values, [1.5, -0.25, 0.5, 1000.5])
    table = inspect(b"a;b\n1,5;x\n-0,25;y\n")
    np.testing.assert_array_equal(table.column("a").values, [1.5, -0.25])
    table = inspect(b'a,b\n"1,5",x\n"2,5",y\n')
    np.testing.assert_array_equal(table.column("a").values, [1.5, 2.5])


def test_digits_that_a_number_would_not_keep_are_texts() -> None:
    table = inspect(b"zip,id,large,n\n007,1234567890123456789,1700000000000000000,7\n7,12,5,0\n")
    assert table.column("zip").values == ("007", "7")
    assert table.column("id").values == ("1234567890123456789", "12")
    assert table.column("large").texts() == ("1700000000000000000", "5")
    assert [c.kind for c in table.columns] == ["category", "category", "number", "number"]


def test_money_in_a_german_table_is_a_number() -> None:
    table = inspect(b"pay;class\n63.390,45;a\n1.234,50;b\n980,00;a\n")
    np.testing.assert_array_equal(table.column("pay").values, [63390.45, 1234.5, 980])


def test_all_wrong_rows_are_named_at_once_and_can_be_left_out() -> None:
    good = "1.234,5;x\n3,5;y\n2,5;x\n" * 10
    table = inspect(f"pay;class\n1;x;z\nunknown;x\n5;\n{good}8\n".encode())
    with pytest.raises(RowsError) as caught:
        uploads.save_dataset(table, target="class", title="Mine")
    assert caught.value.sentences == [
        "row 2 has 3 cells, the header has 2",
        "row 35 has 1 cell, the header has 2",
        "row 3, column 'pay': 'unknown' is not a number, unlike the rest of the column: repair it, "
        "or leave the column out",
        "row 4, target column 'class': is empty; every example needs its class",
    ]
    assert str(caught.value).endswith("the header has 2 (and 3 further rows)")
    rest, said = without_wrong_rows(table, target="class")
    assert said.startswith("4 rows of 34 left out, because they hold what is not allowed (first: ")
    assert rest.rows == tuple(range(5, 35))
    assert rest.column("pay").kind == "number"
    np.testing.assert_array_equal(rest.column("pay").values, [1234.5, 3.5, 2.5] * 10)
    uploads.save_dataset(rest, target="class", title="Mine")
    # nothing is wrong in a column that is left out
    kept, _ = without_wrong_rows(table, target="class", leave_out=["pay"])
    assert len(kept.rows) == 31
    assert without_wrong_rows(rest, target="class") == (rest, "")
    with pytest.raises(UserError, match="all rows are wrong; row 2, target column 'b'"):
        without_wrong_rows(inspect(b"a,b\n1,\n2,\n"), target="b")


def test_columns_of_dates_are_known() -> None:
    table = inspect(b"a;b;c;d\n2024-01-31;31.1.2024 12:30;12:30;1.5\n2024-02-01;01/02/24;x;2.5\n")
    assert [c.dates for c in table.columns] == [True, True, False, False]


def test_row_numbers_equal_those_of_a_spreadsheet() -> None:
    text = 'note,kind\n"two\nlines",x\n\nplain,y\n,\nplain,x,more\n'
    assert refused(text) == "row 6 has 3 cells, the header has 2"


def test_suggested_targets() -> None:
    rows = [
        [f"C-{i}", i + 1, i % 7, ["Rome", "Oslo"][i % 2], ["yes", "no"][i % 3 == 0], i / 3]
        for i in range(40)
    ]
    table = inspect(to_csv(["customer", "row", "weekday", "city", "stayed", "spent"], rows))
    # the last column that can be a target: amounts cannot
    assert table.suggested_target() == "stayed"
    assert table.suggested_omissions("stayed") == ["customer", "row"]
    assert table.classes("stayed") == {"no": 14, "yes": 26}
    assert list(table.classes("weekday")) == list("0123456")
    # a class that is missing can be left out, and dates are no classes
    gap = inspect(
        ("size,bought,day\n" + "1,y,2024-01-01\n2,n,2024-01-02\n" * 9 + "2,,2024-01-01\n").encode()
    )
    assert gap.suggested_target() == "bought"
    hopeless = inspect(b"a,b\nx,y\n")
    assert hopeless.suggested_target() == "b"
    assert hopeless.suggested_omissions("b") == []


def test_the_sample_data_set_is_read() -> None:
    table = inspect(csv_table.sample())
    assert [c.name for c in table.columns] == [
        "sepal length",
        "sepal width",
        "petal length",
        "petal width",
        "species",
    ]
    assert table.classes(table.suggested_target()) == {
        "setosa": 50,
        "versicolor": 50,
        "virginica": 50,
    }
    assert table.suggested_omissions("species") == []


@pytest.mark.slow
def test_an_agent_learns_on_the_sample_data_set() -> None:
    table = inspect(csv_table.sample())
    result = run(presets.on_data(uploads.save_dataset(table, target="species", title="iris")))
    learned = result.summary()["agents"]["LinUCB"]["oracle_share"]
    # better than chance, with 95 % confidence
    assert learned["low"] > 0


def test_curves_of_a_run_are_drawn_when_its_data_are_gone() -> None:
    name = uploads.save_dataset(inspect(csv_table.sample()), target="species", title="iris")
    result = run(
        read(
            {
                "simulator": {"kind": "classification", "data": name},
                "steps": 40,
                "replications": 2,
                "agents": [{"kind": "random"}],
            }
        )
    )
    history = result.histories["Random"]
    before = figures.drawn_rate(result.experiment, history, 10)
    uploads.delete(name)
    after = figures.drawn_rate(result.experiment, history, 10)
    assert np.array_equal(after.mid, before.mid)
    assert np.array_equal(np.clip(after.low, 0, 1), before.low)


def test_encoding_follows_the_published_protocol() -> None:
    """Missing values are -1, categories their alphabetical rank, rows divided by their norm.

    Zero rows stay zero.
    """
    text = "a,b,kind\n3,zebra,x\n,ant,x\n0,ant,y\n4,?,y\n"
    data = classification.load(upload(text), "norm")
    norms = np.array([[np.sqrt(10)], [1], [1], [np.sqrt(17)]])
    np.testing.assert_array_equal(
        data.features, np.array([[3, 1], [-1, 0], [0, 0], [4, -1]]) / norms
    )
    assert data.labels.tolist() == [0, 0, 1, 1]
    assert data.classes == ("x", "y")


# refusals

WIDE = ",".join(f"c{i}" for i in range(MAX_COLUMNS + 1)).encode()
GOOD = "".join(f"{i},{'xy'[i % 2]}\n" for i in range(9))


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"", "the file is empty"),
        (b"\xef\xbb\xbf \r\n\n", "the file is empty"),
        (b"a,b\n1,x\n2,\xe9\n", "the file is not text in UTF-8 (line 3): save it as CSV (UTF-8)"),
        (
            "a,b\n1,x\n".encode("utf-16"),
            "the file is text in UTF-16, not a CSV: save it as CSV (UTF-8) first",
        ),
        (
            b"PK\x03\x04rest",
            "the file is an Excel or zip file, not a CSV: save it as CSV (UTF-8) first",
        ),
        (
            b"\xd0\xcf\x11\xe0\xa1",
            "the file is an old Excel file, not a CSV: save it as CSV (UTF-8) first",
        ),
        (b"%PDF-1.7\n", "the file is a PDF, not a CSV: save it as CSV (UTF-8) first"),
        (b"a,b\n1,\0\n", "line 2 holds a NUL byte: the file is not a CSV in UTF-8"),
        (b"x" * (5 * 2**20 + 1), "the file has 5.0 MB; at most 5 MB are allowed"),
        (b"a,b\n", "the table has a header and no rows below it"),
        (
            b"a\n1\n2\n",
            "the header has one column; commas, semicolons or tabs must separate at least two",
        ),
        (b"a,,c\n1,2,3\n", "row 1, column 2: the header is empty; every column needs a name"),
        (b",,\n1,2,3\n", "row 1, column 1: the header is empty; every column needs a name"),
        (b"\n\na, a \n1,2\n", "row 3: columns 1 and 2 are both named 'a'"),
        (
            b"a," + b"n" * 101 + b"\n1,2\n",
            "row 1, column 2: the name has 101 characters; at most 100 are allowed",
        ),
        (WIDE + b'\n"', "the header has 101 columns; at most 100 are allowed"),
        (
            b"a,b\n" + b"1,x\n" * (MAX_ROWS + 1),
            "the table has more than 200,000 rows below its header, the maximum",
        ),
        (b"a,b,c,d\n" + b"1,2,3,x\n" * 15 + b"1,2,3,4,x\n", "row 17 has 5 cells, the header has 4"),
        (b"a,b\n1,x\n2\n", "row 3 has 1 cell, the header has 2"),
        (b'a,b\n1,x\n2,"y\n3,x\n', "row 3 opens a quotation mark that is never closed"),
        (b'a;b\n1;"x\n', "row 2 opens a quotation mark that is never closed"),
        (
            b'a,b\n1,"x"y\n',
            "row 2 has text after a closing quotation mark; a quotation mark inside quotes is "
            "written twice",
        ),
        (
            b'a,b\n1,"' + b"x\n" * 100_000,
            "row 2 has a cell of more than 1,000 characters; perhaps a quotation mark is "
            "never closed",
        ),
        (
            b"a,b\n1,x\n2," + b"y" * (MAX_CELL + 1),
            "row 3, column 'b': the cell has 1,001 characters; at most 1,000 are allowed",
        ),
        (
            ("age,b\n" + GOOD + "abc,x\n").encode(),
            "row 11, column 'age': 'abc' is not a number, unlike the rest of "
            "the column: repair it, or leave the column out",
        ),
        (
            ("age,b\n" + GOOD + "1e999,x\n").encode(),
            "row 11, column 'age': '1e999' is out of range; numbers must lie "
            "between -1e+100 and 1e+100: repair it, or leave the column out",
        ),
        (
            ("age,b\n" + GOOD + "-inf,x\n").encode(),
            "row 11, column 'age': '-inf' is out of range; numbers must lie "
            "between -1e+100 and 1e+100: repair it, or leave the column out",
        ),
        (
            b"a,b\n1,x\n2,\n3,y\n",
            "row 3, target column 'b': is empty; every example needs its class",
        ),
        (
            b"a,b\n1,x\n2,x\n",
            "column 'b' cannot be the target: it has only one value; 2 to 50 classes are needed",
        ),
        (
            ("a,b\n" + "".join(f"1,k{i}\n" * 3 for i in range(51))).encode(),
            "column 'b' cannot be the target: it has "
            "51 different values; at most 50 classes are allowed",
        ),
        (
            ("a,b\n" + "".join(f"1,{i / 8}\n" * 3 for i in range(13))).encode(),
            "column 'b' cannot be the target: it has "
            "13 different numbers with fractions, which are measurements, not classes",
        ),
        (
            b"a,b\n1,x\n2,y\n3,z\n",
            "column 'b' cannot be the target: it has 3 different values in 3 rows; a class needs "
            "two rows on average",
        ),
    ],
    ids=itertools.count(),
)
def test_refusals(raw: bytes, message: str) -> None:
    assert refused(raw, "b") == message
    assert uploads.listing() == []


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"target": "sex"}, "there is no column 'sex'; there are age, city, bought"),
        ({"leave_out": ["sex"]}, "there is no column 'sex'; there are age, city, bought"),
        ({"leave_out": ["bought"]}, "the target column 'bought' cannot be left out"),
        (
            {"leave_out": ["age", "city"]},
            "no column is left for the features; at least one feature column is needed",
        ),
        (
            {"title": ""},
            "the name is ''; it must be a text of 1 to 40 letters, digits, spaces, points, "
            "dashes or underscores",
        ),
        (
            {"title": "<b>"},
            "the name is '<b>'; it must be a text of 1 to 40 letters, digits, spaces, points, "
            "dashes or underscores",
        ),
        (
            {"title": "x" * 41},
            f"the name is '{'x' * 41}'; it must be a text of 1 to 40 letters, digits, spaces, "
            "points, dashes or underscores",
        ),
    ],
)
def test_invalid_choices_are_refused(changes: dict[str, Any], message: str) -> None:
    assert refused(SMALL, **{"target": "bought", **changes}) == message
    assert uploads.listing() == []


def test_a_column_with_mistakes_can_be_left_out_or_be_the_target() -> None:
    text = "age,b\n" + GOOD + "abc,x\n"
    assert uploads.find(
        upload(text.replace("\n", ",1\n").replace("b,1", "b,c", 1), "b", leave_out=["age"])
    )
    grades = "points,grade\n" + "".join(f"{i},{i % 3}\n" for i in range(30)) + "1,failed\n"
    assert inspect(grades.encode()).column("grade").kind == "mixed"
    assert classification.load(upload(grades, "grade")).classes == ("0", "1", "2", "failed")


def test_markup_and_formulas_are_text() -> None:
    nasty = ["=cmd()", "<img src=x>", "[a](http://b)", "../../x", "`$x$`"]
    text = to_csv(["n", "<script>"], [[i, nasty[i % 5]] for i in range(20)])
    assert classification.load(upload(text, "<script>")).classes == tuple(sorted(nasty))


# arbitrary input

cell = st.one_of(
    st.text(max_size=6),
    st.sampled_from(
        [
            "",
            "?",
            "NA",
            "inf",
            "1e999",
            "0",
            "1",
            "2.5",
            "-3",
            "1,5",
            "x",
            "y",
            '"',
            '""',
            "a b",
            "\u202e",
            "=1+1",
            "٣",
        ]
    ),
)


@st.composite
def csv_like(draw: st.DrawFn) -> bytes:
    """Generate tables, sometimes with extra cells, stray quotes, other line ends or truncation."""
    width = draw(st.integers(1, 4))
    names = draw(
        st.one_of(
            st.just([f"c{i}" for i in range(width)]), st.lists(cell, min_size=width, max_size=width)
        )
    )
    kinds = [
        draw(st.sampled_from([st.integers(-5, 5), st.floats(), st.sampled_from("xyz"), cell]))
        for _ in names
    ]
    n = draw(st.integers(0, 25))
    rows = [[draw(kind) for kind in kinds] for _ in range(n)]
    out = io.StringIO()
    end = draw(st.sampled_from(["\n", "\r\n", "\r"]))
    csv.writer(out, delimiter=draw(st.sampled_from(",;\t")), lineterminator=end).writerows(
        [names, *rows]
    )
    raw = draw(st.sampled_from(["", "\ufeff"])).encode() + out.getvalue().encode(
        "utf-8", "surrogatepass"
    )
    for _ in range(draw(st.sampled_from([0, 0, 0, 1, 3]))):
        at = draw(st.integers(0, len(raw)))
        junk = draw(
            st.one_of(
                st.sampled_from([b'"', b",", b";", b"\n", b"\r", b"\0", b"\xff"]),
                st.binary(max_size=3),
            )
        )
        raw = raw[:at] + junk + raw[at:]
    return raw


def one_sentence(message: str) -> bool:
    """Check that a message is one sentence; returns False."""
    assert message.isprintable()
    assert 0 < len(message) <= 400
    return False


def survives(raw: bytes) -> bool:
    """Check that bytes are a table or refused in one sentence, and the table likewise a
    data set.
    """
    try:
        table = inspect(raw)
    except UserError as refusal:
        return one_sentence(str(refusal))
    assert isinstance(table, Table)
    assert len({c.name for c in table.columns}) == len(table.columns) >= 2
    assert all(len(c.values) == len(table.rows) > 0 for c in table.columns)
    target = table.suggested_target()
    try:
        name = uploads.save_dataset(
            table, target=target, leave_out=table.suggested_omissions(target), title="Any"
        )
    except UserError as refusal:
        return one_sentence(str(refusal))
    data, kept = classification.load(name), uploads.find(name)
    assert kept is not None
    assert (*data.features.shape, len(data.classes)) == (kept.rows, kept.features, kept.classes)
    assert np.isfinite(data.features).all()
    assert set(data.labels.tolist()) == set(range(kept.classes))
    uploads.delete(name)
    return True


relaxed = settings(
    max_examples=often(150, 400),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


@relaxed
@given(
    st.one_of(
        st.binary(max_size=200),
        st.text(max_size=200).map(lambda t: t.encode("utf-8", "surrogatepass")),
    )
)
def test_any_bytes_are_valid_or_refused_in_one_sentence(raw: bytes) -> None:
    survives(raw)


@relaxed
@given(csv_like())
def test_generated_tables_are_valid_or_refused_in_one_sentence(raw: bytes) -> None:
    survives(raw)


def test_damaged_tables_are_valid_or_refused_in_one_sentence() -> None:
    """Change, insert, repeat and delete bytes of a valid file."""
    rng = random.Random(1)
    whole, kept = csv_table.sample()[:1500], 0
    for _ in range(300):
        raw = bytearray(whole)
        for _ in range(rng.randint(1, 3)):
            at = rng.randrange(len(raw))
            raw[at : at + rng.randint(0, 3)] = bytes(
                rng.choices(b',;"\n\r\t x1.\0\xff', k=rng.randint(0, 3))
            )
        kept += survives(bytes(raw))
    # otherwise little would be tested
    assert 0 < kept < 300


# storage


def test_metadata_are_read_without_loading_the_data(folder: Path) -> None:
    name = upload(SMALL, "bought", "Käufer 2.csv", leave_out=["city"])
    (kept,) = uploads.listing()
    assert kept == uploads.find(name)
    assert kept[:-1] == (name, "Käufer 2.csv", "bought", 4, 1, 2)
    assert name == f"kaufer-2-csv-{kept.content[:12]}"
    # one file, no temporary file
    assert [p.name for p in folder.iterdir()] == [f"{name}.parquet"]
    frame = uploads.load(name)
    assert list(frame.columns) == ["age", "bought"]
    assert frame["bought"].tolist() == ["yes", "no", "yes", "no"]
    # one column and a constant, for each of two classes
    assert Classification.describe(Classification.Params(data=name)).n_features == 4
    assert (
        Classification.attribution(Classification.Params(data=name))
        == f"{name}, uploaded as a CSV of 4 examples"
    )
    assert not Classification.portable(Classification.Params(data=name))
    assert Classification.portable(Classification.Params(data="wine"))


def test_the_name_depends_on_content_and_selected_columns() -> None:
    names = [
        upload(SMALL, "bought"),
        upload(SMALL, "city"),
        upload(SMALL, "bought", leave_out=["age"]),
        upload(SMALL.replace("30", "31"), "bought"),
        upload(SMALL.replace("age", "years"), "bought"),
        upload(SMALL, "bought", "Yours"),
    ]
    assert len(set(names)) == len(names)
    assert names[-1][-12:] == names[0][-12:]
    assert upload(SMALL, "bought") == names[0]
    assert all(uploads.find(n) for n in names)
    for title, slug in (
        ("日本", "data"),
        ("--", "data"),
        ("ß. _x_ " * 5, "x-x-x-x-x"),
        ("ﬃ" * 40, "ffi" * 13 + "f"),
    ):
        assert upload(SMALL, "bought", title) == f"{slug}-{names[0][-12:]}"


@pytest.mark.parametrize(
    ("file", "title"),
    [
        ("iris.csv", "iris"),
        ("Umsatz (1).CSV", "Umsatz 1"),
        ("../a<b>.csv", ".. a b"),
        ("#.csv", "My data"),
        ("a" * 90 + ".csv", "a" * 40),
        (".csv", ".csv"),
        ("", "My data"),
    ],
)
def test_titles_are_derived_from_file_names(file: str, title: str) -> None:
    assert uploads.title_from(file) == title
    assert uploads.TITLE.fullmatch(title)


@pytest.mark.parametrize(
    "name",
    [
        "x-123",
        "",
        "..",
        "../data",
        "../../etc/passwd",
        "mine-0123456789ab",
        "a" * 61,
        "Magic",
        "magic ",
        "é",
        "\n",
        None,
        3,
    ],
)
def test_unknown_data_are_refused_wherever_they_are_named(name: Any) -> None:
    known = upload(SMALL, "bought")
    with pytest.raises(UserError) as caught:
        read(experiment_on(name))
    assert all(word in sentence(caught) for word in ("magic", "breast_cancer", known))
    if name in ("x-123", "mine-0123456789ab"):
        assert sentence(caught).startswith(
            f"data '{name}' is not stored here: upload the CSV again on the page Data; known are "
            "magic, adult, "
        )
    uploads.delete(str(name))
    assert [k.id for k in uploads.listing()] == [known]


def test_the_command_line_runs_uploaded_data_and_refuses_unknown_data(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    name = upload(SMALL, "bought")
    file = tmp_path / "race.json"
    file.write_text(json.dumps(experiment_on(name, agents=[{"kind": "linucb"}], steps=20)))
    assert main(["run", str(file)]) == 0
    assert "LinUCB" in capsys.readouterr().out
    assert main(["list"]) == 0
    assert (
        f'data = "magic"  (one of magic, adult, digits, wine, breast_cancer, {name})'
        in capsys.readouterr().out
    )
    assert main(["run", str(file), "--set", "simulator.data=gone-0123456789ab"]) == 2
    assert capsys.readouterr().err.startswith(
        "error: data 'gone-0123456789ab' is not stored here: upload the CSV"
    )
    (home() / "data" / f"{name}.parquet").write_bytes(b"PAR1 but no more")
    assert main(["run", str(file)]) == 2
    assert capsys.readouterr().err == (
        f"error: the file of data '{name}' is damaged: upload the CSV again on the page Data\n"
    )


def test_uploaded_data_sets_are_choices() -> None:
    assert list(Classification.Params.choices("data") or ()) == list(SIZES)
    assert Classification.Params.choices("encoding") is None
    first, second = upload(SMALL, "bought"), upload(SMALL, "city")
    actual = Classification.Params.choices("data")
    assert actual is not None
    # two of the same title
    assert actual[first] == f"Mine {first[-4:]} (uploaded)"
    uploads.delete(first)
    actual = Classification.Params.choices("data")
    assert actual is not None
    assert actual[second] == "Mine (uploaded)"


def test_tampered_files_are_refused(folder: Path) -> None:
    name = upload(SMALL, "bought")
    path = folder / f"{name}.parquet"
    whole, table = path.read_bytes(), pq.ParquetFile(path).read()
    facts = json.loads(table.schema.metadata[b"bandit-playground"])
    # without it the facts themselves are judged, as in the first files
    checksum = facts.pop("checksum")
    damaged = f"the file of data '{name}' is damaged: upload the CSV again on the page Data"

    def rewrite(data: pa.Table, **changes: Any) -> None:
        metadata = {b"bandit-playground": json.dumps({**facts, **changes})}
        pq.write_table(data.replace_schema_metadata(metadata), path)

    def refusal() -> str:
        with pytest.raises(UserError) as caught:
            classification.load(name)
        return sentence(caught)

    ages = table.set_column(0, "age", pa.array([30.0, 40, 50, 61]))
    for change in (
        lambda: rewrite(ages),
        lambda: rewrite(table.rename_columns(["years", "city", "bought"])),
        lambda: rewrite(table.select(["age", "bought", "city"])),
        lambda: rewrite(table.slice(0, 3)),
        lambda: rewrite(table, rows=5),
        lambda: rewrite(table, features=10**9),
        lambda: rewrite(table, classes="2"),
        lambda: rewrite(table, title="<b>"),
        lambda: rewrite(table, title="Yours", checksum=checksum),
        lambda: rewrite(table, content="0" * 64),
        lambda: rewrite(table, more=1),
        lambda: path.write_bytes(whole[:-10]),
        lambda: path.write_bytes(b""),
    ):
        change()
        assert refusal() == damaged
    other = upload(SMALL, "city")
    # the file of another data set under this name
    shutil.copy(folder / f"{other}.parquet", path)
    assert refusal() == damaged
    assert [k.id for k in uploads.listing()] == [other]
    # uploading it again repairs it
    assert upload(SMALL, "bought") == name
    assert classification.load(name).classes == ("no", "yes")


@pytest.mark.slow
def test_two_processes_save_the_same_file_concurrently(tmp_path: Path) -> None:
    (tmp_path / "wine.csv").write_bytes(of_scikit_learn("wine", named_classes=True))
    code = (
        "import sys; from pathlib import Path; from bandits.simulators.datasets import csv_table, "
        "uploads\ntable = csv_table.inspect(Path(sys.argv[1]).read_bytes()); print('ready', "
        "flush=True); input()\nfor _ in range(20): name = uploads.save_dataset(table, "
        "target='answer', title='wine'); uploads.load(name)\nprint(name)"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    both = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path / "wine.csv")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            text=True,
        )
        for _ in range(2)
    ]
    for process in both:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in both:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    names = {process.communicate(timeout=120)[0].strip() for process in both}
    assert [process.returncode for process in both] == [0, 0]
    assert names == {upload(of_scikit_learn("wine", named_classes=True), "answer", "wine")}
    assert len(list((tmp_path / "data").iterdir())) == 1


def test_a_full_disk_and_too_many_data_sets_are_reported(
    monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    def full(path: Path, data: bytes) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(kept_files, "atomic_write", full)
        assert (
            refused(SMALL, "bought")
            == "the data could not be written to disk: No space left on device"
        )
    monkeypatch.setattr(uploads, "MAX_SETS", 1)
    name = upload(SMALL, "bought")
    assert refused(SMALL, "city") == "at most 1 data sets can be stored; delete one first"
    assert upload(SMALL, "bought") == name


def test_wide_data_are_refused_by_estimate() -> None:
    names = [*(f"x{i}" for i in range(99)), "kind"]
    name = upload(to_csv(names, [[*range(99), f"k{i % 50}"] for i in range(100)]))
    with pytest.raises(UserError) as caught:
        read(experiment_on(name, agents=[{"kind": "linucb", "sharing": "shared"}], replications=64))
    assert "GiB of memory" in sentence(caught)
    assert presets.on_data(name).memory() < 2**29


# runs on uploaded data


@pytest.mark.parametrize(
    ("kind", "encoding"),
    [
        *itertools.product(["linucb", "lints", "epsilon_greedy"], ["block", "context"]),
        ("static_mlp", "block"),
    ],
)
def test_agents_run_on_uploaded_data(kind: str, encoding: str) -> None:
    name = upload(
        "a,b,kind\n" + "".join(f"{i % 7},{'uvw'[i % 3]},{'xyz'[i % 3]}\n" for i in range(60)),
        "kind",
    )
    extra: dict[str, Any] = {"interactions": 10_000} if kind == "static_mlp" else {}
    lane = worlds.make(kind, Classification, options={"data": name, "encoding": encoding}, **extra)
    lane.agent.prepare()
    trace = lane.advance(600)
    assert trace.alive.all()
    assert np.array_equal(trace.best_value, np.ones_like(trace.best_value))
    assert set(np.unique(trace.rewards)) <= {0.0, 1.0}
    # features determine the class; a random choice is right with probability 1/3
    late = trace.rewards[-300:]
    assert late.mean() > 1 / 3 + 4 * np.sqrt(2 / 9 / late.size)


@pytest.mark.slow
def test_workers_load_the_data_and_survive_their_deletion(gate: Gate, tmp_path: Path) -> None:
    """Waiting runs fail with a message, finished runs are not found, and the worker continues with
    the next run.
    """
    name = upload(SMALL, "bought")
    plan = read(experiment_on(name, agents=[{"kind": "linucb"}, {"kind": "random"}]))
    pool = Pool(workers=1, store=Store(tmp_path))
    try:
        done = pool.submit(plan)
        wait_for(lambda: not done.active, "the run on uploaded data")
        assert done.status == "finished", done.error
        for label, history in run(plan).histories.items():
            same(done.histories[label], history)
        gate.hold(9)
        endless = pool.submit(experiment(seed=9))
        waiting = pool.submit(read(experiment_on(name, seed=7)))
        uploads.delete(name)
        assert uploads.listing() == []
        with pytest.raises(UserError, match=f"data '{name}' is not stored here"):
            read(experiment_on(name))
        pool.stop(endless)
        wait_for(lambda: not waiting.active, "the run whose data were deleted")
        assert waiting.status == "failed"
        assert waiting.error.startswith(f"data '{name}' is not stored here: upload the CSV again")
        after = pool.submit(experiment("random", seed=8))
        wait_for(lambda: not after.active, "the next run")
        assert after.status == "finished"
        assert Pool(workers=0, store=Store(tmp_path)).get(plan.hash) is None
        upload(SMALL, "bought")
        again = Pool(workers=0, store=Store(tmp_path)).get(plan.hash)
        assert again is not None
        assert again.status == "finished"
    finally:
        pool.close()


@pytest.mark.slow
def test_a_damaged_file_fails_a_run_in_one_sentence(folder: Path) -> None:
    name = upload(SMALL, "bought")
    path = folder / f"{name}.parquet"
    table = pq.ParquetFile(path).read()
    # the metadata are valid, the numbers are not
    changed = table.set_column(0, "age", pa.array([30.0, 40, 50, 61]))
    pq.write_table(changed.replace_schema_metadata(table.schema.metadata), path)
    pool = Pool(workers=1)
    try:
        job = pool.submit(read(experiment_on(name)))
        wait_for(lambda: not job.active, "the end")
        assert (job.status, job.error) == (
            "failed",
            f"the file of data '{name}' is damaged: upload the CSV again on the page Data",
        )
    finally:
        pool.close()


def test_parsing_time_is_linear_in_cell_length() -> None:
    """Cells are matched in linear time: quadratic time would not end here."""
    cells = "\n".join("1" * 990 + f"{i:05d}x" for i in range(4000))
    assert (
        inspect(f"a,b\n{cells.replace(chr(10), ',1' + chr(10))},1\n".encode()).column("a").kind
        == "category"
    )
