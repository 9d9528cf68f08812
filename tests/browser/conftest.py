"""A real server and a real Chromium.

A test fails on any error in the console and on any request to elsewhere.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import pytest
from _pytest.runner import runtestprotocol
from playwright.sync_api import (
    Browser,
    BrowserContext,
    BrowserType,
    ConsoleMessage,
    Page,
    Request,
    Response,
    ViewportSize,
    sync_playwright,
)

from tests.browser.chromium import MISSING, fetch

ROOT = Path(__file__).parent.parent.parent
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
# Streamlit tries these two below a page's own address first, and then at the root
TRIED = ("/_stcore/health", "/_stcore/host-config")

# Streamlit fails so where a page is closed while it is being answered; nobody sees it
CLOSED = re.compile(
    r"Exception in ASGI application\nTraceback(?:(?!Exception in ASGI application).)*?"
    r"WebSocketDisconnected: Cannot call \"send\" once a close message has been sent\.\n",
    re.DOTALL,
)

# Where a click interrupts a page, Streamlit begins its next run beside the one that has still to
# stop; both share the session's state, without a common lock. One that draws or ends meanwhile may
# fail so, and is not shown.
INTERRUPTED = re.compile(
    r"(?:Uncaught app execution|Exception in thread ScriptRunner[^\n]*)\n"
    r"Traceback(?:(?!Traceback).)*?"
    r"streamlit/runtime/state/session_state\.py\", line \d+, in [^\n]*\n"
    r"(?:(?!Traceback|  File ).)*?"
    r"^RuntimeError: dictionary changed size during iteration\n",
    re.DOTALL | re.MULTILINE,
)

# how Playwright ends a wait, and our own
WAITED = re.compile(r"Timeout \d{5,}ms exceeded|with timeout \d{5,}ms|waited \d+ s in vain for")

Open = Callable[..., Page]


def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Run a test of the browser once more that waited in vain, and warn of it.

    On a busy machine one page in many was never drawn to its end, and the next one was. What is
    broken fails twice.
    """
    if item.get_closest_marker("browser") is None:
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    reports = runtestprotocol(item, nextitem=nextitem, log=False)
    if any(report.when == "call" and WAITED.search(report.longreprtext) for report in reports):
        item.warn(pytest.PytestWarning(f"{item.nodeid} waited in vain and is run once more"))
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def without_unseen(log: str) -> str:
    """Return a log without the errors of Streamlit's that reach nobody."""
    return INTERRUPTED.sub("", CLOSED.sub("", log))


class App:
    """The app, started as people start it, on a folder of its own files, below the path ``base`` of
    its server; or by another ``command``, in its folder.
    """

    def __init__(self, folder: Path, base: str = "", command: Sequence[str] = ()) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.home = folder / "home"
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.address, self.log = f"http://127.0.0.1:{port}{base}", folder / f"log-{port}.txt"
        usual = [sys.executable, "-m", "streamlit", "run", "app.py", "--server.headless", "true"]
        usual += ["--server.port", str(port), "--server.baseUrlPath", base]
        with self.log.open("wb") as out:
            self.process = subprocess.Popen(
                [*command, "--port", str(port)] if command else usual,
                cwd=folder if command else ROOT,
                stdout=out,
                stderr=subprocess.STDOUT,
                env={**os.environ, "BANDITS_HOME": str(self.home)},
            )

    def ready(self) -> App:
        """Wait until it answers."""
        for _ in range(600):
            try:
                with urllib.request.urlopen(f"{self.address}/_stcore/health", timeout=5) as answer:
                    if answer.status == 200:
                        return self
            except (urllib.error.URLError, OSError):
                pass
            if self.process.poll() is not None:
                break
            time.sleep(0.2)
        raise AssertionError(f"the app did not start:\n{self.said()}")

    def said(self) -> str:
        return self.log.read_text("utf-8", errors="replace")

    def failures(self) -> str:
        """What it has said, if an error is in it that a visitor may have noticed."""
        said = self.said()
        return said if "Traceback" in without_unseen(said) else ""

    def workers(self) -> list[int]:
        """Process ids of the workers it has started."""
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
                command = (folder / "cmdline").read_bytes()
            except OSError:
                # it has ended meanwhile
                continue
            if parent == self.process.pid and b"bandits.runtime.worker" in command:
                found.append(int(folder.name))
        return found

    def kill(self) -> None:
        """End it as a power cut would: it tidies nothing up."""
        self.process.kill()
        self.process.wait()

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.kill()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of the app that most tests share."""
    app = App(tmp_path_factory.mktemp("server"))
    try:
        yield app.ready().address
        assert not app.failures()
    finally:
        app.close()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., App]]:
    """Start an app of the test's own; again on the same files, however the one before ended."""
    begun: list[App] = []

    def begin(base: str = "") -> App:
        begun.append(App(tmp_path, base))
        return begun[-1].ready()

    yield begin
    for app in begun:
        app.close()
    for app in begun:
        assert not app.failures()


