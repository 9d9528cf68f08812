"""Lessons as data: steps that predict, run, see, explain and try."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.fields import FieldInfo

from bandits.base.errors import UserError
from bandits.experiments.experiment import Experiment, read
from bandits.experiments.presets import presets

from . import game
from .sources import RunSource, WorkedSource
from .worked import REGISTRY, WorkedExample

Identifier = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,30}$")]
Expression = Annotated[str, Field(min_length=1, max_length=400)]
Plot = Literal[
    "ctr",
    "clicks",
    "pseudo_regret",
    "average_regret",
    "per_visit",
    "visit_length",
    "entropy",
    "spectrum",
    "lead",
    "worked",
]
HINTS = 3
# label of the agent that a reader has changed
YOURS = "Yours"


class _Data(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class _Step(_Data):
    id: Identifier


class TextStep(_Step):
    """A text."""

    kind: Literal["text"]


class Mark(_Data):
    """Where a predicted number is drawn: a dashed line across a plot, horizontal at a value or
    vertical at a step.
    """

    plot: Plot
    axis: Literal["x", "y"] = "y"


class NumberAnswer(_Data):
    """A number, chosen with a slider."""

    kind: Literal["number"]
    low: float
    high: float
    step: float = Field(gt=0)
    unit: str = Field("", max_length=40)
    truth: Expression
    mark: Mark | None = None

    @model_validator(mode="after")
    def _ordered(self) -> NumberAnswer:
        if not self.low < self.high:
            raise ValueError(f"a slider from {self.low:g} to {self.high:g} has no room")
        return self


class Option(_Data):
    """One answer to choose, which holds if its expression is true."""

    text: str = Field(min_length=1, max_length=200)
    when: Expression


class ChoiceAnswer(_Data):
    """One of several answers."""

    kind: Literal["choice"]
    options: tuple[Option, ...] = Field(min_length=2, max_length=8)


class Ranked(_Data):
    """One thing to put in order, by the value of its expression, largest first."""

    text: str = Field(min_length=1, max_length=200)
    value: Expression


class OrderAnswer(_Data):
    """Several things, largest first."""

    kind: Literal["order"]
    options: tuple[Ranked, ...] = Field(min_length=2, max_length=6)


Answer = Annotated[NumberAnswer | ChoiceAnswer | OrderAnswer, Field(discriminator="kind")]


class PredictStep(_Step):
    """A question whose answer is kept before anything is shown."""

    kind: Literal["predict"]
    answer: Answer


class RunStep(_Step):
    """An experiment, a preset, or a worked example with parameters that the reader may change."""

    kind: Literal["run"]
    experiment: dict[str, Any] | None = None
    preset: str | None = None
    worked: str | None = None
    given: dict[str, Any] = Field(default_factory=dict)
    shown: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _one_thing(self) -> RunStep:
        if sum(each is not None for each in (self.experiment, self.preset, self.worked)) != 1:
            raise ValueError(f"step '{self.id}' must have one of experiment, preset and worked")
        if self.preset is not None and self.preset not in presets():
            raise ValueError(
                f"step '{self.id}': there is no preset '{self.preset}'; there are "
                f"{', '.join(presets())}"
            )
        if self.worked is not None and self.worked not in REGISTRY:
            raise ValueError(
                f"step '{self.id}': there is no worked example '{self.worked}'; there are "
                f"{', '.join(REGISTRY)}"
            )
        if self.worked is not None:
            unknown = [
                name
                for name in (*self.given, *self.shown)
                if name not in self.example.Params.model_fields
            ]
            if unknown:
                raise ValueError(f"step '{self.id}': {self.worked} has no parameter '{unknown[0]}'")
            self.example.Params.model_validate(self.given)
        elif self.given or self.shown:
            raise ValueError(
                f"step '{self.id}': only worked examples have given and shown parameters"
            )
        elif self.experiment is not None:
            try:
                read(self.experiment)
            except UserError as error:
                raise ValueError(f"step '{self.id}': {error}") from None
        return self

    @property
    def example(self) -> type[WorkedExample]:
        """The worked example."""
        return REGISTRY[str(self.worked)]

    @cached_property
    def resolved(self) -> Experiment:
        """The experiment, of this step or of its preset."""
        return (
            read(self.experiment)
            if self.experiment is not None
            else presets()[str(self.preset)].experiment
        )

    def with_seed(self, seed: int) -> Experiment:
        """Return the experiment with another seed."""
        return read({**self.resolved.model_dump(mode="json", by_alias=True), "seed": seed})

    def source(self, results: Mapping[str, Any]) -> RunSource | WorkedSource:
        """Return its numbers; those of a run from the result by step, where there is one."""
        if self.worked is not None:
            return WorkedSource(self.example, self.example.Params.model_validate(self.given))
        result = results.get(self.id)
        return RunSource(self.resolved if result is None else result.experiment, result)


class SeeStep(_Step):
    """What to look at: plots of a run, and the predictions that are drawn into them."""

    kind: Literal["see"]
    run: Identifier
    plots: tuple[Plot, ...] = Field(("ctr",), min_length=1, max_length=4)
    figures: tuple[Annotated[int, Field(ge=1)], ...] = ()
    """Which figures of a worked example, from 1; all by default."""
    agents: tuple[str, ...] = ()
    window: int = Field(1000, ge=10, le=100_000)
    until: int | None = Field(None, ge=10)
    predictions: tuple[Identifier, ...] = ()


class ExplainStep(_Step):
    """A text that is filled with the numbers of the runs."""

    kind: Literal["explain"]


class TryStep(_Step):
    """A task: find a value of one parameter with which a goal holds."""

    kind: Literal["try"]
    run: Identifier
    agent: str | None = None
    parameter: str
    low: float
    high: float
    step: float = Field(gt=0)
    start: float
    solution: float
    target: float
    goal: Expression

    def field(self, run: RunStep) -> FieldInfo:
        """Return the parameter's declaration: its title, symbol and unit."""
        if run.worked is not None:
            return run.example.Params.model_fields[self.parameter]
        experiment = run.resolved
        agent = experiment.agents[experiment.labels.index(str(self.agent))]
        return type(agent).model_fields[self.parameter]

    def source(
        self, run: RunStep, value: float, results: Mapping[str, Any]
    ) -> RunSource | WorkedSource:
        """Return the numbers of the run with another value of the parameter, from the results by
        content hash.
        """
        if run.worked is not None:
            params = run.example.Params.model_validate({**run.given, self.parameter: _whole(value)})
            return WorkedSource(run.example, params)
        changed = self.changed(run, value)
        return RunSource(changed, results.get(changed.hash))

    def changed(self, run: RunStep, value: float) -> Experiment:
        """Return the experiment with one agent, whose parameter has this value."""
        experiment = run.resolved
        agent = experiment.agents[experiment.labels.index(str(self.agent))].model_dump(
            mode="json", by_alias=True
        )
        after = {**agent, self.parameter: _whole(value), "label": YOURS}
        return read({**experiment.model_dump(mode="json", by_alias=True), "agents": [after]})


