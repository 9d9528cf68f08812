"""Drive a simulator against a service: visitors whose rewards are late, missing or sent twice."""

from __future__ import annotations

import ipaddress
import json
import threading
import time
import uuid
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from heapq import heappop, heappush
from http.client import HTTPConnection, HTTPException
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import numpy as np

from bandits.base.errors import UserError
from bandits.base.formatting import short
from bandits.base.randomness import Streams
from bandits.base.types import Round
from bandits.experiments.experiment import Experiment
from bandits.policy.laboratory import item_names
from bandits.simulators import Simulator

MAX_RATE, MAX_SECONDS = 1_000.0, 3_600.0
# connections, and decisions that may be under way
_CLIENTS, _UNDER_WAY = 8, 64
# of each argument: its name on the command line, the smallest and the largest value
_RANGES = {
    "rate": ("rate", 0.1, MAX_RATE),
    "seconds": ("for", 0.1, MAX_SECONDS),
    "delay": ("delay", 0.0, MAX_SECONDS),
    "missing": ("missing", 0.0, 1.0),
    "repeated": ("repeated", 0.0, 1.0),
}
_VISITORS = 1_000
_TIMEOUT = 10


class Report(NamedTuple):
    """What traffic was answered.

    Attributes
    ----------
    decisions, rewards : int
        Answered; repeated ones are not counted.
    missing : int
        Decisions whose reward was withheld.
    repeated : int
        Decisions and rewards that were sent twice.
    different : int
        Repeated decisions that got another answer.
    failed : int
        Requests that were refused or not answered.
    problem : str
        Of the first that failed.
    mean : float
        Reward per decision, withheld ones included.
    rate : float
        Decisions per second.
    p50, p99 : float
        Seconds until a decision is answered, as the client measures them.
    """

    decisions: int
    rewards: int
    missing: int
    repeated: int
    different: int
    failed: int
    problem: str
    mean: float
    rate: float
    p50: float
    p99: float

    def sentences(self) -> list[str]:
        """State the numbers."""
        found = [
            f"{self.decisions:,} decisions ({self.rate:.0f} per second), {self.rewards:,} rewards, "
            f"{self.missing:,} withheld, {self.repeated:,} sent twice; "
            f"{self.mean:.4g} per decision",
            f"decided within {1e3 * self.p50:.1f} ms (median) and {1e3 * self.p99:.1f} ms (99 %)",
            f"{self.failed:,} requests failed, {self.different:,} repeated ones differ",
        ]
        return [*found, f"first failure: {self.problem}"] if self.problem else found


def drive(
    simulator: Mapping[str, Any] | str,
    url: str,
    *,
    rate: float = 100.0,
    seconds: float = 60.0,
    delay: float = 1.0,
    missing: float = 0.1,
    repeated: float = 0.05,
    first: int = 0,
    seed: int = 0,
    token: str = "",
) -> Report:
    """Send the visitors of a simulator to a service, and the rewards of what it shows them.

    The service's policy knows the items by the simulator's names, and its contexts are the feature
    vectors, as those of `Policy.from_run`. Changes of the simulator are its shocks.

    Parameters
    ----------
    simulator : dict or str
        Parameters with a ``kind``, or the kind alone.
    url : str
        Of the service, on this machine.
    rate : float
        Decisions per second, at most 1,000; fewer where the service is slower.
    seconds : float
        At most 3,600. Rewards that are not due then are sent at the end.
    delay : float
        Mean seconds from a decision to its reward, exponential.
    missing, repeated : float
        Shares of decisions without a reward, and of decisions and rewards that are sent twice.
    first : int
        The visitor to begin with.
    seed : int
    token : str
        That of the service.

    Raises
    ------
    UserError
        An argument is not allowed, the simulator does more than show one item to one visitor, or
        the service does not answer or refuses the first visitor.
    """
    check(rate=rate, seconds=seconds, delay=delay, missing=missing, repeated=repeated)
    address = _address(url)
    visitors = Visitors(simulator, first + max(1, round(rate * seconds)), seed, first)
    return _Traffic(visitors, address, token, delay, missing, repeated, seed).run(rate)


