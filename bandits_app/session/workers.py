"""What all sessions share: the pool of workers, and one thread that keeps the server's memory
small.
"""

from __future__ import annotations

import gc
import itertools
import os
import threading
import time

import streamlit as st

from bandits.base import malloc
from bandits.base.processes import remove_leftovers
from bandits.runtime.pool import Pool
from bandits.storage.run_store import Store


@st.cache_resource(show_spinner=False)
def pool() -> Pool:
    """Start the workers, once per server."""
    remove_leftovers()
    workers = Pool(workers=max(2, min(16, (os.cpu_count() or 2) - 1)), store=Store())
    _start_collecting()
    return workers


@st.cache_resource(show_spinner=False)
def _start_collecting() -> threading.Thread:
    """Start one thread per server, however often its pool is replaced."""
    thread = threading.Thread(target=_collect, daemon=True)
    thread.start()
    return thread


def _collect() -> None:
    """Collect garbage once a minute, exempt long-lived objects meanwhile, and return freed memory
    to the system.

    Streamlit runs a full collection after every script run: 25 ms each time, too much for thirty
    viewers. Objects that have survived for a minute are frozen; once a minute all objects are
    collected, so that nothing leaks. glibc keeps what many threads have freed: hundreds of MiB
    after a few dozen runs."""
    for pause in itertools.chain((3, 6, 12, 24), itertools.repeat(60)):
        time.sleep(pause)
        gc.unfreeze()
        gc.collect()
        gc.freeze()
        malloc.trim()
