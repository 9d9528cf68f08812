"""Results of pages are made once, and give way by their bytes."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from bandits.base.ledger import LEDGER
from bandits.base.processes import ChildTask, Line
from bandits_app.session import results
from bandits_app.session.results import EXPANSION, Results, shared, weight
from tests.base.child_functions import double, leave_a_file_and_sleep


@pytest.fixture(autouse=True)
def kept(monkeypatch: pytest.MonkeyPatch) -> Results:
    made = Results(most=10_000)
    monkeypatch.setattr(results, "RESULTS", made)
    return made


def test_the_result_used_longest_ago_gives_way(kept: Results) -> None:
    made = list[str]()

    @shared(number=100)
    def array(_size: int, name: str) -> bytes:
        made.append(name)
        return np.zeros(_size, np.uint8)

    for name in "aba":
        array(4000, name)
    assert "".join(made) == "ab"
    # "b" gives way, and is made again; it then displaces "a", which was used before "c"
    array(4000, "c")
    assert kept.nbytes <= 10_000
    array(4000, "a")
    array(4000, "b")
    assert "".join(made) == "abcb"
    assert LEDGER.entries["results"] == kept.nbytes <= 10_000
    # what is larger than all of it is kept alone
    array(20_000, "d")
    array(20_000, "d")
    assert "".join(made) == "abcbd"
    array.forget_all()
    assert (kept.nbytes, LEDGER.entries["results"]) == (0, 0)


def test_age_number_and_forgetting(kept: Results) -> None:
    made = list[str]()

    def use(name: str, **limits: float) -> None:
        kept.use(("kind", name), lambda: made.append(name), **limits)  # type: ignore[arg-type]

    for name in "abca":
        use(name, number=2)
    assert "".join(made) == "abca"
    use("a", seconds=-1.0)
    kept.forget("kind", "a")
    use("a")
    assert "".join(made) == "abcaaa"


def test_what_fails_is_made_again(kept: Results) -> None:
    with pytest.raises(ZeroDivisionError):
        kept.use(("kind",), lambda: 1 / 0)
    assert not kept._kept
    assert kept.use(("kind",), lambda: 7) == 7


def test_those_who_ask_meanwhile_wait_for_one_result(kept: Results) -> None:
    made, go = list[int](), threading.Event()

    def make() -> int:
        go.wait(60)
        made.append(1)
        return 5

    with ThreadPoolExecutor(3) as threads:
        asked = [threads.submit(kept.use, ("kind",), make) for _ in range(3)]
        go.set()
        assert [one.result() for one in asked] == [5, 5, 5]
    assert made == [1]


def test_arrays_weigh_their_bytes_and_texts_more() -> None:
    assert weight(np.zeros(10**5)) == pytest.approx(8 * 10**5, rel=0.01)
    assert weight("x" * 10**5) == pytest.approx(EXPANSION * 10**5, rel=0.01)


def test_a_task_weighs_what_it_has_answered(kept: Results) -> None:
    task = kept.use(("kind",), lambda: ChildTask(Line("tests", waiting=0), double, 21))
    assert task.wait() == 42
    assert 0 < task.nbytes < 100
    assert kept.nbytes == weight(42)


def test_a_task_that_goes_on_is_not_begun_again(kept: Results) -> None:
    line = Line("tests", waiting=1)
    first = kept.use(("task", 1), lambda: ChildTask(line, leave_a_file_and_sleep))
    first.nbytes = 20_000
    kept.use(("array",), lambda: np.zeros(4000, np.uint8))
    kept.use(("task", 2), lambda: 7, number=0)
    assert kept.use(("task", 1), lambda: None) is first
    first.cancel()
