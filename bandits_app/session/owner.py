"""Identify the browser that started a run, without cookies of our own."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable
from contextlib import suppress

import streamlit as st

from bandits.storage.owners import DELETE_REFUSED, Owners
from bandits_app.server.security import CONSOLE_HEADER

# bytes of a token that cannot be guessed
SHORTEST = 16


def owner() -> str:
    """Return an identifier of this browser: the same after a reload, in a second tab and on the
    next visit.

    It is a hash of the random token that Streamlit gives every browser against cross-site requests,
    whose mask changes from page to page. A browser without that cookie gets an identifier for its
    session."""
    with suppress(ValueError):
        version, mask, token, _ = st.context.cookies.get("_streamlit_xsrf", "").split("|")
        key, masked = bytes.fromhex(mask), bytes.fromhex(token)
        # what a visitor has made himself may be empty: it would be the same for all who do so
        if not key or len(masked) < SHORTEST:
            raise ValueError
        unmasked = bytes(byte ^ key[i % len(key)] for i, byte in enumerate(masked))
        return hashlib.sha256(version.encode() + unmasked).hexdigest()
    return str(st.session_state.setdefault("owner", secrets.token_hex(16)))


def address() -> str:
    """Return the network address of this browser.

    "" on the server itself, or where it is not known.
    """
    return st.context.ip_address or ""


def deleter() -> str | None:
    """Return in whose name this browser deletes: its own.

    At the console None, which may delete everything.
    """
    return None if at_console() else owner()


def at_console() -> bool:
    """Return whether this browser has opened the link of the console."""
    return st.context.headers.get(CONSOLE_HEADER) == "1"


def may_delete(items: Iterable[str], owners: Owners) -> bool:
    """Return whether this browser may delete all of these runs or sweeps."""
    me = deleter()
    return all(owners.may_delete(item, me) for item in items)


def refusal(allowed: bool, why: str = DELETE_REFUSED) -> str | None:
    """Return the help of a button that may not be used, by default of one that deletes."""
    return None if allowed else f"{why[0].upper()}{why[1:]}."
