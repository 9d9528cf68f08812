"""The whole loop of a system in production on one machine: service, trainer and traffic, each a
process, started together and stopped together.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from bandits.base.errors import UserError
from bandits.base.processes import ChildTask, Line
from bandits.experiments.experiment import Experiment
from bandits.policy import Policy

from . import traffic
from .registry import Registry
from .rollout import RolloutParams
from .settings import ServiceParams
from .trainer import challenge, follow

SIMULATOR = {"kind": "petshop", "n_products": 10}
AGENT = {"kind": "epsilon_greedy", "epsilon": 0.1}
# a demonstration of minutes: steps are short, and a version that is as good is accepted
SETTINGS = ServiceParams(
    max_age=90.0,
    # the parts share one machine, which is often busy
    rollout=RolloutParams(steps=(0.2, 0.5), min_decisions=1_000, delta=0.05, max_latency=0.5),
)
PARTS = ("service", "trainer", "traffic")
# visitors from which the first champion has learned
LEARNED = 1_000
# of the simulator, for the first champion and the traffic alike
_SEED = 0
# seconds until a part that has ended is started again
_PAUSES = {"service": 0.5, "trainer": 120.0, "traffic": 0.5}
_EVERY = 0.1
# seconds until the service must answer
_PATIENCE = 60.0


class Loop:
    """Service, trainer and traffic of one simulator.

    A part that ends is started again: the service at once, the trainer after two minutes. All of
    them end with this process, with `stop`, and when the time is over.

    Parameters
    ----------
    folder : Path
        Of the service; one without a champion gets one that learned 1,000 visitors.
    simulator : mapping or str
        Parameters with a ``kind``, or the kind alone.
    agent : mapping or str
        Of the first champion.
    rate : float
        Decisions per second.
    seconds : float
        After which all parts are stopped.
    every : int
        Rewards after which a version is trained.
    params : ServiceParams
    report : callable
        Receives sentences: what was trained, and what was started again.

    Attributes
    ----------
    url : str
        Of the service.
    problem : str
        Why the loop ended before its time; empty: it did not.

    Raises
    ------
    UserError
        An argument is not allowed, or the simulator makes no traffic.
    """

    def __init__(
        self,
        folder: Path,
        simulator: Mapping[str, Any] | str = SIMULATOR,
        *,
        agent: Mapping[str, Any] | str = AGENT,
        rate: float = 100.0,
        seconds: float = 60.0,
        every: int = 2_000,
        params: ServiceParams = SETTINGS,
        report: Callable[[str], None] = lambda _: None,
    ) -> None:
        traffic.check(rate=rate, seconds=seconds)
        if every < 1:
            raise UserError(f"every: must be at least 1; got {every}")
        self.folder, self.rate, self.seconds, self.every = folder, rate, seconds, every
        self.simulator = {"kind": simulator} if isinstance(simulator, str) else dict(simulator)
        self.params, self._report = params, report
        traffic.Visitors(self.simulator, 1, _SEED)
        first_champion(folder / "registry", self.simulator, agent)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url, self.problem = f"http://127.0.0.1:{self.port}", ""
        self._lines = {part: Line(f"parts named {part}", waiting=0) for part in PARTS}
        self._tasks: dict[str, _Part] = {}
        self._ended: dict[str, float] = {}
        self._serving, self._end = threading.Event(), threading.Event()
        self._begun = time.monotonic()
        self._start("service")
        self._thread = threading.Thread(target=self._watch, name="loop", daemon=True)
        self._thread.start()

    @property
    def active(self) -> bool:
        """Whether the loop goes on."""
        return self._thread.is_alive()

    @property
    def left(self) -> float:
        """Seconds until the end."""
        return max(0.0, self.seconds - (time.monotonic() - self._begun))

    def runs(self, part: str) -> bool:
        """Return whether a part runs."""
        return part in self._tasks and self._tasks[part].active

    def kill(self, part: str) -> None:
        """Kill a part, as a failure would.

        Raises
        ------
        UserError
            There is no such part.
        """
        if part not in PARTS:
            raise UserError(f"part: must be one of {', '.join(PARTS)}; got {part}")
        if part in self._tasks:
            self._tasks[part].cancel()

    def drift(self) -> None:
        """Change the preferences of all visitors from now on."""
        changes = [*self.simulator.get("changes", ()), {"kind": "shock", "at": self._step()}]
        changed = {**self.simulator, "changes": changes}
        # refuses a simulator without such a change
        traffic.Visitors(changed, self._step() + 1, _SEED)
        self.simulator = changed
        self.kill("traffic")

    def stop(self) -> None:
        """Stop all parts and wait for their end."""
        self._end.set()
        self._thread.join()

    def wait(self) -> None:
        """Wait for the end of the time."""
        while self._thread.is_alive():
            self._thread.join(0.2)

    def _goes_on(self) -> bool:
        return not self._serving.is_set() or self.left > 0

    def _step(self) -> int:
        """Return the number of the visitor that comes now."""
        return LEARNED + round(self.rate * (time.monotonic() - self._begun))

    def _watch(self) -> None:
        try:
            while not self._end.wait(_EVERY) and self._goes_on() and not self.problem:
                for part in PARTS:
                    self._keep(part)
        finally:
            for part in reversed(PARTS):
                self.kill(part)
            for task in self._tasks.values():
                task.join()

    def _keep(self, part: str) -> None:
        """Start a part that does not run, after its pause."""
        task, now = self._tasks.get(part), time.monotonic()
        if task is None:
            if self._serving.is_set():
                self._start(part)
            elif now - self._begun > _PATIENCE:
                self.problem = f"the service did not answer within {_PATIENCE:.0f} s"
        elif not task.active:
            if part not in self._ended:
                self._ended[part] = now
                self._report(f"{part}: {task.error or 'ended'}")
                if part == "service" and not self._serving.is_set():
                    self.problem = task.error
            elif now - self._ended[part] >= _PAUSES[part]:
                self._start(part)

    def _start(self, part: str) -> None:
        self._ended.pop(part, None)
        call: tuple[Any, ...]
        match part:
            case "service":
                call = (_serve, self.folder, self.params, self.port)
            case "trainer":
                call = (_train, self.folder, self.params, self.every)
            case _:
                first = self._step()
                left = max(0.1, self.left)
                call = (_drive, self.simulator, self.url, self.rate, left, first)
        self._tasks[part] = _Part(self._lines[part], self._heard, part, *call)

    def _heard(self, part: str, message: str) -> None:
        if part == "service" and not self._serving.is_set():
            # the time counts from the first answer
            self._begun = time.monotonic()
            self._serving.set()
        self._report(f"{part}: {message}")


class _Part(ChildTask):
    def __init__(
        self,
        line: Line,
        heard: Callable[[str, str], None],
        part: str,
        function: Callable[..., Any],
        *arguments: Any,
    ) -> None:
        self._heard, self._part = heard, part
        super().__init__(line, function, *arguments)

    def receive(self, message: Any) -> None:
        self._heard(self._part, message)

    def join(self) -> None:
        """Wait for the end, whatever it is."""
        self._thread.join()


def first_champion(
    registry: Path, simulator: Mapping[str, Any], agent: Mapping[str, Any] | str
) -> None:
    """Register what an agent learned from the first visitors, where there is no champion.

    Raises
    ------
    UserError
        The agent cannot be a policy, or not with this simulator.
    """
    found = Registry(registry)
    if found.aliases().champion is not None:
        return
    experiment = Experiment.model_validate(
        {
            "simulator": dict(simulator),
            "agents": [{"kind": agent} if isinstance(agent, str) else dict(agent)],
            "steps": LEARNED,
            "replications": 1,
            "seed": _SEED,
        }
    )
    (label,) = experiment.labels
    policy = Policy.from_run(experiment, label)
    about = {"agent": policy.params.model_dump(mode="json"), "made_by": "the loop"}
    found.promote(found.register(policy.to_bytes(), about))


def _serve(folder: Path, params: ServiceParams, port: int, send: Callable[[str], None]) -> None:
    from .http import serve
    from .service import Service

    serve(Service(folder, params), "127.0.0.1", port, ready=lambda url: send(f"serves {url}"))


def _train(folder: Path, params: ServiceParams, every: int, send: Callable[[str], None]) -> None:
    def report(found: Any) -> None:
        if not isinstance(found, str):
            found = (
                f"version {found.number} learned from {found.decisions:,} decisions; "
                f"{challenge(folder, found)}"
            )
        send(found)

    follow(folder, params, decisions=10 * every, every=every, report=report)


def _drive(
    simulator: Mapping[str, Any],
    url: str,
    rate: float,
    seconds: float,
    first: int,
    send: Callable[[str], None],
) -> None:
    found = traffic.drive(simulator, url, rate=rate, seconds=seconds, first=first, seed=_SEED)
    send("; ".join(found.sentences()))
