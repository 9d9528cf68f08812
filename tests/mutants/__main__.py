"""Mutation run: apply each deliberate fault of `list.txt` to a copy of the package and run the tests that must notice.

``python -m tests.mutants [--survivors] [part of a path ...]`` updates `docs/mutants.md` after every file;
``--survivors`` tries those again that survived the last run. Exit status 1 if fewer than 95 % of all faults are
noticed, or if one that is not has no reason in the list.
"""

from __future__ import annotations

import importlib
import itertools
import multiprocessing
import os
import re
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from tests.mutants.faults import ROOT, Fault, read

DOCUMENT = ROOT / "docs" / "mutants.md"
LEAST = 0.95  # share of the faults that must be noticed
COPIED = ("bandits", "bandits_app", "tests", "benchmarks", "docs", "pyproject.toml", "README.md")


LIBRARIES = ("torch", "numba", "pandas", "scipy.stats", "sklearn.linear_model", "pydantic", "hypothesis", "pytest")
FORK = multiprocessing.get_context("fork")  # libraries are imported once; the package itself in every process


class Outcome(NamedTuple):
    """A fault, whether a test noticed it, and the seconds that took."""

    fault: Fault
    killed: bool
    seconds: float


class Copy:
    """A copy of the package in which faults are tried, one at a time."""

    def __init__(self, folder: Path) -> None:
        self.root, self.cache, self.own_cache = folder / "copy", folder / "cache", folder / "cache of a fault"
        for name in COPIED:
            source, target = ROOT / name, self.root / name
            if source.is_dir():
                shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__", "*.nb[ic]", "*.gif"))
            else:
                shutil.copy2(source, target)
        sources = {path: path.read_text(encoding="utf-8") for path in (self.root / "bandits").rglob("*.py")}
        self.compiled = {path: text for path, text in sources.items() if re.search(r"^from numba", text, re.MULTILINE)}

    def passes(self, tests: tuple[str, ...], limit: float, cache: Path, *, bytecode: bool) -> bool:
        """Run tests in a process of their own; False if one fails, crashes or takes more than ``limit`` seconds."""
        process = FORK.Process(target=_test, args=(self.root, tests, cache, bytecode))
        process.start()
        process.join(limit)
        if process.is_alive() and process.pid:
            os.killpg(process.pid, signal.SIGKILL)
            process.join()
        return process.exitcode == 0

    def outcome(self, fault: Fault, limit: float) -> Outcome:
        """Apply a fault, run its tests and remove it."""
        path, began = self.root / fault.path, time.monotonic()
        path.write_text(fault.applied(path.read_text(encoding="utf-8")), encoding="utf-8")
        try:
            survived = self.passes(fault.tests, limit, self.cache_for(path), bytecode=False)
        finally:
            shutil.copy2(ROOT / fault.path, path)  # with its time, by which numba and Python know it
        return Outcome(fault, not survived, time.monotonic() - began)

    def cache_for(self, path: Path) -> Path:
        """Return a folder of compiled code without that of a file and of those that import it, directly or not.

        numba compiles a file again when it changes, but not the functions of other files that call it.
        """
        if path not in self.compiled:
            return self.cache
        stale, size = {path.stem}, 0
        while len(stale) > size:
            size = len(stale)
            importing = re.compile(rf"^from .*\b({'|'.join(stale)})\b", re.MULTILINE)
            stale |= {each.stem for each, text in self.compiled.items() if importing.search(text)}
        shutil.rmtree(self.own_cache, ignore_errors=True)
        shutil.copytree(self.cache, self.own_cache, copy_function=os.link)  # numba replaces files, it writes into none
        for kept in self.own_cache.rglob("*.nb[ic]"):
            if kept.name.split(".")[0] in stale:
                kept.unlink()
        return self.own_cache


def _test(root: Path, tests: tuple[str, ...], cache: Path, bytecode: bool) -> None:
    """Run tests of the copy at ``root`` and end this process with pytest's exit status."""
    import numba
    import pytest

    os.setsid()  # so that what a test starts is killed with it
    os.chdir(root)
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    os.environ |= {"PYTHONPATH": str(root), "NUMBA_CACHE_DIR": str(cache)}
    numba.config.reload_config()
    sys.dont_write_bytecode = not bytecode
    sys.path[:] = [str(root), *(entry for entry in sys.path if entry and Path(entry) != ROOT)]
    for name in [name for name in sys.modules if name.split(".")[0] in ("tests", "bandits")]:
        del sys.modules[name]
    os._exit(pytest.main(["-x", "-q", "-p", "no:cacheprovider", "-m", "not slow", *tests]))


def run(faults: list[Fault]) -> Iterator[list[Outcome]]:
    """Try faults in the order of the list, file by file; RuntimeError if their tests fail without any fault."""
    for name in LIBRARIES:
        importlib.import_module(name)
    with tempfile.TemporaryDirectory() as folder:
        copy = Copy(Path(folder))
        copy.cache.mkdir()
        for path, of_file in itertools.groupby(faults, key=lambda fault: fault.path):
            outcomes = []
            for tests, group in itertools.groupby(of_file, key=lambda fault: fault.tests):
                began = time.monotonic()
                if not copy.passes(tests, 600, copy.cache, bytecode=True):
                    raise RuntimeError(f"{path}: {' '.join(tests)} fails without a fault")
                limit = 20 + 4 * (time.monotonic() - began)
                print(f"{path}: tests pass in {time.monotonic() - began:.1f} s", flush=True)
                for fault in group:
                    outcomes.append(copy.outcome(fault, limit))
                    word = "killed" if outcomes[-1].killed else "SURVIVED"
                    print(f"  {word:8} {outcomes[-1].seconds:5.1f} s  {fault.old} => {fault.new}", flush=True)
            yield outcomes


