"""What the lab Artwork states of one title: choices, reasons and expected take fractions follow
from their sources.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

import numpy as np
import pytest

from bandits import UserError, read, run
from bandits.experiments.lockstep import make_lane
from bandits.results import artwork_title as artwork
from bandits.results.artwork_title import Replay
from bandits.results.decision_report import explain_decision
from bandits.results.figures.style import styles
from bandits.results.items.demand import demand
from bandits.results.items.launches import WINDOW, fair_share
from bandits.simulators.artwork_titles import GENRES

SMALL = {"kind": "artwork", "n_titles": 25, "n_pictures": [3, 6], "n_users": 200, "n_retrieved": 4}
AGENTS = [
    {"kind": "linucb", "sharing": "shared", "alpha": 0.3},
    {"kind": "popularity"},
    {"kind": "default"},
    {"kind": "oracle"},
    {"kind": "neural_greedy", "hidden": [8]},
    {"kind": "random"},
    {"kind": "ab_test", "test": 300, "winner": "segment"},
    {"kind": "beta_ts"},
]
STEPS = 1500
SHOWN = ("LinUCB", "Popularity", "Default", "Oracle", "Random", "A/B test", "Beta Thompson")


def experiment(**options: Any) -> Any:
    return read(
        {"simulator": {**SMALL, **options}, "agents": AGENTS, "steps": STEPS, "replications": 2}
    )


@pytest.fixture(scope="module")
def played() -> dict[str, Replay]:
    e = experiment()
    return {label: artwork.replay(e, label, STEPS) for label in SHOWN}


def test_the_replay_counts_the_impressions_of_every_title(played: dict[str, Replay]) -> None:
    lane = make_lane(experiment(), 0, rows=[0])
    shown = played["LinUCB"].simulator.catalogue().title_of[lane.advance(STEPS).items[:, 0, 0]]
    assert np.array_equal(np.bincount(shown, minlength=25), played["LinUCB"].impressions)
    assert played["LinUCB"].lane.step == STEPS
    state, same = lane.agent.state_dict(), played["LinUCB"].lane.agent.state_dict()
    assert all(np.array_equal(state[name], same[name]) for name in state)


def test_expected_take_fractions_of_a_title_are_means_over_its_visitors(
    played: dict[str, Replay],
) -> None:
    title = int(played["Oracle"].impressions.argmax())
    found = {label: artwork.title_value(each, title) for label, each in played.items()}
    simulator = played["Oracle"].simulator
    users = simulator.retrieved_for(STEPS - 1, title)
    p = []
    for user in users:
        round = simulator.round_of(STEPS, np.array([user]), np.array([title]))
        p.append(np.where(round.available, simulator.probabilities(round), -np.inf)[0])
    table = np.stack(p)
    assert found["Default"].visitors == len(users)
    assert found["Default"].agent == found["LinUCB"].default == pytest.approx(table[:, 0].mean())
    assert found["Oracle"].agent == found["LinUCB"].best == pytest.approx(table.max(axis=1).mean())
    pictures = np.isfinite(table)
    assert found["Random"].agent == pytest.approx(
        np.mean([row[there].mean() for row, there in zip(table, pictures, strict=True)])
    )
    assert found["LinUCB"].popular == pytest.approx(table.mean(axis=0).max())
    assert found["LinUCB"].default < found["LinUCB"].agent <= found["LinUCB"].best
    assert found["LinUCB"].popular <= found["LinUCB"].best


def test_visitors_are_shown_different_pictures_and_the_reason_is_their_taste(
    played: dict[str, Replay],
) -> None:
    title = int(played["LinUCB"].impressions.argmax())
    shown = artwork.visits(played["LinUCB"], title)
    assert [visit.cluster for visit in shown] == list(GENRES)
    assert len({visit.picture for visit in shown}) > 1
    catalogue = played["LinUCB"].simulator.catalogue()
    for visit in shown:
        assert catalogue.clusters[visit.user] == GENRES.index(visit.cluster)
        tone = int(
            catalogue.attributes[catalogue.first[title] + visit.picture - 1, : len(GENRES)].argmax()
        )
        taste = f"{np.round(catalogue.tastes[visit.user, tone], 1) + 0.0:.1f}".replace("-", "−")
        assert f"{GENRES[tone]} ({taste})" in visit.likes
        assert visit.truth <= visit.best
        lane = played["LinUCB"].lane
        round = played["LinUCB"].simulator.round_of(
            lane.step, np.array([visit.user]), np.array([title])
        )
        mean = np.where(round.available, lane.agent.explain(round).mean, -np.inf)[0]
        highest = mean.argmax() == visit.picture - 1
        assert visit.why.startswith("highest estimate" if highest else "explored: ")
        assert visit.estimate == mean[visit.picture - 1]
    assert len({visit.picture for visit in artwork.visits(played["Popularity"], title)}) == 1
    default = artwork.visits(played["Default"], title)
    assert {(visit.picture, visit.why) for visit in default} == {
        (1, "the same picture for all visitors")
    }
    assert all(visit.truth == visit.default for visit in default)
    assert all(
        visit.picture == visit.best_picture for visit in artwork.visits(played["Oracle"], title)
    )


def test_the_explanation_holds_the_estimates_of_the_agent_for_every_picture(
    played: dict[str, Replay],
) -> None:
    one = played["LinUCB"]
    title = int(one.impressions.argmax())
    before = {name: np.copy(value) for name, value in one.lane.agent.state_dict().items()}
    for visit in artwork.visits(one, title):
        why = artwork.explanation(one, title, visit, "LinUCB")
        round = one.simulator.round_of(one.lane.step, np.array([visit.user]), np.array([title]))
        parts, n = one.lane.agent.explain(round), int(round.available[0].sum())
        assert parts.mean is not None
        assert parts.width is not None
        truth = one.simulator.probabilities(round)[0]
        assert [c.slot for c in why.candidates] == [1, *[0] * (n - 1)]
        assert why.visitor == visit.cluster
        for c in why.candidates:
            k = int(np.flatnonzero(round.items[0] == c.item)[0])
            assert c.name.startswith(f"picture {k + 1} (")
            assert (c.mean, c.width, c.score) == (
                parts.mean[0, k],
                parts.width[0, k],
                parts.score[0, k],
            )
            assert c.spread == pytest.approx(0.3 * c.width)
            assert c.truth == truth[k]
        assert why.candidates[0].name == f"picture {visit.picture} ({visit.content})"
        assert why.candidates[0].truth == visit.truth
        *_, last = explain_decision(why)
        # it was only asked
        assert "Observed" not in last
        drawn = artwork.explanation_figure(why, styles(experiment())["LinUCB"])
        assert len(drawn["layout"]["yaxis"]["ticktext"]) == n
        assert (
            drawn["layout"]["title"]["text"]
            == f"{visit.cluster.capitalize()}: what LinUCB estimates"
        )
    after = one.lane.agent.state_dict()
    assert all(np.array_equal(value, after[name]) for name, value in before.items())
    assert one.lane.step == STEPS


def test_two_visitors_with_different_pictures_are_compared_first(played: dict[str, Replay]) -> None:
    title = int(played["LinUCB"].impressions.argmax())
    found = artwork.visits(played["LinUCB"], title)
    shown = {visit.cluster: visit.picture for visit in found}
    first, second = artwork.contrast(found)
    assert first == found[0].cluster
    assert shown[first] != shown[second]
    assert artwork.contrast(artwork.visits(played["Default"], title)) == list(GENRES)[:2]
    assert artwork.contrast(found[:1]) == [first]


def test_the_winner_of_a_cluster_is_the_reason_of_a_test_by_segment(
    played: dict[str, Replay],
) -> None:
    for title in played["A/B test"].impressions.argsort()[-5:]:
        assert {each.why for each in artwork.visits(played["A/B test"], int(title))} == {
            "the winner of the visitor's taste cluster"
        }


def test_draws_from_the_same_estimates_are_not_called_the_same_picture(
    played: dict[str, Replay],
) -> None:
    found = [each for title in range(25) for each in artwork.visits(played["Beta Thompson"], title)]
    explored = "explored: another picture has a higher estimate"
    assert {each.why for each in found} == {"highest estimate, the same for all visitors", explored}


def test_sessions_use_a_replay_one_after_the_other(played: dict[str, Replay]) -> None:
    one = played["LinUCB"]
    title = int(one.impressions.argmax())
    with ThreadPoolExecutor() as pool, one.lock:
        waiting = [
            pool.submit(artwork.title_value, one, title),
            pool.submit(artwork.visits, one, title),
        ]
        assert not wait(waiting, timeout=0.2).done
        one.lock.release()
        wait(waiting)
        one.lock.acquire()
    assert waiting[0].result() == artwork.title_value(one, title)


def test_the_map_shows_the_pictures_of_the_title_alone(played: dict[str, Replay]) -> None:
    title = int(played["LinUCB"].impressions.argmax())
    visits = artwork.visits(played["LinUCB"], title)
    cells, _, best, own = artwork.heatmap(played["LinUCB"], title, visits)["data"]
    assert cells["z"].shape == (8, played["LinUCB"].simulator.catalogue().sizes[title])
    assert [row[int(place) - 1] for row, place in zip(cells["z"], own["x"], strict=True)] == [
        v.truth for v in visits
    ]
    assert list(cells["z"].argmax(axis=1) + 1) == best["x"]


def test_titles_are_those_there_at_the_end_and_unknown_agents_are_refused() -> None:
    e = experiment(changes=[{"kind": "launch", "at": 1400, "items": 3}], new_titles=4, arrival=700)
    # two of the four have arrived
    assert sorted(artwork.titles(e)) == [*range(23)]
    with pytest.raises(UserError, match="it must be one of LinUCB"):
        artwork.replay(e, "nothing", 10)


@pytest.mark.slow
def test_agents_that_need_all_rows_are_replayed_with_them() -> None:
    found = artwork.replay(experiment(), "Neural greedy", 60)
    assert found.lane.rows == 2
    first = [int(found.simulator.shown_titles(step)[0]) for step in range(60)]
    assert np.array_equal(np.bincount(first, minlength=25), found.impressions)
    assert len(artwork.visits(found, int(found.impressions.argmax()))) == 8


def test_an_agent_with_the_optimal_share_of_launched_titles_has_its_fair_share_at_once() -> None:
    """The fair share of a window is not the chance of the few visitors that were looked at."""
    changes = [{"kind": "launch", "at": 1000, "items": 5}]
    e = read(
        {
            "simulator": {"kind": "artwork", "changes": changes},
            "agents": [{"kind": "random"}],
            "steps": 100_000,
            "replications": 2,
        }
    )
    wanted = demand(e)
    assert wanted is not None
    (cohort,) = wanted.cohorts
    share = float(np.nanmean(cohort.deserved))
    grid = np.arange(1000.0, 100_001.0, 500.0)
    windows = [fair_share(wanted, cohort, step, step + WINDOW) for step in grid]
    assert 0 < share < 0.05
    assert np.abs(np.array(windows) - share).max() < max(0.2 * share, 0.01)


def test_the_oracle_gets_the_fair_share_of_launched_titles() -> None:
    """Every step of a short run is looked at, so the oracle's share of the new pictures is the fair
    one.
    """
    changes = [{"kind": "launch", "at": 700, "items": 5}]
    agents = [{"kind": "oracle"}, {"kind": "random"}]
    e = read(
        {
            "simulator": {**SMALL, "changes": changes},
            "agents": agents,
            "steps": STEPS,
            "replications": 2,
        }
    )
    found = run(e, workers=0, progress=False)
    summary = found.summary()["agents"]
    (oracle,), (random,) = (summary[label]["launches"] for label in ("Oracle", "Random"))
    assert oracle["share"]["mean"] == pytest.approx(oracle["fair_share"], abs=1e-9)
    assert random["fair_share"] == oracle["fair_share"] > 0.05
    assert oracle["items"] == len(make_lane(e, 0).simulator.launched()[0][0])
    # visitors have different candidates: items have no merit of their own
    assert "exposure" not in summary["Oracle"]
    # nothing is launched
    assert demand(experiment()) is None
