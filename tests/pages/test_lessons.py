"""The view Lessons: the list, predictions that are kept, filled texts, tasks, links and the
card.
"""

from __future__ import annotations

from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from bandits.lessons import lessons
from bandits.lessons.answers import to_link
from bandits.lessons.lesson import ChoiceAnswer, NumberAnswer
from bandits.runtime.pool import Pool
from tests.pages.support import ended, open_page, panels

RIDGE = "ridge-regression-by-hand"


def press(at: AppTest, label: str) -> AppTest:
    next(b for b in at.button if b.label == label).click()
    return settled(at.run())


def settled(at: AppTest) -> AppTest:
    assert not at.exception
    assert [title.value for title in at.title] == ["Lessons"]
    return at


def heading(at: AppTest) -> str:
    return str(at.subheader[0].value)


def text(at: AppTest) -> str:
    return "\n".join(m.value for m in at.main.markdown)


def test_the_list_has_every_lesson_with_minutes_and_a_handout(pool: Pool) -> None:
    at = settled(open_page("learn"))
    titles = [f"{i}. {each.data.title}" for i, each in enumerate(lessons().values())]
    assert [s.value for s in at.subheader] == titles
    assert at.caption[0].value.startswith("15 minutes · ")
    assert len(at.get("download_button")) == len(titles)
    assert at.query_params == {}


def test_a_lesson_from_its_beginning_to_its_card(pool: Pool) -> None:
    at = settled(open_page("learn"))
    at.button(key=f"lesson-open-{RIDGE}").click().run()
    assert heading(at) == "A logbook"
    at = press(at, "Next")
    # nothing is shown before the prediction
    assert not [b for b in at.button if b.label == "Next"]
    at.slider[0].set_value(0.5).run()
    at = press(at, "Keep my prediction")
    assert "half=0.5" in at.query_params["predictions"]
    at = press(at, "Back")
    assert [i.value for i in at.info] == ["Your prediction: 0.5 clicks per visit"]
    assert not at.slider
    at = press(at, "Next")
    assert next(b for b in at.button if b.label == "Keep my prediction").disabled
    at.radio[0].set_value(0).run()
    at = press(at, "Keep my prediction")
    assert heading(at) == "From the logbook to the estimate"
    at.selectbox[0].set_value("fish_hobbyist").run()
    at.toggle[3].set_value(False).run()
    at = press(press(at, "Next"), "Back")
    # what was changed stays
    assert at.selectbox[0].value == "fish_hobbyist"
    assert [each.value for each in at.toggle] == [True, False, False, False]
    at.slider[0].set_value(2.0).run()
    at = press(press(at, "Next"), "Back")
    assert (at.selectbox[0].value, at.toggle[3].value, at.slider[0].value) == (
        "fish_hobbyist",
        False,
        2.0,
    )
    # the answer comes with its explanation
    assert "You predicted" not in text(at)
    at = press(at, "Next")
    # no numbered list
    assert "1 / (2 +\n1\\) = 0.333" in text(at)
    assert text(at).count("You predicted: 0.5 clicks per visit.") == 1
    assert (
        "**Not right.** The answer: 0.333 clicks per visit; the prediction is 0.167 too high."
        in text(at)
    )
    assert r"$\hat\theta=(D^\top D+\lambda I)^{-1}D^\top c$" in text(at)
    at = press(press(press(at, "Next"), "Next"), "Keep my prediction")
    at.selectbox[0].set_value(2).run()
    at.selectbox[1].set_value(1).run()
    at = press(at, "Keep my prediction")
    assert heading(at) == "Both weights at once"
    titles = [cell["figure"]["layout"]["title"]["text"] for p in panels(at) for cell in p["cells"]]
    assert titles == ["Sum of squared errors", "Confidence ellipse"]
    shown = []
    for _ in range(5):
        at = press(at, "Next")
        shown.append(len(panels(at)))
    # the steps that speak of the plots draw them
    assert shown == [0, 0, 1, 1, 0]
    assert heading(at) == "Your turn: how much penalty?"
    at = press(at, "Run")
    assert at.info[0].value == "Ridge penalty = 1 gives 0.403. Not yet."
    at.slider[0].set_value(9.0).run()
    at = press(at, "Run")
    assert at.success[0].value == "Ridge penalty = 9 gives 0.0817. The goal is reached."
    assert [e.label for e in at.expander] == ["First hint", "Second hint", "Third hint"]
    at = press(press(at, "Next"), "Back")
    assert at.slider[0].value == 9
    assert len(at.success) == len(at.info) == 1
    at = press(press(at, "Next"), "Next")
    assert heading(at) == "What you predicted, and what happened"
    assert "Right predictions: **2 of 4**. Solved tasks: **1 of 1**." in text(at)
    assert "You predicted: 0.5 clicks per visit." in text(at)
    assert (
        "**Not right.** The answer: 0.333 clicks per visit; the prediction is 0.167 too high."
        in text(at)
    )
    assert text(at).count("**Right.**") == 2
    assert "**Task: Your turn: how much penalty?**" in text(at)
    assert "**Solved.** Ridge penalty = 9 gives 0.0817." in text(at)
    assert at.query_params["tried"] == "tame=1,9"
    assert "The banner's weight" not in text(at)
    assert "the banner's weight was 0.8081" in text(at)
    at = press(at, "Start again")
    assert heading(at) == "A logbook"
    assert "predictions" not in at.query_params
    # the sliders of other lessons stay where they are
    assert at.session_state["lesson-rounds"] == {RIDGE: 1}
    at = press(at, "Next")
    assert at.slider[0].key == f"lesson-{RIDGE}-half-1"


