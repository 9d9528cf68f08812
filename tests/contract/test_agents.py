"""What every agent and every world promises, run on all that are registered."""

from __future__ import annotations

import functools
import importlib
import inspect
import itertools
import pkgutil
from typing import Any

import numpy as np
import pytest

from bandits import agents, simulators
from bandits.agents import Agent
from bandits.base.params import Params
from bandits.base.selection import top_k
from bandits.experiments.experiment import Experiment
from bandits.experiments.history import Trace
from bandits.simulators import Simulator
from tests.contract import worlds
from tests.contract.worlds import ROWS, SMALL_WORLDS, STEPS, WORLDS, capabilities, check, simulator

# an agent's first way through its code meets every world, its other ways those that ask most of it
MOST = {"petshop", "classification", "changing", "cascade"}
PAIRS = [
    pytest.param(kind, params, world, id="-".join(map(str, (kind, *params.values(), world))))
    for kind in agents.REGISTRY
    for way, params in enumerate(agents.REGISTRY[kind].test_params())
    for world in WORLDS
    if agents.REGISTRY[kind].needs <= capabilities(world)
    and (way == 0 or world in (MOST if kind not in worlds.NEURAL else {"petshop", "cascade"}))
]
pairs = pytest.mark.parametrize(("kind", "params", "world"), PAIRS)
each_agent = pytest.mark.parametrize("kind", agents.REGISTRY)


def lane(kind: str, params: dict[str, Any], world: str, rows: tuple[int, ...] = ROWS) -> Any:
    return worlds.make(kind, WORLDS[world], rows=rows, options=SMALL_WORLDS.get(world), **params)


@functools.cache
def _undisturbed(kind: str, params: tuple[tuple[str, Any], ...], world: str) -> Trace:
    return lane(kind, dict(params), world).advance(STEPS)


def undisturbed(kind: str, params: dict[str, Any], world: str) -> Trace:
    """The first steps of a lane that nobody asks anything; several promises speak of them."""
    return _undisturbed(kind, tuple(params.items()), world)


@pairs
def test_every_step_keeps_the_contract(kind: str, params: dict[str, Any], world: str) -> None:
    place = lane(kind, params, world)
    simulator, agent, s = place.simulator, place.agent, place.simulator.spec
    R, K, S = len(ROWS), s.n_candidates, s.slate
    rows, alive = np.arange(R)[:, None], np.ones(R, np.bool_)
    agent.prepare()
    for step in range(STEPS):
        round = simulator.round_at(step)
        scores = agent.scores(round)
        check(scores, "float64", (R, K))
        assert not np.isnan(scores).any()
        slate = top_k(scores, round.available, alive, S)
        check(slate, "int64", (R, S))
        assert alive.all()
        assert all(len(set(shown)) == S for shown in slate.tolist())
        assert round.available[rows, slate].all()
        feedback, truth = simulator.respond(round, slate, simulator.uniforms.at(step))
        check(feedback.rewards, "float64", (R, S))
        check(feedback.examined, "bool", (R, S))
        assert np.isfinite(feedback.rewards).all()
        assert not feedback.rewards[~feedback.examined].any()
        for number in truth:
            check(number, "float64", (R,))
            assert np.isfinite(number).all()
        assert (truth.value <= truth.best_value + 1e-12).all()
        assert (truth.random_value <= truth.best_value + 1e-12).all()
        agent.learn(round, slate, feedback)


@pairs
def test_a_trace_holds_what_was_shown_and_earned(kind: str, params: dict[str, Any], world: str) -> None:
    place, trace = simulator(world), undisturbed(kind, params, world)
    s = place.spec
    check(trace.items, "int64", (STEPS, len(ROWS), s.slate))
    check(trace.segments, "int64", (STEPS, len(ROWS)))
    for column in trace[3:-1]:
        check(column, "float64", (STEPS, len(ROWS)))
        assert np.isfinite(column).all()
    assert trace.alive.all()
    for step in range(STEPS):
        round = place.round_at(step)
        assert np.array_equal(trace.segments[step], round.segments)
        for r in range(len(ROWS)):
            offered = round.items[r, round.available[r]]
            assert set(trace.items[step, r].tolist()) <= set(offered.tolist())
            assert len(set(trace.items[step, r].tolist())) == s.slate
    again = undisturbed("oracle", {}, world)
    np.testing.assert_allclose(again.value, trace.best_value, rtol=1e-12)
    assert np.array_equal(again.rewards, trace.best_rewards)


@pairs
def test_probabilities_are_the_frequencies_of_choice(kind: str, params: dict[str, Any], world: str) -> None:
    """The count of choices minus the sum of their probabilities is a martingale: Freedman's inequality bounds it
    by x with exp(-x^2 / (2 V + 2 x / 3)), V the sum of p (1 - p), at any sample size."""
    exact = lane(kind, params, world).agent.propensity == "exact"
    rows = tuple(range(32)) if exact else ROWS
    place = lane(kind, {**params, **({"epsilon": 0.5} if kind == "epsilon_greedy" else {})}, world, rows)
    agent, simulator, K = place.agent, place.simulator, place.simulator.spec.n_candidates
    surplus, variance = np.zeros(K), np.zeros(K)
    for step in range(125 if exact else STEPS):
        round = simulator.round_at(step)
        p = agent.probabilities(round)
        check(p, "float64", (len(rows), K))
        assert np.allclose(p.sum(axis=1), 1, atol=1e-12)
        assert (p >= 0).all()
        assert not p[~round.available].any()
        shown = place.advance(1).items[0, :, 0]
        chosen = round.items == shown[:, None]
        surplus += (chosen - p).sum(axis=0)
        variance += (p * (1 - p)).sum(axis=0)
        if agent.propensity == "deterministic":
            assert p[chosen].all()
    if exact:
        log_odds = np.log(2 * K / 1e-9)
        limit = log_odds / 3 + np.sqrt((log_odds / 3) ** 2 + 2 * variance * log_odds)
        assert (np.abs(surplus) <= limit).all()


