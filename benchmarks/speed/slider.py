"""Measure what a hand sees: from a pointer's move on a slider of the Arena to the painted curve, in
a real Chromium.

    python -m benchmarks.speed.slider --write

The app, started as users start it; one experiment per agent, opened by its link. A pointer drags
the slider of the main parameter in 60 moves over 3 seconds. Once alone, and once beside a run that
occupies all workers. Requires the test requirements (`make setup-dev`)."""

from __future__ import annotations

import argparse
import itertools
import tempfile
import time
from statistics import median, quantiles
from typing import Any, NamedTuple

from bandits import Experiment, read
from bandits.experiments import url
from benchmarks.load.sessions import Server
from benchmarks.measure import Section, keep, machine, stamp

MOVES, SECONDS = 60, 3.0
AGENTS: dict[str, tuple[dict[str, Any], str]] = {
    "LinUCB": ({"kind": "linucb"}, "alpha"),
    "LinTS": ({"kind": "lints"}, "sigma2"),
    "ε-greedy": ({"kind": "epsilon_greedy"}, "epsilon"),
    "LinUCB, shared": ({"kind": "linucb", "sharing": "shared"}, "alpha"),
    "LinTS, shared": ({"kind": "lints", "sharing": "shared"}, "sigma2"),
    "ε-greedy, shared": ({"kind": "epsilon_greedy", "sharing": "shared"}, "epsilon"),
    "UCB1": ({"kind": "ucb1"}, "alpha"),
}
# milliseconds, and redraws a second
MIDDLE, TAIL, TAIL_BUSY, GAP, RATE = 100.0, 180.0, 400.0, 250.0, 12.0
# Notes when the pointer moved, which move each question is about, and when its answer was on the
# screen.
WATCH = """() => {
  const seen = { moved: 0, asked: new Map(), painted: [] };
  window.seen = seen;
  document.addEventListener('pointermove', (e) => { seen.moved = e.timeStamp; }, true);
  const send = WebSocket.prototype.send;
  WebSocket.prototype.send = function (data) {
    if (this.url.endsWith('/instant')) seen.asked.set(JSON.parse(data).seq, seen.moved);
    return send.call(this, data);
  };
  document.addEventListener('bandits-preview-drawn', ({ detail }) => {
    const moved = seen.asked.get(detail.seq);
    requestAnimationFrame(() => {
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = () => seen.painted.push([moved, performance.now()]);
      port2.postMessage(0);
    });
  });
  for (const plot of document.querySelectorAll('.bp-plot')) plot.mark = 'the same';
}"""
# more agents than workers
BESIDE = [{"kind": "linucb", "alpha": 0.01 * i} for i in range(1, 9)]


class Drag(NamedTuple):
    """One drag: milliseconds from move to paint and between paints, whether a plot was mounted
    anew, and seconds.
    """

    delays: list[float]
    gaps: list[float]
    remounted: bool
    seconds: float

    @property
    def tail(self) -> float:
        """The 95th percentile of the delays."""
        return quantiles(self.delays, n=20)[-1]

    @property
    def rate(self) -> float:
        """Redraws a second of the moving pointer."""
        return len(self.delays) / self.seconds


def experiment(agent: dict[str, Any]) -> Experiment:
    """Return the pet shop with one agent beside Random, 2,000 steps and 4 replications."""
    features = "interaction" if "sharing" in agent else "additive"
    agents = [agent, {"kind": "random"}]
    return read(
        {
            "simulator": {"kind": "petshop", "features": features},
            "agents": agents,
            "steps": 2000,
            "replications": 4,
        }
    )