class Tally(NamedTuple):
    """What the document states about the faults of one file."""

    faults: int
    noticed: int
    date: str
    survivors: list[str]


def tallies(outcomes: list[Outcome], everything: list[Fault], today: str) -> dict[str, Tally]:
    """Count the faults of each file; those not tried again were noticed in an earlier run."""
    found = dict[str, Tally]()
    for path in dict.fromkeys(outcome.fault.path for outcome in outcomes):
        own = [outcome for outcome in outcomes if outcome.fault.path == path]
        left = [outcome.fault for outcome in own if not outcome.killed]
        faults = sum(fault.path == path for fault in everything)
        found[path] = Tally(faults, faults - len(left), today, [described(fault) for fault in left])
    return found


def described(fault: Fault) -> str:
    """Describe a survivor in one line of the document."""
    return f"`{fault.old}` replaced by `{fault.new}`: {fault.reason or 'no reason is stated.'}"


def to_try(everything: list[Fault], words: list[str]) -> list[Fault]:
    """Choose the faults that the words of the command name; ``--survivors``: not those noticed in the last run."""
    before = written(DOCUMENT.read_text(encoding="utf-8")) if DOCUMENT.exists() and "--survivors" in words else {}
    counts = Counter(fault.path for fault in everything)
    known = {path: tally for path, tally in before.items() if tally.faults == counts[path]}  # the list is unchanged
    parts = [word for word in words if word != "--survivors"] or [""]
    named = [fault for fault in everything if any(part in fault.path for part in parts)]
    return [fault for fault in named if fault.path not in known or described(fault) in known[fault.path].survivors]


def written(text: str) -> dict[str, Tally]:
    """Read the tallies of a document."""
    found = dict[str, Tally]()
    for path, faults, noticed, date in re.findall(
        r"^\| `(.+?)` \| (\d+) \| (\d+) \| \d+ \| (\S+) \|$", text, re.MULTILINE
    ):
        survivors = re.findall(rf"^- {re.escape(path)}: (.*)$", text, re.MULTILINE)
        found[path] = Tally(int(faults), int(noticed), date, survivors)
    return found


def document(found: dict[str, Tally]) -> str:
    """Write the tallies of all files as a document."""
    faults, noticed = sum(each.faults for each in found.values()), sum(each.noticed for each in found.values())
    return "\n".join(
        [
            "# Mutation run",
            "",
            "Written by `make mutants`, which puts one deliberate fault at a time into a copy of the package and runs",
            "the quick tests that must notice it. `tests/mutants/list.txt` lists faults and tests; `make mutants",
            "ARGS=neural` runs the files whose path contains a word and updates their rows, `make mutants",
            "ARGS=--survivors` tries survivors again.",
            "",
            f"{noticed} of {faults} faults are noticed, {noticed / max(faults, 1):.1%}; at least {LEAST:.0%} must be. "
            f"Run in one process on {os.cpu_count()} cores.",
            "",
            "| file | faults | noticed | survivors | date |",
            "|---|---|---|---|---|",
            *(f"| `{p}` | {t.faults} | {t.noticed} | {t.faults - t.noticed} | {t.date} |" for p, t in found.items()),
            f"| **sum** | **{faults}** | **{noticed}** | **{faults - noticed}** | |",
            "",
            "## Survivors",
            "",
            *([f"- {path}: {line}" for path, t in found.items() for line in t.survivors] or ["None."]),
            "",
        ]
    )


def main(words: list[str]) -> int:
    """Run the faults that ``words`` name, see `to_try`, and update the document; returns the exit status."""
    everything, outcomes, today = read(), list[Outcome](), f"{datetime.now(UTC):%Y-%m-%d}"
    for of_file in run(to_try(everything, words)):
        outcomes += of_file
        before = written(DOCUMENT.read_text(encoding="utf-8")) if DOCUMENT.exists() else {}
        found = before | tallies(of_file, everything, today)
        order = [path for path in dict.fromkeys(fault.path for fault in everything) if path in found]
        DOCUMENT.write_text(document({path: found[path] for path in order}), encoding="utf-8")
    noticed = sum(outcome.killed for outcome in outcomes)
    print(f"{noticed} of {len(outcomes)} faults are noticed")
    unexplained = [o.fault.old for o in outcomes if not o.killed and not o.fault.reason]
    outdated = [o.fault.old for o in outcomes if o.killed and o.fault.reason]
    for word, faults in (("survived without a reason", unexplained), ("noticed, but a reason is stated", outdated)):
        if faults:
            print(f"{word}: {'; '.join(faults)}")
    return int(bool(unexplained or outdated) or sum(not o.killed for o in outcomes) > (1 - LEAST) * len(everything))


if __name__ == "__main__":
    os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    sys.exit(main(sys.argv[1:]))
