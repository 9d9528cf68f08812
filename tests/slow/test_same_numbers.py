"""Every agent, simulator and preset computes the numbers of version 0.2.0."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from threadpoolctl import threadpool_limits

from bandits import Experiment, read, run
from bandits.agents import REGISTRY as AGENTS
from bandits.simulators import REGISTRY as SIMULATORS
from tests.slow.version_0_2_0 import NEURAL, NUMBERS, comparable, curves_digest, differences, same_machine

EXPERIMENTS: dict[str, dict[str, Any]] = NUMBERS["experiments"]
EXACT = same_machine(NUMBERS["machine"])


@pytest.fixture(scope="module", autouse=True)
def _own_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Train networks again instead of reading those cached by other tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BANDITS_HOME", str(tmp_path_factory.mktemp("numbers")))
        yield


def without_rounding(experiment: dict[str, Any], summary: dict[str, Any]) -> dict[str, Any]:
    """Return a summary without what the rounding of another processor decides, and comparisons with it.

    That are neural agents, and every agent behind an approximate index: its codes are trained too.
    """
    kinds = dict(zip(summary["agents"], (agent["kind"] for agent in experiment["agents"]), strict=True))
    indexed = experiment["simulator"].get("retrieval") == "nearest"
    kept = {label for label, kind in kinds.items() if kind not in NEURAL and not indexed}
    dropped = set() if len(kept) == len(kinds) else {"p_value_holm"}  # adjusted for all pairs
    pairs = [p for p in summary["comparisons"] if p["a"] in kept and p["b"] in kept]
    return {
        **summary,
        "agents": {label: a if label in kept else {"rows": a["rows"]} for label, a in summary["agents"].items()},
        "comparisons": [{k: v for k, v in p.items() if k not in dropped} for p in pairs],
    }


def test_every_kind_of_version_0_2_0_is_covered() -> None:
    agents = {agent["kind"] for each in EXPERIMENTS.values() for agent in each["experiment"]["agents"]}
    simulators = {each["experiment"]["simulator"]["kind"] for each in EXPERIMENTS.values()}
    assert len(EXPERIMENTS) == 53
    assert (len(agents), len(simulators)) == (20, 5)
    assert agents <= set(AGENTS)
    assert simulators <= set(SIMULATORS)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_results_equal_those_of_version_0_2_0(name: str, tmp_path: Path) -> None:
    before = EXPERIMENTS[name]
    with threadpool_limits(1):
        result = run(Experiment.model_validate_json(json.dumps(before["experiment"])))
    result.save(tmp_path)
    summary = comparable(json.loads((tmp_path / "summary.json").read_bytes()))
    expected = comparable(before["summary"])
    if EXACT:
        assert summary == expected
        assert curves_digest(tmp_path / "curves.parquet") == before["curves_sha256"]
    else:
        one, other = (without_rounding(before["experiment"], actual) for actual in (expected, summary))
        assert differences(one, other) == []


@pytest.mark.parametrize("name", [name for name, each in EXPERIMENTS.items() if "given" in each])
def test_stored_experiments_keep_their_hashes(name: str) -> None:
    given = EXPERIMENTS[name]["given"]
    assert read({**given, "defaults": 1}).hash == EXPERIMENTS[name]["summary"]["hash"]