def test_a_lesson_can_be_previewed_without_predictions(pool: Pool) -> None:
    at = settled(open_page("learn", {"lesson": RIDGE}))
    for step in lessons()[RIDGE].data.steps:
        assert heading(at) == lessons()[RIDGE].texts[step.id].title
        at = press(at, "Skip the prediction" if step.kind == "predict" else "Next")
    assert heading(at) == "What you predicted, and what happened"
    assert "Right predictions: **0 of 0** (4 skipped)." in text(at)
    assert "predictions" not in at.query_params


def test_a_link_continues_where_it_was_made(pool: Pool) -> None:
    link = {"lesson": RIDGE, "step": "5", "predictions": "half=0.5;unseen=0"}
    at = settled(open_page("learn", link))
    assert heading(at) == "Count, then divide"
    ahead = settled(open_page("learn", {"lesson": RIDGE, "step": "14", "predictions": "half=0.5"}))
    # a prediction that was not made is no obstacle
    assert heading(ahead) == lessons()[RIDGE].texts[lessons()[RIDGE].data.steps[13].id].title
    for broken in (
        {"lesson": "nothing"},
        {"lesson": RIDGE, "step": "x", "predictions": "half=2;=;unseen=-1"},
    ):
        assert settled(open_page("learn", broken)).subheader[0].value in (
            "0. Pull the levers yourself",
            "A logbook",
        )


@pytest.mark.slow
def test_a_run_is_shared_and_the_prediction_is_drawn(pool: Pool) -> None:
    lesson = lessons()["explore-or-exploit"]
    link = {"lesson": lesson.name, "step": "5", "predictions": "off=0.4;best=1"}
    at = settled(open_page("learn", link))
    job = pool.get(lesson.runs["shop"].resolved.hash)
    assert job is not None
    # one run for all readers
    assert job.owner == ""
    ended(job)
    at = settled(at.run())
    names = [
        trace["name"] for p in panels(at) for cell in p["cells"] for trace in cell["figure"]["data"]
    ]
    assert "your prediction: 0.4" in names
    assert "Straight dashed line in orange: your prediction." in [c.value for c in at.caption]
    # where it was skipped, nothing speaks of it
    skipped = settled(open_page("learn", {"lesson": lesson.name, "step": "5"}))
    assert not [c.value for c in skipped.caption if "your prediction" in c.value]
    assert not [m.value for m in skipped.main.markdown if "your prediction" in m.value.lower()]
    off, best = (m.value for m in at.main.markdown if "You predicted: " in m.value)
    assert "You predicted: 0.4 clicks per visit." in off
    assert "**Not right.** The answer: 0.209 clicks per visit; the prediction is 0.191" in off
    assert best.endswith("**Right.**")
    at = press(at, "Next")
    assert "0.209 (95" in text(at)


