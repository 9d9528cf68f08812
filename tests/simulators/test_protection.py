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
    f"{i},{'Oslo' if i < 3 else 'Rome' if i % 2 else ''},{1000 + i * 7.5},{i * 0.5 if i < 4 else ''},{'ny'[i % 2]}\n"  # noqa: E501
    for i in range(40)
)
TABLE = inspect(f"id,town,income,few,bought\n{ROWS}".encode())


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BANDITS_HOME", str(tmp_path / "own"))


def test_hashes_are_hmacs_of_name_and_value_with_the_key_of_the_installation() -> None:
    made = protect(TABLE, target="bought", hashed=["town", "id"])
    key = (home() / "hash_key").read_bytes()
    bound = hashlib.sha256("\0".join(TABLE.column("town").texts()).encode()).hexdigest()
    expected = hmac.new(key, f"{bound}\0town\0Rome".encode(), hashlib.sha256).hexdigest()[:16]
    towns = made.column("town")
    assert towns.values[3] == expected
    assert [t == "?" for t in towns.values] == [t == "?" for t in TABLE.column("town").values]
    assert (towns.kind, towns.distinct, towns.missing) == (
        "category",
        2,
        TABLE.column("town").missing,
    )
    assert made.column("id").kind == "category"
    assert len(set(made.column("id").values)) == 40
    assert made.column("income") is TABLE.column("income")
    # the same key again
    assert protect(TABLE, target="bought", hashed=["town"]).column("town") == towns
    both = inspect(b"a,b,c\n" + b"x,x,0\nx,x,1\n" * 4)
    pair = protect(both, target="c", hashed=["a", "b"])
    assert pair.column("a").values[0] != pair.column("b").values[0]


def test_another_upload_gives_other_hashes() -> None:
    """Values that another visitor uploads to try them out have no hash in common with the
    data set.
    """
    tried = protect(
        inspect(b"town,bought\n" + b"Rome,n\nOslo,y\n" * 20), target="bought", hashed=["town"]
    )
    own = protect(TABLE, target="bought", hashed=["town"]).column("town")
    assert not set(own.texts()) & set(tried.column("town").texts())


def test_the_key_is_made_once_and_is_readable_for_its_owner_alone() -> None:
    key = installation_key()
    assert len(key) == 32
    assert installation_key() == key
    assert stat.S_IMODE((home() / "hash_key").stat().st_mode) == 0o600
    (home() / "hash_key").write_bytes(b"short")
    with pytest.raises(
        UserError, match="the key for hashes is damaged: it has 5 bytes, not 32; delete the file"
    ):
        installation_key()


def test_the_key_of_a_process_that_was_first_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    first = b"1" * 32

    def late(n: int) -> bytes:
        (home() / "hash_key").write_bytes(first)
        return b"2" * n

    monkeypatch.setattr("bandits.simulators.datasets.protection.secrets.token_bytes", late)
    assert installation_key() == first
    # no temporary file is left
    assert [path.name for path in home().iterdir()] == ["hash_key"]


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


@pytest.mark.parametrize(
    ("values", "sizes"),
    [
        # one value that is alone in its place
        ([1000] * 99 + [250], [100]),
        ([0] * 95 + [3, 5, 7, 9, 11], [95, 5]),
        ([*range(10)], [5, 5]),
        # a short rest joins the last group
        ([*range(12)], [5, 7]),
        ([7] * 50 + [1, 2, 3, 4] + [9, 9, 9], [57]),
    ],
)
def test_no_group_of_numbers_has_fewer_than_five_rows(values: list[int], sizes: list[int]) -> None:
    rows = "".join(f"{x},{'ny'[i % 2]}\n" for i, x in enumerate(values))
    made = protect(inspect(f"x,c\n{rows}".encode()), target="c", coarsened=["x"]).column("x").values
    assert sorted(np.unique(np.array(made), return_counts=True)[1]) == sorted(sizes)


def test_rare_texts_are_put_together() -> None:
    towns = protect(TABLE, target="bought", coarsened=["town"]).column("town")
    # Oslo, in three rows
    assert towns.values[0] == "other"
    assert towns.values[3] == "Rome"
    assert towns.values[4] == "?"
    assert towns.distinct == 2


def test_what_does_not_fit_is_refused_in_one_sentence() -> None:
    for options, sentence in (
        (
            {"hashed": ["town"], "coarsened": ["town"]},
            "column 'town' is both hashed and coarsened; choose one",
        ),
        (
            {"coarsened": ["bought"]},
            "the target column 'bought' cannot be coarsened; it can be hashed",
        ),
        (
            {"coarsened": ["few"]},
            "column 'few' has 4 known values; it must have at least 5 to be coarsened",
        ),
        ({"hashed": ["nothing"]}, "there is no column 'nothing'"),
    ):
        with pytest.raises(UserError, match=sentence):
            protect(TABLE, target="bought", **options)
    assert protect(TABLE, target="bought") is TABLE
    assert protect(TABLE, target="bought", hashed=["bought"]).column("bought").distinct == 2
