"""Cost of confidence: what the width of a network's answer costs, measured here and now."""

import streamlit as st

from bandits import UserError
from ui import entry
from ui.cost import view
from ui.run_view import board

entry.through_app("pages/cost.py")

st.title("Cost of confidence", anchor=False)
st.markdown(
    "NeuralUCB shows what is promising **or** uncertain. How uncertain it is, is told by the width "
    r"$\sqrt{g^\top A^{-1}g}$, with $g$ the gradient of a network's answer by all its $p$ weights, and "
    r"$A=\lambda I+\sum gg^\top$ over what was shown. A textbook's program needs a $p\times p$ matrix for it. Here are "
    "five ways to that width, or to something cheaper, timed on this machine."
)
data = view.choose()
row = st.container(horizontal=True, vertical_alignment="bottom", gap="medium")
asked = row.button("Measure", type="primary", icon=":material/timer:", shortcut="Ctrl+Enter")
with row:
    patience = view.patience()
try:
    if asked:
        view.ask(data)
except UserError as sentence:
    board.refuse(sentence)
try:
    found = view.current()
    if view.changed(found, data):
        st.caption(":material/edit: The controls have changed. Press **Measure** (Ctrl+Enter) to see what that does.")
    view.show(found, patience)
except UserError as sentence:
    board.refuse(sentence)
with st.expander("How each way works", icon=":material/function:"):
    view.explain()
