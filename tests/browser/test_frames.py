"""The app in a frame of another page, where the owner of the server names that page."""

from __future__ import annotations

import base64
import functools
import http.server
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from bandits.experiments import url
from tests.browser.conftest import App, Open
from tests.browser.test_journeys import DRAWN, status
from tests.support import experiment

pytestmark = pytest.mark.browser
expect.set_options(timeout=240_000)

SHOP = experiment("linucb", "random", steps=300, replications=2)
COPIED = """async () => { const [item] = await navigator.clipboard.read();
  const bytes = new Uint8Array(await (await item.getType('image/png')).arrayBuffer());
  return btoa(bytes.reduce((text, byte) => text + String.fromCharCode(byte), '')) }"""


@pytest.fixture
def course(tmp_path: Path) -> Iterator[tuple[Path, int]]:
    """A folder of pages, and the port at which another server has them."""
    folder = tmp_path / "course"
    folder.mkdir()
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(folder))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield folder, server.server_port
    server.shutdown()
    server.server_close()


@pytest.mark.stress
def test_below_a_path_a_named_site_shows_one_run_and_another_site_does_not(
    course: tuple[Path, int],
    browser: Browser,
    visit: Open,
    start: Callable[..., App],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The app is below a path of its server, as behind a reverse proxy."""
    folder, port = course
    monkeypatch.setenv("BANDITS_FRAME_ANCESTORS", f"http://localhost:{port}")
    app = start("/bandits")
    whole = visit(f"/arena?{url.query(SHOP)}", at=app)
    status(whole, "^Finished: 300 steps")
    expect(whole.locator(DRAWN).first).to_be_attached()
    address = f"{app.address}/arena?{url.query(SHOP)}&embed=true"
    (folder / "page.html").write_text(
        f'<iframe src="{address.replace("&", "&amp;")}" width="1200" height="760"></iframe>',
        "utf-8",
    )
    page = browser.new_page()
    page.goto(f"http://localhost:{port}/page.html")
    frame = page.frame_locator("iframe")
    expect(frame.locator(DRAWN).first).to_be_attached()
    expect(frame.get_by_test_id("stTopNavLink").filter(visible=True)).to_have_count(0)
    for name in ("Present", "Share", "Exit presentation", "Help"):
        button = frame.get_by_role("button", name=name, exact=True)
        expect(button.filter(visible=True)).to_have_count(0)
    expect(frame.get_by_role("link", name="Open the app")).to_be_visible()
    # another name of the same server
    page.goto(f"http://127.0.0.1:{port}/page.html")
    page.wait_for_timeout(1500)
    expect(frame.locator("body")).not_to_contain_text("Random", timeout=1000)
    assert [f.url for f in page.frames[1:]] == ["chrome-error://chromewebdata/"]
    page.close()


@pytest.mark.stress
def test_a_run_is_copied_as_a_frame_and_as_an_image(visit: Open) -> None:
    page = visit(f"/arena?{url.query(SHOP)}")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    status(page, "^Finished: 300 steps")
    expect(page.locator(DRAWN).first).to_be_attached()
    page.get_by_role("button", name="Share").click()
    frame = page.get_by_test_id("stCode").filter(has_text="iframe").inner_text().replace("\n", "")
    assert frame.startswith('<iframe src="http://127.0.0.1:')
    assert "&amp;embed=true" in frame
    expect(page.get_by_text("No page may show it yet")).to_be_visible()
    page.get_by_role("button", name="Copy as image").click()
    expect(page.get_by_text("Copied: paste it")).to_be_visible()
    png = base64.b64decode(page.evaluate(COPIED))
    # two plots in a row, of 900 pixels each
    assert png.startswith(b"\x89PNG")
    assert int.from_bytes(png[16:20]) == 1800
    assert len(png) > 20_000
