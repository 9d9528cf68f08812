"""The page script: it runs for every visit and draws the page that was asked for."""

from pathlib import Path

import streamlit as st

from bandits_app.run_view import options
from bandits_app.session import page, workers
from bandits_app.shell import shell

icon = Path(__file__).parents[1] / "bandits_app" / "icon.svg"
st.set_page_config(page_title="Bandit Playground", page_icon=str(icon), layout="wide")
workers.pool()  # the workers start while the user reads
sections = {
    "": [
        st.Page("home.py", title="Home", icon=":material/home:", default=True),
        st.Page("arena.py", title="Arena", icon=":material/monitoring:", url_path="arena"),
        st.Page("sweep.py", title="Sweep", icon=":material/grid_on:", url_path="sweep"),
        st.Page("diagnostics.py", title="Diagnostics", icon=":material/ecg_heart:", url_path="diagnostics"),
        st.Page("runs.py", title="Runs", icon=":material/inventory_2:", url_path="runs"),
        st.Page("lessons.py", title="Lessons", icon=":material/school:", url_path="lessons"),
    ],
    "Data": [
        st.Page("data.py", title="Your data", icon=":material/upload_file:", url_path="data"),
        st.Page("what_if.py", title="What if?", icon=":material/fork_right:", url_path="what_if"),
    ],
    "Items": [
        st.Page("new_items.py", title="New items", icon=":material/new_releases:", url_path="new_items"),
        st.Page("artwork.py", title="Artwork", icon=":material/image:", url_path="artwork"),
    ],
    "Change": [
        st.Page("shock_lab.py", title="Shock lab", icon=":material/bolt:", url_path="shock_lab"),
        st.Page("guard_rails.py", title="Guard rails", icon=":material/shield:", url_path="guard_rails"),
    ],
    "Reference": [
        st.Page("which.py", title="Which should I use?", icon=":material/rule:", url_path="which"),
        st.Page("cost.py", title="Cost", icon=":material/timer:", url_path="cost"),
        st.Page("glossary.py", title="Glossary", icon=":material/menu_book:", url_path="glossary"),
    ],
}
chosen = st.navigation(sections, position="top")
st.session_state.pop("shown-refusals", None)  # a refusal is shown once
page.opened(chosen.url_path)
shell.mark_section(sections, chosen)
if shell.show(home=chosen.url_path == "", presenting=options.presenting()):
    st.switch_page("home.py")
chosen.run()
