"""The whole loop: service, trainer and traffic are processes that start and end together."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from bandits.base.errors import UserError
from bandits.policy import Policy
from bandits.serving import breaks
from bandits.serving.dashboard import production
from bandits.serving.event_log import Event, newest
from bandits.serving.loop import SETTINGS, Loop, first_champion
from bandits.serving.registry import Registry
from bandits.serving.settings import ServiceParams
from bandits.serving.traffic import Visitors
from tests.support import PATIENCE, wait_for

SIMULATOR = {"kind": "petshop", "n_products": 10}


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    """Return the registry of a folder with a first champion."""
    first_champion(tmp_path / "registry", SIMULATOR, {"kind": "epsilon_greedy"})
    return Registry(tmp_path / "registry")


def test_the_first_champion_is_made_once(registry: Registry) -> None:
    first_champion(registry.folder, SIMULATOR, {"kind": "random"})
    assert registry.numbers() == [1]
    assert registry.aliases().champion == 1


def test_bad_and_slow_versions_keep_the_items_and_columns(registry: Registry) -> None:
    folder = registry.folder.parent
    with pytest.raises(UserError, match="no event log"):
        breaks.bad_model(folder)
    assert breaks.slow_model(folder) == 2
    slow = Policy.from_bytes(registry.version(2).policy)
    visitors = Visitors(SIMULATOR, 2, 0)
    begun = time.thread_time()
    for step in range(2):
        body = visitors.visit(step, "e", 0).body
        slow.choose(body["context"], body["candidates"])
    # slower than the budget, so that the fallback decides
    assert time.thread_time() - begun > 2 * ServiceParams().budget
    assert registry.aliases().champion == 2
    assert registry.aliases().previous == 1


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"rate": 0.0}, "rate: must be between"),
        ({"seconds": 1e9}, "for: must be between"),
        ({"every": 0}, "every: must be at least 1"),
        ({"simulator": "sessions"}, "makes no traffic"),
        ({"agent": "oracle"}, "oracle|Oracle"),
    ],
)
def test_what_cannot_loop_is_refused(tmp_path: Path, options: dict, reason: str) -> None:
    with pytest.raises(UserError, match=reason):
        Loop(tmp_path, **options)


def ended(log: Path) -> list[Event]:
    """Return the verdicts that end a rollout."""
    found = newest(log, 10, ["verdict"])
    return [event for event in found if event.body["action"] in ("roll back", "promote")]


@pytest.mark.slow
def test_parts_start_and_end_together_and_a_bad_version_is_rolled_back(tmp_path: Path) -> None:
    heard: list[str] = []
    # rare training: the bad version has no other challenger beside it
    # and a short rollout
    soon = SETTINGS.rollout.model_copy(update={"steps": (0.5,), "min_decisions": 300})
    params = SETTINGS.model_copy(update={"rollout": soon})
    loop = Loop(
        tmp_path, seconds=PATIENCE, rate=200, every=1_000_000, params=params, report=heard.append
    )
    try:
        wait_for(
            lambda: loop.runs("traffic") and loop.runs("trainer"), "parts", lambda: loop.problem
        )
        log = tmp_path / "log"
        wait_for(lambda: len(newest(log, 500, ["reward"])) == 500, "rewards")
        processes = [task._child._process.pid for task in loop._tasks.values()]
        loop.kill("service")
        bad = breaks.bad_model(tmp_path)
        wait_for(lambda: ended(log), "an end of the rollout", lambda: loop.problem)
        verdict = ended(log)[-1]
        assert verdict.body["action"] == "roll back"
        assert "the challenger is worse" in verdict.body["why"]
        shown = production(tmp_path, loop.url, active=True, trainer=True, rollout=(0.5,))
        why = "The gate decided to roll back: the challenger is worse"
        assert any(each.sentence.startswith(why) for each in shown.happened)
        assert Registry(tmp_path / "registry").aliases().challenger is None
        assert bad in Registry(tmp_path / "registry").numbers()
        loop.drift()
        assert loop.simulator["changes"][0]["kind"] == "shock"
        wait_for(lambda: loop.runs("traffic"), "traffic again")
        assert sum(text.startswith("service: serves") for text in heard) == 2
    finally:
        loop.stop()
    assert not loop.active
    for process in processes:
        with pytest.raises(ProcessLookupError):
            os.kill(process, 0)
