"""Presets: sweeps stored as JSON files, read with the same validation as uploads."""

from __future__ import annotations

import json
from functools import lru_cache
from importlib.resources import files
from typing import NamedTuple

from bandits.sweeps.sweep import Sweep, read


class SweepPreset(NamedTuple):
    """A sweep with a title and a description of what it shows."""

    title: str
    about: str
    sweep: Sweep


@lru_cache(maxsize=1)
def presets() -> dict[str, SweepPreset]:
    """Return all presets by name, in the order of their files."""
    found = {}
    for path in sorted(files("bandits.sweeps.presets").iterdir(), key=lambda p: p.name):
        if path.name.endswith(".json"):
            data = json.loads(path.read_text(encoding="utf-8"))
            name = path.name.removesuffix(".json").partition("-")[2]
            found[name] = SweepPreset(data["title"], data["about"], read(data["sweep"]))
    return found
