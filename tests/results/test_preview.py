"""A preview has the bits of a run: for every agent, simulator, size and parameter."""

from __future__ import annotations

import tracemalloc
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bandits
from bandits import Experiment, Preview, UserError, read, run
from bandits.agents import REGISTRY as AGENTS
from bandits.base.randomness import KeptStreams, Streams
from bandits.experiments.adaptation import suited_agent
from bandits.experiments.history import History
from tests.support import often, thinned

WORLDS: list[dict[str, Any]] = [
    {"kind": "petshop", "n_products": 12, "n_users": 60},
    {"kind": "petshop", "n_products": 8, "n_users": 60, "features": "interaction", "shock_step": 90},
    {"kind": "petshop", "n_products": 6, "layout": "per_row", "features": "both"},
    {"kind": "ranking", "n_users": 30, "n_items": 60, "n_candidates": 12, "slate": 3, "embedding": 4},
    {"kind": "synthetic", "n_features": 4, "n_arms": 3},
    {"kind": "wheel"},
]
PARAMS: dict[str, tuple[str, float, float]] = {
    "linucb": ("alpha", 0, 4), "lints": ("sigma2", 0.001, 2), "epsilon_greedy": ("epsilon", 0, 1),
    "ucb1": ("alpha", 0, 4), "beta_ts": ("prior_clicks", 0.5, 5), "logistic_ucb": ("alpha", 0, 2),
    "logistic_ts": ("sigma2", 0.01, 1), "sgd_ts": ("sigma2", 0.01, 1),
}  # fmt: skip
SHARING = ("linucb", "lints", "epsilon_greedy")


def same(preview: History, whole: History) -> None:
    """Compare everything but the snapshots before the last."""
    a, b = preview.state_dict(), whole.state_dict()
    of_snapshots = ("spectrum.", "calibration.", "checkup.", "exploration.", "segment_exploration.")
    names = {name for name in b if not name.startswith(of_snapshots)} - {"seconds", "processor_seconds"}
    assert names <= a.keys()
    for name in names:
        np.testing.assert_array_equal(a[name], b[name], err_msg=name)
    assert [s.step for s in preview.spectra] == [s.step for s in whole.spectra[-1:]]
    for mine, other in zip(preview.spectra, whole.spectra[-1:], strict=True):
        np.testing.assert_array_equal(mine.eigenvalues, other.eigenvalues)


@pytest.mark.slow
@settings(max_examples=often(40, 200))
@given(st.data())
def test_a_preview_equals_a_run(data: st.DataObject) -> None:
    plain: dict[str, Any] = {"simulator": data.draw(st.sampled_from(WORLDS)), "steps": 150, "replications": 3}
    e = read({**plain, "agents": [{"kind": "random"}]})
    capabilities = e.simulator_class().describe(e.simulator).capabilities
    kind = data.draw(st.sampled_from([kind for kind in PARAMS if AGENTS[kind].needs <= capabilities]))
    agent = suited_agent(kind, {**plain, "agents": []})
    if kind in SHARING and e.simulator.kind == "petshop":
        agent["sharing"] = data.draw(st.sampled_from(["per_arm", "shared"]))
    e = read({**plain, "agents": [agent, {"kind": "random"}]})
    name, low, high = PARAMS[kind]
    preview = Preview(e)
    for _ in range(2):
        size = data.draw(st.fixed_dictionaries({"steps": st.integers(1, 200), "replications": st.integers(1, 4)}))
        value = data.draw(st.floats(low, high))
        result = preview.update(e.labels[0], **size, **{name: value})
        assert getattr(result.experiment.agents[0], name) == value
        same(result.histories[e.labels[0]], run(result.experiment, workers=0).histories[e.labels[0]])


@pytest.mark.parametrize("kind", thinned([k for k in AGENTS if k != "static_mlp"], lambda number: number % 3 == 0))
def test_every_agent_has_a_preview_with_the_curves_of_a_run(kind: str) -> None:
    params = (AGENTS[kind].test_params() or [{}])[0]
    e = read({"simulator": WORLDS[0], "agents": [{"kind": kind, **params}], "steps": 60, "replications": 2})
    (label,) = e.labels
    preview = Preview(e)
    preview.update(label, steps=40)  # what it leaves behind changes nothing
    actual, whole = preview.update(label), run(e, workers=0)
    same(actual.histories[label], whole.histories[label])
    for name in ("ctr", "pseudo_regret", "realised_regret", "entropy", "spectrum"):
        for mine, other in zip(actual.curve(name).values(), whole.curve(name).values(), strict=True):
            np.testing.assert_array_equal(np.asarray(mine.mid), np.asarray(other.mid))
    (mine,), (other,) = (result.summary()["agents"].values() for result in (actual, whole))
    unknown = {"exploration_rate"}  # a preview asks no agent for its best means: nothing that redraws shows it
    for one in (*mine.get("segments", {}).values(), *other.get("segments", {}).values()):
        one.pop("exploration")
    assert {n: v for n, v in mine.items() if n not in unknown} == {n: v for n, v in other.items() if n not in unknown}
    assert preview.seconds(label) > 0


