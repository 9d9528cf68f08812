"""A table with one reward column per arm: paired truth on real data."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from bandits import UserError, read, run
from bandits.experiments import presets, url
from bandits.experiments.lockstep import make_lane
from bandits.results import export
from bandits.simulators.datasets import uploads
from bandits.simulators.datasets.csv_table import Table, inspect
from tests.pages.support import open_page

N = 400
G = np.random.default_rng(4)
X = G.normal(size=(N, 2))
# of three prices, in euros: negative, zero and large
REWARDS = np.column_stack([20 + 15 * X[:, 0], 20 - 15 * X[:, 0], np.full(N, 12.0)]).round(2)


@pytest.fixture(autouse=True)
def empty_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BANDITS_HOME", str(tmp_path))
    return tmp_path


def text(rewards: object = REWARDS) -> bytes:
    lines = [
        ",".join(map(str, [*x, *r]))
        for x, r in zip(X.round(3).tolist(), np.asarray(rewards).tolist(), strict=True)
    ]
    return "\n".join(["size,age,reward low,reward high,reward 7", *lines]).encode()


def table(rewards: object = REWARDS) -> Table:
    return inspect(text(rewards))


def saved() -> str:
    found = table()
    return uploads.save_dataset(found, rewards=found.suggested_rewards(), title="Prices")


def test_every_arm_earns_what_its_column_says() -> None:
    e = presets.on_data(saved())
    assert e.simulator.kind == "rewards"
    agents = [{"kind": "random"}, {"kind": "oracle"}]
    e = read({**e.model_dump(mode="json"), "agents": agents, "steps": N, "replications": 3})
    result = run(e, workers=0)
    # one epoch shows every row once
    best = result.histories["Oracle"].sums["clicks"][-1]
    np.testing.assert_allclose(best, REWARDS.max(axis=1).sum())
    random = result.histories["Random"]
    np.testing.assert_allclose(random.sums["best_value"][-1], REWARDS.max(axis=1).sum())
    np.testing.assert_allclose(random.sums["random_value"][-1], REWARDS.mean(axis=1).sum())
    # nothing is drawn: what is earned is what is expected
    np.testing.assert_allclose(random.sums["value"][-1], random.sums["clicks"][-1])


def test_the_first_run_learns_who_pays_which_price_and_reads_back() -> None:
    e = presets.on_data(saved())
    short = read({**e.model_dump(mode="json"), "steps": 1500, "replications": 4})
    result = run(short, workers=0)
    rates = {label: h.sums["clicks"][-1].mean() / 1500 for label, h in result.histories.items()}
    (note,) = e.simulator_class().notes(e.simulator)
    assert note.startswith("Rewards have a standard deviation of")
    assert rates["LinUCB"] > 0.95 * REWARDS.max(axis=1).mean() > REWARDS.mean(axis=0).max()
    assert read(url.plain_data(url.to_query(short))).hash == short.hash
    assert "Real data (rewards)" in export.report(result)


def test_the_order_of_columns_and_a_shock_move_whole_columns() -> None:
    name = saved()
    simulator = {"kind": "rewards", "data": name, "changes": [{"kind": "shock", "at": 5}]}
    e = read(
        {"simulator": simulator, "agents": [{"kind": "random"}], "steps": 20, "replications": 1}
    )
    built = make_lane(e, 0).simulator
    rows = {tuple(sorted(row)) for row in REWARDS.tolist()}
    columns = [built.probabilities(built.round_at(step))[0] for step in range(20)]
    assert all(tuple(sorted(row.tolist())) in rows for row in columns)
    assert all(row[2] == 12 for row in columns[:5])
    assert not any(row[2] == 12 for row in columns[5:])
    assert [built.name(k) for k in range(3)] == ["reward low", "reward high", "reward 7"]


def test_shipped_sets_earn_1_for_the_right_class() -> None:
    agents = [{"kind": "linucb"}]
    part = {"agents": agents, "steps": 200, "replications": 2}
    a, b = (
        run(read({"simulator": {"kind": kind, "data": "wine"}, **part}), workers=0)
        for kind in ("rewards", "classification")
    )
    for name in ("clicks", "best_value"):
        np.testing.assert_array_equal(
            a.histories["LinUCB"].sums[name], b.histories["LinUCB"].sums[name]
        )


@pytest.mark.parametrize(
    ("rewards", "message"),
    [
        (["reward low"], "there are 1 reward columns; 2 to 50 different ones are needed"),
        (["reward low", "reward low"], "2 to 50 different ones"),
        (["reward low", "gone"], "there is no column 'gone'"),
    ],
)
def test_other_roles_are_refused(rewards: list[str], message: str) -> None:
    with pytest.raises(UserError, match=re.escape(message)):
        uploads.save_dataset(table(), rewards=rewards, title="Prices")


def test_a_missing_reward_is_named_by_row_and_column() -> None:
    holes = REWARDS.astype(object).copy()
    holes[41, 1] = ""
    found = table(holes)
    with pytest.raises(UserError, match="row 43, reward column 'reward high': is empty"):
        uploads.save_dataset(found, rewards=found.suggested_rewards(), title="Prices")
    holes[3, 1] = "much"
    with pytest.raises(UserError, match="row 5, column 'reward high': 'much' is not a number"):
        uploads.save_dataset(table(holes), rewards=["reward low", "reward high"], title="Prices")


def test_a_table_of_rewards_and_one_of_classes_are_other_data_and_other_simulators() -> None:
    name = saved()
    classes = inspect(b"a,b\n1,x\n2,y\n3,x\n4,y\n")
    labelled = uploads.save_dataset(classes, target="b", title="Prices")
    two = uploads.save_dataset(table(), rewards=["reward low", "reward high"], title="Prices")
    assert len({name, labelled, two}) == len(uploads.listing()) == 3
    for kind, data, other in (
        ("classification", name, "use the simulator rewards"),
        ("rewards", labelled, "use the simulator classification"),
    ):
        with pytest.raises(UserError, match=other):
            read({"simulator": {"kind": kind, "data": data}, "agents": [{"kind": "random"}]})


def test_the_page_recognises_reward_columns_and_runs_them() -> None:
    at = open_page("data")
    at.file_uploader[0].upload("prices.csv", text(), "text/csv").run()
    assert not at.exception
    (control,) = [m for m in at.multiselect if m.label == "Reward columns"]
    assert control.value == ["reward low", "reward high", "reward 7"]
    assert any("400 examples, 2 features, 3 arms" in c.value for c in at.caption)
    at.button[[b.label for b in at.button].index("Save and run")].click().run()
    (info,) = uploads.listing()
    assert (info.title, info.target, info.features, info.classes) == ("prices", "", 2, 3)
