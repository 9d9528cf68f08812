"""The registry: versions that do not change, and aliases that change in one step."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from bandits.base.errors import UserError
from bandits.serving.registry import Aliases, Registry


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    return Registry(tmp_path / "registry")


def test_versions_are_numbered_and_returned(registry: Registry) -> None:
    assert registry.numbers() == []
    assert [registry.register(b"one", {"rows": 1}), registry.register(b"two", {})] == [1, 2]
    version = Registry(registry.folder).version(1)
    assert (version.number, version.policy, version.card) == (1, b"one", {"rows": 1})
    with pytest.raises(UserError, match="version 3 is not in the registry; there are 1, 2"):
        registry.version(3)


def test_a_damaged_version_is_never_served(registry: Registry) -> None:
    registry.register(b"policy", {})
    registry.promote(1)
    path = registry.folder / "versions" / "1" / "policy.bandits"
    path.chmod(0o600)
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    for refused in (registry.version, registry.promote, lambda n: registry.point("shadow", n)):
        with pytest.raises(UserError, match="version 1 is damaged"):
            refused(1)


def test_promotion_and_rollback(registry: Registry) -> None:
    for name in (b"a", b"b", b"c"):
        registry.register(name, {})
    with pytest.raises(UserError, match="no previous version"):
        registry.rollback()
    assert registry.promote(1) == Aliases(champion=1)
    assert registry.point("challenger", 2) == Aliases(champion=1, challenger=2)
    assert registry.rollback() == Aliases(champion=1)
    assert registry.promote(2) == Aliases(champion=2, previous=1)
    assert registry.promote(2) == Aliases(champion=2, previous=1)
    registry.point("challenger", 3)
    assert registry.rollback() == Aliases(champion=1, previous=2)
    assert Registry(registry.folder).aliases() == Aliases(champion=1, previous=2)
    assert registry.point("shadow", 3).shadow == 3
    assert registry.point("shadow", None).shadow is None
    with pytest.raises(UserError, match="alias: must be one of champion, challenger"):
        registry.point("hero", 1)


def test_damaged_aliases_are_stated_and_replaced(registry: Registry) -> None:
    registry.register(b"a", {})
    registry.promote(1)
    (registry.folder / "aliases.json").write_bytes(b"{}")
    with pytest.raises(UserError, match="the aliases of the registry are damaged"):
        registry.aliases()
    assert registry.promote(1) == Aliases(champion=1)


def test_readers_see_whole_aliases_and_writers_take_different_numbers(registry: Registry) -> None:
    for name in (b"a", b"b"):
        registry.register(name, {})
    registry.promote(1)
    registry.promote(2)
    seen, ended = set(), threading.Event()

    def read() -> None:
        while not ended.is_set():
            seen.add(registry.aliases())

    reader = threading.Thread(target=read)
    reader.start()
    for number in range(100):
        registry.promote(1 + number % 2)
    ended.set()
    reader.join()
    assert seen <= {Aliases(champion=1, previous=2), Aliases(champion=2, previous=1)}
    numbers: list[int] = []
    writers = [
        threading.Thread(target=lambda: numbers.append(registry.register(b"x", {})))
        for _ in range(8)
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert sorted(numbers) == list(range(3, 11))


def test_a_version_that_cannot_be_written_leaves_nothing(registry: Registry) -> None:
    with pytest.raises(ValueError, match="JSON"):
        registry.register(b"x", {"rate": float("nan")})
    assert list((registry.folder / "versions").iterdir()) == []
