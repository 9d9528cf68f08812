"""Bound the memory that uploads take: a visitor's files, and what a page keeps that is no longer shown."""

from __future__ import annotations

import re
from collections.abc import Callable

import streamlit as st
from starlette.types import ASGIApp, Receive, Scope, Send
from streamlit import runtime
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.scriptrunner import get_script_run_ctx

MAX_FILES = 3  # of a visitor; the page shows the newest one
_UPLOAD = re.compile(r"/_stcore/upload_file/([^/]+)/[^/]+$")
PAGES = ("data", "data/what_if")
"""Addresses of the pages that take files."""
TABLE, SUMMARY = "data-table", "whatif-summary"
"""In the session: identity and content of the table, or summary of the log, that is shown."""


def _manager() -> MemoryUploadedFileManager | None:
    manager = runtime.get_instance().uploaded_file_mgr if runtime.exists() else None
    return manager if isinstance(manager, MemoryUploadedFileManager) else None


class UploadLimit:
    """Middleware that gives a visitor's oldest file back when another one is uploaded.

    Streamlit limits the size of a file but not how many a visitor may leave on the server.

    Parameters
    ----------
    app : ASGIApp
    manager : callable, optional
        Returns what holds the files; by default that of the running server.
    """

    def __init__(self, app: ASGIApp, manager: Callable[[], MemoryUploadedFileManager | None] = _manager) -> None:
        self._app, self._manager = app, manager

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on; before an upload, make room for it."""
        upload = _UPLOAD.search(scope["path"]) if scope["type"] == "http" and scope["method"] == "PUT" else None
        if upload is not None and (manager := self._manager()) is not None:
            kept = list(manager.file_storage.get(upload[1], {}))
            for file in kept[: len(kept) - MAX_FILES + 1]:
                manager.remove_file(upload[1], file)
        await self._app(scope, receive, send)


def give_back() -> None:
    """Give this session's files and their parsed table back: the page that shows them was left."""
    for key in (TABLE, SUMMARY):
        st.session_state.pop(key, None)
    context, manager = get_script_run_ctx(), _manager()
    if context is not None and manager is not None:
        manager.remove_session_files(context.session_id)
