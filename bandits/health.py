"""Alias of `bandits.diagnostics` under the names of earlier versions."""

from __future__ import annotations

from collections.abc import Collection

from bandits.results.result import Result

from . import diagnostics
from .diagnostics import MAX_NETWORK_GAIN as GAIN
from .diagnostics import Finding, Verdict, effective_dimension
from .diagnostics import LinearityCheck as Line
from .diagnostics import OracleReference as Oracle
from .diagnostics import PositionBias as Slots
from .diagnostics import exploration_bonus as doubt
from .diagnostics import linearity_check as line_of
from .diagnostics import oracle_reference as oracle_of
from .diagnostics import pit_histogram as places
from .diagnostics import position_bias_check as slots_of
from .diagnostics import predictive_r2 as foresight

_OLD_NAMES = {
    "smallest_eigenvalue": "smallest", "condition_number": "condition", "effective_dimension": "dimension",
    "exploration_bonus": "doubt", "premature_convergence": "lock_in", "pit_histogram": "places",
    "predictive_r2": "foresight", "linearity": "line", "segment_coverage": "segments", "position_bias": "slots",
}  # fmt: skip


def findings(
    result: Result,
    label: str,
    oracle: Oracle | None = None,
    line: Line | None = None,
    slots: Slots | None = None,
    *,
    coming: Collection[str] = (),
) -> dict[str, Finding]:
    """Return `diagnostics.findings` under the names that parameters and diagnostics had in earlier versions."""
    pending = [{"line": "linearity", "slots": "position_bias"}.get(name, name) for name in coming]
    found = diagnostics.findings(result, label, oracle, line, slots, pending=pending)
    return {_OLD_NAMES.get(name, name): finding for name, finding in found.items()}


__all__ = [
    "GAIN", "Finding", "Line", "Oracle", "Slots", "Verdict", "doubt", "effective_dimension", "findings", "foresight",
    "line_of", "oracle_of", "places", "slots_of",
]  # fmt: skip
