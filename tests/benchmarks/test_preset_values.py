"""What a preset shows of two agents does not depend silently on the values of their parameters."""

from __future__ import annotations

import pytest

from bandits.experiments.presets import presets
from benchmarks.reproduction.preset_values import DOCUMENT, named, recorded, rows_of

FOUND = recorded()


@pytest.mark.parametrize("name", list(FOUND))
def test_a_preset_states_where_a_difference_is_reversed(name: str) -> None:
    """The record is of the preset as it is. Where its agents are in another order at their defaults
    or at their best, its text states so, or the names of the agents do.
    """
    preset = presets()[name]
    assert FOUND[name]["hash"] == preset.experiment.hash
    reversed_rows = [row for row in rows_of(FOUND[name]) if row.verdict == "reversed"]
    silent = [row for row in reversed_rows if not named(preset.experiment, row)]
    assert preset.depends or not silent, silent


def test_the_document_lists_every_preset_that_was_measured() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    assert [name for name in FOUND if presets()[name].title not in text] == []
