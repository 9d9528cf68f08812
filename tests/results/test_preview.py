"""A preview has the bits of a run: for every agent, simulator, size and parameter."""

from __future__ import annotations

import tracemalloc
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

import bandits
from bandits import Experiment, Preview, UserError, read, run
from bandits.agents import REGISTRY as AGENTS
from bandits.base.randomness import KeptStreams, Streams
from bandits.experiments.adaptation import suited_agent
from bandits.experiments.history import History
from tests.support import often, thinned

SIMULATORS: list[dict[str, Any]] = [
    {"kind": "petshop", "n_products": 12, "n_users": 60},
    {
        "kind": "petshop",
        "n_products": 8,
        "n_users": 60,
        "features": "interaction",
        "shock_step": 90,
    },
    {"kind": "petshop", "n_products": 6, "layout": "per_row", "features": "both"},
    {
        "kind": "ranking",
        "n_users": 30,
        "n_items": 60,
        "n_candidates": 12,
        "slate": 3,
        "embedding": 4,
    },
    {"kind": "synthetic", "n_features": 4, "n_arms": 3},
    {"kind": "wheel"},
]
AT = 30
CHANGES: list[dict[str, Any]] = [
    {"kind": "shock", "at": AT},
    {"kind": "season", "period": 70},
    {"kind": "traffic", "at": AT, "segment": 1, "factor": 4.0},
    {"kind": "features", "at": AT, "column": 0, "how": "swapped", "other": 1},
    {"kind": "launch", "at": AT, "items": 2, "category": "Fish", "quality": 1.5},
    {"kind": "withdraw", "at": AT, "items": 2},
]
GUARDS: list[dict[str, Any]] = [
    {"kind": "floor", "epsilon": 0.3},
    {"kind": "floor", "epsilon": 0.1, "shows": 4, "new": 0.3},
    {"kind": "cap", "share": 0.3, "window": 10},
    {"kind": "delay", "steps": 7},
    {"kind": "delay", "steps": 3, "law": "geometric"},
    {"kind": "batch", "steps": 6},
    {"kind": "reset", "every": 9},
    {"kind": "reset", "monitor": "page_hinkley"},
    {"kind": "fallback", "to": "popularity", "median_ms": 5, "p99_ms": 90},
    {"kind": "fallback", "to": "epsilon_greedy", "median_ms": 5, "p99_ms": 90},
]
PARAMS: dict[str, tuple[str, float, float]] = {
    "linucb": ("alpha", 0, 4),
    "lints": ("sigma2", 0.001, 2),
    "epsilon_greedy": ("epsilon", 0, 1),
    "ucb1": ("alpha", 0, 4),
    "beta_ts": ("prior_clicks", 0.5, 5),
    "logistic_ucb": ("alpha", 0, 2),
    "logistic_ts": ("sigma2", 0.01, 1),
    "sgd_ts": ("sigma2", 0.01, 1),
}
KINDS = list(AGENTS)
SHARING = ("linucb", "lints", "epsilon_greedy")


def same(preview: History, whole: History) -> None:
    """Compare everything but the snapshots before the last."""
    a, b = preview.state_dict(), whole.state_dict()
    of_snapshots = ("spectrum.", "calibration.", "checkup.", "exploration.", "segment_exploration.")
    names = {name for name in b if not name.startswith(of_snapshots)} - {
        "seconds",
        "processor_seconds",
    }
    assert names <= a.keys()
    for name in names:
        np.testing.assert_array_equal(a[name], b[name], err_msg=name)
    assert [s.step for s in preview.spectra] == [s.step for s in whole.spectra[-1:]]
    for mine, other in zip(preview.spectra, whole.spectra[-1:], strict=True):
        np.testing.assert_array_equal(mine.eigenvalues, other.eigenvalues)


def possible(data: dict[str, Any]) -> Experiment:
    """Read a drawn experiment, unless its changes contradict each other or its guards are
    impossible together.
    """
    try:
        return read(data)
    except UserError:
        reject()


