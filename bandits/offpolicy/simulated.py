"""What is known of a log of a simulated run: the true value of a target, and agents that learn from
the log.

The simulator is a pure function of the step, so that every round of the log can be made again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from bandits.base.errors import UserError
from bandits.base.formatting import short
from bandits.base.types import Feedback, FloatArray, IntArray, Round
from bandits.experiments.experiment import Experiment, read
from bandits.experiments.lane import Lane
from bandits.experiments.lockstep import make_lane
from bandits.simulators.base import Simulator
from bandits.simulators.session_values import fixed_value

from .intervals import Interval, normal
from .log import DecisionLog
from .recorded_columns import by_item
from .recording import slots
from .targets import Always, Matrix, Random, Target

# of the steps, from which an agent learns
SHARE = 0.5
# decisions times actions
MAX_CELLS = 200_000_000


def true_value(log: DecisionLog, target: Target) -> Interval:
    """Compute the expected reward of a target policy for the users of the log, from the simulator's
    truth.

    Its interval is that of the mean over users, of whom the log has a sample. Of slates it is the
    mean over positions, and known for uniformly random choice only: what a position earns depends
    on the whole slate.

    Raises
    ------
    UserError
        The log is not one of a simulated run, or of slates and the target is not uniformly random.
    """
    experiment = experiment_of(log)
    lane = _lane(log, experiment.model_dump(mode="json", by_alias=True)["agents"][0])
    values = np.empty(len(log))
    if (S := slots(experiment)) > 1:
        if not isinstance(target, Random):
            raise UserError(
                "what an item earns depends on the whole slate; to see how near estimates on this "
                "log come to the truth, choose the target uniformly random choice"
            )
        # any slate: the value of a random one is the same
        first = np.zeros((lane.rows, S), np.int64) + np.arange(S)
        for round, rows, index in rounds_of(log, lane.simulator):
            response = lane.simulator.respond(round, first, lane.simulator.uniforms.at(round.step))
            values[index] = response[1].random_value[rows] / S
        return normal(values, groups=log.groups)
    for round, rows, index in rounds_of(log, lane.simulator):
        truth = by_item(round, lane.simulator.probabilities(round), log.n_actions)
        values[index] = np.einsum("mk,mk->m", target.probabilities(log, index), truth[rows])
    return normal(values)


def value_of_visits(log: DecisionLog, target: Target) -> Interval:
    """Compute the expected reward per visit of a target that chooses alike in every state, by value
    iteration: random, always one item, or one vector of probabilities.

    Raises
    ------
    UserError
        The simulator of the log is not here, or the target depends on more than the item.
    """
    experiment = read(json.loads(log.experiment))
    alike = isinstance(target, Random | Always) or (
        isinstance(target, Matrix) and target.matrix.ndim == 1
    )
    if experiment.simulator.kind != "sessions":
        raise UserError(
            f"{experiment.simulator_class().title} has visits, and no formula for what one earns"
        )
    if not alike:
        raise UserError(
            "what a visit earns is known for targets that choose alike in every state; to see how "
            "near estimates on this log come to the truth, choose the target uniformly random "
            "choice or always one item"
        )
    value = fixed_value(experiment.simulator, target.probabilities(log, slice(0, 1))[0])
    return Interval(value, value, value, 0.0)


def learned_agent(log: DecisionLog, agent: str) -> tuple[DecisionLog, Matrix]:
    """Let an agent learn from the first half of a log, freeze it, and return the other half with
    its probabilities.

    Parameters
    ----------
    log : DecisionLog
        Of a simulated run.
    agent : str
        Parameters of the agent as JSON, with its ``kind``.

    Raises
    ------
    UserError
        The log is not one of a simulated run, the agent is not possible there, or the log is too
        large.
    """
    try:
        params: dict[str, Any] = json.loads(agent)
    except ValueError as error:
        raise UserError(f"target: {short(agent)} is not JSON ({error})") from error
    check_single(experiment_of(log))
    lane = _lane(log, params)
    first, rest = split(log)
    check_cells(rest)
    found: FloatArray = np.empty((len(rest), log.n_actions))
    with threadpool_limits(1):
        lane.agent.prepare()
        for round, rows, index in rounds_of(first, lane.simulator):
            lane.agent.learn(round, *_logged(first, round, rows, index))
        for round, rows, index in rounds_of(rest, lane.simulator):
            found[index] = by_item(round, lane.agent.probabilities(round), log.n_actions)[rows]
    return rest, Matrix(found, str(params.get("label") or lane.agent.title))


def split(log: DecisionLog, at_most: int | None = None) -> tuple[DecisionLog, DecisionLog]:
    """Divide a log after the first half of its steps, or after ``at_most`` steps of its run if that
    is earlier.

    Raises
    ------
    UserError
        One of the parts would be empty.
    """
    steps = np.asarray(log.steps)
    last = int(np.quantile(steps, SHARE))
    if at_most is not None:
        last = min(last, at_most - 1)
    if not (steps > last).any() or not (steps <= last).any():
        raise UserError(
            "target: an agent learns from the first steps of the log; this log has too few steps"
        )
    return log.select(steps <= last), log.select(steps > last)


def check_cells(log: DecisionLog) -> None:
    """Check that an agent can be evaluated on a log: a probability is computed for each decision
    and action.

    Raises
    ------
    UserError
        There are too many.
    """
    cells = len(log) * log.n_actions
    if cells > MAX_CELLS:
        raise UserError(
            f"target: an agent may be evaluated on at most {MAX_CELLS:,} decisions times actions; "
            f"this log has {cells:,}"
        )


def _logged(
    log: DecisionLog, round: Round, rows: IntArray, index: IntArray
) -> tuple[IntArray, Feedback]:
    """Return what was shown in a round, int64 (R, 1), and the response.

    Rows that the log lacks were not examined.
    """
    R = len(round.users)
    shown, rewards, examined = (
        round.items[:, 0].copy(),
        np.zeros((R, 1)),
        np.zeros((R, 1), np.bool_),
    )
    shown[rows], rewards[rows, 0], examined[rows, 0] = log.actions[index], log.rewards[index], True
    return (round.items == shown[:, None]).argmax(axis=1)[:, None], Feedback(rewards, examined)


def known_experiment(log: DecisionLog) -> Experiment | None:
    """Return the experiment that made a log; None without one, or where its simulator, agent or
    data set is not here.
    """
    try:
        return read(json.loads(log.experiment)) if log.experiment else None
    except UserError:
        return None


def experiment_of(log: DecisionLog) -> Experiment:
    """Return the experiment of a log.

    Raises
    ------
    UserError
        The log is not one of a simulated run.
    """
    if not log.experiment or log.rows is None or log.steps is None:
        raise UserError(
            "the log is not one of a simulated run: neither the truth nor its rounds are known"
        )
    experiment = read(json.loads(log.experiment))
    if experiment.offers("visits"):
        raise UserError(
            f"the log is one of {experiment.simulator_class().title}, whose rounds depend on what "
            "was shown before; true values and agents in its rounds are not possible"
        )
    for name, values, end in (
        ("row", log.rows, experiment.replications),
        ("step", log.steps, experiment.steps),
    ):
        wrong = (values < 0) | (values >= end)
        if wrong.any():
            i = int(wrong.argmax())
            raise UserError(
                f"{log.places[i]}, {name}: must be between 0 and {end - 1}, as in the experiment "
                f"of the log; got {values[i]}"
            )
    return experiment


def check_single(experiment: Experiment) -> None:
    """Check that one item is shown at a time, so that an agent can learn from a log or be replayed
    on it.

    Raises
    ------
    UserError
        The simulator shows slates.
    """
    if slots(experiment) > 1:
        raise UserError(
            "target: an agent requires a log of a simulator that shows one item at a time; on a "
            "log of slates random, always:ITEM, column:NAME and greedy:MODEL are possible, "
            "position by position"
        )


def _lane(log: DecisionLog, agent: dict[str, Any]) -> Lane:
    """Build the lane of an agent in the simulator of the log, with the replications of the log."""
    experiment = read(
        {**experiment_of(log).model_dump(mode="json", by_alias=True), "agents": [agent]}
    )
    return make_lane(experiment, 0, rows=replications_of(log))


def replications_of(log: DecisionLog) -> list[int]:
    """Return the replications that a log of a simulated run holds, in ascending order."""
    found: list[int] = np.unique(np.asarray(log.rows)).tolist()
    return found


def rounds_of(log: DecisionLog, simulator: Simulator) -> Iterator[tuple[Round, IntArray, IntArray]]:
    """Yield each round of a log, with the rows (m,) of the simulator and the indices (m,) of its
    decisions.
    """
    place = np.searchsorted(replications_of(log), np.asarray(log.rows))
    order = np.argsort(np.asarray(log.steps), kind="stable")
    steps, first = np.unique(np.asarray(log.steps)[order], return_index=True)
    for step, index in zip(steps.tolist(), np.split(order, first[1:]), strict=True):
        yield simulator.round_at(step), place[index], index
