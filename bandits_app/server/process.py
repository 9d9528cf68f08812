"""Settings of the server's process, in which many threads draw pages."""

from __future__ import annotations

import sys

from bandits.base.malloc import set_malloc

# Seconds after which a thread gives way to another one that waits for the interpreter. Each element
# of a page takes a lock of Streamlit: with 5 ms, Python's default, a thread that is interrupted in
# it holds up all others again and again (`python -m benchmarks.load.mixed --sessions 42`).
TURN = 0.0005
# one heap for each thread, as glibc has by default, keeps what each has freed
ARENAS = 2
# bytes: results of runs and frames of their plots are larger
OWN_PAGES = 2**20


def tune() -> None:
    """Let threads take short turns and return memory early."""
    sys.setswitchinterval(TURN)
    set_malloc(arenas=ARENAS, mmap_threshold=OWN_PAGES, trim_threshold=OWN_PAGES)
