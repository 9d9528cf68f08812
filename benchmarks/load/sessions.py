"""Start the app in a subprocess and simulate browser sessions without browsers.

A session is a websocket that uses Streamlit's protocol (`BackMsg`, `ForwardMsg`) as a browser does:
it opens pages, presses buttons, and requests a fragment at the interval set by the server, whether
or not the last answer has arrived. It draws nothing. The client is the `websockets` library, a
dependency of Streamlit."""

from __future__ import annotations

import asyncio
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, NamedTuple

from bandits import Experiment

ROOT = Path(__file__).parents[2]
# seconds until a missing answer is a failure
PATIENCE = 120.0
# `streamlit run`, after a run without time limit was submitted to the pool that the pages share
AFTER_SUBMITTING = """
import sys
import bandits.runtime.supervisor
bandits.runtime.supervisor.TIME_LIMIT = 1e9
from bandits import read
from bandits_app.session.workers import pool
pool().submit(read(sys.stdin.read()))
from streamlit.web import cli
sys.argv = ["streamlit", *sys.argv[1:]]
cli.main()
"""


@dataclass
class Server:
    """The app in a subprocess."""

    process: subprocess.Popen[str]
    host: str
    log: IO[str]

    @classmethod
    def start(cls, home: str, experiment: Experiment | None = None) -> Server:
        """Start the app on a folder, after submitting an experiment if given, and wait until it
        answers.
        """
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
        program = ["-m", "streamlit"] if experiment is None else ["-c", AFTER_SUBMITTING]
        log = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115
        process = subprocess.Popen(
            [
                sys.executable,
                *program,
                "run",
                "app.py",
                "--server.headless",
                "true",
                "--server.port",
                str(port),
            ],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            text=True,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**os.environ, "BANDITS_HOME": home, "PYTHONPATH": path},
        )
        assert process.stdin is not None
        process.stdin.write("" if experiment is None else experiment.model_dump_json())
        process.stdin.close()
        server = cls(process, f"127.0.0.1:{port}", log)
        while process.poll() is None:
            with (
                suppress(OSError),
                urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=5),
            ):
                return server
            time.sleep(0.2)
        raise RuntimeError(f"the app did not start: {server.output()}")

    def output(self) -> str:
        """Read everything that the server has written."""
        self.log.seek(0)
        return self.log.read()

    def errors(self) -> list[str]:
        """Return the last lines of the tracebacks in its log."""
        return re.findall(
            r"Traceback \(most recent call last\):.*?\n(?![ |])(\S.*)", self.output(), re.DOTALL
        )

    def processor(self) -> float:
        """Read the processor seconds of the server, without its workers."""
        fields = _stat(self.process.pid)
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def resident(self) -> float:
        """Read the resident memory in MiB, without its workers."""
        return _resident(self.process.pid)

    def descriptors(self) -> int:
        """Count the open file descriptors of the server."""
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def others(self) -> list[float]:
        """Read the resident memory in MiB of each process that the server has started."""
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            # the process has ended
            with suppress(OSError, IndexError):
                if int(_stat(int(folder.name))[1]) == self.process.pid:
                    found.append(_resident(int(folder.name)))
        return found

    def stop(self) -> None:
        """Stop the server; its workers then end by themselves."""
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()


def _stat(process: int) -> list[str]:
    return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()


def _resident(process: int) -> float:
    return int(Path(f"/proc/{process}/status").read_text().split("VmRSS:")[1].split()[0]) / 2**10


class Answer(NamedTuple):
    """One completed script run.

    Attributes
    ----------
    page : str
        Its path; "home" for the first page.
    fragment : bool
        Whether only a part of the page was run.
    seconds : float
        From the first request that it answers.
    size : int
        Bytes, before compression.
    """

    page: str
    fragment: bool
    seconds: float
    size: int


@dataclass
class Watch:
    """What all sessions saw, from the moment it counts."""

    counting: bool = False
    # requested fragments
    ticks: int = 0
    answers: list[Answer] = field(default_factory=list)
    # answers replaced by a newer one before they were sent
    overtaken: int = 0
    failures: list[str] = field(default_factory=list)


