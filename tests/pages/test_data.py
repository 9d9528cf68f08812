"""The view Your data: from a CSV to a run, and back."""

from __future__ import annotations

import shutil
from html import escape
from typing import Any

import pyarrow.parquet as pq
import pytest
from streamlit.testing.v1 import AppTest

from bandits import read
from bandits.base.files import home
from bandits.experiments.presets import on_data
from bandits.runtime.pool import Pool
from bandits.simulators.datasets import csv_table, uploads
from bandits.simulators.datasets.csv_table import SAMPLES, Sample
from tests.pages.support import choose_entry, open_page
from tests.support import wait_for

SHOP = "age,town,bought\n" + "".join(
    f"{20 + i % 9},{'Rome' if i % 3 else 'Oslo'},{'ny'[i % 2]}\n" for i in range(30)
)


@pytest.fixture(autouse=True)
def _empty_shelf() -> None:
    shutil.rmtree(home() / "data", ignore_errors=True)


def visit() -> AppTest:
    return settled(open_page("data"))


def settled(at: AppTest, title: str = "Your data") -> AppTest:
    assert not at.exception
    assert at.title[0].value == title
    return at


def upload(at: AppTest, text: str | bytes, name: str = "shop.csv") -> AppTest:
    raw = text if isinstance(text, bytes) else text.encode()
    return settled(at.file_uploader[0].set_value((name, raw, "text/csv")).run())


def button(at: AppTest, label: str, place: int = 0) -> Any:
    return [b for b in at.button if b.label == label][place]


def box(elements: Any, label: str) -> Any:
    (found,) = [e for e in elements if e.label == label]
    return found


def refusals(at: AppTest) -> list[str]:
    """As a reader sees them: without the signs that keep markup from being markup."""
    return [e.value.replace("\\", "") for e in at.error]


def captions(at: AppTest) -> str:
    return "\n".join(c.value for c in at.caption)


def labels(at: AppTest) -> list[str]:
    return [b.label for b in at.button]


def test_an_empty_page_offers_samples_and_an_upload(pool: Pool) -> None:
    at = visit()
    assert "Uploaded data sets" not in [s.value for s in at.subheader]
    assert at.file_uploader[0].allowed_type == [".csv", ".tsv", ".txt"]
    assert [d.proto.label for d in at.get("download_button")] == ["Download"] * len(SAMPLES)
    assert labels(at) == ["Try"] * len(SAMPLES)
    about = "\n".join(h.proto.body for h in at.get("html"))
    assert about.count("CC BY 4.0") == len(SAMPLES)


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.file)
def test_a_sample_is_one_click_away_and_gives_way_to_an_upload(pool: Pool, sample: Sample) -> None:
    at = settled(visit().button(key=f"try-{sample.file}").click().run())
    target, n = {"iris.csv": ("species", 150), "census-income.csv": ("income", 2000)}[sample.file]
    assert not at.error
    assert box(at.selectbox, "Target").value == target
    assert f"{n:,} examples, " in captions(at)
    assert not button(at, "Save and run").disabled
    assert [m for m in at.markdown if f"**{sample.title}** is loaded" in m.value]
    at = upload(at, SHOP)
    assert not [m for m in at.markdown if "is loaded" in m.value]
    assert "30 examples, 2 features" in captions(at)
    at = settled(at.button(key=f"try-{sample.file}").click().run())
    assert f"{n:,} examples, " in captions(at)
    settled(button(at, "Save and run").click().run(), "Arena")
    (kept,) = uploads.listing()
    assert (kept.target, kept.rows) == (target, n)


