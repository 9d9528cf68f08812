"""Controls of a sweep: the search strategy and the axes."""

from __future__ import annotations

from typing import Any

import streamlit as st

from bandits import Experiment, UserError, read
from bandits.agents import REGISTRY as AGENTS
from bandits.agents.guards.params import GuardParams
from bandits.base.formatting import count_of
from bandits.base.params import Params
from bandits.experiments.guarding import guard_kinds
from bandits.results.metric_registry import OBJECTIVES, main_metric, objectives
from bandits.simulators import REGISTRY as SIMULATORS
from bandits.sweeps import Axis, Sweep
from bandits.sweeps.axis import JOINT
from bandits.sweeps.figures import grid
from bandits.sweeps.parameters import sweepable
from bandits.sweeps.sweep import MAX_AXES, MAX_BATCH, MAX_GAUSSIAN, MAX_PROPOSED
from bandits_app.session import draft as drafts
from bandits_app.session.refusals import name_fields
from bandits_app.widgets.params_form import fields

from . import agent
from .axis_form import axis_form

_FILLED = "sweep-given"
# the last valid experiment with the swept agent alone
_VALID = "sweep-valid"
_SEARCH = {"grid": "Full grid", "halving": "Early stopping", "optuna": "Optuna"}
_SAMPLERS = {"tpe": "Parzen estimator (TPE)", "gp": "Gaussian process", "random": "Random"}

SweepData = dict[str, Any]
# by path of the parameter: the agent or the simulator in the sidebar
Owners = dict[str, Params]


def fill(sweep: Sweep) -> None:
    """Put a sweep into the controls."""
    version, _ = _filled()
    names = {"axes", "search", "metric", "number", "batch", "sampler", "refinements"}
    st.session_state[_FILLED] = version + 1, sweep.model_dump(include=names)


def restore(sweep: Sweep) -> None:
    """Put a sweep back into the controls after a visit to another page, if the sidebar still fits
    it.
    """
    if agent.restore(sweep):
        fill(sweep)


def _filled() -> tuple[int, SweepData | None]:
    """Return how many times a sweep was put into the controls, and the last one."""
    filled: tuple[int, SweepData | None] = st.session_state.get(_FILLED, (0, None))
    return filled


def choose(errors: list[str]) -> SweepData | None:
    """Draw all controls; returns plain data for `bandits.sweeps.read`, or None without a valid
    experiment.

    What is wrong with the experiment is appended to ``errors``. The controls stay those of the last
    valid one, so that a number that was mistyped in the sidebar changes nothing here."""
    draft = drafts.current()
    source = {**draft.data(), "agents": [draft.agents[agent.chosen(draft)]]}
    experiment: Experiment | None
    try:
        experiment = st.session_state[_VALID] = read(source)
        valid = True
    except UserError as error:
        errors.append(name_fields(str(error), source))
        kept: Experiment | None = st.session_state.get(_VALID)
        experiment, valid = (
            kept if kept is not None and _kinds(kept.model_dump()) == _kinds(source) else None,
            False,
        )
    if experiment is None:
        st.caption("The settings need a valid experiment in the sidebar.")
        return None
    version, filled = _filled()
    search = st.segmented_control(
        "Search strategy",
        list(_SEARCH),
        default=filled["search"] if filled else "grid",
        required=True,
        format_func=_SEARCH.__getitem__,
        key=f"sweep-{version}-search",
        help=(
            "Full grid: all replications of all points. Early stopping: a quarter of the "
            "replications first, then only points that are not significantly worse than the best "
            "(successive halving by paired t tests, which assume nearly normal results: rare "
            "large rewards need the full grid). Optuna: sequential search for three to eight "
            "parameters; each batch of points depends on the results of earlier ones."
        ),
    )
    swept, simulator = experiment.agents[0], experiment.simulator
    owners: Owners = {f"agents.0.{n}": swept for n in _sweepable(type(swept))}
    for i, guard in enumerate(swept.guards):
        owners |= {f"agents.0.guards.{i}.{n}": guard for n in _sweepable(type(guard))}
    owners |= {f"simulator.{n}": simulator for n in _sweepable(type(simulator))}
    owners |= _joint(owners, filled)
    known = objectives(experiment)
    metric = main_metric(experiment).name
    if filled and filled["metric"] in known:
        metric = filled["metric"]
    data: SweepData = {"search": search, "metric": metric}
    if search == "optuna":
        data |= {"axes": _ranges(owners, swept.kind), **_proposals(known, metric)}
    else:
        data["axes"] = _grid(owners, swept.kind)
        if filled and filled.get("refinements") and _equal(data["axes"], filled["axes"]):
            data["refinements"] = filled["refinements"]
            _refined(filled["refinements"])
    return {"experiment": experiment.model_dump(mode="json"), **data} if valid else None


