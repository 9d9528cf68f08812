"""Bandit Playground: ``streamlit run app.py``.

The server: Streamlit, which runs ``pages/main.py`` for every visit, and our own routes beside it.
"""

import os

import streamlit as st
from starlette.middleware import Middleware

from bandits import UserError
from bandits.base import ledger
from bandits.base.malloc import set_malloc
from bandits_app.arena.instant import channel
from bandits_app.server import addresses
from bandits_app.server.security import (
    CONSOLE_VARIABLE,
    Guard,
    console_link,
    console_token,
    frame_ancestors,
)
from bandits_app.server.sockets import Sockets
from bandits_app.server.upload_limit import UploadLimit
from bandits_app.widgets.live_panel import panel

# what the server and its workers write is for no other user of this machine
os.umask(0o077)
# a heap for each thread that draws pages, as glibc has by default, keeps what each has freed
set_malloc(arenas=2, mmap_threshold=2**20, trim_threshold=2**20)
# a mistake in a setting ends the start, not the first visit
try:
    frame_ancestors()
    console_token()
    ledger.LEDGER.limit = ledger.limit()
except UserError as error:
    raise SystemExit(f"error: {error}") from None
if CONSOLE_VARIABLE not in os.environ:
    print(f"  Console, which may delete everything: {console_link()}", flush=True)
routes = [panel.route, *channel.routes, *addresses.routes]
app = st.App(
    "pages/main.py",
    routes=routes,
    middleware=[Middleware(Sockets), Middleware(Guard), Middleware(UploadLimit)],
)
