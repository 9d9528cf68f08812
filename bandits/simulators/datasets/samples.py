"""Real data sets as CSV files, to try the view Your data with."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from . import csv_table

ADULT_ROWS = 2000
ADULT_COLUMNS = (
    "age", "workclass", "education", "marital_status", "occupation", "hours_per_week", "capital_gain",
)  # fmt: skip


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
    """Return the first rows of the Adult data set as CSV, with some of its columns; "?" where missing."""
    import pandas as pd

    frame = pd.read_parquet(Path(__file__).parent / "adult.parquet", columns=[*ADULT_COLUMNS, "label"])
    text: str = frame.head(ADULT_ROWS).rename(columns={"label": "income"}).to_csv(index=False, lineterminator="\n")
    return text.encode()


SAMPLES = (
    Sample(
        "census-income.csv", "Census income",
        f"{ADULT_ROWS:,} people of the US census of 1994: age, education, occupation and four more features; does a "
        "person earn more than 50,000 dollars a year? The first rows of Adult (Becker and Kohavi, 1996), UCI Machine "
        "Learning Repository, CC BY 4.0; 7 of its 14 features.",
        adult,
    ),
    Sample(
        "iris.csv", "Iris flowers",
        "150 flowers of three species, with four lengths and widths in centimetres. Iris (Fisher, 1936), the copy in "
        "scikit-learn, UCI Machine Learning Repository, CC BY 4.0.",
        csv_table.sample,
    ),
)  # fmt: skip