def _kinds(data: SweepData) -> tuple[str, str]:
    return data["simulator"]["kind"], data["agents"][0]["kind"]


def _equal(axes: list[SweepData], others: list[SweepData]) -> bool:
    """Whether these are valid axes and equal to the others."""
    try:
        return [Axis.model_validate(axis) for axis in axes] == [
            Axis.model_validate(axis) for axis in others
        ]
    except ValueError:
        return False


def _refined(refinements: list[dict[str, list[float]]]) -> None:
    """State that the grid is refined, with a button that returns to the axes alone."""
    added = sum(len(values) for step in refinements for values in step.values())
    row = st.container(horizontal=True, vertical_alignment="center", gap="medium")
    row.caption(
        f"Refined {count_of(len(refinements), 'times')}: {count_of(added, 'values')} are added to "
        "the grid."
    )
    row.button(
        "Without refinement", key="sweep-unrefined", type="tertiary", on_click=_forget_refinements
    )


def _forget_refinements() -> None:
    version, filled = _filled()
    if filled is not None:
        st.session_state[_FILLED] = version, {**filled, "refinements": []}


def _grid(owners: Owners, kind: str) -> list[SweepData]:
    axes: list[SweepData] = []
    for i, column in enumerate(st.columns(2)):
        with column.container(border=True):
            if (axis := _axis(i, owners, [a["path"] for a in axes], kind)) is not None:
                axes.append(axis)
    return axes


def _ranges(owners: Owners, kind: str) -> list[SweepData]:
    version, filled = _filled()
    previous = {axis["path"]: axis for axis in filled["axes"]} if filled else {}
    default = [path for path in previous if path in owners] or list(owners)[:3]
    paths = st.multiselect(
        "Parameters",
        list(owners),
        default,
        key=f"sweep-{version}-{kind}-paths",
        max_selections=MAX_AXES,
        format_func=lambda path: _title(owners[path], path),
        help="Parameters to vary, each in a range or a list.",
    )
    axes, columns = [], st.columns(2)
    for i, path in enumerate(paths):
        # a new row of columns, so that phones show the axes in order
        if i and i % 2 == 0:
            columns = st.columns(2)
        with columns[i % 2].container(border=True):
            st.markdown(f"**{_title(owners[path], path)}**")
            key = f"sweep-{version}-{kind}-range-{path}"
            axes.append(_form(owners, path, key, previous.get(path, {}), 9, counted=False))
    return axes