def _whole(value: float) -> float:
    """Return a whole number as int, which parameters that count require."""
    return int(value) if float(value).is_integer() else value


class PlayStep(_Step):
    """A game: the reader chooses in the place of an agent, then the agents of the experiment play
    with the same random numbers.
    """

    kind: Literal["play"]
    experiment: dict[str, Any]

    @model_validator(mode="after")
    def _playable(self) -> PlayStep:
        try:
            game.check(read(self.experiment))
        except UserError as error:
            raise ValueError(f"step '{self.id}': {error}") from None
        return self

    def game(self, seed: int) -> game.Game:
        """Return the game whose levers are drawn with a seed."""
        return game.of(read({**self.experiment, "seed": seed}))


Step = Annotated[
    TextStep | PredictStep | RunStep | SeeStep | ExplainStep | TryStep | PlayStep,
    Field(discriminator="kind"),
]
KINDS = ("text", "predict", "run", "see", "explain", "try", "play")


class Claim(_Data):
    """A comparison that must be true of the lesson's runs.

    Its ``scope`` is every seed, and so every layout of the simulator, or the lesson's own run; the
    text of the lesson then states that it is about this run.
    """

    text: str = Field(min_length=1, max_length=300)
    holds: Expression
    source: str = Field("", max_length=200)
    scope: Literal["every seed", "this run"] = "every seed"


class Section(NamedTuple):
    """The text of a step in the Markdown file: its heading, its body, and its parts below smaller
    headings.
    """

    title: str
    body: str
    happened: str
    hints: tuple[str, ...]


class LessonData(_Data):
    """The JSON file of a lesson."""

    title: str = Field(min_length=1, max_length=80)
    minutes: int = Field(ge=1, le=120)
    about: str = Field(min_length=1, max_length=300)
    needs: str = Field("", max_length=300)
    allowed_numbers: tuple[str, ...] = ()
    steps: tuple[Step, ...] = Field(min_length=1, max_length=60)
    claims: tuple[Claim, ...] = ()


class Lesson(NamedTuple):
    """A lesson: its data and its texts.

    Attributes
    ----------
    name : str
    data : LessonData
    texts : dict of str to Section
        By the id of the step.
    """

    name: str
    data: LessonData
    texts: Mapping[str, Section]

    @property
    def runs(self) -> dict[str, RunStep]:
        """The steps with a run or a worked example, by id."""
        return {step.id: step for step in self.data.steps if isinstance(step, RunStep)}

    @property
    def predictions(self) -> dict[str, PredictStep]:
        """The steps with a prediction, by id."""
        return {step.id: step for step in self.data.steps if isinstance(step, PredictStep)}

    @property
    def tasks(self) -> dict[str, TryStep]:
        """The steps with a task, by id."""
        return {step.id: step for step in self.data.steps if isinstance(step, TryStep)}

    @property
    def games(self) -> dict[str, PlayStep]:
        """The steps with a game, by id."""
        return {step.id: step for step in self.data.steps if isinstance(step, PlayStep)}

    def sources(self, results: Mapping[str, Any]) -> dict[str, RunSource | WorkedSource]:
        """Return the numbers of all runs, by step, with the results that are known."""
        return {name: step.source(results) for name, step in self.runs.items()}
