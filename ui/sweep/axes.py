"""What the page Sweep asks for: an agent, which points, and the axes they lie on."""

from __future__ import annotations

from typing import Any

import streamlit as st

from bandits import Experiment
from bandits.agents import REGISTRY as AGENTS
from bandits.base.params import Params
from bandits.sweeps import Sweep
from bandits.sweeps.analysis.run_metrics import METRICS
from bandits.sweeps.figures import grid
from bandits.sweeps.sweep import MAX_AXES, MAX_BATCH, MAX_PROPOSED, is_integer, suggest_axis, sweepable
from ui.arena import draft
from ui.params_form import fields

_GIVEN, _AGENT = "sweep-given", "sweep-agent"
_SEARCH = {"grid": "Every point", "halving": "Drop the worse early", "optuna": "Optuna"}
_SAMPLERS = {"tpe": "Densities (TPE)", "gp": "Gaussian process", "random": "By chance"}

Asked = dict[str, Any]


def give(sweep: Sweep) -> None:
    """Put a sweep into the controls."""
    version, _ = _given()
    kept = {"axes", "search", "metric", "number", "batch", "sampler"}
    st.session_state[_GIVEN] = version + 1, sweep.model_dump(include=kept)


def again(sweep: Sweep) -> None:
    """Put a sweep into the controls of a visitor who comes back to it, if agent and world at the left are still its."""
    if _AGENT in st.session_state:
        return
    if (label := _swept_of(draft.current().experiment(), sweep)) is not None:
        give(sweep)
        st.session_state[_AGENT] = label


def _swept_of(found: Experiment | None, sweep: Sweep) -> str | None:
    """The agent of an experiment that a sweep is of, whatever the values of what is swept; None if it is of none."""
    swept = [axis.path.split(".") for axis in sweep.axes]
    own, world = ({path[-1] for path in swept if path[0] == part} for part in ("agents", "simulator"))
    rest = {"agents": True} | ({"simulator": world} if world else {})
    one = sweep.experiment
    if found is None or found.model_dump(exclude=rest) != one.model_dump(exclude=rest):
        return None
    wanted = one.agents[0].model_dump(exclude=own)
    alike = (agent.model_dump(exclude=own) == wanted for agent in found.agents)
    return next((label for label, same in zip(found.labels, alike, strict=True) if same), None)


def _given() -> tuple[int, Asked | None]:
    """How often the controls have been given a sweep, and the last of them."""
    found: tuple[int, Asked | None] = st.session_state.get(_GIVEN, (0, None))
    return found


def choose() -> Asked | None:
    """Draw agent, axes and search; plain data that `bandits.sweeps.read` will judge. None while there is no draft."""
    found = draft.current().experiment()
    if found is None:
        st.caption(":material/error: The controls at the left do not make an experiment yet.")
        return None
    labels = list(found.labels)
    left, right = st.columns([1, 2])
    label = left.selectbox("Agent", labels, key=_AGENT, help="Who is swept, of the agents at the left.")
    version, given = _given()
    search = right.segmented_control(
        "Which points", list(_SEARCH), default=given["search"] if given else "grid", required=True,
        format_func=_SEARCH.__getitem__, key=f"sweep-{version}-search",
        help="Every point: all runs of all points. Drop the worse early: a quarter of the runs of every point first; "
        "points that are clearly worse than the best get no more. Optuna: for three to eight parameters; it proposes "
        "points and is told what the last ones gave.",
    )  # fmt: skip
    agent = found.agents[labels.index(label)]
    offered = {f"agents.0.{n}": AGENTS[agent.kind].Params for n in _ordered(AGENTS[agent.kind].Params)}
    world = type(found.simulator)
    offered |= {f"simulator.{n}": world for n in _ordered(world)}
    asked = {"search": search, "metric": given["metric"] if given else "click_rate"}
    if search == "optuna":
        asked |= {"axes": _ranges(offered, agent.kind), **_proposals()}
    else:
        asked["axes"] = _grid(offered, agent.kind)
    one = found.model_dump(mode="json") | {"agents": [agent.model_dump(mode="json")]}
    return {"experiment": one, **asked}


def _grid(offered: dict[str, type[Params]], kind: str) -> list[Asked]:
    """One axis or two."""
    axes: list[Asked] = []
    for i, column in enumerate(st.columns(2)):
        with column.container(border=True):
            if (axis := _axis(i, offered, [a["path"] for a in axes], kind)) is not None:
                axes.append(axis)
    return axes


