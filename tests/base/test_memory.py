"""What takes more memory than there is, is refused before it is taken."""

from __future__ import annotations

import subprocess
import sys

import pytest

from bandits.base.errors import UserError
from bandits.base.memory import machine_memory, require_memory


def test_available_memory_is_read() -> None:
    assert 2**28 < machine_memory() < 2**50


def test_the_limit_of_a_process_counts_and_more_is_refused() -> None:
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_AS, (10**9, 10**9));"
        "from bandits.base.memory import machine_memory; print(machine_memory())"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert float(done.stdout) == 10**9
    require_memory(machine_memory(), "a log", "log fewer rows")
    with pytest.raises(UserError, match=r"^a log takes about .* available; log fewer rows$"):
        require_memory(2 * machine_memory(), "a log", "log fewer rows")
