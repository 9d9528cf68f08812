"""Malformed experiments: an invalid upload, link or input is refused in one printable sentence."""

from __future__ import annotations

import gc
import io
import json
import sys
import tracemalloc
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bandits import UserError, read
from bandits.cli import main as cli
from bandits.experiments.experiment import MAX_TEXT
from tests.support import often

VALID: dict[str, Any] = {
    "simulator": {"kind": "petshop", "n_products": 10, "features": "additive", "shock_step": None},
    "agents": [
        {"kind": "linucb", "alpha": 1.5, "sharing": "per_arm", "label": "A"},
        {"kind": "static_mlp", "hidden": [64, 32]},
        {"kind": "lints", "sigma2": 0.5},
    ],
    "steps": 100,
    "replications": 2,
    "seed": 7,
}
NASTY = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "\"quoted\" 'twice'",
    "=cmd|' /C calc'!A0",
    "x" * 10_000,
    "\x00",
    "\x1b[31mred\x1b[0m",
    "line\nbreak",
    "\u202eright to left",
    "\ud800",
    "\u2028",
    "",
    "\ufeff",
    "😀" * 3000,
)


def refusal_of(capsys: pytest.CaptureFixture[str], text: str | bytes) -> str:
    """Return the message of the command for a text; uploads give the same message."""
    with pytest.raises(UserError) as refused:
        read(text)
    sentence = str(refused.value)
    assert 0 < len(sentence) <= 400
    assert sentence.isprintable()
    assert "Traceback" not in sentence
    assert type(refused.value) is UserError
    before = sys.stdin
    try:
        raw = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
        sys.stdin = io.TextIOWrapper(io.BytesIO(raw), encoding="utf-8")
        assert cli.main(["run", "-"]) == 2
    finally:
        sys.stdin = before
    out, err = capsys.readouterr()
    assert out == ""
    (line,) = err.splitlines()
    assert line.startswith("error: ")
    assert line.isprintable()
    assert len(line) <= 410
    return sentence


def changed(path: tuple[Any, ...], value: Any) -> str:
    """Return the valid experiment with one value replaced."""
    whole: Any = json.loads(json.dumps(VALID))
    inner = whole
    for part in path[:-1]:
        inner = inner[part]
    inner[path[-1]] = value
    return json.dumps(whole)


