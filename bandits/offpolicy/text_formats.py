"""Write a recorded log as text: CSV for spreadsheets and other tools, dsjson for Vowpal Wabbit."""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np

from bandits.base.errors import UserError
from bandits.results.export import csv_of

from .dsjson import lines
from .log import DecisionLog
from .parquet import MAX_VECTOR, from_table

ENDINGS = {"Parquet": ".parquet", "CSV": ".csv", "dsjson": ".dsjson"}
MAX_TEXT_ROWS = 200_000  # which take some seconds


def convert(content: bytes, ending: str) -> bytes:
    """Convert a decision log from Parquet.

    Parameters
    ----------
    content : bytes
        A Parquet file of `write_parquet`.
    ending : str
        One of `ENDINGS`.

    Raises
    ------
    UserError
        The log is too long for a text, or has no propensities (dsjson).
    """
    if ending == ".parquet":
        return content
    import pyarrow.parquet as pq

    rows = pq.read_metadata(io.BytesIO(content)).num_rows
    if rows > MAX_TEXT_ROWS:
        raise UserError(f"as text a log may have {MAX_TEXT_ROWS:,} decisions; this one has {rows:,}: take Parquet")
    log = from_table(pq.read_table(io.BytesIO(content)))
    return ("".join(lines(log)) if ending == ".dsjson" else csv(log)).encode()


def csv(log: DecisionLog) -> str:
    """Write one row per decision, with a header whose names *What if?* and `evaluate` recognise.

    Candidates and vectors of propensities are JSON lists. The experiment of a simulated run is not part of it: the true
    value is not known from a CSV.
    """
    import pandas as pd

    names, K = log.names, log.n_actions
    columns: dict[str, Any] = {
        "event_id": log.event_ids, "row": log.rows, "step": log.steps, "segment": log.segments,
        "action": [names[a] for a in log.actions], "position": log.positions, "propensity": log.propensities,
        "propensity_kind": log.kinds, "reward": log.rewards, "version": log.versions,
    }  # fmt: skip
    if log.available is not None:
        columns["candidates"] = [json.dumps([names[k] for k in np.flatnonzero(offered)]) for offered in log.available]
    if log.distributions is not None and K <= MAX_VECTOR:
        columns["propensities"] = [json.dumps(vector) for vector in log.distributions.tolist()]
    if log.features is not None:
        columns |= {f"feature_{n}": log.features[:, d] for d, n in enumerate(_feature_names(log))}
    columns |= dict(log.columns)
    return csv_of(pd.DataFrame({name: values for name, values in columns.items() if values is not None}))


def _feature_names(log: DecisionLog) -> tuple[str, ...]:
    D = 0 if log.features is None else log.features.shape[1]
    return log.feature_names or tuple(map(str, range(D)))
