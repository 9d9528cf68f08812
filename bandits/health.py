"""Alias of `bandits.diagnostics`, the name of earlier versions."""

from .diagnostics import *  # noqa: F403 - every public name
