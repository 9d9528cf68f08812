"""Finished runs and checkpoints on disk: an SQLite index over immutable, checksummed files.

A file is staged, synced, renamed to the name of its own content and only then indexed, so that a kill at any moment
leaves either the whole of it or nothing. What is read back is checked; a file that does not match is set aside. Each
file says which run it is: an index that is damaged is made anew from the files.
"""

from __future__ import annotations

import errno
import hashlib
import json
import logging
import os
import re
import shutil
import sqlite3
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from functools import lru_cache, partial
from pathlib import Path
from types import ModuleType
from typing import IO, Any, NamedTuple, TypeVar

import numpy as np

from bandits.base.files import atomic_write, home, move_into_place, pack, stage, unpack
from bandits.experiments.experiment import Experiment, UserError, read
from bandits.experiments.history import History
from bandits.results.result import Result

from .sqlite_index import DatabaseCorruptError, Index

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # Windows has none: there every process takes itself for the only one
    fcntl = None

T = TypeVar("T")
RUN_ID = re.compile("[0-9a-f]{64}")  # what a run's id looks like; anything else is no name for a file
MIN_FREE = 200 * 2**20  # bytes that must be free before a run starts
STALE_AFTER = 3600.0  # seconds after which nobody is still writing a staged file
_INSERT = (
    "INSERT INTO runs (id, experiment, title, tags, created, seconds, content, bytes, evicted) VALUES "
    "(:id, :experiment, :title, :tags, :created, :seconds, :content, :bytes, :evicted) ON CONFLICT (id) DO NOTHING"
)
_log = logging.getLogger(__name__)


_known = lru_cache(maxsize=4096)(read)  # a list that is drawn again and again validates each experiment once


class StoredRun(NamedTuple):
    """One line of the index."""

    id: str
    experiment: Experiment
    title: str
    tags: str
    created: float
    seconds: float
    bytes: int
    evicted: bool = False


class CorruptFileError(ValueError):
    """A stored file that is not what was written, said in one sentence."""


class EvictedError(CorruptFileError):
    """A stored run whose curves were given up to save space, said in one sentence."""


