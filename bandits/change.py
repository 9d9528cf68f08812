"""Alias: how agents recover from changes of a simulator, and what they lose to them."""

from .results.change.recovery import Recovery as Recovery
from .results.change.recovery import recovery as recovery
from .runtime.unchanged import lost as lost