def check(**values: float) -> None:
    """Refuse arguments of `drive` that are out of range.

    Raises
    ------
    UserError
        One is.
    """
    for name, value in values.items():
        shown, low, high = _RANGES[name]
        if not low <= value <= high:
            raise UserError(f"{shown}: must be between {low:g} and {high:g}; got {value:g}")


class _Visit(NamedTuple):
    """A visitor: the request, and what is needed to answer for them."""

    body: dict[str, Any]
    round: Round
    uniforms: Any


class Visitors:
    """The visitors of a simulator, one per step, from the first that is asked for."""

    def __init__(
        self, simulator: Mapping[str, Any] | str, steps: int, seed: int, first: int = 0
    ) -> None:
        params = {"kind": simulator} if isinstance(simulator, str) else dict(simulator)
        experiment = Experiment(
            simulator=params, agents=[{"kind": "random"}], steps=steps, replications=1, seed=seed
        )
        cls = experiment.simulator_class()
        self.first, self.steps, self._lock = first, steps, threading.Lock()
        self._world: Simulator = cls(experiment.simulator, Streams(seed, (0,)))
        spec = self._world.spec
        if spec.slate > 1 or self._world.state or "replay" in spec.capabilities:
            raise UserError(
                f"{cls.title} makes no traffic: it shows slates, plans visits, or knows only what "
                "was logged"
            )
        self.names = item_names(self._world)

    def visit(self, step: int, event_id: str, visitor: int) -> _Visit:
        """Return the visitor of a step."""
        with self._lock:
            round, uniforms = self._world.round_at(step), self._world.uniforms.at(step)
            x, places = round.features[0], np.flatnonzero(round.available[0])
        items = round.items[0, places].tolist()
        context = x[places]
        all_items = items == list(range(len(self.names)))
        body = {
            "event_id": event_id,
            "user": f"visitor {visitor}",
            "context": (context[0] if (context == context[0]).all() else context).tolist(),
            "candidates": None if all_items else [self.names[item] for item in items],
        }
        return _Visit(body, round, uniforms)

    def reward(self, visit: _Visit, item: Any) -> float:
        """Return the reward of an item for a visitor."""
        place = np.flatnonzero(visit.round.items[0] == self.names.index(item))
        with self._lock:
            feedback, _ = self._world.respond(visit.round, place[:1, None], visit.uniforms)
        return float(feedback.rewards[0, 0])


