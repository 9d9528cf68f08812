"""A real server and a real Chromium; a test fails on any error in the console and on any request to elsewhere."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, Request, Response, sync_playwright

from tests.browser.chromium import MISSING, fetch

ROOT = Path(__file__).parent.parent.parent
ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
# Streamlit tries these two below a page's own address first, and then at the root
TRIED = ("/_stcore/health", "/_stcore/host-config")

Open = Callable[..., Page]


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of the app, started as people start it, with files of its own."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folder = tmp_path_factory.mktemp("server")
    address, log = f"http://127.0.0.1:{port}", folder / "log.txt"
    command = [sys.executable, "-m", "streamlit", "run", "app.py", "--server.headless", "true"]
    with log.open("wb") as out:
        process = subprocess.Popen(
            [*command, "--server.port", str(port)], cwd=ROOT, stdout=out, stderr=subprocess.STDOUT,
            env={**os.environ, "BANDITS_HOME": str(folder / "home")},
        )  # fmt: skip
    try:
        _wait_for(f"{address}/_stcore/health", process, log)
        yield address
        said = log.read_text("utf-8", errors="replace")
        assert "Traceback" not in said, said
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_for(health: str, process: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(600):
        try:
            with urllib.request.urlopen(health, timeout=5) as answer:
                if answer.status == 200:
                    return
        except (urllib.error.URLError, OSError):
            pass
        if process.poll() is not None:
            break
        time.sleep(0.2)
    raise AssertionError(f"the app did not start:\n{log.read_text('utf-8', errors='replace')}")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    path = fetch()
    assert path is not None, MISSING
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield chromium
        chromium.close()


@pytest.fixture
def visit(server: str, browser: Browser) -> Iterator[Open]:
    """``visit("/arena", **context options)`` opens a page as a visitor of their own."""
    complaints: list[str] = []
    contexts = []

    def listen(page: Page) -> None:
        def console(message: ConsoleMessage) -> None:
            if message.type == "error" and not message.location.get("url", "").endswith(TRIED):
                complaints.append(f"console: {message.text} ({message.location.get('url')})")

        def request(sent: Request) -> None:
            if not sent.url.startswith((f"{server}/", "blob:", "data:")):
                complaints.append(f"request to elsewhere: {sent.url}")

        def failed(sent: Request) -> None:
            if "ERR_ABORTED" not in (sent.failure or ""):  # what leaving a page cuts off
                complaints.append(f"failed request: {sent.url}: {sent.failure}")

        def answered(answer: Response) -> None:
            if answer.status >= 400 and not answer.url.endswith(TRIED):
                complaints.append(f"{answer.status}: {answer.url}")

        page.on("console", console)
        page.on("pageerror", lambda error: complaints.append(f"page error: {error}"))
        page.on("request", request)
        page.on("requestfailed", failed)
        page.on("response", answered)
        page.on("websocket", lambda ws: None if server[5:] in ws.url else complaints.append(f"elsewhere: {ws.url}"))

    def open_page(path: str = "/", **options: object) -> Page:
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})  # type: ignore[arg-type]
        contexts.append(context)
        context.set_default_timeout(240_000)
        page = context.new_page()
        listen(page)
        page.goto(server + path)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []
