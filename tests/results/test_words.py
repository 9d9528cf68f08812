"""Estimates in words: digits, intervals, signs, and single replications."""

from __future__ import annotations

import math

import pytest

from bandits.results import words
from bandits.results.metrics import Estimate

NAN = math.nan


@pytest.mark.parametrize(
    ("ends", "form", "stated"),
    [
        ((0.4131, 0.4062, 0.4199), "rate", "0.413 (95 % CI 0.406 to 0.420)"),
        ((0.01231, 0.01229, 0.01233), "rate", "0.01231 (95 % CI 0.01229 to 0.01233)"),
        ((-0.0012, -0.0021, -0.0003), "rate", "−0.0012 (95 % CI −0.0021 to −0.0003)"),
        ((0.0004, -0.0003, 0.0011), "rate", "0.000 (95 % CI 0.000 to 0.001)"),
        ((0.94, 0.92, 0.95), "share", "94 % (95 % CI 92 % to 95 %)"),
        ((0.98, 0.978, 0.982), "share", "98.0 % (95 % CI 97.8 % to 98.2 %)"),
        ((0.98, 0.98, 0.98), "share", "98 % (95 % CI 98 % to 98 %)"),
        ((412.6, 380.2, 445.4), "count", "413 (95 % CI 380 to 445)"),
        ((0.1, -0.3, 0.44), "count", "0 (95 % CI −0.3 to 0.4)"),
        ((0.4, 0.3, 0.5), "count", "0.4 (95 % CI 0.3 to 0.5)"),
        ((12.4, 3.0, 21.8), "signed", "+12 (95 % CI +3 to +22)"),
        ((1234.5, 1200.0, 1269.0), "number", "1,234 (95 % CI 1,200 to 1,269)"),
        ((0.4131, NAN, NAN), "rate", "0.413"),
        ((NAN, NAN, NAN), "count", "–"),
    ],
)
def test_a_mean_has_the_digits_of_its_interval(
    ends: tuple[float, float, float], form: words.Form, stated: str
) -> None:
    assert words.stated(Estimate(*ends), form) == stated


def test_tables_tiles_and_single_replications() -> None:
    found, alone = Estimate(0.4131, 0.4062, 0.42), Estimate(0.4131, NAN, NAN)
    assert words.cell(found, "rate") == "0.413 (0.406 to 0.420)"
    assert words.plus_minus(found, "rate") == "0.413 ± 0.007"
    assert words.spread(Estimate(0.4, 0.3999, 0.4001)) == " ± <0.001"
    assert words.spread(alone) == ""
    assert words.plus_minus(alone, "rate") == words.cell(alone, "rate") == "0.413"
    assert words.interval(alone, "rate") == "one replication"


def test_the_sign_of_an_estimate_turns_its_interval_round() -> None:
    found = Estimate(-3.0, -5.0, -1.0)
    assert abs(found) == -found == Estimate(3.0, 1.0, 5.0)
    assert abs(-found) == -found