@pytest.mark.slow
@settings(max_examples=often(20, 200))
@given(st.data())
def test_a_preview_equals_a_run(data: st.DataObject) -> None:
    simulator = data.draw(st.sampled_from(SIMULATORS))
    if simulator["kind"] == "petshop" and "shock_step" not in simulator:
        simulator = {
            **simulator,
            "changes": data.draw(st.lists(st.sampled_from(CHANGES), max_size=2)),
        }
    plain: dict[str, Any] = {"simulator": simulator, "steps": 150, "replications": 3}
    e = possible({**plain, "agents": [{"kind": "random"}]})
    capabilities = e.simulator_class().describe(e.simulator).capabilities
    kind = data.draw(
        st.sampled_from([kind for kind in PARAMS if AGENTS[kind].needs <= capabilities])
    )
    agent = suited_agent(kind, {**plain, "agents": []})
    if kind in SHARING and e.simulator.kind == "petshop":
        agent["sharing"] = data.draw(st.sampled_from(["per_arm", "shared"]))
    agent["guards"] = data.draw(st.lists(st.sampled_from(GUARDS), max_size=3))
    e = possible({**plain, "agents": [agent, {"kind": "random"}]})
    name, low, high = PARAMS[kind]
    preview = Preview(e)
    shortest = AT + 1 if simulator.get("changes") else 1
    for _ in range(2):
        size = data.draw(
            st.fixed_dictionaries(
                {"steps": st.integers(shortest, 200), "replications": st.integers(1, 4)}
            )
        )
        value = data.draw(st.floats(low, high))
        result = preview.update(e.labels[0], **size, **{name: value})
        assert getattr(result.experiment.agents[0], name) == value
        same(
            result.histories[e.labels[0]], run(result.experiment, workers=0).histories[e.labels[0]]
        )


@pytest.mark.parametrize("guard", thinned(GUARDS, lambda number: number in (0, 2, 3, 5, 6, 8)))
def test_a_preview_of_a_guarded_agent_equals_a_run(guard: dict[str, Any]) -> None:
    simulator = {**SIMULATORS[0], "changes": CHANGES[:1]}
    plain, guarded = ({"kind": "linucb", "guards": guards} for guards in ([], [guard]))
    e = read({"simulator": simulator, "agents": [plain, guarded], "steps": 90, "replications": 2})
    preview, (bare, label) = Preview(e), e.labels
    preview.update(label, steps=50, alpha=3.0)
    found, whole = preview.update(label), run(e, workers=0)
    same(found.histories[label], whole.histories[label])
    different = whole.histories[label].sums["clicks"] != whole.histories[bare].sums["clicks"]
    assert different.any() or guard.get("monitor")


def test_previews_of_guarded_agents_draw_their_random_numbers_once() -> None:
    guards = [{"kind": "floor"}, {"kind": "fallback", "to": "random"}]
    preview = Preview(
        read({"agents": [{"kind": "linucb", "guards": guards}], "steps": 50, "replications": 2})
    )
    (label,), left = preview.experiment.labels, []
    for alpha in (0.5, 1.0, 2.0):
        preview.update(label, alpha=alpha)
        (kept,) = preview._simulators.values()
        assert isinstance(kept.simulator.streams, KeptStreams)
        left.append(kept.simulator.streams.left)
    assert left[0] == left[1] == left[2]


@pytest.mark.parametrize(
    "kind",
    thinned(
        AGENTS,
        lambda number: KINDS[number] in ("linucb", "beta_ts", "oracle"),
        lambda number: number % 4 == 1,
    ),
)
def test_every_agent_has_a_preview_with_the_curves_of_a_run(kind: str) -> None:
    params = (AGENTS[kind].test_params() or [{}])[0]
    visits = "visits" in AGENTS[kind].requires(AGENTS[kind].Params(kind=kind, **params))
    simulator: dict[str, object] = {**SIMULATORS[0], "changes": CHANGES[:1]}
    if visits:
        simulator = {"kind": "sessions", "n_products": 10, "n_users": 40, "observed": "mood"}
    # rewards that come late mean nothing where the visit goes on
    late = [{"kind": "delay", "steps": 5}] if AGENTS[kind].learns and not visits else []
    agent = {"kind": kind, **params, "guards": late}
    e = read({"simulator": simulator, "agents": [agent], "steps": 60, "replications": 2})
    if kind == "static_mlp":
        # which trains it
        run(e, workers=0)
    (label,) = e.labels
    preview = Preview(e)
    # what it leaves behind changes nothing
    preview.update(label, steps=40)
    actual, whole = preview.update(label), run(e, workers=0)
    same(actual.histories[label], whole.histories[label])
    for name in ("ctr", "pseudo_regret", "realised_regret", "entropy", "spectrum"):
        for mine, other in zip(
            actual.curve(name).values(), whole.curve(name).values(), strict=True
        ):
            np.testing.assert_array_equal(np.asarray(mine.mid), np.asarray(other.mid))
    (mine,), (other,) = (result.summary()["agents"].values() for result in (actual, whole))
    # a preview asks no agent for its best means: nothing that redraws shows it
    unknown = {"exploration_rate"}
    for one in (*mine.get("segments", {}).values(), *other.get("segments", {}).values()):
        one.pop("exploration")
    assert {n: v for n, v in mine.items() if n not in unknown} == {
        n: v for n, v in other.items() if n not in unknown
    }
    assert preview.seconds(label) > 0


