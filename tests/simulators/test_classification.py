"""Classification data sets as bandits: the published protocol and its results."""

from __future__ import annotations

import math
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bandits import read
from bandits.base.randomness import Streams
from bandits.simulators.classification import SIZES, Classification, load
from bandits_app.session.draft import Draft
from tests.contract.worlds import make

ROWS = (0, 1, 2)


def simulator_of(data: str = "wine", **options: Any) -> Classification:
    return Classification(Classification.Params(data=data, **options), Streams(5, ROWS))


@pytest.mark.parametrize(
    ("kind", "published", "spread"), [("linucb", 2604.4, 34.6), ("lints", 2700.5, 46.7)]
)
def test_the_regret_on_magic_equals_the_published_one(
    kind: str, published: float, spread: float
) -> None:
    """Zhang, Zhou, Li, Gu (2021), T = 10,000: mean and standard deviation over 8 runs."""
    extra = {"alpha": 1.0} if kind == "linucb" else {"sigma2": 1.0}
    lane = make(
        kind,
        Classification,
        rows=range(8),
        options={"data": "magic", "scale": "norm", "constant": False},
        sharing="shared",
        ridge=1.0,
        **extra,
    )
    trace = lane.advance(10_000)
    wrong = (trace.rewards == 0).sum(axis=0)
    regret = (trace.best_value - trace.value).sum(axis=0)
    assert np.array_equal(wrong, regret)
    limit = 3 * math.sqrt(spread**2 / 8 + regret.var(ddof=1) / 8)
    assert abs(regret.mean() - published) < limit


@pytest.mark.parametrize("name", SIZES)
def test_declared_sizes_equal_those_of_the_data(name: str) -> None:
    data = load(name, "norm")
    assert (*data.features.shape, len(data.classes)) == SIZES[name]
    assert data.labels.dtype == np.int64
    assert set(data.labels.tolist()) == set(range(len(data.classes)))
    assert np.isfinite(data.features).all()
    np.testing.assert_allclose(np.linalg.norm(data.features, axis=1), 1, rtol=1e-12)


def test_every_data_set_is_a_choice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # other tests upload data sets
    monkeypatch.setenv("BANDITS_HOME", str(tmp_path))
    assert list(Classification.Params.choices("data") or ()) == list(SIZES)


def test_adult_is_encoded_by_the_protocol() -> None:
    """Categories by alphabetical rank, "?" as -1, each row divided by its length."""
    import pandas as pd

    frame = pd.read_parquet(str(files("bandits.simulators.datasets") / "adult.parquet"))
    data = load("adult", "norm")
    text = frame.select_dtypes(exclude="number").columns[0]
    column = list(frame.columns).index(text)
    names = sorted(set(frame[text].str.strip()) - {"?"})
    age = frame.iloc[:, 0].to_numpy(float)
    coded = (
        frame[text]
        .str.strip()
        .map({**{n: i for i, n in enumerate(names)}, "?": -1})
        .to_numpy(float)
    )
    np.testing.assert_allclose(
        data.features[:, column] * age, coded * data.features[:, 0], atol=1e-9
    )
    assert (coded == -1).any()
    assert data.classes == ("<=50K", ">50K")


def example(built: Any, round: Any) -> Any:
    """Return the index of the example that each row shows, by its features."""
    X, shown = built.data.features, round.features
    shown = shown[:, 0, : X.shape[1]]
    return np.array([int(np.flatnonzero((x == X).all(axis=1))[0]) for x in shown])


def test_encodings() -> None:
    block, context = simulator_of(encoding="block"), simulator_of(encoding="context")
    # 13 columns and a constant
    assert block.spec.n_features == 3 * context.spec.n_features == 42
    for step in (0, 1, 177, 178):
        x = context.round_at(step).features
        wide = block.round_at(step).features
        assert (x == x[:, :1]).all()
        for arm in range(3):
            assert np.array_equal(wide[:, arm, 14 * arm : 14 * (arm + 1)], x[:, arm])
        assert ((wide != 0).sum(axis=2) <= 14).all()
        # the index of the example could reveal the label
        assert not context.round_at(step).users.any()


def test_every_epoch_is_a_new_shuffle_of_all_examples() -> None:
    built, n = simulator_of(), 178
    epochs = [
        np.stack([example(built, built.round_at(e * n + i)) for i in range(n)]) for e in range(3)
    ]
    for order in epochs:
        assert (np.sort(order, axis=0) == np.arange(n)[:, None]).all()
        assert not np.array_equal(order[:, 0], order[:, 1])
    assert not np.array_equal(epochs[0], epochs[1])
    assert not np.array_equal(epochs[1], epochs[2])


@pytest.mark.parametrize("encoding", ["block", "context"])
def test_rounds_do_not_depend_on_the_labels(encoding: Any) -> None:
    honest, mixed = simulator_of(encoding=encoding), simulator_of(encoding=encoding)
    mixed.data = mixed.data._replace(labels=np.roll(mixed.data.labels, 60))
    assert "ids" not in honest.spec.capabilities
    assert honest.spec.n_users == 0
    differs = False
    for step in range(300):
        a, b = honest.round_at(step), mixed.round_at(step)
        assert not a.segments.any()
        for x, y in (
            (a.users, b.users),
            (a.items, b.items),
            (a.features, b.features),
            (a.available, b.available),
        ):
            assert np.array_equal(x, y)
        differs |= not np.array_equal(honest.probabilities(a), mixed.probabilities(b))
    assert differs


def test_the_true_class_has_reward_one() -> None:
    built = simulator_of("digits")
    for step in range(100):
        round = built.round_at(step)
        labels = load("digits").labels[example(built, round)]
        slate = np.array([[labels[0]], [(labels[1] + 1) % 10], [labels[2]]])
        feedback, truth = built.respond(round, slate, np.full((3, 1), 0.999))
        assert feedback.rewards[:, 0].tolist() == truth.value.tolist() == [1, 0, 1]
        assert truth.best_value.tolist() == truth.best_reward.tolist() == [1, 1, 1]
        assert truth.random_value == pytest.approx([0.1, 0.1, 0.1])


@pytest.mark.parametrize("data", ["wine", "digits", "breast_cancer", "adult"])
def test_features_are_finite(data: str) -> None:
    for kind in ("linucb", "lints"):
        for sharing in ("shared", "per_arm", "hybrid"):
            trace = make(
                kind, Classification, rows=[0], options={"data": data}, sharing=sharing
            ).advance(60)
            assert trace.alive.all()
            assert np.isfinite(trace.value).all()


def test_static_mlp_is_accepted_but_not_offered_where_all_arms_share_one_vector() -> None:
    """Stored runs and links with this pair open.

    Forms do not offer it: it cannot distinguish the classes.
    """
    for encoding, offered in (("block", True), ("context", False)):
        simulator = {"kind": "classification", "data": "wine", "encoding": encoding}
        experiment = read({"simulator": simulator, "agents": [{"kind": "static_mlp"}], "steps": 10})
        assert (
            "static_mlp" in Draft(experiment.model_dump(mode="json")).available_kinds()
        ) == offered
