"""Policies for use in a loop of one's own: an agent that chooses and learns, one decision at a
time.
"""

from .policy import Choice as Choice
from .policy import Policy as Policy
