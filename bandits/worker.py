"""Alias of `bandits.runtime.worker`, the name of earlier versions; ``python -m bandits.worker`` still runs it."""

from .runtime.worker import main

if __name__ == "__main__":
    main()
