"""The facts of the pet shop: its size, what can be earned in it, and its click probabilities."""

from __future__ import annotations

from typing import Any

import pandas as pd
import streamlit as st

from bandits.experiments.experiment import Experiment
from bandits.results import metrics
from bandits.results.result import Result
from bandits.simulators.petshop import CATEGORIES, PERSONAS


def sentence(experiment: Experiment, result: Result) -> str:
    """Describe the shop in one sentence, with its lowest and highest CTR once the run has begun."""
    shop: Any = experiment.simulator  # the parameters of the pet shop
    text = (
        f"{shop.n_products:,} products in {len(CATEGORIES)} categories, {shop.n_users:,} users of {len(PERSONAS)} "
        "personas, one product for each visit."
    )
    history = max(result.histories.values(), key=lambda one: one.step, default=None)
    if history is None or not history.step:
        return text
    random, best = (metrics.total(history, name).mean() / history.step for name in ("random_value", "best_value"))
    return f"{text} Random choice earns a click-through rate of {random:.2f}, the best choice {best:.2f}."


def click_probabilities(experiment: Experiment) -> None:
    """Show how likely each persona clicks a product of each category."""
    personas = [name.replace("_", " ").capitalize() for name in PERSONAS]
    shop: Any = experiment.simulator
    table = pd.DataFrame(shop.click_rates, pd.Index(personas, name="Persona"), CATEGORIES)
    st.markdown(
        "Agents do not know these probabilities: they observe the persona and the category, and learn from clicks."
    )
    st.table(table.map("{:.2f}".format))
