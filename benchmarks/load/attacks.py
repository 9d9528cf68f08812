"""Repeat attacks on the memory of the server, and print its peak in each.

    python -m benchmarks.load.attacks [NAME ...]

Each attack has a server of its own in an empty home, and ends within two minutes. Visitors have no
right: they open connections, upload files and send messages. The files that name many or long
things are given to the function that the page *What if?* calls, in a process of its own, whose peak
is measured. Exits with 1 where a peak is above `LIMIT` or an honest visitor is not answered."""

from __future__ import annotations

import http.client
import io
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from bandits.base.formatting import size
from bandits_app.server.sockets import SILENT

from .sessions import ROOT, Server

# bytes of the server, at most
LIMIT = 1.2 * 2**30
MEGABYTE = 10**6
# where connections come from: limits count those of one address
LOCAL = "127.0.0.1"


def _peak(process: int | str) -> int:
    """Return the largest resident memory of a process so far, in bytes."""
    status = Path(f"/proc/{process}/status").read_text(encoding="ascii")
    return int(status.split("VmHWM:")[1].split()[0]) * 2**10


def silent_sockets(server: Server, source: str = LOCAL) -> str:
    """Hold 100 connections that ask nothing; another visitor connects after they were silent."""
    from websockets.sync.client import connect

    options: dict[str, Any] = {
        "origin": f"http://{server.host}",
        "ping_interval": None,
        "source_address": (source, 0),
    }
    address = f"ws://{server.host}/instant"
    with ExitStack() as stack:
        for _ in range(100):
            stack.enter_context(connect(address, **options))
        time.sleep(12)
        with connect(address, **options) as honest:
            honest.send("{}")
            answer = honest.recv(timeout=60)
        return f"the visitor after them is answered ({len(answer)} bytes)"


def many_pages(server: Server, source: str = LOCAL) -> str:
    """Hold 300 connections of pages that ask nothing; another visitor connects after them."""
    from websockets.exceptions import ConnectionClosed, InvalidStatus
    from websockets.sync.client import connect
    from websockets.typing import Subprotocol

    options: dict[str, Any] = {
        "origin": f"http://{server.host}",
        "subprotocols": [Subprotocol("streamlit")],
        "ping_interval": None,
        "open_timeout": 60,
        "source_address": (source, 0),
    }
    address, held = f"ws://{server.host}/_stcore/stream", 0
    with ExitStack() as stack:
        for _ in range(300):
            with suppress(ConnectionClosed, InvalidStatus):
                stack.enter_context(connect(address, **options))
                held += 1
        time.sleep(SILENT + 1)
        stack.enter_context(connect(address, **options))
        return f"{held} of 300 are held; the visitor after them is let in"


def large_frames(server: Server, source: str = LOCAL) -> str:
    """Begin six messages of 190 MB, for a route that takes 32 kB."""
    host, port = server.host.split(":")
    refused = 0
    with ExitStack() as stack:
        for _ in range(6):
            line = stack.enter_context(
                socket.create_connection((host, int(port)), 20, source_address=(source, 0))
            )
            line.sendall(
                f"GET /instant HTTP/1.1\r\nHost: {server.host}\r\nUpgrade: websocket\r\n"
                "Connection: Upgrade\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
                "Sec-WebSocket-Version: 13\r\n\r\n".encode()
            )
            line.recv(4096)
            # a text of 190 MB, masked with zeros
            line.sendall(b"\x81\xff" + (190 * MEGABYTE).to_bytes(8) + bytes(4))
            try:
                for _ in range(180):
                    line.sendall(b"x" * MEGABYTE)
            except OSError:
                refused += 1
    return f"{refused} of 6 are refused before they end"


