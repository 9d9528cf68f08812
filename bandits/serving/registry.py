"""The registry of a service: immutable versions of a policy, and aliases that point to them.

Which version serves is one small file, replaced in one atomic step: a reader sees the state before
or after a promotion, never a part of it.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from bandits.base.errors import UserError
from bandits.base.files import atomic_write, seal, unseal

_POLICY, _CARD, _ALIASES = "policy.bandits", "card.json", "aliases.json"


class Aliases(NamedTuple):
    """Numbers of the versions that serve, by their part; None: no version has it."""

    champion: int | None = None
    challenger: int | None = None
    shadow: int | None = None
    previous: int | None = None


class Version(NamedTuple):
    """A version: its number, the policy as a file, and what is known of its making.

    Attributes
    ----------
    number : int
        From 1.
    policy : bytes
    card : mapping
        Data window and hash, parameters, figures, version of the code, as JSON.
    """

    number: int
    policy: bytes
    card: Mapping[str, Any]


class Registry:
    """The versions and aliases in a folder.

    Parameters
    ----------
    folder : Path
        Created where it is missing.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._versions = folder / "versions"
        self._versions.mkdir(parents=True, exist_ok=True, mode=0o700)

    def numbers(self) -> list[int]:
        """List the versions, oldest first."""
        return sorted(int(path.name) for path in self._versions.iterdir() if path.name.isdigit())

    def newest(self) -> float:
        """Return when the newest version was registered, in seconds since 1970; 0 without one."""
        numbers = self.numbers()
        return (self._versions / str(numbers[-1]) / _CARD).stat().st_mtime if numbers else 0.0

    def register(self, policy: bytes, card: Mapping[str, Any]) -> int:
        """Store a version for good, and return its number.

        Raises
        ------
        OSError
            The disk refuses it; no version is left.
        """
        staged = Path(tempfile.mkdtemp(dir=self._versions, prefix="part-"))
        try:
            text = json.dumps(dict(card), allow_nan=False, indent=1).encode()
            for name, data in ((_POLICY, policy), (_CARD, text)):
                path = staged / name
                atomic_write(path, seal(name, data))
                path.chmod(0o400)
            while True:
                number = 1 + max(self.numbers(), default=0)
                try:
                    # fails where another process has just taken the number
                    os.rename(staged, self._versions / str(number))
                except OSError:
                    if not (self._versions / str(number)).exists():
                        raise
                else:
                    return number
        finally:
            if staged.exists():
                shutil.rmtree(staged)

    def version(self, number: int) -> Version:
        """Return a version.

        Raises
        ------
        UserError
            There is none of this number, or it is damaged.
        """
        folder = self._versions / str(number)
        if not folder.is_dir():
            raise UserError(f"version {number} is not in the registry; there are {self._stated()}")
        contents = [
            unseal(name, path.read_bytes()) if (path := folder / name).is_file() else None
            for name in (_POLICY, _CARD)
        ]
        policy, card = contents
        if policy is None or card is None:
            raise UserError(f"version {number} is damaged: it does not fit its checksum")
        return Version(number, policy, json.loads(card))

    def aliases(self) -> Aliases:
        """Return which version serves as what.

        Raises
        ------
        UserError
            The file of the aliases is damaged.
        """
        path = self.folder / _ALIASES
        if not path.exists():
            return Aliases()
        data = unseal(_ALIASES, path.read_bytes())
        if data is None:
            raise UserError("the aliases of the registry are damaged: promote a version again")
        return Aliases(**json.loads(data))

    def point(self, alias: str, number: int | None) -> Aliases:
        """Let an alias point to a version, or to none; return the aliases.

        Raises
        ------
        UserError
            The alias is unknown, or the version is missing or damaged.
        """
        if alias not in Aliases._fields:
            raise UserError(f"alias: must be one of {', '.join(Aliases._fields)}; got {alias}")
        if number is not None:
            self.version(number)
        return self._write(self.aliases()._replace(**{alias: number}))

    def promote(self, number: int) -> Aliases:
        """Make a version the champion; the champion before it becomes ``previous``.

        Raises
        ------
        UserError
            The version is missing or damaged.
        """
        self.version(number)
        try:
            now = self.aliases()
        except UserError:
            now = Aliases()
        if now.champion == number:
            return now
        free = {alias: None for alias in ("challenger", "shadow") if getattr(now, alias) == number}
        return self._write(now._replace(champion=number, previous=now.champion, **free))

    def rollback(self) -> Aliases:
        """Make the previous version the champion again, and drop the challenger; before the first
        promotion the challenger alone is dropped.

        Raises
        ------
        UserError
            There is neither a previous version nor a challenger, or it is damaged.
        """
        now = self.aliases()
        if now.previous is None:
            if now.challenger is not None:
                return self._write(now._replace(challenger=None))
            raise UserError("there is no previous version to roll back to")
        self.version(now.previous)
        return self._write(
            now._replace(champion=now.previous, previous=now.champion, challenger=None)
        )

    def _write(self, aliases: Aliases) -> Aliases:
        text = json.dumps(aliases._asdict()).encode()
        atomic_write(self.folder / _ALIASES, seal(_ALIASES, text))
        return aliases

    def _stated(self) -> str:
        return ", ".join(map(str, self.numbers())) or "none"
