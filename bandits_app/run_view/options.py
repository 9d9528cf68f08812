"""Choose how a run is drawn: window, axes, previous run, step of the spectrum.

Compact or for a projector.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from bandits import Experiment
from bandits.experiments.snapshots import LEVELS, snapshot_steps
from bandits.results.figures.board import SPECTRUM, Options, XAxis, fourth_plots, usual_fourth
from bandits.results.metric_registry import METRICS

WINDOWS = [100, 200, 500, 1000, 2000, 5000]
AXES: dict[XAxis, str] = {"step": "steps", "log step": "steps, log", "earned": "clicks"}


class View(NamedTuple):
    """Options of `bandits.results.figures.board.board`, whether the previous run is drawn too,
    whether to zoom, and how many plots to draw.
    """

    window: int = 1000
    x: XAxis = "step"
    log_regret: bool = False
    fourth: str = SPECTRUM
    at: int | None = None
    arm: int | None = None
    # √T and log T beside the regret
    growth: bool = False
    # all eigenvalues of A
    whole: bool = False
    previous: bool = True
    # on the leading agents
    zoom: bool = True
    # the first two show what was earned and lost, the others how agents explore
    plots: int = 4

    @property
    def options(self) -> Options:
        """What the curves depend on."""
        return Options(
            self.window, self.x, self.log_regret, self.at, self.arm, self.growth, self.whole
        )

    def figure_options(self) -> dict[str, Any]:
        """Return the keyword arguments of the figures."""
        return {
            name: value
            for name, value in self._asdict().items()
            if name not in ("previous", "zoom", "plots")
        }


def usual(experiment: Experiment) -> View:
    """Return the view where nothing can be chosen."""
    return View(fourth=usual_fourth(experiment))


def choose(experiment: Experiment, arms: int, reached: int | None = None) -> View:
    """Draw the options of a run and return the view; they are kept for the session.

    Parameters
    ----------
    arms : int
        Number of arms.
    reached : int, optional
        Last step of a run that has ended; None while it is active.
    """
    noun = experiment.simulator_class().reward_noun
    keep: dict[str, Any] = {"persist_state": "session"}
    window = st.select_slider(
        "Window",
        WINDOWS,
        1000,
        key="view-window",
        **keep,
        help=(
            f"Number of steps of the moving averages of {noun} per step and entropy. Larger "
            "values give smoother curves that react later."
        ),
    )
    x = st.segmented_control(
        "Horizontal axis",
        list(AXES),
        default="step",
        required=True,
        key="view-x",
        **keep,
        format_func=lambda axis: noun if axis == "earned" else AXES[axis],
        help=f"Steps, steps on a logarithmic scale, or the {noun} that each agent has earned.",
    )
    log_regret = st.toggle(
        "Logarithmic regret",
        key="view-log",
        help="Logarithmic axis for the regret. With "
        "logarithmic steps too, a power law is a straight line.",
        **keep,
    )
    growth = METRICS["pseudo_regret"].known(experiment) and st.toggle(
        "√T and log T beside the regret",
        key="view-growth",
        help="Two lines of known growth, scaled to meet the leading agent's curve at half of its "
        "steps. The regret of a good agent grows no faster than √T.",
        **keep,
    )
    previous = st.toggle(
        "Compare with previous run",
        True,
        key="view-previous",
        **keep,
        help="Draws the run that you viewed before this one as dotted curves.",
    )
    # the oracle of the next step does not tell which agents lead
    zoom = not experiment.offers("visits") and st.toggle(
        "Zoom on the leading agents",
        True,
        key="view-zoom",
        **keep,
        help=(
            "Fits the first two plots to the agents that closed at least half of the gap between "
            "random choice and the oracle, and to the one that the preset is about. Off: all "
            "agents are in sight."
        ),
    )
    # The calibration is one choice, whatever its level
    titles = {
        METRICS[name].of(experiment).title: name for name in reversed(fourth_plots(experiment))
    }
    visits = experiment.offers("visits")
    usual = METRICS[usual_fourth(experiment)].of(experiment).title
    title = st.selectbox(
        "Fourth plot",
        list(reversed(titles)),
        list(reversed(titles)).index(usual),
        # another usual one, another choice
        key="view-fourth-visits" if visits else "view-fourth",
        help=(
            "A curve of all agents over the steps. Eigenvalue spectrum: information collected in "
            "each direction of feature space. Calibration: how often the true expected reward "
            "lies in the agent's own interval. Exploration rate: how often the agent does not "
            "choose the highest of its own estimated means."
        ),
        **keep,
    )
    fourth = titles[title]
    if METRICS[fourth].level is not None:
        level = st.segmented_control(
            "Nominal level",
            LEVELS,
            default=LEVELS[-1],
            required=True,
            key="view-level",
            **keep,
            format_func=lambda level: f"{100 * level:.0f} %",
            help=(
                "Level of the intervals. A calibrated 80 % interval contains the true value in "
                "80 % of the cases."
            ),
        )
        fourth = f"calibration_{100 * (level or LEVELS[-1]):.0f}"
    view = View(
        window, x or "step", log_regret, fourth, growth=growth, previous=previous, zoom=zoom
    )
    if fourth != SPECTRUM:
        return view
    snapshots = snapshot_steps(experiment.steps)
    steps = [s for s in snapshots if reached is None or s <= reached] or snapshots[:1]
    # other steps, another slider
    key = f"view-at-{experiment.hash[:12]}-{len(steps)}"
    at = st.select_slider(
        "At step",
        steps,
        steps[-1],
        key=key,
        format_func="{:,}".format,
        help="Step at which the spectrum is drawn.",
    )
    arm = st.number_input(
        "Single arm",
        0,
        max(arms - 1, 0),
        None,
        placeholder="all arms",
        key=f"view-arm-{experiment.hash[:12]}",
        help=(
            "Number of the arm, from 0, whose spectrum is drawn, for agents with one model per "
            "arm; of the category, for those with one per category. Empty: all arms."
        ),
    )
    whole = st.toggle(
        "All of A",
        key="view-whole",
        help="All eigenvalues of the design matrix. Off: those on the span of the features that "
        "can occur; the others are λ, as no observation changes them.",
        **keep,
    )
    moment = None if at == steps[-1] else at
    return view._replace(at=moment, arm=arm, whole=whole)


def embedded() -> bool:
    """Return whether the page was opened with ``embed=true``, to be shown in a frame: as in a
    presentation, without the ways to other pages.
    """
    return bool(st.context.is_embedded)


def presenting() -> bool:
    """Return whether this session is in presentation mode: larger type, no controls but those of
    the run.
    """
    return embedded() or bool(st.session_state.get("presenting"))


def present(on: bool) -> None:
    """Enter or leave presentation mode."""
    st.session_state.presenting = on


def enlarge() -> None:
    """Enlarge the type for a projector, hide the sidebar and what surrounds the page."""
    st.html(Path(__file__).with_name("presentation.css"))


def compact() -> None:
    """Move the rows of the page together, so that the first plot is in sight."""
    st.html(Path(__file__).with_name("compact.css"))


def present_button(row: DeltaGenerator, help: str) -> None:
    """Draw the button that enters or leaves presentation mode; none in a frame."""
    if embedded():
        return
    on = presenting()
    row.button(
        "Exit presentation" if on else "Present",
        icon=":material/cast_for_education:",
        key="present",
        type="tertiary",
        on_click=present,
        args=(not on,),
        help=help,
    )
