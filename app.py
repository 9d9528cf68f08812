"""Bandit Playground: ``streamlit run app.py``."""

from pathlib import Path

import streamlit as st

from ui import entry
from ui.run_view import options
from ui.session import pool
from ui.shell import shell

icon = Path(__file__).parent / "ui" / "icon.svg"
st.set_page_config(page_title="Bandit Playground", page_icon=str(icon), layout="wide")
pool()  # the workers start while the user reads
page = st.navigation(
    [
        st.Page("pages/home.py", title="Home", icon=":material/home:", default=True),
        st.Page("pages/arena.py", title="Arena", icon=":material/monitoring:", url_path="arena"),
        st.Page("pages/sweep.py", title="Sweep", icon=":material/grid_on:", url_path="sweep"),
        st.Page("pages/diagnostics.py", title="Diagnostics", icon=":material/ecg_heart:", url_path="diagnostics"),
        st.Page("pages/runs.py", title="Runs", icon=":material/inventory_2:", url_path="runs"),
        st.Page("pages/data.py", title="Your data", icon=":material/upload_file:", url_path="data"),
        st.Page("pages/cost.py", title="Cost", icon=":material/timer:", url_path="cost"),
        st.Page("pages/glossary.py", title="Glossary", icon=":material/menu_book:", url_path="glossary"),
    ],
    position="top",
)
entry.open_requested_page()
if shell.show(home=page.url_path == "", presenting=options.presenting()):
    st.switch_page("pages/home.py")
page.run()
