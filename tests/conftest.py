"""Tests keep their files to themselves."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):  # as workers run; before anybody imports
    os.environ.setdefault(name, "1")

settings.register_profile("bandits", deadline=None, derandomize=True)  # the same examples everywhere, no clock
settings.register_profile("stress", deadline=None, derandomize=True, max_examples=1000)  # make stress
settings.load_profile("stress" if os.environ.get("BANDITS_STRESS") == "1" else "bandits")


@pytest.fixture(autouse=True, scope="session")
def _home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    before = os.environ.get("BANDITS_HOME")
    os.environ["BANDITS_HOME"] = str(tmp_path_factory.mktemp("home"))
    yield
    os.environ.pop("BANDITS_HOME") if before is None else os.environ.update(BANDITS_HOME=before)
