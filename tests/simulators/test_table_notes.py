"""What hides columns or rows of a table from a linear model is said wherever the table is used."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bandits import UserError, read, run
from bandits.cli.stored_runs import leaderboard
from bandits.results.caveats import caveats, table_notes
from bandits.simulators.classification import Classification, load
from bandits.simulators.datasets import uploads
from bandits.simulators.datasets.csv_table import inspect
from bandits.simulators.datasets.table_notes import table_notes as notes

G = np.random.default_rng(0)
X = G.normal(size=(500, 3)) * [1, 5, 20] + [0, 3, -9]
NAMES = ("a", "b", "c")


def test_nothing_is_said_of_sound_features() -> None:
    assert notes(X, NAMES) == []
    # nearly collinear columns can be told apart: the noise is half a per cent
    near = np.column_stack([X, X[:, 0] + 0.005 * G.normal(size=500)])
    assert notes(near, (*NAMES, "d")) == []


@pytest.mark.parametrize("scale", ["norm", "none"])
@pytest.mark.parametrize("constant", [True, False])
def test_a_column_that_has_most_of_the_squared_length_is_named(scale: Any, constant: bool) -> None:
    large = X * [1, 1e4, 1] + [0, 1e5, 0]
    (found,) = notes(large, NAMES, scale, constant=constant)
    assert found.startswith(
        f"Column 'b' has 100.0 % of the squared length of the features with scale {scale}"
    )
    assert notes(large, NAMES, "standard") == notes(large, NAMES, "minmax") == []


def test_rows_that_scaling_makes_equal_are_counted() -> None:
    hours = np.arange(1.0, 601)[:, None]
    (found,) = notes(hours, ("hours",), "norm")
    assert found.startswith("Scale norm makes different rows equal: of 600 different rows 1 remain")
    assert notes(hours, ("hours",), "standard") == []


def test_rows_of_zeros_without_a_constant_are_counted() -> None:
    indicators = (G.random((400, 2)) < 0.3).astype(float)
    (found,) = notes(indicators, ("a", "b"), "none", constant=False)
    share = (indicators == 0).all(axis=1).mean()
    assert found.startswith(f"All features are 0 in {100 * share:.0f} % of the rows")
    assert notes(indicators, ("a", "b"), "none") == []


def test_constant_copied_and_dependent_columns_are_named() -> None:
    x = np.column_stack([X, np.full(500, 7.1), -2 * X[:, 1] + 5, X[:, 0] + X[:, 2]])
    flat, dependent = notes(x, (*NAMES, "one", "copy", "sum"))
    assert flat == "Column 'one' has the same value in every row."
    assert dependent.startswith("Columns 'copy' and 'sum' are linear functions of other columns")
    many = notes(np.ones((9, 12)), [f"c{i}" for i in range(12)])
    assert many == [
        "Columns 'c0', 'c1', 'c2', 'c3', 'c4' and 7 more have the same value in every row."
    ]


def test_numbers_of_any_size_are_judged() -> None:
    huge = np.column_stack([X[:, 0] * 1e99, X[:, 1] * 1e-99, np.full(500, 1e100)])
    for scale in ("standard", "minmax", "norm", "none"):
        assert "Column 'c' has the same value in every row." in notes(huge, NAMES, scale)  # type: ignore[arg-type]


def test_a_run_its_report_and_the_command_line_say_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BANDITS_HOME", str(tmp_path))
    rows = "".join(f"{a:.3f},{2 * a:.3f},{'ny'[int(a > 0)]}\n" for a in X[:, 0].round(3))
    table = inspect(("age,twice,bought\n" + rows).encode())
    name = uploads.save_dataset(table, target="bought", title="Mine")
    simulator = {"kind": "classification", "data": name}
    result = run(read({"simulator": simulator, "agents": [{"kind": "linucb"}], "steps": 20}))
    note, reached = table_notes(result)
    # a single threshold separates the classes
    assert "logistic regression that is trained on the classes themselves in" in reached
    assert reached in caveats(result)
    assert note.startswith("Column 'twice' is a linear function of other columns")
    assert note in caveats(result)
    assert note in leaderboard(result)
    uploads.delete(name)
    # as another process would find it
    load.cache_clear()
    assert table_notes(result) == []
    with pytest.raises(UserError):
        Classification.notes(result.experiment.simulator)
