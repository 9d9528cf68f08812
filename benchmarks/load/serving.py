"""Kill a service, its trainer, or both, at random moments under traffic, and check what is left.

``python -m benchmarks.load.serving --kills 60`` starts the loop, kills parts, and prints what was
lost; status 1 if anything was that may not be: an acknowledged reward older than the group window,
a decision that was made twice, a version that was served in part, or a state that differs from the
one that the whole log gives.

``--throughput`` drives the log on this machine and Redis, with one and two services, in one run, and
prints a table: how fast decisions are answered at 100 a second, and how many there are where eight
clients of each service ask without a pause.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from bandits.base.files import unpack, unseal
from bandits.serving import breaks
from bandits.serving.event_log import WINDOW, read_events
from bandits.serving.loop import AGENT, SETTINGS, SIMULATOR, Loop, first_champion
from bandits.serving.service import Service
from bandits.serving.traffic import Report, Visitors, drive

# seconds between two kills
_LEAST, _MOST = 0.5, 2.0
# added to the window: until a commit that has begun is on the disk
_COMMIT = 0.2
# seconds from the kill of a part until it serves again
_PATIENCE = 600.0
# decisions per second and seconds: a usual load, and as many decisions as services can take
_USUAL, _FULL = (100.0, 10.0), (1_000.0, 3.0)


class Client:
    """One client that asks without a pause, and remembers what was acknowledged, and when."""

    def __init__(self, url: str) -> None:
        self._visitors = Visitors(SIMULATOR, 1_000_000, 0)
        self._address = url.removeprefix("http://")
        # from when to when each was asked
        self.decided: dict[str, tuple[float, float, dict[str, Any]]] = {}
        self.rewarded: dict[str, tuple[float, float]] = {}
        self.different = self.unanswered = 0
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._ask, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ask no more."""
        self._end.set()
        self._thread.join()

    def _ask(self) -> None:
        step = 0
        while not self._end.is_set():
            step += 1
            visit = self._visitors.visit(step, f"client-{step}", step % 500)
            sent = time.time()
            answer = self._post("/decide", visit.body)
            if answer is None:
                continue
            self.decided[visit.body["event_id"]] = sent, time.time(), answer
            if step % 5 == 0 and (again := self._post("/decide", visit.body)) is not None:
                self.different += again != answer
            reward = self._visitors.reward(visit, answer["item"])
            body = {"event_id": visit.body["event_id"], "reward": reward}
            sent = time.time()
            if self._post("/reward", body) is not None:
                self.rewarded[visit.body["event_id"]] = sent, time.time()

    def _post(self, path: str, body: dict[str, Any]) -> Any:
        connection = http.client.HTTPConnection(self._address, timeout=30)
        try:
            connection.request("POST", path, json.dumps(body), {"content-type": "application/json"})
            response = connection.getresponse()
            answer = json.loads(response.read())
        except (OSError, http.client.HTTPException, ValueError):
            self.unanswered += 1
            time.sleep(0.05)
            return None
        finally:
            connection.close()
        # a reward of a decision that was lost with its group is refused
        return answer if response.status == 200 else None


def kills(folder: Path, n: int, seed: int) -> tuple[Client, list[tuple[float, float, str]]]:
    """Run the loop and kill parts of it; return the client, and from when to when what was
    killed.
    """
    generator, killed = np.random.default_rng(seed), []
    loop = Loop(folder, rate=20, seconds=3_600, every=300)
    client = Client(loop.url)
    try:
        for i in range(n):
            begun, before = time.monotonic(), len(client.decided)
            while len(client.decided) < before + 5:
                if time.monotonic() > begun + _PATIENCE:
                    raise SystemExit(f"kill {i}: the service did not answer again")
                time.sleep(0.05)
            time.sleep(generator.uniform(_LEAST, _MOST))
            # versions change meanwhile
            if i % 10 == 5:
                breaks.bad_model(folder)
            parts = (("service",), ("trainer",), ("service", "trainer"))[i % 3]
            begin = time.time()
            for part in parts:
                loop.kill(part)
            # on a busy machine a part may go on for a while
            killed.append((begin, time.time(), "+".join(parts)))
    finally:
        client.stop()
        loop.stop()
    return client, killed


def lost(folder: Path, client: Client, killed: list[tuple[float, float, str]]) -> dict[str, int]:
    """Count what may not happen."""
    events = list(read_events(folder / "log"))
    decided = [event for event in events if event.kind == "decision"]
    names = {event.event_id for event in decided}
    rewarded = {event.event_id for event in events if event.kind == "reward"}
    kills_of_service = [(begin, end) for begin, end, part in killed if "service" in part]
    begins, ends = np.array([*kills_of_service, (time.time(), np.inf)]).T

    def protected(sent: float, received: float) -> bool:
        """Whether no kill came while something was asked, or within the window behind it."""
        # an answer of the killed service may be read after its end
        return bool(np.all((sent > ends) | (received < begins - WINDOW - _COMMIT)))

    found = {
        "decisions lost": sum(
            protected(*asked) and name not in names for name, (*asked, _) in client.decided.items()
        ),
        "rewards lost": sum(
            protected(*asked) and name not in rewarded for name, asked in client.rewarded.items()
        ),
        "decisions twice": len(decided) - len(names),
        "repeated answers that differ": client.different,
    }
    logged = {event.event_id: event.body for event in decided}
    found["answers that differ from the log"] = sum(
        any(logged[name][key] != answer[key] for key in ("item", "propensity", "version", "arm"))
        for name, (*_, answer) in client.decided.items()
        if name in logged
    )
    found["states that differ from the replay of the whole log"] = int(
        _state(folder) != _state(folder, replayed=True)
    )
    return found


