"""Which should I use? Answers link their lines; other answers get the nearest line."""

from __future__ import annotations

from tests.pages.support import open_page


def test_answers_link_their_lines_and_gaps_are_stated() -> None:
    at = open_page("home/which")
    assert not at.exception
    assert at.subheader[0].value == "Measured answers"
    assert sum("arena?" in each.value for each in at.markdown) >= 12
    at = at.selectbox(key="which-change").set_value("sudden").run()
    assert any("gamma 0.9995" in each.value for each in at.markdown)
    assert any(
        "docs/CHANGE.md" in each.value and "closest experiment: [" in each.value
        for each in at.markdown
    )
    at = at.selectbox(key="which-rewards").set_value("numbers").run()
    assert not at.exception
    assert at.subheader[0].value == "Nearest measured answers"
    assert any(
        "Measured: *Clicks, for 20 choices in 100 or more*; you answered *Numbers*" in each.value
        for each in at.markdown
    )
    # the number of arms, too, differs; an agent is still named
    at = at.selectbox(key="which-arms").set_value("more").run()
    assert any("gamma 0.9995" in each.value for each in at.markdown)
