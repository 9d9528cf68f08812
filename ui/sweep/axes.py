"""Controls of a sweep: agent, search strategy, and the axes."""

from __future__ import annotations

from typing import Any

import streamlit as st

from bandits import Experiment
from bandits.agents import REGISTRY as AGENTS
from bandits.base.params import Params
from bandits.sweeps import Sweep
from bandits.sweeps.analysis.run_metrics import METRICS
from bandits.sweeps.figures import grid
from bandits.sweeps.parameters import is_integer, suggest_axis, sweepable
from bandits.sweeps.sweep import MAX_AXES, MAX_BATCH, MAX_GAUSSIAN, MAX_PROPOSED
from ui.arena import draft
from ui.params_form import fields

_FILLED, _AGENT = "sweep-given", "sweep-agent"
_SEARCH = {"grid": "Full grid", "halving": "Early stopping", "optuna": "Optuna"}
_SAMPLERS = {"tpe": "Parzen estimator (TPE)", "gp": "Gaussian process", "random": "Random"}

SweepData = dict[str, Any]


def fill(sweep: Sweep) -> None:
    """Put a sweep into the controls."""
    version, _ = _filled()
    names = {"axes", "search", "metric", "number", "batch", "sampler"}
    st.session_state[_FILLED] = version + 1, sweep.model_dump(include=names)


def restore(sweep: Sweep) -> None:
    """Put a sweep back into the controls after a visit to another page, if the sidebar still fits it."""
    if _AGENT in st.session_state:
        return
    if (label := _swept_agent(draft.current().experiment(), sweep)) is not None:
        fill(sweep)
        st.session_state[_AGENT] = label


def _swept_agent(experiment: Experiment | None, sweep: Sweep) -> str | None:
    """Return the label of the agent that equals the swept one up to swept parameters; None without one."""
    swept = [axis.path.split(".") for axis in sweep.axes]
    of_agent, of_simulator = ({path[-1] for path in swept if path[0] == part} for part in ("agents", "simulator"))
    rest = {"agents": True} | ({"simulator": of_simulator} if of_simulator else {})
    if experiment is None or experiment.model_dump(exclude=rest) != sweep.experiment.model_dump(exclude=rest):
        return None
    fixed = sweep.experiment.agents[0].model_dump(exclude=of_agent)
    matches = (agent.model_dump(exclude=of_agent) == fixed for agent in experiment.agents)
    return next((label for label, same in zip(experiment.labels, matches, strict=True) if same), None)


def _filled() -> tuple[int, SweepData | None]:
    """Return how many times a sweep was put into the controls, and the last one."""
    filled: tuple[int, SweepData | None] = st.session_state.get(_FILLED, (0, None))
    return filled


def choose() -> SweepData | None:
    """Draw all controls; returns plain data for `bandits.sweeps.read`, or None without a valid experiment."""
    experiment = draft.current().experiment()
    if experiment is None:
        st.caption(":material/error: The settings in the sidebar are not a valid experiment.")
        return None
    labels = list(experiment.labels)
    left, right = st.columns([1, 2])
    label = left.selectbox(
        "Agent to sweep", labels, key=_AGENT, help="One of the agents in the sidebar; its parameters are varied."
    )
    version, filled = _filled()
    search = right.segmented_control(
        "Search strategy", list(_SEARCH), default=filled["search"] if filled else "grid", required=True,
        format_func=_SEARCH.__getitem__, key=f"sweep-{version}-search",
        help="Full grid: all replications of all points. Early stopping: a quarter of the replications first, then "
        "only points that are not significantly worse than the best (successive halving by paired tests). Optuna: "
        "sequential search for three to eight parameters; each batch of points depends on the results of earlier ones.",
    )  # fmt: skip
    agent = experiment.agents[labels.index(label)]
    owners: dict[str, type[Params]] = {
        f"agents.0.{n}": AGENTS[agent.kind].Params for n in _sweepable(AGENTS[agent.kind].Params)
    }
    simulator = type(experiment.simulator)
    owners |= {f"simulator.{n}": simulator for n in _sweepable(simulator)}
    data = {"search": search, "metric": filled["metric"] if filled else "click_rate"}
    if search == "optuna":
        data |= {"axes": _ranges(owners, agent.kind), **_proposals()}
    else:
        data["axes"] = _grid(owners, agent.kind)
    single = experiment.model_dump(mode="json") | {"agents": [agent.model_dump(mode="json")]}
    return {"experiment": single, **data}


def _grid(owners: dict[str, type[Params]], kind: str) -> list[SweepData]:
    """Draw the controls of one or two axes."""
    axes: list[SweepData] = []
    for i, column in enumerate(st.columns(2)):
        with column.container(border=True):
            if (axis := _axis(i, owners, [a["path"] for a in axes], kind)) is not None:
                axes.append(axis)
    return axes


