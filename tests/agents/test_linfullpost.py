"""LinTS with an estimated noise variance (LinFullPost), against a plain implementation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from bandits.agents.linear.lints import LinTS
from bandits.base.errors import UserError
from bandits.simulators.wheel import Wheel
from tests.contract.worlds import make
from tests.support import experiment

PARAMS: dict[str, Any] = {"noise": "inverse_gamma", "ridge": 0.25, "a0": 6.0, "b0": 5.0}
ARMS, STEPS = 5, 120


class LinFullPost:
    """One Bayesian linear regression with inverse-gamma noise, as Riquelme et al. write it."""

    def __init__(self, features: int) -> None:
        self.x, self.y = np.empty((0, features)), np.empty(0)

    def score(self, x: np.ndarray, uniform: float, normals: np.ndarray, *, vector: bool) -> float:
        """Draw sigma^2 and beta.

        ``vector`` draws all of beta by the Cholesky factor, else its product with x.
        """
        precision = 0.25 * np.eye(len(x)) + self.x.T @ self.x
        mean = np.linalg.solve(precision, self.x.T @ self.y)
        a, b = 6 + len(self.y) / 2, 5 + (self.y @ self.y - mean @ precision @ mean) / 2
        sigma = np.sqrt(stats.invgamma.isf(uniform, a, scale=b))
        if vector:
            return float(
                x @ (mean + sigma * np.linalg.solve(np.linalg.cholesky(precision).T, normals))
            )
        return float(x @ mean + sigma * np.sqrt(x @ np.linalg.solve(precision, x)) * normals)


@pytest.mark.parametrize("sharing", ["per_arm", "shared"])
def test_scores_equal_a_plain_implementation(sharing: str) -> None:
    """Every score of 120 steps on the wheel, from the same uniforms and normals."""
    features = "constant" if sharing == "per_arm" else "plain"
    encoding = "context" if sharing == "per_arm" else "block"
    options = {"delta": 0.5, "features": features, "encoding": encoding}
    lane = make("lints", Wheel, rows=[0], options=options, sharing=sharing, **PARAMS)
    agent = lane.agent
    assert isinstance(agent, LinTS)
    vector = sharing == "shared"
    models = [LinFullPost(lane.simulator.spec.n_features) for _ in range(1 if vector else ARMS)]
    for step in range(STEPS):
        round = lane.simulator.round_at(step)
        x = np.array(round.features[0])
        uniforms, normals = agent.uniforms.at(step)[0], agent.normals.at(step)[0]
        expected = [
            models[0].score(x[k], uniforms[0], normals, vector=True)
            if vector
            else models[arm].score(x[k], uniforms[arm], normals[k], vector=False)
            for k, arm in enumerate(round.items[0])
        ]
        np.testing.assert_allclose(agent.scores(round)[0], expected, rtol=1e-6, atol=1e-9)
        trace = lane.advance(1)
        arm = int(trace.items[0, 0, 0])
        model = models[0] if vector else models[arm]
        model.x = np.vstack([model.x, x[list(round.items[0]).index(arm)]])
        model.y = np.append(model.y, trace.rewards[0, 0])


def test_the_estimated_noise_needs_one_model_per_observation() -> None:
    with pytest.raises(
        (UserError, ValueError), match="needs sharing per_arm or shared, not hybrid"
    ):
        experiment({"kind": "lints", "noise": "inverse_gamma", "sharing": "hybrid"})


def test_later_parameters_leave_the_hash_as_it_was() -> None:
    assert (
        experiment("lints").hash
        == experiment({"kind": "lints", "noise": "fixed", "a0": 6.0, "b0": 6.0}).hash
    )
    assert experiment("lints").hash != experiment({"kind": "lints", "noise": "inverse_gamma"}).hash