def uploads(server: Server, source: str = LOCAL) -> str:
    """Upload three files of 49 MB in each of four sessions, which stay open."""
    from streamlit.proto.BackMsg_pb2 import BackMsg
    from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
    from streamlit.web.server.starlette.starlette_app_utils import generate_xsrf_token_string
    from websockets.sync.client import connect
    from websockets.typing import Subprotocol

    token, answers = generate_xsrf_token_string(), list[int]()
    with ExitStack() as stack:
        for _ in range(4):
            line = stack.enter_context(
                connect(
                    f"ws://{server.host}/_stcore/stream",
                    origin=f"http://{server.host}",  # type: ignore[arg-type]
                    subprotocols=[Subprotocol("streamlit")],
                    max_size=None,
                    ping_interval=None,
                    source_address=(source, 0),
                )
            )
            message = BackMsg()
            message.rerun_script.query_string = ""
            line.send(message.SerializeToString())
            while True:
                raw = line.recv(timeout=120)
                assert isinstance(raw, bytes)
                found = ForwardMsg.FromString(raw)
                if found.WhichOneof("type") == "new_session":
                    break
            session = found.new_session.initialize.session_id
            for i in range(3):
                answers.append(_put(server.host, f"{session}/file{i}", token, source))
    kept = sum(200 <= status < 300 for status in answers)
    return f"{kept} of {len(answers)} files are kept, the others refused"


def _put(host: str, path: str, token: str, source: str) -> int:
    body = (
        b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.csv"\r\n'
        b"Content-Type: text/csv\r\n\r\n" + b"1,2\n" * (49 * MEGABYTE // 4) + b"\r\n--x--\r\n"
    )
    headers = {
        "Content-Type": "multipart/form-data; boundary=x",
        "Origin": f"http://{host}",
        "Cookie": f"_streamlit_xsrf={token}",
        "X-Xsrftoken": token,
    }
    line = http.client.HTTPConnection(host, timeout=60, source_address=(source, 0))
    try:
        # it is refused by its length, before it is read
        with suppress(BrokenPipeError, ConnectionResetError):
            line.request("PUT", f"/_stcore/upload_file/{path}", body, headers)
        try:
            return line.getresponse().status
        except (http.client.HTTPException, OSError):
            return 503
    finally:
        line.close()


ATTACKS = silent_sockets, many_pages, large_frames, uploads


def many_names() -> tuple[bytes, str]:
    """Name a million columns in 6.9 MB."""
    return ",".join(f"c{i}" for i in range(1_000_000)).encode() + b"\n", ".csv"


def long_names() -> tuple[bytes, str]:
    """Name 50 items with 10 MB each, in 33 kB."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    items = [chr(97 + i % 26) * (10 * MEGABYTE + i) for i in range(50)]
    buffer = io.BytesIO()
    table = pa.table({"action": items, "reward": [0, 1] * 25})
    pq.write_table(table, buffer, compression="zstd")
    return buffer.getvalue(), ".parquet"


def _of_file(make: Callable[[], tuple[bytes, str]]) -> tuple[int, str]:
    """Give a file to what the page calls; return the peak of the caller, and the refusal."""
    program = (
        "import json, sys\n"
        "from bandits import UserError\n"
        "from bandits.offpolicy.background import columns_of_file, summarise_file\n"
        "from benchmarks.load.attacks import _peak\n"
        "content, ending, found = sys.stdin.buffer.read(), sys.argv[1], 'accepted'\n"
        "try:\n"
        "    columns = columns_of_file(content, ending)\n"
        "    summarise_file(content, ending, columns.guessed)\n"
        "except UserError as error:\n"
        "    found = str(error)\n"
        "print(json.dumps([_peak('self'), found]))\n"
    )
    content, ending = make()
    done = subprocess.run(
        [sys.executable, "-c", program, ending],
        input=content,
        stdout=subprocess.PIPE,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=True,
    )
    peak, found = json.loads(done.stdout)
    return peak, found


def main() -> int:
    """Run all attacks; return the exit status."""
    failed, chosen = False, set(sys.argv[1:])
    for make in (many_names, long_names):
        if chosen and make.__name__ not in chosen:
            continue
        peak, found = _of_file(make)
        print(f"{make.__name__}: peak of the caller {size(peak)}; {found}", flush=True)
        failed |= peak > LIMIT or found == "accepted"
    for attack in ATTACKS:
        if chosen and attack.__name__ not in chosen:
            continue
        with tempfile.TemporaryDirectory() as home:
            server = Server.start(home)
            try:
                before, found = _peak(server.process.pid), attack(server)
                peak = _peak(server.process.pid)
            finally:
                server.stop()
        print(
            f"{attack.__name__}: peak of the server {size(peak)} (before {size(before)}); {found}",
            flush=True,
        )
        failed |= peak > LIMIT
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
