"""An experiment: validated data, and its content hash."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, Union, get_args

from pydantic import Field, ValidationError, model_validator

from . import agents as _agents
from . import plugins
from . import simulators as _simulators
from .agents import Agent, AgentParams
from .params import Params, content, schemas, setting
from .randomness import block_length
from .refused import Refused as Refused  # whoever reads experiments looks for it here
from .refused import short
from .simulators import Simulator, SimulatorParams
from .simulators.petshop import PetShop
from .trace import History

MEMORY_LIMIT = 4 * 2**30  # bytes one experiment may need
MAX_TEXT = 256_000  # bytes of an experiment's JSON
_SPOKEN = {
    "binary": "rewards of 0 or 1",
    "vectors": "features that are the vectors of user and item",
}  # capabilities whose name alone says too little

T = TypeVar("T")

plugins.load()  # before the kinds are counted
if TYPE_CHECKING:
    AnySimulator = SimulatorParams
    AnyAgent = AgentParams
else:  # the registries are data: adding a kind is adding its line there
    AnySimulator = Annotated[
        Union[tuple(c.Params for c in _simulators.REGISTRY.values())], Field(discriminator="kind")  # noqa: UP007
    ]
    AnyAgent = Annotated[
        Union[tuple(c.Params for c in _agents.REGISTRY.values())], Field(discriminator="kind")  # noqa: UP007
    ]


class Experiment(Params):
    """A simulator, the agents that race in it, for how long, how often and from which seed.

    Raises
    ------
    pydantic.ValidationError
        A ValueError; `refusal` turns it into one sentence.
    """

    simulator: AnySimulator = Field(default_factory=PetShop.Params)
    agents: tuple[AnyAgent, ...] = setting(
        ..., title="Agents", help="Who races.", min_length=1, max_length=12, strict=False
    )
    steps: int = setting(20_000, title="Steps", help="Decisions per run.", symbol="T", ge=1, le=10_000_000)
    replications: int = setting(16, title="Runs", help="Independent runs behind every band.", symbol="R", ge=1, le=4096)
    seed: int = setting(42, title="Seed", help="Every random number follows from it.", ge=0, le=2**53 - 1)

    @property
    def labels(self) -> tuple[str, ...]:
        """Unique names of the agents: their labels, or their kinds' titles, numbered where they repeat."""
        taken = {a.label for a in self.agents if a.label}
        names = []
        for agent in self.agents:
            name = title = agent.label or _agents.REGISTRY[agent.kind].title
            n = 1
            while not agent.label and name in taken:
                n += 1
                name = f"{title} {n}"
            taken.add(name)
            names.append(name)
        return tuple(names)

    @property
    def hash(self) -> str:
        """SHA-256 of the canonical JSON: equal experiments have equal numbers."""
        parts = {"simulator": content(self.simulator), "agents": [content(agent) for agent in self.agents]}
        canonical = json.dumps({**self.model_dump(mode="json"), **parts}, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()

    def simulator_class(self) -> type[Simulator]:
        """The registered class of the world."""
        return _simulators.REGISTRY[self.simulator.kind]

    def agent_class(self, index: int) -> type[Agent]:
        """The registered class of one agent."""
        return _agents.REGISTRY[self.agents[index].kind]

    def empty_history(self) -> History:
        """What one agent of it will leave behind, before the first step; builds no world."""
        cls = self.simulator_class()
        world, groups = cls.describe(self.simulator), len(cls.segment_names())
        return History(self.steps, self.replications, world.n_items, groups, shelf=world.shelf)

    def memory(self) -> int:
        """Bytes it will need, by arithmetic."""
        world = self.simulator_class().describe(self.simulator)
        layouts = self.replications if getattr(self.simulator, "layout", "shared") == "per_row" else 1
        groups = len(self.simulator_class().segment_names())
        total = len(self.agents) * self.simulator_class().memory(self.simulator, self.replications)
        total += self.simulator_class().shared_memory(self.simulator, layouts)
        for i, agent in enumerate(self.agents):
            cls = self.agent_class(i)
            dice = 8 * block_length(world.n_candidates) * world.n_candidates + 16 * block_length(1)
            per_row = cls.memory(agent, world) + dice + 64 * world.n_candidates * (1 + world.n_stored)
            total += self.replications * per_row
            total += History.memory(self.steps, self.replications, world.n_items, groups, shelf=world.shelf)
            total += cls.shared_memory(agent, world, layouts)
        return total

    @model_validator(mode="after")
    def _possible(self) -> Experiment:
        given = [a.label for a in self.agents if a.label]
        if twice := next((label for label in given if given.count(label) > 1), None):
            raise ValueError(f"agents: the label '{twice}' is used twice; every agent needs its own")
        world = self.simulator_class().describe(self.simulator)
        for i, agent in enumerate(self.agents):
            if missing := self.agent_class(i).requires(agent) - world.offers:
                raise ValueError(
                    f"agents.{i}: {agent.kind} needs {', '.join(_SPOKEN.get(m, m) for m in sorted(missing))}, "
                    f"which {self.simulator.kind} does not offer"
                )
        if (need := self.memory()) > MEMORY_LIMIT:
            raise ValueError(
                f"the experiment would need about {need / 2**30:,.1f} GiB of memory, "
                f"{MEMORY_LIMIT / 2**30:.0f} GiB are allowed: use fewer arms ({world.n_items:,}), "
                f"features ({world.n_features:,}), replications ({self.replications:,}) or smaller networks"
            )
        return self


def read(source: str | bytes | dict[str, Any]) -> Experiment:
    """An experiment from JSON text, as a file, a link or an upload brings it, or from plain data.

    Raises
    ------
    Refused
        One sentence: what, where, allowed range.
    """
    return parse(source, "experiment", Experiment.model_validate)


def parse(source: str | bytes | dict[str, Any], what: str, validate: Callable[[Any], T]) -> T:
    """Something validated from JSON text that anybody may have written, or from plain data.

    Parameters
    ----------
    source : str, bytes or dict
    what : str
        What it should be, in a word.
    validate : callable

    Raises
    ------
    Refused
    """
    try:
        text = json.dumps(source) if isinstance(source, dict) else source
        if len(text) > MAX_TEXT:
            raise Refused(f"the {what} has {len(text):,} bytes; at most {MAX_TEXT:,} are allowed")
        data = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)
        return validate(data)
    except ValidationError as error:
        raise Refused(refusal(error)) from None
    except json.JSONDecodeError as error:
        raise Refused(f"not JSON: {error.msg} at line {error.lineno}, column {error.colno}") from None
    except RecursionError:
        raise Refused(f"not a readable {what}: nested too deeply") from None
    except UnicodeDecodeError:
        raise Refused("not JSON: the text is not UTF-8") from None
    except (TypeError, ValueError) as error:
        raise error if isinstance(error, Refused) else Refused(f"not a readable {what}: {error}") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for key, value in pairs:
        if key in out:
            raise Refused(f"the key '{short(key)}' appears twice")
        out[key] = value
    return out


