"""Compute experiments and blocks of sweeps in a worker process, ``python -m bandits.runtime.worker``.

Whatever comes in during a race ends it early: its state is handed over, so that it can go on elsewhere.
A message is a JSON header line and, where the header gives its length, that many bytes of an npz archive. The
worker imports and compiles before it says ``ready``, so that a run's first points come at once.
"""

from __future__ import annotations

import importlib
import json
import os
import queue
import sys
import threading
import time
from typing import Any, BinaryIO

import numpy as np

from bandits.base.errors import UserError
from bandits.base.files import pack, unpack
from bandits.base.processes import NICE

UPDATE_INTERVAL = 0.25  # seconds between news
CHECKPOINT_INTERVAL = 2.0  # seconds between saved states

HANDLERS = {"sweep": "bandits.sweeps.execution.block_handler"}  # the only modules that a message may name

Message = tuple[dict[str, Any], dict[str, Any]]


def send(stream: BinaryIO, header: dict[str, Any], arrays: dict[str, Any] | None = None) -> None:
    """Write one message."""
    payload = pack(arrays, compressed=False) if arrays else b""
    stream.write(json.dumps({**header, "bytes": len(payload)}).encode() + b"\n")
    stream.write(payload)
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
    return header, unpack(payload, compressed=False) if payload else {}


def main() -> None:
    """Serve until standard input ends."""
    if hasattr(os, "nice"):  # whoever looks at a page goes first
        os.nice(NICE)
    out, commands = sys.stdout.buffer, sys.stdin.buffer
    sys.stdout = sys.stderr  # whatever a library prints must not get between the messages
    _warm()
    send(out, {"event": "ready"})
    inbox: queue.SimpleQueue[Message | None] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(commands, inbox), daemon=True).start()
    while (received := inbox.get()) is not None:
        header, saved = received
        try:
            if "experiment" in header:
                _race(header["experiment"], saved, out, inbox)
            elif kind := next((field for field in HANDLERS if field in header), None):
                _task(kind, header, out, inbox)
            # else told to leave what had just ended
        except PipeClosedError:
            return
        except Exception as error:  # noqa: BLE001 - the server tells the user, the worker lives on
            message = str(error) if isinstance(error, UserError) else f"{type(error).__name__}: {error}"
            send(out, {"event": "failed", "error": message})


class PipeClosedError(Exception):
    """The server has closed the pipe: nobody waits for this race any more."""


def _listen(commands: BinaryIO, inbox: queue.SimpleQueue[Message | None]) -> None:
    while (message := receive(commands)) is not None:
        inbox.put(message)
    inbox.put(None)


def _warm() -> None:
    from bandits.experiments.experiment import Experiment
    from bandits.experiments.race import Race, run_to_end

    kinds = [{"kind": kind} for kind in ("linucb", "lints", "epsilon_greedy", "logistic_ts", "sgd_ts", "random")]
    run_to_end(Race(Experiment.model_validate({"agents": kinds, "steps": 20, "replications": 2})))


def _race(text: dict[str, Any], saved: dict[str, Any], out: BinaryIO, inbox: queue.SimpleQueue[Message | None]) -> None:
    from bandits.experiments.experiment import read
    from bandits.experiments.race import Race

    race = Race(read(text), background=True)
    sent = dict.fromkeys(race.histories, 0)
    chunk, reported = 20, time.monotonic()
    due = reported + CHECKPOINT_INTERVAL

    def tell() -> None:
        for label, history in race.histories.items():
            header = {"event": "news", "label": label, "waiting": race.waiting(label)}
            send(out, header, history.since(sent[label]))
            sent[label] = history.step
        send(out, {"event": "tick", "step": race.step})

    def keep() -> None:
        send(out, {"event": "checkpoint"}, {k: np.asarray(v) for k, v in race.state_dict().items()})

    try:
        if saved:
            race.load_state_dict(saved)
        while not race.done:
            began = time.monotonic()
            for _ in race.advance(chunk):
                pass
            now = time.monotonic()
            if now - reported >= UPDATE_INTERVAL:
                tell()
                reported = now
            if now >= due:
                keep()
                took = time.monotonic() - now  # a large state must not take all the time there is
                due = now + took + max(CHECKPOINT_INTERVAL, min(20 * took, 60.0))
            if not inbox.empty():
                if inbox.get() is None:
                    raise PipeClosedError
                tell()
                keep()
                send(out, {"event": "left"})
                return
            # aim at chunks of a tenth of a second: long enough to be cheap, short enough to look alive
            chunk = int(np.clip(chunk * 0.1 / max(now - began, 1e-3), 10, 5000))
    finally:
        race.close()
    tell()
    keep()
    send(out, {"event": "finished"})


def _task(kind: str, header: dict[str, Any], out: BinaryIO, inbox: queue.SimpleQueue[Message | None]) -> None:
    """Let the handler of a kind compute a task; it stops early when another message has arrived."""
    last = time.monotonic()

    def tick(step: int) -> None:
        nonlocal last
        if time.monotonic() - last >= UPDATE_INTERVAL:
            send(out, {"event": "tick", "step": step})
            last = time.monotonic()

    handler = importlib.import_module(HANDLERS[kind])
    arrays = handler.handle(header, tick, lambda: not inbox.empty())
    if arrays is not None:
        send(out, {"event": "finished"}, arrays)
    elif inbox.get() is None:
        raise PipeClosedError
    else:
        send(out, {"event": "left"})


if __name__ == "__main__":
    try:
        main()
    except BrokenPipeError:  # the server is gone: nobody is left to tell
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
