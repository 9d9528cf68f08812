"""Checkpoints: the latest state of each unfinished run, one checksummed file per run."""

from __future__ import annotations

import re
from collections.abc import Callable, Container
from contextlib import suppress
from pathlib import Path

from bandits.base.files import Arrays, atomic_write, seal, unpack, unseal
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

    def write(self, run: str, experiment: Experiment, state: bytes) -> None:
        """Replace the checkpoint of a run.

        Raises
        ------
        OSError
            The disk is full or cannot be written; the previous checkpoint stays.
        """
        text = experiment.model_dump_json().encode()
        self.folder.mkdir(exist_ok=True)
        body = len(text).to_bytes(4, "little") + text + state
        atomic_write(self.folder / run, seal(run, body), staging=self._staging)

    def state(self, run: str) -> bytes | None:
        """Return the state in a run's checkpoint, or None if there is no intact one."""
        content = self._read(self.folder / run) if RUN_ID.fullmatch(run) else None
        return content[1] if content else None

    def arrays(self, run: str) -> Arrays:
        """Return the state in a run's checkpoint as arrays.

        A file that holds no arrays is quarantined.
        """
        state = self.state(run)
        try:
            return unpack(state) if state else {}
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

    def _read(self, path: Path) -> tuple[str, bytes] | None:
        try:
            data = path.read_bytes()
        except OSError:
            return None
        # forged: the experiment is no text
        with suppress(ValueError):
            if (body := unseal(path.name, data)) is not None:
                return _split(body)
        self._quarantine(path)
        return None


def _split(body: bytes) -> tuple[str, bytes]:
    end = 4 + int.from_bytes(body[:4], "little")
    return body[4:end].decode(), body[end:]
