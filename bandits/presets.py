"""Alias of `bandits.experiments.presets`, the name of earlier versions."""

from .experiments.presets import Preset, on_data, presets

__all__ = ["Preset", "on_data", "presets"]
