"""Compute experiments and blocks of sweeps in a worker process, ``python -m
bandits.runtime.worker [FOLDER]``.

A worker computes some of the agents of a run. Messages may reach it meanwhile: ``take`` adds
agents, ``give`` asks for some of its agents, and anything else ends its share of the run. What it
gives back comes with a checkpoint, from which another process can continue. It compiles
what its run needs, and ahead of the next run while it has none (`bandits.runtime.kernels`). Large
states are files in FOLDER. See `bandits.runtime.protocol` for the format of messages."""

from __future__ import annotations

import importlib
import os
import queue
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from bandits.base.errors import UserError
from bandits.base.processes import NICE, PREFIX
from bandits.experiments.experiment import Experiment, read
from bandits.experiments.lockstep import Lockstep

from . import kernels, protocol
from .protocol import UPDATE_INTERVAL, Message, receive

# seconds between checkpoints
CHECKPOINT_INTERVAL = 2.0
# bytes of a state that is sent as a message; a larger one is written to a file
MAX_SENT = 4 * 2**20
# steps, before the cost of a step is known
FIRST_CHUNK = 1
# seconds between signs of life
HEARTBEAT = 2.0

# seconds without a message after which a worker compiles ahead
IDLE = 1.0

# the only modules that a message may name
HANDLERS = {"sweep": "bandits.sweeps.blocks"}

Inbox = queue.SimpleQueue[Message | None]
_writing = threading.Lock()


class PipeClosedError(Exception):
    """The server has closed the pipe: the result is no longer wanted."""


def main() -> None:
    """Serve until standard input ends."""
    # the pages are served first
    if hasattr(os, "nice"):
        os.nice(NICE)
    out, commands = sys.stdout.buffer, sys.stdin.buffer
    # output of libraries must not mix with the messages
    sys.stdout = sys.stderr
    compiled = _Kernels(out)
    send(out, {"event": "ready"})
    threading.Thread(target=_beat, args=(out,), daemon=True).start()
    inbox: Inbox = queue.SimpleQueue()
    threading.Thread(target=_read_commands, args=(commands, inbox), daemon=True).start()
    while (received := compiled.next_message(inbox)) is not None:
        header, saved = received
        try:
            if "experiment" in header:
                _run_agents(header, saved, out, inbox, compiled)
            elif kind := next((field for field in HANDLERS if field in header), None):
                _run_task(kind, header, out, inbox)
            # else: a message about work that has just ended
        except PipeClosedError:
            return
        except Exception as error:  # noqa: BLE001
            message = (
                str(error) if isinstance(error, UserError) else f"{type(error).__name__}: {error}"
            )
            send(out, {"event": "failed", "error": message})
        finally:
            compiled.end()


def send(out: BinaryIO, header: dict[str, Any], arrays: dict[str, Any] | None = None) -> None:
    """Write one message; two threads do."""
    with _writing:
        protocol.send(out, header, arrays)


def _beat(out: BinaryIO) -> None:
    """Report that this process is alive, also within a step that takes minutes."""
    # the server has ended, which the main thread notices
    with suppress(OSError):
        while True:
            time.sleep(HEARTBEAT)
            send(out, {"event": "alive"})


def _read_commands(commands: BinaryIO, inbox: Inbox) -> None:
    while (message := receive(commands)) is not None:
        inbox.put(message)
    inbox.put(None)


class _Kernels:
    """Reports which kernels are compiled for a run, and compiles ahead while there is none."""

    def __init__(self, out: BinaryIO) -> None:
        self._out, self._ahead, self._reporting = out, list(kernels.USUAL), False
        kernels.compile_once(self._ready)

    def begin(self, experiment: Experiment) -> None:
        """State how many kernels a run still needs, and from now on which are there."""
        if names := kernels.missing(experiment):
            send(self._out, {"event": "compiling", "kernels": names})
            self._reporting = True

    def end(self) -> None:
        """Report no more."""
        self._reporting = False

    def next_message(self, inbox: Inbox) -> Message | None:
        """Wait for a message; compile the kernels of usual agents until it comes."""
        while self._ahead:
            with suppress(queue.Empty):
                return inbox.get(timeout=IDLE)
            with kernels.warming() as alone:
                if alone:
                    kernels.compile_for(self._ahead.pop(0))
        return inbox.get()

    def _ready(self, name: str) -> None:
        if self._reporting:
            send(self._out, {"event": "compiled", "kernel": name})