@pytest.mark.slow
def test_from_a_csv_to_its_race(pool: Pool) -> None:
    at = upload(visit(), csv_table.sample(), "iris (1).csv")
    shown = at.dataframe[0].value
    assert shown["Column"].tolist() == [
        "sepal length",
        "sepal width",
        "petal length",
        "petal width",
        "species",
    ]
    assert shown["Type"].tolist() == ["number"] * 4 + ["category"]
    assert shown["Example"].tolist() == ["5.1", "3.5", "1.4", "0.2", "setosa"]
    assert shown["Missing"].tolist() == [0] * 5
    assert shown["Distinct values"].tolist() == [35, 23, 43, 22, 3]
    assert box(at.selectbox, "Target").value == "species"
    assert box(at.text_input, "Name").value == "iris 1"
    assert (
        "150 examples, 4 features, 3 classes: `setosa` 50, `versicolor` 50, `virginica` 50. "
        "Baseline: always choosing the most frequent class is right 33 % of the time."
    ) in captions(at)
    at = settled(button(at, "Save and run").click().run(), "Arena")
    (kept,) = uploads.listing()
    assert kept[1:6] == ("iris 1", "species", 150, 4, 3)
    experiment = read(at.session_state["draft"].data())
    assert experiment == on_data(kept.id)
    assert experiment.labels == ("LinUCB", "LinTS", "ε-greedy", "Popularity", "Random")
    job = pool.get(experiment.hash)
    assert job is not None
    wait_for(lambda: not job.active, "the race")
    assert job.status == "finished", job.error
    assert f"{kept.id}, uploaded as a CSV of 150 examples" in "\n".join(
        c.value for c in at.sidebar.caption
    )
    data = next(s for s in at.sidebar.selectbox if s.label == "Data set")
    assert data.value == kept.id
    assert data.options[-1] == "iris 1 (uploaded)"


def test_target_name_and_columns_can_be_chosen(pool: Pool) -> None:
    at = upload(visit(), SHOP)
    box(at.selectbox, "Target").set_value("town")
    at = settled(at.run())
    box(at.multiselect, "Leave out").set_value(["age"])
    box(at.text_input, "Name").set_value(" Where from ")
    at = settled(at.run())
    assert "30 examples, 1 feature, 2 classes: `Oslo` 10, `Rome` 20." in captions(at)
    settled(button(at, "Save and run").click().run(), "Arena")
    (kept,) = uploads.listing()
    assert kept[1:6] == ("Where from", "town", 30, 1, 2)
    assert list(uploads.load(kept.id).columns) == ["bought", "town"]


def test_identifiers_are_suggested_to_be_left_out(pool: Pool) -> None:
    text = "customer,age,stayed\n" + "".join(f"C{i},{i % 9},{'ny'[i % 2]}\n" for i in range(30))
    at = upload(visit(), text)
    assert box(at.multiselect, "Leave out").value == ["customer"]
    assert at.dataframe[0].value["Note"].tolist()[0] == "unique per row (identifier): ignored"


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"", "the file is empty"),
        (b"a,b\n1,2,3\n", "row 2 has 3 cells, the header has 2"),
        (
            b"PK\x03\x04",
            "the file is an Excel or zip file, not a CSV: save it as CSV (UTF-8) first",
        ),
        (b"<b>,<b>\n1,2\n", "row 1: columns 1 and 2 are both named '<b>'"),
    ],
)
def test_what_is_no_table_is_refused_and_the_shelf_stays(pool: Pool, raw: bytes, said: str) -> None:
    uploads.save_dataset(csv_table.inspect(SHOP.encode()), target="bought", title="Shop")
    at = upload(visit(), raw)
    assert refusals(at) == [f"{said[0].upper()}{said[1:]}."]
    assert "<" not in at.error[0].value.replace("\\<", "")
    assert labels(at) == ["Try", "Try", "Run", "Delete data set"]


def test_what_cannot_be_raced_on_says_why_before_the_button_is_pressed(pool: Pool) -> None:
    at = upload(visit(), SHOP.replace("28,", "old,", 1))
    said = "Row 10, column 'age': 'old' is not a number, unlike the rest of the column: "
    assert refusals(at) == [f"{said}repair it, or leave the column out."]
    assert button(at, "Save and run").disabled
    box(at.multiselect, "Leave out").set_value(["age"])
    at = settled(at.run())
    assert not at.error
    assert not button(at, "Save and run").disabled
    box(at.text_input, "Name").set_value("<b>")
    at = settled(button(at, "Save and run").click().run())
    assert "The name is '<b>'; it must be a text of 1 to 40" in refusals(at)[0]
    assert uploads.listing() == []