def _ranges(owners: dict[str, type[Params]], kind: str) -> list[SweepData]:
    """Draw the controls of any number of axes."""
    version, filled = _filled()
    previous = {axis["path"]: axis for axis in filled["axes"]} if filled else {}
    default = [path for path in previous if path in owners] or list(owners)[:3]
    paths = st.multiselect(
        "Parameters", list(owners), default, key=f"sweep-{version}-{kind}-paths", max_selections=MAX_AXES,
        format_func=lambda path: _title(owners[path], path), help="Parameters to vary, each in a range or a list.",
    )  # fmt: skip
    axes, columns = [], st.columns(2)
    for i, path in enumerate(paths):
        if i and i % 2 == 0:  # a new row of columns, so that phones show the axes in order
            columns = st.columns(2)
        with columns[i % 2].container(border=True):
            st.markdown(f"**{_title(owners[path], path)}**")
            key = f"sweep-{version}-{kind}-range-{path}"
            axes.append(_values(path, owners[path], key, previous.get(path, {}), 9, counted=False))
    return axes


def _proposals() -> SweepData:
    """Draw the controls of a search by Optuna."""
    version, filled = _filled()
    usual: SweepData = filled if filled else {"number": 64, "batch": 8, "sampler": "tpe", "metric": "click_rate"}
    columns, key = st.columns(4), f"sweep-{version}"
    return {
        "number": columns[0].number_input(
            "Points", 2, MAX_PROPOSED, usual["number"], key=f"{key}-points",
            help="Number of points that Optuna proposes. More points search more thoroughly and take longer; usually "
            "32 to 128.",
        ),
        "batch": columns[1].number_input(
            "Batch size", 1, MAX_BATCH, usual["batch"], key=f"{key}-batch",
            help="Points proposed before their results are reported to Optuna. Smaller batches learn sooner, larger "
            "ones keep more processors busy; usually 4 to 16.",
        ),
        "sampler": columns[2].selectbox(
            "Sampler", list(_SAMPLERS), list(_SAMPLERS).index(usual["sampler"]), key=f"{key}-sampler",
            format_func=_SAMPLERS.__getitem__,
            help="Sampling algorithm of Optuna. A Gaussian process takes one to two seconds per point and proposes at "
            f"most {MAX_GAUSSIAN}.",
        ),
        "metric": columns[3].selectbox(
            "Objective", list(METRICS), list(METRICS).index(usual["metric"]), key=f"{key}-metric",
            format_func=lambda name: METRICS[name].title, help="The metric that Optuna optimises.",
        ),
    }  # fmt: skip


def _sweepable(model: type[Params]) -> list[str]:
    """List the parameters that can be swept, basic ones first."""
    order = [*fields(model, basic=True), *fields(model, basic=False)]
    return [name for name in order if name in sweepable(model)]


def _axis(position: int, owners: dict[str, type[Params]], taken: list[str], kind: str) -> SweepData | None:
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
        ("First", "Second")[position] + " parameter", options, index=index, key=key,
        format_func=lambda p: "none" if p is None else _title(owners[p], p),
    )  # fmt: skip
    if path is None:
        return None
    previous: SweepData = next((axis for axis in axes if axis["path"] == path), {})
    return _values(path, owners[path], f"{key}-{path}", previous, (9, 7)[position])


def _values(
    path: str, owner: type[Params], key: str, previous: SweepData, number: int, *, counted: bool = True
) -> SweepData:
    """Draw the values of an axis: a list, or a range with its number of values if ``counted``."""
    name = path.rpartition(".")[2]
    axis = suggest_axis(owner, name, number)
    if "values" in axis or previous.get("values"):
        selected = list(previous.get("values") or axis["values"])
        options = list(dict.fromkeys([*axis.get("values", ()), *selected]))
        values = st.multiselect("Values", options, selected, key=key, format_func=grid.format_value)
        return {"path": path, "values": values}
    axis |= previous
    low, high, *more = st.columns(2 + counted)
    integer = is_integer(owner, name)
    common: dict[str, Any] = {"format": "%d" if integer else "%g"}
    as_number: Any = int if integer else float
    first = low.number_input("From", value=as_number(axis["low"]), key=f"{key}-low", **common)
    last = high.number_input("To", value=as_number(axis["high"]), key=f"{key}-high", **common)
    count = more[0].number_input("Values", 2, 64, axis["number"], key=f"{key}-number") if counted else axis["number"]
    log = st.toggle("Log scale", axis["scale"] == "log", key=f"{key}-log", help="Equal ratios between values.")
    return {"path": path, "low": first, "high": last, "number": count, "scale": "log" if log else "linear"}


def title(data: SweepData, path: str) -> str:
    """Return the title of a swept parameter."""
    experiment = draft.current().experiment()
    simulator = type(experiment.simulator) if experiment is not None else Params
    owner = simulator if path.startswith("simulator.") else AGENTS[data["experiment"]["agents"][0]["kind"]].Params
    return _title(owner, path)


def _title(owner: type[Params], path: str) -> str:
    field = owner.model_fields[path.rpartition(".")[2]]
    return ("Simulator: " if path.startswith("simulator.") else "") + str(field.title)
