"""The page script: it runs for every visit and draws the page that was asked for."""

from pathlib import Path

import streamlit as st

import bandits_app
from bandits_app.run_view import options
from bandits_app.session import page, workers
from bandits_app.shell import shell
from bandits_app.widgets import views

icon = Path(bandits_app.__file__).with_name("icon.svg")
st.set_page_config(page_title="Bandit Playground", page_icon=str(icon), layout="wide")
# they start while the user reads
workers.pool()
doors = [
    st.Page("home.py", title="Home", icon=":material/home:", default=True),
    st.Page("arena.py", title="Arena", icon=":material/monitoring:", url_path="arena"),
    st.Page("sweep.py", title="Sweep", icon=":material/grid_on:", url_path="sweep"),
    st.Page("labs.py", title="Labs", icon=":material/science:", url_path="labs"),
    st.Page("data.py", title="Data", icon=":material/upload_file:", url_path="data"),
    st.Page("runs.py", title="Runs", icon=":material/inventory_2:", url_path="runs"),
    st.Page("learn.py", title="Learn", icon=":material/school:", url_path="learn"),
]
chosen = st.navigation(doors, position="top")
# a refusal is shown once
st.session_state.pop("shown-refusals", None)
view = st.query_params.get(views.FIELD, "")
page.opened(f"{chosen.url_path}/{view}" if view else chosen.url_path)
# the tour points at the run of Home's start
start = chosen.url_path == "" and view in ("", "start")
if shell.show(home=start, presenting=options.presenting()):
    st.switch_page("home.py")
if options.embedded():
    options.enlarge()
chosen.run()