class _Traffic:
    def __init__(
        self,
        visitors: Visitors,
        address: tuple[str, int],
        token: str,
        delay: float,
        missing: float,
        repeated: float,
        seed: int,
    ) -> None:
        self._visitors, self._address = visitors, address
        self._headers = {"content-type": "application/json"}
        if token:
            self._headers["authorization"] = f"Bearer {token}"
        generator, n = np.random.default_rng(seed), visitors.steps
        self._visitor = generator.integers(_VISITORS, size=n)
        self._withheld = generator.random(n) < missing
        self._twice = generator.random((n, 2)) < repeated
        self._delays = generator.exponential(1.0, n) * delay
        self._prefix = uuid.uuid4().hex[:12]
        self._own, self._lock = threading.local(), threading.Lock()
        self._due: list[tuple[float, int, float]] = []
        self._seconds: list[float] = []
        self._total = 0.0
        self._counts = dict.fromkeys(("rewards", "missing", "repeated", "different", "failed"), 0)
        self._problem = ""

    def run(self, rate: float) -> Report:
        """Send all visitors, then the rewards that are not due yet."""
        # the first alone: its error is an error of the command. The clock runs from its answer
        # on, or those that were due meanwhile would be sent all at once
        begin = self._visitors.first
        self._decide(begin, must=True)
        begun = time.perf_counter()
        free = threading.Semaphore(_UNDER_WAY)

        def send(step: int) -> None:
            try:
                self._decide(step)
            finally:
                free.release()

        with ThreadPoolExecutor(_CLIENTS) as pool:
            jobs = []
            for step in range(begin + 1, self._visitors.steps):
                while (left := begun + (step - begin - 1) / rate - time.perf_counter()) > 0:
                    jobs += [pool.submit(self._reward, *each) for each in self._take()]
                    time.sleep(min(left, 0.01))
                free.acquire()
                jobs.append(pool.submit(send, step))
                jobs += [pool.submit(self._reward, *each) for each in self._take()]
            for job in jobs:
                job.result()
            took = time.perf_counter() - begun
            for job in [pool.submit(self._reward, *each) for each in self._take(all_of_them=True)]:
                job.result()
        p50, p99 = np.quantile(self._seconds, [0.5, 0.99]).tolist()
        n = len(self._seconds)
        return Report(
            decisions=n,
            **self._counts,
            problem=self._problem,
            mean=self._total / n,
            rate=n / took,
            p50=p50,
            p99=p99,
        )

    def _decide(self, step: int, *, must: bool = False) -> None:
        visit = self._visitors.visit(step, f"{self._prefix}-{step}", int(self._visitor[step]))
        start = time.perf_counter()
        answer = self._post("/decide", visit.body, must=must)
        seconds = time.perf_counter() - start
        if answer is None:
            return
        if self._twice[step, 0]:
            again = self._post("/decide", visit.body)
            self._count("repeated")
            self._count("different", int(again is not None and again != answer))
        if answer["item"] not in self._visitors.names:
            raise UserError(
                f"the service shows {short(answer['item'])}, which is no item of the simulator"
            )
        reward = self._visitors.reward(visit, answer["item"])
        with self._lock:
            self._seconds.append(seconds)
            self._total += reward
            if self._withheld[step]:
                self._counts["missing"] += 1
            else:
                heappush(self._due, (time.perf_counter() + self._delays[step], step, reward))

    def _take(self, *, all_of_them: bool = False) -> list[tuple[int, float]]:
        """Take the steps and rewards that are due."""
        found = []
        with self._lock:
            while self._due and (all_of_them or self._due[0][0] <= time.perf_counter()):
                found.append(heappop(self._due)[1:])
        return found

    def _reward(self, step: int, reward: float) -> None:
        body = {"event_id": f"{self._prefix}-{step}", "reward": reward}
        if self._post("/reward", body) is None:
            return
        self._count("rewards")
        if self._twice[step, 1]:
            self._post("/reward", body)
            self._count("repeated")

    def _count(self, name: str, n: int = 1) -> None:
        with self._lock:
            self._counts[name] += n

    def _post(self, path: str, body: Mapping[str, Any], *, must: bool = False) -> Any:
        """Return the answer to a request; None, counted, where it failed."""
        if not hasattr(self._own, "connection"):
            self._own.connection = HTTPConnection(*self._address, timeout=_TIMEOUT)
        connection = self._own.connection
        try:
            connection.request("POST", path, json.dumps(body), self._headers)
            response = connection.getresponse()
            status, answer = response.status, json.loads(response.read())
        except (OSError, HTTPException, ValueError) as error:
            connection.close()
            status, answer = 0, {"error": f"no answer: {error}"}
        if status == 200:
            return answer
        problem = f"{path}: {answer.get('error', status)}"
        if must:
            raise UserError(f"the service at {self._address[0]}:{self._address[1]}{problem}")
        with self._lock:
            self._counts["failed"] += 1
            self._problem = self._problem or problem
        return None


def _address(url: str) -> tuple[str, int]:
    """Return host and port of a service on this machine."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port or 80
    except ValueError as error:
        raise UserError(f"url: {error}") from None
    if parts.scheme != "http" or not is_loopback(host):
        raise UserError(
            f"url: must be an address of this machine, as http://127.0.0.1:8765; got {short(url)}"
        )
    return host, port


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine alone."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
