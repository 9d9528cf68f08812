"""Random tables go through upload, run, decision log, export and back, and nothing changes."""

import csv
import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bandits import read
from bandits.offpolicy import reading
from bandits.offpolicy.parquet import write_parquet
from bandits.offpolicy.reading import read_log
from bandits.offpolicy.recording import record
from bandits.offpolicy.user_table import suggested_map
from bandits.simulators import classification
from bandits.simulators.datasets import uploads
from bandits.simulators.datasets.csv_table import inspect

TABLES = 40
# names that readers take for numbers, for missing values, for markup or for formulas
NAMES = (
    *("None", "007", "1e5", "7", "1", "01", "100000", "true", "True", "-5", "Straße 5"),
    *('"', "'", "a|b", "[1]", '["a"]', "=1+1", "@x", "a,b", "a;b", "<b>", "é", "{}", "class 7"),
    *("1234567890123456789", "1234567890123456788", "2024-01-31", "12:30", "x" * 60, "x" * 61),
)


def written(value: Any, style: str) -> str:
    """Write a number as people do: plain, with a decimal comma, or with thousands."""
    if isinstance(value, str):
        return value
    if np.isnan(value):
        return ""
    text = f"{value:,.2f}" if "thousands" in style else repr(value)
    return text.translate(str.maketrans(",.", ".,")) if "comma" in style else text


def random_table(g: np.random.Generator) -> tuple[bytes, list[str], list[list[Any]]]:
    """Return a file, the names of its columns, the target last, and the values of each column."""
    n, wide = int(g.integers(24, 60)), int(g.integers(1, 6))
    separator = str(g.choice([",", ";", "\t"]))
    names = [str(name) for name in g.choice(NAMES, wide + 2, replace=False)]
    styles = ["plain", "thousands"] if separator != ";" else ["comma", "comma thousands"]
    # of the columns; the first has different numbers
    columns: list[list[Any]] = [[round(v, 2) for v in (g.permutation(n) * 1717.17).tolist()]]
    style = [str(g.choice(styles))]
    for _ in range(wide):
        kind = g.choice(["whole", "fraction", "gaps", "text"])
        numbers = {"whole": g.integers(-9, 9, n) * 1.0, "fraction": g.normal(size=n)}
        if kind == "text":
            few = g.choice(NAMES, int(g.integers(2, 8)), replace=False)
            columns.append([str(v) for v in [*few, *g.choice(few, n - len(few))]])
        else:
            values = numbers.get(str(kind), np.where(g.random(n) < 0.3, np.nan, g.normal(size=n)))
            columns.append([round(v, 4) for v in values.tolist()])
        style.append(styles[0])
    classes = g.choice(NAMES, int(g.integers(2, 7)), replace=False)
    columns.append([str(v) for v in [*classes, *g.choice(classes, n - len(classes))]])
    cells = [
        [written(v, how) for v in each] for each, how in zip(columns, [*style, ""], strict=True)
    ]
    out = io.StringIO()
    ending = str(g.choice(["\n", "\r\n"]))
    csv.writer(out, delimiter=separator, lineterminator=ending).writerows(
        [names, *zip(*cells, strict=True)]
    )
    start = b"\xef\xbb\xbf" if g.random() < 0.3 else b""
    return start + out.getvalue().encode(), names, columns


@pytest.mark.parametrize("first", range(0, TABLES, 10))
def test_nothing_changes_from_the_file_to_the_log_and_back(
    first: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BANDITS_HOME", str(tmp_path))
    for seed in range(first, first + 10):
        raw, names, columns = random_table(np.random.default_rng(seed))
        table = inspect(raw)
        assert [c.name for c in table.columns] == names, seed
        for column, values in zip(table.columns, columns, strict=True):
            if column.kind == "number" and not isinstance(values[0], str):
                np.testing.assert_array_equal(column.values, values, str(seed))
            else:
                assert list(column.texts()) == values, (seed, column.name, column.kind)
        data = uploads.save_dataset(table, target=names[-1], title="Mine")
        simulator = {
            "kind": "classification",
            "data": data,
            "scale": "none",
            "encoding": "context",
            "constant": False,
        }
        n, K, d = len(columns[0]), len(set(columns[-1])), len(names) - 1
        experiment = read(
            {
                "simulator": simulator,
                "agents": [{"kind": "epsilon_greedy"}],
                "steps": n,
                "replications": 1,
            }
        )
        arms = classification.load(data).classes
        assert sorted(arms) == sorted(set(columns[-1]))
        log = record(experiment)
        assert len(log.actions) == n
        if K * d <= 64:
            # each example once, with its class
            assert log.features is not None
            seen = log.features[:, 0].tolist()
            assert sorted(seen) == sorted(columns[0])
            right = [columns[-1][columns[0].index(value)] for value in seen]
            earned = [
                float(arms[a] == answer) for a, answer in zip(log.actions, right, strict=True)
            ]
            assert log.rewards.tolist() == earned
        path = tmp_path / "log.parquet"
        write_parquet(log, path)
        for ending in (".parquet", ".dsjson", ".csv"):
            other = path.with_suffix(ending)
            if other != path:
                reading.convert(path, other)
            found = reading.column_names(other)
            back = read_log(other, None if found is None else suggested_map(found))
            # only a log of this package names its experiment
            known = log if ending == ".parquet" else replace(log, experiment="", agent="")
            assert back == known, (seed, ending)
