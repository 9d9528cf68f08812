"""The report as its readers open it: a file, no network, light and dark, wide and narrow."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from bandits import run
from bandits.results.export import report
from tests.support import experiment

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(
        report(run(experiment("linucb", "beta_ts", "random", steps=1000))), encoding="utf-8"
    )
    return path


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)])
def test_the_report_draws_four_plots_offline(
    file: Path, browser: Browser, scheme: str, width: int
) -> None:
    complaints: list[str] = []
    options = {"color_scheme": scheme, "viewport": {"width": width, "height": 900}, "offline": True}
    context = browser.new_context(**options)  # type: ignore[arg-type]
    page = context.new_page()
    page.on(
        "console", lambda m: complaints.append(m.text) if m.type in ("error", "warning") else None
    )
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on(
        "request",
        lambda r: (
            None if r.url.startswith(("file:", "data:", "blob:")) else complaints.append(r.url)
        ),
    )
    page.goto(file.as_uri())
    for i in range(4):
        page.wait_for_selector(f"#plot{i} .main-svg")
    lines = [page.locator(f"#plot{i} .scatterlayer .js-line").count() for i in range(4)]
    # band and curve of three agents, and two dashed references
    assert lines[:3] == [8, 6, 6]
    # one agent has a spectrum
    assert lines[3] == 2
    # nothing sticks out
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    ink, paper = page.evaluate(
        "(s => [s.color, s.backgroundColor])(getComputedStyle(document.body))"
    )
    assert (_brightness(ink) > _brightness(paper)) == (scheme == "dark")
    text = page.locator("#plot0 .xtick text").first.evaluate("e => getComputedStyle(e).fill")
    # plots obey the scheme too
    assert text == ink
    page.get_by_text("Reproduce in Python").click()
    assert page.get_by_text("from bandits import read, run").is_visible()
    context.close()
    assert complaints == []


def _brightness(color: str) -> int:
    return sum(int(part) for part in color.removeprefix("rgb(").removesuffix(")").split(","))


def test_the_policy_of_the_page_stops_whatever_would_ask_elsewhere(
    file: Path, browser: Browser
) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.goto(file.as_uri())
    with socket.create_server(("127.0.0.1", 0)) as door:
        address = f"http://127.0.0.1:{door.getsockname()[1]}/x.png"
        picture = (
            "url => new Promise(done => { const i = new Image(); i.onerror = () => "
            "done('refused'); i.src = url; })"
        )
        assert page.evaluate(picture, address) == "refused"
        assert (
            page.evaluate("url => fetch(url).then(() => 'sent', () => 'refused')", address)
            == "refused"
        )
        door.setblocking(False)
        # nobody has knocked
        with pytest.raises(BlockingIOError):
            door.accept()
    context.close()
