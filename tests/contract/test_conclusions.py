"""Conclusions on pages: every sentence that draws one from random data comes from a function whose
errors are simulated.

`CONCLUSIONS` names these functions with the tests of their error rate or coverage. What a page
calls, and what it writes itself, must be in one of the lists."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import FunctionType, ModuleType

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [*(ROOT / "pages").glob("*.py"), *(ROOT / "bandits_app").rglob("*.py")]
# packages that draw conclusions
JUDGES = (
    *("results", "diagnostics", "monitoring", "offpolicy", "serving", "width_cost", "sweeps"),
    "lessons",
)
# annotations of what returns a text
TEXT = re.compile(
    r"((list|Iterator|Sequence)\[)?str\]?( \| None)?"
    r"|tuple\[str, list\[str\]\]|Conclusion|dict\[str, Finding\]"
)
# members of records that may hold a conclusion
MEMBERS = ("sentence", "sentences", "verdict")
# words with which a page would state one by itself
VERDICT = re.compile(
    r"significant|tied with|too noisy|worse than|better than|resolved|narrower|\bleads\b"
    r"|\bearn(s|ed)\b.* (more|less|fewer)"
)

ALIKE = "results/test_error_rates.py::test_agents_that_earn_the_same_are_seldom_told_apart"
REGION = (
    "sweeps/test_sweep.py::test_the_best_region_has_nominal_coverage",
    "sweeps/test_sweep.py::test_a_point_that_loses_more_is_seldom_called_tied",
    "sweeps/test_best_region.py::test_error_rates_by_number_of_points",
)
LOOKS = ("sweeps/test_refinement.py::test_all_looks_together_have_level_5_percent",)
EXPLORING = (
    "slow/test_exploration_verdicts.py::test_sick_settings_are_named_and_best_ones_raise_no_alarm",
    "diagnostics/test_findings.py::test_a_good_agent_in_a_preset_raises_no_false_alarm",
    "diagnostics/test_findings.py::test_the_curvature_test_holds_its_level_on_few_observations",
    "diagnostics/test_plateau.py::test_the_error_rate_of_constructed_regrets",
)
ALARMS = (
    "slow/test_monitors.py::test_adwin_gives_few_false_alarms_and_page_hinkley_one_in_ten_thousand_steps",
    "monitoring/test_statistics.py::test_features_without_drift_raise_alarms_at_about_the_level",
    "monitoring/test_statistics.py::test_calibration_keeps_its_level_for_rare_clicks_too",
    "monitoring/test_statistics.py::test_importance_weights_keep_their_level_for_rare_large_ones_too",
)
LOG = (
    "offpolicy/test_conclusion.py::test_the_interval_of_the_gain_covers_and_seldom_sees_a_difference_that_is_not_there",
    "offpolicy/test_conclusion.py::test_looking_again_and_again_finds_no_difference_that_is_not_there",
    "offpolicy/test_promises.py::test_intervals_hold_the_value_in_95_percent_of_logs",
)
ROLLOUT = (
    "serving/test_rollout.py::test_an_item_at_the_floor_is_not_called_hidden_at_any_look",
    "serving/test_rollout.py::test_rollouts_err_as_seldom_as_stated",
    "serving/test_rollout.py::test_the_interval_holds_the_difference_while_shares_and_rates_move",
)
# function or member: the tests, below tests/, that simulate how often it errs
CONCLUSIONS = {
    "results.comparison.conclusion.main_comparison": (
        ALIKE,
        "simulators/test_logged.py::test_differences_of_rates_hold_their_error_rate",
        "results/test_break_even.py::test_coverage_by_number_of_replications",
    ),
    "results.comparison.conclusion.leader_comparisons": (ALIKE,),
    "results.comparison.conclusion.learning_summary": (ALIKE,),
    "results.comparison.conclusion.shock_summary": (ALIKE,),
    "results.comparison.run_comparison.conclusions": (
        "results/test_run_conclusion.py::test_equal_runs_seldom_have_an_agent_that_earns_more",
    ),
    "results.caveats.rare_reward_notes": (
        "results/test_text.py::test_intervals_of_means_cover_from_the_stated_number_of_clicks",
    ),
    "results.caveats.stopped_notes": (
        "results/test_run_conclusion.py::test_looks_at_a_run_find_as_many_false_differences_as_stopped_runs_state",
    ),
    "results.change.conclusion.conclusion": (
        "results/test_change_conclusion.py::test_equal_agents_seldom_have_one_that_recovers_first",
        "results/test_change_conclusion.py::test_equal_agents_seldom_have_one_that_loses_least",
        "results/test_change_conclusion.py::test_a_gain_of_all_is_seldom_stated_where_one_gains_nothing",
    ),
    "results.change.lost_clicks.sentences": (
        "results/test_lost_clicks.py::test_the_interval_covers_the_expected_loss",
    ),
    "results.change.recovery.sentences": (
        "results/test_recovery.py::test_the_interval_covers_the_expected_recovery",
    ),
    "results.change.price_of_forgetting.conclusion": (
        "results/test_price_of_forgetting.py::test_a_value_is_named_best_without_cause_in_at_most_one_of_twenty_runs",
        "results/test_price_of_forgetting.py::test_the_interval_of_the_best_value_covers_although_the_data_chose_it",
    ),
    "results.artwork_sharing.conclusions": (
        ALIKE,
        "results/test_sharing.py::test_intervals_of_the_factor_hold_the_ratio_of_whole_histories",
    ),
    "results.guard_cost.conclusion": (ALIKE,),
    "results.guard_cost.sentences": (ALIKE,),
    "results.guard_cost.fallback_sentences": (ALIKE,),
    "results.items.new_items.conclusions": (
        "results/test_new_items.py::test_a_launch_is_seldom_decided_wrongly",
        "results/test_fairness.py::test_chance_explains_three_standard_deviations_of_a_thousand_draws",
        "results/test_fairness.py::test_the_interval_of_a_median_holds_it",
    ),
    "results.visit.per_visit": (ALIKE,),
    "results.instant.Answer.sentence": (ALIKE,),
    "results.instant.difference": (ALIKE,),
    "diagnostics.finding.conclude": EXPLORING,
    "diagnostics.finding.Conclusion.verdict": EXPLORING,
    "diagnostics.finding.Finding.verdict": EXPLORING,
    "diagnostics.findings.findings": EXPLORING,
    "diagnostics.siblings.Sibling.sentence": (ALIKE,),
    "monitoring.alarm.Alarm.sentence": ALARMS,
    "monitoring.base.Judgement.sentence": ALARMS,
    "monitoring.figures.first_observations": ALARMS,
    "monitoring.conclusion.conclusion": (
        "monitoring/test_conclusion.py::test_monitors_that_ring_at_a_constant_rate_seldom_report_a_change",
    ),
    "offpolicy.conclusion.how_to_read": LOG[2:],
    "offpolicy.conclusion.sentences": LOG,
    "offpolicy.evaluation.Evaluation.verdict": LOG,
    "offpolicy.support.Alarm.sentence": (
        "offpolicy/test_evaluation.py::test_alarm_of_the_mean_weight_is_rare_with_right_propensities_and_usual_with_wrong_ones",
        "offpolicy/test_evaluation.py::test_intervals_without_a_warning_of_few_rewards_hold_the_truth",
    ),
    "serving.alarms.Seen.sentence": ALARMS,
    "serving.rollout.Rollout.verdict": ROLLOUT,
    "serving.rollout.Verdict.sentence": ROLLOUT,
    "sweeps.at_best.AtBest.sentence": (
        "sweeps/test_at_best.py::test_the_choice_does_not_bias_the_comparison_of_equal_agents",
    ),
    "sweeps.figures.lines.comparison": (
        "sweeps/test_wins_from.py::test_the_error_rate_is_at_most_the_level",
    ),
    "sweeps.not_worse.not_worse": REGION,
    "sweeps.refinement.Unresolved.sentence": LOOKS,
    "bandits_app.sweep.conclusions.resolution": LOOKS,
    "bandits_app.sweep.conclusions.chosen": REGION,
    "bandits_app.sweep.conclusions.counts": REGION,
    "bandits_app.sweep.view._verdict": REGION,
    "bandits_app.sweep.conclusions._sensitivity": (
        "sweeps/test_sweep.py::test_a_parameter_without_effect_is_not_reported_as_relevant",
        "sweeps/test_refinement.py::test_the_interval_of_the_worst_case_loss_has_the_level_of_the_look",
    ),
}
# what begins so is no conclusion from random data, and why
OTHERS = {
    "names of experiments, agents and parameters": (
        *("results.describe.", "results.comparison.run_title.", "results.figures."),
        *("results.metric_registry.", "results.change.marks.", "results.visit.kinds"),
        *("results.items.new_items.about", "results.visit.watched", "sweeps.figures.grid."),
        "sweeps.parameters.",
        "results.comparison.run_comparison.describe_",
    ),
    "formats of numbers and files": ("results.words.", "results.export.", "offpolicy.background."),
    "choices that a page offers": ("offpolicy.choices.", "offpolicy.reading."),
    "facts of a run: what was counted, chosen or refused": (
        *("results.caveats.agent_notes", "results.caveats.divergence_notes"),
        *("results.caveats.replay_notes", "results.caveats.table_notes"),
        *("results.caveats.scope", "results.caveats.beside_table"),
        *("results.comparison.run_comparison.reasons", "results.instant.too_slow"),
        *("results.log_training.", "serving.traffic.", "serving.dashboard."),
        *("diagnostics.finding.by_severity", "diagnostics.findings.reservations"),
    ),
    "exact replays of one decision": (
        *("results.decision_report.", "results.artwork_title."),
        *("results.item_model.", "results.representation."),
    ),
    "seconds and bytes on this machine": ("width_cost.text.",),
    "texts of lessons, whose claims `lesson check` holds at eight seeds": ("lessons.",),
    "the order of agents so far, which decides nothing": (
        *("results.comparison.conclusion.ranking", "bandits_app.run_view.board._so_far"),
        "bandits_app.run_view.board._tiles",
    ),
    "explanations of buttons and columns": (
        *("bandits_app.arena.at_best._button", "bandits_app.runs.comparison.show"),
        "bandits_app.sweep.conclusions._pairing",
    ),
}


def called(text: str) -> Iterator[str]:
    """Yield the functions of the judging packages that return a text and that a page names."""
    nodes = [*ast.walk(ast.parse(text))]
    names: dict[str, object] = {}
    for node in nodes:
        module = isinstance(node, ast.ImportFrom) and not node.level and node.module
        if module and module.split(".")[0] == "bandits":
            names |= {a.asname or a.name: imported(module, a.name) for a in node.names}
    for node in nodes:
        found = names.get(node.id) if isinstance(node, ast.Name) else None
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            owner = names.get(node.value.id)
            found = getattr(owner, node.attr, None) if isinstance(owner, ModuleType) else None
        if isinstance(found, FunctionType):
            path = f"{found.__module__}.{found.__qualname__}".removeprefix("bandits.")
            returns = str(found.__annotations__.get("return", ""))
            if path.split(".")[0] in JUDGES and TEXT.fullmatch(returns):
                yield path


def imported(module: str, name: str) -> object:
    """Return what ``from module import name`` gives."""
    owner = import_module(module)
    return getattr(owner, name) if hasattr(owner, name) else import_module(f"{module}.{name}")


def members() -> Iterator[str]:
    """Yield the members of records of the judging packages that hold a sentence."""
    for package in JUDGES:
        for file in (ROOT / "bandits" / package).rglob("*.py"):
            text = file.read_text(encoding="utf-8")
            if not re.search(rf"^    (def )?({'|'.join(MEMBERS)})\b", text, re.MULTILINE):
                continue
            path = ".".join(file.relative_to(ROOT / "bandits").with_suffix("").parts)
            for owner in ast.walk(ast.parse(text)):
                for node in owner.body if isinstance(owner, ast.ClassDef) else ():
                    name = getattr(node, "name", getattr(getattr(node, "target", 0), "id", ""))
                    if name in MEMBERS:
                        yield f"{path}.{owner.name}.{name}"


def written(path: str, text: str) -> Iterator[str]:
    """Yield the functions of a page that write a conclusion themselves."""
    for function in ast.parse(text).body:
        if isinstance(function, ast.FunctionDef):
            nodes = [*ast.walk(function)]
            quiet = {id(text) for node in nodes for text in _explained(node)}
            if any(VERDICT.search(_text(node)) for node in nodes if id(node) not in quiet):
                yield f"{path}.{function.name}"


def _text(node: ast.AST) -> str:
    """Return a text without the values in it; empty if it is none."""
    if isinstance(node, ast.JoinedStr):
        return " ".join(map(_text, node.values))
    return str(node.value) if isinstance(node, ast.Constant) else ""


def _explained(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the texts of a docstring and of the help of a widget."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        yield node.value
    elif isinstance(node, ast.keyword) and node.arg == "help":
        yield from ast.walk(node.value)


def conclusions_of(page: Path, text: str) -> set[str]:
    """Return what a page states that is in none of the lists of what decides nothing."""
    path = ".".join(page.relative_to(ROOT).with_suffix("").parts)
    no = tuple(begin for begins in OTHERS.values() for begin in begins)
    return {found for found in (*called(text), *written(path, text)) if not found.startswith(no)}


def test_every_conclusion_on_a_page_is_listed() -> None:
    """And every listed one is on a page, or is a member of a record."""
    found = {
        name for page in PAGES for name in conclusions_of(page, page.read_text(encoding="utf-8"))
    }
    no = tuple(begin for begins in OTHERS.values() for begin in begins)
    found |= {member for member in members() if not member.startswith(no)}
    assert found - CONCLUSIONS.keys() == set()
    assert CONCLUSIONS.keys() - found == set()


def test_every_conclusion_has_its_simulation() -> None:
    missing = []
    for test in sorted({test for tests in CONCLUSIONS.values() for test in tests}):
        file, name = test.split("::")
        if f"def {name}(" not in (ROOT / "tests" / file).read_text(encoding="utf-8"):
            missing.append(test)
    assert missing == []


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        (
            "from bandits.results.comparison import conclusion as words\n"
            "def draw(result):\n    st.write(words.reference_comparisons(result, None))\n",
            "results.comparison.conclusion.reference_comparisons",
        ),
        (
            "def draw(a, b):\n    st.write(f'{a} earned {b} more clicks.')\n",
            "bandits_app.labs.new.draw",
        ),
    ],
)
def test_a_page_with_a_conclusion_of_its_own_is_noticed(text: str, stated: str) -> None:
    assert conclusions_of(ROOT / "bandits_app/labs/new.py", text) == {stated}
    assert stated not in CONCLUSIONS
