"""Checkpoints: the latest state of each unfinished run, one checksummed file per run."""

from __future__ import annotations

import re
from collections.abc import Callable, Container
from contextlib import suppress
from pathlib import Path

from bandits.base.files import (
    Arrays,
    atomic_seal,
    atomic_write,
    is_sealed,
    seal,
    unpack_file,
)
from bandits.experiments.experiment import Experiment

# an experiment's hash; any other text must not become a file name
RUN_ID = re.compile("[0-9a-f]{64}")


class Checkpoints:
    """A folder of checkpoints.

    A file holds the SHA-256 of the run and the rest (32 bytes, `bandits.base.files.seal`), the
    length of the experiment's JSON (4 bytes, little endian), that JSON, and the packed state. Under
    another run's name its checksum is wrong.

    Parameters
    ----------
    folder : Path
    staging : Path
        Folder for temporary files, on the same file system.
    quarantine : callable
        Moves a damaged file out of the way.

    """

    def __init__(self, folder: Path, staging: Path, quarantine: Callable[[Path], None]) -> None:
        self.folder, self._staging, self._quarantine = folder, staging, quarantine
        # by run: file version, experiment
        self._experiments: dict[str, tuple[tuple[int, int], str | None]] = {}
        # a folder that cannot be written can be read
        with suppress(OSError):
            folder.mkdir(exist_ok=True)

    def write(self, run: str, experiment: Experiment, state: bytes | Path) -> None:
        """Replace the checkpoint of a run.

        Parameters
        ----------
        state : bytes or Path
            As `pack` makes it, or the file of a large one; never as a whole in memory.

        Raises
        ------
        OSError
            The disk is full or cannot be written; the previous checkpoint stays.
        """
        text = experiment.model_dump_json().encode()
        self.folder.mkdir(exist_ok=True)
        about = len(text).to_bytes(4, "little") + text
        if isinstance(state, bytes):
            atomic_write(self.folder / run, seal(run, about + state), staging=self._staging)
        else:
            self._staging.mkdir(exist_ok=True)
            atomic_seal(self.folder / run, run, about, state, self._staging)

    def state(self, run: str) -> bytes | None:
        """Return the state in a run's checkpoint, or None if there is no intact one."""
        path = self.folder / run
        content = self._read(path) if RUN_ID.fullmatch(run) else None
        if content is None:
            return None
        with path.open("rb") as file:
            file.seek(content[1])
            return file.read()

    def arrays(self, run: str) -> Arrays:
        """Return the state in a run's checkpoint as arrays.

        A file that holds no arrays is quarantined.
        """
        path = self.folder / run
        content = self._read(path) if RUN_ID.fullmatch(run) else None
        try:
            return {} if content is None else unpack_file(path, content[1], self._staging)
        except FileNotFoundError:
            return {}
        except ValueError:
            # forged: its checksum is right
            self._quarantine(self.folder / run)
            return {}

    def experiment(self, run: str) -> str | None:
        """Return the experiment's JSON in a run's checkpoint, or None if there is no intact one.

        The file is read again only when it has changed.
        """
        if not RUN_ID.fullmatch(run):
            return None
        path = self.folder / run
        try:
            status = path.stat()
        except OSError:
            return None
        version = status.st_mtime_ns, status.st_size
        if self._experiments.get(run, (None, None))[0] != version:
            content = self._read(path)
            self._experiments[run] = version, content[0] if content else None
        return self._experiments[run][1]

    def drop(self, run: str) -> None:
        """Delete the checkpoint of a run, if there is one."""
        if RUN_ID.fullmatch(run):
            (self.folder / run).unlink(missing_ok=True)

    def unfinished(self, finished: Container[str]) -> list[tuple[str, str]]:
        """List the runs that have an intact checkpoint and are not in ``finished``: id and JSON,
        newest first.
        """
        rows = []
        for path in self.folder.glob("*"):
            if path.name not in finished and (text := self.experiment(path.name)) is not None:
                with suppress(FileNotFoundError):
                    rows.append((path.stat().st_mtime, path.name, text))
        return [(run, text) for _, run, text in sorted(rows, reverse=True)]

    def sizes(self) -> dict[str, int]:
        """Return the bytes of each checkpoint, by run."""
        sizes = {}
        for path in self.folder.glob("*"):
            # deleted by another process
            with suppress(FileNotFoundError):
                sizes[path.name] = path.stat().st_size
        return sizes

    def check(self) -> list[str]:
        """Read every checkpoint.

        Return one sentence for each damaged file, which is quarantined.
        """
        return [
            f"the checkpoint of run {path.name[:12]} was damaged or of another run; it was set "
            "aside"
            for path in self.folder.glob("*")
            if path.is_file() and self._read(path) is None and not path.exists()
        ]

    def _read(self, path: Path) -> tuple[str, int] | None:
        """Verify a file; return the experiment's JSON and the place where the state begins."""
        try:
            # of a forged file the experiment is no text
            with path.open("rb") as file, suppress(ValueError):
                if is_sealed(path.name, file):
                    file.seek(32)
                    text = file.read(int.from_bytes(file.read(4), "little")).decode()
                    return text, file.tell()
        except OSError:
            return None
        self._quarantine(path)
        return None
