"""Kill a service, its trainer, or both, at random moments under traffic, and check what is left.

``python -m benchmarks.load.serving --kills 60`` starts the loop, kills parts, and prints what was
lost; status 1 if anything was that may not be: an acknowledged reward older than the group window,
a decision that was made twice, a version that was served in part, or a state that differs from the
one that the whole log gives.
"""

from __future__ import annotations

import argparse
import http.client
import json
import shutil
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from bandits.base.files import unpack, unseal
from bandits.serving import breaks
from bandits.serving.event_log import WINDOW, read_events
from bandits.serving.loop import AGENT, SETTINGS, SIMULATOR, Loop, first_champion
from bandits.serving.service import Service
from bandits.serving.traffic import Visitors

# seconds between two kills
_LEAST, _MOST = 0.5, 2.0
# added to the window: until a commit that has begun is on the disk
_COMMIT = 0.2
# seconds from the kill of a part until it serves again
_PATIENCE = 600.0


class Client:
    """One client that asks without a pause, and remembers what was acknowledged, and when."""

    def __init__(self, url: str) -> None:
        self._visitors = Visitors(SIMULATOR, 1_000_000, 0)
        self._address = url.removeprefix("http://")
        self.decided: dict[str, tuple[float, dict[str, Any]]] = {}
        self.rewarded: dict[str, float] = {}
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
            answer = self._post("/decide", visit.body)
            if answer is None:
                continue
            self.decided[visit.body["event_id"]] = time.time(), answer
            if step % 5 == 0 and (again := self._post("/decide", visit.body)) is not None:
                self.different += again != answer
            reward = self._visitors.reward(visit, answer["item"])
            body = {"event_id": visit.body["event_id"], "reward": reward}
            if self._post("/reward", body) is not None:
                self.rewarded[visit.body["event_id"]] = time.time()

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

    def protected(moment: float) -> bool:
        """Whether no kill came within the window behind a moment."""
        return bool(np.all((moment > ends) | (moment < begins - WINDOW - _COMMIT)))

    found = {
        "decisions lost": sum(
            protected(moment) and name not in names for name, (moment, _) in client.decided.items()
        ),
        "rewards lost": sum(
            protected(moment) and name not in rewarded for name, moment in client.rewarded.items()
        ),
        "decisions twice": len(decided) - len(names),
        "repeated answers that differ": client.different,
    }
    logged = {event.event_id: event.body for event in decided}
    found["answers that differ from the log"] = sum(
        any(logged[name][key] != answer[key] for key in ("item", "propensity", "version", "arm"))
        for name, (_, answer) in client.decided.items()
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


def main() -> int:
    """Kill, and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parsed = parser.parse_args()
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
