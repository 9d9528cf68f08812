"""What watching costs the server: many viewers of one live run, a look a second each.

    python -m benchmarks.viewers --viewers 30 --minutes 30 --write

starts the app with a home of its own and a race that outlasts the measurement. A viewer is a websocket that speaks
Streamlit's protocol (`BackMsg`, `ForwardMsg`) as the browser's side does: it asks for the page once, and from then on
for the fragment that draws the run, at the interval the server told, whether or not the last answer has come. It
draws nothing. The client is the `websockets` library, which Streamlit brings along.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from bandits import Experiment, link, read

from .measure import Section, keep, machine

ROOT = Path(__file__).parent.parent
SAMPLE = 10.0  # seconds between looks at the server's memory
SETTLE = 5.0  # seconds of ticking before the measurement begins
# `streamlit run`, with the race submitted to the pool that the pages will share, and no end to its time
SERVER = """
import sys
import bandits.jobs
bandits.jobs.TIME_LIMIT = 1e9
from bandits import read
from ui.runs import pool
pool().submit(read(sys.stdin.read()))
from streamlit.web import cli
sys.argv = ["streamlit", "run", "app.py", "--server.headless", "true", "--server.port", sys.argv[1]]
cli.main()
"""


@dataclass
class Server:
    """The app in a process of its own."""

    process: subprocess.Popen[str]
    host: str

    @classmethod
    def start(cls, home: str, experiment: Experiment) -> Server:
        """Start it and wait until it answers."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
        process = subprocess.Popen(
            [sys.executable, "-c", SERVER, str(port)], cwd=ROOT, stdin=subprocess.PIPE, text=True,
            stdout=subprocess.DEVNULL, env={**os.environ, "BANDITS_HOME": home, "PYTHONPATH": path},
        )  # fmt: skip
        assert process.stdin is not None
        process.stdin.write(experiment.model_dump_json())
        process.stdin.close()
        while process.poll() is None:
            with suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=5):
                return cls(process, f"127.0.0.1:{port}")
            time.sleep(0.2)
        raise RuntimeError("the app did not start")

    def processor(self) -> float:
        """Seconds of processor time of the server alone, without its workers."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def resident(self) -> float:
        """MiB in memory."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) / 2**10

    def stop(self) -> None:
        """End it; its workers see that and end by themselves."""
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


@dataclass
class Watch:
    """What all viewers saw, from the moment it counts."""

    counting: bool = False
    asked: int = 0
    delays: list[float] = field(default_factory=list)  # seconds from the first request to the end of its answer
    sizes: list[int] = field(default_factory=list)  # bytes of each answer, before compression
    overtaken: int = 0  # answers that a newer one replaced before the server had sent them
    failures: list[str] = field(default_factory=list)


@dataclass
class Viewer:
    """One websocket."""

    channel: Any
    watch: Watch
    fragment: str = ""
    interval: float = 0.0
    page: str = ""
    pending: list[float] = field(default_factory=list)  # requests that no script run has taken up yet

    async def ask(self, **what: Any) -> None:
        """Have the page, or a fragment of it, run again."""
        from streamlit.proto.BackMsg_pb2 import BackMsg

        message = BackMsg()
        for name, value in what.items():
            setattr(message.rerun_script, name, value)
        await self.channel.send(message.SerializeToString())

    async def tick(self) -> None:
        """Ask at the interval, come what may, as the browser's timer does."""
        due = time.monotonic()
        while True:
            due += self.interval
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            self.pending.append(time.monotonic())
            self.watch.asked += self.watch.counting
            await self.ask(fragment_id=self.fragment, is_auto_rerun=True, page_script_hash=self.page)

    async def answer(self) -> None:
        """Read up to the end of a script run; requests that came too fast have one answer together."""
        from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

        taken: list[float] = []
        size = 0
        async for raw in self.channel:
            size += len(raw)
            message = ForwardMsg.FromString(raw)
            kind = message.WhichOneof("type")
            if kind == "new_session":
                self.page = message.new_session.page_script_hash
                taken, self.pending = [*taken, *self.pending], []  # kept if the run before was cut short
            elif kind == "auto_rerun":
                self.fragment, self.interval = message.auto_rerun.fragment_id, message.auto_rerun.interval
            elif kind == "script_finished" and message.script_finished == ForwardMsg.FINISHED_EARLY_FOR_RERUN:
                self.watch.overtaken += self.watch.counting
            elif kind == "script_finished":
                if taken and self.watch.counting:
                    self.watch.delays.append(time.monotonic() - taken[0])
                    self.watch.sizes.append(size)
                return
        raise ConnectionError("the server closed the connection")


