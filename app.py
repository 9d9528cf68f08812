"""Bandit Playground: ``streamlit run app.py``.

The server: Streamlit, which runs ``pages/main.py`` for every visit, and our own routes beside it.
"""

import streamlit as st
from starlette.middleware import Middleware

from bandits_app.arena.instant import channel
from bandits_app.server.security import Guard
from bandits_app.session.kept_files import UploadLimit
from bandits_app.widgets.live_panel import plotly

app = st.App(
    "pages/main.py", routes=[plotly.route, *channel.routes], middleware=[Middleware(Guard), Middleware(UploadLimit)]
)
