"""Identify the browser that started a run, without cookies of our own."""

from __future__ import annotations

import hashlib
import secrets
from contextlib import suppress

import streamlit as st


def owner() -> str:
    """Return an identifier of this browser: the same after a reload, in a second tab and on the next visit.

    It is a hash of the random token that Streamlit gives every browser against cross-site requests, whose mask changes
    from page to page. A browser without that cookie gets an identifier for its session.
    """
    with suppress(ValueError):
        version, mask, token, _ = st.context.cookies.get("_streamlit_xsrf", "").split("|")
        key = bytes.fromhex(mask)
        unmasked = bytes(byte ^ key[i % len(key)] for i, byte in enumerate(bytes.fromhex(token)))
        return hashlib.sha256(version.encode() + unmasked).hexdigest()
    return str(st.session_state.setdefault("owner", secrets.token_hex(16)))
