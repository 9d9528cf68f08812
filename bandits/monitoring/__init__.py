"""Monitors: alarms on what a system in production sees, with the false alarms and delays that they
have.

`alarms` replays one agent of a run exactly and feeds the monitors; `score` compares their alarms
with the changes that the simulator declares. A monitor sees clicks, items, features and the agent's
own statements, never an expected reward.

Example
-------
>>> from bandits import Experiment, alarms, run
>>> simulator = {"kind": "petshop", "n_products": 10, "changes": [{"kind": "features", "at": 4000,
...     "column": 0}]}
>>> data = {"simulator": simulator, "agents": [{"kind": "linucb"}], "steps": 5000, "replications":
...     2}
>>> result = run(Experiment.model_validate(data))
>>> found = alarms(result, "LinUCB", ["feature_drift"])
>>> [(alarm.step, alarm.row) for alarm in found]
[(5000, 0), (5000, 1)]
"""

from .alarm import Alarm, Need, Samples, Setting, Steps
from .base import FELL, Monitor, MonitorParams
from .false_alarms import Score, score
from .observation import EVERY, observe, offered
from .registry import REGISTRY, read
from .replay import alarms, table

__all__ = [
    "EVERY",
    "FELL",
    "REGISTRY",
    "Alarm",
    "Monitor",
    "MonitorParams",
    "Need",
    "Samples",
    "Score",
    "Setting",
    "Steps",
    "alarms",
    "observe",
    "offered",
    "read",
    "score",
    "table",
]
