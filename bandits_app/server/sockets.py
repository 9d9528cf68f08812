"""Bound how many websockets are open, for each address and in all, and how long a message is."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from contextlib import suppress
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocketClose

_log = logging.getLogger(__name__)
# of one network address, which a class may share: a page has one, and one more for its sliders
PER_ADDRESS, IN_ALL = 200, 600
# file descriptors of a page: its socket and its event loop, which Streamlit keeps for two minutes
# after the page was left, of this many pages at most
OF_A_PAGE, LEFT = 4, 128
# ... and of all else that the server opens
OTHERS = 400
# seconds without a message after which a websocket gives way to a new one
SILENT = 30.0
# ... of an address with more than an equal share of all, and more pages than a reader has
SILENT_OF_MANY, MANY = 3.0, 8
# bytes of a message of a browser; files come another way
LONGEST = 2**20
TOO_MANY = 1013


class _Line:
    """An open websocket: its address, when it sent last, and whether it shall leave."""

    def __init__(self, address: str) -> None:
        self.address, self.heard, self.leave = address, time.monotonic(), asyncio.Event()


class Sockets:
    """Middleware that counts websockets, Streamlit's and those of the sliders.

    Where there are too many, one that is silent gives way, of the address with most the one that
    has been so for longest, sooner where that address has more than an equal share; its browser may
    connect again. None gives way to an address that has as many or more. If all ask, the new one is
    refused.

    Parameters
    ----------
    app : ASGIApp
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self.lines: set[_Line] = set()
        room = (_descriptors(OTHERS + OF_A_PAGE * (IN_ALL + LEFT)) - OTHERS) // OF_A_PAGE - LEFT
        self.in_all = min(IN_ALL, max(room, 2))
        self.per_address = PER_ADDRESS
        if self.in_all < IN_ALL:
            # the others keep a part of what there is
            self.per_address = max(2, self.in_all // 3)
            _log.warning("this process may open few files: %d pages at a time", self.in_all)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on; let a websocket in where there is room."""
        if scope["type"] != "websocket":
            return await self._app(scope, receive, send)
        line = _Line(_network((scope.get("client") or ("",))[0]))
        if not self._make_room(line.address):
            return await WebSocketClose(TOO_MANY)(scope, receive, send)
        _bound_messages(receive)
        self.lines.add(line)
        leaving = asyncio.ensure_future(line.leave.wait())

        async def receive_or_leave() -> Message:
            coming = asyncio.ensure_future(receive())
            try:
                await asyncio.wait((coming, leaving), return_when=asyncio.FIRST_COMPLETED)
                if coming.done():
                    line.heard = time.monotonic()
                    return coming.result()
            finally:
                # the server gives no message to what waits no more
                coming.cancel()
            await send({"type": "websocket.close", "code": TOO_MANY})
            return {"type": "websocket.disconnect", "code": TOO_MANY}

        async def send_unless_left(message: Message) -> None:
            if not line.leave.is_set():
                await send(message)

        try:
            await self._app(scope, receive_or_leave, send_unless_left)
        finally:
            self.lines.discard(line)
            leaving.cancel()

    def _make_room(self, address: str) -> bool:
        """Return whether there is room for one more of an address; one that is silent gives way."""
        each, now = Counter(line.address for line in self.lines), time.monotonic()
        full = each[address] >= self.per_address
        if not full and len(self.lines) < self.in_all:
            return True
        share = max(self.in_all / len({address, *each}), MANY)
        soon = SILENT if full else SILENT_OF_MANY
        silent = max(
            (
                line
                for line in self.lines
                if now - line.heard >= (soon if each[line.address] > share else SILENT)
                and (line.address == address or (not full and each[line.address] > each[address]))
            ),
            key=lambda line: (each[line.address], -line.heard),
            default=None,
        )
        if silent is None:
            return False
        self.lines.discard(silent)
        silent.leave.set()
        return True


def _descriptors(wanted: int) -> int:
    """Return how many files this process may open; if these are fewer than wanted, after raising
    the limit as far as the system lets it.
    """
    try:
        import resource
    except ImportError:
        # not on Windows, which has no such limit
        return wanted
    now, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if 0 <= now < wanted:
        more = wanted if most < 0 else min(wanted, most)
        # some systems allow less than they state
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (more, most))
            now = more
    return wanted if now < 0 else now


def _network(address: str) -> str:
    """Return what one visitor has: an address, or the first half of one of version 6."""
    try:
        found = ip_address(address)
    except ValueError:
        return address
    if isinstance(found, IPv6Address) and found.ipv4_mapped is None:
        return str(ip_network((found.packed, 64), strict=False))
    return address


def _bound_messages(receive: Receive) -> None:
    """Refuse long messages by their header, before they are held.

    The server's own limit is Streamlit's, which also holds for what pages send. Here the limit of
    the connection is lowered, where the protocol has one (uvicorn with websockets); elsewhere the
    server's holds.
    """
    protocol: Any = getattr(getattr(receive, "__self__", None), "conn", None)
    if getattr(protocol, "max_message_size", None) is not None:
        protocol.max_message_size = LONGEST