def drag(page: Any, host: str, given: Experiment, parameter: str) -> Drag:
    """Open an experiment by its link, and drag the slider of its first agent from one end towards
    the other.
    """
    query = "&".join(f"{name}={text}" for name, text in url.to_query(given).items())
    page.goto(f"http://{host}/arena?{query}")
    page.get_by_text("Finished: 2,000 steps, 4 replications").wait_for()
    slider = page.locator(f'[class*="-agent"][class*="-{parameter} "] input[type=range]').first
    slider.scroll_into_view_if_needed()
    page.locator(".bi-strip").first.wait_for()
    page.wait_for_function(
        "() => document.querySelectorAll('.bp-plot:not([data-wait])').length >= 2"
    )
    box = slider.locator("xpath=ancestor::*[@data-rac][1]").bounding_box()
    track = slider.locator("xpath=ancestor::*[@role='group'][1]").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    left, right = track["x"] + 8, track["x"] + track["width"] - 8
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(left, y)
    # the first answer prepares the simulator, once per experiment
    page.locator(".bp-trying").wait_for()
    page.wait_for_timeout(1500)
    page.evaluate(WATCH)
    began = time.monotonic()
    for i in range(MOVES):
        page.mouse.move(left + (right - left) * (i + 1) / MOVES, y)
        page.wait_for_timeout(
            max(0.0, 1000 * (began + SECONDS * (i + 1) / MOVES - time.monotonic()))
        )
    seconds = time.monotonic() - began
    page.wait_for_timeout(600)
    seen = page.evaluate("() => window.seen.painted")
    remounted = page.evaluate(
        "() => [...document.querySelectorAll('.bp-plot')].some(p => p.mark !== 'the same')"
    )
    page.keyboard.press("Escape")
    page.mouse.up()
    painted = [end for _, end in seen]
    moving = [(moved, end) for moved, end in seen if moved]
    gaps = [after - before for before, after in itertools.pairwise(painted)]
    return Drag([end - moved for moved, end in moving], gaps, remounted, seconds)


def measure(*, busy: bool) -> dict[str, Drag]:
    """Drag the slider of every agent on a server of its own."""
    from playwright.sync_api import sync_playwright

    from tests.browser.chromium import fetch
    from tests.browser.conftest import ARGUMENTS

    beside = read({"agents": BESIDE, "steps": 10_000_000, "replications": 4}) if busy else None
    found = {}
    with tempfile.TemporaryDirectory() as home, sync_playwright() as playwright:
        server = Server.start(home, beside)
        try:
            browser = playwright.chromium.launch(executable_path=fetch(), args=ARGUMENTS)
            for name, (agent, parameter) in AGENTS.items():
                context = browser.new_context(viewport={"width": 1280, "height": 900})
                page = context.new_page()
                page.set_default_timeout(240_000)
                found[name] = drag(page, server.host, experiment(agent), parameter)
                context.close()
            browser.close()
        finally:
            server.stop()
    return found


def section(alone: dict[str, Drag], busy: dict[str, Drag]) -> Section:
    """Put both measurements into one table, with the targets."""
    made = Section(
        "Slider: from the pointer to the painted curve",
        f"The Arena in Chromium, 2,000 steps x 4 replications, {MOVES} moves in {SECONDS:.0f} s; "
        "from the time stamp of `pointermove` to the frame in which the plots are painted. "
        f"*Busy*: beside a run that occupies all workers. {machine()}.",
        (
            "agent",
            "median, ms",
            "95 %, ms",
            "redraws a second",
            "longest gap, ms",
            "busy: median, ms",
            "busy: 95 %, ms",
        ),
        code=stamp(section),
    )
    for name, one in alone.items():
        other = busy[name]
        made.rows.append(
            (
                name,
                f"{median(one.delays):.0f}",
                f"{one.tail:.0f}",
                f"{one.rate:.0f}",
                f"{max(one.gaps):.0f}",
                f"{median(other.delays):.0f}",
                f"{other.tail:.0f}",
            )
        )
    drags = alone.values()
    worst = {
        f"median at most {MIDDLE:.0f} ms": (max(median(one.delays) for one in drags), MIDDLE),
        f"95th percentile at most {TAIL:.0f} ms": (max(one.tail for one in drags), TAIL),
        f"no gap above {GAP:.0f} ms": (max(max(one.gaps) for one in drags), GAP),
        f"busy: 95th percentile at most {TAIL_BUSY:.0f} ms": (
            max(one.tail for one in busy.values()),
            TAIL_BUSY,
        ),
    }
    made.targets = [
        (what, f"{value:.0f} ms", value <= most) for what, (value, most) in worst.items()
    ]
    slowest = min(one.rate for one in drags)
    made.targets.append(
        (f"at least {RATE:.0f} redraws a second", f"{slowest:.0f}", slowest >= RATE)
    )
    still = not any(one.remounted for one in (*drags, *busy.values()))
    made.targets.append(("no plot is mounted anew", "none" if still else "some", still))
    return made


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", action="store_true", help="store the section in RESULTS.md")
    result = section(measure(busy=False), measure(busy=True))
    print(result)
    if parser.parse_args().write:
        keep(result)
