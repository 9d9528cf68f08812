"""Labs: one question each, with its own controls and figures."""

from bandits_app.labs import cost, lab, production
from bandits_app.labs.artwork import ARTWORK
from bandits_app.labs.change import SHOCK
from bandits_app.labs.guards import GUARDS
from bandits_app.labs.new_items import NEW_ITEMS
from bandits_app.labs.visit import VISIT
from bandits_app.widgets import views

LABS = {
    "change": SHOCK,
    "guards": GUARDS,
    "new_items": NEW_ITEMS,
    "artwork": ARTWORK,
    "visit": VISIT,
}

OTHERS = {"cost": ("Cost", cost.draw), "production": ("Production", production.draw)}

titles = {name: one.title for name, one in LABS.items()}
view = views.choose({**titles, **{name: title for name, (title, _) in OTHERS.items()}}, "Lab")
if view in OTHERS:
    OTHERS[view][1]()
else:
    lab.page(LABS[view])
