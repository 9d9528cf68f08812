"""Read a CSV file into typed columns; errors name the row and the column."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import compress
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from bandits.base.errors import UserError
from bandits.base.formatting import printable, short
from bandits.base.types import BoolArray, FloatArray
from bandits.tables.text import MISSING as NOT_GIVEN
from bandits.tables.text import Limits, number_style, parsed_number

from .scaling import MISSING

MAX_ROWS = 200_000
MAX_COLUMNS = 100
MAX_CELL = 1000  # characters
LIMITS = Limits(5 * 2**20, rows=MAX_ROWS, columns=MAX_COLUMNS, cell=MAX_CELL)
# squares of larger numbers would not be finite
MAX_NUMBER = 1e100
MAX_CLASSES = 50
# whole numbers up to here are written with all digits; ids are longer than measurements
LARGE, MAX_DIGITS = 1e19, 40
# share of numbers that makes a column numeric; share of distinct texts that makes it an identifier
MOSTLY = 0.9
# distinct numbers with fractions up to which they can be classes rather than measurements
MAX_FRACTIONS = 12
# rows by which dates are known
SOME = 1000
_DATE = re.compile(
    r"(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.](\d{4}|\d{2}))([T ].*)?", re.ASCII
)


class Column(NamedTuple):
    """One column.

    Attributes
    ----------
    name : str
    kind : {"number", "category", "mixed"}
        mixed: numbers with invalid values among them; ``problem`` describes the first.
    values : float64 (n,) or tuple of str
        NaN or "?" where missing.
    example : str
        The first value that is not missing.
    missing, distinct : int
    problem : str
        Why it cannot be a feature, in one sentence; empty if it can.
    numbers : float64 (n,), optional
        Of a mixed column: its values as numbers, NaN where they are none.
    """

    name: str
    kind: Literal["number", "category", "mixed"]
    values: FloatArray | tuple[str, ...]
    example: str
    missing: int
    distinct: int
    problem: str
    numbers: FloatArray | None = None

    def texts(self) -> tuple[str, ...]:
        """Return the values as text, numbers in their shortest form."""
        return (
            self.values
            if isinstance(self.values, tuple)
            else tuple(map(_shortest, self.values.tolist()))
        )

    def absent(self) -> BoolArray:
        """Return where nothing is, bool (n,)."""
        if isinstance(self.values, tuple):
            return np.array([text == MISSING for text in self.values])
        return np.isnan(self.values)

    def strays(self) -> BoolArray:
        """Return where a column of numbers holds something else, or too large a number."""
        if self.numbers is None:
            return np.zeros(len(self.values), bool)
        return ~(np.abs(self.numbers) <= MAX_NUMBER) & ~self.absent()

    def describe_stray(self, i: int) -> str:
        """Return the column and what is wrong with its row of the index i."""
        assert self.numbers is not None
        reason = "is not a number, unlike the rest of the column"
        if not math.isnan(self.numbers[i]):
            reason = f"is out of range; numbers must lie between -{MAX_NUMBER:g} and {MAX_NUMBER:g}"
        return f"column '{short(self.name)}': '{short(str(self.values[i]))}' {reason}"

    def select(self, keep: BoolArray) -> Column:
        """Return some of the rows, ``keep`` (n,); of numbers if no other text is left."""
        if self.numbers is not None and not (self.strays() & keep).any():
            return _of_numbers(self.name, self.numbers[keep])
        if not isinstance(self.values, tuple):
            return _of_numbers(self.name, self.values[keep])
        texts = tuple(compress(self.values, keep.tolist()))
        given = [text for text in texts if text != MISSING]
        return self._replace(
            values=texts,
            example=short(next(iter(given), "")),
            missing=len(texts) - len(given),
            distinct=len(set(given)),
            numbers=None if self.numbers is None else self.numbers[keep],
        )

    @property
    def dates(self) -> bool:
        """Whether nearly all texts are dates, judged by the first rows."""
        if not isinstance(self.values, tuple):
            return False
        given = [text for text in self.values[:SOME] if text != MISSING]
        found = sum(_DATE.fullmatch(text) is not None for text in given)
        return 0 < found >= MOSTLY * len(given)

    @property
    def fractions(self) -> bool:
        """Whether the values are numbers that are not all whole."""
        return not isinstance(self.values, tuple) and bool((self.values % 1 > 0).any())

    @property
    def identifies(self) -> bool:
        """Whether the column seems to identify the rows (nearly all texts differ, or 1, 2, 3, ...),
        or is empty.
        """
        n, given = len(self.values), len(self.values) - self.missing
        if isinstance(self.values, tuple):
            return n >= 10 and self.distinct >= MOSTLY * given
        if given == 0:
            return True
        return (
            n >= 10
            and self.distinct == n
            and not self.fractions
            and bool(np.ptp(self.values) == n - 1)
        )


class Table(NamedTuple):
    """Columns of equal length, and the row number of each example in the file.

    ``wrong`` describes rows that are none of them, because they have more or fewer cells than the
    header.
    """

    columns: tuple[Column, ...]
    rows: tuple[int, ...]
    wrong: tuple[str, ...] = ()

    def select(self, keep: BoolArray) -> Table:
        """Return some of the rows, ``keep`` (n,), and none that is wrong."""
        rows = tuple(compress(self.rows, keep.tolist()))
        return Table(tuple(column.select(keep) for column in self.columns), rows)

    def column(self, name: str) -> Column:
        """Return the column of this name."""
        for column in self.columns:
            if column.name == name:
                return column
        names = ", ".join(c.name for c in self.columns)
        raise UserError(f"there is no column '{short(name)}'; there are {names}")

    def features(self, others: Collection[str]) -> list[Column]:
        """Return the columns of other names."""
        return [column for column in self.columns if column.name not in others]

    def suggested_rewards(self) -> list[str]:
        """Return the columns of numbers whose names begin with "reward", if there are several."""
        found = [
            c.name
            for c in self.columns
            if c.kind == "number" and c.name.lower().startswith("reward")
        ]
        return found if len(found) > 1 else []

    def rewards_problem(self, rewards: Sequence[str]) -> str:
        """Explain why columns cannot be the rewards of arms, in one sentence; empty if they can."""
        if len({*rewards}) != len(rewards) or not 2 <= len(rewards) <= MAX_CLASSES:
            return (
                f"there are {len(rewards)} reward columns; 2 to {MAX_CLASSES} different ones are "
                "needed, one per arm"
            )
        for column in map(self.column, rewards):
            if column.kind != "number":
                return f"the reward column '{column.name}' holds texts"
        return ""

    def target_problem(self, target: str) -> str:
        """Explain why a column cannot be the target, in one sentence; empty if it can."""
        column, n = self.column(target), len(self.rows)
        start = f"column '{target}' cannot be the target: it has"
        if column.distinct < 2:
            return f"{start} only one value; 2 to {MAX_CLASSES} classes are needed"
        if column.fractions and column.distinct > MAX_FRACTIONS:
            return (
                f"{start} {column.distinct:,} different numbers with fractions, which are "
                "measurements, not classes"
            )
        if column.distinct > MAX_CLASSES:
            return (
                f"{start} {column.distinct:,} different values; at most {MAX_CLASSES} classes are "
                "allowed"
            )
        if 2 * column.distinct > n:
            return (
                f"{start} {column.distinct:,} different values in {n:,} rows; a class needs two "
                "rows on average"
            )
        return ""

    def classes(self, target: str) -> dict[str, int]:
        """Count the examples of each class, in the order of their numbers."""
        counts = Counter(self.column(target).texts())
        return {text: counts[text] for text in in_order(counts)}

    def suggested_target(self) -> str:
        """Return the last column that can be the target, dates aside; the last column if none can.

        Few rows may lack a class: they can be left out.
        """
        suitable = [
            c.name
            for c in self.columns
            if c.missing <= (1 - MOSTLY) * len(self.rows)
            and not c.dates
            and not self.target_problem(c.name)
        ]
        return (suitable or [self.columns[-1].name])[-1]

    def suggested_omissions(self, target: str) -> list[str]:
        """Return the columns that identify rows: agents cannot learn from them."""
        return [c.name for c in self.columns if c.identifies and c.name != target]


def inspect(raw: bytes) -> Table:
    """Read a CSV, as `read_csv` does. Empty cells, ?, NA, N/A, NaN and null are missing.

    Raises
    ------
    UserError
        One sentence: row, column, what is wrong.
    """
    from bandits.tables.csv_reader import read_csv

    table = read_csv(raw, LIMITS)
    rows: list[int] = np.asarray(table.rows.numbers).tolist()
    return Table(
        tuple(_column(name, table.cells(name), rows, table.comma) for name in table.names),
        tuple(rows),
        table.wrong,
    )


def in_order(classes: Iterable[str]) -> tuple[str, ...]:
    """Return the classes in the order of their numbers: by value if all are numbers, else
    alphabetically.
    """
    names = sorted(set(classes))
    values = {name: value for name in names if (value := parsed_number(name)) is not None}
    return tuple(sorted(names, key=values.__getitem__) if len(values) == len(names) else names)


def sample() -> bytes:
    """Return a sample CSV: Fisher's iris data, from scikit-learn."""
    from sklearn.datasets import load_iris

    iris = load_iris()
    lines = [[*(name.replace(" (cm)", "") for name in iris.feature_names), "species"]]
    lines += [
        [*map(str, x), iris.target_names[y]]
        for x, y in zip(iris.data.tolist(), iris.target, strict=True)
    ]
    return "".join(",".join(line) + "\n" for line in lines).encode()


