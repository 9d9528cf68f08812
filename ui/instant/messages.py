"""What a browser asks while a slider moves, and the answer to it."""

from __future__ import annotations

import json
import logging
import math
from functools import lru_cache
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bandits.base.errors import UserError
from bandits.base.formatting import short
from bandits.experiments.experiment import Experiment, read
from bandits.results import metrics
from bandits.results.figures import XAxis, agent_traces
from bandits.results.instant import Instant, NotQuickError
from ui.live_panel.panel import pack

_log = logging.getLogger(__name__)
LONGEST = 32_768  # characters of a message


class View(BaseModel):
    """How the plots are drawn: some options of `ui.run_view.options.View`."""

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
    """

    model_config = ConfigDict(extra="forbid", strict=True)
    seq: int = Field(ge=0, le=2**53)
    experiment: str = Field(max_length=LONGEST)
    label: str = Field(max_length=80)
    params: dict[str, int | float] = Field(min_length=1, max_length=4)
    rest: bool = False
    view: View = View()


def answer(instant: Instant, text: str, *, quick: bool = False) -> bytes:
    """Answer a question: the size of a JSON header (uint32, little-endian), the header, and a packed panel.

    A question that cannot be answered has a header with ``error``, one sentence, and no panel. With ``quick``, what
    would take long is left to another call: it returns no bytes.
    """
    seq = 0
    try:
        question = Question.model_validate_json(text)
        seq = question.seq
        experiment = _experiment(question.experiment)
        found = instant.answer(experiment, question.label, question.params, rest=question.rest, quick=quick)
    except NotQuickError:
        return b""
    except ValidationError:
        return _framed({"seq": seq, "error": "this is no question about a parameter"})
    except UserError as error:
        return _framed({"seq": seq, "error": str(error)})
    except Exception:  # noqa: BLE001 - the connection goes on
        _log.exception("a question about %s could not be answered", short(text))
        return _framed({"seq": seq, "error": "this value could not be tried; the reason is in the server's log"})
    view = question.view
    spectrum = found.whole and view.spectrum  # with fewer steps the eigenvalues are smaller for that reason alone
    plots = agent_traces(found.result, view.window, x=view.x, spectrum=spectrum)
    rate = metrics.estimate(metrics.click_rate(found.result.histories[question.label]))
    half = (rate.high - rate.low) / 2
    shown = math.isfinite(rate.mean)
    header = {
        "seq": seq, "label": question.label, "sentence": found.sentence, "whole": found.whole,
        "rate": rate.mean if shown else None,
        "tile": {"rate": f"{rate.mean:.3f}" if shown else "–", "spread": f" ± {half:.3f}" if half > 0 else "",
                 "detail": found.short},
    }  # fmt: skip
    return _framed(header, pack([{"data": traces} for traces in plots], [""] * len(plots), 300))


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
