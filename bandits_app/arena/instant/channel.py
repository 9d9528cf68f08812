"""A websocket beside Streamlit's own: a browser asks while a slider moves, and the newest question
is answered.

Behind a proxy that opens no further websocket, the same questions come as POST requests, one after
the other. Pages of other sites are refused by `bandits_app.server.security.Guard`, like everywhere
in the app."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import lru_cache, partial

from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect
from threadpoolctl import threadpool_limits

from bandits.results.instant import Instant

from .messages import LONGEST, answer

PATH = "instant"
MAX_CLIENTS = 100
# seconds without a question after which a connection gives way to a new one, and is closed
SILENT, IDLE = 10.0, 600.0
# threads for quick answers, in the order of the questions: with more they would only hold each
# other up
QUICK = 3
# for the others, of which few compute at a time (`Instant`)
THREADS = 32
# requests that may wait at once: those on websockets are not held up for long
WAITING = 4
# codes with which a connection is closed
TOO_MANY, TOO_LONG = 1013, 1009


class Channel:
    """Answers to all browsers.

    Each has one question being answered, and of its others only the newest counts. Connections that
    ask nothing give way to new ones.

    Attributes
    ----------
    asked : dict of WebSocket to float
        When each browser asked last.
    """

    def __init__(self) -> None:
        self.instant, self.waiting = Instant(), 0
        self.asked: dict[WebSocket, float] = {}
        self._quick = ThreadPoolExecutor(QUICK, thread_name_prefix="instant-quick")
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="instant")
        # for the life of this process: limits that threads set and restore would mix
        threadpool_limits(1)

    async def serve(self, socket: WebSocket) -> None:
        """Answer a browser until it leaves."""
        await socket.accept()
        if len(self.asked) >= MAX_CLIENTS and not await self._make_room():
            return await socket.close(TOO_MANY)
        self.asked[socket] = time.monotonic()
        newest = _Newest()
        answering = asyncio.create_task(self._answer(socket, newest))
        try:
            while True:
                async with asyncio.timeout(IDLE):
                    text = await socket.receive_text()
                if len(text) > LONGEST:
                    return await socket.close(TOO_LONG)
                self.asked[socket] = time.monotonic()
                newest.put(text)
        except TimeoutError:
            return await socket.close(TOO_MANY)
        except (WebSocketDisconnect, KeyError):
            # KeyError: bytes instead of text
            return None
        finally:
            self.asked.pop(socket, None)
            answering.cancel()
            # it left before the answer
            with suppress(asyncio.CancelledError, WebSocketDisconnect, RuntimeError):
                await answering

    async def _make_room(self) -> bool:
        """Close the connection that has been silent for longest; False if all ask."""
        silent = min(self.asked, key=self.asked.__getitem__)
        if time.monotonic() - self.asked[silent] < SILENT:
            return False
        del self.asked[silent]
        # it may be leaving by itself
        with suppress(RuntimeError, WebSocketDisconnect):
            await silent.close(TOO_MANY)
        return True

    async def _answer(self, socket: WebSocket, newest: _Newest) -> None:
        while True:
            await socket.send_bytes(await self._computed(await newest.take()))

    async def _computed(self, text: str) -> bytes:
        """Compute an answer, in the order of the questions if it is quick."""
        loop = asyncio.get_running_loop()
        quick = partial(answer, self.instant, text, quick=True)
        found = await loop.run_in_executor(self._quick, quick)
        return found or await loop.run_in_executor(self._threads, answer, self.instant, text)

    async def respond(self, request: Request) -> Response:
        """Answer one question without a websocket."""
        text = b""
        async for part in request.stream():
            text += part
            if len(text) > LONGEST:
                return PlainTextResponse("This question is too long.\n", 413)
        # the browser asks again, with a newer value
        if self.waiting >= WAITING:
            return PlainTextResponse("Other questions are being answered.\n", 503)
        self.waiting += 1
        try:
            body = await self._computed(text.decode("utf-8", errors="replace"))
        finally:
            self.waiting -= 1
        return Response(
            body, media_type="application/octet-stream", headers={"Cache-Control": "no-store"}
        )


class _Newest:
    """The newest question; those before it that were not taken are dropped."""

    def __init__(self) -> None:
        self._text: str | None = None
        self._there = asyncio.Event()

    def put(self, text: str) -> None:
        self._text = text
        self._there.set()

    async def take(self) -> str:
        await self._there.wait()
        self._there.clear()
        assert self._text is not None
        return self._text


@lru_cache(maxsize=1)
def _channel() -> Channel:
    return Channel()


async def _serve(socket: WebSocket) -> None:
    await _channel().serve(socket)


async def _respond(request: Request) -> Response:
    try:
        return await _channel().respond(request)
    except ClientDisconnect:
        # it has left, and does not read this
        return Response(status_code=400)


# Any prefix, as in `bandits_app.widgets.live_panel.panel`.
routes = [
    WebSocketRoute(f"/{{prefix:path}}{PATH}", _serve),
    Route(f"/{{prefix:path}}{PATH}", _respond, methods=["POST"]),
]