def paths(value: Any, so_far: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Yield the paths of all values."""
    below = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    return [
        *([so_far] if so_far else []),
        *(p for key, inner in below for p in paths(inner, (*so_far, key))),
    ]


PATHS = paths(VALID)
numbers = st.one_of(
    st.sampled_from([-1, 0, 1.5, 10**12, -(10**30), 2**63, 1e308, -0.5]),
    st.integers(),
    st.floats(allow_nan=False),
)
values = st.recursive(
    st.one_of(st.none(), st.booleans(), numbers, st.text(max_size=50), st.sampled_from(NASTY)),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4)
    ),
    max_leaves=8,
)
literals = st.sampled_from(
    ["NaN", "Infinity", "-Infinity", "1e999", "-1e999", "9" * 5000, "1" + "0" * 400, "[" * 3000]
)
keys = st.one_of(
    st.text(max_size=30),
    st.sampled_from(NASTY),
    st.sampled_from(["kind", "label", "alpha", "__proto__"]),
)


@st.composite
def mutations(draw: st.DrawFn) -> str | bytes:
    """Draw a mutation of a valid experiment, valid or not."""
    path = draw(st.sampled_from(PATHS))
    way = draw(
        st.sampled_from(["value", "literal", "field", "twice", "cut", "bytes", "nest", "splice"])
    )
    text = json.dumps(VALID)
    if way == "value":
        return changed(path, draw(values))
    if way == "literal":
        return changed(path, "@value@").replace('"@value@"', draw(literals))
    if way == "field":
        return changed(
            (*draw(st.sampled_from([(), ("simulator",), ("agents", 0)])), draw(keys)), draw(values)
        )
    if way == "twice":
        key = draw(st.sampled_from(["steps", "agents", "seed"]))
        return text[:-1] + f', "{key}": {json.dumps(draw(values))}}}'
    if way == "cut":
        return text[: draw(st.integers(0, len(text) - 1))]
    if way == "nest":
        depth = draw(st.integers(1, 50_000))
        return changed(path, "@value@").replace('"@value@"', "[" * depth + "]" * depth)
    at = draw(st.integers(0, len(text)))
    if way == "splice":
        return text[:at] + draw(st.text(max_size=20)) + text[at:]
    return text[:at].encode() + draw(st.binary(min_size=1, max_size=8)) + text[at:].encode()


@settings(max_examples=often(120, 5000), suppress_health_check=list(HealthCheck))
@given(mutated=mutations())
def test_a_mutated_experiment_is_valid_or_refused_in_one_sentence(
    mutated: str | bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        read(mutated)
    except UserError:
        refusal_of(capsys, mutated)


CORPUS: tuple[tuple[str | bytes, str], ...] = (
    *((changed(("agents", 0, "label"), label), "agents.0.label") for label in NASTY),
    *((changed(("agents", 0, label), 1), "agents.0") for label in NASTY),
    *((changed(("simulator", "kind"), label), "simulator.kind") for label in NASTY),
    *((changed(path, True), str(path[0])) for path in PATHS if path != ("agents", 1, "hidden", 0)),
    *((changed(path, {"a": {"b": []}}), str(path[0])) for path in PATHS),
    *((changed(path, "@").replace('"@"', "NaN"), "NaN is not a number") for path in PATHS),
    *((changed(path, "@").replace('"@"', "1e999"), str(path[0])) for path in PATHS),
    (changed(("agents", 1, "hidden", 0), True), "agents.1.hidden"),
    (changed(("agents",), [VALID["agents"][0]] * 13), "agents"),
    (changed(("agents",), [VALID["agents"][0]] * 2), "used twice"),
    (changed(("agents",), []), "agents"),
    (changed(("simulator",), {"kind": "petshop", "n_products": 10_000_000}), "GiB"),
    (changed(("steps",), 10_000_001), "from 1 to 10,000,000"),
    (changed(("seed",), -1), "seed"),
    (changed(("seed",), 2**63), "seed"),
    (
        json.dumps(VALID).replace('"seed": 7', '"seed": 7, "seed": 7'),
        "the key 'seed' appears twice",
    ),
    (json.dumps(VALID).replace('"alpha"', '"alpha": 1, "alpha"'), "the key 'alpha' appears twice"),
    (json.dumps(VALID) + "x" * MAX_TEXT, "at most 256,000"),
    (json.dumps(VALID).encode("cp500"), ""),
    (json.dumps(VALID).encode() + b"\xff", "UTF-8"),
    (b"\xff\xfe", ""),
    (b"PK\x03\x04", "not JSON"),
    (b"\x80\x04\x95", ""),
    (b"\x00" * 100, ""),
    ("null", ""),
    ("true", ""),
    ("7", ""),
    ('"text"', ""),
    ("[]", ""),
    ("[{}]", ""),
    ("{'agents': 1}", "not JSON"),
    ('{"agents": [' * 20_000, ""),
    ('{"a":' * 50_000 + "1" + "}" * 50_000, ""),
)


@pytest.mark.parametrize("case", range(len(CORPUS)))
def test_the_corpus_of_malformed_inputs_is_refused(
    case: int, capsys: pytest.CaptureFixture[str]
) -> None:
    text, words = CORPUS[case]
    assert words in refusal_of(capsys, text)


def test_refusals_retain_no_memory() -> None:
    """Peak memory is a small multiple of the largest text, and all of it is released."""

    def refuse_all() -> None:
        for text, _ in CORPUS:
            with suppress(UserError):
                read(text)
        gc.collect()

    # imports and caches of the first use
    refuse_all()
    tracemalloc.start()
    try:
        # the last refusal is retained until the next
        refuse_all()
        before, _ = tracemalloc.get_traced_memory()
        refuse_all()
        after, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    largest = max(len(text) for text, _ in CORPUS)
    # every character of JSON can become a list of 56 bytes and a pointer to it, twice while it is
    # copied
    assert most - before < 2 * 64 * largest
    assert after - before < largest


def test_the_command_limits_how_much_it_reads(capsys: pytest.CaptureFixture[str]) -> None:
    class Endless(io.RawIOBase):
        given = 0

        def readable(self) -> bool:
            return True

        def readinto(self, buffer: Any) -> int:
            self.given += len(buffer)
            assert self.given < 4 * MAX_TEXT
            buffer[:] = b"[" * len(buffer)
            return len(buffer)

    before = sys.stdin
    try:
        sys.stdin = io.TextIOWrapper(io.BufferedReader(Endless()))
        assert cli.main(["run", "-"]) == 2
    finally:
        sys.stdin = before
    assert "at most 256,000" in capsys.readouterr().err
