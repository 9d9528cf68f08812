"""Replay of a log: what counts, what is not known, and what is not claimed."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bandits import Result, UserError, diagnostics, monitoring, run
from bandits.base.randomness import Streams
from bandits.cli.stored_runs import leaderboard
from bandits.experiments import presets
from bandits.experiments.experiment import Experiment, read
from bandits.experiments.guarding import guardable, with_and_without
from bandits.experiments.history import History
from bandits.experiments.lane import join
from bandits.experiments.lockstep import make_lane
from bandits.lessons.sources import RunSource
from bandits.offpolicy import DecisionLog, keep_for_replay, open_bandit, recording
from bandits.results import instant, metrics
from bandits.results.caveats import caveats, rare_reward_notes, replay_notes
from bandits.results.comparison import run_comparison, unpaired
from bandits.results.comparison.conclusion import leader_comparisons, learning_summary
from bandits.results.comparison.overlay import overlay
from bandits.results.decision import why
from bandits.results.export import report
from bandits.results.figures.board import board, drawn_rate
from bandits.simulators.datasets import kept_logs, logs
from bandits.simulators.datasets.scaling import scaled
from bandits.simulators.logged import Logged
from bandits.sweeps import read as read_sweep

AGENTS = [{"kind": "linucb"}, {"kind": "beta_ts"}, {"kind": "random"}]


def replay(
    steps: int = 600, agents: object = AGENTS, replications: int = 4, **simulator: object
) -> Experiment:
    simulator = {"kind": "logged", "parts": 4, **simulator}
    return read(
        {"simulator": simulator, "agents": agents, "steps": steps, "replications": replications}
    )


@pytest.fixture(scope="module")
def result() -> Result:
    return run(replay())


@pytest.mark.parametrize("campaign", logs.SIZES)
def test_the_events_are_those_of_the_shipped_log(campaign: str) -> None:
    name = f"open_bandit/random/{campaign}"
    events, log = logs.load(name), open_bandit.load(name)
    assert (len(events.items), int(events.columns.max()) + 1, log.n_actions) == logs.sizes(name)
    np.testing.assert_array_equal(events.items, log.actions)
    np.testing.assert_array_equal(events.rewards, log.rewards)
    assert log.propensities is not None
    assert (log.propensities == 1 / log.n_actions).all()


def test_an_event_counts_where_the_agent_chose_what_the_log_shows() -> None:
    """Against a loop over the log: clicks, counted events and what was shown, in parts that share
    no event.
    """
    parts = 3
    lane = make_lane(replay(steps=900, replications=3, parts=parts), 0)
    trace = lane.advance(900)
    events = logs.load("open_bandit/random/men")
    seen: set[int] = set()
    for r in range(3):
        mine = np.arange(900) * parts + r
        assert not seen & set(mine.tolist())
        seen |= set(mine.tolist())
        same = trace.items[:, r, 0] == events.items[mine]
        assert trace.counted is not None
        np.testing.assert_array_equal(trace.counted[:, r], same)
        np.testing.assert_array_equal(trace.rewards[:, r], np.where(same, events.rewards[mine], 0))
        assert 0 < same.sum() < 100


def test_who_always_chose_what_was_logged_would_earn_the_whole_log() -> None:
    simulator, events = (
        Logged(Logged.Params(parts=50), Streams(1, range(50))),
        logs.load("open_bandit/random/men"),
    )
    rewards = np.zeros((200, 50))
    for step in range(201):
        logged = events.items[step % 200 * 50 + np.arange(50)][:, None]
        feedback, _ = simulator.respond(simulator.round_at(step), logged, np.zeros((50, 1)))
        assert feedback.examined.all() == (step < 200)
        if step < 200:
            rewards[step] = feedback.rewards[:, 0]
    np.testing.assert_array_equal(rewards.ravel(), events.rewards)
    assert rewards.sum() == 46


def test_an_agent_learns_from_counted_events_only() -> None:
    lane = make_lane(replay(agents=[{"kind": "ucb1"}]), 0)
    trace = lane.advance(600)
    state = lane.agent.state_dict()
    shown = np.zeros(state["shown"].shape)
    for r in range(4):
        np.add.at(shown[r], trace.items[trace.counted[:, r], r, 0], 1)  # type: ignore[index]
    np.testing.assert_array_equal(state["shown"], shown)
    assert state["clicks"].sum() == trace.rewards.sum()


def test_chunks_and_a_saved_state_change_no_bit(result: Result) -> None:
    e = result.experiment
    whole, again = make_lane(e, 1).advance(600), make_lane(e, 1)
    first = again.advance(137)
    resumed = make_lane(e, 1)
    resumed.load_state_dict(again.state_dict())
    parts = join([first, resumed.advance(463)])
    for name in ("items", "rewards", "counted"):
        np.testing.assert_array_equal(getattr(parts, name), getattr(whole, name))
    history, copy = result.histories["Beta Thompson"], e.empty_history()
    copy.load_state_dict(history.state_dict())
    np.testing.assert_array_equal(copy.sums["counted"], history.sums["counted"])
    np.testing.assert_array_equal(copy.sums["counted"][-1], whole.counted.sum(axis=0))  # type: ignore[union-attr]


def test_rates_are_per_counted_event(result: Result) -> None:
    h = result.histories["Random"]
    n, clicks = h.sums["counted"][-1], h.sums["clicks"][-1]
    np.testing.assert_array_equal(metrics.click_rate(h), clicks / n)
    curve = result.plot("board").data
    # drawn without a truth
    assert curve
    assert np.isnan(metrics.total(h, "best_value")).all()


def test_the_rate_of_a_window_is_a_ratio_with_its_standard_error() -> None:
    n, clicks = np.array([10.0, 30, 50, 20]), np.array([3.0, 5, 12, 2])
    last = metrics.ctr(counting(n.tolist(), clicks.tolist()), 200)
    assert last.mid[-1] == pytest.approx(22 / 110)
    half = metrics.t_quantile(4) * np.std(clicks - 0.2 * n, ddof=1) / n.mean() / 2
    assert (last.low[-1], last.high[-1]) == (pytest.approx(0.2 - half), pytest.approx(0.2 + half))


def counting(counted: list[float], clicks: list[float]) -> History:
    """Make a history whose replications counted and earned so much at the end."""
    h = replay(steps=200, agents=AGENTS[:1], replications=len(counted)).empty_history()
    h.step, h.sums["counted"] = 200, np.zeros((len(h.grid), len(counted)))
    h.sums["counted"][-1], h.sums["clicks"][-1] = counted, clicks
    return h


def test_a_replication_that_counts_nothing_in_a_window_deletes_no_point() -> None:
    h = counting([0, 30, 50, 20], [0, 3, 6, 1])
    curve = drawn_rate(replay(), h, 200)
    assert curve.x[-1] == 200
    assert curve.mid[-1] == pytest.approx(0.1)
    assert len(drawn_rate(replay(), counting([0] * 4, [0] * 4), 200).x) == 0
    h.alive[:] = False
    assert len(drawn_rate(replay(), h, 200).x) == 0


def test_before_the_first_event_counts_there_is_no_rate_and_nobody_has_stopped() -> None:
    none = run(replay(steps=1, agents=AGENTS[1:]))
    assert all(metrics.total(h, "counted").sum() == 0 for h in none.histories.values())
    assert leaderboard(none).count("no counted events") == 2
    page = report(none)
    assert page.count(">no counted events<") == 2
    assert "diverged" not in page


def test_rates_name_their_unit(result: Result) -> None:
    """Clicks per counted event in the figures of one run and of several, and in the header of the
    report.
    """
    (drawn, _), (one, *_) = overlay({"A": result}), board(result)
    assert drawn["layout"]["yaxis"]["title"]["text"] == one["layout"]["yaxis"]["title"]["text"]
    assert one["layout"]["yaxis"]["title"]["text"] == "clicks per counted event"
    assert one["layout"]["meta"]["caption"] == "Average of the last 600 logged events"
    page = report(result)
    assert "<th>Clicks per counted event</th>" in page
    assert "clicks per step" not in page


def test_only_a_log_that_is_used_up_is_too_small() -> None:
    def advice(steps: int, replications: int) -> str:
        e = replay(steps=steps, agents=AGENTS[:1], replications=replications, parts=50)
        h = e.empty_history()
        h.step, h.sums["clicks"][:] = steps, 0
        (note,) = rare_reward_notes(Result(e, {"LinUCB": h}))
        return note.rpartition("; ")[2]

    assert [advice(*used) for used in ((200, 50), (199, 50), (200, 49))] == [
        "a larger log is needed.",
        "use more steps or replications.",
        "use more steps or replications.",
    ]


def test_an_interval_agrees_with_the_verdict_beside_it() -> None:
    """Of three agents the first two differ at the 5 % level alone, but not corrected for three
    pairs.
    """
    e = replay(steps=200)
    counted = [100.0] * 4
    clicks = {
        "LinUCB": [20, 24, 22, 27],
        "Beta Thompson": [16, 18, 15, 21],
        "Random": [18, 22, 20, 23],
    }
    result = Result(
        e, {label: counting(counted, list(map(float, mine))) for label, mine in clicks.items()}
    )
    pairs = unpaired.compare_pairs(result, list(result.histories))
    alone = unpaired.compare(result.histories["LinUCB"], result.histories["Beta Thompson"])
    found = pairs["LinUCB", "Beta Thompson"]
    assert alone.p_value < 0.05 < found.p_value == 3 * alone.p_value
    assert found.difference.low < 0 < alone.difference.low
    for one in pairs.values():
        assert (one.p_value < 0.05) == (not one.difference.low <= 0 <= one.difference.high)
    (sentence,) = (s for s in leader_comparisons(result) if "Beta Thompson" in s)
    assert "cannot tell LinUCB and Beta Thompson apart" in sentence
    assert "CI −" in sentence


def test_the_band_of_a_rate_covers() -> None:
    """Bands of the ratio of clicks to counted events, with few events and unequal numbers
    of them.
    """
    generator, inside, repetitions = np.random.default_rng(6), 0, 1000
    for _ in range(repetitions):
        n = generator.poisson(100, size=4).astype(float)
        curve = metrics.ctr(
            counting(n.tolist(), generator.binomial(n.astype(int), 0.2).tolist()), 200
        )
        inside += bool(curve.low[-1] <= 0.2 <= curve.high[-1])
    assert abs(inside / repetitions - 0.95) < 3 * np.sqrt(0.05 * 0.95 / repetitions)


def test_lessons_name_the_numbers_of_a_replay() -> None:
    clicks = {
        "LinUCB": [20, 24, 22, 27],
        "Beta Thompson": [16, 18, 15, 21],
        "Random": [18, 22, 20, 23],
    }
    histories = {
        label: counting([100.0] * 4, list(map(float, mine))) for label, mine in clicks.items()
    }
    result = Result(replay(steps=200), histories)
    source = RunSource(result.experiment, result)
    p = unpaired.compare(histories["LinUCB"], histories["Random"], family=3).p_value
    assert 0.05 < p < 1
    assert source.quantity("p_value", ("LinUCB", "Random")) == p
    assert source.quantity("p_value", ("Random", "LinUCB")) == p
    h = histories["Random"]
    h.sums["clicks"][h.grid >= 20], h.sums["counted"][h.grid >= 20] = [1, 2, 3, 4], 10
    assert source.quantity("early_ctr", ("Random",)) == metrics.estimate(
        np.array([0.1, 0.2, 0.3, 0.4])
    )


def test_after_the_end_of_the_log_nothing_counts() -> None:
    trace = make_lane(replay(steps=300, agents=AGENTS[2:], parts=100), 0).advance(300)
    assert trace.counted is not None
    assert trace.counted[:100].any()
    assert not trace.counted[100:].any()
    assert not trace.rewards[100:].any()
    (note,) = replay_notes(run(replay(steps=300, agents=AGENTS[2:], parts=100)))
    assert "of 400 events" in note
    assert "ends at step 100: later steps count nothing" in note
    with pytest.raises(UserError, match="replications is 5; the log has 4 parts"):
        replay(replications=5)


def test_nothing_is_claimed_that_a_log_does_not_show(result: Result) -> None:
    """No oracle, no regret, no pairs; each refusal is one sentence."""
    e = result.experiment
    with pytest.raises(UserError, match="requires true expected rewards, which Logged decisions"):
        replay(agents=[{"kind": "oracle"}])
    with pytest.raises(UserError, match="nothing is paired"):
        result.compare("LinUCB", "Random")
    refused = "requires true expected rewards, which Logged decisions"
    with pytest.raises(UserError, match=refused):
        diagnostics.findings(result, "Random")
    with pytest.raises(UserError, match=refused):
        monitoring.alarms(result, "Random")
    with pytest.raises(UserError, match=refused):
        why(e, "Random", 1)
    with pytest.raises(UserError, match=refused):
        with_and_without(e, {"kind": "floor"}, ["LinUCB"])
    axes = [{"path": "agents.0.alpha", "low": 0.1, "high": 1, "number": 3}]
    alone = json.loads(replay(agents=AGENTS[:1]).model_dump_json())
    with pytest.raises(UserError, match=refused):
        read_sweep({"experiment": alone, "axes": axes})
    with pytest.raises(UserError, match="is not logged again"):
        recording.check(e)
    assert guardable(e) == []
    assert "not paired" in instant.too_slow(e, "LinUCB")
    summary = result.summary()
    assert {one["paired"] for one in summary["comparisons"]} == {False}
    assert len(summary["comparisons"]) == 3
    assert summary["agents"]["LinUCB"]["pseudo_regret"]["mean"] is None
    assert run_comparison.pairing_obstacle(e, e)
    assert not run_comparison.paired({"A": result, "B": result})
    assert {o.metric for o in run_comparison.outcomes([result])} == {"ctr", "clicks"}
    words = [*leader_comparisons(result), *replay_notes(result), *caveats(result)]
    words.append(learning_summary(result))
    assert not any(
        "paired replications" in each or "common random numbers" in each for each in words
    )
    assert any("nothing is paired" in each for each in words)
    page = report(result)
    assert "Counted events" in page
    assert ">nan" not in page
    assert "common random numbers" not in page


def test_differences_of_rates_hold_their_error_rate() -> None:
    """Welch's interval of two agents of equal rate, with as many clicks as the note on rare rewards
    asks for.
    """
    generator, errors, repetitions = np.random.default_rng(5), 0, 1500
    e = replay(steps=200)
    for _ in range(repetitions):
        pair = []
        for _ in range(2):
            h = e.empty_history()
            h.step, n = 200, generator.binomial(400, 0.25, size=4)
            h.sums["counted"] = np.zeros((len(h.grid), 4))
            h.sums["counted"][-1], h.sums["clicks"][-1] = n, generator.binomial(n, 0.2)
            pair.append(h)
        found = unpaired.compare(*pair)
        errors += found.p_value < 0.05
        assert (found.p_value < 0.05) == (not found.difference.low <= 0 <= found.difference.high)
    assert errors / repetitions < 0.05 + 3 * np.sqrt(0.05 * 0.95 / repetitions)


def users_log(g: np.random.Generator, n: int = 600) -> DecisionLog:
    """Make a uniform log in which item 0 earns more for large x, and item 1 for small."""
    x, actions = g.normal(size=(n, 1)), g.integers(0, 3, n)
    p = np.select([actions == 0, actions == 1], [x[:, 0] > 0, x[:, 0] < 0], 0.2).astype(float)
    return DecisionLog(
        actions=actions,
        rewards=(g.random(n) < p).astype(float),
        names=("red", "7", "blue"),
        propensities=np.full(n, 1 / 3),
        features=x,
        feature_names=("x",),
    )


@pytest.fixture
def empty_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BANDITS_HOME", str(tmp_path))
    return tmp_path


def test_a_users_log_is_replayed_event_by_event(empty_home: Path) -> None:
    log = users_log(np.random.default_rng(0))
    name = keep_for_replay(log, "My shop")
    assert name.startswith("my-shop-")
    assert keep_for_replay(log, "My shop") == name  # stored once
    assert [info.id for info in kept_logs.listing()] == [name]
    assert keep_for_replay(replace(log, rewards=1 - log.rewards), "My shop") != name
    kept = kept_logs.load(name)
    np.testing.assert_array_equal(kept.features, log.features)
    assert kept.feature_names == ("x",)
    e = replay(
        steps=300,
        replications=2,
        log=name,
        parts=2,
        agents=[{"kind": "linucb"}, {"kind": "random"}],
    )
    lane = make_lane(e, 0)
    trace, r = lane.advance(300), 1
    mine = np.arange(300) * 2 + r
    same = trace.items[:, r, 0] == log.actions[mine]
    assert trace.counted is not None
    np.testing.assert_array_equal(trace.counted[:, r], same)
    np.testing.assert_array_equal(trace.rewards[:, r], np.where(same, log.rewards[mine], 0))
    round = lane.simulator.round_at(17)
    x = scaled(kept.features, "standard")[35, 0]
    np.testing.assert_array_equal(round.features[1, 2], [x, 1.0])
    assert [lane.simulator.name(k) for k in range(3)] == ["red", "item 7", "blue"]
    rates = {
        label: metrics.click_rate(h).mean() for label, h in run(e, workers=0).histories.items()
    }
    assert rates["LinUCB"] > rates["Random"] + 0.1  # it learns


def test_a_log_that_is_not_here_or_damaged_or_deleted_is_named_in_one_sentence(
    empty_home: Path,
) -> None:
    name = keep_for_replay(users_log(np.random.default_rng(1)), "Mine")
    assert not Logged.portable(replay(log=name).simulator)
    path = empty_home / "logs" / f"{name}.parquet"
    content = path.read_bytes()
    with pytest.raises(UserError, match=r"parts is 100; the log has only 50 events"):
        make_lane(
            replay(
                log=keep_for_replay(users_log(np.random.default_rng(2), 50), "Small"), parts=100
            ),
            0,
        )
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(UserError, match="is damaged: upload the log again under Data, What if"):
        kept_logs.load(name)
    kept_logs.delete(name)
    with pytest.raises(
        UserError,
        match=r"is not kept here: upload it again under Data, What if\?; known are open_bandit",
    ):
        replay(log=name)


def test_logs_that_a_replay_would_misread_are_refused(empty_home: Path) -> None:
    log = users_log(np.random.default_rng(3), 60)
    p = np.full(60, 1 / 3)
    p[4] = 0.5
    none = np.ones((60, 3), bool)
    none[7, 1 - log.actions[7] // 2] = False
    ids = np.array([f"e{i // 2}" for i in range(60)], object)
    for changed, words in (
        ({"propensities": p}, r"row 5, propensity: .* 1/3 = 0.3333 for each of 3 items; got 0.5"),
        ({"propensities": None}, "state that every item was equally likely"),
        ({"available": none}, "row 8, candidates: .* here are 2 of 3"),
        ({"event_ids": ids, "positions": np.arange(60) % 2}, "one item per event"),
        ({"rewards": log.rewards * 1e101}, "reward: must be between -1e[+]100 and 1e[+]100"),
    ):
        with pytest.raises(UserError, match=words):
            keep_for_replay(replace(log, **changed), "Mine")
    with pytest.raises(UserError, match="the name is"):
        keep_for_replay(log, "<b>")
    assert kept_logs.listing() == []
    assert keep_for_replay(replace(log, propensities=None), "Mine", uniform=True)


def test_rewards_of_any_value_are_replayed_by_agents_that_need_no_clicks(empty_home: Path) -> None:
    """Revenue of two arms, one of which earns 3 more; agents that need clicks are refused."""
    g, n = np.random.default_rng(4), 4000
    actions = g.integers(0, 2, n)
    rewards = np.where(g.random(n) < 0.2, g.exponential(20, n), 0.0) + 3 * actions - 3
    log = DecisionLog(
        actions=actions, rewards=rewards, names=("A", "B"), propensities=np.full(n, 0.5)
    )
    name = keep_for_replay(log, "Revenue")
    experiment = presets.on_log(name)
    assert "beta_ts" not in [agent.kind for agent in experiment.agents]
    result = run(experiment)
    earned = {label: summary["ctr"] for label, summary in result.summary()["agents"].items()}
    better = float(rewards[actions == 1].mean())
    error = float(rewards.std() / (n / 2) ** 0.5)
    for label in ("LinUCB", "UCB1"):
        assert abs(_value(earned[label]) - better) < 5 * error
    assert abs(_value(earned["Random"]) - rewards.mean()) < 5 * error
    with pytest.raises(UserError, match="rewards of 0 or 1"):
        read({**experiment.model_dump(by_alias=True), "agents": [{"kind": "beta_ts"}]})


def _value(estimate: object) -> float:
    return float(estimate["mean"] if isinstance(estimate, dict) else estimate)  # type: ignore[arg-type]
