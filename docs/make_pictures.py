"""Retake the pictures of README and walk-through: ``PYTHONPATH=.

python docs/make_pictures.py [NAME ...]`` (minutes).

The app is started on an empty folder, driven in headless Chromium and photographed. Needs the
tests' requirements."""

from __future__ import annotations

import io
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, expect, sync_playwright

from bandits import read
from bandits.experiments import url
from bandits.experiments.presets import presets
from bandits.sweeps import read as read_sweep
from bandits.sweeps import url as sweep_url
from tests.browser.chromium import MISSING, fetch
from tests.browser.conftest import ARGUMENTS, App

expect.set_options(timeout=240_000)
DOCS = Path(__file__).parent
WALK = DOCS / "walkthrough"
SIZE = {"width": 1280, "height": 860}
LIVE = {
    "agents": [
        {"kind": "linucb", "alpha": 0.4},
        {"kind": "lints", "sigma2": 0.05},
        {"kind": "epsilon_greedy"},
        {"kind": "ucb1"},
        {"kind": "random"},
    ],
    "steps": 20_000,
    "replications": 24,
}
SWEEP = {
    "experiment": {"agents": [{"kind": "linucb"}], "steps": 20_000, "replications": 16},
    "axes": [
        {"path": "agents.0.alpha", "low": 0.05, "high": 5, "number": 9, "scale": "log"},
        {"path": "agents.0.ridge", "low": 0.01, "high": 100, "number": 7, "scale": "log"},
    ],
}


class Camera:
    """A browser on the app, with one page at a time."""

    def __init__(self, browser: Browser, address: str) -> None:
        self._browser, self._address = browser, address

    @contextmanager
    def page(self, path: str, size: dict[str, int] | None = None) -> Iterator[Page]:
        """Open a page as a new visitor."""
        context = self._browser.new_context(viewport=size or SIZE, color_scheme="light")  # type: ignore[arg-type]
        context.set_default_timeout(60_000)
        page = context.new_page()
        page.goto(self._address + path)
        yield page
        context.close()


def finished(page: Page) -> None:
    """Wait until the run has ended and its plots are drawn."""
    expect(page.get_by_text(re.compile("^Finished:")).first).to_be_visible()
    drawn(page)


def drawn(page: Page) -> None:
    """Wait until the script rests and the plots in sight are drawn."""
    expect(page.get_by_test_id("stApp")).to_have_attribute("data-test-script-state", "notRunning")
    expect(page.locator(".bp-plot:not([data-wait])").first).to_be_visible()
    page.mouse.move(5, 400)
    page.wait_for_timeout(1500)


def shoot(page: Page, file: Path) -> None:
    """Write a picture with few colours."""
    image = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    image.quantize(128, dither=Image.Dither.NONE).save(file, optimize=True)


def arena_of(name: str) -> str:
    """The Arena's address of a preset."""
    return f"/arena?{url.query(presets()[name].experiment)}"


def go_to(page: Page, name: str) -> None:
    """Open another page in the same session."""
    page.get_by_test_id("stTopNavLink").filter(has_text=re.compile(f"{name}$")).first.click()
    expect(page.get_by_role("heading", name=name).first).to_be_visible()


def home(camera: Camera) -> None:
    with camera.page("/") as page:
        finished(page)
        shoot(page, WALK / "1-home.png")


def arena(camera: Camera) -> None:
    with camera.page(arena_of("race"), {"width": 1280, "height": 1180}) as page:
        finished(page)
        shoot(page, DOCS / "arena.png")


def exploration(camera: Camera) -> None:
    for name, file in (("off", "2-off.png"), ("too-much", "3-too-much.png")):
        with camera.page(arena_of(name)) as page:
            finished(page)
            shoot(page, WALK / file)


def slider(camera: Camera) -> None:
    with camera.page(arena_of("race")) as page:
        finished(page)
        alpha = page.get_by_role("slider", name=re.compile("^Exploration")).first
        alpha.focus()
        while float(alpha.input_value()) > 0.401:
            alpha.press("ArrowLeft")
        expect(page.get_by_test_id("stApp")).to_have_attribute(
            "data-test-script-state", "notRunning"
        )
        page.keyboard.press("Control+Enter")
        page.wait_for_timeout(3000)
        finished(page)
        shoot(page, WALK / "4-slider.png")
        page.get_by_text(re.compile("^Formulas and symbols")).click()
        formula = page.locator("[data-testid=stExpander]").filter(has_text="Formulas and symbols")
        formula.scroll_into_view_if_needed()
        page.wait_for_timeout(1500)
        page.mouse.wheel(0, 500)
        page.wait_for_timeout(1000)
        shoot(page, WALK / "5-how.png")
        page.get_by_text(re.compile("^Formulas and symbols")).click()
        page.get_by_text("Why this arm?").first.click()
        step = page.get_by_role("spinbutton", name=re.compile("^Step$"))
        step.fill("300")
        step.press("Enter")
        page.wait_for_timeout(8000)
        step.scroll_into_view_if_needed()
        page.mouse.wheel(0, 300)
        drawn(page)
        shoot(page, WALK / "6-why.png")
        page.mouse.wheel(0, -5000)
        page.get_by_role("button", name="Present").click()
        page.wait_for_timeout(3000)
        drawn(page)
        shoot(page, WALK / "7-present.png")
        page.get_by_role("button", name="Exit presentation").click()
        page.wait_for_timeout(2000)
        go_to(page, "Runs")
        page.wait_for_timeout(3000)
        shoot(page, WALK / "8-runs.png")


