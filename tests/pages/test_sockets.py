"""Open websockets are bounded for each address and in all, and their messages by their length."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial

import pytest
import uvicorn
from starlette.types import Message, Receive, Scope, Send
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from bandits_app.server import sockets
from bandits_app.server.sockets import LONGEST, TOO_MANY, Sockets
from tests.support import wait_for


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    """Accept, and answer every message with it until the end."""
    assert (await receive())["type"] == "websocket.connect"
    await send({"type": "websocket.accept"})
    while (message := await receive())["type"] == "websocket.receive":
        await send({"type": "websocket.send", "text": message["text"]})


class Browser:
    """One websocket to the middleware."""

    def __init__(self, app: Sockets, address: str) -> None:
        self.inbox, self.sent = asyncio.Queue[Message](), list[Message]()
        self.inbox.put_nowait({"type": "websocket.connect"})
        scope = {"type": "websocket", "client": (address, 1)}
        self.task = asyncio.create_task(app(scope, self.inbox.get, self._send))

    async def _send(self, message: Message) -> None:
        self.sent.append(message)

    async def says(self, text: str) -> None:
        self.inbox.put_nowait({"type": "websocket.receive", "text": text})
        await settled()

    @property
    def state(self) -> str:
        last = self.sent[-1]
        return f"closed {last['code']}" if last["type"] == "websocket.close" else "open"


async def visits_of(app: Sockets, address: str) -> Browser:
    made = Browser(app, address)
    await settled()
    return made


async def settled() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


def test_the_silent_one_of_the_address_with_most_gives_way(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(sockets.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(sockets, "PER_ADDRESS", 3)
    monkeypatch.setattr(sockets, "IN_ALL", 4)

    async def visits() -> None:
        app = Sockets(echo)
        visit = partial(visits_of, app)

        first, second, third = [await visit("one") for _ in range(3)]
        assert [b.state for b in (first, second, third)] == ["open"] * 3
        # no one is silent yet
        assert (await visit("one")).state == f"closed {TOO_MANY}"
        other = await visit("other")
        now[0] = 100.0
        await first.says("still here")
        assert first.sent[-1] == {"type": "websocket.send", "text": "still here"}
        # in all: one of the address with most leaves, not the other visitor
        third_visitor = await visit("third")
        assert second.state == f"closed {TOO_MANY}" or third.state == f"closed {TOO_MANY}"
        assert [b.state for b in (first, other, third_visitor)] == ["open"] * 3
        assert len(app.lines) == 4
        # the end of a connection makes room
        other.inbox.put_nowait({"type": "websocket.disconnect", "code": 1000})
        await settled()
        assert len(app.lines) == 3
        assert (await visit("fourth")).state == "open"
        # the address with most asks now: a silent one of another gives way
        now[0] = 200.0
        await first.says("still here")
        assert (await visit("fifth")).state == "open"
        assert first.state == "open"
        assert len(app.lines) == 4
        for task in [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]:
            task.cancel()

    with_new_loop(visits)


def test_half_an_address_of_version_6_is_one_visitors() -> None:
    lines = {sockets._Line(sockets._network(f"2001:db8:1:2::{i}")).address for i in range(9)}
    assert lines == {"2001:db8:1:2::/64"}
    assert sockets._network("192.0.2.1") == "192.0.2.1"
    assert sockets._network("") == ""


def with_new_loop(work: Callable[[], object]) -> None:
    # a browser test of this process may have left an event loop in this one
    thread = threading.Thread(target=lambda: done.append(asyncio.run(work())))  # type: ignore[arg-type]
    done: list[object] = []
    thread.start()
    thread.join()
    assert done == [None]


def test_a_long_message_is_refused_by_its_header() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    config = uvicorn.Config(Sockets(echo), port=port, log_level="error", ws="websockets-sansio")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    wait_for(lambda: server.started, "the server")
    with connect(f"ws://127.0.0.1:{port}/", max_size=None) as line:
        line.send("x" * LONGEST)
        assert len(line.recv(timeout=60)) == LONGEST
        with suppress(ConnectionClosed):
            line.send("x" * (LONGEST + 1))
        with pytest.raises(ConnectionClosed) as closed:
            line.recv(timeout=60)
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1009
    server.should_exit = True
    thread.join()


def test_a_silent_page_gives_no_way_to_an_address_with_as_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [0.0]
    monkeypatch.setattr(sockets.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(sockets, "IN_ALL", 4)

    async def visits() -> None:
        app = Sockets(echo)
        visit = partial(visits_of, app)

        reader, *many = [await visit(a) for a in ("reader", "many", "many", "two")]
        now[0] = 100.0
        for browser in many:
            await browser.says("still here")
        # the reader alone is silent
        assert (await visit("many")).state == f"closed {TOO_MANY}"
        assert (await visit("two")).state == f"closed {TOO_MANY}"
        assert reader.state == "open"
        assert (await visit("new")).state == "open"
        assert reader.state == f"closed {TOO_MANY}"
        for task in [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]:
            task.cancel()

    with_new_loop(visits)


def test_an_address_with_more_than_its_share_gives_way_before_a_reader(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [0.0]
    monkeypatch.setattr(sockets.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(sockets, "IN_ALL", 6)
    monkeypatch.setattr(sockets, "MANY", 3)

    async def visits() -> None:
        app = Sockets(echo)
        visit = partial(visits_of, app)

        readers = [await visit("class") for _ in range(2)]
        now[0] = 100.0
        many = [await visit("many") for _ in range(4)]
        now[0] = 100.0 + sockets.SILENT_OF_MANY
        assert (await visit("new")).state == "open"
        assert [b.state for b in readers] == ["open"] * 2
        assert sorted(b.state for b in many) == [f"closed {TOO_MANY}", *["open"] * 3]
        for task in [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]:
            task.cancel()

    with_new_loop(visits)


@pytest.mark.parametrize(("hard", "bounds"), [(4000, [600, 200, 3312]), (1200, [72, 24, 1200])])
def test_there_are_file_descriptors_for_all_websockets(hard: int, bounds: list[int]) -> None:
    """The limit is raised where the system lets it, and fewer pages are let in elsewhere."""
    program = (
        "import resource\n"
        f"resource.setrlimit(resource.RLIMIT_NOFILE, (256, {hard}))\n"
        "from bandits_app.server.sockets import Sockets\n"
        "bounded = Sockets(None)\n"
        "raised = resource.getrlimit(resource.RLIMIT_NOFILE)[0]\n"
        "print(bounded.in_all, bounded.per_address, raised)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert [int(number) for number in done.stdout.split()] == bounds
