"""Helpers of tests that compare with files made by version 0.2.0."""

from __future__ import annotations

import gzip
import hashlib
import importlib.metadata
import json
import math
import platform
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "data" / "version_0_2_0"
HOME: dict[str, Any] = json.loads((FOLDER / "home.json").read_text(encoding="utf-8"))
NUMBERS: dict[str, Any] = json.loads(gzip.decompress((FOLDER / "numbers.json.gz").read_bytes()))
NEURAL = {
    "neural_greedy", "neural_ucb", "neural_ts", "neural_linucb", "neural_linear_ts", "neural_click_ts", "ensemble",
    "mc_dropout", "static_mlp",
}  # fmt: skip


def machine(expected: dict[str, str]) -> dict[str, str]:
    """Return properties of this machine that may affect rounding, under the keys of ``expected``."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        facts = dict(reversed([[part.strip() for part in line.split(":", 1)] for line in lines if ":" in line]))
        processor, flags = facts["model name"], hashlib.sha256(facts["flags"].encode()).hexdigest()[:12]
    except (OSError, KeyError):
        processor, flags = platform.processor() or platform.machine(), ""
    result = {"processor": processor, "flags": flags, "python": platform.python_version()}
    return result | {name: importlib.metadata.version(name) for name in expected if name not in result}


def same_machine(expected: dict[str, str]) -> bool:
    """Return whether results can be compared byte by byte."""
    return machine(expected) == expected


def digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def nearly_equal(one: Any, other: Any) -> bool:
    """Return whether structure and values are equal up to rounding."""
    if isinstance(one, dict) and isinstance(other, dict):
        return list(one) == list(other) and all(nearly_equal(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(nearly_equal, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-6, abs_tol=1e-9)
    return type(one) is type(other) and bool(one == other)


def without_break_even_intervals(summary: dict[str, Any]) -> dict[str, Any]:
    """Return a summary without the break-even intervals: those of version 0.2.0 covered less than they stated."""
    kept = [{k: v for k, v in pair.items() if k != "break_even_interval"} for pair in summary["comparisons"]]
    return {**summary, "comparisons": kept}
