"""A sweep from its settings to a point, a refinement, a link and a file.

And settings that are refused.
"""

from __future__ import annotations

import csv
import re
from contextlib import suppress
from pathlib import Path

import pytest
from playwright.sync_api import Page, TimeoutError, expect

from bandits import read
from bandits.experiments import url
from tests.browser.conftest import Open
from tests.browser.test_journeys import run_button

pytestmark = pytest.mark.browser
expect.set_options(timeout=240_000)

SHOP = {"kind": "petshop", "n_products": 10, "n_users": 40}
RACE = read(
    {
        "simulator": SHOP,
        "agents": [{"kind": "random"}, {"kind": "linucb"}],
        "steps": 300,
        "replications": 4,
    }
)
# where a place of the landscape is on the screen
PLACE = """([x, y]) => { const plot = document.querySelector('.bp-plot'), all = plot._fullLayout;
  const box = plot.getBoundingClientRect();
  return [box.left + all.xaxis._offset + all.xaxis.c2p(x), box.top + all.yaxis._offset + all.yaxis.c2p(y)] }"""  # noqa: E501
NAMES = """i => (document.querySelectorAll('.bp-plot')[i].data || []).filter(t => !t.fill && !t.meta)
  .map(t => t.name).sort()"""  # noqa: E501


def settled(page: Page) -> None:
    expect(page.get_by_test_id("stApp")).to_have_attribute("data-test-script-state", "notRunning")


def choose(page: Page, label: str, option: str) -> None:
    """Choose an option; a page that is drawn again meanwhile closes an open list or drops the
    click.
    """
    box = page.get_by_role("combobox", name=re.compile(f"{label}$"))
    for _ in range(9):
        box.click()
        with suppress(TimeoutError, AssertionError):
            page.get_by_role("option", name=option, exact=True).click(timeout=8000)
            settled(page)
            expect(box).to_have_value(option, timeout=3000)
            return
        page.keyboard.press("Escape")
    raise AssertionError(f"{label} cannot be set to {option}")


def fill(page: Page, label: str, number: object, axis: int = 0) -> None:
    box = page.get_by_test_id("stMain").get_by_role("spinbutton", name=label, exact=True).nth(axis)
    box.fill(str(number))
    box.press("Enter")
    settled(page)


def finished(page: Page) -> None:
    """Wait for the end of the sweep, and for the page that is drawn once more then."""
    expect(page.get_by_text(re.compile("^Finished")).first).to_be_visible()
    settled(page)


def curves(page: Page, names: str) -> None:
    """Check the traces of the point's figures, below the map and the curves by choice.

    They are drawn when in sight.
    """
    for i in (2, 3):
        page.locator(".bp-plot").nth(i).scroll_into_view_if_needed()
        page.wait_for_function(f"([i, names]) => `${{({NAMES})(i)}}` === names", arg=[i, names])


def means_of(page: Page) -> list[list[float]]:
    """Return the means of the map, row by row, once it is drawn."""
    page.wait_for_function(
        "() => (document.querySelector('.bp-plot')?.data || [{}])[0].type === 'heatmap'"
    )
    found: list[list[float]] = page.evaluate(
        "document.querySelector('.bp-plot').data[0].z.map(line => Array.from(line))"
    )
    return found


def press(page: Page, x: float, y: float) -> None:
    """Click a position of the map."""
    page.locator(".bp-plot").first.scroll_into_view_if_needed()
    page.mouse.click(*page.evaluate(PLACE, [x, y]))


