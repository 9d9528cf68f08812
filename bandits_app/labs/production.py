"""Production: the whole loop of a system in production, with live numbers in its boxes."""

from __future__ import annotations

import html
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import streamlit as st

from bandits import UserError
from bandits.base.extras import require
from bandits.base.files import home
from bandits.serving import breaks, dashboard
from bandits.serving.loop import SETTINGS, Loop
from bandits.serving.registry import Registry
from bandits_app.session.owner import deleter, owner
from bandits_app.widgets.text import bullets, refuse
from bandits_app.widgets.until_end import until_end

RATE, SECONDS = 50.0, 600.0
_STYLE = (Path(__file__).parent / "production.css").read_text("utf-8")


class Started(NamedTuple):
    """A loop, and the browser that started it."""

    loop: Loop
    owner: str


@st.cache_resource(show_spinner=False)
def held() -> list[Started]:
    """Hold the loop of this server: at most one, which all its visitors see."""
    return []


@st.cache_resource(show_spinner=False)
def _starting() -> threading.Lock:
    """Two visitors who press at the same time start one loop."""
    return threading.Lock()


def draw() -> None:
    """Draw the lab."""
    st.title("Production", anchor=False)
    st.markdown(
        "A service that decides and learns, its log, a trainer, and visitors of the pet shop, each "
        "a process on this machine. Break something, and watch what protects the visitors."
    )
    started = held()[-1] if held() else None
    loop = started.loop if started else None
    refused: UserError | None = None
    try:
        _buttons(started)
    except UserError as error:
        refused = error
    if refused is not None:
        refuse(refused)
    if loop is None:
        st.caption(
            ":material/touch_app: Press **Start**: all parts start, and end after 10 minutes."
        )
        return
    if loop.problem:
        refuse(loop.problem)
    until_end(_show, loop)


def _buttons(started: Started | None) -> None:
    """Draw the buttons, and do what is pressed."""
    if started is None or not started.loop.active:
        if st.button("Start", type="primary", icon=":material/play_arrow:"):
            _start()
            st.rerun()
        return
    if deleter() not in (None, started.owner):
        st.caption(
            "Another visitor has started it: only the browser that started it, or the console, "
            "breaks and stops it."
        )
        return
    loop = started.loop
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        if st.button("Stop", icon=":material/stop:"):
            loop.stop()
            st.rerun()
        broken = st.popover("Break something", icon=":material/heart_broken:")
        if st.button(
            "Roll back",
            icon=":material/undo:",
            help="Makes the previous version the champion again, and drops the challenger.",
        ):
            Registry(loop.folder / "registry").rollback()
        with broken:
            _breaks(loop)


def _breaks(loop: Loop) -> None:
    broken: dict[str, tuple[str, Callable[[], object]]] = {
        "Bad model": (
            "Rolls out a version that learned the opposite of the rewards.",
            lambda: breaks.bad_model(loop.folder),
        ),
        "Slow model": (
            "Promotes a version that takes some 100 ms per decision, past the rollout.",
            lambda: breaks.slow_model(loop.folder),
        ),
        "Drift": ("Every group of visitors has the preferences of another.", loop.drift),
        "Dead trainer": (
            "Kills the trainer, which is started again after two minutes.",
            lambda: loop.kill("trainer"),
        ),
    }
    for title, (text, happen) in broken.items():
        if st.button(title, width="stretch"):
            happen()
        st.caption(text)


def _start() -> None:
    require("uvicorn")
    require("prometheus_client")
    folder = home() / "production"
    with st.spinner("The first version learns from 1,000 visitors"), _starting():
        if held() and held()[-1].loop.active:
            return
        shutil.rmtree(folder, ignore_errors=True)
        loop = Loop(folder, rate=RATE, seconds=SECONDS, every=1_000)
        held()[:] = [Started(loop, owner())]


def _show(loop: Loop) -> None:
    found = dashboard.production(
        loop.folder,
        loop.url,
        active=loop.active,
        trainer=loop.runs("trainer"),
        rollout=SETTINGS.rollout.steps,
    )
    if not loop.active:
        st.caption("All parts have ended. The numbers below are those of the log.")
    elif not found.answers:
        st.caption("The service does not answer yet.")
    else:
        st.caption(f"All parts end in {loop.left:.0f} s.")
    st.html(f"<style>{_STYLE}</style>{figure(found)}")
    if found.problems:
        st.markdown("**Problems**")
        bullets(found.problems)
    for title, events in (("Alarms", found.alarms), ("What happened", found.happened)):
        if events:
            st.markdown(f"**{title}**")
            bullets([f"{each.time} {each.sentence}" for each in events])


def figure(found: dashboard.Production) -> str:
    """Return the boxes as HTML."""
    groups = []
    for title, boxes in found.groups.items():
        drawn = "".join(map(_box, boxes))
        groups.append(
            f'<section class="bp-part"><h3>{html.escape(title)}</h3>'
            f'<ol class="bp-boxes">{drawn}</ol></section>'
        )
    return f'<div class="bp-production">{"".join(groups)}</div>'


def _box(box: dashboard.Box) -> str:
    bar = ""
    if box.share is not None:
        bar = (
            f'<div class="bp-bar" role="img" aria-label="{100 * box.share:.0f} % of users">'
            f'<div style="width:{100 * box.share:.0f}%"></div></div>'
        )
    alarm = ' data-alarm="true"' if box.alarm else ""
    word = '<span class="bp-alarm">alarm</span>' if box.alarm else ""
    return (
        f"<li{alarm}><h4>{html.escape(box.title)} {word}</h4><b>{html.escape(box.value)}</b>"
        f"{bar}<small>{html.escape(box.note) or '&nbsp;'}</small></li>"
    )
