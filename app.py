"""Bandit Playground: ``streamlit run app.py``.

The server: Streamlit, which runs ``pages/main.py`` for every visit, and our own routes beside it.
"""

import streamlit as st
from starlette.middleware import Middleware

from ui.data.kept_files import UploadLimit
from ui.instant import channel
from ui.live_panel import plotly
from ui.shell.security import Guard

app = st.App(
    "pages/main.py", routes=[plotly.route, *channel.routes], middleware=[Middleware(Guard), Middleware(UploadLimit)]
)
