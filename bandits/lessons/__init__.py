"""Lessons as data: predict, run, see, explain, try.

And a check that every statement is true of its runs.

>>> from bandits.lessons import lessons
>>> "explore-or-exploit" in lessons()
True
"""

from .checking import check as check
from .checking import check_seeds as check_seeds
from .checking import stored_or_run as stored_or_run
from .lesson import Lesson as Lesson
from .reading import find as find
from .reading import lessons as lessons
from .reading import read_lesson as read_lesson