def test_waiting_texts_show_the_progress_of_their_run(pool: Pool) -> None:
    lesson = lessons()["fair-comparisons"]
    # other tests may have it, under way too
    pool.discard(lesson.runs["runs"].resolved.hash)
    at = settled(
        open_page("learn", {"lesson": lesson.name, "step": "5", "predictions": "one_run=1"})
    )
    assert any("still being computed" in c.value for c in at.caption)
    made = pool.get(lesson.runs["runs"].resolved.hash)
    assert made is not None
    pool.stop(made, made.owner)
    ended(made)


def test_the_card_waits_for_the_runs(pool: Pool) -> None:
    lesson = lessons()["fair-comparisons"]
    # other tests may have it, under way too
    pool.discard(lesson.runs["runs"].resolved.hash)
    link = to_link({name: _any(step.answer) for name, step in lesson.predictions.items()})
    last = str(len(lesson.data.steps) + 1)
    at = settled(open_page("learn", {"lesson": lesson.name, "step": last, "predictions": link}))
    assert heading(at) == "What you predicted, and what happened"
    assert any("still being computed" in c.value for c in at.caption)
    assert "Start again" in [b.label for b in at.button]
    job = pool.get(lesson.runs["runs"].resolved.hash)
    assert job is not None
    pool.stop(job, job.owner)
    ended(job)


def _any(answer: Any) -> Any:
    if isinstance(answer, NumberAnswer):
        return answer.low
    return 0 if isinstance(answer, ChoiceAnswer) else tuple(range(len(answer.options)))


def test_values_of_a_task_are_written_with_all_their_digits(pool: Pool) -> None:
    lesson = lessons()[RIDGE]
    place = next(i for i, step in enumerate(lesson.data.steps) if step.kind == "try")
    link = to_link({name: _any(step.answer) for name, step in lesson.predictions.items()})
    at = settled(open_page("learn", {"lesson": RIDGE, "step": str(place + 1), "predictions": link}))
    slider = next(s for s in at.slider if s.label.startswith("Your value: "))
    assert slider.proto.format == "%g"


def test_places_are_kept_per_lesson(pool: Pool) -> None:
    at = settled(open_page("learn"))
    at.button(key=f"lesson-open-{RIDGE}").click().run()
    at = press(press(at, "Next"), "All lessons")
    assert any(bar.proto.text.startswith("Step 2 of") for bar in at.get("progress"))
    at.button(key=f"lesson-open-{RIDGE}").click().run()
    assert heading(at) == "How likely is a puppy parent to click?"


def test_a_number_out_of_range_is_refused_in_words(pool: Pool) -> None:
    at = settled(open_page("learn", {"lesson": "neuralucb-and-its-cost", "step": "3"}))
    drawn = len(at.main.markdown)
    at = settled(at.number_input[0].set_value(-3).run())
    assert [e.value for e in at.error] == [
        "First layer is -3; it must be a whole number from 8 to 256."
    ]
    assert len(at.main.markdown) < drawn
    # what was refused is not kept
    at = press(press(at, "Back"), "Skip the prediction")
    assert not at.error
    assert at.number_input[0].value == 128
    at = settled(at.number_input[0].set_value(64).run())
    assert not at.error
    assert len(at.main.markdown) == drawn
