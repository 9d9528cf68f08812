"""Exchange messages with worker processes: a JSON header and, optionally, arrays.

A message is a line of JSON, whose field ``arrays`` lists name, type, shape and memory order of each
array, and then their bytes. Arrays may be large: they are written from where they are and read to
where they stay, without a copy."""

from __future__ import annotations

import json
from typing import Any, BinaryIO, cast

import numpy as np

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
        stream.write(_bytes(array))
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


def _contiguous(array: np.ndarray) -> np.ndarray:
    return array if array.flags.forc else np.ascontiguousarray(array)


def _bytes(array: np.ndarray) -> memoryview:
    """View a contiguous array as bytes in the order of memory."""
    return array.reshape(-1, order="A").view(np.uint8).data
