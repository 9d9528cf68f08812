"""Two-stage ranking: the index compared with brute force, and the simulator that retrieves
with it.
"""

from __future__ import annotations

import hashlib
import itertools
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits

from bandits import UserError, read, run
from bandits.base.randomness import Streams
from bandits.base.types import FloatArray
from bandits.experiments.history import History
from bandits.experiments.lockstep import make_lane
from bandits.results.figures import board as figures
from bandits.simulators import ann_index, ranking_kernels
from bandits.simulators.ranking import Layouts, Ranking
from tests.support import thinned

SMALL: dict[str, Any] = {
    "n_users": 40,
    "n_items": 2000,
    "n_candidates": 50,
    "slate": 5,
    "retrieval": "nearest",
}


def built(rows: int = 4, **params: Any) -> Ranking:
    return Ranking(Ranking.Params(**{**SMALL, **params}), Streams(3, range(rows)))


def points(n: int, d: int = 32, seed: int = 0) -> FloatArray:
    return np.random.default_rng(seed).uniform(-0.1, 0.1, (n, d))


def recall(actual: np.ndarray, right: np.ndarray) -> float:
    """Return the share of the right items that were retrieved."""
    return float(np.mean([np.isin(r, f).mean() for f, r in zip(actual, right, strict=True)]))


# the index


@pytest.mark.parametrize("d", [1, 2, 7, 32])
@pytest.mark.parametrize("n", [16, 100, 3000])
def test_the_index_returns_enough_distinct_items(n: int, d: int) -> None:
    index, k = ann_index.IVFIndex(points(n, d)), min(n, 60)
    for breadth in (1, 5, 1000):
        actual = index.search(points(30, d, seed=1), k, breadth)
        assert actual.dtype == np.int64
        assert actual.max() < n
        for row in actual:
            there = row[row >= 0]
            assert len(np.unique(there)) == len(there) >= k


def test_searching_all_lists_has_recall_above_999_and_fewer_lists_less() -> None:
    """Codes of 4 bits have errors of .2 to .3 standard deviations.

    Twice as many items are rescored: measured .9996.
    """
    items, users = points(10_000), points(100, seed=1)
    right = np.argsort(-(users @ items.T), axis=1, kind="stable")[:, :300]
    index = ann_index.IVFIndex(items)

    def found(breadth: int) -> np.ndarray:
        zeros = np.zeros(100, np.int64)
        return ranking_kernels.nearest(
            users[None], items[None], zeros, np.arange(100), index.search(users, 300, breadth), 300
        )

    recalls = [recall(found(breadth), right) for breadth in (5, 20, 50, 100)]
    assert recalls == sorted(recalls)
    assert recalls[0] < 0.6
    assert recalls[-1] > 0.998


def test_results_do_not_depend_on_batch_order_or_threads() -> None:
    items, users = points(5000, 16), points(70, 16, seed=1)
    index = ann_index.IVFIndex(items)
    together = index.search(users, 40, 9)
    assert np.array_equal(together, np.concatenate([index.search(u[None], 40, 9) for u in users]))
    assert np.array_equal(together[::-1], index.search(users[::-1], 40, 9))
    with threadpool_limits(2):
        assert np.array_equal(together, ann_index.IVFIndex(items).search(users, 40, 9))


@pytest.mark.slow
def test_another_process_builds_an_identical_index() -> None:
    program = (
        "import torch, numba, numpy as np, hashlib; from bandits.simulators import ann_index; "
        "torch.ones(64, 64) @ torch.ones(64, 64); "
        "x = np.random.default_rng(0).uniform(-.1, .1, (3000, 8)).astype('f'); "
        "print(hashlib.sha256(ann_index.build_index(x)).hexdigest())"
    )
    root = Path(__file__).parents[2]
    there = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=root
    )
    assert (
        there.stdout.strip()
        == hashlib.sha256(ann_index.build_index(points(3000, 8).astype("f"))).hexdigest()
    )


