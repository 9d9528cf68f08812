"""Explanations of decisions agree with the run, and with its agent under other alphas and random
draws.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtr

from bandits import Experiment, UserError
from bandits.agents import REGISTRY as AGENTS
from bandits.experiments.lockstep import make_lane
from bandits.results import decision as whys
from bandits.results.decision import Candidate, Why, next_switch, why
from bandits.results.decision_report import decision, explain_decision
from bandits.results.figures.style import styles
from bandits.simulators import REGISTRY as SIMULATORS
from bandits_app.widgets.live_panel import panel
from tests.contract import worlds
from tests.support import experiment, thinned, traces

STEPS = 60
IDENTICAL = {"petshop": 10, "classification": 3, "wheel": 5}
SIMULATOR_PARAMS: dict[str, dict[str, Any]] = {
    "petshop": {"n_products": 10, "n_users": 40},
    "classification": {"data": "wine"},
    "wheel": {"delta": 0.8},
}


def every_agent(simulator: str) -> list[Experiment]:
    """Return experiments of twelve compatible agents each (in the pet shop, all test
    parameters).
    """
    chosen = {"kind": simulator, **SIMULATOR_PARAMS[simulator]}
    capabilities = (
        SIMULATORS[simulator]
        .describe(SIMULATORS[simulator].Params(**SIMULATOR_PARAMS[simulator]))
        .capabilities
    )
    fit = [
        {"kind": kind, **params}
        for kind, cls in AGENTS.items()
        for params in (cls.test_params() if simulator == "petshop" else cls.test_params()[:1])
        if cls.requires(cls.Params(kind=kind, **params)) <= capabilities
    ]
    n = -(-len(fit) // 12)
    return [experiment(*fit[i::n], simulator=chosen, steps=STEPS) for i in range(n)]


@pytest.mark.parametrize(
    ("environment", "part"),
    thinned(itertools.product(SIMULATOR_PARAMS, range(3)), lambda number: number == 0),
)
def test_explanations_equal_the_trace_of_the_run(environment: str, part: int) -> None:
    for e in every_agent(environment)[part::3]:
        for i, label in enumerate(e.labels):
            # without the calibration probes of a run
            trace = make_lane(e, i).advance(STEPS)
            step, row = ((24, 2), (STEPS, 1))[i % 2]
            actual = why(e, i, step, row)
            shown = actual.candidates[0]
            assert (actual.label, actual.step, actual.replication) == (label, step, row)
            assert (shown.item, shown.slot) == (trace.items[step - 1, row, 0], 1)
            assert actual.reward == trace.rewards[step - 1, row]
            assert shown.truth == trace.value[step - 1, row]
            assert (
                max(c.truth for c in actual.candidates if c.best) == trace.best_value[step - 1, row]
            )
            assert sum(c.alike for c in actual.candidates) == IDENTICAL[environment]
            if actual.how != "score" and not actual.randomised:
                assert shown.score == max(
                    s for c in actual.candidates for s in (c.score, *c.others)
                )
            message = explain_decision(actual)
            assert all(s.endswith(".") and "nan" not in s for s in message), message
            # plain numbers, or gaps in arrays
            panel.pack([decision(actual, styles(e)[label])], 300, alt=[message[0]])


# switching values of alpha


def best_at(mean: list[Fraction], width: list[Fraction], alpha: Fraction) -> int:
    scores = [m + alpha * w for m, w in zip(mean, width, strict=True)]
    return scores.index(max(scores))


numbers = st.integers(-8, 8).map(lambda n: Fraction(n, 4))
lines = st.lists(st.tuples(numbers, numbers.map(abs), st.integers(0, 2)), min_size=2, max_size=7)


@given(candidates=lines, where=st.integers(0, 30))
def test_the_nearest_switching_alpha_equals_an_exhaustive_search(
    candidates: list[Any], where: int
) -> None:
    """The choice is constant between neighbouring crossings of lines, so one test per gap is
    exhaustive.
    """
    mean, width, kind = (list(column) for column in zip(*candidates, strict=True))
    pairs = [(a, b) for a, b in itertools.combinations(range(len(mean)), 2) if width[a] != width[b]]
    crossings = sorted(
        {c for a, b in pairs if (c := (mean[a] - mean[b]) / (width[b] - width[a])) > 0}
    )
    edges = [Fraction(0), *crossings, (crossings[-1] if crossings else Fraction(0)) + 2]
    gaps = [(low + high) / 2 for low, high in itertools.pairwise(edges)]
    here = where % len(gaps)
    chosen = best_at(mean, width, gaps[here])
    arrays = (
        np.array([float(m) for m in mean]),
        np.array([float(w) for w in width]),
        np.array(kind),
    )
    for up in (True, False):
        walk = range(here + 1, len(gaps)) if up else range(here - 1, -1, -1)
        then = next((g for g in walk if kind[best_at(mean, width, gaps[g])] != kind[chosen]), None)
        actual = next_switch(*arrays, chosen, float(gaps[here]), up=up)
        if then is None:
            assert actual is None
        else:
            assert actual == (
                float(edges[then if up else then + 1]),
                best_at(mean, width, gaps[then]),
            )


@pytest.mark.parametrize(
    "agent",
    [
        {"kind": "linucb", "alpha": 1.5},
        {"kind": "linucb", "sharing": "shared"},
        {"kind": "logistic_ucb"},
        {"kind": "neural_ucb", "hidden": (8,)},
        {"kind": "ucb1"},
    ],
    ids=lambda a: "-".join(map(str, a.values())),
)
def test_an_agent_with_the_switching_alpha_shows_the_other_arm(agent: dict[str, Any]) -> None:
    e = experiment(agent, steps=400, replications=1)
    turned = 0
    for step in (30, 100, 250, 400):
        actual = why(e, 0, step)
        lane = make_lane(e, 0, rows=[0])
        lane.advance(step - 1)
        round, other_agent = lane.simulator.round_at(step - 1), lane.agent
        assert other_agent.alpha[0] == actual.scale  # type: ignore[attr-defined]
        for turn, direction in ((actual.below, -1), (actual.above, 1)):
            if turn is None:
                continue
            names = []
            for alpha in (
                turn.at * (1 - direction * 1e-6),
                turn.at * (1 + direction * 1e-6),
            ):
                other_agent.alpha[:] = alpha  # type: ignore[attr-defined]
                names.append(lane.simulator.name(int(other_agent.scores(round)[0].argmax())))
            assert names == [actual.candidates[0].name, turn.name]
            turned += 1
    assert turned > 1


# other random draws


@pytest.mark.parametrize(("kind", "n"), [("logistic_ts", 10_000), ("lints", 0)])
def test_the_choice_probability_of_two_gaussians_equals_the_closed_form(
    kind: str, n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P(a ~ N(m, s^2) beats b ~ N(m', s'^2)) = Phi((m - m') / hypot(s, s')).

    Hoeffding bounds an estimate's error.
    """
    monkeypatch.setattr(whys, "REDRAWS", 10_000)
    e = experiment(kind, simulator={"kind": "petshop", "n_products": 2}, replications=1)
    bound = math.sqrt(math.log(2 / 1e-9) / (2 * n)) if n else 1e-9
    for step in (1, 10, 60, 300):
        actual = why(e, 0, step)
        a, b = actual.candidates
        assert actual.redraws == n
        assert a.chance + b.chance == pytest.approx(1, abs=1e-12)
        assert abs(a.chance - ndtr((a.mean - b.mean) / math.hypot(a.spread, b.spread))) < bound


