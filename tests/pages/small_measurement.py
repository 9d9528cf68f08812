"""A measurement with small budgets: the same steps in about a second."""

from __future__ import annotations

from collections.abc import Callable

from bandits.width_cost import CostRequest, Progress, timing
from bandits.width_cost.measurement import measured as measured_in_full


def measured(request: CostRequest, send: Callable[[Progress], None]) -> None:
    """Measure in the child process, whose budgets are reduced."""
    for name, seconds in {"TIME_BUDGET": 0.01, "SETUP_BUDGET": 0.03, "REPEAT_FOR": 0.002}.items():
        setattr(timing, name, seconds)
    measured_in_full(request, send)
