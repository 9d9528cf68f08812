"""The sample is downloaded, uploaded, run and deleted."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Open
from tests.browser.test_accessibility import go_to

pytestmark = pytest.mark.browser
expect.set_options(timeout=240_000)


def test_the_sample_is_downloaded_uploaded_run_and_deleted(visit: Open, tmp_path: Path) -> None:
    page = visit("/data")
    expect(page.get_by_role("heading", name="Your data")).to_be_visible()
    with page.expect_download() as download:
        page.get_by_role("button", name="Download").nth(1).click()
    assert download.value.suggested_filename == "iris.csv"
    download.value.save_as(tmp_path / "iris.csv")
    page.locator("input[type=file]").set_input_files(tmp_path / "iris.csv")
    expect(page.get_by_text("150 examples, 4 features, 3 classes")).to_be_visible()
    expect(page.get_by_role("combobox", name=re.compile("^Target"))).to_have_value("species")
    page.get_by_role("button", name="Save and run").click()
    expect(page.get_by_role("heading", name="Arena")).to_be_visible()
    expect(
        page.locator(".st-key-run-status").get_by_text("Finished: 5,000 steps, 8 replications")
    ).to_be_visible()
    tiles = page.get_by_role("list", name="Leaderboard").get_by_role("listitem")
    expect(tiles).to_have_count(5)
    rates = dict(
        re.findall(r"^(\S+)\n(0\.\d{3})", "\n".join(tiles.all_inner_texts()), re.MULTILINE)
    )
    assert float(rates["LinUCB"]) > 0.7 > float(rates["Random"])
    # the link names the run
    page.reload()
    expect(
        page.locator(".st-key-run-status").get_by_text("Finished: 5,000 steps, 8 replications")
    ).to_be_visible()
    go_to(page, "/data")
    page.get_by_role("button", name="Delete").click()
    page.get_by_role("button", name="Delete data set").click()
    expect(page.get_by_text("Uploaded data sets")).to_have_count(0)
