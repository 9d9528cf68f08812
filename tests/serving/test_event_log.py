"""The event log: order, groups, days, kills, damage, erasure."""

from __future__ import annotations

import itertools
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from bandits.base.errors import UserError
from bandits.serving.event_log import EventLog, newest

DAY = datetime(2026, 1, 5, 12, tzinfo=UTC).timestamp()


@pytest.fixture
def log(tmp_path: Path) -> Iterator[EventLog]:
    opened = EventLog(tmp_path / "log")
    yield opened
    opened.close()


def fill(log: EventLog, days: int = 3, users: int = 2) -> None:
    """Decisions and their rewards on several days, of users in turn."""
    for i, day in enumerate(day for day in range(days) for _ in range(4)):
        user = f"user-{i % users}"
        log.append("decision", f"e{i}", {"item": "a"}, user=user, time=DAY + day * 86_400)
        log.append("reward", f"e{i}", {"reward": 1.0}, time=DAY + day * 86_400)
    log.flush()


def test_events_are_read_in_their_order_behind_a_position(log: EventLog) -> None:
    positions = [log.append("decision", f"e{i}", {"i": i}, user="u") for i in range(1_234)]
    assert positions == list(range(1, 1_235))
    assert log.flush()
    assert [event.body["i"] for event in log.events()] == list(range(1_234))
    assert [event.body["i"] for event in log.events(after=1_200)] == list(range(1_200, 1_234))
    assert log.health()[1:] == (0, 0, "")
    assert [event.kind for event in log.find("e7")] == ["decision"]


def test_a_log_is_read_as_soon_as_its_file_is_there(tmp_path: Path) -> None:
    looks = []

    class ReadMeanwhile(EventLog):
        def _connection(self) -> sqlite3.Connection:
            connection = super()._connection()
            looks.append(newest(self.folder, 1))
            return connection

    ReadMeanwhile(tmp_path / "log").close()
    assert looks == [[], []]


def test_a_group_is_committed_within_its_window_without_being_asked(log: EventLog) -> None:
    log.append("decision", "e", {})
    reader = sqlite3.connect(log.folder / "events.sqlite")
    for _ in range(2_000):
        if reader.execute("SELECT count(*) FROM events").fetchone() == (1,):
            break
        log._thread.join(0.005)
    assert reader.execute("SELECT count(*) FROM events").fetchone() == (1,)
    reader.close()


def test_no_question_waits_for_a_commit(log: EventLog) -> None:
    log.append("decision", "e", {"i": 1})
    log.flush()
    found: list[int] = []
    # a commit may take as long as the disk does
    with log._commit:
        log._file.execute("BEGIN IMMEDIATE")
        asking = threading.Thread(target=lambda: found.append(len(log.find("e"))), daemon=True)
        asking.start()
        asking.join(10)
        log._file.execute("ROLLBACK")
    assert found == [1]