@pytest.mark.parametrize(
    ("kind", "params"),
    [
        *(("lints", {"sharing": s}) for s in ("per_arm", "shared", "hybrid")),
        *(
            ("logistic_ts", {"sharing": s, "covariance": c})
            for s in ("per_arm", "shared")
            for c in ("full", "diagonal")
        ),
        ("sgd_ts", {"batch": 20}),
        ("beta_ts", {}),
        ("neural_ts", {"hidden": (6,)}),
        ("neural_linear_ts", {"hidden": (6,), "every": 20}),
        ("neural_linear_ts", {"hidden": (6,), "every": 20, "heads": "per_arm"}),
    ],
)
def test_redraws_have_the_stated_mean_and_standard_deviation(
    kind: str, params: dict[str, Any]
) -> None:
    """6 standard errors of mean and variance.

    A fourth moment of 9 (a skewed Beta's) is allowed for.
    """
    lane, n = (
        worlds.make(kind, SIMULATORS["petshop"], options=SIMULATOR_PARAMS["petshop"], **params),
        4000,
    )
    lane.advance(100)
    round = lane.simulator.round_at(100)
    explanation = lane.agent.explain(round)
    assert explanation.mean is not None
    assert explanation.width is not None
    spread = explanation.scale * explanation.width
    drawn = np.stack(list(itertools.islice(lane.agent.redraws(round, np.random.default_rng(1)), n)))
    assert (np.abs(drawn.mean(axis=0) - explanation.mean) <= 6 * spread / math.sqrt(n)).all()
    assert (np.abs(drawn.var(axis=0) / spread**2 - 1) <= 6 * math.sqrt(8 / n)).all()


