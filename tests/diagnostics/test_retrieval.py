"""Evaluation of candidate retrieval, compared with brute force."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import expit

from bandits import read, run
from bandits.base.randomness import Streams
from bandits.cli.main import main
from bandits.diagnostics import retrieval
from bandits.experiments.experiment import Experiment
from bandits.simulators.ranking import Ranking
from benchmarks.reproduction import ranking

SMALL: dict[str, Any] = {
    "kind": "ranking",
    "n_users": 30,
    "n_items": 900,
    "n_candidates": 20,
    "slate": 3,
    "embedding": 6,
    "breadth": 3,
    "temperature": 0.01,
    "intercept": 2.0,
    "retrieval": "nearest",
}


def two_stages(**simulator: Any) -> Experiment:
    agents = [{"kind": "lints", "sharing": "shared"}, {"kind": "random"}]
    return read(
        {"simulator": {**SMALL, **simulator}, "agents": agents, "steps": 150, "replications": 4}
    )


def brute_force(e: Experiment, users: int) -> dict[str, np.ndarray]:
    """Compute recall and the best slates of the truly nearest, the exactly retrieved and the
    retrieved candidates.
    """
    p: Any = e.simulator
    simulator, out = (
        Ranking(p, Streams(e.seed, range(4))),
        {name: [] for name in ("recall", "whole", "exact", "retrieved")},
    )
    for step in range(users // 4):
        round = simulator.round_at(step)
        for r, user in enumerate(round.users):
            utility = simulator.items[0] @ simulator.users[0, user] / p.temperature
            true = np.argsort(-utility, kind="stable")[: p.n_candidates]
            score = simulator.observed_items[0] @ simulator.observed_users[0, user]
            seen = np.argsort(-score, kind="stable")[: p.n_candidates]
            chance = (
                expit(utility - p.intercept)
                if p.choice == "sigmoid"
                else np.exp(utility) / np.exp(utility[true]).sum()
            )
            out["recall"].append(len(set(seen) & set(round.items[r])) / p.n_candidates)
            for name, items in (("whole", true), ("exact", seen), ("retrieved", round.items[r])):
                best = np.sort(chance[items])[::-1][: p.slate]
                out[name].append(1 - np.prod(1 - best / np.arange(1, p.slate + 1)))
    return {name: np.array(values) for name, values in out.items()}


@pytest.mark.parametrize("choice", ["sigmoid", "candidates"])
@pytest.mark.parametrize("noise", [0.0, 0.04])
def test_recall_and_regret_agree_with_brute_force(choice: str, noise: float) -> None:
    e = two_stages(choice=choice, noise=noise)
    actual, expected = retrieval.evaluate_retrieval(e, users=80), brute_force(e, 80)
    assert actual is not None
    assert actual.users == 80
    assert actual.recall.mean == pytest.approx(expected["recall"].mean(), abs=1e-12)
    assert 0.2 < actual.recall.mean < 0.95
    assert actual.best == pytest.approx(expected["whole"].mean(), rel=1e-9)
    assert actual.regret_from_index.mean == pytest.approx(
        (expected["exact"] - expected["retrieved"]).mean(), rel=1e-7
    )
    assert actual.regret_from_noise.mean == pytest.approx(
        (expected["whole"] - expected["exact"]).mean(), abs=1e-12
    )
    assert actual.regret_from_index.mean > 0
    assert (actual.regret_from_noise.mean > 0) == (noise > 0)
    assert actual.vector_bytes == 900 * 6 * 8
    assert actual.index_ms > 0


def test_an_exhaustive_index_causes_no_regret() -> None:
    wide = retrieval.evaluate_retrieval(two_stages(breadth=1000), users=80)
    assert wide is not None
    assert wide.scanned == 1.0
    assert wide.recall.mean > 0.995
    assert abs(wide.regret_from_index.mean) < 1e-3


def test_no_report_without_an_index() -> None:
    assert retrieval.evaluate_retrieval(two_stages(retrieval="exact")) is None
    assert retrieval.evaluate_retrieval(two_stages(retrieval="random")) is None
    assert retrieval.evaluate_retrieval(read({"agents": [{"kind": "random"}]})) is None


def test_the_summary_lists_the_agents_own_regret() -> None:
    e = two_stages()
    result, actual = run(e), retrieval.evaluate_retrieval(e, users=40)
    assert actual is not None
    lines = dict(retrieval.summary_rows(actual, result.histories))
    regret = result.summary()["agents"]["Random"]["pseudo_regret"]["mean"] / e.steps
    assert lines["Regret of Random"].startswith(f"{regret:.3f} (")
    assert lines["Recall"].startswith(f"{100 * actual.recall.mean:.0f} % (")
    assert "Regret of LinTS" in lines
    assert "Regret of embedding noise" not in lines


def test_the_audit_command_reports_and_refuses(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "two.json"
    file.write_text(two_stages().model_dump_json())
    assert main(["audit", str(file), "--set", "simulator.breadth=30"]) == 0
    output = capsys.readouterr().out
    assert "of the exactly retrieved candidates; 200 visitors" in output.splitlines()[0]
    assert "Catalogue scanned: 100.0 %" in output
    assert main(["audit", str(file), "--set", "simulator.retrieval=exact"]) == 2
    assert (
        "only the simulator ranking with simulator.retrieval nearest has an index"
        in capsys.readouterr().err
    )


def test_the_report_on_scale_states_sizes_recall_and_a_verdict(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ranking, "SIZES", (1000, 2000))
    report = ranking.scale(steps=10, replications=2, repeats=1)
    assert "| 1,000 |" in report
    assert "| 2,000 |" in report
    assert "Time of a decision among 2,000 items relative to 1,000 items: LinTS " in report
