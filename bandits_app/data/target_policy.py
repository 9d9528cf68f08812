"""The target policy, and how its value is estimated."""

from __future__ import annotations

from typing import Any

import streamlit as st

from bandits.offpolicy.choices import kept_agents, suggested_target
from bandits.offpolicy.evaluation import ADJUSTED, ALL, INTERVALS, estimators_of
from bandits.offpolicy.regression import MODELS
from bandits_app.runs import run_lists

from .log_source import Source

_INTERVALS = {
    "normal": "Normal",
    "bootstrap": "Bootstrap",
    "bernstein": "Empirical Bernstein",
    "anytime": "Anytime-valid",
}
_MODELS = {
    "logistic": "Logistic regression",
    "ridge": "Ridge regression",
    "gradient_boosting": "Gradient boosting",
}


_HELP = (
    "The policy whose value is estimated. An agent learns from the first half of the log, is then "
    "frozen, and is evaluated on the second half. *Halfway in* a run: an agent of a stored run "
    "with the same users, as half of that run had trained it."
)
# the choice for a file, which the next file keeps
_LAST = "whatif-last-target"


def choose(source: Source | None) -> str:
    """Draw the choice of a target policy.

    Return its text, as `bandits.offpolicy.evaluate` reads it.

    Without a log it cannot be changed.
    """
    if source is None:
        last = st.session_state.get(_LAST, "random")
        st.selectbox(
            "Target policy", [last], format_func=_title, width=300, disabled=True, help=_HELP
        )
        return ""
    summary, key = source.summary, source.key[:40]
    agents = {f"agent:{label}": text for label, text in summary.agents.items()}
    kept: dict[str, str] = {}
    if summary.experiment is not None:
        found = kept_agents(summary.experiment, run_lists.finished_runs(), run_lists.display_title)
        kept = {f"agent:{title}": text for title, text in found.items()}
    production = (
        [f"bts:{source.log.rpartition('/')[2]}"]
        if isinstance(source.log, str) and source.log
        else []
    )
    options = [
        *agents,
        "random",
        *production,
        "always",
        *(["column"] if summary.columns else []),
        "greedy:ridge",
        *kept,
    ]
    first = suggested_target(summary, source.label, next(iter(production), ""))
    if source.name and st.session_state.get(_LAST) in options:
        first = st.session_state[_LAST]
    chosen = st.selectbox(
        "Target policy",
        options,
        options.index(first),
        key=f"whatif-target-{key}",
        width=300,
        format_func=_title,
        help=_HELP,
    )
    if source.name:
        st.session_state[_LAST] = chosen
    if chosen == "always":
        item = st.selectbox("Item", summary.names, key=f"whatif-item-{key}", width=140)
        return f"always:{item}"
    if chosen == "column":
        about = "Probability with which the target would have chosen the item that was shown"
        return f"column:{st.selectbox('Column', summary.columns, key=f'whatif-column-{key}', width=180, help=about)}"  # noqa: E501
    return (agents | kept).get(chosen, chosen)


def _title(option: str) -> str:
    if option.startswith("bts:"):
        return "Thompson sampling of the shop"
    named = {
        "random": "Uniformly random choice",
        "always": "Always one item",
        "column": "Probabilities in a column",
        "greedy:ridge": "Best item by a model of the log",
    }
    return named.get(option, option.removeprefix("agent:"))


def _reward_range(source: Source | None) -> tuple[float, float] | None:
    """Draw the range of a reward where the log does not state it."""
    if source is None or source.summary.reward_range is not None:
        return None
    least, largest = st.columns(2)
    low = least.number_input("Least reward", value=None, key="whatif-low", placeholder="Unknown")
    high = largest.number_input(
        "Largest reward",
        value=None,
        key="whatif-high",
        placeholder="Unknown",
        help="Of all rewards that are possible, whether or not the log has them: 0 and 1 for "
        "clicks.",
    )
    return (low, high) if low is not None and high is not None and low < high else None


def options(source: Source | None) -> dict[str, Any]:
    """Draw the settings: estimators, intervals, the model of rewards, and propensities that are
    estimated.
    """
    with st.popover("Settings", icon=":material/tune:", type="tertiary"):
        asked = _reward_range(source)
        summary = None if source is None else source.summary
        known = asked or (summary and summary.reward_range)
        visits = summary is not None and summary.visits
        bounded = known is not None and summary is not None and not (summary.weighted or visits)
        kind = st.selectbox(
            "Intervals",
            INTERVALS if bounded else ADJUSTED,
            format_func=_INTERVALS.__getitem__,
            key=f"whatif-interval-{bounded}",
            help=(
                "Normal and bootstrap hold for large logs. Empirical Bernstein (IPS) holds for "
                "every number of decisions; anytime-valid (IPS) also if you look again and again "
                "while the log grows. These two require the least and the largest possible reward, "
                "which a log cannot show, because a rare large one may not be in it yet, and rows "
                "without weights."
            ),
        )
        possible = estimators_of(kind, visits=visits)
        usual = [name for name in possible if ALL[name].usual]
        names = st.multiselect(
            "Estimators",
            possible,
            usual,
            key=f"whatif-estimators-{kind}-{visits}",
            format_func=lambda name: ALL[name].title,
            placeholder="All that this log allows",
        )
        model = st.selectbox(
            "Model of rewards",
            ["", *MODELS],
            key="whatif-model",
            format_func=lambda name: _MODELS.get(
                name, "By the rewards: logistic for 0 and 1, otherwise ridge"
            ),
            help=(
                "Predicts the reward of every item for DM, DR and what is built on them; "
                "three-fold cross-fitting."
            ),
        )
        recorded = source is None or source.summary.propensities
        estimated = not recorded and st.toggle(
            "Estimate propensities",
            key="whatif-estimate",
            help=(
                "By a logistic regression of the item on the features. Estimates are biased "
                "where it is wrong."
            ),
        )
    return {
        "estimators": None if names == usual else names or None,
        "interval": kind,
        "reward_range": asked,
        "model": model or None,
        "estimate_propensities": estimated,
    }
