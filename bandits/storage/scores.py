"""Results of games that are played by hand, without names: one small table beside the stored runs.

A result is the number of good choices and the reward, by the game and a hash of the browser. The
first result of a browser counts. Numbers are bounded for each game, for each network address and in
all, where the oldest results give way."""

from __future__ import annotations

import hashlib
import secrets
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

# a class, or several
PER_GAME = 300
# all pupils of a school may have one address
PER_ADDRESS = 3_000
IN_ALL = 20_000
_SCHEMA = """
CREATE TABLE IF NOT EXISTS salt (value TEXT);
CREATE TABLE IF NOT EXISTS scores (
    game TEXT, player TEXT, address TEXT, best INTEGER, points REAL, created REAL,
    PRIMARY KEY (game, player)
);
CREATE INDEX IF NOT EXISTS by_address ON scores (address, created);
CREATE INDEX IF NOT EXISTS by_time ON scores (created);
"""
_KEEP_NEWEST = """
DELETE FROM scores WHERE rowid IN
(SELECT rowid FROM scores {where} ORDER BY created DESC LIMIT -1 OFFSET {most})
"""


class Scores:
    """Results by game.

    Parameters
    ----------
    file : Path
        Created with the first result.
    """

    def __init__(self, file: Path) -> None:
        self._file = file

    def record(self, game: str, player: str, address: str, best: int, points: float) -> bool:
        """Store a result; return whether it is there now, or another one of the same player.

        False where the game is full.

        Raises
        ------
        OSError
            The disk is full or cannot be written.
        """
        with self._open() as db:
            player, address = (self._hash(db, text) for text in (f"{game} {player}", address))
            there = "SELECT count(*) FROM scores WHERE game = ?"
            if db.execute(f"{there} AND player = ?", (game, player)).fetchone()[0]:
                return True
            if db.execute(there, (game,)).fetchone()[0] >= PER_GAME:
                return False
            db.execute(
                "INSERT INTO scores VALUES (?, ?, ?, ?, ?, ?)",
                (game, player, address, best, points, time.time()),
            )
            db.execute(_KEEP_NEWEST.format(where="WHERE address = ?", most=PER_ADDRESS), (address,))
            db.execute(_KEEP_NEWEST.format(where="", most=IN_ALL))
        return True

    def of(self, game: str) -> list[tuple[int, float]]:
        """Return the results of a game, oldest first: good choices and reward.

        Raises
        ------
        OSError
        """
        if not self._file.exists():
            return []
        with self._open() as db:
            asked = "SELECT best, points FROM scores WHERE game = ? ORDER BY created"
            return [(int(best), float(points)) for best, points in db.execute(asked, (game,))]

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """Open the table for one transaction; a damaged file is begun anew."""
        try:
            with closing(self._connect()) as db, db:
                yield db
        except sqlite3.Error as error:
            raise OSError(f"the results of games cannot be stored: {error}") from None

    def _connect(self) -> sqlite3.Connection:
        for last in (False, True):
            # what cannot be written is stated by the table
            with suppress(OSError):
                self._file.touch(0o600)
            db = sqlite3.connect(self._file, timeout=5)
            try:
                db.executescript(_SCHEMA)
                return db
            except sqlite3.DatabaseError as error:
                db.close()
                # a full disk or a lock is no damage
                if last or isinstance(error, sqlite3.OperationalError):
                    raise
                self._file.unlink()
        raise AssertionError

    @staticmethod
    def _hash(db: sqlite3.Connection, text: str) -> str:
        """Hash a text with a random number of this table: addresses cannot be guessed from it."""
        found = db.execute("SELECT value FROM salt").fetchone()
        if found is None:
            found = (secrets.token_hex(16),)
            db.execute("INSERT INTO salt VALUES (?)", found)
        return hashlib.sha256(f"{found[0]} {text}".encode()).hexdigest()[:16]
