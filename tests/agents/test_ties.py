"""Arms that nothing tells apart are shown equally often, wherever they stand, by every agent."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from scipy.stats import chisquare

from bandits import read, run
from bandits.agents import REGISTRY as AGENTS
from bandits.base.types import FloatArray
from bandits.contract.environments import Linear, capabilities
from bandits.experiments.lockstep import make_lane
from bandits.simulators.datasets.csv_table import inspect
from bandits.simulators.datasets.uploads import save_dataset
from tests.contract import worlds
from tests.support import thinned

ARMS, STEPS = 5, 12
ROWS = range(200)
# these show the first candidate by definition, or the first of the best
KINDS = [kind for kind in AGENTS if kind not in ("default", "oracle")]


class Equal(Linear):
    """The linear simulator in which all arms of a visit have the same features."""

    class Params(Linear.Params):
        kind: Literal["test_equal"] = "test_equal"  # type: ignore[assignment]

    title = "Equal arms"

    def draw_features(self, generator: np.random.Generator, n: int) -> FloatArray:
        drawn = super().draw_features(generator, n)
        return np.repeat(drawn[:, :1], self.params.n_arms, axis=1)


FITTING = [
    (kind, i, params)
    for kind in KINDS
    for i, params in enumerate(AGENTS[kind].test_params())
    if AGENTS[kind].requires(AGENTS[kind].Params(**params)) <= capabilities("linear")
]


@pytest.mark.parametrize(
    ("kind", "params"),
    thinned(
        [pytest.param(kind, params, id=f"{kind}-{i}") for kind, i, params in FITTING],
        lambda n: FITTING[n][1] == 0 and FITTING[n][0] not in (*worlds.NEURAL, "static_mlp"),
        lambda n: FITTING[n][1] == 0,
    ),
)
def test_equal_arms_are_shown_equally_often(kind: str, params: dict[str, Any]) -> None:
    """First choices are uniform: chi-square with a false alarm in 1e-6; the shares of all choices
    are within five standard errors, rows being independent.
    """
    options = {"n_arms": ARMS, "reward": "bernoulli"}
    agents = [AGENTS[kind].Params(**params)] * len(ROWS)
    lane = worlds.make(agents, Equal, rows=ROWS, options=options)
    lane.agent.prepare()
    round = lane.simulator.round_at(0)
    stated = lane.agent.probabilities(round)
    # equal, or estimated from redraws
    assert np.abs(stated.mean(axis=0) - 1 / ARMS).max() < 5 * np.sqrt(0.25 / len(ROWS))
    shown = lane.advance(STEPS).items[:, :, 0]
    assert chisquare(np.bincount(shown[0], minlength=ARMS)).pvalue > 1e-6
    share = (shown[:, :, None] == np.arange(ARMS)).mean(axis=0)
    error = np.maximum(share.std(axis=0, ddof=1), 1 / STEPS) / np.sqrt(len(ROWS))
    assert (np.abs(share.mean(axis=0) - 1 / ARMS) < 5 * error).all()


@pytest.mark.slow
@pytest.mark.parametrize("frequent", ["a", "e"])
def test_the_name_of_the_best_class_changes_nothing(
    frequent: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Five classes without context, one of 60 % and four of 10 %.

    A greedy agent keeps the first class that it shows rightly, class k with probability p_k: its
    share of right answers is the sum of p_k squared, .40.
    """
    monkeypatch.setenv("BANDITS_HOME", str(tmp_path))
    others = [name for name in "abcde" if name != frequent]
    labels = [frequent] * 6 + others
    table = inspect("\n".join(["one,label", *(f"1,{label}" for label in labels * 100)]).encode())
    data = save_dataset(table, target="label", title="Ties")
    agents = [
        {"kind": "linucb", "alpha": 0.0},
        {"kind": "epsilon_greedy", "epsilon": 0.0},
        {"kind": "epsilon_greedy", "epsilon": 0.1, "label": "explores"},
    ]
    found = run(
        read(
            {
                "simulator": {"kind": "classification", "data": data},
                "agents": agents,
                "steps": 400,
                "replications": 200,
            }
        ),
        workers=0,
        progress=False,
    )
    right = {label: history.sums["value"][-1] / 400 for label, history in found.histories.items()}
    for label in list(right)[:2]:
        error = right[label].std(ddof=1) / np.sqrt(200)
        assert abs(right[label].mean() - 0.40) < 4.5 * error
    assert right["explores"].mean() > 0.45


def test_greedy_agents_of_the_pet_shop_earn_what_random_choice_earns() -> None:
    """The first product that is clicked is a product of average worth, whatever its number."""
    found = run(
        read(
            {
                "simulator": {"kind": "petshop"},
                "agents": [{"kind": "linucb", "alpha": 0.0}, {"kind": "random"}],
                "steps": 2000,
                "replications": 64,
            }
        ),
        workers=0,
        progress=False,
    )
    greedy, chance = (history.sums["value"][-1] / 2000 for history in found.histories.values())
    difference = greedy - chance
    assert abs(difference.mean()) < 4 * difference.std(ddof=1) / np.sqrt(64)
    # the agent has 50 products to keep: several are kept in 64 replications
    assert len(np.unique(np.round(greedy, 2))) > 5


def test_chunks_rows_and_agents_of_a_replication_break_the_same_ties() -> None:
    """A run in parts, a row alone, and another agent with the same tied scores show the same."""
    agents = [{"kind": "linucb", "alpha": 0.0}, {"kind": "epsilon_greedy", "epsilon": 0.0}]
    e = read({"simulator": {"kind": "petshop"}, "agents": agents, "steps": 90, "replications": 3})
    whole = make_lane(e, 0).advance(90).items
    parts = make_lane(e, 0)
    assert np.array_equal(np.concatenate([parts.advance(n).items for n in (1, 50, 39)]), whole)
    assert np.array_equal(make_lane(e, 0, rows=[2]).advance(90).items[:, 0], whole[:, 2])
    assert np.array_equal(make_lane(e, 1).advance(90).items, whole)
    assert len(np.unique(whole)) > 1