async def _view(host: str, run: str, watch: Watch, ready: asyncio.Semaphore) -> None:
    """Look at the run until cancelled."""
    from websockets.asyncio.client import connect
    from websockets.typing import Subprotocol

    # like a browser, it is patient and asks for no sign of life
    patience: dict[str, Any] = {"max_size": None, "open_timeout": 120, "ping_interval": None}
    try:
        async with connect(
            f"ws://{host}/_stcore/stream", subprotocols=[Subprotocol("streamlit")], **patience
        ) as channel:
            viewer = Viewer(channel, watch)
            await viewer.ask(query_string=run, page_name="arena")
            while not viewer.fragment:
                await viewer.answer()
            ready.release()
            ticking = asyncio.create_task(viewer.tick())
            try:
                while not ticking.done():
                    await viewer.answer()
                ticking.result()
            finally:
                ticking.cancel()
    except Exception as error:  # noqa: BLE001 - a viewer that was turned away is a result too
        watch.failures.append(f"{type(error).__name__}: {error}")
        ready.release()


async def measure(server: Server, run: str, viewers: int, seconds: float) -> tuple[Watch, float, list[float]]:
    """What the viewers saw, the server's processor seconds meanwhile, and its MiB every ten seconds."""
    watch, ready, dice = Watch(), asyncio.Semaphore(0), random.Random(1)
    looking = []
    for _ in range(viewers):
        looking.append(asyncio.create_task(_view(server.host, run, watch, ready)))
        await asyncio.sleep(0.1 + 0.2 * dice.random())  # a class does not open a page in the same instant
    for _ in range(viewers):
        await ready.acquire()
    await asyncio.sleep(SETTLE)
    watch.counting, began, processor, resident = True, time.monotonic(), server.processor(), [server.resident()]
    while (left := began + seconds - time.monotonic()) > 0:
        await asyncio.sleep(min(SAMPLE, left))
        resident.append(server.resident())
    watch.counting, spent = False, server.processor() - processor
    for task in looking:
        task.cancel()
    await asyncio.gather(*looking, return_exceptions=True)
    return watch, spent, resident


def race() -> Experiment:
    """Four learners for a very long time: what the viewers look at never ends."""
    agents = [{"kind": kind} for kind in ("linucb", "lints", "epsilon_greedy", "beta_ts")]
    return read({"agents": agents, "steps": 10_000_000, "replications": 64})


def run(viewers: int, minutes: float) -> Section:
    """Measure."""
    experiment, seconds = race(), 60 * minutes
    with tempfile.TemporaryDirectory() as home:
        server = Server.start(home, experiment)
        try:
            watch, spent, resident = asyncio.run(measure(server, link.query(experiment), viewers, seconds))
        finally:
            server.stop()
    section = Section(
        f"Viewers: {viewers} for {minutes:g} minutes",
        f"{machine()}.\n\n`python -m benchmarks.viewers`: {viewers} websockets look at one live race of "
        f"{len(experiment.agents)} agents with {experiment.replications} runs on the Arena, once a second each, while "
        "its worker computes on the same machine. The delay is from a request to the end of its answer; a request "
        "that comes while another waits is answered with it. Bytes are before compression; processor time is the "
        "server's alone. Nothing is drawn.",
        ("what", "measured"),
    )
    answered = len(watch.delays)
    late = np.quantile(watch.delays, [0.5, 0.95, 1.0]) if answered else np.full(3, np.nan)
    middle = resident[len(resident) // 2]
    section.rows += [
        ("ticks asked for a second", f"{watch.asked / seconds:.1f}"),
        ("ticks answered a second", f"{answered / seconds:.1f} ({answered / max(watch.asked, 1):.1%})"),
        ("answers overtaken by a newer one before they were sent", f"{watch.overtaken:,}"),
        ("delay of an answer: median, 95th percentile, longest", ", ".join(f"{1000 * s:,.0f} ms" for s in late)),
        ("bytes per tick, median", f"{np.median(watch.sizes) if answered else np.nan:,.0f}"),
        ("server processor time per tick", f"{1000 * spent / max(answered, 1):.1f} ms"),
        ("server processor load", f"{spent / seconds:.2f} cores"),
        ("server memory: start, middle, end, most", ", ".join(
            f"{m:,.0f} MiB" for m in (resident[0], middle, resident[-1], max(resident))
        )),
        ("viewers that were turned away or cut off", f"{len(watch.failures)}" + "".join(
            f" ({reason})" for reason in sorted(set(watch.failures))
        )),
    ]  # fmt: skip
    return section


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print, and write RESULTS.md if asked to."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.viewers", description=__doc__.split("\n")[0])
    parser.add_argument("--viewers", type=int, default=30)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--write", action="store_true", help="put the table into RESULTS.md")
    parsed = parser.parse_args(arguments)
    section = run(parsed.viewers, parsed.minutes)
    print(section)
    if parsed.write:
        keep(section)


if __name__ == "__main__":
    main()
