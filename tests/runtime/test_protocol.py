"""Messages between the server and its workers: arrays of every kind arrive as they were."""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from bandits.runtime.protocol import receive, send

ARRAYS: dict[str, Any] = {
    "a/b": np.arange(6.0).reshape(2, 3),
    # its order of memory decides the bits of products
    "columns": np.asfortranarray(np.arange(6).reshape(2, 3)),
    "part": np.arange(20)[::3],
    "number": np.array(3),
    "none": np.zeros((0, 4)),
    "text": np.array("LinUCB"),
    "empty text": np.array(""),
    "plain": 7,
    "flags": np.array([True, False]),
}


def test_arrays_arrive_as_they_were() -> None:
    stream = io.BytesIO()
    for event in ("first", "second"):
        send(stream, {"event": event}, ARRAYS)
    stream.seek(0)
    for event in ("first", "second"):
        message = receive(stream)
        assert message is not None
        header, arrays = message
        assert header == {"event": event}
        assert list(arrays) == list(ARRAYS)
        for name, sent in ARRAYS.items():
            np.testing.assert_array_equal(arrays[name], sent)
            assert arrays[name].dtype == np.asarray(sent).dtype
            assert arrays[name].flags.fnc == np.asarray(sent).flags.fnc
    assert receive(stream) is None
