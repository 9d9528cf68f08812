"""Results do not depend on chunks, other rows, interruptions or the order of candidates."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bandits.agents import REGISTRY as AGENTS
from bandits.agents.linear.linucb import LinUCB
from bandits.base.types import FloatArray, Round
from bandits.experiments.experiment import read
from bandits.experiments.history import History
from bandits.experiments.lane import COLUMNS, Lane
from bandits.experiments.lockstep import Lockstep, make_lane, run_to_end
from bandits.experiments.snapshots import snapshot_steps
from bandits.simulators.base import Simulator
from bandits.simulators.classification import Classification
from bandits.simulators.petshop import PetShop
from tests.contract import worlds
from tests.contract.worlds import fits, home, join, make, same, take
from tests.support import often, thinned

CASES: list[Any] = [
    pytest.param(AGENTS[kind].Params(**params), id="-".join(map(str, (kind, *params.values()))))
    for kind in AGENTS
    # see test_neural
    if kind != "static_mlp" and kind not in worlds.NEURAL
    for params in AGENTS[kind].test_params()
]


def first(case: Any) -> bool:
    """Return whether a case has the first test parameters of its agent."""
    params = case.values[0]
    cls = AGENTS[params.kind]
    return bool(params == cls.Params(**cls.test_params()[0]))


cases = pytest.mark.parametrize(
    "params",
    thinned(CASES, lambda number: number % 16 == 0, lambda number: first(CASES[number])),
)
ENVIRONMENTS: tuple[type[Simulator], ...] = (
    PetShop,
    Classification,
    worlds.Cascade,
    worlds.Changing,
    worlds.Visits,
)
# a batched matrix product of networks depends on the number of rows in its last bits
ALONE = [case for case in CASES if AGENTS[case.values[0].kind].alone]
CASES_EVERYWHERE: list[Any] = [
    pytest.param(*case.values, environment, id=f"{environment.__name__}-{case.id}")
    for environment in ENVIRONMENTS
    for case in ALONE
    if fits(*case.values, environment)
]


@cache
def in_turn() -> set[int]:
    """Return the numbers of the cases of each agent in one environment in turn."""
    places: dict[str, list[int]] = {}
    for number, case in enumerate(CASES_EVERYWHERE):
        if first(case):
            places.setdefault(case.values[0].kind, []).append(number)
    return {found[turn % len(found)] for turn, found in enumerate(places.values())}


TINY = {"n_products": 6, "n_users": 30, "shock_step": 1000}
# more than two blocks of random numbers, and every second step is stored
STEPS = 2400


def run(lane: Lane, sizes: Sequence[int]) -> tuple[worlds.Trace, History]:
    groups = len(lane.simulator.segment_names())
    history = History(sum(sizes), lane.rows, lane.simulator.spec.n_items, groups)
    traces = []
    for n in sizes:
        traces.append(lane.advance(n))
        history.extend(traces[-1])
    return join(traces), history


def chunks(total: int, size: int) -> list[int]:
    return [min(size, total - start) for start in range(0, total, size)]


def same_history(a: History, b: History) -> bool:
    sums = all(np.array_equal(a.sums[n], b.sums[n], equal_nan=True) for n in History.SUMS)
    spectra = [(s.step, s.eigenvalues.tolist()) for s in a.spectra] == [
        (s.step, s.eigenvalues.tolist()) for s in b.spectra
    ]
    calibrated = [(c.step, c.inside.tolist()) for c in a.calibrations] == [
        (c.step, c.inside.tolist()) for c in b.calibrations
    ]
    by_segment = (a.segments is None) == (b.segments is None)
    if a.segments is not None and b.segments is not None:
        by_segment = np.array_equal(a.segments.counts, b.segments.counts)
    return bool(
        by_segment
        and sums
        and spectra
        and calibrated
        and np.array_equal(a.counts, b.counts)
        and np.array_equal(a.alive, b.alive)
    )


@cases
def test_results_do_not_depend_on_chunk_size(params: Any) -> None:
    environment = home(params)
    options = TINY if environment is PetShop else {}
    whole, history = run(make(params, environment, options=options), [STEPS])
    sizes = [*[1] * 60, *[7] * 80, *chunks(STEPS - 620, 500)]
    trace, chunked = run(make(params, environment, options=options), sizes)
    assert same(trace, whole)
    assert same_history(chunked, history)


@settings(max_examples=often(15, 150))
@given(
    cuts=st.lists(st.integers(1, 79), unique=True),
    params=st.sampled_from([case.values[0] for case in ALONE]),
    rows=st.lists(st.integers(0, 7), unique=True, min_size=1),
)
def test_results_do_not_depend_on_chunks_or_other_rows(
    cuts: list[int], params: Any, rows: list[int]
) -> None:
    environment = home(params, worlds.Cascade)
    all_rows = make(params, environment, rows=range(8)).advance(80)
    some = make(params, environment, rows=rows)
    assert same(
        join([some.advance(b - a) for a, b in pairwise([0, *sorted(cuts), 80])]),
        take(all_rows, rows),
    )


@pytest.mark.parametrize(
    ("params", "environment"),
    thinned(CASES_EVERYWHERE, lambda _: False, lambda number: number in in_turn()),
)
def test_sixteen_rows_equal_four_times_four_rows(params: Any, environment: Any) -> None:
    whole = make(params, environment, rows=range(16)).advance(150)
    for start in range(0, 16, 4):
        rows = range(start, start + 4)
        assert same(make(params, environment, rows=rows).advance(150), take(whole, rows))


@pytest.mark.parametrize(("kind", "params"), [("linucb", {}), ("lints", {"window": 20})])
def test_a_resumed_run_is_bit_identical(kind: str, params: dict[str, Any]) -> None:
    """Save in the middle of a block of random numbers and of an interval of the stored grid.

    The contract asks every agent to continue to the bit; here the history does too.
    """
    lane = make(kind, PetShop, options=TINY, **params)
    history = History(STEPS, lane.rows, 6, 4)
    history.extend(lane.advance(1101))
    saved, history_state = lane.state_dict(), history.state_dict()
    rest = lane.advance(STEPS - 1101)
    history.extend(rest)

    fresh, resumed = make(kind, PetShop, options=TINY, **params), History(STEPS, lane.rows, 6, 4)
    fresh.load_state_dict(saved)
    resumed.load_state_dict(history_state)
    again = fresh.advance(STEPS - 1101)
    resumed.extend(again)
    assert same(again, rest)
    assert same_history(resumed, history)
    end, other = lane.state_dict(), fresh.state_dict()
    assert end.keys() == other.keys()
    assert all(np.array_equal(end[k], other[k]) for k in end if k != "seconds")


def test_a_saved_state_is_a_copy() -> None:
    lane = make("linucb")
    history = History(100, lane.rows, 5)
    history.extend(lane.advance(50))
    saved, history_state = lane.state_dict(), history.state_dict()
    before = {k: np.array(v) for k, v in {**saved, **history_state}.items()}
    history.extend(lane.advance(50))
    for k, v in {**saved, **history_state}.items():
        np.testing.assert_array_equal(before[k], v)


def test_a_history_is_transferred_in_parts() -> None:
    experiment = read(
        {
            "simulator": {"kind": "petshop", **TINY},
            "agents": [{"kind": "linucb"}],
            "steps": STEPS,
            "replications": 3,
        }
    )
    lockstep, copy = Lockstep(experiment), History(STEPS, 3, 6, 4)
    (history,) = lockstep.histories.values()
    while not lockstep.done:
        for _ in lockstep.advance(333):
            pass
        copy.merge(history.since(copy.step))
    assert [s.step for s in copy.spectra] == snapshot_steps(STEPS)
    assert (copy.step, copy.size, copy.count_size) == (STEPS, len(copy.grid), len(copy.count_grid))
    assert same_history(copy, history)


def test_a_history_holds_the_sums_of_its_trace() -> None:
    trace, history = run(make("linucb", PetShop, options=TINY), chunks(STEPS, 500))
    columns = (trace.rewards, trace.best_rewards, trace.value, trace.best_value, trace.random_value)
    for name, column in zip(History.SUMS, columns, strict=True):
        np.testing.assert_allclose(history.sums[name][-1], column.sum(axis=0), rtol=1e-12)
        np.testing.assert_allclose(
            history.sums[name][100], column[: history.grid[100]].sum(axis=0), rtol=1e-12
        )
    shown = np.stack(
        [np.bincount(trace.items[: history.count_grid[7], r, 0], minlength=6) for r in range(3)]
    )
    assert np.array_equal(history.counts[7], shown)
    with pytest.raises(ValueError, match="starts at step"):
        history.extend(trace)


@pytest.mark.parametrize(
    "environment",
    thinned(
        [PetShop, worlds.Cascade, Classification, worlds.Linear],
        lambda number: number == 0,
        lambda number: number < 2,
    ),
)
def test_all_agents_share_users_and_random_numbers(environment: Any) -> None:
    """Agents that show the same item get the same reward.

    The reward of the best item is common to all.
    """
    reference = make("oracle", environment).advance(120)
    for params in (case.values[0] for case in CASES if fits(*case.values, environment)):
        trace = make(params, environment).advance(120)
        assert np.array_equal(trace.best_rewards, reference.best_rewards)
        assert np.array_equal(trace.best_value, reference.best_value)
        assert np.array_equal(trace.random_value, reference.random_value)
        agree = (trace.items == reference.items).all(axis=2)
        assert np.array_equal(trace.rewards[agree], reference.rewards[agree])
        assert np.array_equal(trace.value[agree], reference.value[agree])


def test_seeds_and_rows_differ() -> None:
    first, other = make("random").advance(50), make("random", seed=8).advance(50)
    assert not np.array_equal(first.best_value, other.best_value)
    assert not np.array_equal(first.best_value[:, 0], first.best_value[:, 1])
    assert not np.array_equal(first.items[:, 0], first.items[:, 1])


@pytest.mark.parametrize(
    ("kind", "params"),
    [
        *(("linucb", {"sharing": s}) for s in ("per_arm", "shared", "hybrid")),
        ("lints", {"sharing": "shared"}),
    ],
)
def test_results_do_not_depend_on_the_order_of_candidates(
    kind: str, params: dict[str, Any]
) -> None:
    plain, shuffled = make(kind, worlds.Linear, **params), make(kind, worlds.Shuffled, **params)
    a, b = plain.advance(300), shuffled.advance(300)
    assert np.array_equal(a.items, b.items)
    assert np.array_equal(a.rewards, b.rewards)


NUMERIC = {
    "linucb": "alpha",
    "lints": "sigma2",
    "epsilon_greedy": "epsilon",
    "ucb1": "alpha",
    "beta_ts": "prior_clicks",
}


@settings(max_examples=often(20, 100))
@given(
    alphas=st.lists(st.floats(0, 10), min_size=2, max_size=6),
    kind=st.sampled_from(list(NUMERIC)),
    ridge=st.floats(1e-6, 1e4),
)
def test_rows_of_a_sweep_equal_separate_runs(alphas: list[float], kind: str, ridge: float) -> None:
    cls = AGENTS[kind].Params
    name = NUMERIC[kind]
    values = [a / 10 if name == "epsilon" else max(a, 0.01) for a in alphas]
    more = {"ridge": ridge} if AGENTS[kind].prior_precision(cls()) else {}
    sweep = [cls(**{name: v}, **(more if i % 2 else {})) for i, v in enumerate(values)]
    together = make(sweep, rows=range(len(sweep))).advance(60)
    for i, params in enumerate(sweep):
        assert same(make([params], rows=[i]).advance(60), take(together, [i]))


def test_rows_of_different_structure_are_refused() -> None:
    experiment = read({"agents": [{"kind": "linucb"}], "steps": 10, "replications": 3})
    mixed = [LinUCB.Params(sharing=s) for s in ("shared", "per_arm", "shared")]  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="structural"):
        make_lane(experiment, 0, params=mixed)
    make_lane(experiment, 0, params=[LinUCB.Params(alpha=a) for a in (0.0, 0.5, 1.0)])


class DivergingLinUCB(LinUCB):
    """Agent whose row 1 returns NaN from step 50."""

    def scores(self, round: Round) -> FloatArray:
        scores = super().scores(round)
        if round.step >= 50:
            scores[1] = np.nan
        return scores


@pytest.mark.parametrize("environment", [PetShop, worlds.Cascade])
def test_a_diverging_row_stops_and_the_others_continue(environment: Any) -> None:
    intact, diverged = make("linucb", environment), make("linucb", environment)
    diverged.agent = DivergingLinUCB(
        diverged.agent.params,
        diverged.simulator.spec,
        diverged.simulator.streams,
        diverged.agent.access,
    )
    expected, (trace, history) = intact.advance(200), run(diverged, [40, 30, 130])
    assert trace.alive.tolist() == [True, False, True]
    assert same(take(trace, [0, 2]), take(expected, [0, 2]))
    for name in COLUMNS[2:]:
        column, reference = getattr(trace, name), getattr(expected, name)
        assert np.array_equal(column[:50, 1], reference[:50, 1])
        assert np.isnan(column[50:, 1]).all()
    S = diverged.simulator.spec.slate
    assert history.counts[-1].sum(axis=1).tolist() == [200 * S, 50 * S, 200 * S]
    assert np.isnan(history.sums["value"][51:, 1]).all()
    assert np.isfinite(history.sums["value"][:51, 1]).all()


def test_agents_of_one_run_equal_agents_run_alone() -> None:
    """Compare histories, spectra included."""
    agents = [{"kind": "linucb"}, {"kind": "lints", "sharing": "hybrid"}, {"kind": "random"}]
    simulator = {"kind": "petshop", **TINY}
    both = Lockstep(
        read({"simulator": simulator, "agents": agents, "steps": 700, "replications": 4})
    )
    run_to_end(both, chunk=123)
    for i, (_label, history) in enumerate(both.histories.items()):
        alone = Lockstep(
            read({"simulator": simulator, "agents": [agents[i]], "steps": 700, "replications": 4})
        )
        run_to_end(alone, chunk=700)
        (other,) = alone.histories.values()
        assert same_history(history, other)
