"""Features of tables are scaled as stated, and a constant survives scaling."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from sklearn.preprocessing import MinMaxScaler, Normalizer, StandardScaler

from bandits import UserError, read, run
from bandits.base.randomness import Streams
from bandits.contract import environments, simulators
from bandits.experiments import url
from bandits.simulators.classification import SIZES, Classification, load
from bandits.simulators.datasets import uploads
from bandits.simulators.datasets.csv_table import inspect
from bandits.simulators.datasets.scaling import Scale, prepared, scaled
from tests.pages.support import open_page

SCALES = get_args(Scale)


def plan(ridge: float = 1.0, **simulator: Any) -> dict[str, Any]:
    world = {"kind": "classification", "data": "wine", **simulator}
    return {
        "simulator": world,
        "agents": [{"kind": "linucb", "sharing": "shared", "alpha": 1.0, "ridge": ridge}],
    }


@pytest.mark.parametrize("data", ["wine", "digits", "breast_cancer"])
def test_scaled_features_equal_those_of_scikit_learn(data: str) -> None:
    raw = load(data, "none").features
    assert np.abs(raw).max() > 10
    for scale, reference in (
        ("norm", Normalizer()),
        ("minmax", MinMaxScaler()),
        ("standard", StandardScaler()),
    ):
        found = load(data, scale)
        np.testing.assert_allclose(
            found.features, reference.fit_transform(raw), rtol=1e-9, atol=1e-9
        )
        assert np.array_equal(found.labels, load(data).labels)


@pytest.mark.parametrize("data", SIZES)
def test_every_scale_is_an_experiment_of_its_own(data: str) -> None:
    # of unscaled features, which reach 1e6 in adult, a smaller ridge is refused
    hashes = {read(plan(ridge=10.0, data=data, scale=scale)).hash for scale in SCALES}
    assert len(hashes) == len(SCALES)
    left_out, stated = (
        read(plan(data=data, **more)) for more in ({}, {"scale": "standard", "constant": True})
    )
    assert url.to_query(stated) == url.to_query(left_out)


@pytest.mark.parametrize("scale", SCALES)
def test_the_constant_feature_comes_last_and_is_1_on_every_scale(scale: Scale) -> None:
    for without in (np.array([[3.0], [3.0]]), np.array([[0.0, 5.0], [0.0, -5.0]])):
        found = prepared(without, scale, constant=True)
        assert np.array_equal(found[:, :-1], scaled(without, scale))
        assert (found[:, -1] == 1).all()


def test_constant_extreme_and_missing_numbers() -> None:
    columns = np.array([[7.1, 1e100, -1.0], [7.1, -1e100, 3.0], [7.1, 0.0, 1.0]])  # -1: missing
    np.testing.assert_allclose(scaled(columns, "minmax"), [[0, 1, 0], [0, 0, 1], [0, 0.5, 0.5]])
    standard = scaled(columns, "standard")
    assert not standard[:, 0].any()
    np.testing.assert_allclose(standard[:, 1:].mean(axis=0), 0, atol=1e-15)
    np.testing.assert_allclose(standard[:, 1:].std(axis=0), 1)
    huge = np.full((3, 1), 0.1e100)
    assert not scaled(huge, "standard").any()
    assert not scaled(huge, "minmax").any()
    for scale in SCALES:
        assert np.isfinite(scaled(columns, scale)).all()
        assert scaled(np.zeros((2, 2)), scale).tolist() == [[0, 0], [0, 0]]


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("check", simulators.CHECKS, ids=lambda check: check.__name__)
def test_every_scale_fulfils_the_contract(
    check: Callable[[str], None], scale: Scale, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(environments._PARAMS, "classification", {"data": "wine", "scale": scale})
    check("classification")


@pytest.mark.parametrize("scale", SCALES)
def test_rounds_and_logs_hold_scaled_features_of_uploads(
    scale: Scale, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BANDITS_HOME", str(tmp_path))
    text = "age,city,bought\n" + "".join(
        f"{20 + i},{'Rome' if i % 3 else 'Oslo'},{'ny'[i % 2]}\n" for i in range(12)
    )
    name = uploads.save_dataset(inspect(text.encode()), target="bought", title="Mine")
    raw = np.array([[20 + i, float(i % 3 > 0)] for i in range(12)])
    expected = {tuple(x) for x in scaled(raw, scale)}
    built = Classification(
        Classification.Params(data=name, scale=scale, constant=False, encoding="context"),
        Streams(3, (0, 1)),
    )
    seen = {tuple(x) for step in range(12) for x in built.round_at(step).features[:, 0]}
    assert seen == expected
    assert {tuple(x) for x in built.log(0, 300).values} == expected


def test_small_numbers_are_learned_from_only_where_features_are_scaled() -> None:
    """docs/data.md: after the norm, one of 13 features of wine has nearly all of the length of an
    example.
    """
    share = (load("wine", "norm").features ** 2).mean(axis=0)
    assert share.max() > 0.97
    right = {}
    for scale in SCALES:
        result = run(
            read({**plan(scale=scale, constant=False), "steps": 1000, "replications": 8}), workers=0
        )
        right[scale] = result.summary()["agents"]["LinUCB"]["ctr"]
    assert right["norm"]["high"] < 0.65
    assert all(right[scale]["low"] > 0.9 for scale in SCALES if scale != "norm")


@pytest.mark.parametrize("scale", ["log", "", None, 1, "Norm"])
def test_other_values_are_refused(scale: Any) -> None:
    with pytest.raises(UserError, match=r"simulator\.scale"):
        read(plan(scale=scale))


def test_the_form_of_the_simulator_offers_scales_with_help() -> None:
    at = open_page("arena", url.to_query(read({**plan(scale="standard"), "steps": 100})))
    assert not at.exception
    (control,) = [each for each in at.sidebar.selectbox if each.label.startswith("Feature scaling")]
    assert control.value == "standard"
    assert list(control.options) == list(SCALES)
    assert control.help == Classification.Params.model_fields["scale"].description
