"""The names of earlier versions (`bandits.health`) for what `bandits.diagnostics` holds today."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from bandits.results.result import Result

from .curves import effective_dimension
from .curves import exploration_bonus as doubt
from .curves import pit_histogram as places
from .curves import predictive_r2 as foresight
from .finding import Finding, Verdict
from .findings import findings as current
from .references import MAX_NETWORK_GAIN as GAIN
from .references import LinearityCheck as Line
from .references import OracleReference as Oracle
from .references import PositionBias as Slots
from .references import linearity_check as line_of
from .references import oracle_reference as oracle_of
from .references import position_bias_check as slots_of

_OLD_NAMES = {
    "smallest_eigenvalue": "smallest", "condition_number": "condition", "effective_dimension": "dimension",
    "exploration_bonus": "doubt", "premature_convergence": "lock_in", "pit_histogram": "places",
    "predictive_r2": "foresight", "linearity": "line", "segment_coverage": "segments", "position_bias": "slots",
}  # fmt: skip
_OLD_REFERENCES = {"oracle": "oracle", "linearity": "line", "position_bias": "slots"}


def main() -> None:
    """Print the reference values of an experiment with the earlier keys, ``python -m bandits.health < EXPERIMENT``."""
    from bandits.base.processes import run_main

    from .__main__ import main as print_references

    run_main(lambda: print_references(_with_old_keys))


def _with_old_keys(message: dict[str, Any]) -> dict[str, Any]:
    return {"kind": _OLD_REFERENCES[message["kind"]], "found": message["value"]}


def findings(
    result: Result,
    label: str,
    oracle: Oracle | None = None,
    line: Line | None = None,
    slots: Slots | None = None,
    *,
    coming: Collection[str] = (),
) -> dict[str, Finding]:
    """Return `bandits.diagnostics.findings` under the earlier names of parameters and diagnostics."""
    pending = [{"line": "linearity", "slots": "position_bias"}.get(name, name) for name in coming]
    found = current(result, label, oracle, line, slots, pending=pending)
    return {_OLD_NAMES.get(name, name): finding for name, finding in found.items()}


__all__ = [
    "GAIN", "Finding", "Line", "Oracle", "Slots", "Verdict", "doubt", "effective_dimension", "findings", "foresight",
    "line_of", "oracle_of", "places", "slots_of",
]  # fmt: skip
