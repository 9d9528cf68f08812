"""Presets: sweeps stored as JSON files, read with the same validation as uploads."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from bandits.base.files import numbered_json
from bandits.sweeps.sweep import Sweep, read


class SweepPreset(NamedTuple):
    """A sweep with a title, its group in the menu, one line, and a description of what it shows."""

    title: str
    group: str
    line: str
    about: str
    sweep: Sweep


@lru_cache(maxsize=1)
def presets() -> dict[str, SweepPreset]:
    """Return all presets by name, in the order of their files."""
    found = numbered_json("bandits.sweeps.presets")
    return {n: SweepPreset(**{**data, "sweep": read(data["sweep"])}) for n, data in found.items()}
