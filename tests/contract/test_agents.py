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
from bandits.contract import agents, expectations
from bandits.contract.environments import DEMANDING
from bandits.experiments.experiment import Experiment
from bandits.simulators import REGISTRY as SIMULATORS
from bandits.simulators import Simulator
from tests.contract.worlds import NEURAL
from tests.support import STRESS

LONG = {
    agents.probabilities_are_frequencies_of_choice,
    agents.probabilities_change_nothing,
    agents.probabilities_belong_to_the_row,
    agents.explanations_add_up_to_the_scores,
}
Check = Callable[[agents.Case], None]


def checks() -> Iterator[Any]:
    """Yield every check of every case.

    Quick are, with an agent's first parameters, the short checks in those environments that lead
    through every path of an agent, and the long ones in one of these in turn; with other
    parameters, every second short check in one of these in turn. Slow are, with its first
    parameters, all checks but the longest in every eleventh environment; with other parameters, the
    other short checks and every second long one in the environment in turn. `make stress` runs the
    rest."""
    for turn, (kind, cls) in enumerate(AGENTS.items()):
        for i, params in enumerate(cls.test_params()):
            own = [
                c
                for c in agents.cases(kind, reduced=kind in NEURAL)
                if c.params == tuple(params.items())
            ]
            paths = [c for c in own if c.environment in DEMANDING] or own
            next_path = paths[(turn + i) % len(paths)]
            for (place, case), (number, check) in itertools.product(
                enumerate(own), enumerate(agents.CHECKS)
            ):
                if i == 0:
                    quick = case == next_path if check in LONG else case in paths
                    usual = (turn + place) % 11 == 0
                    # the longest check: once for each kind is enough
                    usual &= check is not agents.probabilities_are_frequencies_of_choice
                else:
                    quick = check not in LONG and case == next_path and (i + number) % 2 == 0
                    usual = case == next_path
                    usual &= check not in LONG or (turn + i + number) % 2 == 0
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
        classes |= {
            m
            for m in members
            if inspect.isclass(m) and issubclass(m, base) and not inspect.isabstract(m)
        }
    return {m for m in classes if m.__module__.startswith(package.__name__)}


@pytest.mark.parametrize(
    ("package", "base"), [(agents_package, Agent), (simulators_package, Simulator)]
)
def test_every_class_is_registered(package: Any, base: type) -> None:
    # they wrap agents
    guards = set(GUARDS.values()) | {Guard}
    found = concrete(package, base) - guards
    # a base class names no kind
    bases = {cls for cls in found if cls.Params.model_fields["kind"].is_required()}
    assert found - bases == set(package.REGISTRY.values())
    for kind, cls in package.REGISTRY.items():
        assert cls.Params().kind == kind
    assert len({c.title for c in package.REGISTRY.values()}) == len(package.REGISTRY)


@pytest.mark.parametrize(
    "cls", [*AGENTS.values(), *SIMULATORS.values()], ids=lambda cls: cls.__qualname__
)
def test_a_class_is_described_and_its_parameters_explained(cls: type[Any]) -> None:
    expectations.class_is_described(cls)
    expectations.parameters_are_frozen_and_explained(cls.Params)


def test_the_parameters_of_an_experiment_are_frozen_and_explained() -> None:
    params: type[Params] = Experiment
    assert params.model_config["frozen"]
    assert params.model_config["extra"] == "forbid"
    for name, field in params.model_fields.items():
        if name != "simulator":
            assert field.title, name
            assert field.description, name
            assert field.description.endswith("."), name
