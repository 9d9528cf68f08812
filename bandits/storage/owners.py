"""Who started a run or sweep, or uploaded a file, and may therefore delete it: one small file for
each.
"""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

from bandits.base.errors import UserError
from bandits.base.files import atomic_write, seal, unseal

# any other text must not become a file name
_ID = re.compile("[0-9a-f]{64}|[a-z0-9_-][a-z0-9_.-]{0,46}-[0-9a-f]{12}")
_FIRST = re.compile(rb"[0-9a-f]{32}")

# the owner where a record is damaged: no browser, so that the console alone may delete
DAMAGED = "damaged"

DELETE_REFUSED = (
    "only the browser that started or uploaded this, or the server's console, may delete it"
)

EDIT_REFUSED = (
    "only the browser that started this, or the server's console, may change its title, notes and "
    "star"
)


class Owners:
    """Owners by the hash of a run or sweep, or by the id of a data set or log; the first that is
    recorded stays.

    An owner is an identifier of a browser. None stands for a person at the server itself, on the
    command line or in a browser there, who may delete everything.

    Parameters
    ----------
    folder : Path, optional
        Where they are kept; in memory alone by default.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder, self._known = folder, dict[str, str]()

    def of(self, item: str) -> str:
        """Return the owner of a run or sweep; "" if none is known, `DAMAGED` if the record is."""
        if item not in self._known and self._folder is not None and _ID.fullmatch(item):
            with suppress(OSError):
                record = (self._folder / item).read_bytes()
                # the first records have no checksum
                found = record if _FIRST.fullmatch(record) else unseal(item, record)
                return DAMAGED if found is None else found.decode()
        return self._known.get(item, "")

    def record(self, item: str, owner: str) -> None:
        """Record who started a run or sweep, if none is known.

        On a full disk it is known until this process ends.
        """
        if not owner or self.of(item):
            return
        self._known[item] = owner
        if self._folder is not None and _ID.fullmatch(item):
            with suppress(OSError):
                atomic_write(self._folder / item, seal(item, owner.encode()))
                del self._known[item]

    def drop(self, item: str) -> None:
        """Forget the owner of a run or sweep that is deleted."""
        self._known.pop(item, None)
        if self._folder is not None and _ID.fullmatch(item):
            # it then belongs to the same owner again
            with suppress(OSError):
                (self._folder / item).unlink(missing_ok=True)

    def may_delete(self, item: str, owner: str | None) -> bool:
        """Return whether an owner may delete a run or sweep."""
        return owner is None or (bool(owner) and self.of(item) == owner)

    def may_edit(self, item: str, owner: str | None) -> bool:
        """Return whether an owner may change the texts of a run or sweep: its owner, and anyone
        where none is known.
        """
        return owner is None or self.of(item) in ("", owner)

    def require_editor(self, item: str, owner: str | None) -> None:
        """Check that an owner may change the texts of a run or sweep.

        Raises
        ------
        UserError
        """
        if not self.may_edit(item, owner):
            raise UserError(EDIT_REFUSED)

    def require(self, item: str, owner: str | None) -> None:
        """Check that an owner may delete a run or sweep.

        Raises
        ------
        UserError
        """
        if not self.may_delete(item, owner):
            raise UserError(DELETE_REFUSED)


def require_owner(started_by: str, owner: str) -> None:
    """Check that an owner may pause, resume or stop a run; one without an owner is anyone's.

    Raises
    ------
    UserError
    """
    if started_by and started_by != owner:
        raise UserError("only the user who started this run may pause, resume or stop it")
