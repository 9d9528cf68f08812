"""The table of a change: every agent and every column has its place from the beginning."""

from __future__ import annotations

from bandits import Result, lost, read, run
from bandits.results.change.before_after import change_table
from bandits.results.change.lost_clicks import without_changes

COLUMNS = ["Agent", "CTR before", "CTR after", "Recovery", "Clicks lost to the change"]


def test_rows_and_columns_do_not_depend_on_what_is_known() -> None:
    changes = [{"kind": "shock", "at": 300}]
    agents = [{"kind": "linucb"}, {"kind": "random"}]
    simulator = {"kind": "petshop", "n_products": 10, "changes": changes}
    parts = {"simulator": simulator, "agents": agents, "steps": 900, "replications": 4}
    result = run(read(parts), workers=0)
    unchanged = run(without_changes(result.experiment), workers=0)
    begun = Result(result.experiment, {"Random": result.histories["Random"]})
    for found in (change_table(begun, None, pending="computing"), change_table(result, unchanged)):
        assert list(found.columns) == COLUMNS
        assert list(found["Agent"]) == ["LinUCB", "Random"]
    early, late = change_table(begun, None, pending="computing"), change_table(result, unchanged)
    assert list(early.iloc[0])[1:] == ["–", "–", "–", "computing"]
    assert list(early.iloc[1])[1:4] == list(late.iloc[1])[1:4]
    assert early["Clicks lost to the change"][1] == "computing"
    clicks = lost(result, "LinUCB", unchanged=unchanged)
    assert (
        late["Clicks lost to the change"][0]
        == f"{clicks.mean:,.0f} ± {clicks.high - clicks.mean:,.0f}"
    )


def test_other_rewards_have_their_own_names() -> None:
    simulator = {"kind": "wheel", "changes": [{"kind": "shock", "at": 50}]}
    result = run(
        read({"simulator": simulator, "agents": [{"kind": "random"}], "steps": 100}), workers=0
    )
    table = change_table(result, None)
    assert list(table.columns) == [
        "Agent",
        "Reward per step before",
        "Reward per step after",
        "Recovery",
        "Points lost to the change",
    ]
