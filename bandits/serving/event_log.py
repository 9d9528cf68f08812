"""The event log of a service: what was decided and what it earned, in the order it happened.

The newest events are in one SQLite file, earlier days in one Parquet file each. Events are
committed in groups, because a commit for each takes ten times as long as a decision: at a kill the
last group is lost, and no more.
"""

from __future__ import annotations

import json
import sqlite3
import threading
import time as clock
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from bandits.base.errors import UserError
from bandits.base.files import atomic_write, lock_file

WINDOW = 0.05
GROUP = 500
# events that wait while the disk refuses them; more are dropped and counted
MAX_WAITING = 200_000
_COLUMNS = ("position", "time", "kind", "event_id", "user", "body")
_SCHEMA = """
PRAGMA journal_mode = WAL;
CREATE TABLE IF NOT EXISTS events (
  position INTEGER PRIMARY KEY, time REAL NOT NULL, kind TEXT NOT NULL, event_id TEXT NOT NULL,
  user TEXT NOT NULL, body TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS by_event_id ON events (event_id);
"""
_INSERT = "INSERT OR REPLACE INTO events VALUES (?, ?, ?, ?, ?, ?)"
_SELECT = "SELECT position, time, kind, event_id, user, body FROM events"
_CHECKSUM = b"bandits.events"


class Event(NamedTuple):
    """One entry of the log.

    Attributes
    ----------
    position : int
        From 1, ascending; later days go on counting.
    time : float
        Seconds since 1970.
    kind : str
        ``decision``, ``reward``, or another word of the writer.
    event_id : str
        The decision that it belongs to.
    user : str
        Who it is about, as the writer pseudonymised it; empty where nothing is known.
    body : mapping
        What else is known, as JSON.
    """

    position: int
    time: float
    kind: str
    event_id: str
    user: str
    body: Mapping[str, Any]


class Health(NamedTuple):
    """The state of a log.

    Attributes
    ----------
    window : float
        Seconds of events that a kill may lose.
    waiting : int
        Events that are not committed yet.
    dropped : int
        Events that were given up because the disk refused too many.
    problem : str
        Why the last group could not be committed; empty: it was.
    """

    window: float
    waiting: int
    dropped: int
    problem: str


class Log(Protocol):
    """What a service needs of its log: `EventLog` on one machine, `RedisLog` beyond it."""

    def append(
        self,
        kind: str,
        event_id: str,
        body: Mapping[str, Any],
        *,
        user: str = "",
        time: float | None = None,
    ) -> int:
        """Add an event, and return its position."""

    def events(self, after: int = 0) -> Iterator[Event]:
        """Yield the committed events behind a position, in their order."""

    def find(self, event_id: str) -> list[Event]:
        """Return the recent events of one decision, in their order."""

    def health(self) -> Health:
        """Return the state of the log."""

    def close(self) -> None:
        """Commit what waits, and give the log free."""


class AlreadyDecidedError(Exception):
    """Another process has logged a decision with this event id."""

    def __init__(self, event_id: str) -> None:
        super().__init__(event_id)
        self.event_id = event_id


class LogAwayError(UserError):
    """The log cannot be reached now."""


