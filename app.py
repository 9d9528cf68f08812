"""Bandit Playground: ``streamlit run app.py``.

The server: Streamlit, which runs ``pages/main.py`` for every visit, and our own routes beside it.
"""

import streamlit as st

from ui.live_panel import plotly

app = st.App("pages/main.py", routes=[plotly.route])
