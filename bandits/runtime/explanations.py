"""Explain decisions in a process of its own, with a limit of time, so that no page waits for the computation.

``python -m bandits.runtime.explanations`` reads one question per line of standard input and answers each in one line.
"""

from __future__ import annotations

import atexit
import json
import subprocess
import sys
import threading
from typing import Any

from bandits.base.errors import UserError
from bandits.base.formatting import count
from bandits.base.processes import run_main, start
from bandits.experiments.experiment import Experiment, read
from bandits.results.decision.why import Candidate, Switch, Why, why

LIMIT = 90.0  # seconds for one explanation
IDLE = 300.0  # seconds without a question after which the process ends
MAX_WAITING = 4


class BusyError(UserError):
    """Too many questions are waiting; the same question may be answered later."""


class Explainer:
    """Answers the questions of all users, one after the other.

    Parameters
    ----------
    limit : float
        Seconds after which the process is stopped and the question refused.
    idle : float
        Seconds without a question after which the process ends; the next question starts another.
    """

    def __init__(self, limit: float = LIMIT, idle: float = IDLE) -> None:
        self.limit, self._idle = limit, idle
        self._places, self._turn = threading.Semaphore(MAX_WAITING + 1), threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._rest: threading.Timer | None = None

    def ask(self, experiment: Experiment, agent: int | str, step: int, replication: int = 0) -> Why:
        """Explain one decision as `bandits.results.decision.why.why` does.

        Raises
        ------
        BusyError
            Too many questions are waiting.
        UserError
            The decision does not exist, or to explain it takes too long.
        """
        if not self._places.acquire(blocking=False):
            raise BusyError(f"{MAX_WAITING} explanations are waiting already; try again in a minute")
        try:
            with self._turn:
                return self._answer(experiment, agent, step, replication)
        finally:
            self._places.release()

    def close(self) -> None:
        """End the process."""
        with self._turn:
            self._end()

    def _answer(self, experiment: Experiment, agent: int | str, step: int, replication: int) -> Why:
        process = self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        text = experiment.model_dump_json()
        question = {"experiment": text, "agent": agent, "step": step, "replication": replication}
        timer = threading.Timer(self.limit, process.kill)
        timer.start()
        try:
            process.stdin.write(json.dumps(question) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except BrokenPipeError:  # it has ended: its exit status is reported
            line = ""
        finally:
            in_time = timer.is_alive()
            timer.cancel()
        if not line.endswith("\n"):
            status = self._end()
            if not in_time:
                name = experiment.labels[agent] if isinstance(agent, int) else agent
                raise UserError(
                    f"step {count(step)} of {name} was not explained: it took more than {self.limit:g} s, the limit"
                )
            raise UserError(f"the process that explains decisions ended with status {status}; see the server's log")
        self._rest = threading.Timer(self._idle, self.close)
        self._rest.daemon = True
        self._rest.start()
        answer = json.loads(line)
        if "error" in answer:
            raise UserError(answer["error"])
        return _from_json(answer["why"])

    def _started(self) -> subprocess.Popen[str]:
        if self._rest is not None:
            self._rest.cancel()
        if self._process is None or self._process.poll() is not None:
            self._process = start(__name__, output=subprocess.PIPE, keep_open=True)
            atexit.register(self._process.kill)
        return self._process

    def _end(self) -> int | None:
        """End the process and return its exit status; None where there is none."""
        if self._rest is not None:
            self._rest.cancel()
        process, self._process = self._process, None
        if process is None:
            return None
        atexit.unregister(process.kill)
        process.kill()
        status = process.wait()
        for pipe in (process.stdin, process.stdout):
            assert pipe is not None
            pipe.close()
        return status


def _from_json(values: list[Any]) -> Why:
    """Restore what JSON made of the named tuples: lists of their fields."""
    found = Why(*values)
    return found._replace(
        candidates=tuple(Candidate(*fields[:-1], tuple(fields[-1])) for fields in found.candidates),
        below=None if found.below is None else Switch(*found.below),
        above=None if found.above is None else Switch(*found.above),
    )


def main() -> int:
    """Answer until standard input ends."""
    out, sys.stdout = sys.stdout, sys.stderr  # output of libraries must not mix with the answers
    for line in sys.stdin:
        asked = json.loads(line)
        answer: dict[str, Any]
        try:
            answer = {"why": why(read(asked.pop("experiment")), **asked)}
        except UserError as error:
            answer = {"error": str(error)}
        print(json.dumps(answer), file=out, flush=True)
    return 0


if __name__ == "__main__":
    run_main(main)
