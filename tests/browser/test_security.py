"""What a page of another site can do with the app of a visitor: nothing."""

from __future__ import annotations

import urllib.error
import urllib.request

import pytest
from playwright.sync_api import Browser, ConsoleMessage, WebSocket

from bandits.experiments import url
from tests.support import experiment

pytestmark = pytest.mark.browser


def test_a_frame_on_another_site_shows_and_starts_nothing(browser: Browser, server: str) -> None:
    page = browser.new_page()
    sockets: list[WebSocket] = []
    page.on("websocket", lambda opened: sockets.append(opened))

    def refuses(message: ConsoleMessage) -> bool:
        return "frame-ancestors" in message.text

    with page.expect_console_message(refuses, timeout=60_000):
        page.set_content(
            f'<iframe src="{server}/arena?{url.query(experiment("random", steps=10_000))}"></iframe>'  # noqa: E501
        )
    assert sockets == []
    page.close()


def test_a_name_that_points_to_this_machine_is_not_answered(server: str) -> None:
    for path in ("/", "/_stcore/health", "/vendor/plotly.min.js"):
        asked = urllib.request.Request(f"{server}{path}", headers={"Host": "evil.example"})
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(asked, timeout=30)
