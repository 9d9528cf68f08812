"""The bound √(1/λ min) of the confidence width, against matrices computed step by step."""

from __future__ import annotations

import numpy as np
import pytest

from bandits import run
from bandits.diagnostics import figures, findings
from bandits.diagnostics.curves import exploration_bonus, width_bound
from bandits.experiments.lockstep import make_lane
from bandits.experiments.snapshots import Spectrum
from tests.support import experiment, history, traces

WORLD = {"kind": "synthetic", "function": "linear", "n_features": 6, "n_arms": 5}
ALPHA, RIDGE = 0.7, 2.0
AGENT = {"kind": "linucb", "sharing": "shared", "alpha": ALPHA, "ridge": RIDGE}


def test_the_bound_equals_numpys_and_holds() -> None:
    """A = λI + Σxx′ of the chosen features.

    No feature vector of norm 1 has a larger width, and the bonus is below.
    """
    e = experiment(AGENT, simulator=WORLD, steps=300, replications=4)
    ((label, trace),) = traces(e).items()
    h = run(e).histories[label]
    simulator = make_lane(e, 0).simulator
    rng, rows = np.random.default_rng(0), np.arange(4)
    A = np.tile(RIDGE * np.eye(6), (4, 1, 1))
    expected = []
    for step in range(300):
        chosen = simulator.round_at(step).features[rows, trace.items[step, :, 0]]
        A += chosen[:, :, None] * chosen[:, None, :]
        if step + 1 in [s.step for s in h.spectra]:
            bounds = np.linalg.eigvalsh(A)[:, 0] ** -0.5
            expected.append(bounds)
            x = rng.standard_normal((1000, 6))
            x /= np.linalg.norm(x, axis=1, keepdims=True)
            widths = np.sqrt(np.einsum("ni,rij,nj->rn", x, np.linalg.inv(A), x))
            assert (widths <= bounds[:, None] * (1 + 1e-9)).all()
    band, bonus = width_bound(h), exploration_bonus(h)
    assert band is not None
    assert bonus is not None
    np.testing.assert_allclose(band.mid, np.mean(expected, axis=1), rtol=1e-9)
    # features lie in the unit ball
    assert (bonus.mid <= ALPHA * band.mid).all()


def test_with_several_models_the_bound_is_that_of_the_least_explored() -> None:
    h = history(np.zeros((50, 2)))
    assert width_bound(h) is None
    values = np.array([[[9.0, 4.0], [25.0, 16.0]], [[9.0, 1.0], [4.0, np.nan]]])
    h.spectra = [Spectrum(10, values), Spectrum(50, 4 * values)]
    band = width_bound(h)
    assert band is not None
    np.testing.assert_allclose(band.mid, [(0.5 + 1) / 2, (0.25 + 0.5) / 2])


@pytest.mark.parametrize(
    ("kind", "drawn"), [("linucb", True), ("beta_ts", False), ("random", False)]
)
def test_the_bonus_panel_names_the_bound_in_its_legend(kind: str, drawn: bool) -> None:
    result = run(experiment(kind, steps=400, replications=4))
    (label,) = result.histories
    panel = figures.panels(result, label, findings(result, label))["exploration_bonus"]
    names = [t["name"] for t in panel["data"] if t.get("showlegend")]
    assert (figures.WIDTH_BOUND in names) == drawn
    if drawn:
        assert names == [label, "1/√t", figures.WIDTH_BOUND]
        assert panel["layout"]["showlegend"] is True
        styles = {t["name"]: t["line"] for t in panel["data"]}
        assert styles["1/√t"]["dash"] == "dot"
        assert styles[figures.WIDTH_BOUND] | {"color": ""} == {
            "color": "",
            "width": 1.2,
            "dash": "dash",
        }
        assert panel["layout"]["yaxis"]["type"] == panel["layout"]["xaxis"]["type"] == "log"
