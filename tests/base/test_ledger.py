"""The account of memory: what fits, what waits, and what a mistake in the setting says."""

from __future__ import annotations

import threading

import pytest

from bandits.base.errors import UserError
from bandits.base.ledger import VARIABLE, Ledger, limit
from tests.support import wait_for


def test_all_entries_together_stay_below_the_limit() -> None:
    ledger = Ledger(10)
    # what is alone always fits
    assert ledger.enter("run", 12)
    assert not ledger.enter("reader", 1)
    # an entry replaces its own
    assert ledger.enter("run", 7)
    assert ledger.enter("reader", 3)
    assert not ledger.enter("upload", 1)
    ledger.leave("run")
    assert (ledger.enter("upload", 7), ledger.total) == (True, 10)


def test_work_does_not_wait_for_what_is_only_kept() -> None:
    ledger = Ledger(10)
    ledger.keep("uploads", 4)
    assert ledger.enter("run", 8)
    # beside work the sum counts
    assert not ledger.enter("reader", 1)
    ledger.keep("uploads", 1)
    assert ledger.enter("reader", 1)


def test_what_does_not_fit_waits_until_it_does_or_is_given_up() -> None:
    ledger, given_up = Ledger(10), threading.Event()
    ledger.enter("run", 9)
    waiting = [
        threading.Thread(target=ledger.wait, args=(name, 2, test), daemon=True)
        for name, test in (("patient", lambda: False), ("leaving", given_up.is_set))
    ]
    for thread in waiting:
        thread.start()
    given_up.set()
    waiting[1].join(5)
    assert ledger.entries == {"run": 9}
    ledger.leave("run")
    wait_for(lambda: ledger.entries == {"patient": 2}, "the entry")


@pytest.mark.parametrize("text", ["0", "1.5", "half", "nan"])
def test_a_share_is_between_0_and_1(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, text)
    with pytest.raises(UserError, match="it must be a number above 0 and at most 1"):
        limit()
