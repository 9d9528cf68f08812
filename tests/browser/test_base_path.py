"""The app below a path of its server, as behind a reverse proxy."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from bandits.experiments import url
from tests.browser.conftest import App, Open
from tests.browser.test_journeys import DRAWN, status
from tests.support import experiment

pytestmark = pytest.mark.browser
expect.set_options(timeout=240_000)


def test_plots_are_drawn_below_a_path(visit: Open, start: Callable[..., App]) -> None:
    page = visit(
        f"/arena?{url.query(experiment('random', steps=300, replications=2))}", at=start("/bandits")
    )
    status(page, "^Finished: 300 steps")
    expect(page.locator(DRAWN).first).to_be_attached()
