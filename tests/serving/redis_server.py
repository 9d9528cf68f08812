"""Find Debian's redis-server for the tests marked ``redis``, or install it:
``python -m tests.serving.redis_server``.

Where there is none, pytest states that these tests are left out.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import redis

from tests.support import wait_for

MISSING = "redis-server is not installed (Debian: apt-get install redis-server)"


def find() -> str | None:
    """Path of the server."""
    return shutil.which("redis-server")


def fetch() -> str | None:
    """Find a server, or install one and find that."""
    if find() is None and shutil.which("apt-get") and os.geteuid() == 0:
        install = "apt-get update -q && apt-get install -y -q --no-install-recommends redis-server"
        subprocess.run(["sh", "-c", install], stdout=sys.stderr, check=False)
    return find()


class RedisServer:
    """A server of its own, on a free port, which keeps what it acknowledges."""

    def __init__(self, folder: Path, *options: str) -> None:
        folder.mkdir(exist_ok=True)
        self.folder, self.options = folder, options
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self.client = redis.Redis(port=self.port)
        self.start()

    def start(self) -> None:
        """Start, with what is in the folder."""
        server = find()
        assert server is not None, MISSING
        kept = ["--appendonly", "yes", "--appendfsync", "always", "--save", ""]
        place = ["--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.folder)]
        self.process = subprocess.Popen(
            [server, *place, *kept, *self.options], stdout=subprocess.DEVNULL
        )
        wait_for(self._answers, "redis-server")

    def kill(self) -> None:
        """End it as a failure would."""
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        """End it for good."""
        self.client.close()
        self.kill()

    def _answers(self) -> bool:
        try:
            return bool(self.client.ping())
        except redis.RedisError:
            return False


if __name__ == "__main__":
    print(fetch() or f"The tests marked redis are left out: {MISSING}.")
