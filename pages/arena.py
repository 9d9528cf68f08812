"""Arena: compare agents in one simulator."""

import streamlit as st

from bandits import UserError, read
from bandits.experiments.presets import presets
from bandits.results import text
from ui import entry, session
from ui.arena import decision, draft, refusals, share
from ui.arena.controls import controls
from ui.arena.formulas import explain
from ui.run_view import board, options
from ui.sweep import previous_results

entry.through_app("pages/arena.py")


def load_preset() -> None:
    """Load the chosen preset into the controls."""
    if st.session_state.preset is not None:
        draft.load(presets()[st.session_state.preset].experiment)


job, presenting = session.current(), options.presenting()
head = st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center", gap="small")
if presenting:
    options.enlarge()
    head.subheader(text.describe_experiment(job.experiment), anchor=False, width="content")
else:
    head.title("Arena", anchor=False, width="content")
    st.markdown(
        "Which agent earns the most, and how certain is the difference? Choose a preset, or change the simulator and "
        "the agents in the sidebar; then press **Run**."
    )
with st.sidebar:  # drawn but hidden in presentation mode: drawn anew afterwards, it would have the wrong size
    controls(draft.current())
tools = head.container(horizontal=True, gap="xsmall", width="content")

row = st.container(horizontal=True, vertical_alignment="bottom", gap="small")
if not presenting:
    row.selectbox(
        "Preset", list(presets()), index=None, key="preset", on_change=load_preset, placeholder="Choose a preset",
        format_func=lambda name: presets()[name].title, width=290,
    )  # fmt: skip
pressed = row.button("Run", type="primary", icon=":material/play_arrow:", shortcut="Ctrl+Enter")
refused = st.session_state.pop("refused", [])  # by a link, or just before the page was rerun
view = options.View()
try:
    if pressed or refusals.run_requested():
        job = session.submit_and_follow(read(draft.current().data()))
except UserError as error:
    refused.append(refusals.Refusal(str(error), draft.current().data()))
try:
    job = board.run_buttons(job, row, changed=draft.current().experiment() != job.experiment)
    with tools.popover("View", icon=":material/visibility:", type="tertiary"):
        view = options.choose(job.experiment, job.arms, None if job.active else job.step)
    with tools.popover("Share", icon=":material/link:", type="tertiary"):
        share.share(job)
    with tools.popover("Export", icon=":material/download:", type="tertiary"):
        share.files(job)
except UserError as error:
    refused.append(refusals.Refusal(str(error)))
tools.button("Exit presentation" if presenting else "Present", icon=":material/cast_for_education:", key="present",
             type="tertiary", on_click=options.present, args=(not presenting,),
             help="Larger type and fewer controls, for a projector")  # fmt: skip

for refusal in refused:
    refusals.show(refusal, draft.current())
st.session_state["shown-refusals"] = refused
drafted = draft.current().experiment()
about = next((preset.about for preset in presets().values() if preset.experiment == drafted), "")
if drafted != job.experiment:
    change = f"{about} Press **Run** (Ctrl+Enter) to start it." if about else (
        "The controls have changed. Press **Run** (Ctrl+Enter) to update the results."
    )  # fmt: skip
    st.caption(f":material/edit: {change}")
    previous_results.show(drafted)
elif not presenting:
    st.caption(about or text.describe_experiment(job.experiment))
board.show(job, key="arena", view=view)
if not presenting:
    if not job.active:
        decision.show(job)
    with st.expander("Formulas and symbols", icon=":material/function:"):
        explain(job.experiment)
    with st.expander("Configuration and hash", icon=":material/data_object:"):
        st.text(f"Experiment {job.id}")
        st.json(job.experiment.model_dump(mode="json"), expanded=1)
