"""Alias of `bandits.width_cost` under the names of earlier versions; ``python -m bandits.cost`` runs it."""

from .base.processes import run_main
from .width_cost.__main__ import main
from .width_cost.earlier_names import *  # noqa: F403 - every public name
from .width_cost.earlier_names import __all__ as __all__

if __name__ == "__main__":
    run_main(main)
