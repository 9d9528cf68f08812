"""Your data: upload a CSV and run agents on it."""

import streamlit as st

from bandits import UserError
from bandits.experiments import presets
from bandits.simulators.datasets import uploads
from bandits_app.data import upload, what_if
from bandits_app.session import followed
from bandits_app.widgets import buttons, views
from bandits_app.widgets.text import refuse

if views.choose({"upload": "Your data", "what_if": "What if?"}, "View of Data") == "what_if":
    what_if.draw()
    st.stop()
st.title("Your data", anchor=False)
buttons.style()
st.markdown(
    "How well do bandit agents learn to classify your own data? Upload a CSV with one example per "
    "row and its class in one of the columns (a species, a diagnosis, whether a customer stayed), "
    "or press **Try** at a sample first. A table may also have one column of rewards per arm."
)
st.markdown(
    "At each step an agent observes the features of one row and chooses a class. The reward is 1 "
    "if the class is right and 0 otherwise; a wrong choice does **not** reveal the right class."
)
upload.samples()
uploaded = st.file_uploader(
    "CSV file",
    ["csv", "tsv", "txt"],
    key=upload.uploader_key(),
    max_upload_size=5,
    help=(
        "UTF-8 text with a header, separated by commas, semicolons or tabs; at most 200,000 rows "
        "and 100 columns. Empty cells, ?, NA, N/A, NaN and null are missing values."
    ),
)
st.caption(
    "Uploads are visible to all users of this server and can be run by them, but not deleted: "
    "upload nothing confidential."
)

file = upload.current(uploaded)
try:
    if file is not None and (chosen := upload.choose(file)).run:
        before = [info.id for info in uploads.listing()]
        data = uploads.save_dataset(
            chosen.table,
            target=chosen.target,
            rewards=chosen.rewards,
            leave_out=chosen.leave_out,
            title=chosen.title,
        )
        upload.record_owner(data, before)
        followed.run_in_arena(presets.on_data(data))
except UserError as error:
    refuse(error)
try:
    if (data := upload.uploaded_data_sets()) is not None:
        followed.run_in_arena(presets.on_data(data))
except UserError as error:
    refuse(error)
