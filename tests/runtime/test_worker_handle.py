"""The process of a worker and the thread that writes to it."""

from __future__ import annotations

import subprocess
from threading import Thread

import pytest

from bandits.runtime.worker_handle import start_worker


def test_a_worker_without_a_thread_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    started = []

    class Process(subprocess.Popen[bytes]):
        def __init__(self, *arguments: object, **options: object) -> None:
            super().__init__(["sleep", "600"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            started.append(self)

    def refuse(_: Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(subprocess, "Popen", Process)
    monkeypatch.setattr(Thread, "start", refuse)
    with pytest.raises(RuntimeError, match="can't start new thread"):
        start_worker()
    (process,) = started
    assert process.returncode is not None
    assert process.stdin is not None
    assert process.stdin.closed
