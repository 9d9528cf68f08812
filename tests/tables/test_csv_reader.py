"""One reader of tables: all dialects of a file give the same cells, and what is wrong is named by
row and column.
"""

from __future__ import annotations

import csv
import gzip
import io
import itertools

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bandits import UserError
from bandits.base.row_names import ROWS
from bandits.tables import csv_reader
from bandits.tables.csv_reader import header, read_csv
from bandits.tables.raw_table import RawTable
from bandits.tables.text import Limits

LENIENT = Limits(10**6, rows=10_000, columns=100, cell=1000, lenient=True)
TEXT = "item,reward,note\nGröße M,1.5,a\nGröße S,-0.25,b\n"


def semicolons(text: str) -> str:
    return text.replace(",", ";").replace(".", ",")


@pytest.mark.parametrize(
    "raw",
    [
        TEXT.encode(),
        TEXT.encode("utf-8-sig"),
        TEXT.encode("utf-16"),
        b"\xfe\xff" + TEXT.encode("utf-16-be"),
        TEXT.encode("cp1252"),
        gzip.compress(TEXT.encode(), mtime=0),
        gzip.compress(TEXT.encode("utf-16"), mtime=0),
        TEXT.replace("\n", "\r\n").encode(),
        TEXT.replace("\n", "\r").encode(),
        TEXT.replace(",", "\t").encode(),
        semicolons(TEXT).encode(),
        semicolons(TEXT).encode("cp1252"),
        ("\n" + TEXT.replace("\n", "\n,,\n\n")).encode(),
        TEXT.replace("Größe M", '"Größe M"').replace("-0.25", '" -0.25 "').encode(),
    ],
    ids=itertools.count(),
)
def test_all_dialects_of_a_table_have_the_same_cells(raw: bytes) -> None:
    table = read_csv(raw, LENIENT)
    assert table.names == header(raw, LENIENT) == ["item", "reward", "note"]
    assert table.texts("item").tolist() == ["Größe M", "Größe S"]
    assert table.numbers("reward").tolist() == [1.5, -0.25]
    assert list(table.numbers_of(table.names)) == ["reward"]


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"a,b,c\n1,0,.5,9\n", "row 2 has 4 cells, the header has 3"),
        (
            gzip.compress(b"x" * (10**6 + 1), mtime=0),
            "the file has 1.0 MB; at most 0 MB are allowed",
        ),
        (gzip.compress(TEXT.encode(), mtime=0)[:20], "the file is a gzip file that is damaged"),
        (b"\xff\xfea", "the file is not text in UTF-16 (line 1): save it as CSV (UTF-8)"),
        (
            b"a,b\n\x81,1\n",
            "the file is not text in UTF-8 or Windows-1252 (line 2): save it as CSV (UTF-8)",
        ),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(raw: bytes, message: str) -> None:
    with pytest.raises(UserError) as refused:
        read_csv(raw, LENIENT)
    assert str(refused.value) == message


cells = st.one_of(
    st.text("ab ,;\t\"\r\n'é", max_size=5), st.sampled_from(["", "NA", "1", "-2.5", "1e5"])
)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.lists(cells, min_size=3, max_size=3), min_size=1, max_size=12),
    st.sampled_from(",;\t"),
)
def test_quick_and_careful_reading_give_the_same_table(
    rows: list[list[str]], separator: str
) -> None:
    out = io.StringIO()
    csv.writer(out, delimiter=separator).writerows([["a", "b", "c"], *rows])
    data = out.getvalue().encode()
    assert csv_reader._well_quoted(data, separator, csv_reader._marks(data))
    quick = csv_reader._quickly(data, separator, "abc", 1, LENIENT)
    columns, numbers = csv_reader._carefully(data, separator, "abc", LENIENT, [])
    assert quick is not None
    assert [c.to_pylist() for c in quick[0]] == [c.to_pylist() for c in columns] or not len(numbers)
    assert quick[1].tolist() == numbers.tolist()


def test_rows_of_another_width_are_named_and_left_out_and_empty_cells_beyond_are_read() -> None:
    table = read_csv(b"a,b,c\n1,0,.5\n\n1,0\n2,0,.5,\n3,0,1,9\n4,1,1,,\n", LENIENT)
    assert table.wrong == (
        "row 4 has 2 cells, the header has 3",
        "row 6 has 4 cells, the header has 3",
    )
    assert table.numbers("a").tolist() == [1, 2, 4]
    assert [table.rows[i] for i in range(3)] == [
        f"row {i} (line {i} of the file)" for i in (2, 5, 7)
    ]


@pytest.mark.parametrize(
    ("cells", "separator", "numbers"),
    [
        (['"1,234.5"', '"12,000"', "7"], ",", [1234.5, 12000, 7]),
        (['"1,234"', "0.5"], ",", [1234, 0.5]),
        (['"0,5"', '"12,25"'], ",", [0.5, 12.25]),
        (["1.234,5", "2.000", "3"], ";", [1234.5, 2000, 3]),
        (["1.234.567", "2.000"], ";", [1234567, 2000]),
        (["0.333", "1.234"], ";", [0.333, 1.234]),
        (["1.234", "0,5"], ";", [1.234, 0.5]),
        (["1 234,5", "1\u00a0000", "1\u202f000"], ";", None),
        (["1\u202f234,5", "2\u202f000"], ";", [1234.5, 2000]),
        (["1'234.5", "2'000"], "\t", [1234.5, 2000]),
    ],
)
def test_thousands_are_read_where_they_cannot_mean_anything_else(
    cells: list[str], separator: str, numbers: list[float] | None
) -> None:
    text = "".join(f"{cell}{separator}x\n" for cell in ["a", *cells])
    table = read_csv(text.encode(), LENIENT)
    if numbers is None:
        with pytest.raises(UserError, match="must be a number"):
            table.numbers("a")
    else:
        assert table.numbers("a").tolist() == numbers


def test_marks_within_an_unquoted_cell_are_text() -> None:
    table = read_csv(b'size,b\n5" pipe,1\n6",2\n', LENIENT)
    assert table.texts("size").tolist() == ['5" pipe', '6"']


def test_numbers_are_those_that_a_plain_parser_reads() -> None:
    texts = [
        "1",
        "+1.5",
        " -2 ",
        ".5",
        "5.",
        "1e5",
        "1E-3",
        "",
        "NA",
        "?",
        "null",
        "NaN",
        "inf",
        "0.1",
        "1.25e-7",
    ]
    rows = "".join(f"{text},x\n" for text in texts)
    found = read_csv(f"a,b\n{rows}".encode(), LENIENT).numbers("a")
    plain = [float("nan") if t in ("", "NA", "?", "null") else float(t) for t in texts]
    np.testing.assert_array_equal(found, plain)
    for text in ("1_0", "٣", "1.000,5", "0x1", "10 00", "12,3,4"):
        with pytest.raises(
            UserError, match=r"row 3 \(line 3 of the file\), a: must be a number; got"
        ):
            read_csv(f'a,b\n1,x\n"{text}",x\n'.encode(), LENIENT).numbers("a")


def test_a_typed_column_keeps_all_digits_of_its_whole_numbers() -> None:
    ids = pa.array([2**63 - 1, None, 2**63 - 2])
    table = RawTable(
        pa.table({"id": ids, "x": [1.0, None, 2.5], "flag": [True, False, None]}), ROWS
    )
    assert table.texts("id").tolist() == ["9223372036854775807", "", "9223372036854775806"]
    assert table.texts("x").tolist() == ["1", "", "2.5"]
    assert list(table.numbers_of(table.names)) == ["id", "x", "flag"]
