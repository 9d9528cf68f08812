"""Shade the usual range of a parameter on the track of its slider."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence

import streamlit as st

# The track of Streamlit's slider is as wide as the range of its values.
_TRACK = '[role="group"] > [data-rac]'
_SHADE = (
    'content: ""; position: absolute; top: calc(50% - 0.375rem); height: 0.75rem; border-radius: 0.125rem; '  # noqa: E501
    "background: color-mix(in srgb, currentColor 16%, transparent); pointer-events: none;"
)

Range = tuple[float, float]


def share(
    usual: Sequence[float], first: float, last: float, values: Sequence[float] | None = None
) -> Range | None:
    """Return where a range begins and ends on a slider, as shares of its length.

    None where it is the whole slider.

    Parameters
    ----------
    values : sequence of float, optional
        All values of the slider in order, if they are not evenly spaced.
    """
    low, high = usual
    if values is None:
        begin, end = (low - first) / (last - first), (high - first) / (last - first)
    else:
        begin, end = bisect_left(values, low), bisect_right(values, high) - 1
        begin, end = begin / (len(values) - 1), end / (len(values) - 1)
    begin, end = max(0.0, begin), min(1.0, end)
    return (begin, end) if begin < end and (begin, end) != (0.0, 1.0) else None


def shade(ranges: Mapping[str, Range]) -> None:
    """Shade the ranges of sliders, by their keys."""
    if not ranges:
        return
    places = {
        key: f".st-key-{re.sub(r'[^a-zA-Z0-9_-]', '-', key)} {_TRACK}::before" for key in ranges
    }
    rules = [f"{', '.join(places.values())} {{ {_SHADE} }}"]
    for key, (begin, end) in ranges.items():
        rules.append(
            f"{places[key]} {{ left: {100 * begin:.2f}%; width: {100 * (end - begin):.2f}%; }}"
        )
    st.html(f"<style>{' '.join(rules)}</style>")