@pytest.mark.slow
def test_random_retrieval_does_not_import_the_index() -> None:
    program = (
        "import sys; from bandits import read; from bandits.experiments.lockstep import "
        "make_lane; e = read({'simulator': {'kind': 'ranking', 'n_items': 600}, 'agents': "
        "[{'kind': 'random'}]}); make_lane(e, 0, rows=[0]).advance(2); print('faiss' in "
        "sys.modules)"
    )
    root = Path(__file__).parents[2]
    there = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=root
    )
    assert there.stdout.strip() == "False"


def test_a_large_index_is_cached_and_a_damaged_file_is_rebuilt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BANDITS_HOME", str(tmp_path))
    monkeypatch.setattr(ann_index, "CACHED_FROM", 1000)
    items, users = points(1000, 4), points(5, 4, seed=1)
    first = ann_index.IVFIndex(items).search(users, 20, 3)
    (file,) = (tmp_path / "indexes").iterdir()
    assert np.array_equal(ann_index.IVFIndex(items).search(users, 20, 3), first)
    ann_index.IVFIndex(items + 1e-3)
    # named by a hash of its input
    assert len(list((tmp_path / "indexes").iterdir())) == 2
    file.write_bytes(file.read_bytes()[:-100])
    assert np.array_equal(ann_index.IVFIndex(items).search(users, 20, 3), first)


@pytest.mark.slow
def test_search_cost_is_sublinear_in_the_number_of_items() -> None:
    """sqrt(n) lists of sqrt(n): at the same breadth a hundred thousand items cost sqrt(10) = 3.2
    times ten thousand.
    """
    users, looked = points(50, seed=1), {}
    for n in (10_000, 100_000):
        index = ann_index.IVFIndex(points(n))
        looked[n] = index.scanned(users, 50).mean()
        assert ann_index.n_lists(n) ** 2 == pytest.approx(n, rel=0.01)
    assert 2 < looked[100_000] / looked[10_000] < 5
    # an eighth of the vectors
    assert index.bytes <= ann_index.index_memory(100_000, 32) < 100_000 * 32 * 8 / 8


# the better half of the retrieved items


@given(n=st.integers(3, 40), k=st.integers(1, 40), ties=st.booleans(), seed=st.integers(0, 1000))
def test_ranking_of_candidates_equals_a_stable_sort(n: int, k: int, ties: bool, seed: int) -> None:
    rng, k = np.random.default_rng(seed), min(k, n)
    items = rng.integers(-2, 3, (1, n, 2)).astype(float) if ties else rng.normal(size=(1, n, 2))
    users = rng.integers(-2, 3, (1, 6, 2)).astype(float)
    among = np.stack([rng.permutation(np.append(np.arange(n), [-1, -1])) for _ in range(6)])
    actual = ranking_kernels.nearest(users, items, np.zeros(6, np.int64), np.arange(6), among, k)
    for r in range(6):
        worth = (items[0] * users[0, r]).sum(axis=1)
        assert actual[r].tolist() == sorted(np.argsort(-worth, kind="stable")[:k].tolist())


# the simulator


def digest(simulator: Ranking) -> str:
    rounds = [simulator.round_at(step) for step in (0, 5, 1500)]
    parts = [a for round in rounds for a in (round.users, round.items, round.features)]
    return hashlib.sha256(b"".join(a.tobytes() for a in parts)).hexdigest()[:16]


