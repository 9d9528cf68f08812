"""Does an agent explore well? Verdicts on one run, each with what healthy looks like.

`curves` are what only diagnostics draw; `comparisons` live the world without any of the run's agents; `verdicts` judge;
`figures` draw one picture for each verdict.
"""

from .curves import doubt, effective_dimension, foresight, places
from .findings import Finding, Verdict, findings
from .references import GAIN, Line, Oracle, Slots, line_of, oracle_of, slots_of

__all__ = [
    "GAIN", "Finding", "Line", "Oracle", "Slots", "Verdict", "doubt", "effective_dimension", "findings", "foresight",
    "line_of", "oracle_of", "places", "slots_of",
]  # fmt: skip
