"""Put one deliberate fault at a time into a copy of the package, and print those that no quick test
notices.

``python -m tests.mutants [part of a path ...] [--sample N] [--seed S]`` changes the files of the
package that differ from the main branch, or those whose path contains one of the words; with
``--sample`` N faults drawn at random from them (without words: from all files)."""

from __future__ import annotations

import argparse
import importlib
import itertools
import multiprocessing
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.mutants.operators import Mutant, mutants
from tests.mutants.selection import quick_tests

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("bandits", "bandits_app")
COPIED = (
    *PACKAGES,
    "pages",
    "tests",
    "benchmarks",
    "docs",
    "app.py",
    "pyproject.toml",
    "README.md",
)
LIBRARIES = (
    "torch",
    "numba",
    "pandas",
    "scipy.stats",
    "sklearn.linear_model",
    "pydantic",
    "hypothesis",
    "pytest",
)
# libraries are imported once; the package itself in every process
FORK = multiprocessing.get_context("fork")
OPTIONS = ("-x", "-q", "-p", "no:cacheprovider", "-m", "not slow", "--import-mode=importlib")


class Outcome(NamedTuple):
    """A fault in a file, and whether a test noticed it."""

    path: str
    fault: Mutant
    caught: bool

    def __str__(self) -> str:
        return f"{self.path}:{self.fault.line}: {self.fault.change}"


class Copy:
    """A copy of the tree in which faults are tried, one at a time."""

    def __init__(self, source: Path, folder: Path) -> None:
        self.source, self.root = source, folder / "copy"
        self.cache, self._own_cache = folder / "cache", folder / "cache of a fault"
        self.cache.mkdir()
        for name in COPIED:
            if (source / name).is_dir():
                ignored = shutil.ignore_patterns("__pycache__", "*.nb[ic]", "*.gif", "*.png")
                shutil.copytree(source / name, self.root / name, ignore=ignored)
            elif (source / name).exists():
                shutil.copy2(source / name, self.root / name)
        texts = {
            path: path.read_text(encoding="utf-8") for path in (self.root / "bandits").rglob("*.py")
        }
        self._compiled = {
            path: text
            for path, text in texts.items()
            if re.search(r"^from numba", text, re.MULTILINE)
        }

    def passes(self, tests: list[str], limit: float, cache: Path, *, bytecode: bool) -> bool:
        """Run tests in a process of their own.

        False if one fails, crashes or takes more than ``limit`` seconds.
        """
        process = FORK.Process(target=_test, args=(self.root, tests, cache, bytecode))
        process.start()
        process.join(limit)
        if process.is_alive() and process.pid:
            os.killpg(process.pid, signal.SIGKILL)
            process.join()
        return process.exitcode == 0

    def catches(self, path: str, fault: Mutant, tests: list[str], limit: float) -> bool:
        """Put a fault into a file, run its tests and remove it."""
        file = self.root / path
        unchanged = file.stat().st_mtime
        file.write_text(fault.source, encoding="utf-8")
        # Python knows what it has compiled by the size and the second of its file
        os.utime(file, (unchanged + 10, unchanged + 10))
        try:
            return not self.passes(tests, limit, self._cache_for(file), bytecode=False)
        finally:
            # with its time, by which numba and Python know it
            shutil.copy2(self.source / path, file)

    def _cache_for(self, file: Path) -> Path:
        """Return a folder of compiled code without that of a file and of those that import it,
        directly or not.

        numba compiles a file again when it changes, but not the functions of other files that call
        it."""
        if file not in self._compiled:
            return self.cache
        stale, size = {file.stem}, 0
        while len(stale) > size:
            size = len(stale)
            importing = re.compile(rf"^from .*\b({'|'.join(stale)})\b", re.MULTILINE)
            stale |= {each.stem for each, text in self._compiled.items() if importing.search(text)}
        shutil.rmtree(self._own_cache, ignore_errors=True)
        # numba replaces files, it writes into none
        shutil.copytree(self.cache, self._own_cache, copy_function=os.link)
        for kept in self._own_cache.rglob("*.nb[ic]"):
            if kept.name.split(".")[0] in stale:
                kept.unlink()
        return self._own_cache