@pytest.mark.parametrize(
    ("params", "before"),
    [
        ({}, "08dbf10f0b0ccb22"),
        ({"noise": 0.03}, "bb4956e8d8d4944c"),
        ({"layout": "per_row", "noise": 0.03}, "02d5eb8e3d61b3d4"),
    ],
)
def test_random_candidates_are_those_of_earlier_versions(params: Any, before: str) -> None:
    simulator = built(rows=3, n_items=400, n_candidates=20, retrieval="random", **params)
    assert digest(simulator) == before
    plain = {"simulator": {"kind": "ranking"}, "agents": [{"kind": "random"}]}
    same = read({**plain, "simulator": {"kind": "ranking", "retrieval": "random", "breadth": 128}})
    assert (
        read(plain).hash
        == same.hash
        == "7d359a8de96c453bbb42dacf8cd3f56a353791430cf0982e200fa2937674fada"
    )
    assert (
        read({**plain, "simulator": {"kind": "ranking", "retrieval": "nearest"}}).hash != same.hash
    )


@pytest.mark.parametrize("layout", ["shared", "per_row"])
@pytest.mark.parametrize("noise", [0.0, 0.05])
def test_exact_retrieval_sorts_all_items_by_observed_vectors(layout: str, noise: float) -> None:
    simulator = built(retrieval="exact", layout=layout, noise=noise)
    for step in (0, 3, 700):
        round = simulator.round_at(step)
        for r in range(4):
            where = simulator._layout_index[r]
            worth = (
                simulator.observed_items[where] @ simulator.observed_users[where, round.users[r]]
            )
            assert round.items[r].tolist() == sorted(
                np.argsort(-worth, kind="stable")[:50].tolist()
            )


def test_retrieval_uses_observed_vectors_and_noise_lowers_recall() -> None:
    simulator = built(retrieval="exact", noise=0.05)
    who = simulator.round_at(0).users
    assert simulator.observed_items is not simulator.items
    blind = recall(
        simulator.retrieve(who, exact=True), simulator.retrieve(who, exact=True, observed=False)
    )
    assert blind < 0.9
    # without noise there is one array
    assert built().observed_items is built().items


@pytest.mark.parametrize(
    ("retrieves", "layout"),
    thinned(
        itertools.product(("nearest", "exact"), ("shared", "per_row")),
        lambda number: number in (0, 3),
    ),
)
def test_retrieval_of_a_row_does_not_depend_on_other_rows(retrieves: str, layout: str) -> None:
    options = {"retrieval": retrieves, "layout": layout, "breadth": 3}
    together = built(rows=25, **options)
    for row in (0, 7, 24):
        alone = Ranking(Ranking.Params(**{**SMALL, **options}), Streams(3, [row]))
        for step in (0, 40):
            assert np.array_equal(together.round_at(step).items[row], alone.round_at(step).items[0])


def test_results_do_not_depend_on_chunks_or_saved_state() -> None:
    e = read(
        {
            "simulator": {"kind": "ranking", **SMALL, "breadth": 6},
            "agents": [{"kind": "lints", "sharing": "shared"}],
            "steps": 60,
            "replications": 3,
        }
    )
    whole, parts = make_lane(e, 0).advance(60), make_lane(e, 0)
    items = [parts.advance(n).items for n in (1, 7, 32)]
    later = make_lane(e, 0)
    later.load_state_dict(parts.state_dict())
    assert np.array_equal(np.concatenate([*items, later.advance(20).items]), whole.items)


def test_simulators_of_one_process_share_vectors_and_index() -> None:
    one, other, elsewhere = (
        built(),
        built(rows=2),
        Ranking(Ranking.Params(**SMALL), Streams(4, range(4))),
    )
    assert one.shared is other.shared
    assert one.shared.indexes is other.shared.indexes
    assert elsewhere.shared is not one.shared
    assert built(layout="per_row").shared is not one.shared
    seen = len(Layouts._cached)
    del elsewhere
    # released with the last simulator
    assert len(Layouts._cached) < seen


