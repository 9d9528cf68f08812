"""Clicks lost to changes: the same run without them minus the run, in files and in words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bandits import Result, UserError, lost, read, run
from bandits.base.types import FloatArray
from bandits.cli import main as cli
from bandits.experiments.history import History
from bandits.results.change import lost_clicks
from bandits.results.export import report
from bandits.results.metrics import Estimate, t_quantile
from bandits.simulators import REGISTRY as SIMULATORS
from tests.support import often

SHOCK = [{"kind": "shock", "at": 300}]
REPEATS = often(400, 2000)


def made(
    changes: list[dict[str, Any]], *agents: dict[str, Any], replications: int = 4, **more: Any
) -> Result:
    simulator = {"kind": "petshop", "n_products": 10, "changes": changes}
    parts = {
        "simulator": simulator,
        "agents": agents,
        "steps": 600,
        "replications": replications,
        **more,
    }
    return run(read(parts), workers=0)


def of(sums: FloatArray) -> History:
    """Return a history of 10 steps that ends with these clicks (R,)."""
    found = History(10, len(sums), 0)
    found.sums["clicks"][:] = np.linspace(0, 1, len(found.grid))[:, None] * sums
    found.step = 10
    return found


def test_the_loss_is_the_paired_difference_with_its_student_interval() -> None:
    changed, unchanged = np.array([3.0, 5.0, 4.0, 1.0]), np.array([7.0, 6.0, 4.0, 4.0])
    found = lost_clicks.lost_between(of(changed), of(unchanged))
    # mean 2, variance (4 + 1 + 4 + 1) / 3
    difference = [4.0, 1.0, 0.0, 3.0]
    half = t_quantile(4) * np.sqrt(10 / 3) / 2
    assert found.mean == np.mean(difference) == 2.0
    assert (found.low, found.high) == (pytest.approx(2 - half), pytest.approx(2 + half))


def test_replications_that_stopped_in_either_run_are_left_out() -> None:
    changed, unchanged = of(np.array([3.0, 5.0, 4.0])), of(np.array([7.0, 6.0, 4.0]))
    changed.alive[0] = unchanged.alive[2] = False
    found = lost_clicks.lost_between(changed, unchanged)
    assert found.mean == 1.0
    assert np.isnan(found.low)


def test_a_run_loses_what_the_same_run_without_the_change_earned_more() -> None:
    agents = [{"kind": "linucb"}, {"kind": "linucb", "alpha": 0.3}, {"kind": "oracle"}]
    changed, unchanged = made(SHOCK, *agents), made([], *agents)
    for label in changed.histories:
        a, b = changed.histories[label], unchanged.histories[label]
        before = a.grid <= 300
        # the same random numbers
        np.testing.assert_array_equal(a.sums["clicks"][before], b.sums["clicks"][before])
        expected = (b.sums["clicks"][-1] - a.sums["clicks"][-1]).mean()
        # it runs the agent alone
        assert lost(changed, label).mean == expected
        assert lost(changed, label, unchanged=unchanged) == lost(changed, label)
    assert lost(changed, "LinUCB").mean > 0


def test_what_the_optimum_lost_is_known_too() -> None:
    rates = [[0.5] * 5] * 4
    changed = made([{"kind": "shock", "at": 300, "how": rates}], {"kind": "oracle"})
    unchanged = run(lost_clicks.without_changes(changed.experiment), workers=0).histories["Oracle"]
    optimum = lost_clicks.lost_between(changed.histories["Oracle"], unchanged, "best_value")
    rest = (
        unchanged.sums["value"][-1] - unchanged.sums["value"][np.searchsorted(unchanged.grid, 300)]
    )
    assert optimum.mean == pytest.approx((rest - 0.5 * 300).mean())


@pytest.mark.parametrize(
    "changes",
    [
        [{"kind": "season", "period": 50, "amplitude": 0.0}],
        [{"kind": "features", "at": 100, "column": 0}],
    ],
    ids=["flat season", "features that UCB1 does not read"],
)
def test_nothing_is_lost_where_nothing_differs(changes: list[dict[str, Any]]) -> None:
    changed = made(changes, {"kind": "ucb1"})
    assert lost(changed, "UCB1") == (0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    "kind", [kind for kind, s in SIMULATORS.items() if "changes" in s.Params.model_fields]
)
def test_every_simulator_has_a_run_without_its_changes(kind: str) -> None:
    params = SIMULATORS[kind].Params
    offered = params.model_json_schema()["properties"]["changes"]["items"]["discriminator"]
    # levers have no features that could break
    some = [{"kind": "features", "at": 5, "column": 0}, {"kind": "shock", "at": 5}]
    change = next(change for change in some if change["kind"] in offered["mapping"])
    shock = {"shock_step": 3} if "shock_step" in params.model_fields else {}
    changed = params.model_validate({"kind": kind, "changes": [change], **shock})
    assert changed.all_changes
    assert changed.without_changes() == params.model_validate({"kind": kind})


def test_impossible_questions_are_refused() -> None:
    still, changed = made([], {"kind": "random"}), made(SHOCK, {"kind": "random"})
    with pytest.raises(UserError, match="nothing changes"):
        lost(still, "Random")
    with pytest.raises(UserError, match="no agent 'LinUCB'"):
        lost(changed, "LinUCB")
    for other in (made([], {"kind": "random"}, seed=1), made([], {"kind": "ucb1"}), changed):
        with pytest.raises(UserError, match="not the run of Random without changes"):
            lost(changed, "Random", unchanged=other)
    with pytest.raises(UserError, match="nothing changes"):
        run(still.experiment, unchanged=True)


def test_files_reports_and_the_command_line_state_the_loss(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain = made(SHOCK, {"kind": "linucb"}, {"kind": "random"})
    assert "lost_to_change" not in plain.summary()["agents"]["LinUCB"]
    assert lost_clicks.sentences(plain) == []
    result = run(plain.experiment, workers=0, unchanged=True)
    expected = {**lost(plain, "LinUCB")._asdict()}
    assert result.summary()["agents"]["LinUCB"]["lost_to_change"] == expected
    (sentence,) = lost_clicks.sentences(result)
    assert sentence.startswith(
        "Clicks lost to the changes, against the same run without them (4 paired replications)"
    )
    assert sentence in report(result)
    file = tmp_path / "experiment.json"
    file.write_text(plain.experiment.model_dump_json(), encoding="utf-8")
    # no option is needed
    assert cli.main(["run", str(file), "--workers", "0", "--out", str(tmp_path / "out")]) == 0
    assert sentence in capsys.readouterr().out
    saved = json.loads((tmp_path / "out" / "summary.json").read_text(encoding="utf-8"))
    assert saved == json.loads(json.dumps(result.summary()))
    late = ["--set", "simulator.changes=[]", "--set", "simulator.shock_step=600"]
    # a change after the last step changes nothing
    for option in (["--no-unchanged"], late):
        assert cli.main(["run", str(file), *option, "--workers", "0"]) == 0
        assert "lost to the changes" not in capsys.readouterr().out
    assert cli.main(["run", str(file), "--unchanged", "--set", "simulator.changes=[]"]) == 2
    assert "nothing changes" in capsys.readouterr().err


def test_a_run_is_saved_before_the_one_without_its_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("bandits.runtime.cores.run_unchanged", stop)
    result = made(SHOCK, {"kind": "random"})
    file, out = tmp_path / "experiment.json", tmp_path / "out"
    file.write_text(result.experiment.model_dump_json(), encoding="utf-8")
    assert cli.main(["run", str(file), "--workers", "0", "--out", str(out)]) == 130
    assert json.loads((out / "summary.json").read_text(encoding="utf-8")) == json.loads(
        json.dumps(result.summary())
    )


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ((33.0, -195.0, 260.0), "33 (95 % CI −195 to 260)"),
        (
            (-158.0, -183.0, -134.0),
            "earned 158 clicks more than without the changes (95 % CI 134 to 183)",
        ),
        (
            (-158.0, -340.0, 24.0),
            "earned 158 clicks more than without the changes (95 % CI −24 to 340)",
        ),
        ((-0.3, -2.0, 1.0), "0 (95 % CI −2 to 1)"),
        ((-12.0, np.nan, np.nan), "earned 12 clicks more than without the changes"),
    ],
)
def test_a_negative_loss_is_stated_as_what_was_earned_more(
    found: tuple[float, ...], words: str
) -> None:
    assert lost_clicks._spoken(Estimate(*found), "clicks") == words


def test_a_gain_is_explained_by_that_of_the_best_choice() -> None:
    better = [{"kind": "shock", "at": 300, "how": [[0.9] * 5] * 4}]
    for changes, improves in (
        (better, True),
        ([{"kind": "shock", "at": 300, "how": [[0.01] * 5] * 4}], False),
    ):
        changed, unchanged = made(changes, {"kind": "oracle"}), made([], {"kind": "oracle"})
        assert lost_clicks.sentences(changed) == []
        text, *more = lost_clicks.sentences(changed, unchanged)
        lost = lost_clicks.lost_between(changed.histories["Oracle"], unchanged.histories["Oracle"])
        optimum = lost_clicks.lost_between(
            changed.histories["Oracle"], unchanged.histories["Oracle"], "best_value"
        )
        assert (lost.mean < 0) == improves == (optimum.mean < 0)
        assert ("more than without the changes" in text) == improves
        gain = "The best choice earns {:,.0f} clicks more with the changes than without them: "
        assert [sentence.startswith(gain.format(-optimum.mean)) for sentence in more] == [
            True
        ] * improves


@pytest.fixture(scope="module")
def many() -> tuple[FloatArray, FloatArray]:
    """Clicks of 1,024 replications with and without a shock, two of (1024,)."""
    changed = made(SHOCK, {"kind": "linucb"}, replications=1024)
    unchanged = run(lost_clicks.without_changes(changed.experiment), workers=0)
    a, b = (found.histories["LinUCB"].sums["clicks"][-1] for found in (changed, unchanged))
    return a, b


@pytest.mark.slow
@pytest.mark.parametrize("rows", [8, 16])
def test_the_interval_covers_the_expected_loss(
    rows: int, many: tuple[FloatArray, FloatArray]
) -> None:
    """Some replications of a large run are a run of their own.

    The mean of all stands for the expectation.
    """
    a, b = many
    generator, expected = np.random.default_rng(rows), (b - a).mean()
    inside = 0
    for _ in range(REPEATS):
        some = generator.choice(len(a), rows, replace=False)
        found = lost_clicks.lost_between(of(a[some]), of(b[some]))
        inside += found.low <= expected <= found.high
    assert abs(inside / REPEATS - 0.95) < 3 * np.sqrt(0.05 * 0.95 / REPEATS) + 0.01