def diagnostics(camera: Camera) -> None:
    with camera.page(arena_of("off")) as page:
        finished(page)
        page.get_by_text("Diagnostics", exact=True).first.click()
        # references are computed in the background
        page.wait_for_timeout(20_000)
        shoot(page, WALK / "10-diagnostics.png")


def sweep(camera: Camera) -> None:
    with camera.page(
        f"/sweep?{sweep_url.query(read_sweep(SWEEP))}", {"width": 1100, "height": 1340}
    ) as page:
        run = page.get_by_test_id("stMain").get_by_role("button", name=re.compile("^Run"))
        page.wait_for_timeout(4000)
        if run.is_visible() and run.is_enabled():
            run.click()
        expect(page.get_by_text(re.compile("^Finished")).first).to_be_visible(timeout=600_000)
        drawn(page)
        shoot(page, WALK / "9-sweep.png")


def live(camera: Camera) -> None:
    with camera.page(f"/arena?{url.query(read(LIVE))}", {"width": 1180, "height": 900}) as page:
        page.get_by_role("button", name="Present").click()
        expect(page.get_by_role("button", name="Exit presentation")).to_be_visible()
        page.mouse.move(5, 400)
        expect(page.locator(".bp-plot:not([data-wait])").first).to_be_visible()
        shots: list[Image.Image] = []
        done = page.get_by_text(re.compile("^Finished:")).first
        while len(shots) < 40:
            shots.append(frame(page))
            if done.is_visible() and len(shots) > 6:
                break
            page.wait_for_timeout(500)
    film(shots, DOCS / "live-run.gif", 300)


def drag(camera: Camera) -> None:
    """A slider of the Arena that moves to the end and back."""
    with camera.page(arena_of("race"), {"width": 1180, "height": 760}) as page:
        finished(page)
        page.get_by_role("button", name="Present").click()
        expect(page.get_by_role("button", name="Exit presentation")).to_be_visible()
        drawn(page)
        alpha = page.get_by_role("slider", name=re.compile("^Exploration")).first
        thumb = alpha.locator("xpath=ancestor::*[@data-rac][1]").bounding_box()
        assert thumb is not None
        x, y = thumb["x"] + thumb["width"] / 2, thumb["y"] + thumb["height"] / 2
        shots = [frame(page)]
        page.mouse.move(x, y)
        page.mouse.down()
        for by in (*range(-20, 200, 10), *range(200, 0, -20)):
            page.mouse.move(x + by, y)
            page.wait_for_timeout(150)
            shots.append(frame(page))
        page.keyboard.press("Escape")
        page.mouse.up()
    film(shots, DOCS / "slider.gif", 160)


def frame(page: Page) -> Image.Image:
    """Photograph the page, a quarter smaller."""
    image = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    return image.resize((image.width * 3 // 4, image.height * 3 // 4), Image.Resampling.LANCZOS)


def film(shots: list[Image.Image], file: Path, milliseconds: int) -> None:
    """Write an animated picture; its last frame stays for a while."""
    # one for all frames: colours do not flicker
    palette = shots[-1].quantize(160, dither=Image.Dither.NONE)
    frames = [shot.quantize(palette=palette, dither=Image.Dither.NONE) for shot in shots]
    lengths = [milliseconds] * (len(frames) - 1) + [3000]
    frames[0].save(
        file, save_all=True, append_images=frames[1:], duration=lengths, loop=0, optimize=True
    )
    print(f"{len(frames)} frames, {file.stat().st_size / 2**20:.2f} MB")


PICTURES: dict[str, Callable[[Camera], None]] = {
    "home": home,
    "arena": arena,
    "exploration": exploration,
    "slider": slider,
    "diagnostics": diagnostics,
    "sweep": sweep,
    "live": live,
    "drag": drag,
}


def main() -> None:
    """Take the pictures named on the command line, or all."""
    path = fetch()
    assert path is not None, MISSING
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        app = App(Path(folder)).ready()
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        try:
            for name in sys.argv[1:] or PICTURES:
                print(name, flush=True)
                PICTURES[name](Camera(browser, app.address))
        finally:
            browser.close()
            app.close()


if __name__ == "__main__":
    main()