def _state(folder: Path, *, replayed: bool = False) -> bytes:
    """Return the champion of a service after its recovery, from the whole log where replayed."""
    with tempfile.TemporaryDirectory() as home:
        copy = Path(shutil.copytree(folder, Path(home) / "copy"))
        if replayed:
            (copy / "snapshot").unlink(missing_ok=True)
        service = Service(copy, SETTINGS)
        service.close()
        champion = f"policy.{service.aliases.champion}"
        data = unseal("snapshot", (copy / "snapshot").read_bytes())
        assert data is not None
        return unpack(data, compressed=False)[champion].tobytes()


def throughput() -> None:
    """Print a table of the logs in Markdown."""
    print(f"load of the machine before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n")
    print("| log | services | p50 | p99 at 100 a second | decisions a second | core ms | failed |")
    print("|---|---|---|---|---|---|---|")
    for services in (0, 1, 2):
        with tempfile.TemporaryDirectory() as home, _served(Path(home), services) as started:
            urls, processes = started
            (usual,) = _driven(urls[:1], *_USUAL)
            before = sum(map(_core_seconds, processes))
            full = _driven(urls, *_FULL)
            took = sum(map(_core_seconds, processes)) - before
        n = sum(report.decisions for report in full)
        print(
            f"| {'Redis' if services else 'SQLite'} | {len(urls)} | {1e3 * usual.p50:.1f} ms | "
            f"{1e3 * usual.p99:.1f} ms | {sum(report.rate for report in full):.0f} | "
            f"{1e3 * took / n:.2f} | {sum(report.failed for report in (usual, *full))} |",
            flush=True,
        )


@contextmanager
def _served(home: Path, services: int) -> Iterator[tuple[list[str], list[int]]]:
    """Start services with a log on Redis, or with 0 of them one with its own; yield their addresses
    and all processes.
    """
    first_champion(home / "shop" / "registry", SIMULATOR, AGENT)
    processes: list[int] = []
    with ExitStack() as stack:

        def start(command: str, folder: Path, *options: str) -> str:
            process = subprocess.Popen(
                [sys.executable, "-m", "bandits", command, str(folder), *options],
                stdout=subprocess.PIPE,
                text=True,
            )
            stack.callback(process.wait)
            stack.callback(process.terminate)
            processes.append(process.pid)
            assert process.stdout is not None
            return process.stdout.readline().split()[1]

        if not services:
            yield [start("serve", home / "shop", "--port", "0")], processes
            return
        from tests.serving.redis_server import RedisServer

        server = RedisServer(home / "redis")
        stack.callback(server.stop)
        processes.append(server.process.pid)
        start("learn", home / "shop", "--log", server.url)
        # beside the folder of the learner, with its key
        key = home / "shop" / "user.key"
        urls = []
        for i in range(services):
            folder = home / f"service-{i}"
            folder.mkdir()
            shutil.copy(key, folder)
            urls.append(start("serve", folder, "--log", server.url, "--port", "0"))
        yield urls, processes


def _driven(urls: list[str], rate: float, seconds: float) -> list[Report]:
    """Drive each service from a process of its own, a reward for each decision."""
    about = {"rate": rate, "seconds": seconds, "delay": 0.2, "missing": 0.0, "repeated": 0.0}
    with ProcessPoolExecutor(len(urls), mp_context=get_context("spawn")) as pool:
        jobs = [pool.submit(drive, SIMULATOR, url, **about) for url in urls]
        return [job.result() for job in jobs]


def _core_seconds(process: int) -> float:
    """Return the time that a process has computed."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> int:
    """Kill, and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--throughput", action="store_true", help="drive, and kill nothing")
    parsed = parser.parse_args()
    if parsed.throughput:
        throughput()
        return 0
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home)
        first_champion(folder / "registry", SIMULATOR, AGENT)
        client, killed = kills(folder, parsed.kills, parsed.seed)
        found = lost(folder, client, killed)
    print(
        f"{len(killed)} kills, {len(client.decided):,} decisions and {len(client.rewarded):,} "
        f"rewards acknowledged, {client.unanswered:,} requests without answer"
    )
    for what, n in found.items():
        print(f"{what}: {n}")
    return int(any(found.values()))


if __name__ == "__main__":
    raise SystemExit(main())
