"""Handouts: one page offline, with blanks, or with the answers and the numbers of the run."""

from __future__ import annotations

import re

import pytest

from bandits.lessons import lessons
from bandits.lessons.handout import formula, handout, to_html
from tests.lessons.support import lesson
from tests.lessons.test_checking import results


def test_the_pupils_pages_have_blanks_numbered_axes_and_no_result() -> None:
    small = lesson()
    page = handout(small, {}, answers=False)
    assert "My prediction, between 0 and 1:" in page
    assert "☐ Oracle" in page
    assert "Answer:" not in page
    # axes to draw into: steps, and the range of the prediction
    assert "<polyline" not in page
    assert {"0", "800", "0.2", "1"} <= set(re.findall(r"<text [^>]*>([^<]+)</text>", page))
    assert "1,000 visits" in page
    assert "Below 0.1." in page
    # computed columns of tables are blank
    assert "0.4030" not in page
    explained = [small.texts[s.id].title for s in small.data.steps if s.kind in ("explain", "see")]
    assert explained
    assert not [title for title in explained if f"<h2>{title}</h2>" in page]


@pytest.mark.slow
def test_every_lesson_has_a_copy_for_pupils_without_its_runs() -> None:
    for each in lessons().values():
        page = handout(each, {}, answers=False)
        for figure in page.split("<figure>")[1:]:
            if re.match("<figcaption>(Click-through rate|Selection entropy)</figcaption>", figure):
                assert figure.count('text-anchor="end"') >= 5
        assert ("My value of" in page) == bool(each.tasks)
        assert "Answer:" not in page


def test_the_answer_sheet_follows_the_pupils_pages() -> None:
    small = lesson()
    found = results(small)
    whole = handout(small, found, answers=True)
    pupils, _, page = whole.partition('<h1 class="sheet">')
    assert "Answer:" not in pupils
    assert "<polyline" not in pupils
    rate = found["shop"].summary()["agents"]["Oracle"]["ctr"]["mean"]
    assert f"Answer: {rate:.3g} clicks per visit." in page
    assert "Answer: Oracle; Random." in page
    assert "<polyline" in page
    assert "______</code>" not in page
    assert 'Ridge penalty <span class="formula">λ</span> = 10 reaches the goal.' in page
    assert "<td>0.4030</td>" in page


def test_a_page_works_offline_and_has_no_markup_of_its_texts() -> None:
    page = handout(lesson(), {}, answers=False)
    assert not re.search(r"https?://|<script|<link|url\(", page)
    assert "{{" not in page
    assert "**" not in page


def test_markdown_of_lessons_becomes_html() -> None:
    html = to_html("A *b* **c** `d` <e>\n\n- one\n- two\n  more\n\n| | x |\n|---|---|\n| y | 1 |")
    assert "<p>A <em>b</em> <strong>c</strong> <code>d</code> &lt;e&gt;</p>" in html
    assert "<ul><li>one</li><li>two\n  more</li></ul>" in html
    assert "<th>x</th>" in html
    assert "<td>y</td><td>1</td>" in html


def test_formulas_are_written_without_a_typesetter() -> None:
    text = formula(r"\hat\theta_a^\top x_a+\alpha\sqrt{x_a^\top A_a^{-1}x_a}")
    assert "θ\u0302<sub>a</sub><sup>⊤</sup>" in text
    assert (
        '√<span class="root">x<sub>a</sub><sup>⊤</sup>A<sub>a</sub><sup>-1</sup>x<sub>a</sub></span>'  # noqa: E501
        in text
    )
    assert "\\" not in text
    assert "{" not in text
