"""Alarms of a run: an exact replay, what monitors receive, refusals, delays and the command
line.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from bandits import Experiment, alarms, run
from bandits.base.errors import UserError
from bandits.cli.main import main
from bandits.cli.monitor import lines
from bandits.experiments.lockstep import make_lane
from bandits.monitoring import REGISTRY, Alarm, Need, Steps, observe, offered, score
from bandits.monitoring.alarm import join
from bandits.monitoring.false_alarms import change_steps
from bandits.monitoring.observation import REDRAWS
from bandits.monitoring.replay import feed, setting_of, table
from bandits.results.result import Result
from bandits.storage.run_store import Store
from tests.support import experiment, traces

SHOCK = {"kind": "petshop", "n_products": 10, "changes": [{"kind": "shock", "at": 4000}]}
SAMPLED: frozenset[Need] = frozenset({"features", "means", "probabilities"})


@pytest.fixture(scope="module")
def result() -> Result:
    agents = [{"kind": "linucb"}, {"kind": "epsilon_greedy", "sharing": "shared"}]
    data = {"simulator": SHOCK, "agents": agents, "steps": 6000, "replications": 3}
    return run(Experiment.model_validate(data))


def observed(e: Experiment, agent: int, needs: frozenset[Need], chunk: int = 77) -> Steps:
    """Everything that monitors see of one agent."""
    lane = make_lane(e, agent)
    lane.agent.prepare()
    return join(list(observe(lane, e.steps, needs, chunk=chunk)))


def test_the_replay_shows_the_steps_of_the_run_with_and_without_samples() -> None:
    e = experiment("linucb", "random", "lints", steps=300)
    for i, (label, trace) in enumerate(traces(e).items()):
        for needs in (frozenset(), SAMPLED):
            steps = observed(e, i, needs)
            assert e.labels[i] == label
            for name in ("items", "segments", "rewards"):
                np.testing.assert_array_equal(getattr(steps, name), getattr(trace, name))


@pytest.mark.parametrize(
    "kind", ["linucb", "epsilon_greedy", "logistic_ucb", "ucb1", "lints", "beta_ts"]
)
@pytest.mark.parametrize("broken", [False, True])
def test_samples_are_what_the_agent_saw_and_stated(kind: str, broken: bool) -> None:
    """Features, means, explored shares and weights at every tenth step equal those of a plain
    replay.
    """
    changes = [{"kind": "features", "at": 100, "column": 0, "how": "shifted"}] if broken else []
    e = experiment(
        kind, steps=205, simulator={"kind": "petshop", "n_products": 10, "changes": changes}
    )
    steps = observed(e, 0, SAMPLED)
    s = steps.samples
    assert s is not None
    assert s.steps.tolist() == list(range(0, 205, 10))
    lane, rows = make_lane(e, 0), np.arange(3)
    for n, step in enumerate(s.steps.tolist()):
        round = lane.simulator.round_at(step)
        explanation, stated = lane.agent.explain(round), lane.agent.probabilities(round)
        shown = lane.advance(1).items[0, :, 0]
        assert s.features is not None
        assert s.context is not None
        np.testing.assert_array_equal(s.features[n], round.features[rows, shown])
        np.testing.assert_allclose(s.context[n], round.features.mean(axis=1), rtol=1e-14)
        np.testing.assert_array_equal(s.rewards[n], steps.rewards[step])
        assert explanation.mean is not None
        assert s.means is not None
        assert s.explored is not None
        mean = 1 / (1 + np.exp(-explanation.mean)) if explanation.logit else explanation.mean
        np.testing.assert_allclose(s.means[n], mean[rows, shown], rtol=1e-12)
        best = np.nan_to_num(explanation.mean, nan=-np.inf).max(axis=1)
        np.testing.assert_array_equal(
            s.explored[n], np.nan_to_num(explanation.mean[rows, shown], nan=-np.inf) < best
        )
        if lane.agent.propensity == "exact":
            assert s.weights is not None
            np.testing.assert_allclose(s.weights[n], 0.1 / stated[rows, shown])
        lane.advance(min(9, 205 - lane.step))


def test_explored_is_the_share_of_a_slate() -> None:
    """The Random agent with a slate shows what its estimates do not favour.

    A greedy one explores nothing.
    """
    simulator = {
        "kind": "ranking",
        "n_users": 20,
        "n_items": 40,
        "n_candidates": 12,
        "slate": 3,
        "embedding": 4,
    }
    e = experiment(
        {"kind": "epsilon_greedy", "epsilon": 0.0, "sharing": "shared"},
        simulator=simulator,
        steps=100,
    )
    s = observed(e, 0, frozenset({"means"})).samples
    assert s is not None
    assert s.explored is not None
    assert not s.explored.any()
    e = experiment(
        {"kind": "epsilon_greedy", "epsilon": 1.0, "sharing": "shared"},
        simulator=simulator,
        steps=2000,
    )
    s = observed(e, 0, frozenset({"means"})).samples
    assert s is not None
    assert s.explored is not None
    assert abs(float(s.explored[20:].mean()) - 0.75) < 0.05
    assert set(np.unique((3 * s.explored).round(12))) == {0.0, 1.0, 2.0, 3.0}


def test_weights_of_agents_that_draw_scores_are_estimated() -> None:
    """Importance weights of Thompson sampling have mean 1 where every arm keeps a probability."""
    # not exact: redrawn
    e = experiment({"kind": "beta_ts", "prior_misses": 0.49}, steps=400, replications=40)
    s = observed(e, 0, frozenset({"probabilities"})).samples
    assert s is not None
    assert s.weights is not None
    # of the redraws that show the item, and the choice itself
    counted = 0.1 * (REDRAWS + 1) / s.weights
    np.testing.assert_allclose(counted, counted.round(), rtol=1e-12)
    assert counted.round().min() == 1
    early = s.weights[:20]
    assert abs(float(early.mean()) - 1) < 4 * float(early.std()) / early.size**0.5 + 0.02


def test_a_lane_offers_what_its_agent_and_simulator_have() -> None:
    e = experiment("linucb", "random", "beta_ts")
    there = [offered(make_lane(e, i)) for i in range(3)]
    assert there[0] == {"features", "means", "segments", "single", "binary"}
    assert there[1] == {"features", "probabilities", "segments", "single", "binary"}
    assert there[2] == {"features", "means", "probabilities", "segments", "single", "binary"}


def test_decisions_of_a_fallback_are_read() -> None:
    slow = {"kind": "fallback", "median_ms": 5, "p99_ms": 90}
    e = experiment({"kind": "linucb", "guards": [slow]}, "linucb", steps=60)
    lane, again = make_lane(e, 0), make_lane(e, 0)
    assert "fallbacks" in offered(lane)
    assert "fallbacks" not in offered(make_lane(e, 1))
    steps = join(list(observe(lane, 60, frozenset({"fallbacks"}), chunk=25)))
    assert steps.fell_back is not None
    expected = again.advance(60).fell_back
    assert expected is not None
    assert np.array_equal(steps.fell_back, expected)
    assert 0 < steps.fell_back.mean() < 1


def test_a_shock_is_detected_in_every_row(result: Result) -> None:
    found = alarms(result, "LinUCB", ["page_hinkley", "adwin"])
    for kind in ("page_hinkley", "adwin"):
        scored = score(
            [a for a in found if a.monitor == kind], result.experiment.simulator, rows=3, steps=6000
        )
        assert scored.detected == 1
        assert scored.median_delay < 400
    assert found == sorted(found, key=lambda a: (a.step, list(REGISTRY).index(a.monitor), a.row))


def test_all_monitors_that_fit_are_applied(result: Result) -> None:
    everything = alarms(result, "LinUCB")
    some = alarms(result, "LinUCB", ["page_hinkley", "entropy", {"kind": "adwin"}])
    assert [a for a in everything if a.monitor in ("page_hinkley", "entropy", "adwin")] == some
    assert {a.monitor for a in everything} >= {
        "coverage",
        "entropy",
        "page_hinkley",
        "segment_entropy",
    }
    assert alarms(result, "LinUCB", rows=[2]) == [a for a in everything if a.row == 2]


def test_chunks_of_the_replay_change_no_alarm(result: Result) -> None:
    kinds = [kind for kind in REGISTRY if kind != "fallbacks"]

    def replayed(chunk: int) -> list[Alarm]:
        lane = make_lane(result.experiment, 1)
        setting = setting_of(lane, "ε-greedy", (0, 1, 2))
        monitors = [REGISTRY[kind](REGISTRY[kind].Params(kind=kind), setting) for kind in kinds]
        return feed(lane, monitors, 6000, chunk=chunk)

    assert replayed(500) == replayed(77) == alarms(result, "ε-greedy", kinds) != []


def test_a_table_has_one_row_per_alarm(result: Result) -> None:
    found = alarms(result, "LinUCB", ["adwin"])
    frame = table(found)
    assert list(frame.columns) == [
        "monitor",
        "step",
        "row",
        "label",
        "statistic",
        "threshold",
        "sentence",
    ]
    assert frame.to_dict("records") == [a._asdict() for a in found]
    empty = table([])
    assert list(empty.columns) == list(frame.columns)
    assert len(empty) == 0


def test_what_does_not_fit_is_refused_in_one_sentence(result: Result) -> None:
    refused = [
        (("Greedy", None), "the run has no agent 'Greedy'; its agents are LinUCB, ε-greedy"),
        (
            ("LinUCB", ["fallbacks"]),
            "the monitor fallbacks does not fit LinUCB: it requires an agent with a fallback",
        ),
        (
            ("LinUCB", ["importance_weight"]),
            "the monitor importance_weight does not fit LinUCB: it requires an agent that "
            "chooses with known probabilities",
        ),
    ]
    for arguments, sentence in refused:
        with pytest.raises(UserError) as error:
            alarms(result, *arguments)  # type: ignore[arg-type]
        assert str(error.value) == sentence


def alarm(step: int, row: int = 0) -> Alarm:
    return Alarm("adwin", step, row, "LinUCB", 1.0, 0.5, "The mean reward fell.")


def test_delays_and_false_alarms_follow_from_the_declared_changes() -> None:
    changes = [{"kind": "shock", "at": 1000}, {"kind": "shock", "at": 3000, "how": "reverse"}]
    params = experiment(simulator={"kind": "petshop", "changes": changes}, steps=5000).simulator
    assert change_steps(params, 5000) == [1000, 3000]
    assert change_steps(params, 3000) == [1000]
    found = [
        alarm(500),
        alarm(1000),
        alarm(1001),
        alarm(1700),
        alarm(3000, 1),
        alarm(3100, 1),
        alarm(4000, 1),
    ]
    scored = score(found, params, rows=2, steps=5000)
    assert (scored.false_alarms, scored.quiet_steps, scored.cases) == (2, 2000, 4)
    assert sorted(scored.delays.tolist()) == [1, 100, 2000]
    assert (scored.per_10_000, scored.detected, scored.median_delay) == (10.0, 0.75, 100.0)
    quiet = score(found, experiment().simulator, rows=2, steps=5000)
    assert (quiet.false_alarms, quiet.quiet_steps, quiet.cases) == (7, 10_000, 0)
    assert np.isnan(quiet.detected)
    assert np.isnan(quiet.median_delay)


def test_the_command_prints_a_table_and_writes_a_file(
    result: Result,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("BANDITS_HOME", str(tmp_path / "home"))
    e = result.experiment
    Store().put(e, result.histories, 1.0)
    out = tmp_path / "out"
    options = ["--agent", "LinUCB", "--monitor", "adwin", "--monitor", "feature_drift"]
    assert main(["monitor", e.hash[:12], *options, "--out", str(out)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "LinUCB"
    assert lines[1].split()[:3] == ["monitor", "first", "rows"]
    assert lines[2].split()[0] == "adwin"
    assert "3 of 3" in lines[2]
    assert "The mean reward " in lines[2]
    assert len(lines) == 3
    expected = table(alarms(result, "LinUCB", ["adwin", "feature_drift"]))
    pd.testing.assert_frame_equal(pd.read_parquet(out / "alarms.parquet"), expected)
    assert main(["monitor", e.hash[:12], "--monitor", "feature_drift"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"{n}: no alarm in 6,000 steps" for n in e.labels
    ]
    for wrong in (["--agent", "Greedy"], ["--monitor", "drift"], ["--monitor", "fallbacks"]):
        assert main(["monitor", e.hash[:12], *wrong]) == 2
        assert capsys.readouterr().err.startswith("error: the ")


def test_a_run_with_a_change_prints_its_alarms_and_writes_them(
    result: Result, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As `monitor` does; a run without changes is replayed where asked to, and leaves no file of an
    earlier one.
    """
    e, out = result.experiment, tmp_path / "out"
    file = tmp_path / "experiment.json"
    file.write_text(e.model_dump_json(), encoding="utf-8")
    command = ["run", str(file), "--workers", "0", "--no-unchanged", "--out", str(out)]
    assert main(command) == 0
    printed = capsys.readouterr().out.splitlines()
    own = {label: alarms(result, label) for label in e.labels}
    expected = [line for label in e.labels for line in lines(result, label, own[label])]
    begin = printed.index("Alarms:")
    assert printed[begin + 1 : -1] == expected
    assert "the change at step 4,000" in printed[-1]
    assert "Adaptive windowing (ADWIN) (" in printed[-1]
    written = pd.read_parquet(out / "alarms.parquet")
    pd.testing.assert_frame_equal(
        written, table([alarm for mine in own.values() for alarm in mine])
    )
    for quiet in (["--no-alarms"], ["--set", "simulator.changes=[]"]):
        (out / "alarms.parquet").touch()
        assert main([*command, *quiet]) == 0
        assert "Alarms" not in capsys.readouterr().out
        assert not (out / "alarms.parquet").exists()
    assert main([*command, "--alarms", "--set", "simulator.changes=[]"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("Nothing changes in this run")
    assert (out / "alarms.parquet").exists()


def test_alarms_of_a_log_without_truth_are_refused_before_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "experiment.json"
    file.write_text(
        '{"simulator": {"kind": "logged"}, "agents": [{"kind": "ucb1"}], "steps": 400, "replications": 2}',  # noqa: E501
        "utf-8",
    )
    assert main(["run", str(file), "--alarms", "--out", str(tmp_path / "out")]) == 2
    assert capsys.readouterr().err.startswith("error: --alarms requires ")
    assert not (tmp_path / "out").exists()
