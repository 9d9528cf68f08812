"""Alias of `bandits.diagnostics` under the names of earlier versions."""

from .diagnostics.earlier_names import *  # noqa: F403 - every public name
from .diagnostics.earlier_names import __all__ as __all__
