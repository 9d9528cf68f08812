"""What a browser asks while a slider moves, and the answer to it."""

from __future__ import annotations

import json
import logging
import math
import threading
from functools import lru_cache
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bandits.base.errors import UserError
from bandits.base.formatting import count_of, short
from bandits.experiments.experiment import Experiment, read
from bandits.results import words
from bandits.results.describe import plain_value
from bandits.results.figures.board import XAxis, agent_traces
from bandits.results.instant import Answer, Instant, NotQuickError, can_follow
from bandits.results.metric_registry import main_metric
from bandits.results.metrics import Estimate
from bandits.results.result import Result
from bandits_app.session import workers
from bandits_app.widgets.live_panel.panel import pack

_log = logging.getLogger(__name__)
# characters of a message
LONGEST = 32_768


class View(BaseModel):
    """How the plots are drawn: some options of `bandits_app.run_view.options.View`."""

    model_config = ConfigDict(extra="forbid", strict=True)
    window: int = Field(1000, ge=1, le=10_000_000)
    x: XAxis = "step"
    log_regret: bool = False
    spectrum: bool = True


class Question(BaseModel):
    """An agent of an experiment with other parameters.

    Attributes
    ----------
    seq : int
        Number of the question, which the answer repeats.
    experiment : str
        The experiment as JSON, as it was before the slider moved.
    rest : bool
        The slider rests: the whole run, where that is not too long.
    kept : bool
        A stored run with this value is asked for: nothing is computed.
    """

    model_config = ConfigDict(extra="forbid", strict=True)
    seq: int = Field(ge=0, le=2**53)
    experiment: str = Field(max_length=LONGEST)
    label: str = Field(max_length=80)
    params: dict[str, int | float] = Field(min_length=1, max_length=4)
    rest: bool = False
    kept: bool = False
    view: View = View()


def answer(instant: Instant, text: str, *, quick: bool = False) -> bytes:
    """Answer a question: the size of a JSON header (uint32, little-endian), the header, and a
    packed panel.

    A question that cannot be answered has a header with ``error``, one sentence, and no panel. With
    ``quick``, what would take long is left to another call: it returns no bytes."""
    seq = 0
    try:
        question = Question.model_validate_json(text)
        seq = question.seq
        experiment = _experiment(question.experiment)
        if question.kept and quick:  # a file is read
            raise NotQuickError
        found: Answer | _Kept
        if question.kept:
            found = _kept(experiment, question)
        else:
            found = instant.answer(
                experiment, question.label, question.params, rest=question.rest, quick=quick
            )
    except NotQuickError:
        return b""
    except ValidationError:
        return _framed({"seq": seq, "error": "this is no question about a parameter"})
    except UserError as error:
        return _framed({"seq": seq, "error": str(error)})
    except Exception:  # noqa: BLE001
        _log.exception("a question about %s could not be answered", short(text))
        return _framed(
            {
                "seq": seq,
                "error": "this value could not be tried; the reason is in the server's log",
            }
        )
    view = question.view
    # with fewer steps the eigenvalues are smaller for that reason alone
    spectrum = found.whole and view.spectrum
    plots = agent_traces(found.result, view.window, x=view.x, spectrum=spectrum)
    (mean, *_), rate, spread = _tile(found.result, question.label)
    tried = found.result.experiment
    budget = f"{count_of(tried.replications, 'replications')}, {count_of(tried.steps, 'steps')}"
    header = {
        "seq": seq,
        "label": question.label,
        "sentence": found.sentence,
        "whole": found.whole,
        "rate": mean if math.isfinite(mean) else None,
        "budget": budget,
        "tile": {"rate": rate, "spread": spread, "detail": found.short},
    }
    return _framed(header, pack([{"data": traces} for traces in plots], 300, alt=[""] * len(plots)))


# stored runs that are read at the same time, each into memory as a whole
_READING = threading.Semaphore(2)


class _Kept(NamedTuple):
    """An agent of a stored run, as an `Answer` is shown."""

    result: Result
    sentence: str
    short: str
    whole: bool = True


def _kept(experiment: Experiment, question: Question) -> _Kept:
    """Find the agent with one other value in a stored run.

    Raises
    ------
    UserError
        There is no such run.
    """
    (name, value), *more = question.params.items()
    if question.label not in experiment.labels or more:
        raise UserError("a stored run is that of one agent with one other value")
    if not can_follow(type(experiment.agents[experiment.labels.index(question.label)]), name):
        raise UserError("the agent has no such parameter, or it decides the agent's size")
    pool = workers.pool()
    with _READING:
        kept = pool.stored_values(experiment, question.label, [name])[name]
        history = next((pool.kept_history(one) for one in kept if one.value == value), None)
    if history is None:
        raise UserError("this run is no longer stored")
    result = Result(experiment, {question.label: history})
    metric = main_metric(experiment)
    title = "CTR" if metric.name == "ctr" else metric.title.lower()
    shown = f"stored run: {name.replace('_', ' ')} = {plain_value(value)}"
    _, rate, spread = _tile(result, question.label)
    evidence = f"{'95 % CI, ' if spread else ''}{count_of(experiment.replications, 'replications')}"
    return _Kept(result, f"S{shown[1:]}, {title} {rate}{spread} ({evidence})", shown)


def _tile(result: Result, label: str) -> tuple[Estimate, str, str]:
    """Return what an agent's tile shows, and write it and half its interval: 0.467, ± 0.004."""
    metric = main_metric(result.experiment)
    found = metric.estimate(result.histories[label])
    return found, words.plain(found, metric.form), words.spread(found, metric.form)


@lru_cache(maxsize=32)
def _experiment(text: str) -> Experiment:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        raise UserError("the experiment is not JSON") from None
    return read(data)


def _framed(header: dict[str, Any], body: bytes = b"") -> bytes:
    written = json.dumps(header, allow_nan=False).encode()
    return len(written).to_bytes(4, "little") + written + body
