"""The form of a Params class with a field of every type."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field
from streamlit.testing.v1 import AppTest

from bandits.agents import REGISTRY as AGENTS
from bandits.base.params import Params, declaration, param
from bandits.simulators import REGISTRY as SIMULATORS
from bandits_app.widgets.params_form import label

Share = Annotated[float, Field(ge=0, le=1)]
Row = Annotated[tuple[Share, Share], Field(strict=False)]


class Everything(Params):
    """One field of every type."""

    kind: Literal["everything"] = "everything"
    text: str = param("hello", title="Text", pattern="^[a-z]{1,5}$", help="Small letters.")
    maybe_text: str | None = param(
        None, title="Maybe text", empty="no text", help="A text or nothing."
    )
    whole: int = param(3, title="Whole", ge=0, le=10, help="A whole number.")
    maybe_whole: int | None = param(
        None, title="Maybe whole", empty="never", ge=1, le=10, help="A number or nothing."
    )
    real: float = param(0.5, title="Real", ge=0, le=1, help="A number.")
    unbounded: float = param(2.5, title="Unbounded", help="Any number.")
    maybe_real: float | None = param(
        None, title="Maybe real", ge=0, le=1, help="A number or nothing."
    )
    widths: tuple[Annotated[int, Field(ge=1, le=99)], ...] = param(
        (8, 4), title="Widths", min_length=1, max_length=3, help="One to three."
    )
    levels: list[float] = param([0.5, 0.95], title="Levels", help="Any numbers.")
    pair: tuple[float, float] = param((0.1, 0.9), title="Pair", help="Two numbers.")
    maybe_pair: tuple[float, float] | None = param(
        None, title="Maybe pair", strict=False, help="Two, or nothing."
    )
    names: tuple[str, ...] = param(("a", "b"), title="Names", help="Any texts.")
    table: Annotated[tuple[Row, Row, Row], Field(strict=False)] = param(
        ((0.1, 0.2), (0.3, 0.4), (0.5, 0.6)),
        title="Table",
        table=(("x", "y", "z"), ("left", "right")),
        help="Three by two.",
    )
    switch: bool = param(True, title="Switch", help="On or off.")
    maybe_switch: bool | None = param(
        None, title="Maybe switch", empty="automatic", help="On, off or automatic."
    )
    option: Literal["one_way", "other"] = param(
        "one_way", title="Option", help="one_way: this. other: that."
    )
    maybe_option: Literal["up", "down"] | None = param(
        None, title="Maybe option", empty="none", help="Up or down."
    )
    level: Literal[1, 2, 3] = param(2, title="Level", help="Three levels.")
    file: str = param("iris", title="File", help="A file.")
    free: dict[str, int] = param({"a": 1}, title="Free", help="An object.")

    @classmethod
    def choices(cls, name: str) -> dict[str, str] | None:
        return {"iris": "Iris", "wine": "Wine"} if name == "file" else None


class Fruit(Params):
    """An entry with a field that another one makes appear."""

    kind: Literal["fruit"] = "fruit"
    how: Literal["whole", "cut"] = param(
        "whole", title="How", help="whole: as it is. cut: in pieces."
    )
    pieces: int | None = param(None, title="Pieces", ge=1, le=9, help="Number of pieces.")

    @classmethod
    def idle(cls, values: dict[str, Any]) -> frozenset[str]:
        return frozenset() if values.get("how") == "cut" else frozenset({"pieces"})

    @classmethod
    def closest(cls, values: dict[str, Any]) -> dict[str, Any]:
        return {**values, "pieces": (values.get("pieces") or 2) if values["how"] == "cut" else None}


class Bread(Params):
    """Another entry, with a name that Python reserves."""

    kind: Literal["bread"] = "bread"
    source: str = param(..., alias="from", title="From", help="Baker.")


class Basket(Params):
    """A list of entries."""

    items: tuple[Annotated[Fruit | Bread, Field(discriminator="kind")], ...] = param(
        (), title="Items", help="Food."
    )


def basket_page() -> None:
    import streamlit as st

    from bandits_app.widgets.params_form import form
    from tests.pages.test_params_form import Basket

    values = st.session_state.get("values", {})
    begin = {"fruit": {"kind": "fruit"}, "bread": {"kind": "bread", "from": "Ann"}}
    first = lambda cls: begin[cls.model_fields["kind"].default]  # noqa: E731
    st.session_state["values"] = form(Basket, ["items"], values, "form", first)


def test_entries_are_added_filled_in_and_removed() -> None:
    def items(at: AppTest) -> list[dict[str, Any]]:
        return list(at.session_state["values"]["items"])

    at = settled(AppTest.from_function(basket_page, default_timeout=60).run())
    assert items(at) == []
    at = settled(at.selectbox[-1].select("fruit").run())
    at = settled(at.selectbox[-1].select("bread").run())
    assert items(at) == [
        {"kind": "fruit", "how": "whole", "pieces": None},
        {"kind": "bread", "from": "Ann"},
    ]
    assert not at.number_input
    at = settled(at.selectbox[0].select("cut").run())
    assert items(at)[0] == {"kind": "fruit", "how": "cut", "pieces": 2}
    at = settled(at.number_input[0].set_value(5).run())
    at = settled(at.text_input[0].set_value("Bob").run())
    assert items(at) == [
        {"kind": "fruit", "how": "cut", "pieces": 5},
        {"kind": "bread", "from": "Bob"},
    ]
    assert Basket.model_validate(at.session_state["values"]).items[1] == Bread(**{"from": "Bob"})
    at = settled(at.button[0].click().run())
    assert items(at) == [{"kind": "bread", "from": "Bob"}]
    at = settled(at.text_input[0].set_value("Cleo").run())
    assert items(at) == [{"kind": "bread", "from": "Cleo"}]


def page() -> None:
    import streamlit as st

    from bandits_app.widgets.params_form import fields, form
    from tests.pages.test_params_form import Everything

    values = st.session_state.get("values", {})
    st.session_state["values"] = form(Everything, fields(Everything, basic=False), values, "form")


def visit(**values: Any) -> AppTest:
    at = AppTest.from_function(page, default_timeout=60)
    at.session_state["values"] = values
    return settled(at.run())


def settled(at: AppTest) -> AppTest:
    assert not at.exception
    return at


def values(at: AppTest) -> dict[str, Any]:
    found: dict[str, Any] = at.session_state["values"]
    return found


def enter(at: AppTest, name: str, value: Any) -> AppTest:
    """Give a widget another value and run the page twice, as a visitor who then goes on."""
    key = f"form-{name}"
    boxes = [*at.text_input, *at.text_area, *at.number_input, *at.selectbox, *at.toggle, *at.slider]
    next(box for box in boxes if box.key == key).set_value(value)
    return settled(settled(at.run()).run())


def complaints(at: AppTest) -> list[str]:
    return [m.value.replace("\\", "") for m in at.markdown if m.value.startswith(":small[:red[")]


def test_a_form_returns_the_defaults_of_every_type() -> None:
    at = visit()
    assert set(values(at)) == set(Everything.model_fields) - {"kind"}
    assert Everything.model_validate(values(at)) == Everything()
    assert complaints(at) == []


@pytest.mark.parametrize(
    ("name", "entered", "value"),
    [
        ("text", "abc", "abc"),
        ("maybe_text", "x", "x"),
        ("whole", 7, 7),
        ("maybe_whole", 7, 7),
        ("real", 0.25, 0.25),
        ("unbounded", -1e6, -1e6),
        ("maybe_real", 0.25, 0.25),
        ("widths", "16,8 , 4", [16, 8, 4]),
        ("levels", "1, 0.25, -2e3", [1, 0.25, -2000.0]),
        ("pair", "0.25, 1", [0.25, 1]),
        ("maybe_pair", "1, 2", [1, 2]),
        ("names", "c, 1", ["c", "1"]),
        ("switch", False, False),
        ("maybe_switch", False, False),
        ("option", "other", "other"),
        ("maybe_option", "up", "up"),
        ("level", 3, 3),
        ("file", "wine", "wine"),
        ("free", '{"b": 2}', {"b": 2}),
    ],
)
def test_what_is_entered_is_returned(name: str, entered: Any, value: Any) -> None:
    at = enter(visit(), name, entered)
    assert values(at)[name] == value
    assert complaints(at) == []
    changed = {n for n, v in Everything.model_validate(values(at)) if v != getattr(Everything(), n)}
    assert changed == {name}


@pytest.mark.parametrize("name", ["maybe_text", "maybe_whole", "maybe_real", "maybe_pair"])
def test_an_optional_value_can_be_emptied(name: str) -> None:
    given = {"maybe_text": "x", "maybe_whole": 3, "maybe_real": 0.5, "maybe_pair": [1.0, 2.0]}
    at = visit(**given)
    assert values(at)[name] == given[name]
    at = enter(at, name, None if name in ("maybe_whole", "maybe_real") else "")
    assert values(at) == {**values(visit(**given)), name: None}
    assert complaints(at) == []


@pytest.mark.parametrize(
    ("name", "entered", "sentence"),
    [
        (
            "text",
            "ABC",
            "text is ABC; it must be a text of 1 to 40 letters, digits, spaces, points, dashes or "
            "underscores.] The value stays 'hello'.",
        ),
        (
            "widths",
            "64, many",
            "widths.1 is many; it must be a whole number from 1 to 99.] The value stays 8, 4.",
        ),
        (
            "widths",
            "64; 32",
            "widths.0 is 64; 32; it must be a whole number from 1 to 99.] The value stays 8, 4.",
        ),
        (
            "widths",
            "1.5",
            "widths.0 is 1.5; it must be a whole number from 1 to 99.] The value stays 8, 4.",
        ),
        (
            "widths",
            "-3",
            "widths.0 is -3; it must be a whole number from 1 to 99.] The value stays 8, 4.",
        ),
        (
            "widths",
            "",
            "widths is []; it must be a list of 1 to 3 entries, whole numbers from 1 to 99.] "
            "The value stays 8, 4.",
        ),
        ("pair", "0.5", "pair.1 is missing.] The value stays 0.1, 0.9."),
        ("pair", "1, 2, 3", "pair is [1, 2, 3]; it must be"),
        ("pair", "1, nan", "pair.1 is NaN; it must be a finite number.] The value stays 0.1, 0.9."),
        ("levels", "x", "levels.0 is x; it must be a valid number.] The value stays 0.5, 0.95."),
        ("levels", "![x](http://x/y.png)", "levels.0 is ![x](http"),
        ("free", "{", "free is {; it must be"),
        ("free", '{"a": "b"}', "free.a is b; it must be"),
    ],
)
def test_what_a_field_does_not_accept_is_refused_below_it(
    name: str, entered: str, sentence: str
) -> None:
    at = enter(visit(), name, entered)
    assert Everything.model_validate(values(at)) == Everything()
    (complaint,) = complaints(at)
    assert sentence in complaint.replace("\u200b", "")
    assert "The value stays" in complaint


def test_a_table_has_the_rows_and_columns_of_its_field() -> None:
    at = visit()
    frame = at.dataframe[0].value if at.dataframe else at.get("arrow_data_frame")[0].value
    assert (list(frame.index), list(frame.columns)) == (["x", "y", "z"], ["left", "right"])
    assert any("Three by two." in c.value for c in at.caption)
    at = visit(table=[[0.0, 1.0], [0.25, 0.5], [1.0, 0.0]])
    assert values(at)["table"] == [[0.0, 1.0], [0.25, 0.5], [1.0, 0.0]]


def test_labels_are_the_titles_and_helps_the_descriptions() -> None:
    at = visit(file="gone")
    box = next(box for box in at.selectbox if box.key == "form-option")
    assert (box.label, box.proto.help) == ("Option", "one way: this. other: that.")
    box = next(box for box in at.selectbox if box.key == "form-file")
    assert list(box.options) == ["Iris", "Wine", "gone (not found)"]
    assert values(at)["file"] == "gone"


def test_labels_are_readable_without_latex() -> None:
    classes = [*AGENTS.values(), *SIMULATORS.values()]
    labels = [
        label(field) for cls in classes for field in cls.Params.model_fields.values() if field.title
    ]
    assert {"Exploration bonus α", "Noise variance σ²", "Ridge λ"} <= set(labels)
    assert not [text for text in labels if re.search(r"[$\\^_{}]", text)]


def logistic_page() -> None:
    import streamlit as st

    from bandits.agents.logistic.logistic_ucb import LogisticUCB
    from bandits_app.widgets.params_form import fields, form

    values = st.session_state.get("values", {})
    st.session_state["values"] = form(
        LogisticUCB.Params, fields(LogisticUCB.Params, basic=False), values, "form"
    )


def test_the_options_of_glm_ucb_are_in_the_form_with_their_help() -> None:
    at = settled(AppTest.from_function(logistic_page, default_timeout=60).run())
    boxes = {box.label: box for box in at.selectbox}
    for name, option in (
        ("Confidence width", "design"),
        ("Bonus scale", "probability"),
        ("Bonus schedule", "sqrt log"),
    ):
        assert f"{option}:" in boxes[name].proto.help
        at = settled(
            next(box for box in at.selectbox if box.label == name)
            .select(option.replace(" ", "_"))
            .run()
        )
    at = settled(
        next(box for box in at.number_input if box.label == "Forced plays (steps)")
        .set_value(20)
        .run()
    )
    chosen = at.session_state["values"]
    assert {name: chosen[name] for name in ("width", "bonus", "alpha_schedule", "forced")} == {
        "width": "design",
        "bonus": "probability",
        "alpha_schedule": "sqrt_log",
        "forced": 20,
    }


def test_the_usual_range_is_shaded_on_the_track_and_in_the_help() -> None:
    def sliders() -> None:
        from bandits.agents import REGISTRY
        from bandits_app.widgets.params_form import form

        form(REGISTRY["linucb"].Params, ["alpha", "ridge", "gamma"], {}, "form")

    at = settled(AppTest.from_function(sliders, default_timeout=60).run())
    (style,) = [element.proto.body for element in at.get("html")]
    alpha, ridge = re.findall(
        r"st-key-form-(?:alpha|ridge) [^{}]*::before { left: ([\d.]+)%; width: ([\d.]+)%", style
    )
    # 0.1 to 2, of 0 to 4
    assert alpha == ("2.50", "47.50")
    values = [float(text) for text in at.select_slider[0].options]
    first, last = (values.index(end) / (len(values) - 1) for end in (0.1, 1.0))
    assert ridge == (f"{100 * first:.2f}", f"{100 * (last - first):.2f}")
    # its usual range is the whole slider
    assert "gamma" not in style
    assert at.slider[0].proto.help.endswith("Shaded: the usual range.")
    fields = [
        (f"{cls.__name__} {name}", f)
        for cls in AGENTS.values()
        for name, f in cls.Params.model_fields.items()
    ]
    for name, field in fields:
        if usual := declaration(field)["usual"]:
            low, high = usual
            assert field.annotation is float, name
            assert (
                re.search(rf"usually {low:,.10g} to {high:,.10g}\b", str(field.description))
                or low < 1e-3
            ), name