def test_exact_probabilities_are_not_estimated_by_draws() -> None:
    actual = why(experiment({"kind": "epsilon_greedy", "epsilon": 0.4}, replications=1), 0, 100)
    assert actual.redraws == 0
    assert sorted(c.chance for c in actual.candidates) == pytest.approx([0.08] * 4 + [0.68])
    assert all(c.chance == pytest.approx(0.2) for c in why(experiment("random"), 0, 5).candidates)


# identical candidates


def test_identical_products_are_grouped() -> None:
    e = experiment("linucb", simulator={"kind": "petshop", "n_products": 50}, replications=1)
    lane = make_lane(e, 0, rows=[0])
    lane.advance(199)
    round = lane.simulator.round_at(199)
    explanation, truth = lane.agent.explain(round), lane.simulator.probabilities(round)[0]
    assert explanation.mean is not None
    actual = why(e, 0, 200)
    assert len(actual.candidates) == 5
    assert {c.alike for c in actual.candidates} == {10}
    assert actual.visitor == lane.simulator.segment_names()[round.segments[0]]
    for c in actual.candidates:
        identical = [k for k in range(50) if lane.simulator.name(k) == c.name]
        assert {truth[k] for k in identical} == {c.truth}
        assert sorted([c.score, *c.others]) == sorted(explanation.score[0, identical])
        assert (c.score, c.mean) == (explanation.score[0, c.item], explanation.mean[0, c.item])
        assert c.score == max(explanation.score[0, identical])
    scores = [c.score for c in actual.candidates]
    assert scores == sorted(scores, reverse=True)


def test_random_choices_are_distinguished_from_scored_ones() -> None:
    e = experiment({"kind": "epsilon_greedy", "epsilon": 0.5}, replications=1)
    decisions = [why(e, 0, step) for step in range(100, 120)]
    assert {w.randomised for w in decisions} == {True, False}
    for w in decisions:
        assert all(math.isnan(c.score) for c in w.candidates) == w.randomised
        assert ("at random" in explain_decision(w)[0]) == w.randomised


# refusals


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("LinUCB", 0, 0), "step is 0; it must be a whole number from 1 to 300"),
        (("LinUCB", 301, 0), "step is 301; it must be a whole number from 1 to 300"),
        (("LinUCB", 1, 3), "replication is 3; it must be a whole number from 0 to 2"),
        (
            ("Nobody", 1, 0),
            "agent is Nobody; it must be one of LinUCB, Random, or a number from 0 to 1",
        ),
        ((2, 1, 0), "agent is 2; it must be one of LinUCB, Random, or a number from 0 to 1"),
    ],
)
def test_an_invalid_decision_is_refused(arguments: tuple[Any, int, int], message: str) -> None:
    with pytest.raises(UserError) as error:
        why(experiment(), *arguments)
    assert str(error.value) == message


def test_replays_that_take_too_long_are_refused_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(whys, "SECONDS", 1e-6)
    # nothing to wait for
    assert why(experiment(), 0, 2).step == 2
    with pytest.raises(UserError, match=r"^step 300 of LinUCB cannot be replayed: it would take "):
        why(experiment(), 0, 300)


