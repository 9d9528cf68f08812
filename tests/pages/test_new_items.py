"""The pages New items and Artwork: from a choice to what was launched and who is shown which
picture.
"""

from __future__ import annotations

import re

import pytest
from streamlit.testing.v1 import AppTest

from bandits.experiments import url
from bandits.runtime.pool import Pool
from tests.pages.support import ended, open_page, panels
from tests.support import experiment

SHOP = {
    "kind": "petshop",
    "n_products": 20,
    "n_users": 100,
    "changes": [{"kind": "launch", "at": 1000, "items": 2, "category": "Fish", "quality": 1.5}],
}
PICTURES = {
    "kind": "artwork",
    "n_titles": 20,
    "n_pictures": [3, 5],
    "n_users": 60,
    "n_retrieved": 3,
}


def visitors(at: AppTest) -> list[list[str]]:
    """Return the rows of the table of visitors."""
    (table,) = [m.value for m in at.markdown if m.value.startswith("| Visitor |")]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in table.splitlines()[2:]]


@pytest.mark.slow
def test_a_launch_is_edited_run_and_read(pool: Pool) -> None:
    e = experiment("linucb", "random", simulator=SHOP, seed=61, steps=3000)
    ended(pool.submit(e))
    at = open_page("labs/new_items", url.to_query(e))
    assert not at.exception
    assert at.selectbox(key="items-name").value == "own"
    table = next(frame.value for frame in at.dataframe)
    assert list(table["Launch"]) == ["2 at step 1,000"] * 2
    assert list(table["Agent"]) == ["LinUCB", "Random"]
    assert any(
        "The 2 products launched at step 1,000 get their fair share" in m.value for m in at.markdown
    )
    titles = [cell["figure"]["layout"]["title"]["text"] for p in panels(at) for cell in p["cells"]]
    assert titles == ["Share of 2 products launched at 1,000", "Click-through rate"]
    items = next(n for n in at.number_input if n.label == "Items")
    items.set_value(3).run()
    assert any("Shown below: the last run" in c.value for c in at.caption)
    next(b for b in at.button if b.label == "Run").click().run()
    assert not at.exception
    job = pool.get(at.session_state["job"])
    assert job is not None
    assert [change.items for change in job.experiment.simulator.changes] == [3]  # type: ignore[attr-defined]
    ended(job)
    at.run()
    assert any("3 products launched at step 1,000" in m.value for m in at.markdown)
    assert not any("Shown below" in c.value for c in at.caption)


def test_launches_that_do_not_fit_are_refused_in_one_sentence(pool: Pool) -> None:
    e = experiment("random", simulator=SHOP, seed=62, steps=2000)
    ended(pool.submit(e))
    at = open_page("labs/new_items", url.to_query(e))
    next(n for n in at.number_input if n.label == "Items").set_value(5).run()
    assert not at.exception
    assert any(
        "changes.0.items is 5; at most 4 items can be launched" in m.value.replace("\\", "")
        for m in at.error
    )


def test_a_change_that_was_added_stays_while_it_is_edited(pool: Pool) -> None:
    e = experiment("random", simulator=SHOP, seed=62, steps=2000)
    ended(pool.submit(e))
    at = open_page("labs/new_items", url.to_query(e))
    next(box for box in at.selectbox if box.label.startswith("Add to")).set_value("withdraw").run()
    items = [n for n in at.number_input if n.label == "Items"]
    items[1].set_value(1).run()
    assert [n.value for n in at.number_input if n.label == "Items"] == [2, 1]
    assert not at.error
    next(b for b in at.button if b.help == "Remove").click().run()
    assert [n.value for n in at.number_input if n.label == "Items"] == [1]


@pytest.mark.slow
def test_a_title_is_chosen_and_its_pictures_explained(pool: Pool) -> None:
    shared = {"kind": "linucb", "sharing": "shared", "alpha": 0.3}
    apart = {"kind": "linucb", "label": "LinUCB per title", "sharing": "per_category", "alpha": 0.3}
    e = experiment(shared, apart, "popularity", simulator=PICTURES, seed=63, steps=800)
    ended(pool.submit(e))
    at = open_page("labs/artwork", url.to_query(e))
    assert not at.exception
    title = next(box for box in at.selectbox if box.label == "Title")
    assert len(title.options) == 20
    (before,) = [m.value for m in at.markdown if "take fraction of" in m.value]
    title.set_value(int(title.options[1].split(":")[0].split()[1]) - 1).run()
    assert not at.exception
    assert len({row[0] for row in visitors(at)}) == len(visitors(at)) == 8
    # one title, several pictures
    assert len({row[1].split(" (")[0] for row in visitors(at)}) >= 2
    assert {row[1].split(")")[1] for row in visitors(at)} <= {
        "",
        ": explored",
    }
    assert all(0 < float(row[3]) < 1 for row in visitors(at))
    (answers,) = [m.value for m in at.markdown if "True taste of this visitor" in m.value]
    assert answers.count("its mean plus bonus") == 2
    # two visitors, two pictures
    assert len(set(re.findall(r"chose picture (\d+)", answers))) == 2
    (sentence,) = [m.value for m in at.markdown if "take fraction of" in m.value]
    assert "(oracle)" in sentence
    assert sentence != before
    drawn = [cell["figure"]["layout"]["title"]["text"] for p in panels(at) for cell in p["cells"]]
    assert drawn[:3] == ["Take fraction", "Cumulative regret", "Pictures and visitors"]
    assert [title.split(": ")[1] for title in drawn[3:]] == ["what LinUCB estimates"] * 2
    (conclusion,) = [
        m.value for m in at.markdown if "per title" in m.value and "take fraction" in m.value
    ]
    assert "LinUCB minus LinUCB per title" in conclusion
    next(box for box in at.selectbox if box.label == "Agent").set_value("Popularity").run()
    assert {row[1].split("): ")[1] for row in visitors(at)} == {"the same picture for all visitors"}
    at.multiselect[0].set_value([]).run()
    assert not at.exception
    assert len(visitors(at)) == 8


def test_pages_offer_a_run_where_nothing_is_launched_and_no_picture_shown(pool: Pool) -> None:
    e = experiment("random", seed=64, steps=300)
    ended(pool.submit(e))
    at = open_page("labs/new_items", url.to_query(e))
    assert any("Nothing is launched in the Arena's run" in c.value for c in at.caption)
    at = open_page("labs/artwork", url.to_query(e))
    assert any("shows no pictures" in c.value for c in at.caption)
    assert not at.exception
