"""Learn: lessons, which predict, run, see, explain, try; and the glossary."""

import streamlit as st

from bandits import UserError
from bandits_app import glossary
from bandits_app.learn import lessons, progress
from bandits_app.run_view import options
from bandits_app.widgets import views
from bandits_app.widgets.text import refuse

lesson = progress.current()
if options.presenting() and lesson is not None:
    options.enlarge()
elif views.choose({"lessons": "Lessons", "glossary": "Glossary"}, "View of Learn") == "glossary":
    glossary.draw()
    st.stop()
st.title("Lessons", anchor=False)
# tables of texts fit a phone
st.html(
    "<style>[data-testid=stSliderThumbValue],[data-testid=stSliderThumbValue] "
    "*{color:inherit!important}@media(max-width:640px){[data-testid=stMarkdownContainer] "
    "table{display:block;overflow-x:auto;font-size:.85rem}[data-testid=stMarkdownContainer] "
    ":is(td,th){padding:.3rem .4rem}}</style>"
)
try:
    if lesson is None:
        st.markdown(
            "What is a contextual bandit, and why does it explore? Choose a lesson and press "
            "**Start**: you predict, see a run, and compare."
        )
        lessons.listing()
    else:
        lessons.play(lesson)
except UserError as error:
    refuse(error)
progress.write_link(lesson)
