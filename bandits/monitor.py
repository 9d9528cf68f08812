"""Alias of `bandits.monitoring`: alarms on what a system in production sees."""

from .monitoring import Alarm as Alarm
from .monitoring import Score as Score
from .monitoring import alarms as alarms
from .monitoring import score as score
from .monitoring import table as table
