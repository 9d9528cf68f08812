"""Home: what the playground is for, a run to watch and to change, and three ways on."""

import streamlit as st

from bandits import UserError
from bandits.experiments.presets import presets
from bandits_app.arena.controls import main_sliders
from bandits_app.arena.instant import follower
from bandits_app.home import advice, start
from bandits_app.run_view import board, options
from bandits_app.run_view.options import View
from bandits_app.session import draft, followed
from bandits_app.widgets import views
from bandits_app.widgets.text import glued, refuse

head = st.container(key="home-head", horizontal=True, vertical_alignment="center", gap="small")
with head:
    view = views.choose({"start": "Start", "which": "Which should I use?"}, "View of Home")
if view == "which":
    advice.draw()
    st.stop()
preset = presets()["race"]
options.compact()
head.title("Bandit Playground", anchor=False, width="content")
st.caption(
    "A **contextual bandit** is an agent that chooses which product each visitor sees, and "
    "observes only whether that product is clicked. Which one earns the most clicks?"
)
try:
    if adjustable := start.adjustable(preset.experiment):
        main_sliders(draft.current())
    else:
        start.offer_sliders(preset.experiment)
    # the value of a slider is known once it is drawn
    job = start.shown_run(preset.experiment)
    if head.button("Open in the Arena", type="primary", icon=":material/tune:"):
        followed.run_in_arena(job.experiment)
    board.show(job, key="home", above=head)
    if adjustable:
        follower.follow(job, View())
    shop = start.describe_shop(job.experiment, job.result)
    st.markdown(f"**{preset.title}.** {shop} {preset.line}")
    advice.personalized_test()
    start.entrances()
except UserError as error:
    refuse(error)
st.markdown(
    glued(
        "A bandit must exploit what it has learned to earn clicks now, and explore other products "
        "to earn more later. All agents meet the same visitors and random "
        "numbers (common random numbers), so differences between curves are differences between "
        "agents. Each curve is a mean over independent replications; its band is the 95 % "
        "confidence interval of the mean. The **Glossary** defines all terms."
    )
)
views.offer("which", "Which should I use?", icon=":material/rule:")
with st.expander("Click probabilities of the pet shop", icon=":material/table:"):
    start.click_probabilities(preset.experiment)
