"""Write a sweep as a URL query and read it back: the fields of the experiment, and the axes.

``simulator=petshop&agents.0=linucb&steps=20000&replications=16&seed=42&axes.0=agents.0.alpha,0.1,10,9,log&
axes.1=agents.0.sharing:per_arm,shared``; additional values of a range follow its scale; refinements
are ``refinements.0=agents.0.alpha:0.05,0.07``; for a search by Optuna also
``search=optuna&metric=ctr&sampler=tpe&number=64&batch=8``."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlencode

from bandits.base.errors import UserError
from bandits.base.formatting import short
from bandits.experiments import url

from .axis import Axis, plain_value
from .sweep import Sweep, read

_AXIS = re.compile(r"^axes\.([0-9])$")
_REFINEMENT = re.compile(r"^refinements\.([0-9])$")
_OPTUNA = ("sampler", "number", "batch")
# characters of an axis
_LENGTH = 4000


def to_query(sweep: Sweep) -> dict[str, str]:
    """Return the fields of the query by name, in order."""
    query_fields = {
        name: text for name, text in url.to_query(sweep.experiment).items() if name != "check"
    }
    query_fields |= {f"axes.{i}": _text(axis) for i, axis in enumerate(sweep.axes)}
    query_fields |= {
        f"refinements.{i}": ";".join(
            f"{path}:{','.join(map(json.dumps, values))}" for path, values in added.items()
        )
        for i, added in enumerate(sweep.refinements)
    }
    if sweep.search != "grid":
        query_fields |= {"search": sweep.search, "metric": sweep.metric}
    if not sweep.is_grid:
        query_fields |= {name: str(getattr(sweep, name)) for name in _OPTUNA}
    return query_fields


def query(sweep: Sweep) -> str:
    """Return the query string, the part of the URL after the question mark."""
    return urlencode(to_query(sweep))


def holds_sweep(given: Mapping[str, str]) -> bool:
    """Whether the query of a URL describes a sweep."""
    return any(_AXIS.match(name) for name in given)


def parse_query(given: Mapping[str, str]) -> Sweep:
    """Read and validate the sweep that the query of a URL describes.

    Raises
    ------
    UserError
        One sentence: what is wrong, where, and what is allowed.
    """
    axes = {
        int(match[1]): _axis(name, text)
        for name, text in given.items()
        if (match := _AXIS.match(name))
    }
    _check_numbers("axes", axes)
    experiment = url.parse_query(given).experiment
    named: dict[str, Any] = {name: given[name] for name in ("search", "metric") if name in given}
    named |= {name: plain_value(given[name]) for name in _OPTUNA if name in given}
    if refinements := {
        int(match[1]): text for name, text in given.items() if (match := _REFINEMENT.match(name))
    }:
        _check_numbers("refinements", refinements)
        named["refinements"] = [_refinement(i, refinements[i]) for i in sorted(refinements)]
    return read(
        {
            "experiment": experiment.model_dump(mode="json"),
            "axes": [axes[i] for i in sorted(axes)],
            **named,
        }
    )


def _check_numbers(name: str, numbers: Iterable[int]) -> None:
    if (ordered := sorted(numbers)) != list(range(len(ordered))):
        raise UserError(
            f"the link's {name} are numbered {', '.join(map(str, ordered))}; they must count from 0"
        )


def _refinement(i: int, text: str) -> dict[str, Any]:
    if len(text) > _LENGTH:
        raise UserError(
            f"refinements.{i} has {len(text):,} characters; at most {_LENGTH:,} are allowed"
        )
    added = dict[str, Any]()
    for part in text.split(";"):
        path, colon, values = part.partition(":")
        if not colon:
            raise UserError(
                f"refinements.{i} is '{short(text)}'; write path:value,value;path:value"
            )
        added[path] = [plain_value(v) for v in values.split(",")]
    return added


def _text(axis: Axis) -> str:
    if axis.values is not None:
        return f"{axis.path}:{','.join(v if isinstance(v, str) else json.dumps(v) for v in axis.values)}"  # noqa: E501
    low, high = (f"{v:.12g}" for v in (axis.low or 0.0, axis.high or 0.0))
    extra = "".join(f",{v:.12g}" for v in axis.extra)
    return f"{axis.path},{low},{high},{axis.number},{axis.scale}{extra}"


def _axis(name: str, text: str) -> dict[str, Any]:
    if len(text) > _LENGTH:
        raise UserError(f"{name} has {len(text):,} characters; at most {_LENGTH:,} are allowed")
    path, colon, values = text.partition(":")
    if colon:
        return {"path": path, "values": [plain_value(v) for v in values.split(",")]}
    parts = text.split(",")
    if len(parts) < 5:
        raise UserError(
            f"{name} is '{short(text)}'; write path,low,high,number,scale or path:value,value"
        )
    low, high, number, *extra = (plain_value(part) for part in (*parts[1:4], *parts[5:]))
    return {
        "path": parts[0],
        "low": low,
        "high": high,
        "number": number,
        "scale": parts[4],
        "extra": extra,
    }
