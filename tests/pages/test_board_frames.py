"""What sessions share of a run: one content per moment, replaced at most once per tick."""

from __future__ import annotations

import itertools

from bandits_app.run_view.frames import MAX_FRAMES, Frames


def test_tabs_within_a_tick_show_the_same_content() -> None:
    frames: Frames[int] = Frames(tick=1e9)
    made, step = itertools.count(), itertools.count()

    def show(status: str) -> int:
        return frames.get("run", lambda: (status, next(step) // 100), lambda: next(made))

    assert [show("running"), show("running")] == [0, 0]
    # another status is shown at once
    assert show("finished") == 1
    assert show("finished") == 1


def test_news_is_shown_after_a_tick() -> None:
    frames: Frames[int] = Frames(tick=0.0)
    assert frames.get("run", lambda: ("running", 1), lambda: 10) == 10
    assert frames.get("run", lambda: ("running", 2), lambda: 20) == 20
    assert frames.get("run", lambda: ("running", 2), lambda: 30) == 20  # nothing new
    assert frames.get("other view", lambda: ("running", 2), lambda: 40) == 40


def test_all_parts_of_a_content_are_of_one_moment() -> None:
    """The run moves on while its picture is made: the picture is made again."""
    frames: Frames[tuple[int, int]] = Frames(tick=1.0)
    step = 0

    def make() -> tuple[int, int]:
        nonlocal step
        first = step
        # news arrives once
        step = min(step + 1, 1)
        return first, step

    assert frames.get("run", lambda: ("running", step), make) == (1, 1)


def test_old_contents_are_forgotten() -> None:
    frames: Frames[int] = Frames(tick=1e9)
    for run in range(MAX_FRAMES + 1):
        frames.get(run, lambda: ("finished",), lambda run=run: run)  # type: ignore[misc]
    assert frames.get(MAX_FRAMES, lambda: ("finished",), lambda: -1) == MAX_FRAMES
    assert frames.get(0, lambda: ("finished",), lambda: -1) == -1
