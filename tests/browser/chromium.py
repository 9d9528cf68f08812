"""Find a Chromium for the browser tests, or get one: ``python -m tests.browser.chromium``.

The one that is installed; else Debian's package, where that is possible; else Playwright's own
download; else one sentence and exit status 1."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
MISSING = (
    "No Chromium for the browser tests: none is installed, and neither apt-get nor Playwright "
    "could fetch one; install it (Debian: apt-get install chromium) and try again."
)


def find() -> str | None:
    """Path of a Chromium that can be started: one on the PATH, or the one that Playwright has
    downloaded.
    """
    for name in NAMES:
        if found := shutil.which(name):
            return found
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        path = playwright.chromium.executable_path
    return path if Path(path).is_file() else None


def fetch() -> str | None:
    """Find a Chromium, or install one and find that."""
    ways = [[sys.executable, "-m", "playwright", "install", "chromium"]]
    if shutil.which("apt-get") and hasattr(os, "geteuid") and os.geteuid() == 0:
        ways.insert(
            0,
            [
                "sh",
                "-c",
                "apt-get update -q && apt-get install -y -q --no-install-recommends chromium",
            ],
        )
    found = find()
    for way in ways:
        if found is None:
            print("Getting a Chromium for the browser tests:", " ".join(way), flush=True)
            subprocess.run(way, stdout=sys.stderr, check=False)
            found = find()
    return found


def main() -> int:
    """Print where Chromium is; 1 if there is none."""
    found = fetch()
    print(found or MISSING, file=sys.stdout if found else sys.stderr)
    return 0 if found else 1


if __name__ == "__main__":
    sys.exit(main())
