"""The list of deliberate faults fits the sources, so that a mutation run tests what it states."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.mutants.faults import ROOT, Fault, read


def test_every_fault_fits_exactly_one_place_of_its_file() -> None:
    sources = {fault.path: (ROOT / fault.path).read_text(encoding="utf-8") for fault in read()}
    for fault in read():
        assert fault.applied(sources[fault.path]) != sources[fault.path]
        assert fault.old != fault.new


def test_the_list_is_long_enough_and_no_fault_is_listed_twice() -> None:
    faults = read()
    assert len(faults) >= 150
    assert not [key for key, n in Counter((fault.path, fault.old, fault.new) for fault in faults).items() if n > 1]
    assert sum(not fault.reason for fault in faults) >= 0.95 * len(faults)


def test_every_agent_has_faults() -> None:
    agents = {f"{path.relative_to(ROOT)}" for path in (ROOT / "bandits" / "agents").glob("*/*.py")}
    without = {"__init__.py", "params.py", "vectors.py"}
    assert {path for path in agents if path.split("/")[-1] not in without} <= {fault.path for fault in read()}


def test_the_tests_of_every_fault_exist() -> None:
    for fault in read():
        assert fault.files
        assert all((ROOT / path).is_file() for path in fault.files), fault.tests


def test_a_fault_that_fits_nowhere_or_twice_is_refused() -> None:
    (fault,) = read("a.py | tests/a.py -k 'one and two'\nx + 1 => x - 1  # survives: unused\n")
    assert fault == Fault("a.py", ("tests/a.py", "-k", "one and two"), "x + 1", "x - 1", "unused")
    assert fault.files == ["tests/a.py"]
    assert fault.applied("y = x + 1") == "y = x - 1"
    for source in ("y = x", "y = x + 1 + (x + 1)"):
        with pytest.raises(ValueError, match="not once"):
            fault.applied(source)
