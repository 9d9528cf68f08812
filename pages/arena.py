"""Arena: compare agents in one simulator."""

import streamlit as st

from bandits import UserError, read
from bandits.experiments.presets import presets
from bandits.results.describe import describe_experiment
from bandits_app.arena import below, decision_log, preset_box, run_buttons, sharing
from bandits_app.arena.controls import controls, main_sliders
from bandits_app.arena import diagnostics_page as diagnostics
from bandits_app.arena.instant import follower
from bandits_app.run_view import board, layout, options, unchanged
from bandits_app.session import draft, followed, refusals, run_requests
from bandits_app.sweep import previous_results
from bandits_app.widgets import views

job, presenting = followed.current(), options.presenting()
head = st.container(key="arena-head", horizontal=True, vertical_alignment="center", gap="small")
if presenting:
    layout.enlarge()
    head.subheader(job.experiment.simulator_class().title, anchor=False, width="content")
    row = head.container(key="arena-run", horizontal=True, vertical_alignment="center", gap="small")
else:
    with head:
        view = views.choose({"comparison": "Comparison", "diagnostics": "Diagnostics"}, "View of the Arena")
    if view == "diagnostics":
        diagnostics.draw()
        st.stop()
    layout.compact()
    head.title("Arena", anchor=False, width="content")
    head.caption(
        "Which agent earns the most?", width="stretch",
        help="And how certain is the difference? Choose a preset, or change the simulator and the agents in the "
        "sidebar; then press **Run**.",
    )  # fmt: skip
with st.sidebar:  # never empty: drawn anew after a presentation, it would have the wrong size
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
preset = preset_box.preset_of(drafted)
if not presenting:
    preset_box.choose(row, preset)
run_buttons.start(row)
refused = st.session_state.pop("refused", [])  # just before the page was rerun
shown = options.View()
try:
    if source := run_requests.pending():
        job = followed.submit_and_follow(read(draft.current().data()), by_slider=source == "slider")
        draft.current().notice = ""
        run_requests.forget()
except UserError as error:
    run_requests.forget()
    refused.append(refusals.Refusal(str(error), draft.current().data()))
if refusals.show_link(next(iter(presets().values())).title):
    st.stop()  # no result of another experiment below it
try:
    run_buttons.control(job, row, changed=drafted != job.experiment)
    with tools.popover("View", icon=":material/visibility:", type="tertiary"):
        shown = options.choose(job.experiment, job.arms, None if job.active else job.step)
    with tools.popover("Share", icon=":material/link:", type="tertiary"):
        sharing.share(job)
    with tools.popover("Export", icon=":material/download:", type="tertiary"):
        sharing.files(job)
        if not presenting:
            decision_log.export(job)
except UserError as error:
    refused.append(refusals.Refusal(str(error)))
tools.button("Exit presentation" if presenting else "Present", icon=":material/cast_for_education:", key="present",
             type="tertiary", on_click=options.present, args=(not presenting,),
             help="Larger type and fewer controls, for a projector; **Esc** leaves it")  # fmt: skip

refused += [refusal for refusal in refusals.of_draft(draft.current()) if refusal not in refused]
for refusal in refused:
    refusals.show(refusal)
st.session_state["shown-refusals"] = refused
if not presenting:
    refusals.show_edited_link(job.id)
about_row = st.container(key="arena-about", horizontal=True, wrap=False, vertical_alignment="center", gap="small")
about = presets()[preset].about if preset else ""
if drafted != job.experiment:
    change = "" if drafted is None else f"Press **Run** to start it. {about}" if about else (
        "The controls have changed. Press **Run** to update the results."
    )  # fmt: skip
    about_row.caption(f":gray-badge[:material/history: Previous result] {change}", width="stretch")
    about_row.html(  # late: a slider that was released starts its run without another press
        "<style>@keyframes dim{to{opacity:.5}}.st-key-result{animation:dim .2s 1s both}"
        "@keyframes late{from{visibility:hidden}}.st-key-arena-about{animation:late 1s step-end both}</style>"
    )
    previous_results.show(drafted, job)
elif not presenting:
    about_row.caption(about or describe_experiment(job.experiment), width="stretch")
if about and not presenting:
    with about_row.popover("Read all", type="tertiary"):
        st.markdown(about)
with st.container(key="result"):
    board.show(job, key="arena", view=shown, above=row, fill=presenting, choose_reference=True)
follower.follow(job, shown, refused=bool(refused))
if not presenting:
    unchanged.offer(job)
    below.show(job)
