"""Read experiments, sweeps and requests from untrusted text, and report the first error in one
sentence.

A message states what is wrong, where, and what is allowed: "agents.0.alpha (LinUCB) is -1; it must
be a number from 0 to 10"."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from bandits.agents import REGISTRY as AGENTS
from bandits.base.errors import UserError
from bandits.base.formatting import short
from bandits.base.params import Params, entry_kinds, schemas
from bandits.simulators import REGISTRY as SIMULATORS

from .labels import name_agent

# bytes of JSON that are read
MAX_TEXT = 256_000
# choices that a message lists
MAX_CHOICES = 12

T = TypeVar("T")


def parse(
    source: str | bytes | dict[str, Any],
    noun: str,
    model: type[BaseModel],
    validate: Callable[[Any], T],
) -> T:
    """Parse untrusted JSON text, or plain data, and validate it.

    Parameters
    ----------
    source : str, bytes or dict
    noun : str
        Name of the expected object in messages: "experiment", "sweep".
    model : subclass of pydantic.BaseModel
        The expected class; messages name its fields and their ranges.
    validate : callable
        Turns the parsed data into the object; may raise `pydantic.ValidationError`, ValueError or
        `UserError`.

    Raises
    ------
    UserError
        One sentence: what is wrong, where, and what is allowed.
    """
    data: Any = None
    try:
        text = json.dumps(source) if isinstance(source, dict) else source
        if len(text) > MAX_TEXT:
            raise UserError(f"the {noun} has {len(text):,} bytes; at most {MAX_TEXT:,} are allowed")
        data = json.loads(
            text, object_pairs_hook=_unique, parse_constant=_reject_constant, parse_int=_whole
        )
        return validate(data)
    except ValidationError as error:
        raise UserError(name_agent(refusal(error, model), data)) from None
    except json.JSONDecodeError as error:
        raise UserError(
            f"not JSON: {error.msg} at line {error.lineno}, column {error.colno}"
        ) from None
    except RecursionError:
        raise UserError(f"not a readable {noun}: nested too deeply") from None
    except UnicodeDecodeError:
        raise UserError("not JSON: the text is not UTF-8") from None
    except (TypeError, ValueError) as error:
        raise (
            error if isinstance(error, UserError) else UserError(f"not a readable {noun}: {error}")
        ) from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for key, value in pairs:
        if key in out:
            raise UserError(f"the key '{short(key)}' appears twice")
        out[key] = value
    return out


def _whole(digits: str) -> int:
    try:
        return int(digits)
    except ValueError:
        # Python reads at most 4,300 digits
        raise UserError(f"a number has {len(digits):,} digits; that is too many") from None


def _reject_constant(name: str) -> Any:
    raise UserError(f"{name} is not a number that can be used; numbers must be finite")


def refusal(error: ValidationError, model: type[BaseModel], whole: str = "the experiment") -> str:
    """Describe the first error of a validation in one sentence: field, value, allowed range.

    Parameters
    ----------
    error : pydantic.ValidationError
    model : subclass of pydantic.BaseModel
        The class that was validated; its fields give the allowed ranges and the known names.
    whole : str
        What was validated.
    """
    first = error.errors(include_url=False)[0]
    path = _path(first["loc"])
    where, kind, context = (
        ".".join(map(short, path)) or whole,
        first["type"],
        first.get("ctx", {}),
    )
    if kind == "value_error":
        message = str(context["error"])
        # parameters of one entry that are not valid together
        if re.search(r"(agents|changes|guards)\.\d+$", where):
            return f"{where}: {message.removeprefix(str(first['loc'][-1]) + ': ')}"
        return message
    if kind == "json_invalid":
        return f"{whole} is not valid JSON: {context['error']}"
    if kind in ("missing", "union_tag_not_found"):
        missing = where if kind == "missing" else f"{where}.kind"
        return f"{missing} is missing"
    if kind == "extra_forbidden":
        return f"{where} is not a known field" + (
            "" if len(path) > 1 else f"; known are {', '.join(model.model_fields)}"
        )
    value = short(first["input"])
    if kind == "union_tag_invalid":
        tag = f"{where}.kind is '{short(context['tag'])}'; it must be one of"
        # an entry of a list inside
        if len(path) > 2:
            return f"{tag} {str(context['expected_tags']).replace(chr(39), '')}"
        registry = SIMULATORS if path[:1] == ["simulator"] else AGENTS
        hint = 'a kind of your own: bandits.register("FILE.py"), or BANDITS_PLUGINS=FILE.py'
        # what was meant first; a sentence does not hold all agents
        close = get_close_matches(str(context["tag"]), registry)
        first_kinds = list(dict.fromkeys([*close, *registry]))[:12]
        if len(registry) > len(first_kinds):
            hint = f"all {len(registry)}: python -m bandits list; {hint}"
        return f"{tag} {', '.join(first_kinds)} ({hint})"
    if kind in ("model_type", "model_attributes_type"):
        return f"{where} is {value}; it must be an object of names and values"
    if expected := allowed(first["loc"], model):
        return f"{where} is {value}; it must be {expected}"
    return f"{where} is {value}; {first['msg'].lower().replace('input should', 'it must')}"


def _path(location: Sequence[str | int]) -> list[str]:
    """The names that lead to a field, without the kinds that pydantic adds under a discriminated
    union.
    """
    kinds = {*AGENTS, *SIMULATORS}
    # of entries with kinds of their own
    lists = ("changes", "guards")
    return [
        str(part)
        for i, part in enumerate(location)
        if not (
            i
            and part in kinds
            and (location[i - 1] == "simulator" or isinstance(location[i - 1], int))
        )
        and not (i > 1 and location[i - 2] in lists and isinstance(location[i - 1], int))
    ]


def allowed(location: Sequence[str | int], model: type[BaseModel]) -> str:
    """Describe the values allowed at a location of a pydantic error.

    Empty where nothing more is known.
    """
    owner: Any = model
    names = list(location)
    # simulator.KIND.field, agents.INDEX.KIND.field
    for prefix, registry in ((1, SIMULATORS), (2, AGENTS)):
        if (
            len(names) > prefix
            and names[0] == ("simulator", "agents")[prefix - 1]
            and str(names[prefix]) in registry
        ):
            owner, names = registry[str(names[prefix])].Params, names[prefix + 1 :]
            break
    if (
        not names
        or names[0] not in getattr(owner, "model_fields", {})
        or not issubclass(owner, Params)
    ):
        return ""
    if len(names) > 3 and (entry := entry_kinds(owner, str(names[0])).get(str(names[2]))):
        by_alias = {field.alias: name for name, field in entry.model_fields.items() if field.alias}
        owner, names = entry, [by_alias.get(str(names[3]), names[3]), *names[4:]]
        if names[0] not in owner.model_fields:
            return ""
    if len(names) == 1:
        return describe_range(owner, str(names[0]))
    return (
        _describe_entry(schemas(owner)[str(names[0])].get("items", {})) if len(names) == 2 else ""
    )


def describe_range(model: type[Params], name: str) -> str:
    """Describe the values that a field accepts: 'a number from 0 to 10'."""
    field = model.model_fields[name]
    if (offered := model.choices(name)) is not None:
        more = f" and {len(offered) - MAX_CHOICES} more" if len(offered) > MAX_CHOICES else ""
        return "one of " + ", ".join(list(offered)[:MAX_CHOICES]) + more
    schema = schemas(model)[name]
    options = [schema, *schema.get("anyOf", [])]
    if choices := next((o["enum"] for o in options if "enum" in o), None):
        return "one of " + ", ".join(map(str, choices))
    merged: dict[str, Any] = {k: v for o in reversed(options) for k, v in o.items()}
    types = {o.get("type") for o in options}
    noun = (
        "a whole number"
        if "integer" in types
        else "a number"
        if "number" in types
        else "a list"
        if "array" in types
        else "a text"
    )
    low, high = merged.get("minimum"), merged.get("maximum")
    if "exclusiveMinimum" in merged:
        noun += f" above {merged['exclusiveMinimum']:,}" + (
            f" and up to {high:,}" if high is not None else ""
        )
    elif low is not None and high is not None:
        noun += f" from {low:,} to {high:,}"
    if noun == "a text" and "pattern" in merged:
        noun += " of 1 to 40 letters, digits, spaces, points, dashes or underscores"
    if noun == "a list":
        least, most = merged.get("minItems"), merged.get("maxItems", "any number of")
        noun += f" of at most {most} entries" if least is None else f" of {least} to {most} entries"
        entry = merged.get("items", {})
        if {"minimum", "maximum"} <= entry.keys():
            noun += f", whole numbers from {entry['minimum']:,} to {entry['maximum']:,}"
    optional = type(None) in get_args(field.annotation) and not noun.startswith("a text")
    return noun + (" or null" if optional else "")


def _describe_entry(schema: dict[str, Any]) -> str:
    """Describe the entries of a list of numbers; empty for other lists."""
    nouns = {"integer": "a whole number", "number": "a number"}
    if schema.get("type") not in nouns or not {"minimum", "maximum"} <= schema.keys():
        return ""
    return f"{nouns[schema['type']]} from {schema['minimum']:,} to {schema['maximum']:,}"
