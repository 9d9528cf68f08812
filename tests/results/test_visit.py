"""One visit, step by step: what is recorded is what happens, and what is stated of a run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bandits import UserError, run
from bandits.base.randomness import Streams
from bandits.experiments.experiment import Experiment, read
from bandits.results import visit
from bandits.results.comparison.conclusion import (
    NOT_PER_VISIT,
    learning_summary,
    main_comparison,
    ranking,
)
from bandits.results.comparison.run_comparison import conclusions, paired
from bandits.results.figures import board
from bandits.results.figures.curves import zoom
from bandits.results.instant import Instant
from bandits.results.metric_registry import (
    METRICS,
    first_three,
    leaderboard_metrics,
    main_metric,
)
from bandits.results.metrics import estimate
from bandits.results.run import headline
from bandits.simulators.session_values import MOODS, N_KINDS, START
from bandits.simulators.sessions import Sessions

METRIC_NAMES = ("per_visit", "ctr")


def experiment(**simulator: Any) -> Experiment:
    agents = [
        {"kind": "q_learning", "epsilon": 0.2},
        {"kind": "linucb"},
        {"kind": "oracle"},
    ]
    world = {"kind": "sessions", "n_products": 20, "observed": "mood", **simulator}
    return read({"simulator": world, "agents": agents, "steps": 150, "replications": 2})


def test_a_visit_starts_afresh_and_its_values_are_those_of_its_states() -> None:
    e = experiment()
    found = visit.watch(e, 150)
    assert list(found) == ["Q-learning", "LinUCB"]
    simulator = Sessions(e.simulator, Streams(e.seed, range(2)))
    for label, frames in found.items():
        assert 1 <= len(frames) <= 40
        assert frames[0].mood == START
        moods = np.array([frame.mood for frame in frames])
        assert np.abs(np.diff(moods)).max(initial=0) <= 1
        assert moods.min() >= 0
        assert moods.max() < MOODS
        persona = simulator.segment_names().index(frames[0].persona)
        # without intent, the category clicked last changes nothing
        for step, frame in enumerate(frames):
            q = simulator.solution.q[40 - 1 - step, persona, frame.mood, -1]
            np.testing.assert_allclose(frame.optimal, q)
            np.testing.assert_allclose(frame.immediate, simulator.model.rewards[persona, -1])
            assert set(frame.others) == {"Q-learning", "LinUCB"}
            assert frame.others[label] == frame.shown
            assert (frame.learned is None) == (label == "LinUCB")


def test_the_sentence_states_difference_break_even_and_optimum() -> None:
    few, more = experiment(), experiment().model_copy(update={"replications": 64})
    undecided = visit.sentence(run(few), "Q-learning", "LinUCB")
    assert "do not differ significantly in the last fifth of the run" in undecided
    decided = visit.sentence(run(more), "Oracle", "LinUCB")
    assert "more clicks per visit than LinUCB" in decided
    when = visit.break_even(*(run(more).histories[name] for name in ("Oracle", "LinUCB")))
    stated = "it did not break even: " if when is None else f"it broke even after {when:,} visits"
    assert stated in decided
    assert "even" not in visit.sentence(run(more), "LinUCB", "Oracle")
    single = visit.sentence(run(few.model_copy(update={"replications": 1})), "Q-learning", "LinUCB")
    assert "differ" not in single.replace("difference", "")
    assert "one replication, so the difference may be chance" in single
    for text in (undecided, decided):
        assert "the optimum is 7.25, the best next click over and over earns 4.99" in text


def test_agents_that_plan_are_compared_with_the_first_that_does_not() -> None:
    data = experiment().model_dump(mode="json", by_alias=True)
    (q, bandit, oracle), random = data["agents"], {"kind": "random"}
    far, near = {**q, "label": "Far"}, {**q, "label": "Near", "discount": 0}
    result = run(read({**data, "agents": [bandit, random, far, oracle, near]}))
    values = METRICS["late_per_visit"].rows
    best = sorted(("Far", "Near"), key=lambda label: -values(result.histories[label]).mean())
    order = (*best, "Random")
    assert visit.per_visit(result) == [visit.sentence(result, a, "LinUCB", 3) for a in order]
    # none plans: with the first that learns
    result = run(read({**data, "agents": [random, oracle, bandit]}))
    assert visit.per_visit(result) == [visit.sentence(result, "Random", "LinUCB")]
    # beside a single agent, those that know the truth
    result = run(read({**data, "agents": [bandit, oracle], "steps": 600}))
    assert visit.per_visit(result) == [visit.sentence(result, "Oracle", "LinUCB")]
    result = run(read({**data, "agents": [oracle]}))
    assert visit.per_visit(result) == []
    assert main_comparison(result) == ("", [])


def test_a_run_of_visits_is_judged_per_visit_and_others_are_not() -> None:
    e = experiment()
    result = run(e)
    assert visit.per_visit(result) == [visit.sentence(result, "Q-learning", "LinUCB")]
    assert (
        visit.per_visit(
            run(read({"agents": [{"kind": "linucb"}, {"kind": "random"}], "steps": 20}))
        )
        == []
    )
    # a curve per visit is above 1, with its whole band; the rate per step stays within 0 and 1
    per_visit, rate = (
        board.drawn_band(e, result.histories["Oracle"], n, 100) for n in METRIC_NAMES
    )
    assert per_visit is not None
    assert rate is not None
    assert (per_visit.mid[1:] > 1).any()
    assert (per_visit.high >= per_visit.mid).all()
    assert rate.high.max() <= 1
    references = {t["name"] for t in board.plot(result, "ctr")["data"]}
    assert {"best next click", "Oracle"} <= references
    assert "oracle" not in references


def test_agents_are_ranked_drawn_and_compared_by_what_a_visit_earns() -> None:
    agents = [
        {"kind": "linucb"},
        {"kind": "oracle", "label": "Oracle next click", "maximises": "step"},
        {"kind": "oracle", "label": "Oracle"},
    ]
    world = {"kind": "sessions", "n_products": 20, "observed": "mood"}
    e = read({"simulator": world, "agents": agents, "steps": 2000, "replications": 4})
    result = run(e)
    per_visit, ctr = (
        {label: METRICS[name].estimate(h).mean for label, h in result.histories.items()}
        for name in METRIC_NAMES
    )
    # what earns most per step earns less per visit
    assert max(ctr, key=ctr.__getitem__) == "Oracle next click"
    assert ranking(result) == sorted(per_visit, key=per_visit.__getitem__, reverse=True)
    assert ranking(result)[0] == "Oracle"
    assert main_metric(e).name == first_three(e)[0] == leaderboard_metrics(e)[0] == "per_visit"
    plots = board.board(result)
    assert [str(plot["layout"]["title"]["text"]).split("<")[0].strip() for plot in plots[:2]] == [
        "Clicks per visit",
        "Regret per visit",
    ]
    found = headline(e, result.histories)
    assert found is not None
    assert found.label == "LinUCB"
    lost = result.histories["LinUCB"].sums["lost"][-1]
    assert found.regret.mean == pytest.approx(lost.mean())
    knowing = {label: h for label, h in result.histories.items() if label != "LinUCB"}
    found = headline(e, knowing)
    assert found is not None
    assert (found.label, found.regret.mean) == ("Oracle", pytest.approx(0))
    # the oracle of the next step is no optimum
    assert zoom(plots, result) == plots
    assert learning_summary(result) == ""
    planned = run(experiment())
    assert main_comparison(planned) == (visit.per_visit(planned)[0], visit.per_visit(planned)[1:])


def test_runs_of_visits_are_compared_by_what_a_visit_earns() -> None:
    one = experiment()
    data = one.model_dump(mode="json")
    data["agents"][1]["alpha"] = 5.0
    runs = {"A": run(one), "B": run(read({**data, "steps": 100}))}
    pairs = paired(runs)
    (pair,) = [p for p in pairs if p.label == "LinUCB"]
    at = {name: int(np.searchsorted(r.histories["LinUCB"].grid, 100)) for name, r in runs.items()}
    mean = {
        name: r.histories["LinUCB"].sums["clicks"][at[name]]
        / r.histories["LinUCB"].sums["visits"][at[name]]
        for name, r in runs.items()
    }
    assert pair.difference.mean == pytest.approx((mean["A"] - mean["B"]).mean())
    data["replications"] = 48
    many = {"A": run(one.model_copy(update={"replications": 48})), "B": run(read(data))}
    found = paired(many)
    (pair,) = [p for p in found if p.label == "LinUCB"]
    gap = pair.difference
    (sentence,) = conclusions(many, found)
    assert sentence == (
        f"B compared with A, 48 paired replications: LinUCB earns {gap.mean:.3g} fewer clicks per "
        f"visit in B (95 % CI {gap.low:.3g} to {gap.high:.3g}); Q-learning and Oracle earn the "
        "same in both."
    )
    # no visit is as short
    world = {**one.simulator.model_dump(mode="json"), "leave": [0.001] * 5}
    long = read({**one.model_dump(mode="json"), "simulator": world, "steps": 20})
    runs = {"A": run(long), "B": run(long.model_copy(update={"steps": 30}))}
    (sentence,) = conclusions(runs, paired(runs))
    assert "no replication has ended a visit in both for" in sentence
    assert main_comparison(runs["A"]) == (NOT_PER_VISIT, [])
    assert Instant().answer(long, "LinUCB", {"alpha": 5.0}).sentence == "No visit has ended yet"


def test_diverged_replications_and_shorter_runs_are_left_out_of_sentences_per_visit() -> None:
    e = experiment().model_copy(update={"replications": 4, "steps": 600})
    result = run(e)
    diverged = result.histories["LinUCB"]
    diverged.alive[1] = False
    for sums in diverged.sums.values():
        sums[1:, 1] = np.nan
    values = METRICS["late_per_visit"].rows
    gap = values(result.histories["Q-learning"]) - values(result.histories["LinUCB"])
    assert np.isfinite(gap).sum() == 3
    (sentence,) = visit.per_visit(result)
    assert "Q-learning" in sentence
    assert "LinUCB" in sentence
    assert "3 replications" in sentence or "95 % CI" in sentence
    short = run(e.model_copy(update={"steps": 300}))
    result.histories["Q-learning"] = short.histories["Q-learning"]
    assert visit.per_visit(result) == []


def test_a_slider_states_its_gain_per_visit() -> None:
    e = experiment()
    found = Instant().answer(e, "LinUCB", {"alpha": 5.0})
    data = e.model_dump(mode="json")
    data["agents"][1]["alpha"] = 5.0
    before, after = (
        METRICS["per_visit"].rows(run(each, workers=0).histories["LinUCB"])
        for each in (e, read(data))
    )
    assert found.gain == estimate(after - before)
    assert "clicks per visit" in found.sentence


def test_break_even_is_the_last_time_that_an_agent_catches_up() -> None:
    histories = run(experiment()).histories
    ahead, behind = histories["Oracle"], histories["Q-learning"]
    assert visit.break_even(behind, ahead) is None
    most = int(min(h.sums["visits"][-1].min() for h in (ahead, behind)))
    assert 1 <= (visit.break_even(ahead, behind) or 0) <= most


def test_figures_draw_every_step_and_every_kind() -> None:
    e = experiment()
    found = visit.watch(e, 150)
    mood = visit.mood_figure(e, found)
    assert [len(t["x"]) for t in mood["data"][::2]] == [len(f) for f in found.values()]
    names = visit.kinds(e)
    values = visit.value_figure(e, "Q-learning", found["Q-learning"][0], names)
    assert [len(trace["x"]) for trace in values["data"]] == [N_KINDS] * 3


def test_other_simulators_have_no_visits() -> None:
    shop = read({"simulator": {"kind": "petshop"}, "agents": [{"kind": "random"}], "steps": 10})
    with pytest.raises(UserError, match=r"simulator\.kind is petshop"):
        visit.watch(shop, 10)