class Store:
    """Runs under a folder; safe to use from several processes at once.

    Parameters
    ----------
    folder : Path, optional
        ``BANDITS_HOME`` or the user's data directory by default.

    Attributes
    ----------
    repairs : list of str
        What was found damaged and put right by itself, one sentence each, until `check` has told it.

    Raises
    ------
    OSError
        The folder cannot be made or written; so too from every method.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or home()
        for name in ("objects", "checkpoints", "quarantine", "staged"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        self.repairs: list[str] = []
        self._index = Index(self.folder / "index.sqlite")
        self._lock: IO[str] | None = None
        self._checkpoint_heads: dict[str, tuple[tuple[int, int], str | None]] = {}
        try:
            self._index.create()
        except DatabaseCorruptError:
            self._rebuild_index()
        self.repairs += self._reindex_all()

    def claim(self) -> bool:
        """Whether this object may take unfinished runs for its own: one at a time can, until it is gone or `release`.

        A lock that the system lifts when its process dies, however it dies.
        """
        if fcntl is not None and self._lock is None:
            handle = (self.folder / "server.lock").open("w")
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                handle.close()
                return False
            self._lock = handle
        return True

    def release(self) -> None:
        """Let another one `claim` the unfinished runs."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def require_space(self) -> None:
        """Refuse to begin what could not be kept.

        Raises
        ------
        UserError
        """
        try:
            free = shutil.disk_usage(self.folder).free
        except OSError as error:
            raise UserError(f"the folder of stored runs, {self.folder}, is out of reach: {error.strerror}") from None
        if free < MIN_FREE:
            raise UserError(
                f"the disk under {self.folder} has {free / 2**20:,.0f} MiB left; "
                f"a run needs {MIN_FREE / 2**20:,.0f} MiB"
            )

    def put(self, experiment: Experiment, histories: dict[str, History], seconds: float) -> None:
        """Keep a finished run; one that is there already is left as it is.

        Raises
        ------
        OSError
            The disk is full or cannot be written; nothing half-written stays.
        """
        row = {
            "id": experiment.hash, "experiment": experiment.model_dump_json(), "title": ", ".join(experiment.labels),
            "tags": "", "created": time.time(), "seconds": seconds, "evicted": 0,
        }  # fmt: skip
        about = np.frombuffer(json.dumps(row).encode(), np.uint8)
        arrays = {f"{i}/{k}": v for i, h in enumerate(histories.values()) for k, v in h.since(0).items()}
        data = pack({"about": about, **arrays})
        row |= {"content": hashlib.sha256(data).hexdigest(), "bytes": len(data)}

        def keep(index: sqlite3.Connection) -> None:
            # within the transaction, so that nobody takes the file for an orphan or deletes the run in between
            again = index.execute(
                "DELETE FROM runs WHERE id = ? AND evicted = 1 RETURNING title, tags, content", (row["id"],)
            ).fetchone()
            if again is not None:  # its curves had been given up, and are computed again
                row.update(title=again[0], tags=again[1])
                self._object(again[2]).unlink(missing_ok=True)
            if index.execute("SELECT 1 FROM runs WHERE id = ?", (row["id"],)).fetchone() is None:
                move_into_place(staged, self._object(row["content"]))
                index.execute(_INSERT, row)

        staged = stage(data, self.folder / "staged")
        try:
            self._use(keep, write=True)
        finally:
            staged.unlink(missing_ok=True)

    def seconds(self, run: str) -> float:
        """How long a stored run took."""
        found = self._query("SELECT seconds FROM runs WHERE id = ?", run)
        return float(found[0][0]) if found else 0.0

    def get(self, run: str) -> Result | None:
        """A stored run, or None if it is not here.

        Raises
        ------
        Corrupt
            Its file was damaged; it has been set aside and the run is no longer listed.
        Evicted
            Its curves were given up to save space; the run is listed, and can be computed again.
        """
        wanted = "SELECT experiment, content FROM runs WHERE id = ?"
        found = self._query(wanted, run)
        if found and not self._object(found[0][1]).exists():  # perhaps only the index is wrong
            self.repairs += self._reindex_all()
            found = self._query(wanted, run)
        data = self._checked(run, found[0][1]) if found else None
        if data is None:
            return None
        arrays = unpack(data)
        about = _metadata(arrays)
        if about and about.get("evicted"):
            raise EvictedError(
                f"the curves of run {run[:12]} were given up to save space; run it again to have them back"
            )
        experiment = read(about["experiment"] if about else found[0][0])
        histories = {}
        for i, label in enumerate(experiment.labels):
            history = experiment.empty_history()
            prefix = f"{i}/"
            history.merge({k[len(prefix) :]: v for k, v in arrays.items() if k.startswith(prefix)})
            histories[label] = history
        return Result(experiment, histories)

    def runs(self) -> list[StoredRun]:
        """All stored runs, newest first."""
        wanted = "SELECT id, experiment, title, tags, created, seconds, bytes, evicted FROM runs ORDER BY created DESC"
        rows = self._query(wanted)
        return [line for row in rows if (line := _listed(row)) is not None]

    def rename(self, run: str, title: str) -> None:
        """Give a run another title."""
        self._query("UPDATE runs SET title = ? WHERE id = ?", title, run, write=True)

    def tag(self, run: str, tags: str) -> None:
        """Replace a run's tags."""
        self._query("UPDATE runs SET tags = ? WHERE id = ?", tags, run, write=True)

    def delete(self, run: str) -> None:
        """Forget a run, and its file unless another run has the same content."""

        def forget(index: sqlite3.Connection) -> None:
            row = index.execute("DELETE FROM runs WHERE id = ? RETURNING content", (run,)).fetchone()
            if row and not index.execute("SELECT 1 FROM runs WHERE content = ?", row).fetchone():
                self._object(row[0]).unlink(missing_ok=True)

        self._use(forget, write=True)
        self.drop_checkpoint(run)

    # -- room ----------------------------------------------------------------------------------------------------

    def evictable(self) -> list[tuple[float, int, str]]:
        """What takes room and can be computed again: when it was made, bytes, run; oldest first."""
        checkpoints = {p.name: p.stat().st_size for p in (self.folder / "checkpoints").iterdir() if p.is_file()}
        found = [
            (run.created, run.bytes + checkpoints.get(run.id, 0), run.id) for run in self.runs() if not run.evicted
        ]
        return sorted(found)

    def evict(self, run: str) -> int:
        """Give up a finished run's curves and checkpoint; it stays listed. Returns the bytes this has freed."""
        row = self._query(
            "SELECT experiment, title, tags, created, seconds, content, bytes FROM runs WHERE id = ?", run
        )
        if not row:
            return 0
        experiment, title, tags, created, seconds, content, size = row[0]
        about = {"id": run, "experiment": experiment, "title": title, "tags": tags, "created": created,
                 "seconds": seconds, "evicted": 1}  # fmt: skip
        data = pack({"about": np.frombuffer(json.dumps(about).encode(), np.uint8)})
        name = hashlib.sha256(data).hexdigest()
        staged = stage(data, self.folder / "staged")

        def swap(index: sqlite3.Connection) -> None:
            move_into_place(staged, self._object(name))
            index.execute("UPDATE runs SET content = ?, bytes = ?, evicted = 1 WHERE id = ?", (name, len(data), run))
            if not index.execute("SELECT 1 FROM runs WHERE content = ?", (content,)).fetchone():
                self._object(content).unlink(missing_ok=True)

        try:
            self._use(swap, write=True)
        finally:
            staged.unlink(missing_ok=True)
        path = self._checkpoint(run)
        with suppress(FileNotFoundError):
            size += path.stat().st_size
        self.drop_checkpoint(run)
        return int(size) - len(data)

    # -- damage --------------------------------------------------------------------------------------------------

    def check(self) -> list[str]:
        """Read every file; returns a sentence for each that was damaged or left behind.

        What is damaged is set aside; what the index has lost is listed again.
        """
        try:
            self._index.verify()
        except DatabaseCorruptError:
            self._rebuild_index()
        said, self.repairs = self.repairs + self._reindex_all(), []
        for row, run, content in self._query("SELECT rowid, id, content FROM runs"):
            try:
                data = self._checked(run, content)
            except CorruptFileError as sentence:
                said.append(str(sentence))
            else:
                if about := _metadata(unpack(data)) if data is not None else None:
                    said += self._use(partial(_correct_row, row, about), write=True)
        for path in (self.folder / "checkpoints").iterdir():
            if path.is_file() and self._read_checkpoint(path) is None and not path.exists():
                said.append(f"the checkpoint of run {path.name[:12]} was damaged; it was set aside")
        for path in (self.folder / "staged").iterdir():  # half-written by a process that was killed: nothing was lost
            with suppress(FileNotFoundError):
                if time.time() - path.stat().st_mtime > STALE_AFTER:
                    path.unlink()
        return said

    def _use(self, work: Callable[[sqlite3.Connection], T], *, write: bool = False) -> T:
        """Work on the index; on a new one if it turns out to be damaged."""
        try:
            return self._index.use(work, write=write)
        except DatabaseCorruptError:
            self._rebuild_index()
        try:
            return self._index.use(work, write=write)
        except DatabaseCorruptError as again:
            raise OSError(errno.EIO, f"the index of stored runs is damaged ({again})", str(self._index.path)) from None

    def _query(self, sql: str, *values: Any, write: bool = False) -> list[Any]:
        return self._use(lambda index: index.execute(sql, values).fetchall(), write=write)

    def _rebuild_index(self) -> None:
        """Set a damaged index aside and make a new one of what the files say about themselves."""

        def fill(index: sqlite3.Connection, names: dict[str, tuple[str, str]]) -> None:
            for path in sorted((self.folder / "objects").glob("*/*")):
                self._reindex(path, index)
            for run, (title, tags) in names.items():
                index.execute("UPDATE runs SET title = ?, tags = ? WHERE id = ?", (title, tags, run))

        try:
            if not self._index.renew(self.folder / "quarantine", fill):  # it was empty, or another process was first
                self._index.use(lambda index: fill(index, {}), write=True)
                return
        except DatabaseCorruptError as again:
            raise OSError(errno.EIO, f"the index of stored runs is damaged ({again})", str(self._index.path)) from None
        kept = self._query("SELECT count(*) FROM runs")[0][0]
        self.repairs.append(
            f"the index of stored runs was damaged; it was set aside and made anew from the files: {kept} found, "
            "with those titles and tags that could still be read"
        )
        _log.warning(self.repairs[-1])

    def _reindex_all(self) -> list[str]:
        """List the files that the index does not name: of a process that was killed in between, or after damage."""
        listed = {str(row[0]) for row in self._query("SELECT content FROM runs")}
        orphans = [path for path in (self.folder / "objects").glob("*/*") if path.name not in listed]
        return [said for path in orphans for said in self._use(partial(self._reindex, path), write=True)]

    def _reindex(self, path: Path, index: sqlite3.Connection) -> list[str]:
        """List a file that no line of the index names, if it is whole and says what it is; else set it aside."""
        if index.execute("SELECT 1 FROM runs WHERE content = ?", (path.name,)).fetchone():
            return []
        if (data := _bytes(path)) is None:  # another process has deleted it meanwhile
            return []
        about = _metadata(unpack(data)) if hashlib.sha256(data).hexdigest() == path.name else None
        if about is None:
            self._quarantine(path)
            return [f"{path.name[:12]} belongs to no run and was set aside"]
        row = index.execute("SELECT title, tags, content FROM runs WHERE id = ?", (about["id"],)).fetchone()
        if row and self._object(row[2]).exists():
            path.unlink(missing_ok=True)
            return [f"{path.name[:12]} was a second file of run {about['id'][:12]} and was removed"]
        if row:
            about |= {"title": row[0], "tags": row[1]}
            index.execute("DELETE FROM runs WHERE id = ?", (about["id"],))
        index.execute(_INSERT, {"evicted": 0, **about, "content": path.name, "bytes": len(data)})
        return [f"run {about['id'][:12]} was not listed; its file is whole and it is listed again"]

    def keep_checkpoint(self, run: str, experiment: Experiment, state: bytes) -> None:
        """Replace the checkpoint of a run.

        Raises
        ------
        OSError
            The disk is full or cannot be written; the checkpoint before it stays.
        """
        text = experiment.model_dump_json().encode()
        body = len(text).to_bytes(4, "little") + text + state
        atomic_write(self._checkpoint(run), hashlib.sha256(body).digest() + body, staging=self.folder / "staged")

    def checkpoint(self, run: str) -> bytes | None:
        """The last checkpoint of a run, or None if there is none that can be trusted."""
        found = self._read_checkpoint(self._checkpoint(run)) if RUN_ID.fullmatch(run) else None
        return found[1] if found else None

    def checkpoint_experiment(self, run: str) -> str | None:
        """The experiment of a run's checkpoint, or None if there is none that can be trusted."""
        return self._intact_experiment(self._checkpoint(run)) if RUN_ID.fullmatch(run) else None

    def checkpoints(self) -> list[tuple[str, str]]:
        """Runs that were never finished: their ids and experiments, newest first."""
        finished = {row[0] for row in self._query("SELECT id FROM runs")}
        found = []
        for path in (self.folder / "checkpoints").iterdir():
            if (
                path.name not in finished
                and RUN_ID.fullmatch(path.name)
                and (text := self._intact_experiment(path)) is not None
            ):
                with suppress(FileNotFoundError):
                    found.append((path.stat().st_mtime, path.name, text))
        return [(run, text) for _, run, text in sorted(found, reverse=True)]

    def _read_checkpoint(self, path: Path) -> tuple[str, bytes] | None:
        try:
            data = path.read_bytes()
        except OSError:
            return None
        digest, body = data[:32], data[32:]
        if hashlib.sha256(body).digest() != digest:
            self._quarantine(path)
            return None
        end = 4 + int.from_bytes(body[:4], "little")
        return body[4:end].decode(), body[end:]

    def _intact_experiment(self, path: Path) -> str | None:
        """The experiment of a checkpoint whose bits are all right; read again only when the file has changed."""
        try:
            found = path.stat()
        except OSError:
            return None
        mark = found.st_mtime_ns, found.st_size
        if self._checkpoint_heads.get(path.name, (None, None))[0] != mark:
            content = self._read_checkpoint(path)
            self._checkpoint_heads[path.name] = mark, content[0] if content else None
        return self._checkpoint_heads[path.name][1]

    def drop_checkpoint(self, run: str) -> None:
        """A discarded run needs none."""
        if RUN_ID.fullmatch(run):
            self._checkpoint(run).unlink(missing_ok=True)

    def _object(self, content: Any) -> Path:
        name = content if isinstance(content, str) and re.fullmatch("[0-9a-f]{64}", content) else "unreadable"
        return self.folder / "objects" / name[:2] / name

    def _checkpoint(self, run: str) -> Path:
        return self.folder / "checkpoints" / run

    def _checked(self, run: str, content: Any) -> bytes | None:
        """A file that is what was written, or None if another process has just deleted the run."""
        path = self._object(content)

        def whole() -> bytes | None:
            data = _bytes(path) or b""
            return data if hashlib.sha256(data).hexdigest() == path.name else None

        def drop(index: sqlite3.Connection) -> bool:
            rows = index.execute("SELECT rowid, content FROM runs WHERE id IS ?", (run,)).fetchall()
            if whole() is not None or [row[1] for row in rows] != [content]:
                return False
            self._quarantine(path)
            index.execute("DELETE FROM runs WHERE rowid = ?", rows[0][:1])
            return True

        data = whole()
        if data is None and self._use(drop, write=True):
            raise CorruptFileError(
                f"the stored file of run {str(run)[:12]} is damaged; it was set aside and the run must be run again"
            )
        return data

    def _quarantine(self, path: Path) -> None:
        with suppress(FileNotFoundError):
            os.replace(path, self.folder / "quarantine" / f"{path.name}-{time.time_ns()}")