@dataclass
class Session:
    """One browser tab, as the server sees it.

    Attributes
    ----------
    page : str
        The open page.
    progress : str
        The text of the last progress bar.
    seen : set of str
        Names of the app's own components that were sent since the session began.
    """

    channel: Any
    watch: Watch
    page: str = ""
    progress: str = ""
    seen: set[str] = field(default_factory=set)
    listening: asyncio.Task[None] | None = None
    # hash of the page in the protocol
    _script: str = ""
    _query: str = ""
    # from the address to the hash
    _pages: dict[str, str] = field(default_factory=dict)
    # from label to id, of the last complete page
    _widgets: dict[str, str] = field(default_factory=dict)
    # of the page being drawn
    _drawn: dict[str, str] = field(default_factory=dict)
    _typed: dict[str, float] = field(default_factory=dict)  # by id
    _ticking: dict[str, asyncio.Task[None]] = field(default_factory=dict)  # by fragment
    # requests without an answering script run
    _ticks: list[float] = field(default_factory=list)
    # time of the page request, if no script run has answered it
    _asked: float | None = None
    _answered: asyncio.Event = field(default_factory=asyncio.Event)
    _told: asyncio.Event = field(default_factory=asyncio.Event)

    # -- actions of a visitor
    # ------------------------------------------------------------------------------------

    async def enter(self, page: str = "home", query: str = "") -> None:
        """Open an address."""
        self._query = query
        await self._run(page_name="" if page == "home" else page)

    async def go(self, page: str) -> None:
        """Follow the navigation to a page."""
        self._leave()
        self._script, self._query, self._ticks = self._pages[page], "", []
        await self._run()

    async def press(self, label: str, **typed: float) -> None:
        """Type numbers into the boxes of these labels, and press a button."""
        self._typed |= {self._widgets[name]: number for name, number in typed.items()}
        self.progress = ""
        await self._run(pressed=self._widgets[label])

    async def news(self) -> str:
        """Wait for the next text of the progress bar."""
        self._told.clear()
        await asyncio.wait_for(self._or_end(self._told), PATIENCE)
        return self.progress

    # -- the protocol
    # --------------------------------------------------------------------------------------------

    async def _run(self, **what: Any) -> None:
        """Run the script of the page, and wait until it ends."""
        self._answered.clear()
        self._asked = time.monotonic()
        await self._ask(**what)
        await asyncio.wait_for(self._or_end(self._answered), PATIENCE)

    async def _ask(self, *, pressed: str = "", **what: Any) -> None:
        from streamlit.proto.BackMsg_pb2 import BackMsg

        message = BackMsg()
        rerun = message.rerun_script
        rerun.query_string, rerun.page_script_hash = self._query, self._script
        for name, value in what.items():
            setattr(rerun, name, value)
        for widget, number in self._typed.items():
            rerun.widget_states.widgets.add(id=widget, double_value=number)
        if pressed:
            rerun.widget_states.widgets.add(id=pressed, trigger_value=True)
        await self.channel.send(message.SerializeToString())

    async def _or_end(self, event: asyncio.Event) -> None:
        """Wait for an event; raise what ended the connection."""
        assert self.listening is not None
        waiting = asyncio.create_task(event.wait())
        try:
            await asyncio.wait({waiting, self.listening}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
        if self.listening.done():
            self.listening.result()

    async def _tick(self, fragment: str, interval: float) -> None:
        """Request the fragment at the interval, as the browser's timer does."""
        due = time.monotonic()
        while True:
            due += interval
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            self._ticks.append(time.monotonic())
            self.watch.ticks += self.watch.counting
            await self._ask(fragment_id=fragment, is_auto_rerun=True)

    def _leave(self) -> None:
        """Stop the timers of the page."""
        for ticking in self._ticking.values():
            ticking.cancel()
        self._ticking.clear()

    async def listen(self) -> None:
        """Read what the server sends; requests in quick succession share one answer."""
        from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

        ticks: list[float] = []
        asked: float | None = None
        size, part = 0, False
        async for raw in self.channel:
            size += len(raw)
            message = ForwardMsg.FromString(raw)
            kind = message.WhichOneof("type")
            if kind == "new_session":
                part = bool(message.metadata.run.fragment_ids)
                # kept if the previous script run was interrupted
                ticks, self._ticks = [*ticks, *self._ticks], []
                if not part:
                    asked, self._asked = self._asked or asked, None
                    self._script = message.new_session.page_script_hash
                    self._drawn = {}
                    self._leave()
            elif (
                kind == "script_finished"
                and message.script_finished == ForwardMsg.FINISHED_EARLY_FOR_RERUN
            ):
                self.watch.overtaken += self.watch.counting
            elif kind == "script_finished":
                if message.script_finished == ForwardMsg.FINISHED_WITH_COMPILE_ERROR:
                    raise RuntimeError(f"{self.page}: the page does not compile")
                since = asked if not part and asked is not None else ticks[0] if ticks else None
                if since is not None and self.watch.counting:
                    self.watch.answers.append(
                        Answer(self.page, part, time.monotonic() - since, size)
                    )
                if not part:
                    self._widgets = self._drawn
                if not part and asked is not None:
                    asked = None
                    self._answered.set()
                ticks, size = [], 0
            else:
                self._take(kind or "", message)
        raise ConnectionError(f"{self.page}: the server closed the connection")

    def _take(self, kind: str, message: Any) -> None:
        """Process a message that neither begins nor ends a script run."""
        if kind == "navigation":
            # a new session knows only the page script
            self._script = message.navigation.page_script_hash
            self._pages = {
                page.url_pathname or "home": page.page_script_hash
                for page in message.navigation.app_pages
            }
            self.page = {script: page for page, script in self._pages.items()}.get(self._script, "")
        elif kind == "page_info_changed":
            self._query = message.page_info_changed.query_string
        elif kind == "auto_rerun" and message.auto_rerun.fragment_id not in self._ticking:
            rerun = message.auto_rerun
            self._ticking[rerun.fragment_id] = asyncio.create_task(
                self._tick(rerun.fragment_id, rerun.interval)
            )
        elif kind == "stop_auto_rerun":
            for fragment in message.stop_auto_rerun.fragment_ids:
                if (ticking := self._ticking.pop(fragment, None)) is not None:
                    ticking.cancel()
        elif kind == "delta" and message.delta.WhichOneof("type") == "new_element":
            self._see(message.delta.new_element)

    def _see(self, element: Any) -> None:
        """Process an element; raise errors that the page shows."""
        kind = element.WhichOneof("type")
        shown = getattr(element, kind) if kind else None
        if kind == "bidi_component":
            self.seen.add(shown.component_name)
        if kind == "exception":
            raise RuntimeError(f"{self.page}: {shown.type}: {shown.message}")
        if kind == "alert" and shown.format == shown.ERROR:
            raise RuntimeError(f"{self.page}: {shown.body}")
        if kind == "progress" or (kind == "markdown" and shown.body.startswith("Finished")):
            # what has finished has no bar any more
            self.progress = shown.text if kind == "progress" else shown.body
            self._told.set()
        elif kind in ("button", "number_input"):
            self._drawn[shown.label] = shown.id


@asynccontextmanager
async def session(host: str, watch: Watch) -> AsyncIterator[Session]:
    """Open a session and listen to it until it is closed."""
    from websockets.asyncio.client import connect
    from websockets.typing import Subprotocol

    # like a browser: long timeouts and no pings
    patience: dict[str, Any] = {"max_size": None, "open_timeout": 120, "ping_interval": None}
    async with connect(
        f"ws://{host}/_stcore/stream", subprotocols=[Subprotocol("streamlit")], **patience
    ) as channel:
        made = Session(channel, watch)
        made.listening = asyncio.create_task(made.listen())
        try:
            yield made
        finally:
            made.listening.cancel()
            made._leave()
            await asyncio.gather(made.listening, return_exceptions=True)
