"""Change detectors on streams of numbers, for all rows at once."""

from .adwin import Adwin as Adwin
from .base import Detections as Detections
from .base import Detector as Detector
from .page_hinkley import PageHinkley as PageHinkley
