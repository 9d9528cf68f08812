"""Keep the server's memory small: one thread that collects garbage instead of every page."""

from __future__ import annotations

import ctypes
import gc
import itertools
import sys
import threading
import time

import streamlit as st


@st.cache_resource(show_spinner=False)
def start_collecting() -> threading.Thread:
    """Start one thread per server, however often its pool is replaced."""
    thread = threading.Thread(target=_collect, daemon=True)
    thread.start()
    return thread


def _collect() -> None:
    """Collect garbage once a minute, exempt long-lived objects meanwhile, and return freed memory to the system.

    Streamlit runs a full collection after every script run: 25 ms each time, too much for thirty viewers. Objects that
    have survived for a minute are frozen; once a minute all objects are collected, so that nothing leaks. glibc keeps
    what many threads have freed: hundreds of MiB after a few dozen runs.
    """
    for pause in itertools.chain((3, 6, 12, 24), itertools.repeat(60)):
        time.sleep(pause)
        gc.unfreeze()
        gc.collect()
        gc.freeze()
        if sys.platform == "linux" and (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)) is not None:
            trim(0)
