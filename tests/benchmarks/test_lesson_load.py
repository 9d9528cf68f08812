"""The measurement of a class that opens a lesson at once."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from websockets.asyncio.server import Request, Response, ServerConnection, serve
from websockets.datastructures import Headers
from websockets.typing import Subprotocol

from benchmarks.load import mixed
from benchmarks.load.lesson import measure

PAGES = Path(__file__).parents[2] / "pages"


def test_visitors_walk_through_all_doors() -> None:
    assert {*mixed.PAGES} == {file.stem for file in PAGES.glob("*.py")} - {"main"}


def test_a_reader_that_is_refused_does_not_let_the_others_wait_for_ever() -> None:
    opened = list[ServerConnection]()

    def refuse(connection: ServerConnection, _: Request) -> Response | None:
        opened.append(connection)
        return Response(503, "Service Unavailable", Headers()) if len(opened) > 1 else None

    async def listen(connection: ServerConnection) -> None:
        await connection.wait_closed()

    async def measured() -> None:
        async with serve(
            listen, "127.0.0.1", 0, process_request=refuse, subprotocols=[Subprotocol("streamlit")]
        ) as server:
            port = next(iter(server.sockets)).getsockname()[1]
            found, watch = await asyncio.wait_for(measure(f"127.0.0.1:{port}", "", 2, 1.0), 20)
        assert found == [None, None]
        assert sorted(failure.partition(":")[0] for failure in watch.failures) == [
            "BrokenBarrierError",
            "InvalidStatus",
        ]

    # a browser test may have left an event loop in this one
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, measured()).result()
