"""Show what user segments and items got in the view Diagnostics."""

from __future__ import annotations

from typing import Literal

import pandas as pd
import streamlit as st

from bandits.results.items.demand import demand
from bandits.results.items.fairness import item_table, segment_table
from bandits.runtime.pool import Job
from bandits_app.widgets.text import safe_cell

WHOLE = 24  # rows of a table that does not scroll


def show(job: Job) -> None:
    """Show a table of segments and one of items, where the simulator has them."""
    demand(job.experiment)  # takes a while the first time: outside the lock
    with job.lock:
        segments, items = segment_table(job.result), item_table(job.result)
    if segments is None and items is None:
        return
    st.subheader("Fairness", anchor=False)
    if segments is not None:
        st.markdown(
            "What does each user segment get? *Disparity* is its regret per visit minus that of all other visitors: "
            "above 0, it loses more clicks than they do. *Exploration* is the share of its decisions that were not the "
            "agent's best estimate. 95 % intervals in brackets."
        )
        height: Literal["content", "auto"] = "content" if len(segments) <= WHOLE else "auto"
        st.dataframe(_safe(segments), hide_index=True, key="fairness-segments", height=height)
    if items is not None:
        st.markdown(
            "What does each item get? *Gini* is 0 if all are shown equally often and 1 if one takes everything. "
            "*Exposure over merit* is the share of exposure of the worst tenth of the items over their share of the "
            "expected clicks: 1 is what they merit, 0 is never shown."
        )
        if any(str(column).startswith("Launch") for column in items):
            st.markdown(
                "What does a launch get? *Share* is that of the new items, followed by their fair share, that of an "
                "optimal choice. *Fair share* is reached when, from then on, the share in every 1,000 steps differs "
                "from it by at most 20\u00a0%, by at most .01, or by what chance explains, whichever is most (median "
                "of the replications)."
            )
        st.dataframe(_safe(items), hide_index=True, key="fairness-items")


def _safe(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(Agent=[safe_cell(label) for label in table["Agent"]])
