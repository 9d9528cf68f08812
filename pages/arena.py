"""Arena: pick a world and agents, run, watch."""

import streamlit as st

from bandits import UserError, read
from bandits.experiments.presets import presets
from bandits.results import text
from ui import entry, session
from ui.arena import decision, draft, share
from ui.arena.controls import controls
from ui.arena.formulas import explain
from ui.run_view import board, options
from ui.sweep import previous_results
from ui.text import refuse

entry.through_app("pages/arena.py")


def choose() -> None:
    """Load the chosen preset into the controls."""
    if st.session_state.preset is not None:
        draft.load(presets()[st.session_state.preset].experiment)


job, on = session.current(), options.presenting()
head = st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center", gap="small")
if on:
    options.enlarge()
    head.subheader(text.describe_experiment(job.experiment), anchor=False, width="content")
else:
    head.title("Arena", anchor=False, width="content")
with st.sidebar:  # drawn in presentation mode too, where it is hidden: what is drawn anew comes back in the wrong size
    controls(draft.current())
tools = head.container(horizontal=True, gap="xsmall", width="content")

row = st.container(horizontal=True, vertical_alignment="bottom", gap="small")
if not on:
    row.selectbox(
        "Preset", list(presets()), index=None, key="preset", on_change=choose, placeholder="Choose a ready-made race",
        format_func=lambda name: presets()[name].title, width=290,
    )  # fmt: skip
pressed = row.button("Run", type="primary", icon=":material/play_arrow:", shortcut="Ctrl+Enter")
refused = st.session_state.pop("refused", [])  # of a link, or just before the page drew itself anew
seen = options.View()
try:
    if pressed:
        job = session.submit_and_follow(read(draft.current().data()))
except UserError as sentence:
    refused.append(str(sentence))
try:
    job = board.run_buttons(job, row, changed=draft.current().experiment() != job.experiment)
    with tools.popover("View", icon=":material/visibility:", type="tertiary"):
        seen = options.choose(job.experiment, job.arms, None if job.active else job.step)
    with tools.popover("Share", icon=":material/link:", type="tertiary"):
        share.share(job)
    with tools.popover("Export", icon=":material/download:", type="tertiary"):
        share.files(job)
except UserError as sentence:
    refused.append(str(sentence))
tools.button("Leave" if on else "Present", icon=":material/cast_for_education:", key="present", type="tertiary",
             on_click=options.present, args=(not on,), help="Bigger type, fewer controls, for a projector")  # fmt: skip

for sentence in refused:
    refuse(sentence)
st.session_state.said = refused
drafted = draft.current().experiment()
known = next((f"{preset.about} " for preset in presets().values() if preset.experiment == drafted), "")
if drafted != job.experiment:
    changed = known or "The controls have changed. "
    st.caption(f":material/edit: {changed}Press **Run** (Ctrl+Enter) to see {'it' if known else 'what that does'}.")
    previous_results.show(drafted)
elif not on:
    st.caption(known or text.describe_experiment(job.experiment))
board.show(job, key="arena", view=seen)
if not on:
    if not job.active:
        decision.ask(job)
    with st.expander("How it works: formulas and symbols", icon=":material/function:"):
        explain(job.experiment)
    with st.expander("Details: configuration and hash", icon=":material/data_object:"):
        st.text(f"Experiment {job.id}")
        st.json(job.experiment.model_dump(mode="json"), expanded=1)
