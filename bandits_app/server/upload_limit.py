"""Bound the memory that uploads take: a visitor may leave a few files on the server, for one page,
and all visitors together have a total. Pictures and downloads, which Streamlit keeps too, are
entered beside them.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from streamlit import runtime
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.runtime.stats import CACHE_MEMORY_FAMILY, CacheStat, StatsManager

from bandits.base.ledger import LEDGER

# of a visitor; the page shows the newest one
MAX_FILES = 3
# bytes of all visitors, in flight and kept
MAX_TOTAL = 256 * 2**20
# of what states no length
LARGEST = 50 * 2**20
_HOLDER = "uploads"
_UPLOAD = re.compile(r"/_stcore/upload_file/([^/]+)/[^/]+$")
_MEDIA = re.compile(r"/media/[^/]+$")
_MEDIA_STORE = "st_memory_media_file_storage"


def upload_manager() -> MemoryUploadedFileManager | None:
    """Return what holds the files of the running server, if it is running."""
    manager = runtime.get_instance().uploaded_file_mgr if runtime.exists() else None
    return manager if isinstance(manager, MemoryUploadedFileManager) else None


def is_here(session: str) -> bool:
    """Return whether the browser of a session is connected."""
    return not runtime.exists() or runtime.get_instance().is_active_session(session)


def held(manager: MemoryUploadedFileManager) -> int:
    """Return the bytes of all files that are kept."""
    files = [file for kept in list(manager.file_storage.values()) for file in list(kept.values())]
    return sum(len(file.data) for file in files)


def running_stats() -> StatsManager | None:
    """Return what states the memory of the running server, if it is running."""
    return runtime.get_instance().stats_mgr if runtime.exists() else None


def media_held(stats: StatsManager) -> int:
    """Return the bytes of all pictures and downloads that Streamlit keeps for pages."""
    found = stats.get_stats([CACHE_MEMORY_FAMILY]).get(CACHE_MEMORY_FAMILY, ())
    return sum(
        stat.byte_length
        for stat in found
        if isinstance(stat, CacheStat) and stat.category_name == _MEDIA_STORE
    )


def enter_media(stats: StatsManager | None) -> None:
    """Enter what Streamlit keeps for pages now: less, once pages or visitors have left."""
    if stats is not None:
        LEDGER.keep("media", media_held(stats))


class UploadLimit:
    """Middleware that gives a visitor's oldest file back when another one is uploaded.

    Streamlit limits the size of a file but not how many a visitor may leave on the server, nor how
    many all visitors may. Files of visitors who have left are given back when room is needed;
    where that is not enough, the upload is refused.

    Parameters
    ----------
    app : ASGIApp
    manager : callable, optional
        Returns what holds the files; by default that of the running server.
    here : callable, str -> bool
        Whether the browser of a session is connected.
    stats : callable, optional
        Returns what states the memory of the server; by default of the running one.
    """

    def __init__(
        self,
        app: ASGIApp,
        manager: Callable[[], MemoryUploadedFileManager | None] = upload_manager,
        here: Callable[[str], bool] = is_here,
        stats: Callable[[], StatsManager | None] = running_stats,
    ) -> None:
        self._app, self._manager, self._here = app, manager, here
        self._stats = stats
        self._in_flight = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on; before an upload, make room for it."""
        if scope["type"] == "http" and _MEDIA.search(scope["path"]):
            # most of what is made for a page is asked for by its visitor
            enter_media(self._stats())
        upload = (
            _UPLOAD.search(scope["path"])
            if scope["type"] == "http" and scope["method"] == "PUT"
            else None
        )
        if upload is None or (manager := self._manager()) is None:
            return await self._app(scope, receive, send)
        kept = list(manager.file_storage.get(upload[1], {}))
        for file in kept[: len(kept) - MAX_FILES + 1]:
            manager.remove_file(upload[1], file)
        stated = Headers(scope=scope).get("content-length", "")
        length = int(stated) if stated.isdecimal() else LARGEST
        if not self._fits(manager, length):
            for session in [name for name in manager.file_storage if not self._here(name)]:
                manager.remove_session_files(session)
            if not self._fits(manager, length):
                refusal = PlainTextResponse(
                    "Other visitors' files fill the server's memory.\n", 503
                )
                return await refusal(scope, receive, send)
        self._in_flight += length
        try:
            await self._app(scope, receive, send)
        finally:
            self._in_flight -= length

    def _fits(self, manager: MemoryUploadedFileManager, length: int) -> bool:
        """Return whether a file fits beside those that are kept and in flight, and enter all."""
        enter_media(self._stats())
        total = held(manager) + self._in_flight + length
        if total > MAX_TOTAL or not LEDGER.enter(_HOLDER, total):
            return False
        LEDGER.keep(_HOLDER, total)
        return True


def give_back() -> None:
    """Give the files of this session back."""
    context, manager = get_script_run_ctx(), upload_manager()
    if context is not None and manager is not None:
        manager.remove_session_files(context.session_id)
        LEDGER.keep(_HOLDER, held(manager))
        enter_media(running_stats())
