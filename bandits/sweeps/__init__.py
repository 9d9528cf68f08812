"""Hyperparameter sweeps: grids, successive halving and Optuna, on this machine or on a Dask
cluster.

    Sweep ──> blocks ──> executor ──> runner ──> landscape ──> figures
    (validated (rows that (in process, (order,     (means, best   (plotly)
     data)      share a    pool,        storage,    region,
                lane)      cluster)     resuming)   importance)

>>> from bandits.sweeps import read, run
>>> sweep = read({"experiment": {"agents": [{"kind": "linucb"}], "steps": 500, "replications": 4},
...               "axes": [{"path": "agents.0.alpha", "low": 0.1, "high": 2, "number": 3}]})
>>> run(sweep).best().values
(2.0,)
"""

from __future__ import annotations

from bandits.sweeps.analysis.landscape import Landscape

from .axis import Axis
from .refinement import refine
from .runner import run
from .sweep import Sweep, read

__all__ = ["Axis", "Landscape", "Sweep", "read", "refine", "run"]
