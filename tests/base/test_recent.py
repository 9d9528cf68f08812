"""What was used last is kept."""

from __future__ import annotations

from bandits.base.recent import Recent


def test_the_least_recently_used_value_is_forgotten() -> None:
    kept: Recent[str, int] = Recent(2)
    made: list[str] = []

    def use(key: str) -> int:
        return kept.use(key, lambda: made.append(key) or len(made))  # type: ignore[func-returns-value]

    assert [use(key) for key in "abacab"] == [1, 2, 1, 3, 1, 4]
    assert "".join(made) == "abcb"
    assert list(kept) == ["a", "b"]
    kept.keep("a", 9)
    assert (list(kept), use("a")) == (["b", "a"], 9)