def test_a_label_stays_whatever_its_parameter() -> None:
    preview = Preview(read({"agents": [{"kind": "linucb"}, {"kind": "linucb", "label": "mine"}], "steps": 30}))
    assert list(preview.update("LinUCB", alpha=2.0).histories) == ["LinUCB"]
    result = preview.update("mine", alpha=2.0)
    assert list(result.histories) == ["mine"]
    assert [a.alpha for a in result.experiment.agents] == [0.5, 2.0]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"label": "nobody"}, "there is no agent nobody; the agents are LinUCB, Static MLP"),
        ({"label": "LinUCB", "alpha": 11.0}, "agents.0.alpha (LinUCB) is 11.0; it must be a number from 0 to 10"),
        ({"label": "LinUCB", "steps": 0}, "steps is 0; it must be a whole number from 1"),
        ({"label": "LinUCB", "colour": 1}, "agents.0.colour"),
        ({"label": "Static MLP"}, "Static MLP is trained before its first step; run the experiment instead"),
    ],
)
def test_what_is_refused(change: dict[str, Any], message: str) -> None:
    e = read({"agents": [{"kind": "linucb"}, {"kind": "static_mlp"}], "steps": 30, "seed": 987})
    with pytest.raises(UserError) as caught:
        Preview(e).update(**change)
    assert str(caught.value).startswith(message)


def test_kept_draws_are_those_of_plain_streams_and_end_at_the_limit() -> None:
    def drawn(streams: Streams, scale: float) -> Any:
        draws = streams.blocks("agent", lambda g, n: scale * g.random((n, 4)), width=4)
        return np.concatenate([draws.slice(0, 1500), draws.slice(900, 300)])

    plain, kept = Streams(3, range(2)), KeptStreams(3, range(2), limit=100_000)
    for scale in (1.0, 2.0, 1.0, 1, True):  # a function of another value is another function
        np.testing.assert_array_equal(drawn(kept, scale), drawn(plain, scale))
    assert 0 <= kept.left < 1024 * 2 * 4 * 8  # no further block fits


def test_draws_of_a_function_that_uses_more_than_plain_values_are_not_shared() -> None:
    class Scale:
        def __init__(self, by: float) -> None:
            self.by = by

        def draw(self, g: np.random.Generator, n: int) -> Any:
            return self.by * g.random((n, 4))

    kept, found = KeptStreams(3, range(2)), []

    def functions(scale: Scale) -> list[Any]:
        return [
            scale.draw, partial(Scale.draw, scale), lambda g, n: scale.draw(g, n), lambda g, n, of=scale: of.draw(g, n),
            lambda g, n, *, by=scale.by: by * g.random((n, 4)),
        ]  # fmt: skip

    for scale in (Scale(1.0), Scale(100.0)):
        found.append([kept.blocks("agent", f, width=4).slice(0, 5) for f in functions(scale)])
    for small, large in zip(*found, strict=True):
        np.testing.assert_array_equal(100 * small, large)
    assert kept.left == KeptStreams(3, range(2)).left  # nothing is kept for agents that are gone


def test_a_long_preview_needs_no_more_memory_than_its_parts() -> None:
    e = read({"agents": [{"kind": "oracle"}], "steps": 60_000, "replications": 8})
    preview = Preview(e)
    preview.update("Oracle", steps=5000)
    tracemalloc.start()
    preview.update("Oracle")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 60_000 * 8 * 8 * 4  # a trace of all steps has seven numbers a step, and was 33 MB


def test_a_slider_in_a_notebook() -> None:
    import ipywidgets

    e = Experiment.model_validate({"agents": [{"kind": "lints"}, {"kind": "linucb"}], "steps": 30, "replications": 2})
    preview = bandits.Preview(e)
    widget = preview.interact("LinTS", "sigma2")
    slider = widget.children[0]
    assert isinstance(slider, ipywidgets.FloatLogSlider)
    assert slider.value == 0.005
    assert isinstance(preview.interact("LinUCB", "alpha").children[0], ipywidgets.FloatSlider)
    for name in ("sharing", "nothing"):
        with pytest.raises(UserError, match="is not a number that LinUCB has"):
            preview.interact("LinUCB", name)
