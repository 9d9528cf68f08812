"""Recompute one agent of an experiment at a time, fast enough to follow a slider."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from typing import Any

from threadpoolctl import ThreadpoolController

from bandits.base.errors import UserError
from bandits.base.formatting import short
from bandits.base.params import Params, declaration, schemas
from bandits.base.randomness import KeptStreams
from bandits.base.recent import Recent
from bandits.base.types import FloatArray
from bandits.experiments.experiment import Experiment, read
from bandits.experiments.lane import Lane
from bandits.experiments.lockstep import make_lane
from bandits.experiments.snapshots import Spectrum
from bandits.results.result import Result
from bandits.simulators import Simulator

# numbers of replications whose simulators are kept: while a slider moves, and at rest
SIZES = 2
# steps at a time
PART = 5000
# steps from which the time of an agent is estimated
PROBE = 64


class Preview:
    """The agents of an experiment with other parameters, one at a time.

    What does not depend on an agent's parameters is prepared once: the simulator, its users, all
    random numbers. The numbers are those of `run`, to the same bits, for the same parameters, steps
    and replications; of the snapshots, only the last spectrum is taken.

    Parameters
    ----------
    experiment : Experiment

    Examples
    --------
    >>> from bandits import Experiment, Preview
    >>> agents = [{"kind": "linucb", "alpha": 1.5}, {"kind": "random"}]
    >>> preview = Preview(Experiment(agents=agents, steps=500, replications=4))
    >>> list(preview.update("LinUCB", alpha=0.3).histories)
    ['LinUCB']
    """

    def __init__(self, experiment: Experiment) -> None:
        self.experiment = experiment
        self._simulators: Recent[int, _KeptSimulator] = Recent(SIZES)

    def update(
        self,
        label: str,
        *,
        steps: int | None = None,
        replications: int | None = None,
        **params: Any,
    ) -> Result:
        """Run one agent.

        Parameters
        ----------
        label : str
            The agent, by its name in the experiment.
        steps, replications : int, optional
            Those of the experiment by default.
        **params
            Its parameters that differ from the experiment, by name.

        Returns
        -------
        Result
            Of an experiment with these parameters; it has the history of this agent alone.

        Raises
        ------
        UserError
            No agent has this label, a value is out of range, or the agent must be trained before
            its first step.
        """
        return self.run(
            self.changed(label, steps=steps, replications=replications, **params)[1], label
        )

    def run(self, experiment: Experiment, label: str) -> Result:
        """Run one agent of any experiment with the same simulator and seed.

        Raises
        ------
        UserError
            The simulator or the seed differs, no agent has this label, or the agent must be trained
            before its first step.
        """
        agent, kept = self._prepared(experiment, label)
        # as in `run`: bits depend on the number of threads
        with kept.threads.limit(limits=1):
            lane = kept.lane(experiment, agent)
            history = experiment.empty_history()
            history.watch(lane.simulator.launched())
            # in parts: a trace of every step can be large
            while lane.step < experiment.steps:
                history.extend(lane.advance(min(PART, experiment.steps - lane.step)))
            history.note, history.seconds = lane.agent.note(), lane.seconds
            history.training = lane.agent.offline_training
            per_arm = experiment.agent_class(agent).spans_arms(experiment.agents[agent])
            eigenvalues = None if per_arm is None else lane.agent.spectrum(kept.bases(per_arm))
            if eigenvalues is not None:
                history.spectra.append(Spectrum(experiment.steps, eigenvalues))
        return Result(experiment, {label: history})

    def seconds(
        self,
        label: str,
        *,
        steps: int | None = None,
        replications: int | None = None,
        **params: Any,
    ) -> float:
        """Estimate the time that `update` takes, from its first steps.

        Raises
        ------
        UserError
            As `update`.
        """
        return self.seconds_of(
            self.changed(label, steps=steps, replications=replications, **params)[1], label
        )

    def seconds_of(self, experiment: Experiment, label: str) -> float:
        """Estimate the time that `run` takes, from its first steps.

        Raises
        ------
        UserError
            As `run`.
        """
        agent, kept = self._prepared(experiment, label)
        with kept.threads.limit(limits=1):
            # compiled, and the random numbers drawn
            kept.lane(experiment, agent).advance(2)
            lane, began = kept.lane(experiment, agent), time.perf_counter()
            lane.advance(min(PROBE, experiment.steps))
            return (time.perf_counter() - began) * experiment.steps / lane.step

    def changed(
        self,
        label: str,
        *,
        steps: int | None = None,
        replications: int | None = None,
        **params: Any,
    ) -> tuple[int, Experiment]:
        """Return the position of an agent, and the experiment with other parameters of that agent.

        Raises
        ------
        UserError
            As `update`.
        """
        agent, data = _position(self.experiment, label), self.experiment.model_dump(mode="json")
        data["agents"][agent] |= {
            **params,
            "label": label if data["agents"][agent]["label"] else None,
        }
        given = {"steps": steps, "replications": replications}
        return agent, read(
            {**data, **{name: value for name, value in given.items() if value is not None}}
        )

    def interact(self, label: str, name: str) -> Any:
        """Show a slider of one parameter in a notebook, with the click-through rate below it.

        Raises
        ------
        UserError
            The package ipywidgets is not installed, or the agent has no such number.
        """
        agent, experiment = self.changed(label)
        return slider(
            experiment.agents[agent],
            name,
            lambda value: self.update(label, **{name: value}).plot("ctr"),
        )

    def _prepared(self, experiment: Experiment, label: str) -> tuple[int, _KeptSimulator]:
        """Return the position of an agent, and the simulator of the experiment's replications."""
        mine, rows = self.experiment, experiment.replications
        if (experiment.simulator, experiment.seed) != (mine.simulator, mine.seed):
            raise UserError("a preview can only run experiments with its own simulator and seed")
        agent = _position(experiment, label)
        return agent, self._simulators.use(rows, lambda: _KeptSimulator(experiment))


