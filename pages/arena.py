"""Arena: compare agents in one simulator."""

import streamlit as st

from bandits import UserError, read
from bandits.experiments.presets import presets
from bandits.results.describe import describe_experiment
from bandits_app.arena import at_best, diagnostics, explanations, run_buttons, sharing
from bandits_app.arena.controls import controls, main_sliders
from bandits_app.arena.instant import follower
from bandits_app.run_view import board, options, unchanged
from bandits_app.session import draft, followed, refusals
from bandits_app.sweep import selection
from bandits_app.sweep.view import show_previous_results
from bandits_app.widgets import views
from bandits_app.widgets.text import escape_markdown

job, presenting = followed.current(), options.presenting()
head = st.container(key="arena-head", horizontal=True, vertical_alignment="center", gap="small")
if presenting:
    options.enlarge()
    head.subheader(job.experiment.simulator_class().title, anchor=False, width="content")
    row = head.container(key="arena-run", horizontal=True, vertical_alignment="center", gap="small")
else:
    with head:
        view = views.choose(
            {"comparison": "Comparison", "diagnostics": "Diagnostics"}, "View of the Arena"
        )
    if view == "diagnostics":
        diagnostics.draw()
        st.stop()
    options.compact()
    head.title("Arena", anchor=False, width="content")
    head.caption(
        "Which agent earns the most?",
        width="stretch",
        help=(
            "And how certain is the difference? Choose a preset, or change the simulator and the "
            "agents in the sidebar; then press **Run**."
        ),
    )
# never empty: drawn anew after a presentation, it would have the wrong size
with st.sidebar:
    if presenting:
        st.text("Presentation")
    else:
        controls(draft.current())
tools = head.container(horizontal=True, gap="small", width="content")
if presenting:
    main_sliders(draft.current())
else:
    row = st.container(key="arena-run", horizontal=True, vertical_alignment="center", gap="small")
drafted = draft.current().experiment()
preset = run_buttons.preset_of(drafted)
if not presenting:
    run_buttons.choose_preset(row, preset)
run_buttons.start(row)
# just before the page was rerun
refused = st.session_state.pop("refused", [])
shown = options.usual(job.experiment)
try:
    if source := draft.requested_run():
        job = followed.submit_and_follow(read(draft.current().data()), by_slider=source == "slider")
        draft.current().notice = ""
        draft.forget_request()
except UserError as error:
    draft.forget_request()
    refused.append(refusals.Refusal(str(error), draft.current().data()))
if refusals.show_link(next(iter(presets().values())).title):
    # no result of another experiment below it
    st.stop()
try:
    run_buttons.control(job, row, changed=drafted != job.experiment)
    if options.embedded():
        sharing.way_out(tools, job)
    else:
        with tools.popover("View", icon=":material/visibility:", type="tertiary"):
            shown = options.choose(job.experiment, job.arms, None if job.active else job.step)
        with tools.popover("Share", icon=":material/link:", type="tertiary"):
            sharing.link(job)
        with tools.popover("Export", icon=":material/download:", type="tertiary"):
            sharing.files(job)
            if not presenting:
                sharing.decision_log(job)
except UserError as error:
    refused.append(refusals.Refusal(str(error)))
options.present_button(tools, "Larger type and fewer controls, for a projector; **Esc** leaves it")

refused += [refusal for refusal in refusals.of_draft(draft.current()) if refusal not in refused]
for refusal in refused:
    refusals.show(refusal)
st.session_state["shown-refusals"] = refused
if not presenting:
    refusals.show_edited_link(job.id)
about_row = st.container(
    key="arena-about", horizontal=True, wrap=False, vertical_alignment="center", gap="small"
)
about = presets()[preset].about if preset else ""
if drafted != job.experiment:
    change = "" if drafted is None else run_buttons.described_change(about)
    about_row.caption(f":gray-badge[:material/history: Previous result] {change}", width="stretch")
    # late: a slider that was released starts its run without another press
    about_row.html(
        "<style>@keyframes dim{to{opacity:.5}}.st-key-result{animation:dim .2s 1s both}@keyframes "
        "late{from{visibility:hidden}}.st-key-arena-about{animation:late 1s step-end both}</style>"
    )
    show_previous_results(drafted, job)
elif not presenting:
    about = about or escape_markdown(at_best.about(job))
    about_row.caption(about or describe_experiment(job.experiment), width="stretch")
if about and not presenting:
    with about_row.popover("Read all", type="tertiary"):
        st.markdown(about)
with st.container(key="result"):
    board.show(job, key="arena", view=shown, above=row, fill=presenting, choose_reference=True)
follower.follow(job, shown, refused=bool(refused))
if not presenting:
    at_best.offer(job, selection.manager())
    unchanged.offer(job)
    explanations.show(job)
