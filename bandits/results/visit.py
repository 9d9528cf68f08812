"""One visit of many clicks, step by step: what is shown, what it costs later, and what a run earned
per visit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bandits.agents.planning.base import PlanningAgent
from bandits.base.errors import UserError
from bandits.base.formatting import count, count_of
from bandits.base.randomness import Streams
from bandits.base.types import FloatArray, Round
from bandits.experiments.experiment import Experiment
from bandits.experiments.history import History
from bandits.experiments.lane import Lane
from bandits.experiments.lockstep import make_lane
from bandits.results import metrics, words
from bandits.results.decision import replay_to
from bandits.results.figures.parts import axis, drawing, line, points
from bandits.results.figures.style import Spec, styles
from bandits.results.metric_registry import METRICS
from bandits.results.run import Run
from bandits.simulators.session_values import MOODS, N_KINDS
from bandits.simulators.sessions import Sessions, solve

# the replication that is watched
ROW = 0
# visits without a limit of steps end here at the latest
LONGEST = 200


class Frame(NamedTuple):
    """One step of a visit; arrays have one entry for each kind of product, (A,).

    Attributes
    ----------
    persona : str
    mood : int
        Before the step, 0 to 4.
    shown : int
        Kind of the product that was shown.
    earned : bool
        Whether the step paid.
    learned : float64 (A,), optional
        Q of the agent; None for one that does not plan.
    immediate, optimal : float64 (A,)
        Expected reward of the step, and Q*: that of the rest of the visit under the best policy.
    others : dict of str to int
        Kind that each agent would show in this state, by label; this agent's is ``shown``.
    """

    persona: str
    mood: int
    shown: int
    earned: bool
    learned: FloatArray | None
    immediate: FloatArray
    optimal: FloatArray
    others: dict[str, int]


def kinds(experiment: Experiment) -> list[str]:
    """Name the kinds of products."""
    simulator = Sessions(experiment.simulator, Streams(experiment.seed, [ROW]))
    return [simulator.name(kind) for kind in range(N_KINDS)]


def watched(experiment: Experiment) -> list[str]:
    """Return the labels of the agents that can be watched: those that do not know the truth."""
    return [
        label
        for i, label in enumerate(experiment.labels)
        if "truth" not in experiment.agent_class(i).requires(experiment.agents[i])
    ]


def watch(experiment: Experiment, steps: int) -> dict[str, list[Frame]]:
    """Replay a run and record the first whole visit of each agent after it, in one replication.

    The visits are not the same visitor's: agents that keep visitors longer have met fewer of them.

    Parameters
    ----------
    experiment : Experiment
        In the simulator Sessions.
    steps : int
        Steps of the run.

    Raises
    ------
    UserError
        Another simulator, an agent that diverged, or a replay that would take too long.
    """
    if experiment.simulator.kind != "sessions":
        raise UserError(
            f"simulator.kind is {experiment.simulator.kind}; visits are watched in sessions"
        )
    lanes: dict[str, Lane] = {}
    for label in watched(experiment):
        # all replications: agents are asked about the rounds of others, which have as many rows
        lane = lanes[label] = make_lane(experiment, experiment.labels.index(label))
        lane.agent.prepare()
        replay_to(lane, ROW, steps, label)
        if not lane.alive[ROW]:
            raise UserError(f"{label} diverged in this replication, so that it shows no visit")
    return {label: _visit(label, lanes) for label in lanes}


def _visit(label: str, lanes: dict[str, Lane]) -> list[Frame]:
    """Finish the visit in which the run ended, then record the next one."""
    frames: list[Frame] = []
    lane, inside = lanes[label], False
    simulator = lane.simulator
    assert isinstance(simulator, Sessions)
    while len(frames) < LONGEST:
        frame = _frame(label, lanes, simulator.round_at(lane.step)) if inside else None
        trace = lane.advance(1)
        assert trace.ended is not None
        ended = bool(trace.ended[0, ROW])
        if frame is not None:
            shown = int(trace.items[0, ROW, 0]) % N_KINDS
            earned = bool(trace.rewards[0, ROW] > 0)
            frames.append(
                frame._replace(shown=shown, earned=earned, others={**frame.others, label: shown})
            )
            if ended:
                break
        inside = inside or ended
    return frames


def _frame(label: str, lanes: dict[str, Lane], round: Round) -> Frame:
    """Record what is known before a step."""
    lane = lanes[label]
    simulator, agent = lane.simulator, lane.agent
    assert isinstance(simulator, Sessions)

    def of_kinds(values: FloatArray) -> FloatArray:
        return values[ROW, :N_KINDS].copy()

    return Frame(
        simulator.segment_names()[int(round.segments[ROW])],
        int(simulator.mood[ROW]),
        0,
        False,
        of_kinds(agent.values(round)) if isinstance(agent, PlanningAgent) else None,
        of_kinds(simulator.probabilities(round)),
        of_kinds(simulator.long_run(round)),
        {
            name: int(other.agent.scores(round)[ROW].argmax()) % N_KINDS
            for name, other in lanes.items()
            if name != label
        },
    )


def break_even(mine: History, other: History) -> int | None:
    """Return the mean number of visits after which cumulative clicks stay above those of another
    agent at equal numbers of visits; None if they are below at the end.

    Of the replications that finished in both.
    """
    rows = np.flatnonzero(mine.alive & other.alive)
    if not len(rows):
        return None
    most = int(min(h.sums["visits"][h.size - 1, rows].min() for h in (mine, other)))
    n = np.arange(1, 1 + most)
    curves = [
        np.mean(
            [
                np.interp(n, h.sums["visits"][: h.size, r], h.sums["clicks"][: h.size, r])
                for r in rows
            ],
            axis=0,
        )
        for h in (mine, other)
    ]
    behind = np.flatnonzero(curves[0] <= curves[1])
    if not most or (len(behind) and behind[-1] == most - 1):
        return None
    return int(n[behind[-1]]) + 1 if len(behind) else 1


def sentence(result: Run, label: str, base: str, family: int = 1) -> str:
    """State what an agent earns per visit beside another one, when it broke even, and the optimum
    that `solve` computes; the verdict holds together with those of ``family`` such sentences."""
    noun, names = result.experiment.simulator_class().reward_noun, result.experiment.names
    truth = solve(result.experiment.simulator)
    mine, other = result.histories[label], result.histories[base]
    values = METRICS["late_per_visit"].rows
    gaps = values(mine) - values(other)
    rows, gain = int(np.isfinite(gaps).sum()), metrics.estimate(gaps, family=family)
    when = break_even(mine, other)
    even = (
        "it did not break even: after equally many visits it is still behind"
        if when is None
        else f"it broke even after {count(when)} visits"
    )
    optimum = (
        f"the optimum is {truth.optimal:.2f}, the best next click over and over earns "
        f"{truth.short_sighted:.2f}."
    )
    beside = f"{words.mean(gain)} {noun} per visit"
    if not words.has_interval(gain):
        return (
            f"{names[label]} beside {names[base]} in the last fifth of the run: {beside} "
            f"({words.interval(gain)}, so the difference may be chance); {optimum}"
        )
    if not words.excludes_zero(gain):
        return (
            f"{names[label]} and {names[base]} do not differ significantly in the last fifth of "
            f"the run: {beside} ({words.interval(gain)}; "
            f"{count_of(rows, 'replications')}); {optimum}"
        )
    more = gain if gain.mean >= 0 else -gain
    return (
        f"{names[label]} earns {words.mean(more)} {'more' if gain.mean >= 0 else 'fewer'} {noun} "
        f"per visit than {names[base]} in the last fifth of the run "
        f"({words.interval(more)}); {f'{even}; ' * (gain.mean > 0)}{optimum}"
    )


def per_visit(result: Run) -> list[str]:
    """State what each agent earns per visit beside the first that learns and does not plan for the
    visit: those that plan first, and then the best one first.

    Agents that know the truth are left out, unless fewer than two are left without them; so are
    those that have reached another step. Empty without two agents.
    """
    experiment = result.experiment
    if not isinstance(experiment.simulator, Sessions.Params):
        return []
    rows = METRICS["late_per_visit"].rows
    late = {label: rows(history) for label, history in result.histories.items()}
    # no visit has ended, or all replications diverged
    known = [label for label in experiment.labels if np.isfinite(late.get(label, np.nan)).any()]
    fair = [label for label in known if label in watched(experiment)]
    known = fair if len(fair) > 1 else known
    classes = {label: experiment.agent_class(i) for i, label in enumerate(experiment.labels)}
    short_sighted = [label for label in known if "visits" not in classes[label].needs]
    bandits = [label for label in short_sighted if classes[label].learns]
    base = next(iter(bandits or short_sighted or known), "")
    steps = {label: history.step for label, history in result.histories.items()}
    others = [label for label in known if label != base and steps[label] == steps[base]]
    others.sort(key=lambda label: (label in short_sighted, -np.nanmean(late[label])))
    return [sentence(result, label, base, len(others)) for label in others]


def treats(frames: Sequence[Frame]) -> float:
    """Return the share of treats among the products shown in a visit."""
    return float(np.mean([frame.shown % 2 for frame in frames]))


def mood_figure(experiment: Experiment, visits: dict[str, list[Frame]]) -> Spec:
    """Draw the mood before each step of the visits; filled points are treats."""
    looks, data = styles(experiment), []
    for label, frames in visits.items():
        x, y = np.arange(1, 1 + len(frames)), [frame.mood for frame in frames]
        color = looks[label].color
        data.append(line(label, x, y, color, looks[label].dash))
        treat = np.array([frame.shown % 2 for frame in frames], np.bool_)
        data.append(
            points(f"{label}, treats", x[treat], np.array(y)[treat], color, 9, showlegend=False)
        )
    return drawing(
        data,
        "Mood",
        "The mood of the visitor before each step. Points are steps at which a treat was shown. "
        "The lower the mood, the sooner the visitor leaves.",
        x=axis("step of the visit"),
        y=axis("mood", range=[-0.2, MOODS - 0.8], tickvals=list(range(MOODS))),
        legend=True,
    )


def value_figure(experiment: Experiment, label: str, frame: Frame, names: Sequence[str]) -> Spec:
    """Draw the values of the kinds of products at one step: the expected reward, Q*, and Q."""
    look = styles(experiment)[label]
    data = [
        points("this step", frame.immediate, names, "#8A8A8A", 9, "diamond"),
        points("Q*, rest of the visit", frame.optimal, names, "#009E73", 10, "line-ns-open"),
    ]
    if frame.learned is not None:
        data.append(points(f"Q of {label}", frame.learned, names, look.color, 8))
    return drawing(
        data,
        "Values of what can be shown",
        "Expected reward of this step, Q* (the rest of the visit under the best policy), and the Q "
        "that the agent has learned, which is discounted.",
        x=axis(f"expected {experiment.simulator_class().reward_noun}", rangemode="tozero"),
        y={"automargin": True, "autorange": "reversed", "dtick": 1},
        legend=True,
    )
