"""The service: answers, rewards, recovery, versions, fallback."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bandits.base.errors import UserError
from bandits.policy import Policy
from bandits.serving.distributed import opened
from bandits.serving.registry import Aliases, Registry
from bandits.serving.service import Service, UnknownDecisionError
from bandits.serving.settings import ServiceParams, stored

ITEMS = ["a", "b", "c"]


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.time = 1_000_000.0

    def __call__(self) -> float:
        return self.time


def policy(**params: Any) -> bytes:
    return Policy({"kind": "linucb"} | params, ITEMS, {"x": "number", "y": "number"}).to_bytes()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    registry = Registry(tmp_path / "registry")
    registry.register(policy(), {})
    registry.promote(1)
    return tmp_path


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def service(folder: Path, clock: Clock) -> Iterator[Service]:
    opened = Service(folder, now=clock)
    yield opened
    opened.log.close()


def drive(service: Service, n: int, seed: int = 0) -> None:
    """Decisions with rewards that depend on item and context, a third of them late or missing."""
    rng, waiting = np.random.default_rng(seed), []
    for i in range(n):
        context = {"x": float(rng.normal()), "y": float(rng.normal())}
        answer = service.decide(context, event_id=f"{seed}-{i}", user=f"user {i % 50}")
        good = answer.item == ("a" if context["x"] > 0 else "b")
        waiting.append((answer.event_id, float(rng.random() < (0.8 if good else 0.2))))
        if len(waiting) > 5 and rng.random() < 0.9:
            service.reward(*waiting.pop(int(rng.integers(len(waiting)))))


def states(service: Service) -> dict[int, bytes]:
    return {number: policy.to_bytes() for number, policy in service._policies.items()}


COMPILED = """
import sys
from pathlib import Path
from numba.core.dispatcher import Dispatcher
from bandits.serving.service import Service

names, original = [], Dispatcher.compile

def compile(dispatcher, signature):
    names.append(dispatcher.py_func.__qualname__)
    return original(dispatcher, signature)

