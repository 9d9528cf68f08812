"""Agents at their best: the values that are tried, and a comparison that no choice biases."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

from bandits import Experiment, UserError, at_best, read, run
from bandits.base.types import FloatArray
from bandits.cli import main as cli
from bandits.sweeps import Landscape, Sweep
from bandits.sweeps.at_best import VALUES, compared, tunings
from tests.support import often


def experiment(*agents: object, **fields: object) -> Experiment:
    return read({"agents": list(agents), "steps": 20, "replications": 4, **fields})


def test_every_agent_tries_as_many_values_among_them_the_default_and_its_own() -> None:
    e = experiment({"kind": "linucb", "alpha": 1.7}, {"kind": "lints"}, {"kind": "epsilon_greedy"})
    sweeps = [sweep for _, sweep in tunings(e) if sweep]
    assert [sweep.axes[0].path for sweep in sweeps] == [
        "agents.0.alpha",
        "agents.0.sigma2",
        "agents.0.epsilon",
    ]
    assert {0.5, 1.7, 0.0} <= set(sweeps[0].values[0])
    assert all(VALUES - 1 <= sweep.size <= VALUES for sweep in sweeps)
    assert {sweep.search for sweep in sweeps} == {"halving"}
    assert {sweep.experiment.seed for sweep in sweeps} == {e.seed}


def test_the_comparison_has_the_best_values_and_visitors_that_chose_none() -> None:
    e = experiment(
        {"kind": "linucb", "label": "LinUCB alpha 1.5", "alpha": 1.5},
        {"kind": "lints", "label": "Mine"},
        {"kind": "random"},
    )
    found = compared(e, [Peak(sweep) if sweep else None for _, sweep in tunings(e)])
    linucb, lints, _ = found.experiment.agents
    alphas, sigmas = (s.values[0] for _, s in tunings(e) if s)
    assert (linucb.alpha, lints.sigma2) == (alphas[2], sigmas[2])  # type: ignore[attr-defined]
    assert found.experiment.labels == (f"LinUCB alpha {alphas[2]:g}", "Mine", "Random")
    assert found.experiment.seed == e.seed + 1
    assert "Not tuned: Random." in found.sentence
    assert f"Mine with sigma2 {sigmas[2]:g} (best of {len(sigmas)}; " in found.sentence


def test_agents_that_differ_in_the_tuned_parameter_alone_are_one() -> None:
    e = experiment(
        *({"kind": "linucb", "alpha": alpha} for alpha in (0.1, 1.5)), {"kind": "random"}
    )
    found = at_best(e)
    assert len(found.experiment.agents) == 2
    assert "LinUCB and LinUCB 2 are one agent at their best." in found.sentence


@pytest.mark.parametrize(
    ("agents", "refused"),
    [
        (({"kind": "linucb"}, {"kind": "linucb", "alpha": 1.5}), "differ in more than"),
        (({"kind": "random"}, {"kind": "oracle"}), "none of these agents has a parameter"),
    ],
)
def test_a_comparison_without_anything_to_tune_is_refused(
    agents: tuple[object, ...], refused: str
) -> None:
    with pytest.raises(UserError, match=refused):
        at_best(experiment(*agents))


def test_the_command_line_runs_the_comparison(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("BANDITS_HOME", str(tmp_path))
    e = experiment({"kind": "epsilon_greedy"}, {"kind": "random"})
    (tmp_path / "e.json").write_text(e.model_dump_json())
    out = tmp_path / "out"
    arguments = [str(tmp_path / "e.json"), "--at-best", "--workers", "0", "--out", str(out)]
    assert cli.main(["run", *arguments]) == 0
    found = at_best(e)
    assert capsys.readouterr().out.startswith(found.sentence)
    assert read((out / "experiment.json").read_text()) == found.experiment


class Peak(Landscape):
    """A landscape whose third point is the best in every replication."""

    def __init__(self, sweep: Sweep) -> None:
        super().__init__(sweep)
        self.completed[:] = self.alive[:] = True

    def numbers(self, metric: str) -> FloatArray:
        return np.where(np.arange(self.sweep.size)[:, None] == 2, 1.0, 0.0) + np.zeros((1, 4))


@pytest.mark.slow
def test_the_choice_does_not_bias_the_comparison_of_equal_agents() -> None:
    """At the first step every value of epsilon earns as much as random choice. On the visitors that
    chose, the best value earns more; on those of the comparison it does not, and the test of the
    difference errs at its level.
    """
    on_choice: list[float] = []
    fresh: list[float] = []
    errors = 0
    for seed in itertools.islice(itertools.count(step=2), often(60, 400)):
        tuned = at_best(
            experiment(
                {"kind": "epsilon_greedy_averages"},
                {"kind": "random"},
                simulator={
                    "kind": "levers",
                    "means": "normal",
                    "reward": "gaussian",
                    "layout": "per_row",
                },
                steps=1,
                replications=16,
                seed=seed,
            )
        ).experiment
        assert tuned.seed == seed + 1
        for differences, at in ((on_choice, seed), (fresh, seed + 1)):
            result = run(tuned.model_copy(update={"seed": at}), workers=0)
            found = result.compare(tuned.labels[0], "Random").difference
            differences.append(found.mean)
        errors += bool(found.low > 0 or found.high < 0)
    n = len(fresh)
    # three standard errors of a mean, and of a share of .05
    assert np.mean(on_choice) > 2 * np.std(on_choice) / n**0.5
    assert abs(np.mean(fresh)) < 3 * np.std(fresh) / n**0.5
    assert errors < n * 0.05 + 3 * (n * 0.05 * 0.95) ** 0.5