def _position(experiment: Experiment, label: str) -> int:
    if label not in experiment.labels:
        raise UserError(
            f"there is no agent {short(label)}; the agents are {', '.join(experiment.labels)}"
        )
    return experiment.labels.index(label)


class _KeptSimulator:
    """The simulator of R rows with its random numbers, kept for any number of passes."""

    def __init__(self, experiment: Experiment) -> None:
        streams = KeptStreams(experiment.seed, range(experiment.replications))
        self.simulator: Simulator = experiment.simulator_class()(experiment.simulator, streams)
        self._bases: dict[bool, list[FloatArray]] = {}
        self._threads: tuple[bool, ThreadpoolController] | None = None

    @property
    def threads(self) -> ThreadpoolController:
        """Controls the threads of the numerical libraries.

        Made again once torch has been imported.
        """
        torch = "torch" in sys.modules
        if self._threads is None or self._threads[0] != torch:
            self._threads = torch, ThreadpoolController()
        return self._threads[1]

    def lane(self, experiment: Experiment, agent: int) -> Lane:
        """Build an agent, at its first step."""
        lane = make_lane(experiment, agent, simulator=self.simulator)
        required = experiment.agent_class(agent).requires(experiment.agents[agent])
        if "log" in required and not lane.agent.is_trained():
            raise UserError(
                f"{experiment.labels[agent]} is trained before its first step; run the experiment "
                "instead"
            )
        lane.agent.prepare()
        return lane

    def bases(self, per_arm: bool) -> list[FloatArray]:
        if per_arm not in self._bases:
            self._bases[per_arm] = self.simulator.bases(per_arm)
        return self._bases[per_arm]


def slider(params: Params, name: str, draw: Callable[[Any], Any]) -> Any:
    """Make a slider of a parameter, with what ``draw`` returns for a value below it.

    See `Preview.interact`.
    """
    field, value = type(params).model_fields.get(name), getattr(params, name, None)
    if field is None or isinstance(value, bool) or not isinstance(value, (int, float)):
        raise UserError(f"{short(name)} is not a number that the agent has")
    try:
        import ipywidgets
        from IPython.display import display
    except ImportError:
        raise UserError("interact needs the package ipywidgets: pip install ipywidgets") from None

    def show(value: Any) -> None:
        display(draw(value))  # type: ignore[no-untyped-call]

    low, high = (
        declaration(field)["sweep"]
        or declaration(field)["typical"]
        or _limits(type(params), name, value)
    )
    common: dict[str, Any] = {"value": value, "description": name, "continuous_update": True}
    if declaration(field)["log"] and min(low, value) > 0:
        ends = {"min": math.log10(min(low, value)), "max": math.log10(max(high, value))}
        slider = ipywidgets.FloatLogSlider(**common, **ends, step=0.02)
    else:
        whole = isinstance(value, int)
        kind = ipywidgets.IntSlider if whole else ipywidgets.FloatSlider
        step = 1 if whole else (high - low) / 200
        slider = kind(**common, min=min(low, value), max=max(high, value), step=step)
    return ipywidgets.interactive(show, value=slider)


def _limits(model: type[Params], name: str, value: float) -> tuple[float, float]:
    """Return the bounds of a number; four times its value where it has none."""
    schema = schemas(model)[name]
    return schema.get("minimum", 0), schema.get("maximum", 4 * value or 1)
