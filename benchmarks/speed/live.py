"""Measure how soon a run shows its first points, and what one update of the plots costs.

    python -m benchmarks.speed.live --write

*First points*: the app, started as users start it, in a real Chromium. After a first run, the seed
is changed and Run is pressed, repeatedly. *One update*: four figures of five agents at half time,
computed and packed for the browser, with and without a previous run. Requires the test requirements
(`make setup-dev`)."""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from bandits import Experiment, read
from bandits.experiments.lockstep import Lockstep
from bandits.results.figures import board as figures
from bandits.results.result import Result
from benchmarks.measure import Section, keep, machine, stamp, stopwatch

# until the first points
SECONDS = 2.0
# of an update, at most
MILLISECONDS = 10.0
KILOBYTES = 120.0
KINDS = ("linucb", "lints", "epsilon_greedy", "beta_ts", "random")
POINTS = """before => [...document.querySelectorAll('.bp-plot')].some(p => p.data && p.layout.uirevision !== before
  && p.data.some(t => !t.fill && Array.from(t.y).some(Number.isFinite)))"""


def first_points(times: int) -> list[float]:
    """Measure the seconds from pressing Run to the first finite point in the browser's plots, on a
    warm server.
    """
    from playwright.sync_api import sync_playwright

    from tests.browser.chromium import fetch
    from tests.browser.conftest import ARGUMENTS, App

    found = []
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        app = App(Path(folder)).ready()
        try:
            browser = playwright.chromium.launch(executable_path=fetch(), args=ARGUMENTS)
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            page.set_default_timeout(240_000)
            page.goto(f"{app.address}/arena")
            finished = page.get_by_test_id("stProgress").get_by_text("Finished")
            finished.wait_for()
            seed = page.get_by_role("spinbutton", name="Seed")
            for value in range(1000, 1000 + times):
                seed.fill(str(value))
                seed.press("Enter")
                page.get_by_text("The controls have changed").wait_for()
                page.wait_for_function(
                    "() => document.querySelector('[data-testid=stApp]').dataset.testScriptState "
                    "=== 'notRunning'"
                )
                shown = page.evaluate("() => document.querySelector('.bp-plot').layout.uirevision")
                began = time.perf_counter()
                page.get_by_test_id("stMain").get_by_role(
                    "button", name="Run", exact=False
                ).first.click()
                page.wait_for_function(POINTS, arg=shown, polling=20)
                found.append(time.perf_counter() - began)
                finished.wait_for()
            browser.close()
        finally:
            app.close()
    return found


def _half_done(seed: int) -> Result:
    """Run five agents with 16 replications to step 10,000 of 20,000."""
    experiment: Experiment = read(
        {
            "agents": [{"kind": kind} for kind in KINDS],
            "steps": 20_000,
            "replications": 16,
            "seed": seed,
        }
    )
    lockstep = Lockstep(experiment)
    for _ in lockstep.advance(10_000):
        pass
    return Result(experiment, lockstep.histories)


def tick(times: int, behind: bool) -> tuple[float, float, float]:
    """Measure the milliseconds to compute four figures and to pack them, and the kilobytes that are
    sent.
    """
    from bandits_app.widgets.live_panel import panel

    result = _half_done(42)
    before = (
        figures.bands(_half_done(43), ["ctr", "pseudo_regret", "entropy", "spectrum"], until=20_000)
        if behind
        else None
    )
    specs = figures.board(result, before=before)
    making = [stopwatch(lambda: figures.board(result, before=before)) for _ in range(times)]
    alt = [""] * len(specs)
    packing = [stopwatch(lambda: panel.pack(specs, 300, alt=alt)) for _ in range(times)]
    return (
        1000 * median(making),
        1000 * median(packing),
        len(panel.pack(specs, 300, alt=alt)) / 1000,
    )


def run(times: int = 20) -> Section:
    """Measure."""
    section = Section(
        "Live",
        f"{machine()}.\n\n`python -m benchmarks.speed.live`: the seed of the default experiment "
        f"(five agents, 20,000 steps, 16 replications) is changed and Run is pressed, {times} "
        "times; the time ends when a point of that run is in the plots of a Chromium on the same "
        "machine. One update: processor time to compute the four figures of five agents at half "
        "time and to pack them; all viewers with the same view options share the result.",
        ("what", "measured"),
        code=stamp(run),
    )
    seconds = sorted(first_points(times))
    alone, with_ghost = tick(times, False), tick(times, True)
    section.rows += [
        (
            "first points after Run: median, longest",
            f"{median(seconds):.2f} s, {seconds[-1]:.2f} s",
        ),
        *(
            (
                f"one update{what}: figures, packing, size",
                f"{made:.1f} ms, {packed:.1f} ms, {size:.0f} kB",
            )
            for what, (made, packed, size) in (("", alone), (" with the previous run", with_ghost))
        ),
    ]
    cost, size = alone[0] + alone[1], max(alone[2], with_ghost[2])
    section.targets += [
        (
            f"first points within {SECONDS:g} s of Run",
            f"{seconds[-1]:.2f} s",
            seconds[-1] <= SECONDS,
        ),
        (f"an update under {MILLISECONDS:g} ms", f"{cost:.1f} ms", cost < MILLISECONDS),
        (f"an update under {KILOBYTES:g} kB", f"{size:.0f} kB", size < KILOBYTES),
    ]
    return section


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print, and write RESULTS.md if asked to."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.speed.live", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--write", action="store_true", help="put the table into RESULTS.md")
    parsed = parser.parse_args(arguments)
    section = run(parsed.times)
    print(section)
    if parsed.write:
        keep(section)


if __name__ == "__main__":
    main()
