"""Hold disk space back for the moment at which the disk is full: deleting files that can be
recomputed needs some.
"""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path

BYTES = 2**20  # of the reserve
# bytes that must be free for a reserve to be made
MIN_FREE = 64 * 2**20


def fill(folder: Path) -> None:
    """Write the reserve of a folder of stored files, unless it is there or the disk is
    nearly full.
    """
    path = folder / "reserve"
    with suppress(OSError):
        if not path.exists() and shutil.disk_usage(folder).free > MIN_FREE:
            # random: a file system must not compress it
            path.write_bytes(os.urandom(BYTES))


def release(folder: Path) -> None:
    """Delete the reserve, so that a full disk has some space."""
    with suppress(OSError):
        (folder / "reserve").unlink()
