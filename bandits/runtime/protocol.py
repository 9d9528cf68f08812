"""Exchange messages with worker processes: a JSON header and, optionally, arrays.

A message is a line of JSON, whose field ``arrays`` lists name, type, shape and memory order of each
array, and then their bytes. Arrays may be large: they are written from where they are and read to
where they stay, without a copy.

A large state takes no memory of the server: its worker writes messages to a file, and the server
maps it (`mapped`), in which case the header names the file."""

from __future__ import annotations

import json
import mmap
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np

from bandits.base.mapped_arrays import array_at, parts

# seconds between progress messages
UPDATE_INTERVAL = 0.25

Message = tuple[dict[str, Any], dict[str, Any]]


def send(stream: BinaryIO, header: dict[str, Any], arrays: dict[str, Any] | None = None) -> None:
    """Write one message.

    Raises
    ------
    OSError
        The stream is closed.
    """
    made = {name: _contiguous(np.asarray(value)) for name, value in (arrays or {}).items()}
    described = [
        (name, array.dtype.str, array.shape, "F" if array.flags.fnc else "C")
        for name, array in made.items()
    ]
    stream.write(json.dumps({**header, "arrays": described}).encode() + b"\n")
    for array in made.values():
        for part in parts(array):
            stream.write(part)
    stream.flush()


def receive(stream: BinaryIO) -> Message | None:
    """Read one message; return None at the end of the stream, also if it ends within a message."""
    line = stream.readline()
    if not line.endswith(b"\n"):
        return None
    header, arrays = json.loads(line), {}
    for name, dtype, shape, order in header.pop("arrays"):
        arrays[name] = np.empty(shape, dtype, order)
        if cast(Any, stream).readinto(_bytes(arrays[name])) < arrays[name].nbytes:
            return None
    return header, arrays


def mapped(path: Path) -> dict[str, Any]:
    """Return the arrays of all messages in a file, which are read from it when they are used.

    The file may be deleted: its content stays for as long as the arrays do.

    Raises
    ------
    OSError
        The file cannot be read.
    """
    arrays: dict[str, Any] = {}
    # nothing can be mapped of an empty file
    if not path.stat().st_size:
        return arrays
    with path.open("rb") as file:
        content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        while line := file.readline():
            for name, dtype, shape, order in json.loads(line)["arrays"]:
                arrays[name] = array_at(content, file.tell(), dtype, shape, order)
                file.seek(arrays[name].nbytes, 1)
    return arrays


def _contiguous(array: np.ndarray) -> np.ndarray:
    return array if array.flags.forc else np.ascontiguousarray(array)


def _bytes(array: np.ndarray) -> memoryview:
    """View a contiguous array as bytes in the order of memory."""
    return array.reshape(-1, order="A").view(np.uint8).data
