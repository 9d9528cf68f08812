"""A worker process, ``python -m bandits.worker``: experiments from standard input, news on standard output.

A message is a JSON header line and, where the header gives its length, that many bytes of an npz archive. The
worker imports and compiles before it says ``ready``, so that a run's first points come at once.
"""

from __future__ import annotations

import io
import json
import os
import sys
import time
from typing import Any, BinaryIO

import numpy as np

UPDATE = 0.25  # seconds between news


def send(stream: BinaryIO, header: dict[str, Any], arrays: dict[str, Any] | None = None) -> None:
    """Write one message."""
    payload = b""
    if arrays:
        buffer = io.BytesIO()
        np.savez(buffer, **arrays)
        payload = buffer.getvalue()
    stream.write(json.dumps({**header, "bytes": len(payload)}).encode() + b"\n" + payload)
    stream.flush()


def receive(stream: BinaryIO) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """Read one message; None at the end of the stream."""
    line = stream.readline()
    if not line.endswith(b"\n"):  # the sender is gone, perhaps in the middle of a line
        return None
    header = json.loads(line)
    payload = stream.read(header["bytes"])
    if len(payload) < header["bytes"]:
        return None
    if not payload:
        return header, {}
    with np.load(io.BytesIO(payload), allow_pickle=False) as stored:
        return header, {name: stored[name] for name in stored.files}


def main() -> None:
    """Serve until standard input ends."""
    out, commands = sys.stdout.buffer, sys.stdin.buffer
    sys.stdout = sys.stderr  # whatever a library prints must not get between the messages
    _warm()
    send(out, {"event": "ready"})
    while (message := receive(commands)) is not None:
        try:
            _race(message[0]["experiment"], out)
        except Exception as error:  # noqa: BLE001 - the server tells the user, the worker lives on
            send(out, {"event": "failed", "error": f"{type(error).__name__}: {error}"})


def _warm() -> None:
    from . import run
    from .experiment import Experiment

    kinds = ({"kind": "linucb"}, {"kind": "lints"}, {"kind": "epsilon_greedy"}, {"kind": "random"})
    run(Experiment.model_validate({"agents": kinds, "steps": 20, "replications": 2}))


def _race(text: dict[str, Any], out: BinaryIO) -> None:
    from .experiment import Experiment
    from .race import Race

    race = Race(Experiment.model_validate(text), background=True)
    sent = {label: (0, 0, 0) for label in race.histories}
    chunk, told = 20, time.monotonic()
    try:
        while True:
            began = time.monotonic()
            for _ in race.advance(chunk):
                pass
            now = time.monotonic()
            if race.done or now - told >= UPDATE:
                for label, history in race.histories.items():
                    header = {"event": "news", "label": label, "waiting": race.waiting(label)}
                    send(out, header, history.since(*sent[label]))
                    sent[label] = (history.size, history.count_size, len(history.spectra))
                send(out, {"event": "tick", "step": race.step})
                told = now
            if race.done:
                break
            # aim at chunks of a tenth of a second: long enough to be cheap, short enough to look alive
            chunk = int(np.clip(chunk * 0.1 / max(now - began, 1e-3), 10, 5000))
    finally:
        race.close()
    send(out, {"event": "finished"})


if __name__ == "__main__":
    try:
        main()
    except BrokenPipeError:  # the server is gone: nobody is left to tell
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