def test_memory_covers_vectors_index_and_counts() -> None:
    for params in (
        {},
        {"noise": 0.1},
        {"layout": "per_row"},
        {"retrieval": "random", "n_items": 100_000},
    ):
        simulator = built(**params)
        vectors = (
            simulator.users,
            simulator.items,
            simulator.observed_users,
            simulator.observed_items,
        )
        held = {
            id(a.base if a.base is not None else a): (a.base if a.base is not None else a).nbytes
            for a in vectors
        }
        index = (
            sum(i.bytes for i in simulator.shared.indexes)
            if simulator.params.retrieval == "nearest"
            else 0
        )
        layouts = len(simulator.items)
        assert sum(held.values()) + index <= Ranking.shared_memory(simulator.params, layouts)
    million = {"kind": "ranking", "n_items": 1_000_000, "retrieval": "nearest", "n_candidates": 300}
    agents = [{"kind": "lints", "sharing": "shared"}, {"kind": "random"}]
    e = read({"simulator": million, "agents": agents, "replications": 8, "steps": 2000})
    # a second agent shares the 244 MiB of vectors
    assert 2**28 < e.memory() < 2**30
    for bucket_size in (1, 7):
        made = History(2000, 3, 1000, bucket_size)
        assert made.counts.nbytes + made._count_now.nbytes <= History.memory(
            2000, 3, 1000, bucket_size
        )


def test_a_large_catalogue_is_counted_by_bucket() -> None:
    described = Ranking.describe(Ranking.Params(n_items=1_000_000))
    assert described.bucket_size == 100
    assert Ranking.describe(Ranking.Params(n_items=100_000)).bucket_size == 1
    assert Ranking.describe(Ranking.Params(n_items=100_000, retrieval="nearest")).bucket_size == 10
    e = read(
        {
            "simulator": {"kind": "ranking", **SMALL},
            "agents": [{"kind": "random"}],
            "steps": 40,
            "replications": 2,
        }
    )
    trace = make_lane(e, 0).advance(40)
    each, buckets = History(40, 2, 2000), History(40, 2, 2000, bucket_size=7)
    each.extend(trace)
    buckets.extend(trace)
    assert buckets.counts.shape[2] == 286
    edges = np.arange(0, 2000, 7)
    assert np.array_equal(np.add.reduceat(each.counts, edges, axis=2), buckets.counts)
    again = History(80, 2, 2000, bucket_size=7)
    again.load_state_dict(buckets.state_dict())
    assert np.array_equal(again._count_now, buckets._count_now)
    assert buckets.counted == "buckets of 7 neighbouring items"


def test_metrics_of_bucketed_counts_name_buckets() -> None:
    settings = {"kind": "ranking", **SMALL, "n_items": 20_001}
    result = run(
        read(
            {"simulator": settings, "agents": [{"kind": "random"}], "steps": 20, "replications": 2}
        )
    )
    entropy = next(
        p for p in figures.board(result) if p["layout"]["title"]["text"] == "Selection entropy"
    )
    assert (
        "Normalised entropy of the buckets of 3 neighbouring items"
        in entropy["layout"]["meta"]["note"]
    )
    # 20 slates of five
    assert result.histories["Random"].counts.sum(axis=2)[-1].tolist() == [100, 100]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"n_items": 10, "n_candidates": 9},
            "simulator.n_items is 10; retrieval nearest needs at least 16",
        ),
        (
            {"n_candidates": 2001},
            "simulator.n_candidates is 2,001; it must be at most n_items, 2,000",
        ),
        ({"breadth": 0}, "simulator.breadth is 0; it must be a whole number from 1 to 1,000"),
        ({"breadth": 1001}, "simulator.breadth is 1001; it must be a whole number from 1 to 1,000"),
        (
            {"retrieval": "hnsw"},
            "simulator.retrieval is hnsw; it must be one of random, nearest, exact",
        ),
        (
            {"n_items": 1_000_001},
            "simulator.n_items is 1000001; it must be a whole number from 2 to 1,000,000",
        ),
    ],
)
def test_invalid_retrieval_is_refused_in_one_sentence(
    changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        read({"simulator": {"kind": "ranking", **SMALL, **changes}, "agents": [{"kind": "random"}]})
