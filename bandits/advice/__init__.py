"""Which agent to use: questions, and answers that rest on measured lines."""

from __future__ import annotations

from .evidence import Advice as Advice
from .evidence import Evidence as Evidence
from .evidence import advise as advise
from .evidence import evidence as evidence
from .guide import guide as guide
