"""Finished runs and checkpoints on disk: an SQLite index over immutable, checksummed files.

A file is staged, synced, renamed to the name of its own content and only then indexed, so that a kill at any moment
leaves either the whole of it or nothing. What is read back is checked; a file that does not match is set aside.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from .cache import home
from .experiment import MAX_TEXT, Experiment, Refused, read
from .result import Result
from .trace import History

SCHEMA = 1
RUN = re.compile("[0-9a-f]{64}")  # what a run's id looks like; anything else is no name for a file
FLOOR = 200 * 2**20  # bytes that must be free before a run starts
_TABLE = """
CREATE TABLE IF NOT EXISTS runs (
    id TEXT PRIMARY KEY, experiment TEXT NOT NULL, title TEXT NOT NULL, tags TEXT NOT NULL DEFAULT '',
    created REAL NOT NULL, seconds REAL NOT NULL, content TEXT NOT NULL, bytes INTEGER NOT NULL
)
"""


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


class Corrupt(ValueError):  # noqa: N818 - what a reader of the sentence calls it
    """A stored file that is not what was written, said in one sentence."""


class Store:
    """Runs under a folder; safe to use from several processes at once.

    Parameters
    ----------
    folder : Path, optional
        ``BANDITS_HOME`` or the user's data directory by default.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or home()
        for name in ("objects", "checkpoints", "quarantine"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        with self._index() as index:
            index.execute("PRAGMA journal_mode=WAL")
            index.execute(_TABLE)
            index.execute(f"PRAGMA user_version={SCHEMA}")

    @contextmanager
    def _index(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(self.folder / "index.sqlite", timeout=30)) as connection, connection:
            yield connection

    def require_space(self) -> None:
        """Refuse to begin what could not be kept.

        Raises
        ------
        Refused
        """
        free = shutil.disk_usage(self.folder).free
        if free < FLOOR:
            raise Refused(
                f"the disk under {self.folder} has {free / 2**20:,.0f} MiB left; a run needs {FLOOR / 2**20:,.0f} MiB"
            )

    def put(self, experiment: Experiment, histories: dict[str, History], seconds: float) -> None:
        """Keep a finished run; one that is there already is left as it is.

        Raises
        ------
        OSError
            The disk is full or cannot be written; nothing half-written stays.
        """
        data = pack({f"{i}/{k}": v for i, h in enumerate(histories.values()) for k, v in h.since(0, 0, 0).items()})
        content = hashlib.sha256(data).hexdigest()
        _write(self._object(content), data)
        title = ", ".join(experiment.labels)
        text = experiment.model_dump_json()
        row = (experiment.hash, text, title, time.time(), seconds, content, len(data))
        with self._index() as index:
            written = index.execute(
                "INSERT INTO runs (id, experiment, title, created, seconds, content, bytes) "
                "VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING",
                row,
            ).rowcount
            current = index.execute("SELECT content FROM runs WHERE id = ?", (experiment.hash,)).fetchone()[0]
        if not written and current != content:  # kept before, with other times in it
            self._object(content).unlink(missing_ok=True)

    def get(self, run: str) -> Result | None:
        """A stored run, or None if it is not here.

        Raises
        ------
        Corrupt
            Its file was damaged; it has been set aside and the run is no longer listed.
        """
        with self._index() as index:
            row = index.execute("SELECT experiment, content FROM runs WHERE id = ?", (run,)).fetchone()
        if row is None:
            return None
        experiment = read(row[0])
        arrays = unpack(self._checked(run, row[1]))
        n_items = experiment.simulator_class().describe(experiment.simulator).n_items
        histories = {}
        for i, label in enumerate(experiment.labels):
            history = History(experiment.steps, experiment.replications, n_items)
            prefix = f"{i}/"
            history.merge({k[len(prefix) :]: v for k, v in arrays.items() if k.startswith(prefix)})
            histories[label] = history
        return Result(experiment, histories)

    def runs(self) -> list[StoredRun]:
        """All stored runs, newest first."""
        with self._index() as index:
            rows = index.execute(
                "SELECT id, experiment, title, tags, created, seconds, bytes FROM runs ORDER BY created DESC"
            ).fetchall()
        found = []
        for run, experiment, *rest in rows:
            with suppress(Refused):  # written by a version whose parameters this one does not know
                found.append(StoredRun(run, _known(experiment), *rest))
        return found

    def rename(self, run: str, title: str) -> None:
        """Give a run another title."""
        with self._index() as index:
            index.execute("UPDATE runs SET title = ? WHERE id = ?", (title, run))

    def tag(self, run: str, tags: str) -> None:
        """Replace a run's tags."""
        with self._index() as index:
            index.execute("UPDATE runs SET tags = ? WHERE id = ?", (tags, run))

    def delete(self, run: str) -> None:
        """Forget a run, and its file unless another run has the same content."""
        with self._index() as index:
            row = index.execute("DELETE FROM runs WHERE id = ? RETURNING content", (run,)).fetchone()
            kept = row and index.execute("SELECT 1 FROM runs WHERE content = ?", row).fetchone()
        if row and not kept:
            self._object(row[0]).unlink(missing_ok=True)
        self.drop_checkpoint(run)

    def check(self) -> list[str]:
        """Read every file; returns a sentence for each that was damaged or left behind, and sets it aside."""
        with self._index() as index:
            rows = index.execute("SELECT id, content FROM runs").fetchall()
        said = []
        for run, content in rows:
            try:
                self._checked(run, content)
            except Corrupt as sentence:
                said.append(str(sentence))
        known = {content for _, content in rows}
        for path in (self.folder / "objects").glob("*/*"):
            if path.name not in known:
                said.append(f"{path.name[:12]} belongs to no run and was removed")
                path.unlink(missing_ok=True)
        return said

    def keep_checkpoint(self, run: str, experiment: Experiment, state: bytes) -> None:
        """Replace the checkpoint of a run.

        Raises
        ------
        OSError
            The disk is full or cannot be written; the checkpoint before it stays.
        """
        text = experiment.model_dump_json().encode()
        body = len(text).to_bytes(4, "little") + text + state
        _write(self._checkpoint(run), hashlib.sha256(body).digest() + body)

    def checkpoint(self, run: str) -> bytes | None:
        """The last checkpoint of a run, or None if there is none that can be trusted."""
        found = self._read_checkpoint(self._checkpoint(run)) if RUN.fullmatch(run) else None
        return found[1] if found else None

    def checkpoints(self) -> list[tuple[str, str]]:
        """Runs that were never finished: their ids and experiments, newest first."""
        with self._index() as index:
            finished = {row[0] for row in index.execute("SELECT id FROM runs")}
        paths = [p for p in (self.folder / "checkpoints").iterdir() if p.name not in finished and "." not in p.name]
        newest = sorted(paths, key=lambda p: p.stat().st_mtime, reverse=True)
        found = [(path.name, _experiment_of(path)) for path in newest]
        return [(run, text) for run, text in found if text is not None]

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

    def drop_checkpoint(self, run: str) -> None:
        """A discarded run needs none."""
        if RUN.fullmatch(run):
            self._checkpoint(run).unlink(missing_ok=True)

    def _object(self, content: str) -> Path:
        return self.folder / "objects" / content[:2] / content

    def _checkpoint(self, run: str) -> Path:
        return self.folder / "checkpoints" / run

    def _checked(self, run: str, content: str) -> bytes:
        path = self._object(content)
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            data = b""
        if hashlib.sha256(data).hexdigest() == content:
            return data
        self._quarantine(path)
        with self._index() as index:
            index.execute("DELETE FROM runs WHERE id = ?", (run,))
        raise Corrupt(f"the stored file of run {run[:12]} is damaged; it was set aside and the run must be run again")

    def _quarantine(self, path: Path) -> None:
        with suppress(FileNotFoundError):
            os.replace(path, self.folder / "quarantine" / f"{path.name}-{time.time_ns()}")


def _experiment_of(path: Path) -> str | None:
    """The experiment at the head of a checkpoint, for a list; whoever goes on from it has all of it checked."""
    with suppress(OSError, UnicodeDecodeError), path.open("rb") as file:
        file.seek(32)
        return file.read(min(int.from_bytes(file.read(4), "little"), MAX_TEXT)).decode()
    return None


def pack(arrays: dict[str, Any]) -> bytes:
    """Arrays by name as compressed bytes, without pickles."""
    buffer = io.BytesIO()
    np.savez(buffer, **{k.replace("/", "|"): v for k, v in arrays.items()})
    raw = buffer.getvalue()
    return len(raw).to_bytes(8, "little") + bytes(pa.compress(raw, codec="zstd", asbytes=True))


def unpack(data: bytes) -> dict[str, Any]:
    """What `pack` was given."""
    raw = pa.decompress(data[8:], int.from_bytes(data[:8], "little"), codec="zstd", asbytes=True)
    with np.load(io.BytesIO(raw), allow_pickle=False) as stored:
        return {k.replace("|", "/"): stored[k] for k in stored.files}


def _write(path: Path, data: bytes) -> None:
    """All or nothing: staged beside its place, synced, renamed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, staged = tempfile.mkstemp(dir=path.parent, suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(staged, path)
    except BaseException:
        Path(staged).unlink(missing_ok=True)
        raise
