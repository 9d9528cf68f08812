"""Plug-ins: agents and simulators from outside the package.

They are found through the entry points ``bandits.agents`` and ``bandits.simulators`` of installed
packages, and in the Python files that ``BANDITS_PLUGINS`` lists, separated as in ``PATH``. Every
process that imports `bandits.experiments` loads them once, worker processes included, because they
inherit the environment.

A plug-in that cannot be loaded is reported in one sentence, in `errors` and on standard error; the
built-in kinds and the other plug-ins still work. Nothing of a file with an error is registered."""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import logging
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterator
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, NamedTuple, get_args, get_origin

from bandits.agents import REGISTRY as AGENTS
from bandits.agents import Agent, AgentParams
from bandits.base.errors import UserError
from bandits.simulators import REGISTRY as SIMULATORS
from bandits.simulators import Simulator, SimulatorParams

VARIABLE = "BANDITS_PLUGINS"
_EXPERIMENT = "bandits.experiments.experiment"
_KIND = re.compile("[a-z][a-z0-9_]{0,39}")
_log = logging.getLogger("bandits")

errors: list[str] = []
"""One sentence for each plug-in that could not be loaded."""
# by "agent KIND" or "simulator KIND": where a plug-in's kind comes from
_sources: dict[str, str] = {}


class _Group(NamedTuple):
    noun: str
    entry_points: str
    base: type[Any]
    params: type[Any]
    registry: dict[str, Any]


_GROUPS = (
    _Group("simulator", "bandits.simulators", Simulator, SimulatorParams, SIMULATORS),
    _Group("agent", "bandits.agents", Agent, AgentParams, AGENTS),
)


@cache
def load() -> None:
    """Load all plug-ins and register their kinds after the built-in ones."""
    for group in _GROUPS:
        for point in entry_points(group=group.entry_points):
            source = f"{point.value} (entry point {point.name})"
            try:
                target = _execute(source, point.load)
                classes = list(classes_of(target)) if isinstance(target, ModuleType) else [target]
                register(classes, source)
            except UserError as error:
                _report(error)
    for name in filter(None, os.environ.get(VARIABLE, "").split(os.pathsep)):
        try:
            register(load_file(Path(name)), name)
        except UserError as error:
            _report(error)


def add(path: Path) -> list[str]:
    """Register the kinds of a file in this process and in those that it starts, and return them.

    A file that was registered before is read again: its kinds are replaced.

    Raises
    ------
    UserError
        The file does not exist, cannot be imported, or a kind is refused; nothing changes then.
    """
    source = str(path.resolve())
    former = [
        (group, kind, group.registry.pop(kind))
        for group in _GROUPS
        for noun, kind in kinds_of(source)
        if noun == group.noun
    ]
    try:
        classes = load_file(path)
        if not classes:
            raise UserError(f"the plug-in {path} defines no agent and no simulator")
        register(classes, source)
    except UserError:
        for group, kind, cls in former:
            group.registry[kind] = cls
        raise
    # worker processes inherit it
    files = [f for f in os.environ.get(VARIABLE, "").split(os.pathsep) if f and f != source]
    os.environ[VARIABLE] = os.pathsep.join([*files, source])
    return [cls.Params.model_fields["kind"].default for cls in classes]


