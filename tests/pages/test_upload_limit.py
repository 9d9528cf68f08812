"""Uploads take a bounded amount of memory, and none once their page is left."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest
from starlette.responses import PlainTextResponse
from starlette.types import Message, Receive, Scope, Send
from streamlit.runtime.media_file_storage import MediaFileKind
from streamlit.runtime.memory_media_file_storage import MemoryMediaFileStorage
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.stats import StatsManager
from streamlit.runtime.uploaded_file_manager import UploadedFileRec

from bandits.base.ledger import LEDGER
from bandits_app.server import upload_limit
from bandits_app.server.upload_limit import MAX_FILES, UploadLimit
from bandits_app.session.page import TABLE
from bandits_app.session.results import RESULTS
from tests.pages.support import open_page


def put(manager: MemoryUploadedFileManager, session: str, file: str, prefix: str = "") -> None:
    """Upload a file as Streamlit's route does, behind the limit."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        manager.add_file(session, UploadedFileRec(file, "a.csv", "text/csv", b"12345"))

    async def receive() -> Message:
        return {"type": "http.request"}

    async def send(message: Message) -> None:
        raise AssertionError(message)

    scope = {
        "type": "http",
        "method": "PUT",
        "path": f"{prefix}/_stcore/upload_file/{session}/{file}",
        "headers": [],
    }
    # a browser test of this process may have left an event loop in this one
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, UploadLimit(app, lambda: manager)(scope, receive, send)).result()


@pytest.mark.parametrize("prefix", ["", "/bandits"])
def test_a_visitor_leaves_a_few_files_at_most(prefix: str) -> None:
    manager = MemoryUploadedFileManager("/_stcore/upload_file")
    put(manager, "another", "theirs", prefix)
    for i in range(20):
        put(manager, "mine", f"file{i}", prefix)
        assert len(manager.file_storage["mine"]) <= MAX_FILES
    assert list(manager.file_storage["mine"]) == [f"file{i}" for i in range(20 - MAX_FILES, 20)]
    assert list(manager.file_storage["another"]) == ["theirs"]


def upload(limit: UploadLimit, session: str, length: int) -> int:
    """Send a request that states its length; return the status of the answer."""
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request"}

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "PUT",
        "path": f"/_stcore/upload_file/{session}/file",
        "headers": [(b"content-length", str(length).encode())],
    }
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, limit(scope, receive, send)).result()
    return int(sent[0]["status"])


def test_all_visitors_together_leave_a_bounded_total(monkeypatch: pytest.MonkeyPatch) -> None:
    manager = MemoryUploadedFileManager("/_stcore/upload_file")
    monkeypatch.setattr(upload_limit, "MAX_TOTAL", 10)
    gone = set[str]()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        session = scope["path"].split("/")[3]
        manager.add_file(session, UploadedFileRec("file", "a.csv", "text/csv", b"1234"))
        await PlainTextResponse("")(scope, receive, send)

    limit = UploadLimit(app, lambda: manager, lambda session: session not in gone)
    assert [upload(limit, name, 4) for name in "abc"] == [200, 200, 503]
    # the files of a visitor who has left give way
    gone.add("a")
    assert upload(limit, "c", 4) == 200
    assert set(manager.file_storage) == {"b", "c"}
    LEDGER.leave("uploads")


@pytest.mark.parametrize("prefix", ["", "/bandits"])
def test_what_streamlit_keeps_for_downloads_is_in_the_ledger(prefix: str) -> None:
    store, stats = MemoryMediaFileStorage("/media"), StatsManager()
    stats.register_provider(store)
    file = store.load_and_get_id(b"x" * 1_000, "text/csv", MediaFileKind.DOWNLOADABLE, "a.csv")
    store.load_and_get_id(b"y" * 234, "image/png", MediaFileKind.MEDIA)

    def get() -> int:
        limit = UploadLimit(PlainTextResponse(""), lambda: None, stats=lambda: stats)
        answered: list[Message] = []

        async def receive() -> Message:
            return {"type": "http.request"}

        async def send(message: Message) -> None:
            answered.append(message)

        scope = {"type": "http", "method": "GET", "path": f"{prefix}/media/{file}.csv"}
        with ThreadPoolExecutor(1) as thread:
            thread.submit(asyncio.run, limit(scope, receive, send)).result()
        assert answered[0]["status"] == 200
        return LEDGER.entries["media"]

    try:
        assert get() == 1_234
        store.delete_file(file)
        assert get() == 234
    finally:
        LEDGER.leave("media")


def test_what_visitors_left_leaves_the_ledger_with_the_next_upload() -> None:
    store, stats = MemoryMediaFileStorage("/media"), StatsManager()
    stats.register_provider(store)
    file = store.load_and_get_id(b"x" * 1_000, "text/csv", MediaFileKind.DOWNLOADABLE, "a.csv")
    manager = MemoryUploadedFileManager("/_stcore/upload_file")
    limit = UploadLimit(PlainTextResponse(""), lambda: manager, lambda _: True, lambda: stats)
    try:
        # nobody has asked for the file
        assert upload(limit, "a", 4) == 200
        assert LEDGER.entries["media"] == 1_000
        store.delete_file(file)
        assert upload(limit, "a", 4) == 200
        assert LEDGER.entries["media"] == 0
    finally:
        LEDGER.leave("media")
        LEDGER.leave("uploads")


def tables() -> list[object]:
    return [key for key in RESULTS._kept if key[0] == TABLE]


def test_a_page_that_is_left_keeps_no_table(monkeypatch: pytest.MonkeyPatch) -> None:
    manager = MemoryUploadedFileManager("/_stcore/upload_file")
    monkeypatch.setattr(upload_limit, "upload_manager", lambda: manager)
    monkeypatch.setattr(upload_limit, "running_stats", StatsManager)
    LEDGER.keep("media", 1_000)
    RESULTS.forget(TABLE)
    at = open_page("data")
    at = next(b for b in at.button if (b.key or "").startswith("try-")).click().run()
    assert not at.exception
    assert tables()
    manager.add_file("test session id", UploadedFileRec("file", "a.csv", "text/csv", b"12345"))
    at.switch_page("learn.py").run()
    assert not at.exception
    assert not tables()
    assert not manager.file_storage.get("test session id")
    # nor what Streamlit has let go of
    assert LEDGER.entries.pop("media") == 0
