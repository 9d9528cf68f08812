"""The contract of every registered agent in every environment that fits, and of the registries."""

from __future__ import annotations

import importlib
import inspect
import itertools
import pkgutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from bandits import agents as agents_package
from bandits import simulators as simulators_package
from bandits.agents import REGISTRY as AGENTS
from bandits.agents import Agent
from bandits.agents.guards.base import Guard
from bandits.agents.guards.stack import GUARDS
from bandits.base.params import Params
from bandits.contract import agents, kinds
from bandits.contract.environments import DEMANDING
from bandits.experiments.experiment import Experiment
from bandits.simulators import REGISTRY as SIMULATORS
from bandits.simulators import Simulator
from tests.contract.worlds import NEURAL
from tests.support import STRESS

LONG = {
    agents.probabilities_are_frequencies_of_choice, agents.probabilities_change_nothing,
    agents.probabilities_belong_to_the_row, agents.explanations_add_up_to_the_scores,
}  # fmt: skip
Check = Callable[[agents.Case], None]


def checks() -> Iterator[Any]:
    """Yield every check of every case.

    Quick are, with an agent's first parameters, the checks in those environments that lead through every path of an
    agent (the long ones in two of them), and the short ones also in every third of the others; with other parameters,
    the short ones in one in turn.
    Slow are, with its first parameters, all others; with other parameters, the long ones in that environment, and all
    in one more. `make stress` runs the rest.
    """
    for kind, cls in AGENTS.items():
        for i, params in enumerate(cls.test_params()):
            own = [c for c in agents.cases(kind, reduced=kind in NEURAL) if c.params == tuple(params.items())]
            paths = [c for c in own if c.environment in DEMANDING]
            for (place, case), check in itertools.product(enumerate(own), agents.CHECKS):
                first = case in paths[::2] or (check not in LONG and (case in paths or place % 3 == 0))
                quick = first if i == 0 else check not in LONG and case == paths[i % len(paths)]
                usual = i == 0 or case in (paths[i % len(paths)], paths[(i + 1) % len(paths)])
                if not (quick or usual or STRESS):
                    continue
                marks = () if quick else pytest.mark.slow
                yield pytest.param(check, case, id=f"{check.__name__}-{case}", marks=marks)


@pytest.mark.parametrize(("check", "case"), list(checks()))
def test_an_agent_fulfils_the_contract(check: Check, case: agents.Case) -> None:
    check(case)


# registries


def concrete(package: Any, base: type) -> set[type]:
    classes: set[type] = set()
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        members = vars(importlib.import_module(module.name)).values()
        classes |= {m for m in members if inspect.isclass(m) and issubclass(m, base) and not inspect.isabstract(m)}
    return {m for m in classes if m.__module__.startswith(package.__name__)}


@pytest.mark.parametrize(("package", "base"), [(agents_package, Agent), (simulators_package, Simulator)])
def test_every_class_is_registered(package: Any, base: type) -> None:
    guards = set(GUARDS.values()) | {Guard}  # they wrap agents
    assert concrete(package, base) - guards == set(package.REGISTRY.values())
    for kind, cls in package.REGISTRY.items():
        assert cls.Params().kind == kind
    assert len({c.title for c in package.REGISTRY.values()}) == len(package.REGISTRY)


@pytest.mark.parametrize("cls", [*AGENTS.values(), *SIMULATORS.values()], ids=lambda cls: cls.__qualname__)
def test_a_class_is_described_and_its_parameters_explained(cls: type[Any]) -> None:
    kinds.class_is_described(cls)
    kinds.parameters_are_frozen_and_explained(cls.Params)


def test_the_parameters_of_an_experiment_are_frozen_and_explained() -> None:
    params: type[Params] = Experiment
    assert params.model_config["frozen"]
    assert params.model_config["extra"] == "forbid"
    for name, field in params.model_fields.items():
        if name != "simulator":
            assert field.title, name
            assert field.description, name
            assert field.description.endswith("."), name
