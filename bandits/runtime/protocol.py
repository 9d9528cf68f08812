"""Exchange messages with worker processes: a JSON header and, optionally, arrays.

A message is a line of JSON and, where its field ``bytes`` is not 0, that many bytes of an npz archive.
"""

from __future__ import annotations

import json
from typing import Any, BinaryIO

from bandits.base.files import pack, unpack

UPDATE_INTERVAL = 0.25  # seconds between progress messages

Message = tuple[dict[str, Any], dict[str, Any]]


def send(stream: BinaryIO, header: dict[str, Any], arrays: dict[str, Any] | None = None) -> None:
    """Write one message.

    Raises
    ------
    OSError
        The stream is closed.
    """
    payload = pack(arrays, compressed=False) if arrays else b""
    stream.write(json.dumps({**header, "bytes": len(payload)}).encode() + b"\n")
    stream.write(payload)
    stream.flush()


def receive(stream: BinaryIO) -> Message | None:
    """Read one message; return None at the end of the stream, also if it ends within a message."""
    line = stream.readline()
    if not line.endswith(b"\n"):
        return None
    header = json.loads(line)
    payload = stream.read(header["bytes"])
    if len(payload) < header["bytes"]:
        return None
    return header, unpack(payload, compressed=False) if payload else {}
