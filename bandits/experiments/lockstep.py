"""Run the agents of an experiment in lockstep, so that their curves grow together."""

from __future__ import annotations

import time
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from threadpoolctl import threadpool_limits

from bandits.agents import AgentParams
from bandits.base.params import structural_key
from bandits.base.processes import ChildTask, Line
from bandits.base.randomness import Streams
from bandits.base.types import FloatArray
from bandits.simulators import Simulator

from . import checks
from .experiment import Experiment
from .history import History
from .lane import Lane, Trace, build_lane
from .snapshots import (
    BeliefCheck,
    Calibration,
    ExplorationCheck,
    SegmentCheck,
    Spectrum,
    snapshot_steps,
)

# steps per chunk
CHUNK = 500
# every agent of an experiment may be trained at once
# an answer is the state of a trained agent
TRAININGS = Line("trainings", waiting=0, at_once=64, answer=2**33)


def make_lane(
    experiment: Experiment,
    agent: int,
    rows: Sequence[int] | None = None,
    params: Sequence[AgentParams] | None = None,
    simulator: Simulator | None = None,
) -> Lane:
    """Build the lane of one agent: simulator and agent for the given rows.

    Parameters
    ----------
    experiment : Experiment
    agent : int
        Position in the experiment.
    rows : sequence of int, optional
        Replication number of each row; all of them by default.
    params : sequence of AgentParams, optional
        The agent's parameters row by row (the points of a sweep), equal in structure.
    simulator : Simulator, optional
        That of another agent's lane with the same rows, which computes each step once for both; a
        new one by default, and where choices move its state.

    Raises
    ------
    ValueError
        The rows have different structural parameters.
    """
    rows = tuple(range(experiment.replications) if rows is None else rows)
    if params is None:
        params = [experiment.agents[agent]] * len(rows)
    elif len({structural_key(p) for p in params}) > 1:
        raise ValueError("rows of one lane must agree in their structural parameters")
    if simulator is None or simulator.state:
        simulator = experiment.simulator_class()(
            experiment.simulator, Streams(experiment.seed, rows)
        )
    return build_lane(experiment.agent_class(agent), params, simulator)


@dataclass
class _LaneRunner:
    """A lane, its history, and the offline training that it may wait for.

    ``agent`` is its position.
    """

    agent: int
    lane: Lane
    history: History
    bases: list[FloatArray] | None
    training: ChildTask | None = None
    prepared: bool = False
    snapshots: list[int] = field(default_factory=list)

    def advance(self, to: int) -> Iterator[Trace]:
        """Advance to step ``to``, with snapshots on the way."""
        while self.lane.step < to:
            began = time.process_time()
            stop = min([to, *(s for s in self.snapshots if s > self.lane.step)])
            trace = self.lane.advance(stop - self.lane.step)
            self.history.extend(trace)
            if stop in self.snapshots:
                self._take_snapshot(stop)
            self.history.seconds = self.lane.seconds
            self.history.processor_seconds += time.process_time() - began
            yield trace

    def restore(self, state: dict[str, Any]) -> None:
        """Restore lane and history from the saved state of a run.

        A state without this agent changes nothing.
        """
        if lane := _part(state, f"{self.agent}.lane."):
            self.lane.load_state_dict(lane)
            self.history.load_state_dict(_part(state, f"{self.agent}.history."))

    def stop_training(self) -> None:
        """Stop the offline training."""
        if self.training is not None:
            self.training.cancel()

    def _take_snapshot(self, step: int) -> None:
        """Record spectrum, calibration, belief check and note, where the agent has them."""
        self.history.note = self.lane.agent.note()
        eigenvalues = None if self.bases is None else self.lane.agent.spectrum(self.bases)
        if eigenvalues is not None:
            self.history.spectra.append(Spectrum(step, eigenvalues))
        rounds = checks.probe_rounds(self.lane)
        inside, values = checks.compare(rounds)
        if inside is not None:
            self.history.calibrations.append(Calibration(step, inside))
        if values is not None:
            self.history.belief_checks.append(BeliefCheck(step, values))
        explored, by_segment = checks.compare_exploration(
            self.lane, rounds, self.history.n_segments
        )
        self.history.exploration_checks.append(ExplorationCheck(step, explored))
        if self.history.segment_sums is not None:
            self.history.segment_checks.append(SegmentCheck(step, by_segment))


