"""Alias of `bandits.profiling`, the name of earlier versions; ``python -m bandits.cost`` still runs it."""

import sys

from .profiling import *  # noqa: F403 - every public name
from .profiling.__main__ import main

if __name__ == "__main__":
    sys.exit(main())
