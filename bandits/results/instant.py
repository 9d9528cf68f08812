"""What a slider shows while it moves: one agent with another value, and the paired difference from
where it was.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from threading import Lock, Semaphore
from typing import Any, NamedTuple

from bandits.base.errors import UserError
from bandits.base.formatting import count, count_of, duration
from bandits.base.ledger import LEDGER
from bandits.base.params import Params, declaration, structural_key
from bandits.base.recent import Recent
from bandits.experiments.experiment import Experiment, read
from bandits.experiments.history import History
from bandits.results import metrics, words
from bandits.results.comparison import paired_tests
from bandits.results.describe import plain_value
from bandits.results.metric_registry import gain_metric
from bandits.results.metrics import Estimate
from bandits.results.preview import Preview
from bandits.results.result import Result

# decisions while a slider moves ...
MOVING = 40_000
# ... and while it rests: of most experiments, the whole run
RESTING = 400_000
# replications, if the experiment has as many: fewer give no useful interval
FEWEST = 4
# bytes that a previewed experiment may need, and all that are kept together
MEMORY = 512 * 2**20
# expected seconds of an answer while a slider moves ...
SLOWEST = 0.5
# ... and while it rests
LONGEST_REST = 1.0
# computations that are not quick; further threads wait
AT_ONCE = 2
# expected seconds of a quick answer ...
QUICK = 0.05
# ... and seconds that it waits for its simulator
PATIENCE = 0.05
# simulators with their random numbers
KEPT = 6
# agents of experiments that are asked about
SUBJECTS = 16
# results at the value where a slider was, per simulator
STARTS = 16


class Answer(NamedTuple):
    """One agent with another value.

    Attributes
    ----------
    result : Result
        Of this agent alone, perhaps with fewer steps and replications.
    gain : Estimate
        Reward beyond that at the value where the slider was, over the same users and random
        numbers.
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
    """Return an experiment with at most this many decisions per agent: fewer replications first,
    then fewer steps.
    """
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
        return "Runs on release: replays of a log are not paired."
    if experiment.agent_class(agent).representation(experiment.agents[agent]) == "network":
        return "Runs on release: trains a network."
    if shortened(experiment, RESTING).memory() > MEMORY:
        return "Runs on release: a preview takes too much memory."
    moving = shortened(experiment, MOVING)
    seconds = (seconds_per_decision or 0.0) * moving.steps * moving.replications
    return _on_release(experiment, moving, seconds) if seconds > SLOWEST else ""


def _on_release(experiment: Experiment, moving: Experiment, seconds: float) -> str:
    """State how long a run of this agent takes, from the seconds of a shorter one."""
    longer = experiment.steps * experiment.replications / (moving.steps * moving.replications)
    return f"Runs on release (about {duration(seconds * longer)})."


def can_follow(model: type[Params], name: str) -> bool:
    """Return whether a parameter may follow a slider: a number that does not decide how large the
    agent is.
    """
    field = model.model_fields.get(name)
    return field is not None and field.annotation is float and not declaration(field)["structural"]


class NotQuickError(Exception):
    """An answer would take long: the simulator is not prepared, or the agent is slow."""


class Instant:
    """Answers for any number of visitors.

    What experiments with the same simulator and seed share is prepared once.
    """

    def __init__(self) -> None:
        self._lock, self._computing = Lock(), Semaphore(AT_ONCE)
        self._previews: Recent[tuple[str, int], _KeptPreview] = Recent(KEPT)
        self._subjects: Recent[tuple[int, str], _Subject] = Recent(SUBJECTS)

    def answer(
        self,
        experiment: Experiment,
        label: str,
        params: Mapping[str, Any],
        *,
        rest: bool = False,
        quick: bool = False,
    ) -> Answer:
        """Run one agent with other parameters.

        Parameters
        ----------
        params : mapping
            Parameters that differ from the experiment, by name.
        rest : bool
            The slider rests: more steps and replications.
        quick : bool
            Refuse what takes long, so that questions in the same queue are not held up.

        Raises
        ------
        UserError
            No agent has this label, a value is out of range, or the agent is too slow.
        NotQuickError
            With ``quick``: nothing has been computed.
        """
        subject, kept = self._subject(experiment, label)
        if subject.slow:
            raise UserError(subject.slow)
        names = list(params)
        if not all(can_follow(type(subject.agent), name) for name in names):
            raise UserError("the agent has no such parameter, or it decides the agent's size")
        if quick and (rest or not kept.is_quick(subject)):
            raise NotQuickError
        start = kept.affordable(subject, rest=rest)
        agents = list(subject.data["agents"])
        agents[subject.position] = {**agents[subject.position], **params}
        # checked as a whole: a shorter experiment may end before one of its changes begins
        changed = read({**subject.data, "agents": agents})
        changed = changed.model_copy(
            update={"steps": start.steps, "replications": start.replications}
        )
        with kept.held(PATIENCE if quick else -1), nullcontext() if quick else self._computing:
            before, after = kept.start(start, label), kept.preview.run(changed, label)
        found = gain(start, after.histories[label], before.histories[label])
        whole = (start.steps, start.replications) == (experiment.steps, experiment.replications)
        values = {
            name.replace("_", " "): plain_value(getattr(subject.agent, name)) for name in names
        }
        origin = ", ".join(f"{name} {value}" for name, value in values.items())
        sentence = difference(found, origin, start, whole=whole)
        amount = words.mean(found._replace(mean=abs(found.mean)), gain_metric(start).form)
        extent = f"against {', '.join(values.values())}"
        if not whole:
            extent = f"in {count(start.steps)} steps"
        short = f"{'+' if found.mean > 0 else '−'}{amount} {extent}"
        if changed.agents == start.agents:
            sentence, short = (
                f"{origin}: where the slider was",
                f"as with {', '.join(values.values())}",
            )
        alive = int((after.histories[label].alive & before.histories[label].alive).sum())
        if alive < start.replications:
            sentence = (
                f"{start.replications - alive} of {start.replications} replications diverged. "
                f"{sentence}"
            )
        if not alive:
            sentence, short = "All replications diverged", "all replications diverged"
        elif not math.isfinite(found.mean):
            sentence, short = "No visit has ended yet", "no visit yet"
        return Answer(after, found, sentence, short, whole)

    def _subject(self, experiment: Experiment, label: str) -> tuple[_Subject, _KeptPreview]:
        """Return an agent that is asked about, again and again while a slider moves, and its
        simulator.
        """
        if label not in experiment.labels:
            raise UserError("there is no agent of that name")
        with self._lock:
            # a subject holds its experiment: no other one gets this id
            place = id(experiment), label
            subject = self._subjects.use(place, lambda: _Subject(experiment, label))
            kept = self._previews.use(subject.simulator, lambda: _KeptPreview(experiment))
            while len(self._previews) > 1 and self.memory > MEMORY:
                self._previews.popitem(last=False)
            LEDGER.keep("previews", self.memory)
            return subject, kept

    @property
    def memory(self) -> int:
        """Bytes of the simulators that are kept, as estimated."""
        return sum(kept.need for kept in self._previews.values())