@pairs
def test_asking_for_probabilities_changes_nothing(kind: str, params: dict[str, Any], world: str) -> None:
    asked, traces = lane(kind, params, world), []
    for step in range(STEPS):
        asked.agent.probabilities(asked.simulator.round_at(step))
        traces.append(asked.advance(1))
    assert worlds.same(worlds.join(traces), undisturbed(kind, params, world))


@pairs
def test_an_explanation_adds_up_to_the_scores_and_changes_nothing(
    kind: str, params: dict[str, Any], world: str
) -> None:
    asked = lane(kind, params, world)
    R, K = len(ROWS), asked.simulator.spec.n_candidates
    agent, traces = asked.agent, []
    for step in range(STEPS):
        round = asked.simulator.round_at(step)
        told = agent.explain(round)
        scores = agent.scores(round)
        assert np.array_equal(told.score, scores)
        for part in (told.mean, told.width):
            if part is not None:
                check(part, "float64", (R, K))
        randomised = np.zeros(R, np.bool_) if told.randomised is None else told.randomised
        check(randomised, "bool", (R,))
        if told.how == "greedy":
            assert np.array_equal(told.mean[~randomised], scores[~randomised])
        if told.how in ("bonus", "sample"):
            assert (told.width >= 0).all()
            assert np.broadcast_shapes(np.shape(told.scale), (R, K)) == (R, K)
        if told.how == "bonus":
            known = np.isfinite(told.width)
            assert np.array_equal((told.mean + told.scale * told.width)[known], scores[known])
            assert np.isposinf(scores[~known]).all()
            assert np.array_equal(np.ravel(told.scale), agent.column(told.parameter))
        drawn = list(itertools.islice(agent.redraws(round, np.random.default_rng(step)), 2))
        assert len(drawn) == (2 if agent.propensity == "monte_carlo" else 0)
        for other in drawn:
            check(other, "float64", (R, K))
        traces.append(asked.advance(1))
    assert worlds.same(worlds.join(traces), undisturbed(kind, params, world))


HOW = {"bonus": {"bonus"}, "posterior": {"sample", "score"}, None: {"greedy", "score"}}  # score: of a random start


@pairs
def test_declared_capabilities_are_those_of_the_models(kind: str, params: dict[str, Any], world: str) -> None:
    place = lane(kind, params, world)
    agent, p = place.agent, place.agent.params[0]
    cls = type(agent)
    agent.prepare()
    spectrum = agent.spectrum(place.simulator.bases(bool(cls.spans_arms(p))))
    assert (spectrum is None) == (cls.spans_arms(p) is None)
    if spectrum is not None:  # before any data
        np.testing.assert_allclose(spectrum[~np.isnan(spectrum)], cls.prior_precision(p), rtol=1e-6)
    explained = agent.explain(place.simulator.round_at(0))
    assert explained.how in HOW[cls.uncertainty_of(p)]
    assert (explained.how == "sample") <= (agent.propensity != "deterministic")
    assert (cls.slot_treatment(p) is None) == (not cls.learns)


def plain(value: Any) -> bool:
    if isinstance(value, dict):
        return all(isinstance(k, str) and plain(v) for k, v in value.items())
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "biuf"
    return type(value) in (bool, int, float, str)


@pairs
def test_state_is_arrays_and_plain_values(kind: str, params: dict[str, Any], world: str) -> None:
    place = lane(kind, params, world)
    place.advance(5)
    state = place.state_dict()
    assert all(plain(value) for value in state.values()), {k: type(v) for k, v in state.items()}


@pairs
def test_memory_is_known_before_anything_is_allocated(kind: str, params: dict[str, Any], world: str) -> None:
    place = lane(kind, params, world)
    needed = type(place.agent).memory(place.agent.params[0], place.simulator.spec)
    held = sum(a.nbytes for a in place.agent.state_dict().values() if isinstance(a, np.ndarray))
    assert type(needed) is int
    assert needed * len(ROWS) >= held


# the house itself


def concrete(package: Any, base: type) -> set[type]:
    found: set[type] = set()
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        members = vars(importlib.import_module(module.name)).values()
        found |= {m for m in members if inspect.isclass(m) and issubclass(m, base) and not inspect.isabstract(m)}
    return {m for m in found if m.__module__.startswith(package.__name__)}


@pytest.mark.parametrize(("package", "base"), [(agents, Agent), (simulators, Simulator)])
def test_no_file_is_silently_absent_from_its_registry(package: Any, base: type) -> None:
    assert concrete(package, base) == set(package.REGISTRY.values())
    for kind, cls in package.REGISTRY.items():
        assert cls.Params().kind == kind
        assert cls.title
        assert package is simulators or cls.formula
    assert len({c.title for c in package.REGISTRY.values()}) == len(package.REGISTRY)


PARAMS = [c.Params for r in (agents.REGISTRY, simulators.REGISTRY) for c in r.values()]


@pytest.mark.parametrize("params", [*PARAMS, Experiment], ids=lambda p: p.__qualname__)
def test_parameters_are_frozen_and_explained(params: type[Params]) -> None:
    assert params.model_config["frozen"]
    assert params.model_config["extra"] == "forbid"
    for name, field in params.model_fields.items():
        if name != "kind" and not (params is Experiment and name == "simulator"):
            assert field.title, name
            assert field.description, name
            assert field.description.endswith("."), name
    if params is not Experiment:
        with pytest.raises(ValueError, match="frozen"):
            params().kind = "other"
        assert params.model_validate_json(params().model_dump_json()) == params()