class Lockstep:
    """Run all agents of an experiment, or some of them, chunk by chunk.

    Parameters
    ----------
    experiment : Experiment
    agents : sequence of int, optional
        Positions of the agents; all of them by default. An agent's numbers do not depend on the
        others.
    background : bool
        Train agents that need offline training in child processes while the others start; they
        catch up afterwards. Otherwise they are trained before the start.
    """

    def __init__(
        self,
        experiment: Experiment,
        agents: Sequence[int] | None = None,
        *,
        background: bool = False,
    ) -> None:
        self.experiment = experiment
        self.step = 0
        self._background = background
        self._spans: dict[bool, list[FloatArray]] = {}
        self.runners: dict[str, _LaneRunner] = {}
        for i in range(len(experiment.agents)) if agents is None else sorted(agents):
            self.runners[experiment.labels[i]] = self._make_runner(i)

    def _make_runner(self, agent: int) -> _LaneRunner:
        experiment, spans = self.experiment, self._spans
        cls, params = experiment.agent_class(agent), experiment.agents[agent]
        shared = self.simulator if self.runners else None
        lane = make_lane(experiment, agent, simulator=shared)
        per_arm = cls.spans_arms(params)
        if per_arm is not None and per_arm not in spans:
            spans[per_arm] = lane.simulator.bases(per_arm)
        bases = None if per_arm is None else spans[per_arm]
        history = experiment.empty_history()
        history.watch(lane.simulator.launched())
        runner = _LaneRunner(
            agent, lane, history, bases, snapshots=snapshot_steps(experiment.steps)
        )
        if self._background and "log" in cls.requires(params) and not lane.agent.is_trained():
            runner.training = ChildTask(TRAININGS, train, experiment, agent)
        return runner

    def add(self, agent: int, state: dict[str, Any]) -> None:
        """Add an agent, from its part of a saved state or, without one, from its beginning.

        The others wait for it.
        """
        runner = self.runners[self.experiment.labels[agent]] = self._make_runner(agent)
        runner.restore(state)
        self.step = min(self.step, runner.lane.step)

    def remove(self, agent: int) -> None:
        """Remove an agent."""
        runner = self.runners.pop(self.experiment.labels[agent])
        runner.stop_training()

    @property
    def done(self) -> bool:
        """Every agent has reached the last step."""
        return all(map(self.finished, self.runners))

    def finished(self, label: str) -> bool:
        """Return whether an agent has reached the last step."""
        return self.runners[label].lane.step >= self.experiment.steps

    @property
    def histories(self) -> dict[str, History]:
        """The history of each agent so far, by label."""
        return {label: r.history for label, r in self.runners.items()}

    @property
    def simulator(self) -> Simulator:
        """The simulator of the first agent: that of all, unless choices move its state."""
        return next(iter(self.runners.values())).lane.simulator

    def advance(self, n: int = CHUNK) -> Iterator[tuple[str, Trace]]:
        """Advance all agents by ``n`` steps; agents in training wait and catch up later."""
        if all(
            self.waiting(label) or r.lane.step >= self.experiment.steps
            for label, r in self.runners.items()
        ):
            # only agents in training are left
            time.sleep(0.05)
        self.step = min(self.step + n, self.experiment.steps)
        ready: list[tuple[str, _LaneRunner]] = []
        for label, runner in self.runners.items():
            if runner.training is not None and runner.training.active:
                continue
            runner.training = None
            if not runner.prepared:
                with threadpool_limits(1):
                    runner.lane.agent.prepare()
                    if (trained := runner.lane.agent.offline_training) is not None:
                        runner.history.training = trained
                    _compile(self.experiment, runner.agent)
                runner.prepared = True
            ready.append((label, runner))
        # one BLAS thread: bit-identical whatever else runs
        with threadpool_limits(1):
            for label, runner in ready:
                # agents that are behind catch up a few chunks at a time, so that all curves keep
                # growing
                for trace in runner.advance(min(self.step, runner.lane.step + 8 * n)):
                    yield label, trace

    def state_dict(
        self, agents: Container[int] | None = None, *, views: bool = False
    ) -> dict[str, Any]:
        """Return the state of the agents as arrays and plain values, from which a run continues
        bit-identically; see `Lane.state_dict`.
        """
        state: dict[str, Any] = {"step": self.step}
        for runner in self.runners.values():
            if agents is None or runner.agent in agents:
                parts = {
                    "lane": runner.lane.state_dict(views=views),
                    "history": runner.history.state_dict(),
                }
                state |= {
                    f"{runner.agent}.{p}.{name}": v
                    for p, part in parts.items()
                    for name, v in part.items()
                }
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a saved state of this experiment, or of the same one with fewer steps.

        Agents may have reached different steps; the others wait for the slowest one.
        """
        for runner in self.runners.values():
            runner.restore(state)
        self.step = min((r.lane.step for r in self.runners.values()), default=0)

    @property
    def seconds(self) -> float:
        """Seconds that the agents have taken together, without what is done between chunks."""
        return sum(runner.lane.seconds for runner in self.runners.values())

    def waiting(self, label: str) -> bool:
        """Return whether an agent is still in offline training."""
        return self.runners[label].training is not None

    def close(self) -> None:
        """Stop all offline training."""
        for runner in self.runners.values():
            runner.stop_training()


def load_histories(
    experiment: Experiment, state: dict[str, Any] | None = None
) -> dict[str, History]:
    """Create the histories by label, empty or from a saved state, without building simulator and
    agents.
    """
    found = {}
    for i, label in enumerate(experiment.labels):
        found[label] = experiment.empty_history()
        if state and (part := _part(state, f"{i}.history.")):
            found[label].load_state_dict(part)
    return found


def state_for(experiment: Experiment, other: Experiment, state: dict[str, Any]) -> dict[str, Any]:
    """Return the part of a saved state that holds in another experiment: the agents that are the
    same in both.

    Agents do not influence each other, so those that are not changed need not be computed again.
    Empty unless the experiments are equal but for their agents and names."""
    if experiment.model_dump(exclude={"agents"}) != other.model_dump(exclude={"agents"}):
        return {}
    left = {i: agent.model_copy(update={"label": None}) for i, agent in enumerate(other.agents)}
    found: dict[str, Any] = {}
    for i, agent in enumerate(experiment.agents):
        unnamed = agent.model_copy(update={"label": None})
        same = next((j for j, each in left.items() if each == unnamed), None)
        if same is not None and f"{same}.lane.step" in state:
            del left[same]
            found |= {f"{i}.{name}": value for name, value in _part(state, f"{same}.").items()}
    return {**found, "step": state["step"]} if found else {}


def _part(state: dict[str, Any], prefix: str) -> dict[str, Any]:
    return {k.removeprefix(prefix): v for k, v in state.items() if k.startswith(prefix)}


def train(experiment: Experiment, agent: int) -> None:
    """Train one agent offline; the trained network is found in the file cache."""
    with threadpool_limits(1):
        make_lane(experiment, agent).agent.prepare()


def _compile(experiment: Experiment, agent: int) -> None:
    """Compile or load the kernels of a lane by two steps of a separate row, outside the timing."""
    # such an agent would be trained again, and compiles little
    if "log" not in experiment.agent_class(agent).requires(experiment.agents[agent]):
        make_lane(experiment, agent, rows=[0]).advance(2)


def simulate(experiment: Experiment, *, chunk: int = CHUNK) -> Iterator[tuple[str, Trace]]:
    """Run an experiment and yield its steps as they happen: pairs of label and `Trace`."""
    lockstep = Lockstep(experiment)
    while not lockstep.done:
        yield from lockstep.advance(chunk)


def run_to_end(
    lockstep: Lockstep, progress: Callable[[int, int], Any] | None = None, chunk: int = CHUNK
) -> None:
    """Advance all agents to the last step.

    ``progress(step, steps)`` is called after every chunk.
    """
    while not lockstep.done:
        for _ in lockstep.advance(chunk):
            pass
        if progress is not None:
            progress(lockstep.step, lockstep.experiment.steps)