def test_wrong_rows_are_listed_at_once_and_left_out_by_a_button(pool: Pool) -> None:
    at = upload(visit(), SHOP.replace("28,", "old,", 1) + "1,Rome,yes,3\n")
    said = "Row 32 has 4 cells, the header has 3. 2 rows hold what is not allowed."
    assert refusals(at) == [said]
    assert [m for m in at.markdown if "row 10, column" in m.value]
    assert button(at, "Save and run").disabled
    at = settled(button(at, "Leave out these 2 rows").click().run())
    assert not at.error
    assert "2 rows of 31 left out" in captions(at)
    assert "29 examples, 2 features" in captions(at)
    settled(button(at, "Save and run").click().run(), "Arena")
    assert uploads.listing()[0].rows == 29


def test_a_column_of_dates_is_named(pool: Pool) -> None:
    rows = "".join(f"2024-01-0{i % 8 + 1},{i % 5},{'ny'[i % 2]}\n" for i in range(30))
    at = upload(visit(), f"day,age,stayed\n{rows}")
    assert at.dataframe[0].value["Note"][0] == "dates: read as categories, not as times"


def test_names_and_cells_are_text_and_never_markup(pool: Pool) -> None:
    nasty = "<img src=x onerror=alert(1)>"
    classes = ("[a](http://b.example)", "`![](http://c.example)`")
    rows = "".join(f"=cmd(){i % 4},{classes[i % 2]}\n" for i in range(30))
    at = upload(visit(), f"=1+1,{nasty}\n{rows}", "![x](http://d.example).csv")
    # a spreadsheet would run it otherwise
    assert at.dataframe[0].value["Column"].tolist() == ["'=1+1", nasty]
    assert at.dataframe[0].value["Example"].tolist()[0] == "'=cmd()0"
    assert "2 classes: `[a](http://b.example)` 15, `'![](http://c.example)'` 15" in captions(at)
    at = settled(button(at, "Save and run").click().run(), "Arena")
    at = settled(at.switch_page("data.py").run())
    (told,) = [h.proto.body for h in at.get("html") if "30 rows" in h.proto.body]
    sizes = f"30 rows · 1 feature · 2 classes of “{escape(nasty)}”"
    assert told == f"<b>x http d.example</b><br><small>{sizes}</small>"
    assert not any(nasty in e.value or e.allow_html for e in (*at.markdown, *at.caption))


def test_brought_data_can_be_raced_on_again_and_deleted(pool: Pool) -> None:
    table = csv_table.inspect(SHOP.encode())
    first = uploads.save_dataset(table, target="bought", title="First")
    second = uploads.save_dataset(table, target="town", title="Second")
    pool.owners.record(first, "me")
    at = settled(open_page("data", owner="me"))
    assert at.button(key=f"destructive-{second}").disabled
    assert [s.value for s in at.subheader] == ["Samples", "Your file", "Uploaded data sets"]
    assert labels(at).count("Run") == 2
    at = settled(at.button(key=f"run-{first}").click().run(), "Arena")
    assert read(at.session_state["draft"].data()) == on_data(first)
    at = settled(at.switch_page("data.py").run())
    at = settled(at.button(key=f"destructive-{first}").click().run())
    assert [k.id for k in uploads.listing()] == [second]
    assert labels(at).count("Run") == 1
    # its run is still looked at, its data are gone
    at = settled(at.switch_page("arena.py").run(), "Arena")
    data = next(s for s in at.sidebar.selectbox if s.label == "Data set")
    assert (data.value, data.options[-1]) == (first, f"{first} (not found)")
    (run,) = [b for b in at.main.button if b.label == "Run"]
    at = settled(run.click().run(), "Arena")
    (said,) = set(refusals(at))
    assert said.startswith(
        f"Data '{first}' is not stored here: upload the CSV again on the page Data"
    )