def _run_agents(
    header: dict[str, Any],
    saved: dict[str, Any],
    out: BinaryIO,
    inbox: Inbox,
    compiled: _Kernels,
) -> None:
    """Run some agents of an experiment from a saved state, and send histories, steps and
    checkpoints.
    """
    experiment = read(header["experiment"])
    compiled.begin(experiment)
    labels = experiment.labels
    lockstep = Lockstep(experiment, header["agents"], background=True)
    sent = dict.fromkeys(labels, 0)
    chunk, last_update = FIRST_CHUNK, time.monotonic()
    next_checkpoint = last_update + CHECKPOINT_INTERVAL

    def send_histories() -> None:
        for label, history in lockstep.histories.items():
            added = {"event": "history", "label": label, "waiting": lockstep.waiting(label)}
            send(out, added, history.since(sent[label]))
            sent[label] = history.step
        send(out, {"event": "tick", "step": lockstep.step})

    def send_checkpoint(agents: list[int] | None = None, *, last: bool) -> None:
        chosen = [r.agent for r in lockstep.runners.values() if agents is None or r.agent in agents]
        _send_state(out, {"event": "checkpoint", "last": last}, lockstep, chosen)

    def leave() -> None:
        send_histories()
        send_checkpoint(last=True)
        send(out, {"event": "left"})

    def give(wanted: list[int]) -> None:
        agents = [
            i for i in wanted if labels[i] in lockstep.runners and not lockstep.finished(labels[i])
        ]
        send_histories()
        send_checkpoint(agents, last=False)
        for i in agents:
            lockstep.remove(i)
        send(out, {"event": "gave", "agents": agents})

    def take(agents: list[int], state: dict[str, Any]) -> None:
        for i in agents:
            lockstep.add(i, state)
            sent[labels[i]] = 0
        # a copy of what the agents hold
        state.clear()

    try:
        lockstep.load_state_dict(saved)
        saved.clear()
        while not lockstep.done:
            began = lockstep.seconds
            for _ in lockstep.advance(chunk):
                pass
            now = time.monotonic()
            # chunks of about 0.1 s: little overhead, and plots that move
            chunk = int(np.clip(chunk * 0.1 / max(lockstep.seconds - began, 1e-3), 1, 5000))
            if now - last_update >= UPDATE_INTERVAL:
                send_histories()
                last_update = now
            if now >= next_checkpoint:
                send_checkpoint(last=False)
                # writing a large state must not take most of the time
                took = time.monotonic() - now
                next_checkpoint = now + took + max(CHECKPOINT_INTERVAL, min(20 * took, 60.0))
            while not inbox.empty():
                if (received := inbox.get()) is None:
                    raise PipeClosedError
                message, arrays = received
                if message.get("command") == "give":
                    give(message["agents"])
                elif message.get("command") == "take":
                    take(message["agents"], arrays)
                    # they may be slower
                    chunk = FIRST_CHUNK
                else:
                    return leave()
    finally:
        lockstep.close()
    send_histories()
    # the end of the run is stored soon, or a state of the agents that go on
    send_checkpoint(last=False)
    send(
        out, {"event": "finished", "agents": [runner.agent for runner in lockstep.runners.values()]}
    )


def _send_state(
    out: BinaryIO, header: dict[str, Any], lockstep: Lockstep, agents: list[int]
) -> None:
    """Send the state of some agents: in the message, or else in a file that it names.

    The states are written one after the other, and what agents hold is not copied. On a
    disk that is full the message holds them.
    """
    if agents and (folder := sys.argv[1:]) and _state_bytes(lockstep.experiment) > MAX_SENT:
        path = None
        try:
            handle, name = tempfile.mkstemp(dir=folder[0], prefix=f"{PREFIX}{os.getpid()}-")
            path = Path(name)
            with os.fdopen(handle, "wb") as file:
                for agent in agents:
                    protocol.send(file, {}, lockstep.state_dict([agent], views=True))
        except OSError:
            if path is not None:
                path.unlink(missing_ok=True)
        else:
            return send(out, {**header, "file": name})
    send(out, header, lockstep.state_dict(agents, views=True))


def _state_bytes(experiment: Experiment) -> int:
    """Estimate the bytes of the state of all agents and of their histories."""
    spec = experiment.simulator_class().describe(experiment.simulator)
    own = sum(
        experiment.agent_class(i).memory(agent, spec) for i, agent in enumerate(experiment.agents)
    )
    histories = len(experiment.agents) * experiment.empty_history().nbytes
    return experiment.replications * own + histories


def _run_task(kind: str, header: dict[str, Any], out: BinaryIO, inbox: Inbox) -> None:
    """Compute a task with the handler of its kind; it stops early when another message arrives."""
    last_update = time.monotonic()

    def report(step: int) -> None:
        nonlocal last_update
        if time.monotonic() - last_update >= UPDATE_INTERVAL:
            send(out, {"event": "tick", "step": step})
            last_update = time.monotonic()

    handler = importlib.import_module(HANDLERS[kind])
    arrays = handler.handle(header, report, lambda: not inbox.empty())
    if arrays is not None:
        send(out, {"event": "finished"}, arrays)
    elif inbox.get() is None:
        raise PipeClosedError
    else:
        send(out, {"event": "left"})


if __name__ == "__main__":
    try:
        main()
    except BrokenPipeError:
        # the server has ended
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
