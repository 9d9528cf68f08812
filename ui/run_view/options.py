"""How a run is looked at: window, axes, the run before, one moment of the spectrum, presentation mode."""

from __future__ import annotations

from typing import Any, NamedTuple, get_args

import streamlit as st

from bandits import Experiment
from bandits.experiments.snapshots import LEVELS, snapshot_steps
from bandits.results.figures import Fourth, XAxis

WINDOWS = [100, 200, 500, 1000, 2000, 5000]
AXES: dict[XAxis, str] = {"step": "steps", "log step": "steps, log", "earned": "clicks"}


class View(NamedTuple):
    """What `bandits.results.figures.board` wants to know, and whether the run before is drawn too."""

    window: int = 1000
    x: XAxis = "step"
    log_regret: bool = False
    fourth: Fourth = "spectrum"
    level: float = 0.95
    at: int | None = None
    arm: int | None = None
    before: bool = True

    def drawn(self) -> dict[str, Any]:
        """The part that the figures take."""
        return {name: value for name, value in self._asdict().items() if name != "before"}


def choose(experiment: Experiment, arms: int, reached: int | None = None) -> View:
    """Draw the choices of how to look at a run that ended at a step, or goes on; they stay for the session."""
    noun = experiment.simulator_class().reward_noun
    keep: dict[str, Any] = {"persist_state": "session"}
    window = st.select_slider(
        "Window", WINDOWS, 1000, key="view-window", help="Steps that click rate and entropy are averaged over.", **keep
    )
    x = st.segmented_control(
        "Horizontal axis", list(AXES), default="step", required=True, key="view-x", **keep,
        format_func=lambda axis: noun if axis == "earned" else AXES[axis],
        help=f"Against steps, against steps on a logarithmic scale, or against the {noun} that each agent has earned.",
    )  # fmt: skip
    log_regret = st.toggle("Logarithmic regret", key="view-log", help="Shows whether regret grows like a power of the "
                           "step: then it is a straight line on two logarithmic axes.", **keep)  # fmt: skip
    before = st.toggle("Show the run before, dotted", True, key="view-before", **keep)
    fourth = st.segmented_control(
        "Fourth plot", get_args(Fourth), default="spectrum", required=True, key="view-fourth", **keep,
        help="Eigenvalue spectrum: in which directions evidence was gathered. Calibration: how often the truth lies "
        "inside the intervals in which an agent believes it.",
    )  # fmt: skip
    if fourth == "calibration":
        level = st.segmented_control(
            "Intervals of", LEVELS, default=LEVELS[-1], required=True, key="view-level", **keep,
            format_func=lambda level: f"{100 * level:.0f} %",
            help="An honest interval of 80 % holds the truth in 80 of 100 cases.",
        )  # fmt: skip
        return View(window, x or "step", log_regret, "calibration", level or LEVELS[-1], before=before)
    taken = snapshot_steps(experiment.steps)
    steps = [s for s in taken if reached is None or s <= reached] or taken[:1]
    key = f"view-at-{experiment.hash[:12]}-{len(steps)}"  # other steps, another slider
    at = st.select_slider("At step", steps, steps[-1], key=key, format_func="{:,}".format)
    arm = st.number_input(
        "Of one arm only", 0, max(arms - 1, 0), None, placeholder="all arms", key=f"view-arm-{experiment.hash[:12]}",
        help="For agents with one model per arm: the number of the arm, counted from 0. Empty: all arms together.",
    )  # fmt: skip
    moment = None if at == steps[-1] else at
    return View(window, x or "step", log_regret, at=moment, arm=arm, before=before)


def presenting() -> bool:
    """Whether this session is in presentation mode: bigger type, no controls but those of the run."""
    return bool(st.session_state.get("presenting"))


def present(on: bool) -> None:
    """Enter or leave presentation mode."""
    st.session_state.presenting = on


def enlarge() -> None:
    """Make the page readable from the back of the room."""
    st.html("<style>" + _BIG + "</style>")


# Everything on a page, Streamlit's and ours, is measured in rem: one size moves it all.
_BIG = """
html{font-size:clamp(16px,1.05vw + 10px,32px)}
[data-testid=stSidebar],[data-testid=stExpandSidebarButton],[data-testid=stHeader]{display:none}
[data-testid=stMainBlockContainer]{padding:1rem clamp(1rem,3vw,3rem)}
"""
