"""Small versions of what `benchmarks.reproduction.published` and `benchmarks.reproduction.showdown`
run in full.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import torch

from bandits.agents.neural import base
from bandits.agents.neural.neural_ucb import NeuralUCB
from bandits.experiments.presets import presets
from bandits.results import metrics
from bandits.simulators.classification import Classification
from benchmarks import measure
from benchmarks.measure import put
from benchmarks.reproduction import published, showdown
from tests.contract.worlds import make
from tests.support import thinned


@pytest.mark.parametrize("fused", [True, False])
def test_the_neural_protocol_on_magic_equals_plain_torch(
    fused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Against autograd and torch.optim, as the protocol is written: scores and weights after every
    round.
    """
    # a step evaluates its observations in chunks
    monkeypatch.setattr(base, "FULL_BATCH_CHUNK", 16)
    monkeypatch.setattr(NeuralUCB, "can_fuse", lambda self: fused)
    steps, ridge, nu = 25, published.RIDGE, published.NU
    params = {**published.PROTOCOL, **published.SPREAD["neural_ucb"]}
    options = {"data": "magic", "scale": "norm", "constant": False}
    lane = make("neural_ucb", Classification, rows=[0], options=options, **params)
    agent = lane.agent
    assert isinstance(agent, NeuralUCB)
    module = torch.nn.Sequential(torch.nn.Linear(20, 100), torch.nn.ReLU(), torch.nn.Linear(100, 1))
    torch.nn.utils.vector_to_parameters(agent.net.flat[0].clone(), module.parameters())
    spread = torch.full_like(agent.net.flat[0], ridge)
    shown, rewards = [], []
    for step in range(steps):
        x = torch.tensor(lane.simulator.round_at(step).features[0], dtype=torch.float32)
        mean, gradients = [], []
        for arm in x:
            module.zero_grad()
            out = module(arm)
            out.backward()
            mean.append(float(out.detach()))
            gradients.append(
                torch.cat([p.grad.flatten() for p in module.parameters() if p.grad is not None])
            )
        width = [float((ridge * nu * g * g / spread).sum().sqrt()) for g in gradients]
        scores = np.array(mean) + np.array(width)
        np.testing.assert_allclose(
            agent.scores(lane.simulator.round_at(step))[0], scores, atol=2e-5
        )
        trace = lane.advance(1)
        arm = int(trace.items[0, 0, 0])
        spread += gradients[arm] ** 2
        shown.append(x[arm])
        rewards.append(float(trace.rewards[0, 0]))
        optimiser = torch.optim.SGD(module.parameters(), lr=0.01, weight_decay=ridge / len(shown))
        for _ in range(100):
            optimiser.zero_grad()
            torch.nn.functional.mse_loss(
                module(torch.stack(shown))[:, 0], torch.tensor(rewards)
            ).backward()
            optimiser.step()
        flat = torch.nn.utils.parameters_to_vector(module.parameters()).detach()
        np.testing.assert_allclose(agent.net.flat[0], flat, atol=2e-5)


@pytest.mark.parametrize(
    ("function", "steps"),
    thinned([("quadratic", 2500), ("form", 1500)], lambda _: False, lambda number: number == 1),
)
def test_neural_ucb_beats_linucb_on_quadratic_rewards(function: str, steps: int) -> None:
    """The published order: uniform, then LinUCB, then NeuralUCB; paired, three standard errors."""
    settings = {"kind": "synthetic", "function": function}
    uniform, linear, network = (
        published.regret(settings, agent, steps, 4) for agent in published.SYNTHETIC_AGENTS
    )
    for worse, better in ((uniform, linear), (linear, network)):
        gap = worse - better
        assert gap.mean() > 3 * gap.std(ddof=1) / 2


@pytest.mark.parametrize(
    ("delta", "most"), thinned([(0.5, 10), (0.9, 50)], lambda _: False, lambda number: number == 1)
)
def test_neural_linear_explores_the_rim_of_the_wheel(delta: float, most: float) -> None:
    """Per cent of uniform's regret in a short run, in every run.

    Who never found the rim would have over 120.

    Three quarters of the disc are rim at delta .5 (measured: 5 to 7), a fifth at .9 (11 to 40).
    """
    share = published.wheel_share(delta, 3000, 4, {**published.NEURAL_LINEAR, "every": 100})
    assert share.max() < most