def load_file(path: Path) -> list[type[Any]]:
    """Import a plug-in file and return the agents and simulators that it defines, without
    registering them.

    Raises
    ------
    UserError
        The file does not exist or cannot be imported.
    """
    if not path.is_file():
        raise UserError(f"the plug-in {path} does not exist")
    # two files may have the same name
    place = hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:8]
    name = f"bandits_plugin_{path.stem}_{place}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or (loader := spec.loader) is None:
        raise UserError(f"the plug-in {path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    # where pydantic looks for the names in annotations
    sys.modules[name] = module
    _execute(str(path), lambda: loader.exec_module(module), path)
    return list(classes_of(module))


def classes_of(module: ModuleType) -> Iterator[type[Any]]:
    """Yield the agents and simulators that a module itself defines, except ``_private`` classes.

    Abstract classes are yielded only if they name a kind: `register` refuses these, because a
    method is missing."""
    for name, cls in list(vars(module).items()):
        own = (
            inspect.isclass(cls) and cls.__module__ == module.__name__ and not name.startswith("_")
        )
        if (
            own
            and issubclass(cls, (Agent, Simulator))
            and (not inspect.isabstract(cls) or _names_a_kind(cls))
        ):
            yield cls


def _names_a_kind(cls: type[Any]) -> bool:
    field = getattr(vars(cls).get("Params"), "model_fields", {}).get("kind")
    return field is not None and get_origin(field.annotation) is Literal


def register(classes: list[type[Any]], source: str) -> None:
    """Add classes to the registries: all of them, or none if one of them is refused.

    Raises
    ------
    UserError
        A class is no agent or simulator, its kind is invalid, or another agent or simulator has
        that kind.
    """
    accepted: list[tuple[_Group, str, type[Any]]] = []
    for cls in classes:
        group = next((g for g in _GROUPS if inspect.isclass(cls) and issubclass(cls, g.base)), None)
        if group is None:
            raise UserError(f"the plug-in {source}: {cls!r} is neither an Agent nor a Simulator")
        kind = _kind_of(cls, group, source)
        if kind in group.registry or any((g, k) == (group, kind) for g, k, _ in accepted):
            other = _sources.get(f"{group.noun} {kind}")
            owner = (
                f"the plug-in {other} defines already" if other else f"is a built-in {group.noun}"
            )
            owner = owner if kind in group.registry else "it defines twice"
            raise UserError(
                f"the plug-in {source} defines the kind '{kind}', which {owner}; choose another "
                "name"
            )
        accepted.append((group, kind, cls))
    for group, kind, cls in accepted:
        cls.Params.source_digest = _digest(cls)
        group.registry[kind] = cls
        _sources[f"{group.noun} {kind}"] = source


def kinds_of(source: str) -> list[tuple[str, str]]:
    """Return the kinds that a plug-in has registered, as pairs of "agent" or "simulator" and the
    kind.
    """
    return [
        (noun, kind)
        for name, of in _sources.items()
        if of == source
        for noun, _, kind in [name.partition(" ")]
    ]


def digests() -> dict[str, str]:
    """Return a digest of the source of each registered plug-in, by kind."""
    return {
        f"{group.noun} {kind}": cls.Params.source_digest
        for group in _GROUPS
        for kind, cls in group.registry.items()
        if cls.Params.source_digest
    }


def _kind_of(cls: type[Any], group: _Group, source: str) -> str:
    params: Any = getattr(cls, "Params", None)
    if not (isinstance(params, type) and issubclass(params, group.params)):
        raise UserError(
            f"the plug-in {source}: {cls.__name__} needs a class Params({group.params.__name__})"
        )
    field = cls.Params.model_fields["kind"]
    values = get_args(field.annotation) if get_origin(field.annotation) is Literal else ()
    if values != (field.default,) or not _KIND.fullmatch(str(field.default)):
        raise UserError(
            f'the plug-in {source}: {cls.__name__}.Params needs a line like kind: Literal["my_{group.noun}"] = '  # noqa: E501
            f'"my_{group.noun}", in lower-case letters, digits and underscores'
        )
    if not isinstance(getattr(cls, "title", None), str):
        raise UserError(f"the plug-in {source}: {cls.__name__} needs a title")
    if missing := sorted(getattr(cls, "__abstractmethods__", ())):
        raise UserError(
            f"the plug-in {source}: {cls.__name__} needs the method {' and '.join(missing)}"
        )
    return str(field.default)


def _execute(source: str, action: Callable[[], Any], path: Path | None = None) -> Any:
    """Run code of a plug-in and turn every exception into one sentence."""
    blocked = _EXPERIMENT not in sys.modules
    # it is created from the registries: an import now would leave out all plug-ins that follow
    if blocked:
        sys.modules[_EXPERIMENT] = None  # type: ignore[assignment]
    try:
        return action()
    except (Exception, SystemExit) as error:  # noqa: BLE001
        if blocked and isinstance(error, ImportError) and error.name == _EXPERIMENT:
            message = "imports bandits.experiments while it is loaded; do that in a function"
            raise UserError(f"the plug-in {source} {message}") from None
        lines = [
            f.lineno
            for f in traceback.extract_tb(error.__traceback__)
            if path and f.filename == str(path)
        ]
        line = error.lineno if isinstance(error, SyntaxError) else lines[-1] if lines else None
        at = f" (line {line})" if line else ""
        # its text would repeat the line
        text = error.msg if isinstance(error, SyntaxError) else error
        raise UserError(
            f"the plug-in {source} cannot be loaded: {type(error).__name__}: {text}{at}"
        ) from None
    finally:
        if blocked:
            del sys.modules[_EXPERIMENT]


def _digest(cls: type[Any]) -> str:
    file = inspect.getsourcefile(cls)
    return hashlib.sha256(Path(file).read_bytes()).hexdigest()[:16] if file else "unknown"


def _report(error: UserError) -> None:
    errors.append(str(error))
    _log.warning("%s", error)