def _proposals(known: list[str], metric: str) -> SweepData:
    version, filled = _filled()
    usual: SweepData = filled if filled else {"number": 64, "batch": 8, "sampler": "tpe"}
    columns, key = st.columns(4), f"sweep-{version}"
    return {
        "number": columns[0].number_input(
            "Points",
            2,
            MAX_PROPOSED,
            usual["number"],
            key=f"{key}-points",
            help=(
                "Number of points that Optuna proposes. More points search more thoroughly and "
                "take longer; usually 32 to 128."
            ),
        ),
        "batch": columns[1].number_input(
            "Batch size",
            1,
            MAX_BATCH,
            usual["batch"],
            key=f"{key}-batch",
            help=(
                "Points proposed before their results are reported to Optuna. Smaller batches "
                "learn sooner, larger ones keep more processors busy; usually 4 to 16."
            ),
        ),
        "sampler": columns[2].selectbox(
            "Sampler",
            list(_SAMPLERS),
            list(_SAMPLERS).index(usual["sampler"]),
            key=f"{key}-sampler",
            format_func=_SAMPLERS.__getitem__,
            help=(
                "Sampling algorithm of Optuna. A Gaussian process takes one to two seconds per "
                f"point and proposes at most {MAX_GAUSSIAN}."
            ),
        ),
        "metric": columns[3].selectbox(
            "Objective",
            known,
            known.index(metric),
            key=f"{key}-metric-{len(known)}",
            format_func=lambda name: OBJECTIVES[name].of().title,
            help="The metric that Optuna optimises.",
        ),
    }


def _joint(owners: Owners, filled: SweepData | None) -> Owners:
    """Return the owners of parameters that move together in the sweep that was put into the
    controls.
    """
    found: Owners = {}
    for axis in map(Axis.model_validate, filled["axes"] if filled else ()):
        own = [owners.get(axis.path_of(name)) for name in axis.names]
        if len(own) > 1 and own[0] is not None and None not in own:
            found[axis.path] = own[0]
    return found


def _sweepable(model: type[Params]) -> list[str]:
    """List the parameters that can be swept, basic ones first."""
    order = [*fields(model, basic=True), *fields(model, basic=False)]
    return [name for name in order if name in sweepable(model)]


def _axis(position: int, owners: Owners, taken: list[str], kind: str) -> SweepData | None:
    """Draw the controls of one axis; the second may be none."""
    version, filled = _filled()
    key = f"sweep-{version}-{kind}-{position}"
    options = [None] * bool(position) + [path for path in owners if path not in taken]
    index = min(position, len(options) - 1)
    axes = filled["axes"] if filled else []
    if filled is not None:
        own = axes[position]["path"] if position < len(axes) else None
        index = options.index(own) if own in options else 0
    path = st.selectbox(
        ("First", "Second")[position] + " parameter",
        options,
        index=index,
        key=key,
        format_func=lambda p: "none" if p is None else _title(owners[p], p),
    )
    if path is None:
        return None
    previous: SweepData = next((axis for axis in axes if axis["path"] == path), {})
    return _form(owners, path, f"{key}-{path}", previous, (9, 7)[position])


def _form(
    owners: Owners, path: str, key: str, previous: SweepData, number: int, *, counted: bool = True
) -> SweepData:
    owner = owners[path]
    # parameters that move together have no common one
    setting = getattr(owner, path.rpartition(".")[2], None)
    return axis_form(path, type(owner), key, previous, setting, number, counted=counted)


def title(data: SweepData, path: str) -> str:
    """Return the title of a swept parameter."""
    part = (
        data["experiment"]["simulator"]
        if path.startswith("simulator.")
        else data["experiment"]["agents"][0]
    )
    registry: dict[str, Any] = {**SIMULATORS} if path.startswith("simulator.") else {**AGENTS}
    if ".guards." in path:
        return _title(guard_kinds()[part["guards"][int(path.split(".")[3])]["kind"]], path)
    return _title(registry[part["kind"]].Params, path)


def _title(owner: Params | type[Params], path: str) -> str:
    model = owner if isinstance(owner, type) else type(owner)
    shown = grid.joint_title(
        [model.model_fields[name] for name in path.rpartition(".")[2].split(JOINT)]
    )
    if issubclass(model, GuardParams):
        return f"{model.title}: {shown}"
    return ("Simulator: " if path.startswith("simulator.") else "") + shown