def _no_constant(name: str) -> Any:
    raise Refused(f"{name} is not a number that can be used; numbers must be finite")


def refusal(error: ValidationError) -> str:
    """The first complaint as one sentence: field, value, allowed range."""
    first = error.errors(include_url=False)[0]
    kinds = {*_agents.REGISTRY, *_simulators.REGISTRY}
    path: list[str] = []
    for i, part in enumerate(first["loc"]):
        under_union = i > 0 and (first["loc"][i - 1] == "simulator" or isinstance(first["loc"][i - 1], int))
        if not (part in kinds and under_union):
            path.append(str(part))
    where, kind, context = ".".join(map(short, path)) or "the experiment", first["type"], first.get("ctx", {})
    if kind == "value_error":
        return str(context["error"])
    if kind in ("missing", "union_tag_not_found"):
        missing = where if kind == "missing" else f"{where}.kind"
        return f"{missing} is missing"
    if kind == "extra_forbidden":
        return f"{where} is not a known field" + _known(path)
    value = short(first["input"])
    if kind == "union_tag_invalid":
        return f"{where}.kind is '{short(context['tag'])}'; it must be one of {_kinds(path)}"
    if kind in ("model_type", "model_attributes_type"):
        return f"{where} is {value}; it must be an object of names and values"
    if expected := allowed(path, error):
        return f"{where} is {value}; it must be {expected}"
    return f"{where} is {value}; {first['msg'].lower().replace('input should', 'it must')}"


def _kinds(path: list[str]) -> str:
    registry = _simulators.REGISTRY if path[:1] == ["simulator"] else _agents.REGISTRY
    return ", ".join(registry)


def _known(path: list[str]) -> str:
    return "" if len(path) > 1 else f"; known are {', '.join(Experiment.model_fields)}"


def allowed(path: list[str], error: ValidationError) -> str:
    """The allowed values of the field at ``path``, in words; empty if nothing better than pydantic's is known."""
    location = error.errors(include_url=False)[0]["loc"]
    depth = {"simulator": 1, "agents": 2}.get(path[0], 0) if len(path) > 1 else 0
    model: type[Params] | None = Experiment
    if depth:
        registry: dict[str, Any] = _simulators.REGISTRY if depth == 1 else _agents.REGISTRY
        found = registry.get(str(location[depth])) if len(location) > depth else None
        model = found.Params if found else None
    if model is None or len(path) != depth + 1 or path[depth] not in model.model_fields:
        return ""
    return describe_range(model, path[depth])


def describe_range(model: type[Params], name: str) -> str:
    """What a field accepts, in words: 'a number from 0 to 10'."""
    field = model.model_fields[name]
    if (offered := model.choices(name)) is not None:
        more = f" and {len(offered) - 12} more" if len(offered) > 12 else ""
        return "one of " + ", ".join(list(offered)[:12]) + more
    schema = schemas(model)[name]
    options = [schema, *schema.get("anyOf", [])]
    if choices := next((o["enum"] for o in options if "enum" in o), None):
        return "one of " + ", ".join(map(str, choices))
    merged: dict[str, Any] = {k: v for o in reversed(options) for k, v in o.items()}
    types = {o.get("type") for o in options}
    noun = (
        "a whole number" if "integer" in types else "a number" if "number" in types
        else "a list" if "array" in types else "a text"
    )  # fmt: skip
    low, high = merged.get("minimum"), merged.get("maximum")
    if "exclusiveMinimum" in merged:
        noun += f" above {merged['exclusiveMinimum']:,}" + (f" and up to {high:,}" if high is not None else "")
    elif low is not None and high is not None:
        noun += f" from {low:,} to {high:,}"
    if noun == "a text" and "pattern" in merged:
        noun += " of 1 to 40 letters, digits, spaces, points, dashes or underscores"
    if noun == "a list":
        noun += f" of {merged.get('minItems', 1)} to {merged.get('maxItems', 'any number of')} entries"
        entry = merged.get("items", {})
        if {"minimum", "maximum"} <= entry.keys():
            noun += f", whole numbers from {entry['minimum']:,} to {entry['maximum']:,}"
    optional = type(None) in get_args(field.annotation) and not noun.startswith("a text")
    return noun + (" or null" if optional else "")
