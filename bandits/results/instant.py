"""What a slider shows while it moves: one agent with another value, and the paired difference from where it was."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Mapping
from threading import Lock, Semaphore
from typing import Any, NamedTuple

from bandits.base.errors import UserError
from bandits.base.formatting import count, count_of, duration, size
from bandits.base.params import Params, metadata, structural_key
from bandits.experiments.experiment import Experiment, read

from . import paired_tests
from .metrics import Estimate
from .preview import Preview
from .result import Result
from .text import interval, plain_value

MOVING = 40_000  # decisions while a slider moves ...
RESTING = 400_000  # ... and while it rests: of most experiments, the whole run
FEWEST = 4  # replications, if the experiment has as many: fewer give no useful interval
MEMORY = 512 * 2**20  # bytes that a previewed experiment may need
SLOWEST = 0.5  # expected seconds of an answer while a slider moves ...
LONGEST_REST = 1.0  # ... and while it rests
AT_ONCE = 2  # computations; further threads wait
KEPT = 6  # simulators with their random numbers
STARTS = 16  # results at the value where a slider was, per simulator


class Answer(NamedTuple):
    """One agent with another value.

    Attributes
    ----------
    result : Result
        Of this agent alone, perhaps with fewer steps and replications.
    gain : Estimate
        Reward beyond that at the value where the slider was, over the same users and random numbers.
    sentence : str
        The same in words.
    short : str
        The same in a few characters.
    whole : bool
        Whether it has all steps and replications of the experiment.
    """

    result: Result
    gain: Estimate
    sentence: str
    short: str
    whole: bool


def shortened(experiment: Experiment, decisions: int) -> Experiment:
    """Return an experiment with at most this many decisions per agent: fewer replications first, then fewer steps."""
    rows = min(experiment.replications, max(FEWEST, decisions // experiment.steps))
    steps = min(experiment.steps, max(1, decisions // rows))
    return experiment.model_copy(update={"replications": rows, "steps": steps})


def too_slow(experiment: Experiment, label: str, seconds_per_decision: float | None = None) -> str:
    """State in one sentence why an agent cannot follow a slider; empty if it can.

    Parameters
    ----------
    seconds_per_decision : float, optional
        Measured in a run of this agent.
    """
    agent = experiment.labels.index(label)
    if experiment.offers("replay"):
        return "Replays a log: differences are not paired, so no slider is followed. Release it, then press Run."
    if experiment.agent_class(agent).representation(experiment.agents[agent]) == "network":
        return "Trains a network: too slow to follow the slider. Release it, then press Run."
    if (need := shortened(experiment, RESTING).memory()) > MEMORY:
        return f"Needs {size(need)} of memory, more than the {size(MEMORY)} of a preview. Release it, then press Run."
    moving = shortened(experiment, MOVING)
    seconds = (seconds_per_decision or 0.0) * moving.steps * moving.replications
    if seconds > SLOWEST:
        return f"Takes about {duration(seconds)}: too slow to follow the slider. Release it, then press Run."
    return ""


def can_follow(model: type[Params], name: str) -> bool:
    """Return whether a parameter may follow a slider: a number that does not decide how large the agent is."""
    field = model.model_fields.get(name)
    return field is not None and field.annotation is float and not metadata(field, "structural")


class Instant:
    """Answers for any number of visitors; what experiments with the same simulator and seed share is prepared once."""

    def __init__(self) -> None:
        self._lock, self._computing = Lock(), Semaphore(AT_ONCE)
        self._worlds: OrderedDict[tuple[str, int], _World] = OrderedDict()

    def answer(self, experiment: Experiment, label: str, params: Mapping[str, Any], *, rest: bool = False) -> Answer:
        """Run one agent with other parameters.

        Parameters
        ----------
        params : mapping
            Parameters that differ from the experiment, by name.
        rest : bool
            The slider rests: more steps and replications.

        Raises
        ------
        UserError
            No agent has this label, a value is out of range, or the agent is too slow.
        """
        if label not in experiment.labels:
            raise UserError("there is no agent of that name")
        if reason := too_slow(experiment, label):
            raise UserError(reason)
        world = self._world(experiment)
        start = world.affordable(experiment, label, rest=rest)
        data = start.model_dump(mode="json")
        agent = data["agents"][experiment.labels.index(label)]
        names = list(params)
        model = type(experiment.agents[experiment.labels.index(label)])
        if not all(can_follow(model, name) for name in names):
            raise UserError("the agent has no such parameter, or it decides the agent's size")
        agent |= params
        changed = read(data)
        with world.lock, self._computing:
            before, after = world.start(start, label), world.preview.run(changed, label)
        gain = paired_tests.compare(after.histories[label], before.histories[label]).difference
        whole = (start.steps, start.replications) == (experiment.steps, experiment.replications)
        was = experiment.agents[experiment.labels.index(label)]
        values = {name.replace("_", " "): plain_value(getattr(was, name)) for name in names}
        origin = ", ".join(f"{name} {value}" for name, value in values.items())
        sentence = _sentence(gain, origin, start, whole=whole)
        sign = "+" if gain.mean > 0 else "−"
        short = f"{sign}{count(abs(gain.mean))} against {', '.join(values.values())}"
        if not whole:
            short = f"{sign}{count(abs(gain.mean))} in {count(start.steps)} steps"
        if changed.agents == start.agents:
            sentence, short = f"{origin}: where the slider was", f"as with {', '.join(values.values())}"
        alive = int((after.histories[label].alive & before.histories[label].alive).sum())
        if alive < start.replications:
            sentence = f"{start.replications - alive} of {start.replications} replications diverged. {sentence}"
        if not math.isfinite(gain.mean):
            sentence, short = "All replications diverged", "all replications diverged"
        return Answer(after, gain, sentence, short, whole)

    def _world(self, experiment: Experiment) -> _World:
        with self._lock:
            key = experiment.simulator.model_dump_json(), experiment.seed
            world = self._worlds.pop(key, None) or _World(experiment)
            self._worlds[key] = world
            while len(self._worlds) > KEPT:
                self._worlds.popitem(last=False)
            return world


def _sentence(gain: Estimate, start: str, experiment: Experiment, *, whole: bool) -> str:
    """State a difference from where the slider was, and on how much it rests."""
    noun, rows = experiment.simulator_class().reward_noun, experiment.replications
    extent = f"{count_of(rows, 'replications')}, {'' if whole else 'first '}{count(experiment.steps)} steps"
    amount = count_of(abs(gain.mean), f"{'more' if gain.mean > 0 else 'fewer'} {noun}")
    if not gain.low <= gain.high:
        return f"{amount} than with {start} ({extent}: no interval)"
    evidence = f"({interval(gain)}; {extent})"
    if gain.low <= 0 <= gain.high:
        return f"No significant difference from {start}: {count_of(gain.mean, noun)} {evidence}"
    return f"{amount} than with {start} {evidence}"


class _World:
    """A preview, and the results where sliders were."""

    def __init__(self, experiment: Experiment) -> None:
        self.preview, self.lock = Preview(experiment), Lock()
        self._starts: OrderedDict[tuple[str, str, int, int], Result] = OrderedDict()
        self._seconds: dict[tuple[str, int, int], float] = {}

    def affordable(self, experiment: Experiment, label: str, *, rest: bool) -> Experiment:
        """Return the experiment with as many steps and replications as there is time for.

        Raises
        ------
        UserError
            Even a short one takes too long.
        """
        moving = shortened(experiment, MOVING)
        agent = experiment.agents[experiment.labels.index(label)]
        key = f"{agent.kind} {structural_key(agent)}", moving.steps, moving.replications
        with self.lock:
            if key not in self._seconds:
                seconds = self.preview.seconds_of(moving, label)
                if seconds > SLOWEST:  # once more: other work of the machine may have held it up
                    seconds = min(seconds, self.preview.seconds_of(moving, label))
                if seconds > SLOWEST:
                    raise UserError(f"takes about {duration(seconds)}: too slow to follow the slider")
                self._seconds[key] = seconds
        whole = shortened(experiment, RESTING)
        longer = whole.steps * whole.replications / (moving.steps * moving.replications)
        return whole if rest and self._seconds[key] * longer <= LONGEST_REST else moving

    def start(self, experiment: Experiment, label: str) -> Result:
        """Return the result where the slider was."""
        agent = experiment.agents[experiment.labels.index(label)]
        key = label, agent.model_dump_json(), experiment.steps, experiment.replications
        result = self._starts.pop(key, None) or self.preview.run(experiment, label)
        self._starts[key] = result
        while len(self._starts) > STARTS:
            self._starts.popitem(last=False)
        return result
