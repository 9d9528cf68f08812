"""Columns of an upload are hashed or coarsened as stated, and the others are left as they are."""

from __future__ import annotations

import hashlib
import hmac
import stat
from pathlib import Path

import numpy as np
import pytest

from bandits import UserError
from bandits.base.files import home
from bandits.simulators.datasets.csv_table import inspect
from bandits.simulators.datasets.protection import GROUPS, installation_key, protect

ROWS = "".join(
    f"{i},{'Oslo' if i < 3 else 'Rome' if i % 2 else ''},{1000 + i * 7.5},{'ny'[i % 2]}\n" for i in range(40)
)
TABLE = inspect(f"id,town,income,bought\n{ROWS}".encode())


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BANDITS_HOME", str(tmp_path / "own"))


def test_hashes_are_hmacs_of_name_and_value_with_the_key_of_the_installation() -> None:
    made = protect(TABLE, target="bought", hashed=["town", "id"])
    key = (home() / "hash_key").read_bytes()
    expected = hmac.new(key, b"town\0Rome", hashlib.sha256).hexdigest()[:16]
    towns = made.column("town")
    assert towns.values[3] == expected
    assert [t == "?" for t in towns.values] == [t == "?" for t in TABLE.column("town").values]
    assert (towns.kind, towns.distinct, towns.missing) == ("category", 2, TABLE.column("town").missing)
    assert made.column("id").kind == "category"
    assert len(set(made.column("id").values)) == 40
    assert made.column("income") is TABLE.column("income")
    assert protect(TABLE, target="bought", hashed=["town"]).column("town") == towns  # the same key again
    both = inspect(b"a,b,c\n" + b"x,x,0\nx,x,1\n" * 4)
    pair = protect(both, target="c", hashed=["a", "b"])
    assert pair.column("a").values[0] != pair.column("b").values[0]


def test_the_key_is_made_once_and_is_readable_for_its_owner_alone() -> None:
    key = installation_key()
    assert len(key) == 32
    assert installation_key() == key
    assert stat.S_IMODE((home() / "hash_key").stat().st_mode) == 0o600
    (home() / "hash_key").write_bytes(b"short")
    with pytest.raises(UserError, match="the key for hashes is damaged: it has 5 bytes, not 32"):
        installation_key()


def test_coarsened_numbers_are_the_means_of_groups_of_equal_size() -> None:
    made = np.array(protect(TABLE, target="bought", coarsened=["income"]).column("income").values)
    raw = np.array(TABLE.column("income").values)
    found, times = np.unique(made, return_counts=True)
    assert len(found) == GROUPS
    assert set(times) == {40 // GROUPS}
    for value in found:
        assert value == float(f"{raw[made == value].mean():.3g}")
    assert (np.diff(made) >= 0).all()
    gaps = inspect(b"x,c\n" + b"1,0\n,1\n5,0\n" * 5)
    assert np.isnan(protect(gaps, target="c", coarsened=["x"]).column("x").values[1])  # type: ignore[call-overload]


def test_rare_texts_are_put_together() -> None:
    towns = protect(TABLE, target="bought", coarsened=["town"]).column("town")
    assert towns.values[0] == "other"  # Oslo, in three rows
    assert towns.values[3] == "Rome"
    assert towns.values[4] == "?"
    assert towns.distinct == 2


def test_what_does_not_fit_is_refused_in_one_sentence() -> None:
    for options, sentence in (
        ({"hashed": ["town"], "coarsened": ["town"]}, "column 'town' is both hashed and coarsened; choose one"),
        ({"coarsened": ["bought"]}, "the target column 'bought' cannot be coarsened; it can be hashed"),
        ({"hashed": ["nothing"]}, "there is no column 'nothing'"),
    ):
        with pytest.raises(UserError, match=sentence):
            protect(TABLE, target="bought", **options)
    assert protect(TABLE, target="bought") is TABLE
    assert protect(TABLE, target="bought", hashed=["bought"]).column("bought").distinct == 2