def _test(root: Path, tests: list[str], cache: Path, bytecode: bool) -> None:
    """Run tests of the copy at ``root`` and end this process with pytest's exit status."""
    import pytest

    # so that what a test starts is killed with it
    os.setsid()
    os.chdir(root)
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    os.environ |= {"PYTHONPATH": str(root), "NUMBA_CACHE_DIR": str(cache)}
    if "numba" in sys.modules:
        sys.modules["numba"].config.reload_config()
    sys.dont_write_bytecode = not bytecode
    sys.path[:] = [
        str(root),
        *(entry for entry in sys.path if entry and Path(entry).resolve() != ROOT),
    ]
    for name in [
        name for name in sys.modules if name.split(".")[0] in ("tests", "bandits", "bandits_app")
    ]:
        del sys.modules[name]
    os._exit(pytest.main([*OPTIONS, *tests]))


def run(faults: list[tuple[str, Mutant]], root: Path = ROOT) -> Iterator[Outcome]:
    """Try faults, file by file.

    A file whose tests fail without any fault is left out, with a message.
    """
    # of test files that pass without a fault
    seconds = dict[str, float]()
    with tempfile.TemporaryDirectory() as folder:
        tree = Copy(root, Path(folder))
        for path, of_file in itertools.groupby(faults, key=lambda pair: pair[0]):
            tests, began = quick_tests(path, root), time.monotonic()
            new = [test for test in tests if test not in seconds]
            if not tests or (new and not tree.passes(new, 1200, tree.cache, bytecode=True)):
                print(
                    f"{path}: left out, "
                    f"{'its tests fail without a fault' if tests else 'it has no quick test'}"
                )
                continue
            seconds |= dict.fromkeys(new, (time.monotonic() - began) / max(len(new), 1))
            usual = sum(seconds[test] for test in tests)
            print(f"{path}: {len(tests)} test files pass in {usual:.1f} s", flush=True)
            for _, fault in of_file:
                yield Outcome(path, fault, tree.catches(path, fault, tests, 20 + 4 * usual))


def changed(root: Path = ROOT) -> list[str]:
    """List the files of the package that differ from the main branch.

    On that branch, from the last commit but one.
    """

    def git(*arguments: str) -> str:
        return subprocess.run(
            ["git", *arguments], cwd=root, capture_output=True, text=True, check=False
        ).stdout.strip()

    main, head = git("rev-parse", "--verify", "-q", "origin/main"), git("rev-parse", "HEAD")
    base = git("merge-base", main, head) if main and main != head else "HEAD~1"
    return git("diff", "--name-only", "--diff-filter=d", base, "--", *PACKAGES).splitlines()


def main(arguments: list[str]) -> int:
    """Try the faults that the arguments name; print the survivors and the share that was caught."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument(
        "words", nargs="*", metavar="PATH", help="parts of paths; default: files that have changed"
    )
    parser.add_argument("--sample", type=int, metavar="N", help="try N faults, drawn at random")
    parser.add_argument("--seed", type=int, default=0, help="of the sample; default: 0")
    parsed = parser.parse_args(arguments)
    if parsed.words or parsed.sample is not None:
        files = [file for package in PACKAGES for file in sorted((ROOT / package).rglob("*.py"))]
        named = [file.relative_to(ROOT).as_posix() for file in files]
        paths = [path for path in named if any(word in path for word in parsed.words or [""])]
    else:
        paths = [path for path in changed() if path.endswith(".py")]
    faults = [
        (path, fault)
        for path in paths
        for fault in mutants((ROOT / path).read_text(encoding="utf-8"))
    ]
    if parsed.sample is not None and parsed.sample < len(faults):
        places = random.Random(parsed.seed).sample(range(len(faults)), parsed.sample)
        faults = [faults[i] for i in sorted(places)]
    print(f"{len(faults)} faults in {len({path for path, _ in faults})} files", flush=True)
    for name in LIBRARIES:
        importlib.import_module(name)
    outcomes = list[Outcome]()
    for outcome in run(faults):
        outcomes.append(outcome)
        if not outcome.caught:
            print(f"  survives: {outcome}", flush=True)
    survivors = [outcome for outcome in outcomes if not outcome.caught]
    if outcomes:
        caught = len(outcomes) - len(survivors)
        print(
            f"\n{caught} of {len(outcomes)} faults caught ({caught / len(outcomes):.0%}); "
            "survivors:"
        )
        print("\n".join(map(str, survivors)) or "none")
    return 0


if __name__ == "__main__":
    os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    sys.exit(main(sys.argv[1:]))
