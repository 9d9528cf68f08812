"""Bound the memory that uploads take: a visitor may leave a few files on the server, for
one page.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from starlette.types import ASGIApp, Receive, Scope, Send
from streamlit import runtime
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.scriptrunner import get_script_run_ctx

# of a visitor; the page shows the newest one
MAX_FILES = 3
_UPLOAD = re.compile(r"/_stcore/upload_file/([^/]+)/[^/]+$")


def upload_manager() -> MemoryUploadedFileManager | None:
    """Return what holds the files of the running server, if it is running."""
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

    def __init__(
        self, app: ASGIApp, manager: Callable[[], MemoryUploadedFileManager | None] = upload_manager
    ) -> None:
        self._app, self._manager = app, manager

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on; before an upload, make room for it."""
        upload = (
            _UPLOAD.search(scope["path"])
            if scope["type"] == "http" and scope["method"] == "PUT"
            else None
        )
        if upload is not None and (manager := self._manager()) is not None:
            kept = list(manager.file_storage.get(upload[1], {}))
            for file in kept[: len(kept) - MAX_FILES + 1]:
                manager.remove_file(upload[1], file)
        await self._app(scope, receive, send)


def give_back() -> None:
    """Give the files of this session back."""
    context, manager = get_script_run_ctx(), upload_manager()
    if context is not None and manager is not None:
        manager.remove_session_files(context.session_id)
