"""Decisions are explained in a process of its own, with a limit."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from bandits import UserError
from bandits.results.decision.why import why
from bandits.runtime import explanations
from bandits.runtime.explanations import BusyError, Explainer
from tests.support import experiment, wait_for

pytestmark = pytest.mark.slow
E = experiment("linucb", "lints", "random", steps=200)


@pytest.fixture
def explainer() -> Iterator[Explainer]:
    made = Explainer()
    yield made
    made.close()


def test_answers_equal_those_in_this_process_and_refusals_leave_the_process_alive(explainer: Explainer) -> None:
    for agent, step, replication in (("LinUCB", 200, 0), ("LinTS", 17, 2), (2, 5, 1)):
        assert repr(explainer.ask(E, agent, step, replication)) == repr(why(E, agent, step, replication))
    process = explainer._process
    with pytest.raises(UserError, match=r"^step is 201; it must be a whole number from 1 to 200$"):
        explainer.ask(E, "LinUCB", 201)
    explainer.ask(E, "LinUCB", 3)
    assert explainer._process is process


def test_an_explanation_ends_at_the_limit_and_the_next_one_is_given(explainer: Explainer) -> None:
    explainer.limit = 1e-3
    with pytest.raises(UserError, match=r"^step 200 of LinTS was not explained: it took more than 0.001 s, the limit$"):
        explainer.ask(E, "LinTS", 200)
    assert explainer._process is None
    explainer.limit = explanations.LIMIT
    assert explainer.ask(E, 1, 200).label == "LinTS"


def test_a_killed_process_is_stated_and_replaced(explainer: Explainer) -> None:
    explainer.ask(E, 0, 1)
    assert explainer._process is not None
    explainer._process.kill()
    explainer._process.wait()
    assert explainer.ask(E, 0, 1).label == "LinUCB"


def test_no_more_than_a_few_questions_wait(explainer: Explainer) -> None:
    with explainer._turn:  # as if another were being answered
        asking = [threading.Thread(target=explainer.ask, args=(E, 0, 1)) for _ in range(explanations.MAX_WAITING + 1)]
        for each in asking:
            each.start()
        wait_for(lambda: not explainer._places._value, "the questions to wait")
        with pytest.raises(BusyError, match="try again in a minute"):
            explainer.ask(E, 0, 1)
    for each in asking:
        each.join()
    assert explainer.ask(E, 0, 1).label == "LinUCB"


def test_without_questions_the_process_ends() -> None:
    explainer = Explainer(idle=0.01)
    explainer.ask(E, 0, 1)
    wait_for(lambda: explainer._process is None, "the process to end")
