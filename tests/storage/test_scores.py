"""Results of games: the first of a browser counts, numbers are bounded, damage loses no page."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest

from bandits.storage import scores
from bandits.storage.run_store import Store
from bandits.storage.scores import Scores
from bandits.sweeps.storage.catalogue import Catalogue


def test_the_first_result_of_a_browser_counts_and_no_address_is_stored(tmp_path: Path) -> None:
    kept = Scores(tmp_path / "scores.sqlite")
    assert kept.of("a") == []
    assert kept.record("a", "ann", "10.1.2.3", 17, 20.0)
    assert kept.record("a", "ann", "10.1.2.3", 40, 40.0)
    assert kept.record("b", "ann", "10.1.2.3", 1, 2.0)
    assert kept.record("a", "bob", "10.1.2.3", 5, 6.0)
    assert Scores(tmp_path / "scores.sqlite").of("a") == [(17, 20.0), (5, 6.0)]
    stored = (tmp_path / "scores.sqlite").read_bytes()
    assert not [word for word in (b"10.1.2.3", b"ann", b"bob") if word in stored]


def test_games_addresses_and_the_table_are_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, most in (("PER_GAME", 3), ("PER_ADDRESS", 4), ("IN_ALL", 6)):
        monkeypatch.setattr(scores, name, most)
    kept = Scores(tmp_path / "scores.sqlite")
    assert [kept.record("a", str(i), "x", i, 0.0) for i in range(4)] == [True] * 3 + [False]
    # an address pushes out its own results only
    assert kept.record("b", "0", "y", 7, 0.0)
    for i in range(3):
        kept.record("c", str(i), "x", i, 0.0)
    assert (len(kept.of("a")), kept.of("b"), len(kept.of("c"))) == (1, [(7, 0.0)], 3)
    for i in range(3):
        kept.record("d", str(i), f"z{i}", i, 0.0)
    assert sum(len(kept.of(name)) for name in "abcd") == 6
    assert len(kept.of("d")) == 3


def test_a_damaged_file_is_begun_anew_and_a_locked_one_is_a_sentence(tmp_path: Path) -> None:
    file = tmp_path / "scores.sqlite"
    file.write_bytes(b"no database" * 100)
    kept = Scores(file)
    assert kept.record("a", "ann", "x", 1, 1.0)
    assert kept.of("a") == [(1, 1.0)]
    with pytest.raises(OSError, match="the results of games cannot be stored"):
        Scores(tmp_path / "missing" / "scores.sqlite").record("a", "ann", "x", 1, 1.0)
    with sqlite3.connect(file) as db:
        assert db.execute("SELECT count(*) FROM scores").fetchone() == (1,)
    db.close()


def test_titles_and_results_are_for_no_other_user_of_the_machine(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        store = Store(tmp_path / "home")
        store.scores.record("a", "ann", "10.1.2.3", 1, 2.0)
        Catalogue(tmp_path / "home" / "sweeps").entries()
    finally:
        os.umask(before)
    modes = {
        path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "home").rglob("*.sqlite")
    }
    assert set(modes) >= {"index.sqlite", "scores.sqlite"}
    assert set(modes.values()) == {0o600}
