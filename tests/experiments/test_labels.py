"""Labels that state a parameter follow it; all others stay."""

from __future__ import annotations

from typing import Any

import pytest

from bandits.experiments.labels import following_label
from bandits.experiments.presets import presets


@pytest.mark.parametrize(
    ("label", "kind", "before", "after", "expected"),
    [
        ("LinUCB alpha 1.5", "linucb", {"alpha": 1.5}, {"alpha": 0.3}, "LinUCB alpha 0.3"),
        # its default was stated
        ("LinUCB alpha 0.5", "linucb", {}, {"alpha": 4}, "LinUCB alpha 4"),
        (
            "LinUCB ridge 1",
            "linucb",
            {"ridge": 1.0, "alpha": 1.0},
            {"ridge": 1.0, "alpha": 2.0},
            "LinUCB ridge 1",
        ),
        (
            "ε-greedy epsilon 0",
            "epsilon_greedy",
            {"epsilon": 0.0},
            {"epsilon": 0.1},
            "ε-greedy epsilon 0.1",
        ),
        ("LinUCB 40 Fourier", "linucb", {"fourier": 40}, {"fourier": 80}, "LinUCB 80 Fourier"),
        (
            "LinUCB per arm alpha 1.5",
            "linucb",
            {"alpha": 1.5},
            {"alpha": 1, "sharing": "shared"},
            "LinUCB shared alpha 1",
        ),
        (
            "NeuralUCB exact 16-8",
            "neural_ucb",
            {"hidden": [16, 8]},
            {"hidden": (32,)},
            "NeuralUCB exact 32",
        ),
        ("Paper", "neural_ucb", {"scaling": "paper"}, {"scaling": "code"}, "Code"),
        ("LinUCB alpha 1.50", "linucb", {"alpha": 1.5}, {"alpha": 2.0}, "LinUCB alpha 2"),
        (
            "learning rate 0.01",
            "ensemble",
            {"learning_rate": 0.01},
            {"learning_rate": 0.03},
            "learning rate 0.03",
        ),
        # of something else
        ("Number 0.5", "linucb", {"alpha": 0.5}, {"alpha": 1.0}, "Number 0.5"),
        ("LinUCB alpha 1.55", "linucb", {"alpha": 1.5}, {"alpha": 1.0}, "LinUCB alpha 1.55"),
        # refused when it is run, not here
        ("50/50 <b>", "linucb", {"alpha": 0.5}, {"alpha": 1.0}, "50/50 <b>"),
        (None, "linucb", {"alpha": 0.5}, {"alpha": 1.0}, None),
        (
            "A name of forty letters, alpha 0.5 xxxxxx",
            "linucb",
            {},
            {"alpha": 1.25},
            None,
        ),  # too long now
    ],
)
def test_what_a_label_states(
    label: str | None,
    kind: str,
    before: dict[str, Any],
    after: dict[str, Any],
    expected: str | None,
) -> None:
    assert following_label(label, {"kind": kind, **before}, {"kind": kind, **after}) == expected


def test_labels_of_presets_stay_where_nothing_changes() -> None:
    agents = [
        agent.model_dump(mode="json")
        for preset in presets().values()
        for agent in preset.experiment.agents
    ]
    assert all(
        following_label(agent["label"], agent, dict(agent)) == agent["label"] for agent in agents
    )
    assert sum(agent["label"] is not None for agent in agents) > 30
