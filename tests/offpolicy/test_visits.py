"""Visits: their logs, and values per visit by per-decision importance sampling."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bandits import UserError
from bandits.experiments.experiment import read
from bandits.offpolicy.conclusion import sentences
from bandits.offpolicy.evaluation import evaluate
from bandits.offpolicy.figures import forest, lengths
from bandits.offpolicy.log import DecisionLog
from bandits.offpolicy.parquet import write_parquet
from bandits.offpolicy.reading import read_log
from bandits.offpolicy.recording import record
from bandits.offpolicy.simulated import true_value
from bandits.offpolicy.targets import Matrix, Random
from bandits.offpolicy.visits import whole_visits


def visits(agent: str) -> DecisionLog:
    return record(
        read(
            {
                "simulator": {"kind": "sessions", "n_products": 10},
                "agents": [{"kind": agent}],
                "steps": 40,
                "replications": 2,
            }
        )
    )


def test_a_log_of_visits_is_recorded_and_its_rounds_are_not_made_again() -> None:
    log = visits("random")
    assert len(log) == 80
    with pytest.raises(UserError, match="depend on what was shown before"):
        true_value(log, Random())


def test_values_per_decision_on_visits_carry_an_alarm_and_no_truth() -> None:
    """It states the range of rewards, and whether its agent learned."""
    for agent, n_notes in (("random", 0), ("epsilon_greedy", 1)):
        evaluation = evaluate(visits(agent), "random", estimators=["ips"], interval="bernstein")
        assert evaluation.truth is None
        assert [alarm.kind for alarm in evaluation.alarms if alarm.kind == "visits"]
        assert sum("learned while it chose" in note for note in evaluation.notes) == n_notes


# two visits of two steps and one of one, in turns; item 1 is shown with probability .25
SMALL: dict[str, Any] = {
    "actions": np.array([1, 0, 1, 0, 0]),
    "rewards": np.array([1.0, 1.0, 1.0, 0.0, 1.0]),
    "propensities": np.array([0.25, 0.75, 0.25, 0.75, 0.75]),
    "visits": np.array([7, 3, 7, 5, 3]),
    "names": ("0", "1"),
}


def test_pdis_equals_its_closed_form() -> None:
    """Item 1 with probability .5: weights 2 and 2/3, products over each visit."""
    found = evaluate(DecisionLog(**SMALL), Matrix(np.array([0.5, 0.5])))
    w, v = 2.0, 2 / 3
    assert found.estimates["pdis"].value == pytest.approx((w + w * w + v + v * v) / 3)
    first, second = (w + v) / (w + v + v), (w * w + v * v) / (w * w + v * v + v)
    assert found.estimates["wpdis"].value == pytest.approx(first + second)
    ess = [(w + 2 * v) ** 2 / (w**2 + 2 * v**2)]
    ess.append((w * w + v * v + v) ** 2 / (w**4 + v**4 + v**2))
    assert found.ess_by_length == pytest.approx(ess)
    assert (found.unit, found.n, found.main) == ("visit", 3, "wpdis")
    assert found.logged == pytest.approx(4 / 3)
    assert found.gain.value == pytest.approx(found.estimates["wpdis"].value - 4 / 3)
    document = found.as_dict()
    assert document["ess_by_length"] == pytest.approx(ess)
    assert "per visit" in sentences(found)[0]
    assert lengths(found) is not None


def test_of_the_logging_policy_every_weight_is_one() -> None:
    found = evaluate(DecisionLog(**SMALL), Matrix(np.array([0.75, 0.25])))
    assert found.estimates["pdis"].value == found.estimates["wpdis"].value == found.logged
    assert list(found.ess_by_length) == [3, 3]
    assert found.same


@pytest.mark.parametrize(
    ("change", "options", "sentence"),
    [
        ({"visits": None}, {"estimators": ["pdis"]}, "requires a log with visits"),
        ({"propensities": None}, {"estimators": ["wpdis"]}, "requires propensities"),
        ({}, {"estimators": ["pdis", "ips"]}, "one kind at a time"),
        ({}, {"estimators": ["pdis"], "interval": "bernstein"}, "range of a value"),
        ({"row_weights": np.ones(5)}, {}, "row_weight"),
        (
            {"visits": np.zeros(5, int), "rows": np.zeros(5, int), "steps": np.arange(5)},
            {},
            "record more steps",
        ),
    ],
)
def test_what_is_impossible_with_visits_is_refused_in_one_sentence(
    change: dict[str, Any], options: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(UserError, match=sentence) as refused:
        evaluate(DecisionLog(**{**SMALL, **change}), "random", **options)
    assert "\n" not in str(refused.value)


def test_few_effective_visits_give_neither_an_interval_nor_a_comparison() -> None:
    found = evaluate(logged(10, 600), near(0.9))
    assert not found.has_intervals
    first, *rest = sentences(found)
    assert first.startswith(
        "This log cannot answer reliably what matrix would have earned: WPDIS estimates "
    )
    assert "too few visits carry that for a confidence interval or a comparison" in first
    assert len(rest) == 1
    assert re.fullmatch(r"The simulator knows the true value, [\d.]+\.", rest[0])
    forest_of = forest(found)
    assert not any("error_x" in trace for trace in forest_of["data"])
    assert "without intervals" in str(forest_of["layout"])
    near_enough = evaluate(logged(10, 600), near(0.02))
    assert near_enough.has_intervals
    assert "confidence interval" in sentences(near_enough)[0]


def test_whether_the_agent_of_the_log_learned_is_that_of_the_agent_and_not_of_the_first(
    tmp_path: Path,
) -> None:
    """With weights called unbiased only where the log supports the target."""
    agents = [{"kind": "epsilon_greedy"}, {"kind": "random"}]
    simulator = {"kind": "sessions", "n_products": 10}
    e = read({"simulator": simulator, "agents": agents, "steps": 40, "replications": 5})
    for agent, stated in ((0, True), (1, False)):
        write_parquet(record(e, agent), tmp_path / "log.parquet")
        notes = " ".join(evaluate(tmp_path / "log.parquet", "random").notes)
        assert ("learned while it chose" in notes) is stated
        assert "unbiased" not in notes
    e = read({"agents": agents, "steps": 700, "replications": 5})
    supported, alone = (evaluate(record(e, 0), target) for target in ("random", "always:3"))
    assert not supported.alarms
    assert "Estimates by weights stay unbiased, but normal" in supported.notes[-1]
    assert {"ess", "max_weight"} & {alarm.kind for alarm in alone.alarms}
    assert "unbiased" not in alone.notes[-1]


def test_an_unknown_value_of_a_visit_names_the_targets_that_have_one() -> None:
    log = logged(2, 100)
    (alarm,) = (a for a in evaluate(log, "greedy:ridge").alarms if a.kind == "truth")
    assert "choose the target uniformly random choice or always one item" in alarm.sentence


def test_visits_are_kept_in_files_and_read_from_tables(tmp_path: Path) -> None:
    log = visits("random")
    assert log.visits is not None
    assert len(np.unique(log.visits)) == log.visits.max() + 1
    write_parquet(log, tmp_path / "log.parquet")
    assert read_log(tmp_path / "log.parquet") == log
    table = "action,reward,propensity,visit\n1,1,.25,b\n0,1,.75,a\n1,1,.25,b\n0,0,.75,c\n0,1,.75,a"
    (tmp_path / "log.csv").write_text(table)
    found = evaluate(tmp_path / "log.csv", Matrix(np.array([0.5, 0.5])))
    small = evaluate(DecisionLog(**SMALL), Matrix(np.array([0.5, 0.5])))
    assert found.estimates == small.estimates
    (tmp_path / "log.csv").write_text(table.replace("b", ""))
    with pytest.raises(UserError, match="visit: is required"):
        read_log(tmp_path / "log.csv")


def test_visits_that_the_end_may_cut_off_are_left_out() -> None:
    """Of three visits with 1, 2 and 2 steps the last begins too late."""
    log = DecisionLog(
        **{**SMALL, "visits": np.array([0, 1, 1, 2, 2]), "rows": np.zeros(5, int)},
        steps=np.array([0, 1, 2, 3, 4]),
    )
    whole, cut = whole_visits(log)
    assert (len(whole), cut) == (3, 1)
    # without steps all are taken as whole
    assert whole_visits(DecisionLog(**SMALL))[1] == 0


def logged(replications: int, steps: int, seed: int = 0) -> DecisionLog:
    """Uniformly random choice among one product of each kind."""
    return record(
        read(
            {
                "simulator": {"kind": "sessions", "n_products": 10},
                "agents": [{"kind": "random"}],
                "steps": steps,
                "replications": replications,
                "seed": seed,
            }
        )
    )


def near(share: float) -> Matrix:
    """Choose the treat of the first category with this probability, otherwise at random."""
    return Matrix((1 - share) / 10 + share * (np.arange(10) == 1))


@pytest.mark.slow
def test_pdis_recovers_the_value_of_a_neighbour_and_its_intervals_hold_it() -> None:
    """Over 100 logs of about 100 visits; benchmarks.reproduction.sessions makes 1,000."""
    log, target = logged(100, 1000), near(0.1)
    values, inside = [], []
    for replication in range(100):
        found = evaluate(log.select(log.rows == replication), target)
        assert found.truth is not None
        truth = found.truth.value
        values.append([e.value for e in found.estimates.values()])
        inside.append([e.low <= truth <= e.high for e in found.estimates.values()])
    error = np.std(values, axis=0, ddof=1) / 100**0.5
    assert (np.abs(np.mean(values, axis=0) - truth) < 4 * error).all()
    # of 100 at 95 %, five standard deviations
    assert (np.mean(inside, axis=0) > 0.95 - 5 * (0.95 * 0.05 / 100) ** 0.5).all()


def test_the_effective_sample_size_falls_with_the_length_of_visits() -> None:
    found = evaluate(logged(10, 600), near(0.5), estimators=["pdis"])
    assert found.ess_by_length[1] > 10 * found.ess_by_length[9]
    assert "ess" in {alarm.kind for alarm in found.alarms}