def _listed(row: tuple[Any, ...]) -> StoredRun | None:
    """A line of the index, unless a later version or a flipped bit has put there what cannot be read."""
    run, experiment, title, tags, created, seconds, size, evicted = row
    with suppress(UserError, ValueError, TypeError, OverflowError):
        datetime.fromtimestamp(created, UTC)
        return StoredRun(
            str(run),
            _known(experiment),
            str(title),
            str(tags),
            float(created),
            float(seconds),
            int(size),
            bool(evicted),
        )
    return None


def _metadata(arrays: dict[str, Any]) -> dict[str, Any] | None:
    """What a file says about itself: a line of the index. None for files of the first versions, which did not."""
    if "about" not in arrays:
        return None
    found: dict[str, Any] = json.loads(arrays["about"].tobytes())
    return found


def _correct_row(row: int, about: dict[str, Any], index: sqlite3.Connection) -> list[str]:
    """Make a line of the index say what its file says; a sentence if it did not."""
    found = index.execute("SELECT id, experiment, created, seconds FROM runs WHERE rowid = ?", (row,)).fetchone()
    if found is None or list(found) == [about[name] for name in ("id", "experiment", "created", "seconds")]:
        return []
    index.execute(
        "UPDATE OR REPLACE runs SET id = :id, experiment = :experiment, created = :created, seconds = :seconds "
        "WHERE rowid = :row",
        {**about, "row": row},
    )
    return [f"the line of run {about['id'][:12]} in the index was damaged; it was mended from the run's file"]


def _bytes(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
