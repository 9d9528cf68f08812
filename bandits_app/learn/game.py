"""Draw a game: levers to pull, and afterwards how agents and other players did."""

from __future__ import annotations

import html
from pathlib import Path
from urllib.parse import urlsplit

import streamlit as st

from bandits.lessons import Lesson
from bandits.lessons.game import Game, Score
from bandits.lessons.lesson import PlayStep
from bandits_app.session import owner, workers
from bandits_app.widgets.live_panel import panel

from . import progress

_STYLE = Path(__file__).with_name("game.css")
POINT, NOTHING = "●", "○"
# seconds between two looks at the results of a class
EVERY = 5


def play(lesson: Lesson, step: PlayStep) -> None:
    """Draw the levers until all pulls are made, then the comparison.

    Raises
    ------
    UserError
    """
    number = progress.levers(lesson)
    game, pulls = step.game(number), progress.pulls(lesson, step.id)
    st.html(_STYLE)
    if len(pulls) < game.pulls:
        _board(lesson, step, game)
    else:
        _results(lesson, step, game, pulls)
    _class(lesson, step, game, number)


@st.fragment
def _board(lesson: Lesson, step: PlayStep, game: Game) -> None:
    """Draw what is known, and a button for each lever."""
    pulls = progress.pulls(lesson, step.id)
    if len(pulls) >= game.pulls:
        st.rerun()
    progress.write_link(lesson)
    segment = int(game.segments[len(pulls)]) if game.visitors else None
    st.html(f'<div class="bp-total" role="status">{_state(game, pulls)}</div>')
    known = game.known(pulls, segment)
    with st.container(key="levers"):
        for lever in range(game.levers):
            with st.container(key=f"lever-{lever + 1}", gap=None):
                # the key of lever 10 is 0
                keys = {"shortcut": str((lever + 1) % 10)}
                st.button(
                    str(lever + 1),
                    key=f"pull-{lesson.name}-{step.id}-{lever}-{progress.round_number(lesson)}",
                    on_click=_pull,
                    args=(lesson, step, game, lever),
                    help=None,
                    width="stretch",
                    **keys,  # type: ignore[arg-type]
                )
                st.html(_dots(known[lever]))
    st.caption(
        f"{POINT} a point, {NOTHING} nothing"
        f"{', for visitors of this kind' if game.visitors else ''}. "
        "Press a lever, or its number on the keyboard (0 for lever 10)."
    )


def _state(game: Game, pulls: list[int]) -> str:
    """State the number of the pull, the points, the last reward and the visitor that has come."""
    points = int(game.score(pulls).points)
    parts = [f"Pull <b>{len(pulls) + 1}</b> of {game.pulls}", f"<b>{points}</b> points"]
    if visitor := game.visitor(len(pulls)):
        parts.append(f"now comes: <b>{html.escape(visitor)}</b>")
    last = "&nbsp;"
    if pulls:
        won = bool(game.rewards[len(pulls) - 1, pulls[-1]])
        last = f"lever {pulls[-1] + 1} gave {f'{POINT} a point' if won else f'{NOTHING} nothing'}"
    return f"{' · '.join(parts)}<br>{last}"


def _dots(known: list[bool]) -> str:
    """Draw what one lever gave; a screen reader gets the numbers."""
    words = f"{sum(known)} points in {len(known)} pulls"
    drawn = "".join(POINT if won else NOTHING for won in known) or "&nbsp;"
    return f'<div class="bp-known" role="img" aria-label="{words}">{drawn}</div>'


def _pull(lesson: Lesson, step: PlayStep, game: Game, lever: int) -> None:
    pulls = progress.pulls(lesson, step.id)
    if len(pulls) < game.pulls:
        pulls.append(lever)


def _results(lesson: Lesson, step: PlayStep, game: Game, pulls: list[int]) -> None:
    """Draw one's own game beside those of the agents."""
    st.markdown(f"**{game.verdict(pulls)}**")
    st.caption(
        "In brackets: the range of 95 of 100 games of this agent, which draws random numbers of "
        "its own. The levers and their rewards are the same for you and all agents."
    )
    st.table(game.table(pulls), hide_index=True)
    panel.draw([game.curves(pulls)], key=f"lesson-game-{step.id}", revision=game.experiment.hash)
    try:
        stored = _record(game, game.score(pulls))
        if not stored:
            st.caption("These levers have too many results already; yours is not in the plot.")
    except OSError as error:
        st.caption(f"Your result is not in the plot of all players: {error}.")
    st.button(
        "New levers",
        icon=":material/casino:",
        on_click=progress.new_levers,
        args=(lesson,),
        help="Draw other levers for all games of this lesson, and begin again.",
    )


def _record(game: Game, score: Score) -> bool:
    store = workers.pool().store
    if store is None:
        return True
    me = owner.owner(), owner.address()
    return store.scores.record(game.experiment.hash, *me, score.best, score.points)


def _class(lesson: Lesson, step: PlayStep, game: Game, number: int) -> None:
    """Draw the link to these levers, and the results of all who have played them."""
    with st.expander("Play in a class", icon=":material/groups:"):
        here = urlsplit(st.context.url or "http://127.0.0.1:8501/learn")
        at = progress.step(lesson) + 1
        st.markdown(
            "All who open this link get the same levers. Each result becomes a dot, without a name."
        )
        st.code(
            f"{here.scheme}://{here.netloc}{here.path}"
            f"?lesson={lesson.name}&step={at}&levers={number}",
            language=None,
            wrap_lines=True,
        )
        st.caption(
            "The first game of a browser counts. Results are stored with the runs of this server "
            "and are deleted with them."
        )
        if st.toggle("Show the results of all players", key=f"lesson-class-{step.id}"):
            st.fragment(_all_players, run_every=EVERY)(lesson, step, game)


def _all_players(lesson: Lesson, step: PlayStep, game: Game) -> None:
    pulls, store = progress.pulls(lesson, step.id), workers.pool().store
    try:
        found = [] if store is None else store.scores.of(game.experiment.hash)
    except OSError as error:
        st.caption(f"The results cannot be read: {error}.")
        return
    mine = game.score(pulls) if len(pulls) == game.pulls else None
    panel.draw(
        [game.all_players([Score(*each) for each in found], mine)],
        key=f"lesson-players-{step.id}",
        revision=game.experiment.hash,
    )
