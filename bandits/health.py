"""Alias of `bandits.diagnostics` under the names of earlier versions; ``python -m bandits.health`` runs it."""

from .diagnostics.earlier_names import *  # noqa: F403 - every public name
from .diagnostics.earlier_names import __all__ as __all__
from .diagnostics.earlier_names import main

if __name__ == "__main__":
    main()
