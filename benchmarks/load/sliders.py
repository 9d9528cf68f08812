"""Measure what several hands see: clients that drag at the same time, each as fast as its answers
come.

    python -m benchmarks.load.sliders --write

The clients are websockets without browsers. Each asks for another value of LinUCB's alpha, at most
25 times a second, after the answer before; in one part a client asks 1,000 times a second without
waiting for answers."""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from websockets.asyncio.client import ClientConnection, connect

from bandits import Experiment, read
from benchmarks.load.sessions import Server
from benchmarks.measure import Section, keep, machine, stamp

SECONDS, INTERVAL = 10.0, 0.04
# milliseconds, and answers a second
ROUND_TRIP, RATE, THIRTY, OLDEST = 80.0, 12.0, 500.0, 2000.0


@dataclass
class Client:
    """One client: the milliseconds of its answers."""

    times: list[float] = field(default_factory=list)


def raced(seed: int) -> Experiment:
    """Return the pet shop with one LinUCB, 2,000 steps and 4 replications."""
    return read(
        {
            "agents": [{"kind": "linucb"}, {"kind": "random"}],
            "steps": 2000,
            "replications": 4,
            "seed": seed,
        }
    )


def question(seq: int, experiment: Experiment) -> str:
    """Ask for another value."""
    asked = {"seq": seq, "experiment": experiment.model_dump_json(), "label": "LinUCB"}
    return json.dumps({**asked, "params": {"alpha": 0.05 + 0.001 * (seq % 3000)}})


async def drag(host: str, client: Client, number: int, end: float) -> None:
    """Ask until the end, each time after the answer."""
    experiment, seq = raced(number % 5), 1000 * number
    async with connect(f"ws://{host}/instant", origin=f"http://{host}", max_size=None) as line:  # type: ignore[arg-type]
        while time.monotonic() < end:
            seq, began = seq + 1, time.monotonic()
            await line.send(question(seq, experiment))
            await asyncio.wait_for(line.recv(), 60)
            client.times.append(1000 * (time.monotonic() - began))
            await asyncio.sleep(max(0.0, INTERVAL - (time.monotonic() - began)))


async def flood(host: str, end: float) -> None:
    """Ask 1,000 times a second without waiting."""

    async def drain(line: ClientConnection) -> None:
        async for _ in line:
            pass

    async with connect(f"ws://{host}/instant", origin=f"http://{host}", max_size=None) as line:  # type: ignore[arg-type]
        reading = asyncio.create_task(drain(line))
        seq = 0
        while time.monotonic() < end:
            for _ in range(10):
                seq += 1
                await line.send(question(seq, raced(0)))
            await asyncio.sleep(0.01)
        reading.cancel()


async def together(host: str, n: int, *, flooding: bool = False) -> list[Client]:
    """Let several clients drag at the same time."""
    clients, end = [Client() for _ in range(n)], time.monotonic() + SECONDS
    tasks = [drag(host, client, number, end) for number, client in enumerate(clients)]
    await asyncio.gather(*tasks, *([flood(host, end)] if flooding else []))
    return clients


def memory(server: Server) -> float:
    """Read the resident memory of the server in MiB."""
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    return (
        int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS")))
        / 1024
    )


def measure() -> Section:
    """Measure one, ten and thirty clients, ten beside one that floods, and the memory of the
    server.
    """
    made = Section(
        "Sliders of several visitors at once",
        f"LinUCB, 2,000 steps x 4 replications, {SECONDS:.0f} s each, five simulators; round trip "
        f"of a question without a browser; each client asks at most {1 / INTERVAL:.0f} times a "
        f"second. *Flood*: one more client asks 1,000 times a second. {machine()}.",
        (
            "clients",
            "median, ms",
            "slowest answer, ms",
            "answers a second, of the slowest client",
            "server, MiB",
        ),
        code=stamp(measure),
    )
    found: dict[str, tuple[float, float, float]] = {}
    with tempfile.TemporaryDirectory() as home:
        server = Server.start(home)
        try:
            # prepares the simulators
            asyncio.run(together(server.host, 5))
            held = []
            for name, n in {
                "1": 1,
                "10": 10,
                "10 and a flood": 10,
                "30": 30,
                "30 again": 30,
            }.items():
                clients = asyncio.run(together(server.host, n, flooding="flood" in name))
                times = [t for client in clients for t in client.times]
                rate = min(len(client.times) for client in clients) / SECONDS
                found[name] = median(times), max(times), rate
                held.append(memory(server))
                made.rows.append(
                    (name, *(f"{value:.0f}" for value in found[name]), f"{held[-1]:.0f}")
                )
        finally:
            server.stop()
    slower = found["10 and a flood"][0] / found["10"][0]
    made.targets = [
        (
            f"10: median at most {ROUND_TRIP:.0f} ms",
            f"{found['10'][0]:.0f} ms",
            found["10"][0] <= ROUND_TRIP,
        ),
        (f"10: at least {RATE:.0f} a second each", f"{found['10'][2]:.0f}", found["10"][2] >= RATE),
        (f"30: median under {THIRTY:.0f} ms", f"{found['30'][0]:.0f} ms", found["30"][0] < THIRTY),
        (
            f"30: no answer older than {OLDEST / 1000:.0f} s",
            f"{found['30'][1]:.0f} ms",
            found["30"][1] <= OLDEST,
        ),
        ("a flood slows the others by at most half", f"{slower:.2f}", slower <= 1.5),
        (
            "memory flat: 30 again over 30",
            f"{held[-1] / held[-2]:.3f}",
            held[-1] <= 1.05 * held[-2],
        ),
    ]
    return made


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", action="store_true", help="store the section in RESULTS.md")
    result = measure()
    print(result)
    if parser.parse_args().write:
        keep(result)