def test_decisions_of_a_stopped_row_are_refused_with_the_reason() -> None:
    diverges = {"kind": "neural_greedy", "hidden": (64,), "optimiser": "sgd", "learning_rate": 0.3}
    e = experiment(
        diverges, simulator={"kind": "synthetic", "function": "form", "scale": 10.0}, replications=1
    )
    rewards = traces(e)["Neural greedy"].rewards[:, 0]
    stopped = int(np.isnan(rewards).argmax()) + 1
    assert 1 < stopped < 300
    assert why(e, 0, stopped - 1).reward == rewards[stopped - 2]
    for step in (stopped, 300):
        with pytest.raises(UserError, match=r"^Neural greedy diverged in this replication"):
            why(e, 0, step)


# sentences and figures


def why_of(how: Any, *candidates: Candidate, **more: Any) -> Why:
    usual: dict[str, Any] = {
        "label": "A",
        "step": 7,
        "replication": 0,
        "visitor": "",
        "item_noun": "arm",
        "reward_noun": "clicks",
        "how": how,
        "parameter": "alpha",
        "logit": False,
        "scale": 1.5,
        "randomised": False,
        "candidates": candidates,
        "below": None,
        "above": None,
        "redraws": 0,
        "reward": 1.0,
    }
    return Why(**{**usual, **more})


def arm(name: str, **values: Any) -> Candidate:
    usual: dict[str, Any] = {
        "name": name,
        "item": 3,
        "alike": 1,
        "truth": 0.4,
        "score": 0.5,
        "mean": 0.41,
        "width": 0.06,
        "spread": 0.09,
        "chance": math.nan,
        "slot": 0,
        "best": False,
        "others": (),
    }
    return Candidate(**{**usual, **values})


SHOWN, OTHER = arm("Cat Food", slot=1), arm("Dog Toy", truth=0.5, best=True, score=0.3)
OUTCOME = (
    "The true expected reward of Cat Food was 0.4 clicks; Dog Toy, the best, had 0.5. Observed "
    "reward: 1."
)


@pytest.mark.parametrize(
    ("decided", "message"),
    [
        (
            why_of("bonus", SHOWN, OTHER, below=whys.Switch(0.8, "Dog Toy")),
            "A chose Cat Food: its mean plus bonus, 0.41 + 1.5 × 0.06 = 0.5, was the highest; "
            "with alpha below 0.8, Dog Toy would have been chosen.",
        ),
        (
            why_of(
                "bonus",
                SHOWN,
                OTHER,
                below=whys.Switch(1.49996, "Dog Toy"),
                above=whys.Switch(2, "Fish"),
            ),
            "A chose Cat Food: its mean plus bonus, 0.41 + 1.5 × 0.06 = 0.5, was the highest; "
            "with alpha below 1.49996, Dog Toy would have been chosen; with alpha above 2, Fish "
            "would have been chosen.",
        ),
        (
            why_of("bonus", SHOWN, OTHER._replace(score=0.5), logit=True),
            "A chose Cat Food: its mean plus bonus, 0.41 + 1.5 × 0.06 = 0.5 (log-odds), was tied "
            "for the highest (the first of the tied candidates is chosen); no other value of "
            "alpha would have changed the choice.",
        ),
        (
            why_of("bonus", SHOWN._replace(width=math.inf, score=math.inf, mean=math.nan), OTHER),
            "A chose Cat Food: it had no observations, and such candidates are chosen first.",
        ),
        (
            why_of(
                "greedy",
                SHOWN._replace(score=0.0, mean=0.0, alike=10),
                OTHER._replace(score=-1.0),
                logit=True,
            ),
            "A chose Cat Food (arm 3): its estimated value, 0.5, was the highest.",
        ),
        (
            why_of("score", SHOWN._replace(score=1234.5), OTHER),
            "A chose Cat Food: its score, 1,234, was the highest.",
        ),
        (
            why_of("greedy", SHOWN._replace(score=math.nan), OTHER, randomised=True),
            "A chose Cat Food at random (exploration).",
        ),
    ],
)
def test_a_decision_in_one_sentence(decided: Why, message: str) -> None:
    assert explain_decision(decided) == [message, OUTCOME]