def test_a_sweep_from_its_settings_to_a_point_a_link_a_file_and_a_refinement(
    visit: Open, tmp_path: Path
) -> None:
    page = visit(f"/arena?{url.query(RACE)}", viewport={"width": 1280, "height": 800})
    expect(page.get_by_text(re.compile("^Finished: 300 steps")).first).to_be_visible()
    page.get_by_role("link", name="Sweep").click()
    expect(page.get_by_role("heading", name="Sweep", exact=True)).to_be_visible()
    settled(page)
    choose(page, "Agent to sweep", "LinUCB")
    # the axes of the agent before stay on the page until it is drawn for this one
    expect(page.get_by_role("combobox", name=re.compile("First parameter$"))).to_have_value(
        re.compile("^Exploration bonus")
    )
    choose(page, "Second parameter", "none")
    expect(
        page.get_by_test_id("stMain").get_by_role("spinbutton", name="From", exact=True)
    ).to_have_count(1)
    fill(page, "From", 0.1)
    fill(page, "Number of values", 3)
    extra = page.get_by_role("textbox", name="Additional values")
    extra.fill("")
    extra.press("Enter")
    expect(page.get_by_text(re.compile("^3 points × 4 replications × 300 steps"))).to_be_visible()
    run_button(page).click()
    finished(page)
    expect(page.locator(".bp-plot")).to_have_count(3)
    expect(page.get_by_text(re.compile(r"(Of|All) 3 points"))).to_be_visible()
    top = page.locator(".bp-plot").first.bounding_box()
    assert top is not None
    # the settings are folded; the conclusion stands above the plot
    assert top["y"] < 520

    page.get_by_text("Settings", exact=True).last.click()
    settled(page)
    choose(page, "Second parameter", "Sharing")
    run_button(page).click()
    expect(page.get_by_text(re.compile(r"(Of|All) 9 points"))).to_be_visible()
    finished(page)
    heat = means_of(page)
    assert (len(heat), {len(line) for line in heat}) == (3, {3})
    means = [mean for line in heat for mean in line]
    assert all(0 < mean < 1 for mean in means)
    best = means.index(max(means))
    # the best point is selected until another cell is clicked
    curves(page, "chosen")
    other = (best + 4) % 9
    press(page, other % 3, other // 3)
    curves(page, "best,chosen")
    expect(
        page.get_by_text(
            re.compile(r"^Exploration .*, Sharing .*: click-through rate 0\.\d+ clicks per step \(")
        ).first
    ).to_contain_text(re.compile("worse than the best|too noisy to tell|tied with the best"))
    # the address is the link
    friend = visit(page.url[page.url.index("/sweep") :])
    finished(friend)
    assert means_of(friend) == heat

    page.get_by_role("button", name="Export").click()
    with page.expect_download() as download:
        page.get_by_role("button", name="Points (CSV)").click()
    download.value.save_as(tmp_path / "points.csv")
    with (tmp_path / "points.csv").open(encoding="utf-8", newline="") as file:
        points = list(csv.DictReader(file))
    assert (
        len({(point["agents.0.alpha"], point["agents.0.sharing"]) for point in points})
        == len(points)
        == 9
    )
    assert sorted(float(point["mean"]) for point in points) == pytest.approx(
        sorted(means), abs=1e-6
    )

    page.keyboard.press("Escape")
    page.get_by_role("button", name="Refine around the best").click()
    expect(page.get_by_text(re.compile(r"level 0?\.0125")).first).to_be_visible()
    finished(page)
    refined = means_of(page)
    assert (len(refined), len(refined[0])) > (3, 3)
    assert "refinements.0=" in page.url


@pytest.mark.stress
def test_invalid_settings_are_refused_on_a_phone(visit: Open) -> None:
    page = visit("/sweep", viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    expect(page.get_by_role("heading", name="Sweep", exact=True)).to_be_visible()
    settled(page)
    alert = page.get_by_role("alert")

    def refused(sentence: str) -> None:
        """The reason is shown as soon as the setting is entered, and Run is disabled."""
        expect(alert).to_contain_text(sentence, ignore_case=True)
        expect(alert).to_have_count(1)
        expect(run_button(page)).to_be_disabled()
        expect(alert.get_by_role("paragraph")).to_have_count(1)
        expect(page.get_by_text("Traceback")).to_have_count(0)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        assert (
            page.get_by_test_id("stMain").evaluate("main => main.scrollWidth - main.clientWidth")
            <= 1
        )

    fill(page, "Number of values", 64)
    fill(page, "Number of values", 64, axis=1)
    refused("the sweep has 4,290 points; at most 1,024 are allowed")
    fill(page, "Number of values", 2)
    fill(page, "Number of values", 2, axis=1)
    fill(page, "From", 20)
    refused("Exploration bonus goes from 20 to 4; From must be below To")
