"""The conclusion on alarms: which monitors reported a change, from alarms whose verdict is
known.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from bandits import Experiment, run
from bandits.monitoring import Alarm, score
from bandits.monitoring.conclusion import conclusion, records
from bandits.monitoring.figures import alarm_table, first_observations, timeline
from bandits.monitoring.replay import AlarmTask, watched
from bandits.simulators.base import SimulatorParams
from tests.support import experiment, wait_for

ROWS, STEPS = 10, 6000
DRIFT = {
    "kind": "drift",
    "start": 2000,
    "end": 4000,
    "from": "new_puppy_parent",
    "to": "mature_dog_owner",
}


def params(*changes: dict[str, Any]) -> SimulatorParams:
    return experiment(
        "linucb", simulator={"kind": "petshop", "changes": changes}, steps=10_000
    ).simulator


def shock(at: int) -> dict[str, Any]:
    return {"kind": "shock", "at": at}


def rang(
    monitor: str, step: int, rows: Sequence[int] = range(ROWS), label: str = "A"
) -> list[Alarm]:
    return [Alarm(monitor, step, row, label, 1.0, 0.5, "It was so.") for row in rows]


def concluded(
    found: dict[str, list[Alarm]], changes: Sequence[dict[str, Any]], *monitors: str
) -> str:
    """Conclude from alarms of agents that all had the monitors with an alarm and the given ones."""
    kinds = {alarm.monitor for alarms in found.values() for alarm in alarms} | set(monitors)
    watching = {label: sorted(kinds) for label in found}
    return conclusion(
        found, params(*changes), rows=ROWS, steps=dict.fromkeys(found, STEPS), monitors=watching
    )


def test_a_monitor_that_rings_only_after_the_change_reported_it() -> None:
    alarms = [*rang("adwin", 3300), *rang("feature_drift", 3500, range(8))]
    assert concluded({"A": alarms}, [shock(3000)]) == (
        "The change at step 3,000 was reported by Adaptive windowing (ADWIN) (10 of 10 cases, "
        "median delay 300 steps) and Feature drift (8 of 10 cases, median delay 500 steps)."
    )


def test_a_monitor_that_rings_as_often_before_the_change_is_not_reliable() -> None:
    alarms = [*rang("page_hinkley", 1000, range(3)), *rang("page_hinkley", 3100)]
    assert concluded({"A": alarms}, [shock(3000)]) == (
        "No monitor reported the change at step 3,000 reliably; rang after it: Page-Hinkley test "
        "(10 of 10 cases, median delay 100 steps), but before it too in 3 of 10 cases."
    )
    few = [*rang("page_hinkley", 1000, range(2)), *rang("page_hinkley", 3100)]
    assert concluded({"A": few}, [shock(3000)]).startswith(
        "The change at step 3,000 was reported by Page-Hinkley"
    )


def test_alarms_that_come_late_may_be_false() -> None:
    assert concluded({"A": rang("adwin", 4600, range(8))}, [shock(800)]) == (
        "No monitor reported the change at step 800 reliably; rang after it: Adaptive windowing "
        "(ADWIN) (8 of 10 cases, median delay 3,800 steps), too late to tell them from false "
        "alarms."
    )


@pytest.mark.slow
def test_monitors_that_ring_at_a_constant_rate_seldom_report_a_change() -> None:
    """In at most 5 % of 400 runs one of three, at the rate at which that is most frequent, and
    three standard errors.
    """
    g, wrong = np.random.default_rng(4), 0
    for _ in range(400):
        first = {kind: g.exponential(2500, ROWS) for kind in ("adwin", "page_hinkley", "ctr_range")}
        found = [
            alarm
            for kind, steps in first.items()
            for row, step in enumerate(steps)
            for each in np.cumsum([step, *g.exponential(2500, 3)])
            if each < STEPS
            for alarm in rang(kind, 1 + int(each), [row])
        ]
        wrong += " was reported by " in concluded({"A": found}, [shock(1000)], *first)
    assert wrong / 400 < 0.05 + 3 * (0.05 * 0.95 / 400) ** 0.5


def test_false_missed_and_rare_alarms_are_named_apart() -> None:
    found = [
        *rang("adwin", 3300, range(7)),
        *rang("ctr_range", 2000, range(4)),
        *rang("entropy", 500),
    ]
    assert concluded({"A": found}, [shock(3000)], "feature_drift", "coverage") == (
        "No monitor reported the change at step 3,000 reliably; reported in fewer than 80 % of "
        "the cases: Adaptive windowing (ADWIN) (7 of 10); only false alarms, before it: Range of "
        "the CTR (4 alarms); no alarm: Feature drift; about states of the agent, before it: "
        "Selection entropy."
    )
    assert concluded({"A": []}, [shock(3000)], "adwin") == (
        "No monitor raised an alarm: the change at step 3,000 was missed."
    )


def test_without_a_change_every_alarm_of_a_change_is_false() -> None:
    found = {
        "A": [*rang("adwin", 3300, range(3)), *rang("entropy", 500)],
        "B": rang("adwin", 100, [1], "B"),
    }
    assert concluded(found, []) == (
        "Nothing changes in this run, so every alarm of a change is false: Adaptive windowing "
        "(ADWIN) (4 alarms in 20 cases); the other alarms are about states of the agent: "
        "Selection entropy."
    )
    assert (
        concluded({"A": []}, [], "adwin")
        == "Nothing changes in this run, and no monitor raised an alarm."
    )
    assert concluded({"A": rang("entropy", 500)}, []) == (
        "Nothing changes in this run: no alarm is false; the alarms are about states of the "
        "agent: Selection entropy."
    )
    late = concluded({"A": rang("adwin", 3300, [1])}, [shock(9000)])
    assert late.startswith(
        "Nothing has changed up to the last step, so every alarm of a change is false: "
    )


def test_drifts_seasons_and_several_changes_are_named_by_their_steps() -> None:
    alarms = rang("adwin", 3300)
    assert (
        "the change from step 2,000 to 4,000 was reported"
        in concluded({"A": alarms}, [DRIFT]).lower()
    )
    both = concluded({"A": [*alarms, *rang("adwin", 5100)]}, [shock(3000), shock(5000)])
    assert both == (
        "A change (at steps 3,000 and 5,000) was reported by Adaptive windowing (ADWIN) (20 of 20 "
        "cases, median delay 200 steps)."
    )
    season = concluded({"A": alarms}, [{"kind": "season", "period": 1000, "amplitude": 0.5}])
    assert season == (
        "Something changes from the first step on, so no alarm is false; alarms came from "
        "Adaptive windowing (ADWIN) (10 of 10 cases, median delay 3,300 steps)."
    )


def test_agents_without_a_monitor_do_not_count_as_missed() -> None:
    found = {"A": rang("calibration", 3300), "B": []}
    steps = {"A": STEPS, "B": STEPS}
    with_b = {"A": ["calibration"], "B": ["calibration"]}
    for monitors, cases in ((with_b, 20), ({"A": ["calibration"], "B": ["adwin"]}, 10)):
        (record,) = [
            r
            for r in records(found, params(shock(3000)), rows=ROWS, steps=steps, monitors=monitors)
            if r.kind == "calibration"
        ]
        assert (record.cases, len(record.delays), record.runs) == (cases, 10, cases)


@pytest.fixture(scope="module")
def replayed() -> tuple[Experiment, AlarmTask]:
    """A run with a broken feature, searched in the background as the page does."""
    changes = [{"kind": "features", "at": 3000, "column": 0}]
    e = experiment(
        "linucb",
        "random",
        simulator={"kind": "petshop", "n_products": 10, "changes": changes},
        steps=5000,
    )
    task = AlarmTask(e, dict.fromkeys(e.labels, 5000))
    wait_for(lambda: not task.active, "the alarms")
    return e, task


def test_a_task_names_the_monitors_of_every_agent(replayed: tuple[Experiment, AlarmTask]) -> None:
    e, task = replayed
    assert task.error == ""
    for label in e.labels:
        kinds, found = watched(e, label, 5000, rows=range(task.rows))
        assert task.monitors[label] == kinds
        assert task.alarms[label] == found
    assert "calibration" in task.monitors["LinUCB"]
    assert "calibration" not in task.monitors["Random"]


def test_the_conclusion_agrees_with_the_table(replayed: tuple[Experiment, AlarmTask]) -> None:
    e, task = replayed
    counted = {"rows": task.rows, "steps": task.steps}
    table = alarm_table(task.alarms, e.simulator, **counted)  # type: ignore[arg-type]
    assert list(table.columns) == ["Agent", "Monitor", "First alarm", "Delay", "False alarms"]
    assert len(first_observations(task.alarms)) == len(table)
    drift = [a for alarms in task.alarms.values() for a in alarms if a.monitor == "feature_drift"]
    per_agent = {
        label: score(
            [a for a in drift if a.label == label], e.simulator, rows=task.rows, steps=5000
        )
        for label in e.labels
    }
    delays = np.concatenate([each.delays for each in per_agent.values()])
    cases = len(e.labels) * task.rows
    sentence = conclusion(task.alarms, e.simulator, monitors=task.monitors, **counted)  # type: ignore[arg-type]
    assert len(delays) == cases
    assert (
        f"Feature drift ({cases} of {cases} cases, median delay {np.median(delays):,.0f} steps)"
        in sentence
    )
    row = table[(table["Monitor"] == "Feature drift") & (table["Agent"] == "LinUCB")].iloc[0]
    mine = per_agent["LinUCB"]
    assert row["Delay"] == f"{mine.median_delay:,.0f} ({len(mine.delays)} of {task.rows})"
    assert row["False alarms"] == f"{mine.per_10_000:.2f}"


def test_the_timeline_marks_a_change_that_no_monitor_reported() -> None:
    e = experiment(
        "random",
        simulator={"kind": "petshop", "n_products": 10, "changes": [shock(300)]},
        steps=400,
    )
    result = run(e, workers=0)
    spec = timeline(result, {"Random": rang("adwin", 100, range(3), "Random")}, 3)
    assert [(a["x"], a["text"]) for a in spec["layout"]["annotations"]] == [(300, "Market shock")]
    assert spec["layout"]["legend"]["y"] > 1.05  # above the name
