"""Diagnostics: does an agent explore enough, and is its uncertainty calibrated?

`findings` applies all rules to one agent of a run (`finding` defines the verdict, `rules` holds the
rules by subject), and `conclude` summarises them: does the agent explore too little, about right or
too much? `references` computes what some rules compare with, without any agent of the run: the
oracle, a linearity check and the position bias; `background` does so in a subprocess. `figures`
draws one figure per finding, and `retrieval` evaluates the approximate index of a two-stage
recommender.

Example
-------
>>> from bandits import Experiment, diagnostics, run
>>> experiment = Experiment.model_validate({"agents": [{"kind": "linucb"}], "steps": 1000,
...     "replications": 4})
>>> found = diagnostics.findings(run(experiment), "LinUCB",
...     diagnostics.oracle_reference(experiment))
>>> found["premature_convergence"].verdict
'healthy'
"""

from .curves import effective_dimension, exploration_bonus, pit_histogram, predictive_r2
from .finding import Conclusion, Direction, Finding, Verdict, conclude
from .findings import findings, reservations
from .references import (
    MAX_NETWORK_GAIN,
    LinearityCheck,
    OracleReference,
    PositionBias,
    linearity_check,
    oracle_reference,
    position_bias_check,
)

__all__ = [
    "MAX_NETWORK_GAIN",
    "Conclusion",
    "Direction",
    "Finding",
    "LinearityCheck",
    "OracleReference",
    "PositionBias",
    "Verdict",
    "conclude",
    "effective_dimension",
    "exploration_bonus",
    "findings",
    "linearity_check",
    "oracle_reference",
    "pit_histogram",
    "position_bias_check",
    "predictive_r2",
    "reservations",
]
