"""Claims, predictions, tasks and texts are checked against the runs.

A changed default turns the check red.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from statistics import variance
from typing import Any

import pytest

from bandits import run
from bandits.experiments.experiment import Experiment, read
from bandits.lessons import Lesson, check, check_seeds, lessons, stored_or_run
from bandits.lessons.answers import (
    answered_by,
    answering_step,
    attempts_from_link,
    attempts_to_link,
    card,
    from_link,
    in_words,
    judge,
    number_answer,
    task_outcome,
    to_link,
    true_options,
    true_order,
)
from bandits.lessons.checking import idle_seconds, results_of
from bandits.lessons.figures import see
from bandits.lessons.lesson import ChoiceAnswer, NumberAnswer, OrderAnswer, PredictStep, SeeStep
from bandits.lessons.sources import RunSource
from bandits.lessons.texts import fill
from bandits.lessons.worked.rare_feature import RareFeature, RareFeatureParams
from bandits.results import metrics
from bandits.results.result import Result
from bandits.storage.run_store import Store
from tests.lessons.support import MARKDOWN, data, lesson
from tests.support import experiment

COMPUTED: dict[str, Result] = {}


def compute(experiment: Experiment) -> Result:
    if experiment.hash not in COMPUTED:
        COMPUTED[experiment.hash] = run(experiment, progress=False, workers=0)
    return COMPUTED[experiment.hash]


def results(small: Lesson) -> dict[str, Result]:
    return results_of(small, compute)


def timed(processor: tuple[float, ...], wall: float = 1.0) -> Result:
    """The run of the small lesson, as if its agents had taken these times."""
    copied = copy.deepcopy(compute(lesson().runs["shop"].resolved))
    for history, seconds in zip(copied.histories.values(), processor, strict=True):
        history.processor_seconds, history.seconds = seconds, wall
    return copied


def test_a_true_lesson_has_no_failures() -> None:
    assert check(lesson(), compute) == []


def test_claims_hold_at_other_seeds_unless_they_are_about_this_run() -> None:
    """The clicks of this run are those of no other seed."""
    assert list(check_seeds(lesson(), compute, [1, 2])) == []
    small = lesson()
    clicks = results(small)["shop"].histories["Oracle"].sums["clicks"][-1].mean()
    content = data()
    claim = {
        "text": "The oracle has its clicks",
        "holds": f'abs(shop.clicks("Oracle") - {clicks:.4f}) < 0.001',
    }
    content["claims"] = [*content["claims"], claim]
    world = lesson(content)
    assert check(world, compute) == []
    failures = list(check_seeds(world, compute, [1, 2]))
    assert [each.split(":")[0] for each in failures] == ["small, seed 1", "small, seed 2"]
    assert all("'The oracle has its clicks' is not true" in each for each in failures)
    content["claims"][-1] = {**claim, "scope": "this run"}
    assert list(check_seeds(lesson(content), compute, [1, 2])) == []


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (
            ("claims", 0, "holds"),
            'shop.ctr("Oracle") < shop.ctr("Random")',
            """small: 'The oracle wins' is not true: shop.ctr("Oracle") < shop.ctr("Random") with 0.""",  # noqa: E501
        ),
        (
            ("claims", 0, "holds"),
            "shop.steps / (shop.agents - 3) > 0",
            "'The oracle wins' cannot be checked: ",
        ),
        (("steps", 1, "answer", "high"), 0.2, "but the slider goes from 0 to 0.2"),
        (
            ("steps", 2, "answer", "options", 1, "when"),
            "shop.steps > 0",
            "2 of the options are true; it must be one",
        ),
        (("steps", 8, "solution"), 2, "ridge = 2 does not reach the goal"),
        (("steps", 8, "start"), 15, "ridge = 15 reaches the goal"),
    ],
)
def test_a_false_statement_is_one_line(path: tuple[Any, ...], value: Any, words: str) -> None:
    changed = data()
    place: Any = changed
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    (line,) = check(lesson(changed), compute)
    assert words in line


def test_a_slow_run_is_a_line_and_a_run_that_waited_for_others_is_not() -> None:
    assert check(lesson(), lambda _: timed((1, 1, 1), wall=500.0)) == []
    slow = ["small: step 'shop': the run takes 61 s; a run of a lesson may take 60 s"]
    assert check(lesson(), lambda _: timed((61, 1, 1))) == slow  # one agent
    # on two processors
    assert check(lesson(), lambda _: timed((40, 41, 41))) == slow
    # stored without processor times
    assert check(lesson(), lambda _: timed((0, 0, 0), wall=40.6)) == slow


def test_a_missing_number_is_a_line() -> None:
    changed = data()
    missing = MARKDOWN.replace(
        "By {{shop.difference", 'At {{shop.recovery("Oracle")}} by {{shop.difference'
    )
    assert check(lesson(changed, missing), compute) == [
        "small: step 'pick': no run gives a number for shop.recovery(\"Oracle\")"
    ]


@pytest.fixture
def other_default() -> Iterator[None]:
    """The ridge penalty of the worked example is smaller by default."""
    field = RareFeatureParams.model_fields["ridge"]
    before, field.default = field.default, 0.001
    RareFeatureParams.model_rebuild(force=True)
    yield
    field.default = before
    RareFeatureParams.model_rebuild(force=True)


@pytest.mark.usefixtures("other_default")
def test_a_changed_default_turns_the_check_red() -> None:
    failures = check(lessons()["ridge-regression-by-hand"], compute)
    assert any("The rare weight with ridge is the source's" in failure for failure in failures)


def test_the_worked_lesson_needs_no_run() -> None:
    def refuse(experiment: Experiment) -> Result:
        raise AssertionError(experiment)

    assert check(lessons()["ridge-regression-by-hand"], refuse) == []
    assert RareFeature.Params().ridge == 1


def test_answers_and_card() -> None:
    small = lesson()
    found, made = results(small), {"guess": 0.3, "pick": 1, "rank": (0, 1)}
    sources = small.sources(found)
    answers = [step.answer for step in small.predictions.values()]
    assert isinstance(answers[0], NumberAnswer)
    assert isinstance(answers[1], ChoiceAnswer)
    assert isinstance(answers[2], OrderAnswer)
    assert (
        number_answer(answers[0], sources)
        == found["shop"].summary()["agents"]["Oracle"]["ctr"]["mean"]
    )
    assert true_options(answers[1], sources) == [0]
    assert true_order(answers[2], sources) == (1, 0)
    shown = card(small, made, found)
    assert [outcome.predicted for outcome in shown] == [
        "0.3 clicks per visit",
        "Random",
        "Random; Oracle",
    ]
    assert [outcome.right for outcome in shown] == [False, False, False]
    assert [outcome.answer for outcome in shown[1:]] == ["Oracle", "Oracle; Random"]
    assert shown[1].happened.startswith("By ")
    better = card(small, {"guess": 0.6, "pick": 0, "rank": (1, 0)}, found)
    assert [outcome.right for outcome in better] == [True, True, True]
    assert [outcome.answer for outcome in better[1:]] == ["", ""]
    assert in_words(small.predictions["pick"], 0) == "Oracle"


def test_the_first_figure_after_a_run_answers_its_predictions() -> None:
    small, made = lesson(), {"guess": 0.6, "pick": 1, "rank": (1, 0)}
    found = results(small)
    by_step = {step.id: answered_by(small, step, made, found) for step in small.data.steps}
    expected = [outcome._replace(happened="") for outcome in card(small, made, found)]
    assert by_step.pop("look") == expected
    assert not any(by_step.values())
    look = next(step for step in small.data.steps if step.id == "look")
    assert answered_by(small, look, {"guess": 0.6}, found) == expected[:1]
    # the run has not ended
    assert answered_by(small, look, made, {}) == []


def test_an_answer_waits_for_no_run_but_its_own() -> None:
    changed = data()
    changed["steps"] += [{**changed["steps"][4], "id": "later"}, {"kind": "explain", "id": "last"}]
    changed["steps"][-2]["experiment"] = {**changed["steps"][4]["experiment"], "seed": 5}
    text = MARKDOWN.replace("It was {{shop", "It will be {{later").replace(
        "## Run {#shop}",
        "## Later {#later}\n\nIt \
runs again.\n\n## Last {#last}\n\nThe end.\n\n## Run {#shop}",
    )
    small = lesson(changed, text)
    look = next(step for step in small.data.steps if step.id == "look")
    only = {"shop": compute(small.runs["shop"].resolved)}
    (outcome,) = answered_by(small, look, {"guess": 0.6}, only)
    assert outcome.right


def test_what_is_explained_before_the_run_answers_nothing() -> None:
    changed = data()
    changed["steps"].insert(4, {"kind": "explain", "id": "before"})
    small = lesson(
        changed,
        MARKDOWN.replace("## Run {#shop}", "## Before {#before}\n\nWait.\n\n## Run {#shop}"),
    )
    assert [answering_step(small, name) for name in small.predictions] == ["look"] * 3


@pytest.mark.parametrize("name", lessons())
def test_every_prediction_is_answered_after_its_question_and_before_the_next_task(
    name: str,
) -> None:
    found = lessons()[name]
    steps = [step.id for step in found.data.steps]
    for asked in found.predictions:
        answer = steps.index(answering_step(found, asked))
        between = found.data.steps[steps.index(asked) + 1 : answer]
        assert {step.kind for step in between} <= {"predict", "run"}, asked


@pytest.mark.parametrize(
    ("predicted", "right", "off"),
    [
        (0.4, True, "as close as the slider allows"),
        (0.5, True, "0.097 too high"),
        (0.55, False, "0.147 too high"),
        (0.31, True, "0.093 too low"),
        (0.3, False, "0.103 too low"),
    ],
)
def test_a_number_is_right_within_a_tenth_of_its_slider(
    predicted: float, right: bool, off: str
) -> None:
    step = PredictStep.model_validate(
        {
            "kind": "predict",
            "id": "guess",
            "answer": {
                "kind": "number",
                "low": 0,
                "high": 1,
                "step": 0.05,
                "unit": "clicks",
                "truth": "storm.ridge_rare",
            },
        }
    )
    # the weight is 81 / 201
    sources = lesson().sources({})
    assert judge(step, predicted, sources) == (right, f"0.403 clicks; the prediction is {off}")


@pytest.mark.parametrize(
    ("value", "unit", "words"),
    [
        (2.25, "clicks", "2.25 clicks"),
        (1.0, "clicks per visit", "1 click per visit"),
        (330.4, "visits", "330 visits"),
        (2.0, "", "2"),
        (1200.0, "visits", "1,200 visits"),
    ],
)
def test_counts_and_averages_are_written_with_their_unit(
    value: float, unit: str, words: str
) -> None:
    answer = {
        "kind": "number",
        "low": 0,
        "high": 5000,
        "step": 1,
        "unit": unit,
        "truth": "storm.visits",
    }
    assert (
        in_words(
            PredictStep.model_validate({"kind": "predict", "id": "guess", "answer": answer}), value
        )
        == words
    )


def test_a_number_that_the_run_does_not_have_is_neither_right_nor_wrong() -> None:
    changed = data()
    changed["steps"][1]["answer"] |= {"truth": 'shop.recovery("Oracle")', "high": 1000}
    small = lesson(changed)
    found = results(small)
    assert judge(small.predictions["guess"], 0.3, small.sources(found)) == (None, "")


def test_a_task_is_solved_by_the_first_attempt_that_reaches_it_and_states_the_last_one_otherwise() -> (  # noqa: E501
    None
):
    small = lesson()
    step, sources = small.tasks["tame"], small.sources({})
    reached = [
        task_outcome(small, step, dict.fromkeys(tried), sources)
        for tried in ([], [1, 2], [1, 15, 9, 2])
    ]
    assert [each.solved for each in reached] == [None, False, True]
    assert [each.reached for each in reached] == [
        "",
        "Ridge penalty = 2 gives 0.269",
        "Ridge penalty = 15 gives 0.0517",
    ]
    assert {each.task for each in reached} == {"Below 0.1."}


def test_attempts_are_in_the_link() -> None:
    small = lesson()
    made = {"tame": [1.0, 3.0, 15.0]}
    assert attempts_to_link(made | {"other": []}) == "tame=1,3,15"
    assert attempts_from_link(small, attempts_to_link(made)) == made
    assert attempts_from_link(small, "tame=1,99,nan;guess=0.3;other=1;tame") == {"tame": [1.0]}
    assert attempts_from_link(small, "tame=1,x") == {}


def test_attempts_of_a_link_are_values_of_the_slider() -> None:
    """Others would be refused by the run, or solve a task by hand."""
    for found in lessons().values():
        for task, step in found.tasks.items():
            between = step.low + 0.37 * step.step
            text = f"{task}={step.low:g},{between:.12g},{step.low + step.step:.12g}"
            kept = attempts_from_link(found, text)[task]
            assert kept == pytest.approx([step.low, step.low + step.step])
            for value in kept:
                if found.runs[step.run].worked is None:
                    step.changed(found.runs[step.run], value)


def test_processor_time_is_measured_kept_and_continued(tmp_path: Path) -> None:
    experiment = read({"agents": [{"kind": "linucb"}], "steps": 400, "replications": 4, "seed": 5})
    result = run(experiment, workers=0)
    (history,) = result.histories.values()
    assert history.processor_seconds > 0
    store = Store(tmp_path)
    store.put(experiment, result.histories, 1.0)
    stored = store.get(experiment.hash)
    assert stored is not None
    (kept,) = stored.histories.values()
    assert kept.processor_seconds == history.processor_seconds


def test_texts_are_filled_with_the_numbers_of_the_run() -> None:
    small = lesson()
    found = results(small)
    text = fill(small.texts["tell"].body, small.sources(found))
    rate = found["shop"].summary()["agents"]["LinUCB alpha 1"]["ctr"]["mean"]
    assert f"{rate:.3f}" in text
    assert r"$\hat\theta_a^\top x_a+\alpha\sqrt{x_a^\top A_a^{-1}x_a}$" in text
    blanks = fill(
        small.texts["guess"].happened + small.texts["welcome"].body, small.sources({}), blank="___"
    )
    # what is known before the run is stated
    assert blanks == "It was ___.1,000 visits."


def test_predictions_are_dashed_lines_and_plots_end_where_the_step_wants() -> None:
    small = lesson()
    step = next(each for each in small.data.steps if isinstance(each, SeeStep))
    rate, lead = see(small, step, results(small)["shop"], {"guess": 0.3})
    (line,) = [trace for trace in rate["data"] if trace["name"] == "your prediction: 0.3"]
    assert list(line["y"]) == [0.3, 0.3]
    assert line["line"]["dash"] == "dash"
    assert max(max(trace["x"]) for trace in lead["data"]) == 800
    unpredicted = see(small, step, results(small)["shop"], {})
    assert not [trace for trace in unpredicted[0]["data"] if "prediction" in trace["name"]]


def test_the_beginning_of_a_long_run_is_drawn_with_all_its_points() -> None:
    changed = data()
    changed["steps"][4]["experiment"]["steps"] = 4000
    small = lesson(changed)
    step = next(each for each in small.data.steps if isinstance(each, SeeStep)).model_copy(
        update={"until": 200}
    )
    history = compute(small.runs["shop"].resolved).histories["Oracle"]
    expected = [float(x) for x in history.grid if x <= 200]
    _, lead = see(small, step, results(small)["shop"], {})
    band, line = (
        next(t for t in lead["data"] if ("fill" in t) is filled) for filled in (True, False)
    )
    assert [float(x) for x in line["x"]] == expected
    assert [float(x) for x in band["x"]] == expected + expected[::-1]


def test_a_predicted_step_is_marked_over_the_part_that_is_shown() -> None:
    changed = data()
    next(each for each in changed["steps"] if each["id"] == "guess")["answer"]["mark"] = {
        "plot": "lead",
        "axis": "x",
    }
    small = lesson(changed)
    step = next(each for each in small.data.steps if isinstance(each, SeeStep))
    _, lead = see(small, step, results(small)["shop"], {"guess": 0.3})
    *drawn, line = lead["data"]
    assert list(line["x"]) == [0.3, 0.3]
    assert max(line["y"]) == max(max(trace["y"]) for trace in drawn)


def test_a_link_keeps_predictions_and_ignores_what_none_can_be() -> None:
    small = lesson()
    made = {"guess": 0.3, "pick": 1, "rank": (1, 0)}
    assert from_link(small, to_link(made)) == made
    assert from_link(small, "guess=7;pick=9;rank=0-0;other=1;guess=nan;x") == {}


def test_runs_come_from_the_store(tmp_path: Path) -> None:
    store, small = Store(tmp_path), lesson()
    runner = stored_or_run(store, 0)
    first = runner(small.runs["shop"].resolved)
    assert store.get(small.runs["shop"].resolved.hash) is not None
    again = runner(small.runs["shop"].resolved)
    assert again.summary() == first.summary()
    assert idle_seconds(again) == pytest.approx(idle_seconds(first)) != 0


# half of the time of all lessons
LONG = (
    "slates-and-position-bias",
    "beyond-the-next-click",
    "when-the-environment-changes",
    "two-time-scales",
)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [pytest.param(each, marks=[pytest.mark.stress] * (each in LONG)) for each in lessons()],
)
def test_every_statement_of_every_lesson_is_true(name: str, tmp_path: Path) -> None:
    assert check(lessons()[name], stored_or_run(Store(tmp_path))) == []


def test_numbers_of_runs_have_their_formulas() -> None:
    """The early CTR is that of the first tenth; variances divide by n - 1."""
    e = experiment("linucb", "random", steps=1000, replications=4)
    result = run(e, workers=0)
    source = RunSource(e, result)
    history = result.histories["LinUCB"]
    early = source.quantity("early_ctr", ("LinUCB",))
    assert early == metrics.estimate(metrics.click_rate(history, 100))
    assert early != metrics.estimate(metrics.click_rate(history, 200))
    a, b = (metrics.total(h, "clicks").tolist() for h in result.histories.values())
    pair = ("LinUCB", "Random")
    gaps = [x - y for x, y in zip(a, b, strict=True)]
    assert source.quantity("paired_variance", pair) == pytest.approx(variance(gaps))
    assert source.quantity("unpaired_variance", pair) == pytest.approx(variance(a) + variance(b))
