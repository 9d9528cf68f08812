"""The one pool of workers that all sessions share."""

from __future__ import annotations

import gc
import os

import streamlit as st

from bandits.jobs import Pool


@st.cache_resource(show_spinner=False)
def pool() -> Pool:
    """Warm workers, started once per server."""
    made = Pool(workers=max(2, min(4, (os.cpu_count() or 2) - 1)))
    # Streamlit collects garbage after every script run: what was imported need not be looked at again
    gc.collect()
    gc.freeze()
    return made