def test_a_label_stays_whatever_its_parameter() -> None:
    preview = Preview(
        read({"agents": [{"kind": "linucb"}, {"kind": "linucb", "label": "mine"}], "steps": 30})
    )
    assert list(preview.update("LinUCB", alpha=2.0).histories) == ["LinUCB"]
    result = preview.update("mine", alpha=2.0)
    assert list(result.histories) == ["mine"]
    assert [a.alpha for a in result.experiment.agents] == [0.5, 2.0]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"label": "nobody"}, "there is no agent nobody; the agents are LinUCB, Static MLP"),
        (
            {"label": "LinUCB", "alpha": 11.0},
            "agents.0.alpha (LinUCB) is 11.0; it must be a number from 0 to 10",
        ),
        ({"label": "LinUCB", "steps": 0}, "steps is 0; it must be a whole number from 1"),
        ({"label": "LinUCB", "colour": 1}, "agents.0.colour"),
        (
            {"label": "Static MLP"},
            "Static MLP is trained before its first step; run the experiment instead",
        ),
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
    # a function of another value is another function
    for scale in (1.0, 2.0, 1.0, 1, True):
        np.testing.assert_array_equal(drawn(kept, scale), drawn(plain, scale))
    # no further block fits
    assert 0 <= kept.left < 1024 * 2 * 4 * 8


def test_draws_of_a_function_that_uses_more_than_plain_values_are_not_shared() -> None:
    class Scale:
        def __init__(self, by: float) -> None:
            self.by = by

        def draw(self, g: np.random.Generator, n: int) -> Any:
            return self.by * g.random((n, 4))

    kept, found = KeptStreams(3, range(2)), []

    def functions(scale: Scale) -> list[Any]:
        return [
            scale.draw,
            partial(Scale.draw, scale),
            lambda g, n: scale.draw(g, n),
            lambda g, n, of=scale: of.draw(g, n),
            lambda g, n, *, by=scale.by: by * g.random((n, 4)),
        ]

    for scale in (Scale(1.0), Scale(100.0)):
        found.append([kept.blocks("agent", f, width=4).slice(0, 5) for f in functions(scale)])
    for small, large in zip(*found, strict=True):
        np.testing.assert_array_equal(100 * small, large)
    # nothing is kept for agents that are gone
    assert kept.left == KeptStreams(3, range(2)).left


def test_a_long_preview_needs_no_more_memory_than_its_parts() -> None:
    e = read({"agents": [{"kind": "oracle"}], "steps": 60_000, "replications": 8})
    preview = Preview(e)
    preview.update("Oracle", steps=5000)
    tracemalloc.start()
    preview.update("Oracle")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # a trace of all steps has seven numbers a step, and was 33 MB
    assert peak < 60_000 * 8 * 8 * 4


def test_a_slider_in_a_notebook() -> None:
    import ipywidgets

    e = Experiment.model_validate(
        {"agents": [{"kind": "lints"}, {"kind": "linucb"}], "steps": 30, "replications": 2}
    )
    preview = bandits.Preview(e)
    widget = preview.interact("LinTS", "sigma2")
    slider = widget.children[0]
    assert isinstance(slider, ipywidgets.FloatLogSlider)
    assert slider.value == 0.005
    assert isinstance(preview.interact("LinUCB", "alpha").children[0], ipywidgets.FloatSlider)
    for name in ("sharing", "nothing"):
        with pytest.raises(UserError, match="is not a number that the agent has"):
            preview.interact("LinUCB", name)
