"""Labs: one question each, with its own controls and figures."""

from bandits_app.labs import cost, lab
from bandits_app.labs.artwork import ARTWORK
from bandits_app.labs.change import SHOCK
from bandits_app.labs.guards import GUARDS
from bandits_app.labs.new_items import NEW_ITEMS
from bandits_app.widgets import views

LABS = {"change": SHOCK, "guards": GUARDS, "new_items": NEW_ITEMS, "artwork": ARTWORK}

view = views.choose({**{name: one.title for name, one in LABS.items()}, "cost": "Cost"}, "Lab")
if view == "cost":
    cost.draw()
else:
    lab.page(LABS[view])