def test_the_settings_of_the_published_program_run_and_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BANDITS_HOME", str(tmp_path))
    job = (0.5, "start", 0)
    share, hours, made = published.program_block(job, 600)
    assert share.shape == (published.BLOCK,)
    # uniform choice has 100
    assert share.max() < 50
    again = published.program_block(job, 600)
    assert (again[0].tolist(), *again[1:]) == (share.tolist(), hours, made)


def test_earlier_replications_are_pooled_by_their_mean_and_standard_deviation() -> None:
    values = np.random.default_rng(3).normal(2000, 50, 9)
    first = values[:4]
    mean, sd = published.pooled((4, float(first.mean()), float(first.std(ddof=1))), values[4:])
    np.testing.assert_allclose((mean, sd), (values.mean(), values.std(ddof=1)), rtol=1e-12)


def test_the_showdown_is_the_same_experiment_on_either_features() -> None:
    usual, crossed = showdown.run_preset(100, False, 120, 2), showdown.run_preset(100, True, 120, 2)
    assert list(usual.grid) == list(crossed.grid)
    assert list(crossed.clicks) == [showdown.INTERACTION]
    assert set(showdown.PER_ARM) | {showdown.STATIC} <= set(usual.clicks)
    assert (
        usual.between(showdown.STATIC, 0, 120).tolist()
        == usual.clicks[showdown.STATIC][-1].tolist()
    )


def test_verdicts_of_the_showdown_follow_from_its_intervals() -> None:
    ahead, behind, level = (
        metrics.Estimate(5, 1, 9),
        metrics.Estimate(-5, -9, -1),
        metrics.Estimate(1, -3, 5),
    )

    def words(early: dict[str, list[metrics.Estimate]], rows: list[tuple[str, ...]]) -> list[str]:
        return re.findall(r"\*\*(\w+)\*\*", showdown.claims(early, rows))

    rows: list[tuple[str, ...]] = [(showdown.STATIC, "no"), ("A", "yes"), ("B", "inconclusive")]
    actual = words({"A": [ahead, ahead], "B": [level, behind]}, rows)
    assert actual == ["confirmed", "mixed", "confirmed", "confirmed"]
    rows = [(showdown.STATIC, "inconclusive"), ("A", "no")]
    assert words({"A": [behind, level]}, rows) == [
        "refuted",
        "inconclusive",
        "refuted",
        "inconclusive",
    ]


def test_the_showdown_reports_a_recovery_only_if_there_is_one() -> None:
    experiment = presets()["showdown"].experiment
    one, other = (
        showdown.remarks([("Static MLP", "0.5", "no"), ("LinUCB shared", "0.2", word)], experiment)
        for word in ("yes", "no")
    )
    assert "had little to lose: 0.200" in one
    assert "recover" not in other
    assert (
        "The replay buffer of Neural-LinUCB, Neural-linear TS, Ensemble, MC dropout holds all "
        "steps." in other
    )


def test_sections_replace_only_their_own_earlier_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = tmp_path / "REPORT.md"
    monkeypatch.setattr(measure, "stamp", lambda _: "")
    report.write_text(
        "# Title\n\n## Wheel bandit, NeuralLinear\n\nold\n\n## Pet shop, layout shared: "
        "long\n\nkept\n"
    )
    monkeypatch.setattr(published, "REPORT", report)
    made = {
        name: (title, lambda name=name, **_: f"new {name}")
        for name, (title, _) in published.SECTIONS.items()
    }
    monkeypatch.setattr(published, "SECTIONS", made)
    published.main([])
    text = report.read_text()
    # of one title, the last
    written = {title: name for name, (title, _) in made.items()}
    assert text.count("\n## ") == len(written) + 1
    assert "old" not in text
    assert "kept" in text
    for name in written.values():
        assert text.count(f"new {name}\n") == 1
    put(report, "## Pet shop, layout per_row: longer\n\nbeside")
    assert "kept" in report.read_text()
    with pytest.raises(SystemExit):
        published.main(["moon"])
