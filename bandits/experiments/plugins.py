"""Simulators and agents from files of the user: ``BANDITS_PLUGINS`` lists Python files, separated like a PATH.

Every process that imports the package loads them, workers included.
"""

from __future__ import annotations

import importlib.util
import inspect
import os
import sys
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from bandits.agents import REGISTRY as AGENTS
from bandits.agents import Agent
from bandits.base.errors import UserError
from bandits.simulators import REGISTRY as SIMULATORS
from bandits.simulators import Simulator


@cache
def load() -> None:
    """Import each file once, and add the kinds it defines at the end of the registries.

    Raises
    ------
    UserError
        A file is not there, or one of its kinds is there already.
    """
    for name in filter(None, os.environ.get("BANDITS_PLUGINS", "").split(os.pathsep)):
        module = _imported(Path(name))
        _add(module, Simulator, SIMULATORS)
        _add(module, Agent, AGENTS)


def _imported(path: Path) -> ModuleType:
    name = f"bandits_plugin_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise UserError(f"the plug-in {path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # where pydantic looks for the names in annotations
    spec.loader.exec_module(module)
    return module


def _add(module: ModuleType, base: type[Any], registry: dict[str, Any]) -> None:
    for cls in vars(module).copy().values():
        own = inspect.isclass(cls) and issubclass(cls, base) and cls.__module__ == module.__name__
        if not own or inspect.isabstract(cls):
            continue
        kind = str(cls.Params.model_fields["kind"].default)
        if kind in registry:
            raise UserError(f"the plug-in {module.__file__} brings the kind '{kind}', which is there already")
        registry[kind] = cls