class EventLog:
    """Append events, and read them in their order. One process has it open at a time.

    Parameters
    ----------
    folder : Path
        Created where it is missing.
    window : float
        Seconds after which a group is committed, above 0.
    group : int
        Events after which it is committed earlier.

    Raises
    ------
    UserError
        The folder cannot be written, or another process has the log open.
    """

    def __init__(self, folder: Path, *, window: float = WINDOW, group: int = GROUP) -> None:
        self.folder, self.window, self.group = folder, window, group
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            lock = lock_file(folder / "writer.lock")
            if lock is None:
                raise OSError("another process writes to it")
            self._writer = lock
            _create_whole(folder / "events.sqlite")
            # two, so that no question waits for a commit
            self._file, self._asked = (self._connection() for _ in range(2))
            self._file.executescript(
                "PRAGMA synchronous = FULL; PRAGMA secure_delete = ON;" + _SCHEMA
            )
        except (OSError, sqlite3.Error) as error:
            raise UserError(f"the event log in {folder} cannot be opened: {error}") from error
        self._waiting: list[tuple[Any, ...]] = []
        self._dropped, self._problem = 0, ""
        # of the two connections, and of what waits; a commit holds the first alone
        self._commit, self._asking, self._lock = (
            threading.RLock(),
            threading.Lock(),
            threading.Lock(),
        )
        # of the files of days
        self._moving = threading.Lock()
        self._full, self._closed = threading.Event(), False
        self._next = 1 + self._last()
        self._thread = threading.Thread(target=self._commit_groups, daemon=True)
        self._thread.start()

    def append(
        self,
        kind: str,
        event_id: str,
        body: Mapping[str, Any],
        *,
        user: str = "",
        time: float | None = None,
    ) -> int:
        """Add an event, and return its position; it is committed within the window."""
        text = json.dumps(body, allow_nan=False)
        with self._lock:
            position, self._next = self._next, self._next + 1
            if len(self._waiting) >= MAX_WAITING:
                self._dropped += 1
                return position
            self._waiting.append(
                (position, clock.time() if time is None else time, kind, event_id, user, text)
            )
            if len(self._waiting) >= self.group:
                self._full.set()
        return position

    def flush(self) -> bool:
        """Commit all that waits; return False, and keep it, where the disk refuses it."""
        with self._commit:
            with self._lock:
                group = list(self._waiting)
            if not group:
                return True
            try:
                self._file.execute("BEGIN IMMEDIATE")
                self._file.executemany(_INSERT, group)
                self._file.execute("COMMIT")
            except sqlite3.Error as error:
                self._problem = str(error)
                with suppress(sqlite3.Error):
                    self._file.execute("ROLLBACK")
                return False
            with self._lock:
                del self._waiting[: len(group)]
            self._problem = ""
            return True

    def events(self, after: int = 0) -> Iterator[Event]:
        """Yield the committed events behind a position, in their order.

        Raises
        ------
        UserError
            A file of a day is damaged.
        """
        yield from _events(self.days(), self._select, after)

    def find(self, event_id: str) -> list[Event]:
        """Return the events of one decision that are not yet moved to the file of a day."""
        # what waits is read where it is: a commit for each question would undo the groups
        with self._lock:
            waiting = [row for row in self._waiting if row[3] == event_id]
        rows = self._select(f"{_SELECT} WHERE event_id = ?", event_id)
        # a group may have been committed in between
        found = {row[0]: row for row in (*waiting, *rows)}
        return [_event(found[position]) for position in sorted(found)]

    def health(self) -> Health:
        """Return the state of the log."""
        with self._lock:
            return Health(self.window, len(self._waiting), self._dropped, self._problem)

    def days(self) -> list[Path]:
        """List the files of earlier days, oldest first."""
        return _days(self.folder)

    def rotate(self, today: date | None = None) -> list[Path]:
        """Move the events of days before ``today`` (UTC) to one Parquet file each.

        A day's file holds all positions up to the first event of the next day, so that positions
        ascend from file to file. Cut off at any moment, it leaves each event to be read once.

        Raises
        ------
        OSError
            A file cannot be written; its events stay where they are.
        """
        today = today or datetime.now(UTC).date()
        written: list[Path] = []
        with self._moving:
            self.flush()
            done = max((_last_of(path) for path in self.days()), default=0)
            # events go on to be written and found meanwhile
            for day, of_day in self._before(today, done):
                written.append(self._write_day(day, of_day))
                done = of_day[-1].position
            while self._delete(done):
                pass
        return written

    def _before(self, today: date, after: int) -> Iterator[tuple[date, list[Event]]]:
        """Yield the events of each day before ``today`` behind a position."""
        of_day: list[Event] = []
        # a clock that was set back does not break the order of positions
        newest = max((_day_of(path) for path in self.days()), default=date.min)
        with _reading(self.folder) as select:
            select("BEGIN")
            for event in _events([], select, after):
                day = max(newest, datetime.fromtimestamp(event.time, UTC).date())
                if day > newest and of_day:
                    yield newest, of_day
                    of_day = []
                newest = day
                if day >= today:
                    return
                of_day.append(event)
        if of_day:
            yield newest, of_day

    def _delete(self, until: int) -> int:
        """Delete some events up to a position; return how many."""
        with self._commit:
            return self._file.execute(
                "DELETE FROM events WHERE position IN (SELECT position FROM events "
                "WHERE position <= ? ORDER BY position LIMIT 2000)",
                (until,),
            ).rowcount

    def forget(self, user: str) -> int:
        """Erase every event of a user, and the rewards of their decisions; return how many.

        Raises
        ------
        UserError
            The user is the empty text, which stands for unknown users; or another process reads
            the log all the while, so that what is erased stays in its journal.
        """
        if not user:
            raise UserError("user: must not be empty")
        with self._moving, self._commit:
            self.flush()
            mine = {event.event_id for event in self.events() if event.user == user}
            erased = 0
            for path in self.days():
                events = _read_day(path)
                kept = [e for e in events if e.user != user and e.event_id not in mine]
                if len(kept) < len(events):
                    erased += len(events) - len(kept)
                    if kept:
                        atomic_write(path, _day_file(kept))
                    else:
                        path.unlink()
            for event_id in mine:
                erased += self._file.execute(
                    "DELETE FROM events WHERE event_id = ?", (event_id,)
                ).rowcount
            # deleted pages stay in the file and its journal otherwise
            with self._asking:
                self._file.execute("VACUUM")
                read, *_ = self._file.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if read:
            raise UserError(
                f"another process reads the event log in {self.folder}, so its journal still holds "
                "what is erased: repeat this when it has ended"
            )
        return erased

    def retain(self, days: int, today: date | None = None) -> list[Path]:
        """Erase the files of days that ended more than ``days`` days ago; return them.

        Raises
        ------
        UserError
            ``days`` is below 1.
        """
        if days < 1:
            raise UserError(f"days: must be at least 1; got {days}")
        today = today or datetime.now(UTC).date()
        self.rotate(today)
        old = [path for path in self.days() if (today - _day_of(path)).days > days]
        for path in old:
            path.unlink()
        return old

    def close(self) -> None:
        """Commit what waits, and let another process write."""
        self._closed = True
        self._full.set()
        self._thread.join()
        # days may be moved and questions asked beside what is served: no file is closed under them
        with self._moving, self._commit, self._asking:
            self.flush()
            self._asked.close()
            self._file.close()
        self._writer.close()

    def _commit_groups(self) -> None:
        """Commit a group whenever the window has passed or it is full."""
        while not self._closed:
            self._full.wait(self.window)
            self._full.clear()
            if not self.flush():
                # a full disk is asked again, but not without a pause
                clock.sleep(self.window)

    def _last(self) -> int:
        """Return the last position that was given, 0 for an empty log."""
        (found,) = self._select("SELECT max(position) FROM events")[0]
        return max([found or 0, *(_last_of(path) for path in self.days())])

    def _connection(self) -> sqlite3.Connection:
        # autocommit: the transactions are our own
        return sqlite3.connect(
            self.folder / "events.sqlite",
            isolation_level=None,
            check_same_thread=False,
            timeout=1,
        )

    def _select(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        with self._asking:
            return self._asked.execute(sql, values).fetchall()

    def _write_day(self, day: date, events: Sequence[Event]) -> Path:
        path = self.folder / f"events-{day.isoformat()}.parquet"
        if path.exists():
            events = [*_read_day(path), *events]
        atomic_write(path, _day_file(events))
        return path


def read_events(folder: Path, after: int = 0) -> Iterator[Event]:
    """Yield the committed events of a log behind a position, while another process writes it.

    Raises
    ------
    UserError
        There is no log in the folder, or a file of it is damaged.
    """
    with _reading(folder) as select:
        # a snapshot from before the days are listed: what is moved to one later is still in it
        select("BEGIN")
        select(f"{_SELECT} LIMIT 1")
        yield from _events(_days(folder), select, after)


def newest(folder: Path, n: int, kinds: Sequence[str] = ()) -> list[Event]:
    """Return the latest n events, or those of some kinds, that are not yet moved to the file of a
    day, in their order.

    Raises
    ------
    UserError
        As in `read_events`.
    """
    among = f"WHERE kind IN ({', '.join('?' * len(kinds))})" if kinds else ""
    with _reading(folder) as select:
        rows = select(f"{_SELECT} {among} ORDER BY position DESC LIMIT ?", *kinds, n)
    return [_event(row) for row in reversed(rows)]


def count(folder: Path, kind: str) -> int:
    """Count the events of a kind that are not yet moved to the file of a day.

    Raises
    ------
    UserError
        As in `read_events`.
    """
    with _reading(folder) as select:
        ((n,),) = select("SELECT count(*) FROM events WHERE kind = ?", kind)
    return int(n)


def following(folder: Path, after: int, n: int, part: int) -> Iterator[list[Event]]:
    """Yield the next n events behind a position that are not yet moved to the file of a day, in
    their order and in lists of at most ``part``.

    Raises
    ------
    UserError
        As in `read_events`.
    """
    asked = f"{_SELECT} WHERE position > ? ORDER BY position LIMIT ?"
    with _reading(folder) as select:
        while n > 0 and (rows := select(asked, after, min(n, part))):
            yield [_event(row) for row in rows]
            after, n = rows[-1][0], n - len(rows)


def rewards_behind(folder: Path, after: int) -> tuple[int, int]:
    """Count the rewards behind a position that are not yet moved to the file of a day; return their
    number and the position of the last, ``after`` without one.

    Raises
    ------
    UserError
        As in `read_events`.
    """
    with _reading(folder) as select:
        ((n, last),) = select(
            "SELECT count(*), max(position) FROM events WHERE kind = 'reward' AND position > ?",
            after,
        )
    return n, last or after


def _create_whole(path: Path) -> None:
    """Create the file of the newest events where it is missing, or a kill left it empty.

    Whole or not at all: others read it as soon as it is there.
    """
    if path.is_file() and path.stat().st_size:
        return
    new = path.with_suffix(".new")
    new.unlink(missing_ok=True)
    with closing(sqlite3.connect(new)) as file:
        file.executescript(_SCHEMA)
    new.replace(path)


@contextmanager
def _reading(folder: Path) -> Iterator[Callable[..., list[tuple[Any, ...]]]]:
    path = folder / "events.sqlite"
    if not path.is_file():
        raise UserError(f"{folder}: there is no event log")
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as file:

        def select(sql: str, *values: object) -> list[tuple[Any, ...]]:
            return file.execute(sql, values).fetchall()

        try:
            yield select
        except sqlite3.Error as error:
            raise UserError(f"the event log in {folder} cannot be read: {error}") from error


def _events(
    days: Sequence[Path], select: Callable[..., list[tuple[Any, ...]]], after: int
) -> Iterator[Event]:
    for path in days:
        if _last_of(path) <= after:
            continue
        stored = _read_day(path)
        for event in stored:
            if event.position > after:
                yield event
        after = max(after, stored[-1].position)
    while rows := select(f"{_SELECT} WHERE position > ? ORDER BY position LIMIT 1000", after):
        for row in rows:
            yield _event(row)
        after = rows[-1][0]


def _days(folder: Path) -> list[Path]:
    return sorted(folder.glob("events-*.parquet"))


def _event(row: Sequence[Any]) -> Event:
    position, time, kind, event_id, user, body = row
    return Event(position, time, kind, event_id, user, json.loads(body))


def _day_of(path: Path) -> date:
    return date.fromisoformat(path.stem.removeprefix("events-"))


def _day_file(events: Sequence[Event]) -> bytes:
    """Return the events of a day as Parquet, with a SHA-256 of its columns."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = [(*event[:5], json.dumps(event.body, allow_nan=False)) for event in events]
    table = pa.table(dict(zip(_COLUMNS, map(list, zip(*rows, strict=True)), strict=True)))
    table = table.replace_schema_metadata({_CHECKSUM: _checksum(rows)})
    buffer = pa.BufferOutputStream()
    pq.write_table(table, buffer, compression="zstd")
    return bytes(buffer.getvalue())


def _last_of(path: Path) -> int:
    """Return the last position in the file of a day, from its statistics."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        about = pq.read_metadata(path)
        groups = [about.row_group(i).column(0) for i in range(about.num_row_groups)]
        return max(int(group.statistics.max) for group in groups)
    except (OSError, AttributeError, ValueError, pa.ArrowException) as error:
        raise UserError(f"{path.name} cannot be read: {error}") from error


def _read_day(path: Path) -> list[Event]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path)
        columns = [table.column(name).to_pylist() for name in _COLUMNS]
        rows = list(zip(*columns, strict=True))
        stated = (table.schema.metadata or {}).get(_CHECKSUM)
    except (OSError, KeyError, pa.ArrowException) as error:
        raise UserError(f"{path.name} cannot be read: {error}") from error
    if not rows or stated != _checksum(rows):
        raise UserError(f"{path.name} is damaged: its content does not fit its checksum")
    return [_event(row) for row in rows]


def _checksum(rows: Sequence[Sequence[Any]]) -> bytes:
    import hashlib

    return hashlib.sha256(json.dumps(list(map(list, rows))).encode()).hexdigest().encode()
