"""Alias of `bandits.profiling`, the name of earlier versions; ``python -m bandits.cost`` runs it."""

from .base.processes import run_main
from .profiling import *  # noqa: F403 - every public name
from .profiling.__main__ import main

if __name__ == "__main__":
    run_main(main)