Dispatcher.compile = compile
service = Service(Path(sys.argv[1]))
service.warm_up()
before = len(names)
service.decide({"x": 1.0, "y": -1.0}, event_id="e")
service.reward("e", 1.0)
service.decide({"x": 1.0, "y": -1.0}, ["b", "c"])
service.close()
print(before, *names[before:], service.problem)
"""


@pytest.mark.parametrize("kind", ["linucb", "epsilon_greedy", "sgd_ts", "ucb1"])
def test_no_request_waits_until_something_is_compiled(tmp_path: Path, kind: str) -> None:
    registry = Registry(tmp_path / "registry")
    registry.promote(registry.register(policy(kind=kind), {}))
    # a process that has compiled nothing
    run = [sys.executable, "-c", COMPILED, str(tmp_path)]
    before, *later = subprocess.run(run, capture_output=True, check=True, text=True).stdout.split()
    assert int(before) > 0
    assert later == []


def test_a_policy_that_cannot_be_warmed_up_is_stated(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = states(service)
    service.warm_up()
    assert (states(service), service.problem) == (before, "")

    def diverge(_: Policy) -> None:
        raise UserError("LinUCB has diverged")

    monkeypatch.setattr(Policy, "warm_up", diverge)
    service.warm_up()
    assert service.problem == "version 1: UserError: LinUCB has diverged"


def test_a_service_learns(service: Service) -> None:
    drive(service, 400)
    right = [service.decide({"x": x, "y": 0.0}).item for x in (2.0, -2.0)]
    assert right == ["a", "b"]
    assert service.counts["champion"] == 402
    assert service.counts["learned"] == service.counts["rewards"] > 300


def test_an_event_id_gets_one_answer(service: Service) -> None:
    first = service.decide({"x": 1.0, "y": 0.0}, event_id="once")
    assert service.decide({"x": -9.0, "y": 5.0}, ["c"], event_id="once") == first
    service._answers.clear()
    assert service.decide({"x": 1.0, "y": 0.0}, event_id="once") == first
    assert service.counts["duplicates"] == 2
    assert len([e for e in service.log.find("once") if e.kind == "decision"]) == 1


def test_rewards_are_learned_within_the_window_alone(service: Service, clock: Clock) -> None:
    for name in ("early", "late"):
        service.decide({"x": 1.0, "y": 0.0}, event_id=name)
    assert service.reward("early", 1.0)
    # a second one is logged
    assert not service.reward("early", 1.0)
    clock.time += service.params.reward_window + 1
    assert not service.reward("late", 1.0)
    assert service.counts["learned"] == 1
    assert service.counts["late"] == 2
    with pytest.raises(UnknownDecisionError, match="no decision 'never'"):
        service.reward("never", 1.0)
    service.decide({"x": 1.0, "y": 0.0}, event_id="new")
    with pytest.raises(UserError, match="finite number"):
        service.reward("new", float("nan"))


@pytest.mark.parametrize(
    ("options", "learned"),
    [({"several": "sum"}, [0.75]), ({"several": "sum", "default_reward": -1.0}, [0.75, -1.0])],
)
def test_sums_and_defaults_are_learned_at_the_end_of_the_window(
    folder: Path, clock: Clock, options: dict[str, Any], learned: list[float]
) -> None:
    service = Service(folder, ServiceParams(reward_window=10.0, **options), now=clock)
    for name in ("two", "none"):
        service.decide({"x": 1.0, "y": 0.0}, event_id=name)
    service.reward("two", 0.5)
    # sent again with its id, it counts once
    for _ in range(2):
        assert service.reward("two", 0.25, reward_id="second")
    assert service.counts["duplicates"] == 1
    assert service.counts["learned"] == 0
    clock.time += 11
    service.tick()
    assert service.counts["learned"] == len(learned)
    settled = [e.body["reward"] for e in service.log.find("two") if e.kind == "settled"]
    assert settled == learned[:1]
    service.log.close()


@pytest.mark.parametrize("snapshot_at", [None, 0, 150])
def test_a_killed_service_continues_with_the_same_bits(
    service: Service, folder: Path, clock: Clock, snapshot_at: int | None
) -> None:
    drive(service, 150)
    if snapshot_at is not None:
        service.snapshot()
    service.registry.register(policy(alpha=1.5), {})
    service.registry.point("challenger", 2)
    service.tick()
    drive(service, 150, seed=1)
    expected, rollout = states(service), service.rollout.to_data()
    # no snapshot at the end, as after a kill
    service.log.close()
    again = Service(folder, now=clock)
    assert states(again) == expected
    assert again.rollout.to_data() | {"served": 0} == rollout | {"served": 0}
    assert again.aliases == Aliases(champion=1, challenger=2)
    assert again._open == service._open
    # an answer is repeated after the restart too
    assert again.decide({"x": 0.0, "y": 0.0}, event_id="1-7").item == service._answers["1-7"].item
    again.log.close()


def test_versions_are_swapped_without_losing_open_decisions(service: Service) -> None:
    answer = service.decide({"x": 1.0, "y": 0.0})
    service.registry.register(policy(alpha=0.0), {})
    service.registry.promote(2)
    assert service.refresh()
    assert not service.refresh()
    assert service.decide({"x": 1.0, "y": 0.0}).version == 2
    assert service.reward(answer.event_id, 1.0)
    assert service.registry.rollback() == Aliases(champion=1, previous=2)
    service.tick()
    assert service.decide({"x": 1.0, "y": 0.0}).version == 1


def test_a_challenger_that_is_worse_is_rolled_back(folder: Path, clock: Clock) -> None:
    params = ServiceParams.model_validate({"rollout": {"steps": [0.5], "min_decisions": 100}})
    service = Service(folder, params, now=clock)
    assert service.judge() == "no challenger is rolled out"
    service.registry.register(policy(), {})
    service.registry.point("challenger", 2)
    service.refresh()
    for i in range(3_000):
        answer = service.decide({"x": 1.0, "y": 0.0}, user=f"user {i}")
        service.reward(answer.event_id, float(answer.arm == "champion"))
        if i % 100 == 99 and service.judge().startswith("roll back: the challenger is worse"):
            break
    assert service.aliases == Aliases(champion=1)
    verdicts = [e.body for e in service.log.events() if e.kind == "verdict"]
    service.store.flush()
    assert {service.decide({"x": 1.0, "y": 0.0}, user=f"user {i}").arm for i in range(50)} == {
        "champion"
    }
    verdicts = [e.body for e in service.log.events() if e.kind == "verdict"]
    assert [verdict["action"] for verdict in verdicts] == ["roll back"]
    service.log.close()


def test_a_broken_model_is_replaced_by_the_fallback(service: Service) -> None:
    drive(service, 100)
    agent = service._policies[1].agent
    state = agent.state_dict()
    agent.load_state_dict(
        {n: np.full_like(v, np.nan) if v.dtype == np.float64 else v for n, v in state.items()}
    )
    answer = service.decide({"x": 1.0, "y": 0.0})
    assert answer.arm == "fallback"
    assert answer.propensity == 1.0
    assert service.problem.startswith("version 1: ")
    assert service.counts["fallback"] == 1
    assert service.reward(answer.event_id, 1.0)
    service.registry.register(policy(), {})
    service.registry.promote(2)
    service.tick()
    assert service.decide({"x": 1.0, "y": 0.0}).arm == "champion"
    assert service.problem == ""


def test_slow_decisions_pause_the_policy(folder: Path, clock: Clock) -> None:
    params = ServiceParams(budget=1e-9, pause=10.0, fallback="random")
    service = Service(folder, params, now=clock)
    arms = [service.decide({"x": 1.0, "y": 0.0}).arm for _ in range(7)]
    assert arms == ["champion"] * 5 + ["fallback"] * 2
    assert service.problem.startswith("5 decisions in a row took longer than")
    clock.time += 61
    assert service.decide({"x": 1.0, "y": 0.0}).arm == "champion"
    assert service.problem == ""
    service.log.close()


def test_a_shadow_decides_without_being_shown(service: Service, folder: Path) -> None:
    service.registry.register(policy(alpha=2.0), {})
    service.registry.point("shadow", 2)
    service.refresh()
    drive(service, 60)
    assert service.counts["champion"] == service.counts["shadow"] == 60
    assert 0 < service.counts["shadow_agrees"] < 60
    expected = states(service)
    service.log.close()
    again = Service(folder)
    assert {number: again._policies[number].to_bytes() for number in expected} == expected
    again.log.close()


def test_what_does_not_fit_is_refused_and_not_logged(service: Service) -> None:
    for context, candidates in (({"x": 1.0}, None), ({"x": 1.0, "y": "?"}, None), (None, ["d"])):
        with pytest.raises(UserError):
            service.decide(context, candidates, event_id="wrong")
    assert service.log.find("wrong") == []
    assert service.counts["champion"] == service.counts["fallback"] == 0


def test_what_cannot_be_logged_is_refused_before_a_number_is_drawn(tmp_path: Path) -> None:
    registry = Registry(tmp_path / "registry")
    registry.register(Policy("lints", ITEMS, 2).to_bytes(), {})
    registry.promote(1)
    service = Service(tmp_path)
    unknown = np.array([np.nan, 2.0])
    assert service.decide(unknown, event_id="unknown").arm == "champion"
    before = states(service)
    for context, candidates in (([np.inf, 2.0], None), ([1.0, 2.0], [np.int64(1)])):
        with pytest.raises(UserError):
            service.decide(context, candidates)
    assert states(service) == before
    service.log.close()
    again = Service(tmp_path)
    assert states(again) == before
    assert again.log.find("unknown")[0].body["context"] == [None, 2.0]
    again.log.close()


def test_a_restart_tolerates_what_a_running_service_does(service: Service) -> None:
    drive(service, 5)
    service.registry.register(
        Policy("logistic_ts", ITEMS, {"x": "number"}, redraws=0).to_bytes(), {}
    )
    service.registry.point("challenger", 2)
    with pytest.raises(UserError, match="version 2 states no propensities"):
        service.refresh()
    service.close()
    again = Service(service.folder, now=service._now)
    assert again.problem.startswith("version 2 states no propensities")
    assert again.decide({"x": 1.0, "y": 0.0}).version == 1
    again.log.close()


def test_a_decision_is_explained_without_changing_anything(service: Service) -> None:
    drive(service, 50)
    before = states(service)
    found = service.explain("0-3")
    assert found["decision"]["item"] == service._answers["0-3"].item
    assert set(found["scores_now"]) == set(ITEMS)
    assert states(service) == before
    with pytest.raises(UnknownDecisionError):
        service.explain("never")


def test_an_old_version_is_a_problem_until_a_newer_one_comes(folder: Path) -> None:
    registry, passed = Registry(folder / "registry"), 9.0
    made = registry.newest()
    service = Service(folder, ServiceParams(max_age=10.0), now=lambda: made + passed)
    assert service.problems() == []
    passed = 11.0
    assert service.problems() == [
        "the newest version is 11 s old, and 10 s are allowed: the trainer may be dead"
    ]
    registry.register(policy(), {})
    made = registry.newest()
    passed = 0.0
    assert service.problems() == []
    service.close()


def test_earlier_days_are_moved_while_the_service_runs(
    service: Service, folder: Path, clock: Clock
) -> None:
    for day in range(4):
        service.decide({"x": 1.0, "y": 0.0}, event_id=f"e{day}", user=f"user-{day % 2}")
        service.tick()
        if service._moving.is_alive():
            service._moving.join()
        if day:
            # within its window, the decision of yesterday is there
            assert service.reward(f"e{day - 1}", 1.0)
        clock.time += 80_000
    service.store._file.execute("PRAGMA query_only = ON")
    service.tick()
    service._moving.join()
    assert "events of earlier days cannot be moved" in service.problem
    service.store._file.execute("PRAGMA query_only = OFF")
    clock.time += 60
    service.tick()
    service._moving.join()
    stored = [path.name for path in service.store.days()]
    assert stored == [f"events-1970-01-{day}.parquet" for day in (12, 13, 14)]
    assert [e.event_id for e in service.log.events() if e.kind == "decision"] == [
        *("e0", "e1", "e2", "e3")
    ]
    expected = states(service)
    service.log.close()
    again = Service(folder, now=clock)
    assert states(again) == expected
    # erased from the files too
    assert again.forget("user-0") == 4
    again.snapshot()
    for path in folder.rglob("*"):
        assert path.is_dir() or b"user-0" not in path.read_bytes(), path
    moved = again.store.retain(1, today=date(1970, 1, 14))
    assert [path.name for path in moved] == ["events-1970-01-12.parquet"]
    assert {e.user for e in again.log.events() if e.kind == "decision"} == {"user-1"}
    again.log.close()


def test_a_registry_without_champion_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="the registry has no champion"):
        Service(tmp_path)


def test_work_on_a_folder_has_the_settings_that_it_was_served_with(
    folder: Path, clock: Clock
) -> None:
    params = ServiceParams(several="sum", reward_window=1e9)
    service = Service(folder, params, now=clock)
    service.decide({"x": 1.0, "y": 0.0}, event_id="e")
    service.reward("e", 0.5)
    # killed: what opens the folder replays the log
    service.log.close()
    again = opened(folder)
    assert again.params == params
    assert (again._sums, again.counts["learned"]) == ({"e": 0.5}, 0)
    again.close()
    # also what serves it again without settings
    again = Service(folder)
    assert again.params == params
    again.close()
    assert stored(folder) == params


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('{"several": "all"}', r"settings.json: several is all; it must be one of"),
        ('{"several": ', r"settings.json is not valid JSON: EOF"),
        ("[1]", r"settings.json is \[1\]; it must be an object of names and values"),
    ],
)
def test_damaged_settings_are_refused_but_prevent_no_erasure(
    folder: Path, text: str, sentence: str
) -> None:
    service = Service(folder)
    service.decide({"x": 1.0, "y": 0.0}, user="ann")
    service.close()
    (folder / "settings.json").write_text(text)
    for begin in (opened, Service):
        with pytest.raises(UserError, match=sentence):
            begin(folder)
    service = opened(folder, erase=True)
    assert service.problem.endswith("; the defaults are taken")
    assert service.forget("ann") == 1
    service.close()
    # they can still be repaired
    assert (folder / "settings.json").read_text() == text
