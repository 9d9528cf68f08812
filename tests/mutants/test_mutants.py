"""Generated faults: each changes one place, and is caught or survives as the tests of its module
are.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

from tests.mutants.operators import mutants
from tests.mutants.selection import quick_tests

ROOT = Path(__file__).resolve().parents[2]
SOURCE = '''"""A module. 1 + 1"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from x import y

LIMIT: int = 3


def mean(values: "list[float]", start=0):
    """Return a mean."""
    total = 0.5
    for value in values[start:-start]:
        if value is None or not value < LIMIT:
            continue
        total += value
    store.last[0] = total
    store.note(total, "é")
    if start > 1:
        raise ValueError(f"{start + 1} is too large")
    return max(total, 1.0) / len(values) if values else np.sum(total, axis=0)
'''
EXPECTED = """
3 => 4|0 => 1|0.5 => 1.0|start:-start => start + 1:-start|start:-start => start:-start + 1|-start => (start)
is None => is not None
 or not  =>  and (not |not value < LIMIT => (value < LIMIT)|value < LIMIT => (value <= LIMIT)|continue => break
total += value => pass|total += value => total -= value|store.last[0] = total => pass|store.note(total, "é") => pass
store.note(total, "é") => store.note('é', total)|start > 1 => (start >= 1)|max => min|1.0 => 2.0|/ len => * len
axis=0 => axis=1|max(total, 1.0) => max(1.0, total)
"""  # noqa: E501


def test_each_fault_changes_one_place_and_parses() -> None:
    found = list(mutants(SOURCE))
    original = SOURCE.splitlines()
    for fault in found:
        ast.parse(fault.source)
        lines = fault.source.splitlines()
        differing = [
            i + 1 for i, (old, new) in enumerate(zip(original, lines, strict=True)) if old != new
        ]
        assert differing == [fault.line], fault.change
    assert len({fault.source for fault in found}) == len(found)


def test_every_operator_is_applied() -> None:
    changes = [fault.change for fault in mutants(SOURCE)]
    for expected in EXPECTED.strip().replace("\n", "|").split("|"):
        old, new = expected.split(" => ")
        assert any(
            old in change.split(" => ")[0] and new in change.split(" => ")[1] for change in changes
        ), expected
    # no text, annotation, message or import for types is changed
    assert not any(
        word in change
        for change in changes
        for word in ("too large", "list[", "A module", "import")
    )


def test_tests_are_found_by_imports_and_packages() -> None:
    found = quick_tests("bandits/models/detectors/page_hinkley.py", ROOT)
    assert found[0] == "tests/models/test_detectors.py"
    assert "tests/models/test_ridge.py" in found
    assert not any(path.startswith(("tests/slow", "tests/browser")) for path in found)


def test_a_fault_that_tests_notice_is_caught_and_another_survives(tmp_path: Path) -> None:
    for path, text in {
        "bandits/base/tiny.py": "def double(x):\n    return 2 * x\n\n\ndef unused(x):\n    return x - 1\n",  # noqa: E501
        "bandits/__init__.py": "",
        "bandits/base/__init__.py": "",
        "tests/base/test_tiny.py": "from bandits.base.tiny import double\n\n\ndef test():\n    assert double(3) == 6\n",  # noqa: E501
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    code = (
        "import sys; from pathlib import Path; from tests.mutants.__main__ import mutants, run\n"
        "root, path = Path(sys.argv[1]), 'bandits/base/tiny.py'\n"
        "faults = [(path, fault) for fault in mutants((root / path).read_text())]\n"
        "for each in run(faults, root): print(each.caught, each)\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[1:] == [
        "True bandits/base/tiny.py:2: 2 * x => (2 / x)",
        "True bandits/base/tiny.py:2: 2 => 3",
        "False bandits/base/tiny.py:6: x - 1 => (x + 1)",
        "False bandits/base/tiny.py:6: 1 => 2",
    ]