def _column(name: str, cells: Sequence[str], rows: Sequence[int], comma: bool) -> Column:
    """Type a column: of numbers where most cells are, otherwise of texts.

    Digits that a number would not keep, as in 007 or in ids of 19 digits, are texts.
    """
    counts = Counter(cells)
    if max(map(len, counts)) > MAX_CELL:
        row, cell = next(pair for pair in zip(rows, cells, strict=True) if len(pair[1]) > MAX_CELL)
        length = f"the cell has {len(cell):,} characters; at most {MAX_CELL:,} are allowed"
        raise UserError(f"row {row}, column '{short(name)}': {length}")
    text = {cell: _shown(cell) for cell in counts}
    comma, thousands = number_style((t for t in text.values() if t != MISSING), comma)
    number = {
        cell: math.nan if shown == MISSING else parsed_number(shown.replace(thousands, ""), comma)
        for cell, shown in text.items()
    }
    missing = sum(n for cell, n in counts.items() if text[cell] == MISSING)
    strays = sum(n for cell, n in counts.items() if number[cell] is None)
    given = len(cells) - missing
    numeric = given - strays >= MOSTLY * given and not any(map(_changed, text.values()))
    example = short(next((text[cell] for cell in cells if text[cell] != MISSING), ""))
    texts = tuple(text[cell] for cell in cells)
    distinct = len(set(text.values()) - {MISSING})
    column = Column(name, "category", texts, example, missing, distinct, "")
    if not numeric:
        return column
    # no minus zero
    values = np.array([math.nan if (v := number[c]) is None else v for c in cells]) + 0.0
    mixed = column._replace(kind="mixed", numbers=values)
    if (wrong := mixed.strays()).any():
        first = int(wrong.argmax())
        return mixed._replace(problem=f"row {rows[first]}, {mixed.describe_stray(first)}")
    return _of_numbers(name, values)._replace(example=example)


