"""Helpers of tests that compare with files made by version 0.2.0."""

from __future__ import annotations

import gzip
import hashlib
import importlib.metadata
import io
import json
import math
import platform
from pathlib import Path
from typing import Any

import pandas as pd

FOLDER = Path(__file__).parents[1] / "data" / "version_0_2_0"
HOME: dict[str, Any] = json.loads((FOLDER / "home.json").read_text(encoding="utf-8"))
NUMBERS: dict[str, Any] = json.loads(gzip.decompress((FOLDER / "numbers.json.gz").read_bytes()))
NEURAL = {
    "neural_greedy", "neural_ucb", "neural_ts", "neural_linucb", "neural_linear_ts", "neural_click_ts", "ensemble",
    "mc_dropout", "static_mlp",
}  # fmt: skip
# values and curves of an agent that later versions add
LATER = {"recovery", "exploration_rate", "segments", "exposure", "launches", "training"}


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


def curves_digest(path: Path) -> str:
    """Return the SHA-256 of a file of curves without the curves that later versions add."""
    table = pd.read_parquet(path)
    out = io.BytesIO()
    table[~table.metric.isin(LATER)].reset_index(drop=True).to_parquet(out, index=False)
    return hashlib.sha256(out.getvalue()).hexdigest()


def differences(one: Any, other: Any, path: str = "") -> list[str]:
    """Name what differs in structure, or in value by more than rounding."""
    if isinstance(one, dict) and isinstance(other, dict) and list(one) == list(other):
        return [line for name in one for line in differences(one[name], other[name], f"{path}/{name}")]
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        pairs = enumerate(zip(one, other, strict=True))
        return [line for at, (a, b) in pairs for line in differences(a, b, f"{path}/{at}")]
    if isinstance(one, float) and isinstance(other, float):
        same = math.isclose(one, other, rel_tol=1e-6, abs_tol=1e-9)
    else:
        same = type(one) is type(other) and bool(one == other)
    return [] if same else [f"{path}: {one!r:.200} is not {other!r:.200}"]


def comparable(summary: dict[str, Any]) -> dict[str, Any]:
    """Return what version 0.2.0 stated rightly: later values and break-even intervals are left out.

    The break-even intervals of version 0.2.0 covered less than they stated.
    """
    pairs = [{k: v for k, v in pair.items() if k != "break_even_interval"} for pair in summary["comparisons"]]
    agents = {label: {k: v for k, v in values.items() if k not in LATER} for label, values in summary["agents"].items()}
    return {**summary, "agents": agents, "comparisons": pairs}
