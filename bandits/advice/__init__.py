"""Which agent to use: questions, and answers that rest on measured lines."""

from __future__ import annotations

from .choosing import Advice as Advice
from .choosing import advise as advise
from .choosing import measured_changes as measured_changes
from .evidence import Evidence as Evidence
from .evidence import evidence as evidence
from .guide import guide as guide
