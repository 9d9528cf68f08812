"""The pool of workers that all sessions share."""

from __future__ import annotations

import os

import streamlit as st

from bandits.runtime.pool import Pool
from bandits.storage.run_store import Store

from . import memory


@st.cache_resource(show_spinner=False)
def pool() -> Pool:
    """Start the workers, once per server."""
    workers = Pool(workers=max(2, min(16, (os.cpu_count() or 2) - 1)), store=Store())
    memory.start_collecting()
    return workers