@pytest.fixture(scope="session")
def chromium() -> Iterator[BrowserType]:
    with sync_playwright() as playwright:
        yield playwright.chromium


@pytest.fixture(scope="session")
def options() -> dict[str, Any]:
    """How Chromium is started."""
    path = fetch()
    assert path is not None, MISSING
    return {"executable_path": path, "args": ARGUMENTS}


@pytest.fixture(scope="session")
def browser(chromium: BrowserType, options: dict[str, Any]) -> Iterator[Browser]:
    """A browser for contexts of a test's own."""
    found = chromium.launch(**options)
    yield found
    found.close()


class Profiles:
    """The browsers of visitors, each on a folder of its own: they keep compiled scripts, and
    nothing else of a test.
    """

    def __init__(self, chromium: BrowserType, options: dict[str, Any], folder: Path) -> None:
        self.chromium, self.options, self.folder = chromium, options, folder
        self.started: dict[tuple[int, bool, bool], BrowserContext] = {}

    def new_page(self, visitor: int, server: str, *, has_touch: bool, is_mobile: bool) -> Page:
        """Open a page in the browser of a visitor, who has never been here."""
        key = visitor, has_touch, is_mobile
        if key not in self.started:
            self.started[key] = self.chromium.launch_persistent_context(
                self.folder / f"{len(self.started)}",
                **self.options,
                has_touch=has_touch,
                is_mobile=is_mobile,
            )
            self.started[key].set_default_timeout(240_000)
        profile = self.started[key]
        page = profile.new_page()
        stored = "cookies,local_storage,indexeddb,cache_storage,service_workers"
        profile.new_cdp_session(page).send(
            "Storage.clearDataForOrigin", {"origin": server, "storageTypes": stored}
        )
        profile.clear_cookies()
        return page

    def close_pages(self) -> None:
        """Leave the empty page with which a browser begins: without a page it would end."""
        for profile in self.started.values():
            for page in profile.pages[1:]:
                page.close()

    def close(self) -> None:
        for profile in self.started.values():
            profile.close()


@pytest.fixture(scope="session")
def profiles(
    chromium: BrowserType, options: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Profiles]:
    found = Profiles(chromium, options, tmp_path_factory.mktemp("profiles"))
    yield found
    found.close()


@pytest.fixture
def visit(
    request: pytest.FixtureRequest,
    profiles: Profiles,
    # its apps end after the pages, which would ask for an app that has ended
    start: object,
) -> Iterator[Open]:
    """``visit("/arena")`` opens a page as a visitor of their own.

    With ``at``, of an app of the test's own."""
    complaints: list[str] = []
    pages: list[Page] = []

    def listen(page: Page, server: str) -> None:
        def console(message: ConsoleMessage) -> None:
            if message.type == "error" and not message.location.get("url", "").endswith(TRIED):
                complaints.append(f"console: {message.text} ({message.location.get('url')})")

        def requested(sent: Request) -> None:
            if not sent.url.startswith((f"{server}/", "blob:", "data:")):
                complaints.append(f"request to elsewhere: {sent.url}")

        def failed(sent: Request) -> None:
            # what leaving a page cuts off
            if "ERR_ABORTED" not in (sent.failure or ""):
                complaints.append(f"failed request: {sent.url}: {sent.failure}")

        def answered(answer: Response) -> None:
            if answer.status >= 400 and not answer.url.endswith(TRIED):
                complaints.append(f"{answer.status}: {answer.url}")

        page.on("console", console)
        page.on("pageerror", lambda error: complaints.append(f"page error: {error}"))
        page.on("request", requested)
        page.on("requestfailed", failed)
        page.on("response", answered)
        page.on(
            "websocket",
            lambda ws: None if server[5:] in ws.url else complaints.append(f"elsewhere: {ws.url}"),
        )

    def open_page(
        path: str = "/",
        *,
        at: App | None = None,
        viewport: ViewportSize | None = None,
        color_scheme: Literal["light", "dark"] = "light",
        has_touch: bool = False,
        is_mobile: bool = False,
    ) -> Page:
        server = request.getfixturevalue("server") if at is None else at.address
        page = profiles.new_page(len(pages), server, has_touch=has_touch, is_mobile=is_mobile)
        pages.append(page)
        page.set_viewport_size(viewport or {"width": 1280, "height": 900})
        # nothing moves by itself
        page.emulate_media(color_scheme=color_scheme, reduced_motion="reduce")
        listen(page, server)
        page.goto(server + path)
        return page

    yield open_page
    for page in pages:
        complaints += (
            [] if page.is_closed() else page.get_by_test_id("stException").all_inner_texts()
        )
    profiles.close_pages()
    assert complaints == []
