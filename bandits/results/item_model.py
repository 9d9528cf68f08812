"""The linear model of one item after its m-th visit in a run: x, A, b and theta, by a replay."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from bandits.agents.guards.base import unguarded
from bandits.agents.linear.base import LinearAgent
from bandits.base.errors import UserError
from bandits.base.formatting import count, number
from bandits.base.types import FloatArray
from bandits.experiments.experiment import Experiment
from bandits.experiments.lane import Lane
from bandits.experiments.lockstep import make_lane
from bandits.models.linear.ridge import Ridge
from bandits.results.decision import check_replication, position, replayed
from bandits.results.figures.parts import axis, drawing
from bandits.results.figures.style import NUMBER, REFERENCE, Spec, Style, faint

# matrices with more columns are not drawn
MOST_FEATURES = 200
# cells that hold their number
_WRITTEN = 10


class ItemModel(NamedTuple):
    """What a linear agent knows of one item before and after one visit.

    Attributes
    ----------
    label : str
        Of the agent.
    item : int
    name : str
        Of the item.
    visit : int
        How many times the item had been shown, with this visit.
    step, replication : int
        Of that visit; the step is counted from 1, the replication from 0.
    visitor : str
        Segment of the user, where the simulator names segments.
    reward : float
    x : float64 (D,)
        Features of visitor and item.
    A : float64 (D, D)
    b, theta : float64 (D,)
        After the visit.
    b_before, theta_before : float64 (D,)
    shared : bool
        Other items have the same model.
    plain : bool
        The visit adds x x' to A and the reward times x to b, and nothing else does: no prior from
        other arms, window, noise for privacy or guard.
    """

    label: str
    item: int
    name: str
    visit: int
    step: int
    replication: int
    visitor: str
    reward: float
    x: FloatArray
    A: FloatArray
    b: FloatArray
    theta: FloatArray
    b_before: FloatArray
    theta_before: FloatArray
    shared: bool
    plain: bool


def obstacle(experiment: Experiment, agent: int | str) -> str:
    """State why an agent has no model that could be shown; empty if it has one."""
    index = position(experiment, agent)
    cls, params = experiment.agent_class(index), experiment.agents[index]
    label = experiment.labels[index]
    if not issubclass(cls, LinearAgent):
        return f"{label} has no linear model of its items"
    # fields of `LinearParams`, and of agents that have several models per item
    p: Any = params
    if p.sharing == "hybrid" or p.gamma < 1 or getattr(p, "members", 1) > 1:
        return (
            f"{label} has no single matrix A of an item: it is hybrid, a bag, or discounts the past"
        )
    D = experiment.simulator_class().describe(experiment.simulator).n_features
    if (width := p.fourier or D) > MOST_FEATURES:
        return f"A has {width:,} rows and columns; at most {MOST_FEATURES:,} are shown"
    return ""


def item_model(
    experiment: Experiment, agent: int | str, item: int, visit: int, replication: int = 0
) -> ItemModel:
    """Replay a run to the m-th visit of an item, and return its features and the item's model.

    Parameters
    ----------
    experiment : Experiment
    agent : int or str
        Position in the experiment, or label; with ridge models.
    item : int
    visit : int
        m: 1 is the first time that the item was shown.
    replication : int
        The row, counted from 0.

    Raises
    ------
    UserError
        The agent has no such model, the item was not shown so often, or the replay would take too
        long.
    """
    index = position(experiment, agent)
    label = experiment.labels[index]
    if reason := obstacle(experiment, index):
        raise UserError(reason)
    check_replication(experiment, replication)
    lane = make_lane(experiment, index, rows=[replication])
    n = lane.simulator.spec.n_items
    if not 0 <= item < n:
        raise UserError(f"item is {item}; it must be a whole number from 0 to {n - 1:,}")
    with threadpool_limits(1):
        lane.agent.prepare()
        _play_to(lane, experiment.steps, item, visit, label)
        round = lane.simulator.round_at(lane.step)
        before = _model(lane)
        model = int(before.models(_inner(lane).transformed(round))[0][round.items[0] == item][0])
        b, theta = before.b[0, model].copy(), before.theta[0, model].copy()
        features = _inner(lane).transformed(round).features[0]
        x = features[np.flatnonzero(round.items[0] == item)[0]].copy()
        trace = lane.advance(1)
    after, segments = _model(lane), lane.simulator.segment_names()
    return ItemModel(
        label=label,
        item=item,
        name=lane.simulator.name(item),
        visit=visit,
        step=lane.step,
        replication=replication,
        visitor=segments[round.segments[0]] if segments else "",
        reward=float(trace.rewards[0, 0]),
        x=x,
        A=after.A[0, model].copy(),
        b=after.b[0, model].copy(),
        theta=after.theta[0, model].copy(),
        b_before=b,
        theta_before=theta,
        shared=after.sharing != "per_arm",
        plain=type(after) is Ridge and unguarded(lane.agent) is lane.agent,
    )


def _inner(lane: Lane) -> LinearAgent:
    agent = unguarded(lane.agent)
    assert isinstance(agent, LinearAgent)
    return agent


def _model(lane: Lane) -> Ridge:
    model = _inner(lane).model
    assert isinstance(model, Ridge)
    return model


def _play_to(lane: Lane, steps: int, item: int, visit: int, label: str) -> None:
    """Advance to just before the step that shows an item for the m-th time."""
    seen, saved = 0, lane.state_dict()
    for trace in replayed(lane, 0, steps, label):
        shown = (trace.items[:, 0] == item).any(axis=1) & ~np.isnan(trace.rewards[:, 0])
        at = np.flatnonzero(shown)
        if visit <= seen + len(at):
            lane.load_state_dict(saved)
            lane.advance(trace.start + int(at[visit - seen - 1]) - lane.step)
            return
        seen, saved = seen + len(at), lane.state_dict()
    raise UserError(
        f"visit is {visit:,}; it must be a whole number from 1 to {seen:,}: so often {label} "
        f"showed item {item} in this replication"
        if seen
        else f"{label} did not show item {item} in this replication"
    )


def sentence(found: ItemModel) -> str:
    """State which visit it was, and what it changed."""
    who = f" to a visitor of the segment {found.visitor}" if found.visitor else ""
    shared = " Other items share its model." if found.shared else ""
    adds = " The visit adds x x′ to A and the reward times x to b; θ is A⁻¹ b."
    return (
        f"{found.label} showed {found.name} (item {found.item}) for the "
        f"{_ordinal(found.visit)} time at step {count(found.step)}{who}; the reward was "
        f"{number(found.reward)}.{shared}{adds * found.plain}"
    )


def _ordinal(n: int) -> str:
    ending = "th" if n % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")
    return f"{n:,}{ending}"


def figures(found: ItemModel, style: Style) -> list[Spec]:
    """Draw x, A, b and theta; b and theta beside what they were before the visit."""
    return [
        _bars("x", "Features of visitor and item.", style, found.x),
        _matrix(found.A),
        _bars("b", "Grey: before this visit.", style, found.b, found.b_before),
        _bars("θ", "Grey: before this visit.", style, found.theta, found.theta_before),
    ]


def _bars(
    title: str, note: str, style: Style, after: FloatArray, before: FloatArray | None = None
) -> Spec:
    places = np.arange(1, len(after) + 1)
    both = [("before", before, faint(REFERENCE, 0.6))] if before is not None else []
    data = [
        {
            "type": "bar",
            "name": name,
            "x": places,
            "y": values,
            "marker": {"color": color},
            "hovertemplate": f"feature %{{x}}: %{{y:{NUMBER}}}<extra>{name}</extra>",
        }
        for name, values, color in [*both, ("after", after, style.color)]
    ]
    return drawing(data, title, note, x=axis("feature"), y=axis(""), bargap=0.15)


def _matrix(A: FloatArray) -> Spec:
    places = np.arange(1, len(A) + 1)
    cells = {
        "type": "heatmap",
        "name": "A",
        "x": places,
        "y": places,
        "z": A,
        "colorscale": "Cividis",
        "showscale": False,
        "hovertemplate": f"A(%{{y}}, %{{x}}): %{{z:{NUMBER}}}<extra></extra>",
    }
    if len(A) <= _WRITTEN:
        cells["texttemplate"] = f"%{{z:{NUMBER}}}"
    y = axis("feature", autorange="reversed", showgrid=False)
    note = "λ on the diagonal at first; each visit adds x x′. Brighter: larger."
    return drawing([cells], "A", note, x=axis("feature", showgrid=False), y=y)
