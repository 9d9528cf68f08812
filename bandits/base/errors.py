"""Define the error that users see: one sentence, no traceback."""

from __future__ import annotations

from .formatting import short


class UserError(ValueError):
    """A request that cannot be carried out.

    Its text is one printable line of at most 400 characters.
    """

    def __init__(self, sentence: str) -> None:
        super().__init__(short(sentence, 400))