def test_the_outcome_in_one_sentence() -> None:
    right = SHOWN._replace(best=True)
    assert explain_decision(why_of("greedy", right, OTHER))[-1] == (
        "The true expected reward of Cat Food was 0.4 clicks, the highest of all candidates. "
        "Observed reward: 1."
    )
    slate = why_of("greedy", right, OTHER._replace(slot=2), reward=0.0)
    assert explain_decision(slate)[-1].endswith(
        ", the highest of all candidates. Observed reward of the slate: 0."
    )


def test_choice_probabilities_in_one_sentence() -> None:
    four = [
        SHOWN._replace(chance=0.2),
        OTHER._replace(chance=0.7),
        arm("Fish", score=0.2, chance=0.06),
    ]
    four.append(arm("Toy", score=0.1, chance=0.04))
    message = explain_decision(why_of("sample", *four, redraws=1000))
    assert message[0] == "A chose Cat Food: its sampled value, 0.5, was the highest (mean 0.41)."
    assert message[1] == (
        "Choice probabilities (estimated from 1,000 samples): "
        "Dog Toy (70 %), Cat Food (20 %), Fish (6 %), others (4 %)."
    )
    assert explain_decision(why_of("sample", *four))[1].startswith(
        "Choice probabilities (exact): Dog Toy (70 %)"
    )
    rare = [
        arm("Fish", score=0.2, chance=0.26),
        arm("Toy", score=0.1, chance=0.04),
        SHOWN._replace(chance=0.001),
    ]
    found = explain_decision(why_of("sample", *rare, OTHER._replace(chance=0.699)))
    assert found[1].endswith("Dog Toy (70 %), Fish (26 %), Toy (4 %), the one shown (0.1 %).")
    fourth = [
        rare[0],
        rare[1]._replace(chance=0.06),
        SHOWN._replace(chance=0.02),
        OTHER._replace(chance=0.66),
    ]
    assert explain_decision(why_of("sample", *fourth))[1].endswith(
        "Toy (6 %), the one shown (2.0 %)."
    )
    fifth = [*fourth, arm("Bird", score=0.1, chance=0.015)]
    assert explain_decision(why_of("sample", *fifth))[1].endswith(
        "the one shown (2.0 %), others (2 %)."
    )


def test_the_figure_has_a_line_for_every_arm_and_marks_the_shown_one() -> None:
    e = experiment("linucb", "lints", "random", replications=1)
    for label in e.labels:
        actual = why(e, label, 200)
        spec = decision(actual, styles(e)[label])
        drawn = {t["name"]: t for t in spec["data"]}
        ticks = spec["layout"]["yaxis"]["ticktext"]
        assert [t.replace("<b>", "").replace("</b>", "") for t in ticks] == [
            f"{c.name} ×2" for c in actual.candidates
        ]
        assert [t.startswith("<b>") for t in ticks] == [c.slot > 0 for c in actual.candidates]
        assert drawn["truth"]["x"][::3].tolist() == [c.truth for c in actual.candidates]
        assert drawn["shown"]["y"].tolist() == [0]
        shown = actual.candidates[0]
        assert drawn["shown"]["x"][0] == (shown.truth if label == "Random" else shown.score)
        low, high = spec["layout"]["xaxis"]["range"]
        assert all(low < x < high for t in spec["data"] for x in t["x"] if math.isfinite(x))


def test_log_odds_are_drawn_as_probabilities() -> None:
    e = experiment("logistic_ucb", replications=1)
    actual = why(e, 0, 200)
    (mean,) = [
        t for t in decision(actual, styles(e)["Logistic UCB"])["data"] if t["name"] == "mean"
    ]
    assert mean["x"].tolist() == pytest.approx(
        [1 / (1 + math.exp(-c.mean)) for c in actual.candidates]
    )


def test_of_many_arms_the_relevant_ones_are_drawn() -> None:
    arms = [
        arm(f"arm {i}", item=i, score=-float(i), slot=int(i == 0), best=i == 39) for i in range(40)
    ]
    spec = decision(why_of("bonus", *arms), styles(experiment())["LinUCB"])
    names = [f"arm {i}" for i in range(1, 11)]
    assert spec["layout"]["yaxis"]["ticktext"] == ["<b>arm 0</b>", *names, "arm 39"]
    assert "Not drawn: 28 more." in spec["layout"]["meta"]["note"]