def gain(experiment: Experiment, after: History, before: History, *, family: int = 1) -> Estimate:
    """Estimate the paired difference of an agent from what it was before, one of a ``family`` of
    agents.
    """
    gap = paired_tests.gaps(after, before, per_visit=experiment.offers("visits"))
    return metrics.estimate(gap, family=family)


def difference(gain: Estimate, start: str, experiment: Experiment, *, whole: bool = True) -> str:
    """State a `gain` over where the slider was, and on how much it rests."""
    rows, metric = experiment.replications, gain_metric(experiment)
    noun = experiment.simulator_class().reward_noun
    extent = (
        f"{count_of(rows, 'replications')}, {'' if whole else 'first '}{count(experiment.steps)} "
        "steps"
    )

    def amount(value: float, what: str) -> str:
        if metric.form == "count":
            return count_of(value, what)
        return f"{words.mean(gain._replace(mean=value), metric.form)} {what} per visit"

    more = amount(abs(gain.mean), f"{'more' if gain.mean > 0 else 'fewer'} {noun}")
    if not gain.low <= gain.high:
        return f"{more} than with {start} ({extent}: no interval)"
    # of what the sentence states: fewer clicks are a positive number
    stated = -gain if gain.high < 0 else gain
    evidence = f"({words.interval(stated, metric.form)}; {extent})"
    if gain.low <= 0 <= gain.high:
        return f"No significant difference from {start}: {amount(gain.mean, noun)} {evidence}"
    return f"{more} than with {start} {evidence}"


class _Subject:
    """An agent of an experiment, and what is the same in all answers about it."""

    def __init__(self, experiment: Experiment, label: str) -> None:
        self.experiment, self.label = experiment, label
        self.simulator = experiment.simulator.model_dump_json(), experiment.seed
        self.position = experiment.labels.index(label)
        self.agent = experiment.agents[self.position]
        self.slow = too_slow(experiment, label)
        self.data = experiment.model_dump(mode="json")
        self.moving, self.whole = shortened(experiment, MOVING), shortened(experiment, RESTING)
        self.key = (
            f"{self.agent.kind} {structural_key(self.agent)}",
            self.moving.steps,
            self.moving.replications,
        )


class _KeptPreview:
    """A preview, and the results where sliders were."""

    def __init__(self, experiment: Experiment) -> None:
        self.preview, self.lock = Preview(experiment), Lock()
        self.need = shortened(experiment, RESTING).memory()
        self._starts: Recent[tuple[str, str, int, int], Result] = Recent(STARTS)
        self._seconds: dict[tuple[str, int, int], float] = {}

    @contextmanager
    def held(self, patience: float) -> Iterator[None]:
        """Hold the lock; with a patience of -1 s, however long it takes to get it."""
        if not self.lock.acquire(timeout=patience):
            raise NotQuickError
        try:
            yield
        finally:
            self.lock.release()

    def is_quick(self, subject: _Subject) -> bool:
        """Return whether an agent was measured before, and found fast."""
        return self._seconds.get(subject.key, math.inf) <= QUICK

    def affordable(self, subject: _Subject, *, rest: bool) -> Experiment:
        """Return the experiment with as many steps and replications as there is time for.

        Raises
        ------
        UserError
            Even a short one takes too long.
        """
        moving, whole = subject.moving, subject.whole
        if subject.key not in self._seconds:
            with self.lock:
                seconds = self.preview.seconds_of(moving, subject.label)
                # once more: other work of the machine may have held it up
                if seconds > SLOWEST:
                    seconds = min(seconds, self.preview.seconds_of(moving, subject.label))
            if seconds > SLOWEST:
                raise UserError(_on_release(subject.experiment, moving, seconds))
            self._seconds[subject.key] = seconds
        longer = whole.steps * whole.replications / (moving.steps * moving.replications)
        return (
            subject.whole
            if rest and self._seconds[subject.key] * longer <= LONGEST_REST
            else subject.moving
        )

    def start(self, experiment: Experiment, label: str) -> Result:
        """Return the result where the slider was."""
        agent = experiment.agents[experiment.labels.index(label)]
        key = label, agent.model_dump_json(), experiment.steps, experiment.replications
        return self._starts.use(key, lambda: self.preview.run(experiment, label))