def _ranges(offered: dict[str, type[Params]], kind: str) -> list[Asked]:
    """As many axes as there shall be."""
    version, given = _given()
    told = {axis["path"]: axis for axis in given["axes"]} if given else {}
    usual = [path for path in told if path in offered] or list(offered)[:3]
    paths = st.multiselect(
        "Parameters", list(offered), usual, key=f"sweep-{version}-{kind}-paths", max_selections=MAX_AXES,
        format_func=lambda path: _title(offered[path], path), help="Each in a range, or among some values.",
    )  # fmt: skip
    axes, columns = [], st.columns(2)
    for i, path in enumerate(paths):
        if i and i % 2 == 0:  # a line of their own, so that they keep their order one below the other on a phone
            columns = st.columns(2)
        with columns[i % 2].container(border=True):
            st.markdown(f"**{_title(offered[path], path)}**")
            key = f"sweep-{version}-{kind}-range-{path}"
            axes.append(_values(path, offered[path], key, told.get(path, {}), 9, counted=False))
    return axes


def _proposals() -> Asked:
    """How many points, how many at a time, by whom, and what for."""
    version, given = _given()
    usual = given if given else {"number": 64, "batch": 8, "sampler": "tpe", "metric": "click_rate"}
    columns, key = st.columns(4), f"sweep-{version}"
    return {
        "number": columns[0].number_input("Points", 2, MAX_PROPOSED, usual["number"], key=f"{key}-points"),
        "batch": columns[1].number_input(
            "At a time", 1, MAX_BATCH, usual["batch"], key=f"{key}-batch",
            help="So many are proposed before Optuna is told what they gave: fewer learn faster, more keep more "
            "processors busy.",
        ),
        "sampler": columns[2].selectbox(
            "Sampler", list(_SAMPLERS), list(_SAMPLERS).index(usual["sampler"]), key=f"{key}-sampler",
            format_func=_SAMPLERS.__getitem__,
            help="Optuna's own. A Gaussian process takes a second or two for each point, and makes at most 128.",
        ),
        "metric": columns[3].selectbox(
            "Judged by", list(METRICS), list(METRICS).index(usual["metric"]), key=f"{key}-metric",
            format_func=lambda name: METRICS[name].title, help="What Optuna is told of every point.",
        ),
    }  # fmt: skip


def _ordered(model: type[Params]) -> list[str]:
    """Parameters that can be swept, those that are shown at first before the others."""
    order = [*fields(model, basic=True), *fields(model, basic=False)]
    return [name for name in order if name in sweepable(model)]


def _axis(position: int, offered: dict[str, type[Params]], taken: list[str], kind: str) -> dict[str, Any] | None:
    """One axis; the second may be none."""
    version, given = _given()
    key = f"sweep-{version}-{kind}-{position}"
    options = [None] * bool(position) + [path for path in offered if path not in taken]
    index = min(position, len(options) - 1)
    axes = given["axes"] if given else []
    if given is not None:  # the axes of a link
        own = axes[position]["path"] if position < len(axes) else None
        index = options.index(own) if own in options else 0
    path = st.selectbox(
        ("First", "Second")[position] + " parameter", options, index=index, key=key,
        format_func=lambda p: "none" if p is None else _title(offered[p], p),
    )  # fmt: skip
    if path is None:
        return None
    told = next((axis for axis in axes if axis["path"] == path), {})
    return _values(path, offered[path], f"{key}-{path}", told, (9, 7)[position])


def _values(path: str, owner: type[Params], key: str, told: Asked, number: int, *, counted: bool = True) -> Asked:
    """The values of an axis: of a list, or of a range, and how many of them where they are ``counted``."""
    name = path.rpartition(".")[2]
    begin = suggest_axis(owner, name, number)
    if "values" in begin or told.get("values"):
        chosen = list(told.get("values") or begin["values"])
        every = list(dict.fromkeys([*begin.get("values", ()), *chosen]))
        picked = st.multiselect("Values", every, chosen, key=key, format_func=grid.format_value)
        return {"path": path, "values": picked}
    begin |= told
    low, high, *more = st.columns(2 + counted)
    common: dict[str, Any] = {"format": "%d"} if is_integer(owner, name) else {"format": "%g"}
    kind_of: Any = int if is_integer(owner, name) else float
    first = low.number_input("From", value=kind_of(begin["low"]), key=f"{key}-low", **common)
    last = high.number_input("To", value=kind_of(begin["high"]), key=f"{key}-high", **common)
    many = more[0].number_input("Values", 2, 64, begin["number"], key=f"{key}-number") if counted else begin["number"]
    log = st.toggle("Equal factors (log scale)", begin["scale"] == "log", key=f"{key}-log")
    return {"path": path, "low": first, "high": last, "number": many, "scale": "log" if log else "linear"}


def title(data: Asked, path: str) -> str:
    """What the page calls a parameter."""
    world = type(found.simulator) if (found := draft.current().experiment()) is not None else Params
    owner = world if path.startswith("simulator.") else AGENTS[data["experiment"]["agents"][0]["kind"]].Params
    return _title(owner, path)


def _title(owner: type[Params], path: str) -> str:
    field = owner.model_fields[path.rpartition(".")[2]]
    return ("World: " if path.startswith("simulator.") else "") + str(field.title)
