"""The lab Cost of confidence: measured elsewhere, filled while it goes on, refused in one
sentence.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from streamlit.testing.v1 import AppTest

from bandits.runtime.pool import Pool
from bandits.width_cost import (
    LINEAR_METHODS,
    NEURAL_METHODS,
    CostRequest,
    LinearRequest,
    NeuralRequest,
    read,
)
from bandits.width_cost.measurement import LINE, Measurement
from bandits_app.labs import cost
from tests.pages import small_measurement
from tests.pages.support import open_page, panel
from tests.support import hold, wait_for

SMALL = NeuralRequest(hidden=(6,), n_candidates=5, past=20)


@pytest.fixture(autouse=True, scope="module")
def _nothing_measured() -> Iterator[None]:
    yield
    cost.measurement.forget_all()


@pytest.fixture(autouse=True)
def _small_budgets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measure neural networks with small budgets."""
    monkeypatch.setattr("bandits.width_cost.measurement.measured", small_measurement.measured)


def visit(request: NeuralRequest = SMALL) -> AppTest:
    """The page in a session that has requested this already: the default request takes longer."""
    return settled(open_page("labs/cost", **{"cost-request": request.model_dump_json()}))


def settled(at: AppTest) -> AppTest:
    assert not at.exception
    assert at.title[0].value == "Cost of confidence"
    return at


def known(request: CostRequest = SMALL) -> Measurement:
    return cost.measurement(type(request), request.model_dump_json())


def ended(at: AppTest, request: NeuralRequest = SMALL) -> AppTest:
    found = known(request)
    wait_for(lambda: not found.active, "the measurement")
    assert found.status == "finished", found.error
    return settled(at.run())


def status(at: AppTest) -> str:
    return str(at.get("progress")[0].proto.text)


def press(at: AppTest) -> AppTest:
    (button,) = [b for b in at.button if b.label == "Measure"]
    return settled(button.click().run())


def texts(at: AppTest) -> str:
    return "\n".join(e.value for kind in (at.markdown, at.caption) for e in kind)


def test_from_the_first_visit_to_tables_and_summary(pool: Pool) -> None:
    cost.measurement.forget_all()
    # it waits for its turn until it was looked at
    with hold(LINE):
        at = visit()
        assert status(at).startswith("Waiting")
    assert [tile["label"] for tile in panel(at)["legend"]] == [
        method.title for method in NEURAL_METHODS.values()
    ]
    assert {tile["rate"] for tile in panel(at)["legend"]} == {"–"}
    at = ended(at)
    assert status(at) == f"Measured: {len(known().report.timings)} sizes"
    cells = panel(at)["cells"]
    assert len(cells) == 7
    assert all(cell["figure"]["data"] for cell in cells)
    for cell in cells:
        assert cell["alt"].startswith(cell["figure"]["layout"]["title"]["text"])
        assert cell["alt"].endswith(cell["figure"]["layout"]["meta"]["note"])
    for tile, method in zip(panel(at)["legend"], NEURAL_METHODS.values(), strict=True):
        assert tile["rate"].split()[1] in ("µs", "ms", "s")
        assert tile["detail"].startswith("exact · " if method.exact else "approximate · ")
    numbers, agreement = (frame.value for frame in at.dataframe)
    assert list(numbers["Method"]) == [method.title for method in NEURAL_METHODS.values()]
    assert list(numbers.columns)[-3:] == [
        "Infeasible from p",
        "Infeasible from t",
        "Infeasible from K",
    ]
    assert len(agreement) == 6
    assert list(agreement["Same choice"][4:]) == ["100 %"] * 2
    assert "**The fastest exact method at these sizes is " in texts(at)
    assert (
        "For p = 67 weights, K = 5 candidates and t = 20 observations, one decision with exact "
        "widths" in texts(at)
    )


def test_nothing_is_measured_before_a_press(pool: Pool) -> None:
    at = settled(open_page("labs/cost"))
    assert "Press **Measure**" in texts(at)
    assert not at.get("progress")
    assert not at.dataframe


def test_another_time_limit_measures_nothing_anew(pool: Pool) -> None:
    at = ended(visit())
    before = known()
    at = settled(at.segmented_control(key="cost-time-limit").set_value(0.01).run())
    assert known() is before
    assert "10\u00a0ms" in panel(at)["cells"][0]["figure"]["layout"]["meta"]["note"]


def test_a_nudge_of_the_controls_measures_nothing_until_it_is_asked(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = ended(visit())
    # they state the default request
    assert "The controls have changed" in texts(at)
    for field, value in zip(at.number_input, (9, 5, 20, 5, 10), strict=True):
        field.set_value(value)
    at.text_input[0].set_value("6")
    at = settled(at.run())
    assert "The controls have changed" not in texts(at)
    at = settled(at.number_input[1].set_value(6).run())
    assert "The controls have changed" in texts(at)
    begun: list[NeuralRequest] = []
    monkeypatch.setattr(
        Measurement, "_answer", lambda self: begun.append(self.report.request) or ""
    )
    at = press(at)
    wait_for(lambda: begun, "the measurement")
    assert begun == [SMALL.model_copy(update={"n_candidates": 6})]
    assert "K = 6" in panel(at)["note"]
    wait_for(lambda: not known(begun[0]).active, "its end")
    # times are of a moment: asked again, measured again
    press(at)
    wait_for(lambda: len(begun) == 2, "the second measurement")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("128, x", "hidden.1 is x; it must be a whole number from 1 to 1,024"),
        ("", r"hidden is \[\]; it must be a list of 1 to 6 entries"),
        ("![i](http://x)", r"hidden.0 is \!\[i\](http\:/"),
    ],
)
def test_invalid_widths_are_refused_below_their_field(pool: Pool, text: str, sentence: str) -> None:
    at = ended(visit())
    at.text_input[0].set_value("32")
    at = settled(at.run())
    at.text_input[0].set_value(text)
    at = settled(at.run())
    (refusal,) = [m.value for m in at.markdown if m.value.startswith(":small[:red[")]
    assert sentence in refusal
    assert refusal.endswith("The value stays 32.]")
    assert not at.error
    assert "p = 67" in panel(at)["note"]