def _of_numbers(name: str, values: FloatArray) -> Column:
    given = values[~np.isnan(values)]
    example = _shortest(given[0]) if len(given) else ""
    missing = len(values) - len(given)
    return Column(name, "number", values, example, missing, len(np.unique(given)), "")


def _shown(cell: str) -> str:
    text = printable(cell)
    return MISSING if text.lower() in NOT_GIVEN else text


def _changed(text: str) -> bool:
    """Return whether a text of digits would become another one as a number."""
    digits = text.isascii() and text.isdecimal() and len(text) < MAX_DIGITS
    return digits and text != str(int(float(text)))


def _shortest(number: float) -> str:
    if math.isnan(number):
        return MISSING
    return str(int(number)) if number.is_integer() and abs(number) < LARGE else repr(number)


ADULT_ROWS = 2000
ADULT_COLUMNS = (
    "age",
    "workclass",
    "education",
    "marital_status",
    "occupation",
    "hours_per_week",
    "capital_gain",
)


class Sample(NamedTuple):
    """A CSV file that comes with the package.

    Attributes
    ----------
    file : str
        Name of the file.
    title : str
    about : str
        Content, source and licence, in two or three sentences.
    make : callable
        Returns the bytes of the file.
    """

    file: str
    title: str
    about: str
    make: Callable[[], bytes]


def adult() -> bytes:
    """Return the first rows of the Adult data set as CSV, with some of its columns.

    "?" where missing.
    """
    import pandas as pd

    frame = pd.read_parquet(
        Path(__file__).parent / "adult.parquet", columns=[*ADULT_COLUMNS, "label"]
    )
    text: str = (
        frame.head(ADULT_ROWS)
        .rename(columns={"label": "income"})
        .to_csv(index=False, lineterminator="\n")
    )
    return text.encode()


SAMPLES = (
    Sample(
        "census-income.csv",
        "Census income",
        f"{ADULT_ROWS:,} people of the US census of 1994: age, education, occupation and four "
        "more features; does a person earn more than 50,000 dollars a year? The first rows of "
        "Adult (Becker and Kohavi, 1996), UCI Machine Learning Repository, CC BY 4.0; 7 of its "
        "14 features.",
        adult,
    ),
    Sample(
        "iris.csv",
        "Iris flowers",
        "150 flowers of three species, with four lengths and widths in centimetres. Iris "
        "(Fisher, 1936), the copy in scikit-learn, UCI Machine Learning Repository, CC BY 4.0.",
        sample,
    ),
)
