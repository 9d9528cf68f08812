"""``python -m bandits.width_cost`` with small budgets: the same steps in about a second."""

from __future__ import annotations

import importlib

from bandits.base.processes import run_main
from bandits.width_cost.__main__ import main

if __name__ == "__main__":
    timing = importlib.import_module("bandits.width_cost.measure")  # the package's `measure` is its function
    for name, seconds in {"TIME_BUDGET": 0.01, "SETUP_BUDGET": 0.03, "REPEAT_FOR": 0.002}.items():
        setattr(timing, name, seconds)
    run_main(main)