def test_what_cannot_be_measured_is_said_and_the_last_one_stays(pool: Pool) -> None:
    at = ended(visit())
    at.text_input[0].set_value("1024, 1024, 1024")
    at = press(at)
    assert at.error[0].value[0].isupper()
    assert "has 2,110,465 weights; at most 2,000,000 are measured here" in at.error[0].value
    assert "p = 67" in panel(at)["note"]
    assert status(at).startswith("Measured")


def test_a_measurement_that_fails_says_so(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    request = SMALL.model_copy(update={"seed": 7})

    sentence = "the process for measurements ended with status 1; the server's log has the reason"
    monkeypatch.setattr(Measurement, "_answer", lambda self: sentence)
    at = visit(request)
    wait_for(lambda: not known(request).active, "its end")
    at = settled(at.run())
    assert status(at).startswith("Failed: the process for measurements ended with status 1")


def test_when_too_many_wait_the_page_says_so(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Measurement, "_answer", lambda self: "")
    with hold(LINE):
        waiting = [Measurement(SMALL) for _ in range(LINE.waiting)]
        at = visit(SMALL.model_copy(update={"seed": 8}))
        assert "8 measurements are waiting already" in at.error[0].value
    wait_for(lambda: not any(m.active for m in waiting), "their turns")


def test_how_the_methods_work(pool: Pool) -> None:
    at = visit()
    for method in NEURAL_METHODS.values():
        assert method.description in texts(at)
        assert method.growth in texts(at)


def test_a_large_catalogue_is_entered_at_a_press(pool: Pool) -> None:
    at = ended(visit())
    (button,) = [b for b in at.button if b.label == "Large catalogue"]
    at = settled(button.click().run())
    assert at.number_input[1].value == 1_000_000
    assert at.text_input[0].value == "300, 320"
    request = read({"hidden": [300, 320], "n_candidates": 1_000_000}, NeuralRequest).sizes
    assert 4 * request.K * request.p == pytest.approx(400e9, rel=0.01)
    assert "The controls have changed" in texts(at)
    # nothing is measured before Measure is pressed
    assert "p = 67" in panel(at)["note"]


SMALL_LINEAR = LinearRequest(n_features=4, n_arms=3, past=50)


def visit_linear(request: LinearRequest = SMALL_LINEAR) -> AppTest:
    """The tab LinUCB in a session that has requested this already."""
    return settled(
        open_page(
            "labs/cost", **{"cost-tab": "LinUCB", "cost-linear-request": request.model_dump_json()}
        )
    )


def ended_linear(at: AppTest) -> AppTest:
    found = known(SMALL_LINEAR)
    wait_for(lambda: not found.active, "the measurement")
    assert found.status == "finished", found.error
    return settled(at.run())


@pytest.mark.slow
def test_linucb_has_a_tab_with_condition_numbers(pool: Pool) -> None:
    cost.measurement.forget_all()
    # one measurement of either tab runs at a time
    with hold(LINE):
        at = visit_linear()
        assert [tab.label for tab in at.tabs] == ["Neural networks", "LinUCB"]
        assert status(at).startswith("Waiting")
    assert [tile["label"] for tile in panel(at)["legend"]] == [
        m.title for m in LINEAR_METHODS.values()
    ]
    at = ended_linear(at)
    assert status(at) == f"Measured: {len(known(SMALL_LINEAR).report.timings)} sizes"
    cells = panel(at)["cells"]
    assert [cell["figure"]["layout"]["title"]["text"] for cell in cells[4:]] == [
        "Condition number of A",
        "Error of the inverse",
    ]
    assert all(cell["figure"]["data"] for cell in cells)
    (table,) = (frame.value for frame in at.dataframe)
    assert list(table["Method"]) == ["Inverse at each step", "Sherman–Morrison", "Compiled"]
    assert list(table.columns)[-2:] == ["Infeasible from d", "Infeasible from K"]
    assert "**The fastest method at these sizes is " in texts(at)
    assert "the condition number of A before inversion is at most" in texts(at)
    for method in LINEAR_METHODS.values():
        assert method.description in texts(at)
        assert method.growth in texts(at)


@pytest.mark.slow
def test_linucb_is_measured_when_asked_and_refuses_in_one_sentence(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = ended_linear(visit_linear())
    # they state the default request
    assert "The controls have changed" in texts(at)
    begun: list[LinearRequest] = []
    monkeypatch.setattr(
        Measurement, "_answer", lambda self: begun.append(self.report.request) or ""
    )
    at = settled(at.number_input[0].set_value(7).run())
    assert begun == []
    at = press(at)
    wait_for(lambda: begun, "the measurement")
    assert begun == [LinearRequest(n_features=7)]
    assert "d = 7" in panel(at)["note"]
    with hold(LINE):
        waiting = [Measurement(SMALL_LINEAR) for _ in range(LINE.waiting)]
        at = visit_linear(SMALL_LINEAR.model_copy(update={"seed": 8}))
        assert "8 measurements are waiting already" in at.error[0].value
    wait_for(lambda: not any(m.active for m in waiting), "their turns")