def test_forgetting_beside_a_reader_says_that_the_journal_still_holds_what_is_erased(
    log: EventLog,
) -> None:
    log.append("decision", "e", {"i": "secret-of-ann"}, user="ann")
    log.flush()
    reader = sqlite3.connect(log.folder / "events.sqlite", isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM events").fetchall()
    with pytest.raises(UserError, match="repeat this when it has ended"):
        log.forget("ann")
    reader.execute("COMMIT")
    log.forget("ann")
    left = b"".join(path.read_bytes() for path in log.folder.glob("events.sqlite*"))
    assert b"secret-of-ann" not in left
    reader.close()


def test_days_move_to_files_and_positions_go_on(log: EventLog) -> None:
    fill(log)
    before = list(log.events())
    assert [p.name for p in log.rotate(date(2026, 1, 7))] == [
        "events-2026-01-05.parquet",
        "events-2026-01-06.parquet",
    ]
    assert list(log.events()) == before
    assert list(log.events(after=9)) == before[9:]
    assert log.rotate(date(2026, 1, 7)) == []
    log.close()
    again = EventLog(log.folder)
    assert again.append("reward", "e0", {}) == len(before) + 1
    again.rotate(date(2030, 1, 1))
    again.close()
    emptied = EventLog(log.folder)
    assert emptied.append("reward", "e0", {}) == len(before) + 2
    assert emptied.flush()
    assert len(list(emptied.events())) == len(before) + 2
    emptied.close()


def test_a_rotation_that_was_cut_off_leaves_each_event_once(log: EventLog) -> None:
    fill(log)
    before = list(log.events())
    # the files are written, the rows are not yet deleted
    rows = log._select("SELECT * FROM events")
    log.rotate(date(2026, 1, 7))
    log._file.executemany("INSERT OR REPLACE INTO events VALUES (?,?,?,?,?,?)", rows)
    assert list(log.events()) == before
    log.rotate(date(2026, 1, 7))
    assert list(log.events()) == before


def test_a_clock_that_is_set_back_keeps_the_order(log: EventLog) -> None:
    for hour in (0, 24, 3, 26, 50):
        log.append("decision", f"e{hour}", {}, time=DAY + hour * 3_600)
    log.rotate(date(2026, 1, 7))
    log.append("decision", "late", {}, time=DAY)
    log.rotate(date(2026, 1, 9))
    assert [event.position for event in log.events()] == [1, 2, 3, 4, 5, 6]


def test_a_clock_that_was_ahead_hides_no_later_event(log: EventLog) -> None:
    log.append("decision", "ahead", {}, time=DAY + 5 * 86_400)
    log.rotate(date(2026, 1, 12))
    log.append("decision", "now", {}, time=DAY)
    # it waits for the day of the last file
    assert log.rotate(date(2026, 1, 7)) == []
    log.rotate(date(2026, 1, 12))
    log.close()
    again = EventLog(log.folder)
    assert again.append("decision", "next", {}) == 3
    assert again.flush()
    assert [event.event_id for event in again.events()] == ["ahead", "now", "next"]
    again.close()


def test_damage_is_stated(log: EventLog) -> None:
    fill(log)
    (path,) = log.rotate(date(2026, 1, 6))
    data = bytearray(path.read_bytes())
    data[len(data) // 3] ^= 1
    path.write_bytes(data)
    with pytest.raises(UserError, match=r"events-2026-01-05.parquet (cannot be read|is damaged)"):
        list(log.events())


def test_forgotten_users_leave_no_byte(log: EventLog) -> None:
    fill(log, users=2)
    log.append("decision", "secret-event", {"plan": "x"}, user="user-1")
    log.rotate(date(2026, 1, 7))
    assert log.forget("user-1") == 13
    assert {event.user for event in log.events()} == {"user-0", ""}
    assert log.forget("user-1") == 0
    log.close()
    for path in log.folder.iterdir():
        assert b"user-1" not in path.read_bytes(), path
        assert b"secret-event" not in path.read_bytes(), path
    with pytest.raises(UserError, match="user: must not be empty"):
        log.forget("")


def test_retention_erases_the_days_it_should(log: EventLog) -> None:
    fill(log, days=5)
    erased = log.retain(2, today=date(2026, 1, 10))
    assert [p.name for p in erased] == [
        "events-2026-01-05.parquet",
        "events-2026-01-06.parquet",
        "events-2026-01-07.parquet",
    ]
    assert [p.name for p in log.days()] == [
        "events-2026-01-08.parquet",
        "events-2026-01-09.parquet",
    ]
    with pytest.raises(UserError, match="days: must be at least 1; got 0"):
        log.retain(0)


def test_one_process_writes(log: EventLog) -> None:
    with pytest.raises(UserError, match="another process writes to it"):
        EventLog(log.folder)


def test_a_disk_that_refuses_a_group_is_stated_and_nothing_is_lost(log: EventLog) -> None:
    log.append("decision", "first", {})
    assert log.flush()
    log._file.execute("PRAGMA query_only = ON")
    log.append("decision", "second", {})
    assert not log.flush()
    health = log.health()
    assert health.waiting == 1
    assert "readonly" in health.problem
    log._file.execute("PRAGMA query_only = OFF")
    assert log.flush()
    assert [event.event_id for event in log.events()] == ["first", "second"]
    assert log.health().problem == ""


WRITER = """
import sys, time
from pathlib import Path
from bandits.serving.event_log import EventLog
log = EventLog(Path(sys.argv[1]))
while True:
    position = log.append("decision", "e", {})
    print(position, time.time(), flush=True)
    time.sleep(.0005)
"""


@pytest.mark.slow
def test_a_kill_loses_the_last_group_alone(tmp_path: Path) -> None:
    for number in range(5):
        folder = tmp_path / str(number)
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(folder)], stdout=subprocess.PIPE, text=True
        )
        assert writer.stdout is not None
        written = [line.split() for line in itertools.islice(writer.stdout, 300 + 37 * number)]
        os.kill(writer.pid, signal.SIGKILL)
        written += [line.split() for line in writer.stdout if line.endswith("\n")]
        writer.wait()
        writer.stdout.close()
        log = EventLog(folder)
        found = [event.position for event in log.events()]
        assert found == list(range(1, len(found) + 1))
        end = float(written[-1][1])
        # a busy machine may delay the thread that commits by some windows
        old = [int(position) for position, at in written if float(at) < end - 20 * log.window]
        assert found[-1] >= max(old, default=0)
        log.close()