def test_a_stranger_deletes_no_data_set(pool: Pool) -> None:
    at = upload(settled(open_page("data", owner="me")), SHOP)
    at = settled(button(at, "Save and run").click().run(), "Arena")
    (info,) = uploads.listing()
    assert pool.owners.of(info.id) == "me"
    # who uploads it again does not own it
    at = upload(settled(open_page("data", owner="another visitor")), SHOP)
    at = settled(button(at, "Save and run").click().run(), "Arena")
    assert pool.owners.of(info.id) == "me"
    at = settled(open_page("data", owner="another visitor"))
    delete = at.button(key=f"destructive-{info.id}")
    assert delete.disabled
    # a client may press it all the same
    delete.proto.disabled = False
    at = delete.click().run()
    assert [kept.id for kept in uploads.listing()] == [info.id]


def test_data_damaged_or_deleted_meanwhile_leave_the_shelf(pool: Pool) -> None:
    name = uploads.save_dataset(csv_table.inspect(SHOP.encode()), target="bought", title="Shop")
    at = visit()
    path = home() / "data" / f"{name}.parquet"
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    assert "Run" not in labels(settled(at.run()))
    path.write_bytes(whole)
    at = visit()
    at.button(key=f"run-{name}").click()
    # between the look at the page and the press of the button
    uploads.delete(name)
    assert "Run" not in labels(settled(at.run()))


def test_uploaded_data_are_kept_while_another_simulator_is_tried(pool: Pool) -> None:
    at = upload(visit(), csv_table.sample(), "iris.csv")
    at = settled(button(at, "Save and run").click().run(), "Arena")
    at = settled(at.switch_page("arena.py").run(), "Arena")
    start = read(at.session_state["draft"].data())
    for kind in ("ranking", "wheel"):
        at = settled(choose_entry(at, "simulators", kind), "Arena")
        assert read(at.session_state["draft"].data()).simulator.kind == kind
    at = settled(choose_entry(at, "simulators", "classification"), "Arena")
    assert read(at.session_state["draft"].data()) == start


@pytest.mark.slow
def test_a_hashed_column_is_in_no_file_as_clear_text(pool: Pool) -> None:
    """From the upload to the end of its run: a search of every byte, also inside compressed
    tables.
    """
    names = [f"Zaphod{i}Beeblebrox" for i in range(5)]
    rows = "".join(f"{names[i % 5]},{20 + i % 9},{'ny'[i % 2]}\n" for i in range(60))
    at = upload(visit(), f"who,age,bought\n{rows}", "secret.csv")
    box(at.multiselect, "Hash").set_value(["who"]).run()
    box(at.multiselect, "Coarsen").set_value(["age"]).run()
    assert any("Hashed: `who`. Coarsened: `age`." in c.value for c in at.caption)
    settled(button(at, "Save and run").click().run(), "Arena")
    (info,) = uploads.listing()
    job = pool.get(at.session_state["job"])
    assert job is not None
    wait_for(lambda: not job.active, "the end of the run")
    frame = uploads.load(info.id)
    assert list(frame.columns) == ["who", "age", "bought"]
    assert frame["who"].nunique() == 5
    assert frame["who"].str.fullmatch("[0-9a-f]{16}").all()
    assert frame["age"].nunique() < 9
    searched = [path for path in home().rglob("*") if path.is_file()]
    assert any(path.suffix == ".parquet" for path in searched)
    for path in searched:
        assert b"Zaphod" not in path.read_bytes(), path
        if path.suffix == ".parquet":
            assert "Zaphod" not in pq.ParquetFile(path).read().to_pandas().to_csv()
            assert b"Zaphod" not in repr(pq.ParquetFile(path).metadata.metadata).encode()
