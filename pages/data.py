"""Your data: bring a CSV, race on it."""

import streamlit as st

from bandits import UserError
from bandits.experiments import presets
from bandits.simulators.datasets import csv_table, uploads
from ui import entry, session
from ui.arena import draft
from ui.data import upload
from ui.text import refuse

entry.through_app("pages/data.py")


def race(name: str) -> None:
    """Load a sensible experiment on a data set into the controls, run it, and go there."""
    experiment = presets.on_data(name)
    draft.load(experiment)
    session.submit_and_follow(experiment)
    st.switch_page("pages/arena.py")


st.title("Your data", anchor=False)
st.markdown(
    "Bring a table with one example per row and the right answer in one of its columns: a species, a diagnosis, "
    "whether a customer stayed. Each step shows the agents one row **without its answer**. They name an answer, earn "
    "1 if it is right, and are told nothing else: a wrong guess does not reveal what would have been right."
)
st.download_button(
    "Sample to try (iris, 150 flowers)", csv_table.sample, "iris.csv", "text/csv", icon=":material/download:",
    on_click="ignore",
)  # fmt: skip
file = st.file_uploader(
    "CSV file", ["csv", "tsv", "txt"], key="data-file",
    help="Text in UTF-8 with a header; commas, semicolons or tabs between cells. Up to 200,000 rows and 100 columns. "
    "Empty cells, ?, NA, N/A, NaN and null are missing values.",
)  # fmt: skip
st.caption("Everybody who uses this server can see and race on what is brought here: bring nothing confidential.")

try:
    if file is not None and (chosen := upload.choose(file)) and st.button(
        "Keep and race on it", type="primary", icon=":material/play_arrow:", disabled=not chosen.possible
    ):  # fmt: skip
        race(uploads.save_dataset(chosen.table, target=chosen.target, leave_out=chosen.leave_out, title=chosen.title))
except UserError as sentence:
    refuse(sentence)
try:
    if (name := upload.shelf()) is not None:
        race(name)
except UserError as sentence:
    refuse(sentence)
