"""Runs take at most a quarter more memory than was estimated when they were admitted."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from benchmarks.measure import ROOT
from benchmarks.memory import CASES, LIMIT
from tests.support import often

pytestmark = pytest.mark.slow


def test_there_are_sixty_cases() -> None:
    assert sum(map(len, CASES.values())) >= 60


def test_no_run_takes_much_more_than_its_estimate() -> None:
    # processes are forked: no threads
    one = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    every = often(24, 1)
    command = [sys.executable, "-m", "benchmarks.memory", "--every", str(every), *CASES]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, **one}, capture_output=True, text=True, check=True
    )
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(found) == sum(len(cases[::every]) for cases in CASES.values())
    assert all(peak["taken"] >= 0 for peak in found), done.stderr
    assert [peak for peak in found if peak["taken"] > LIMIT * peak["estimate"]] == []
