"""The service's own description: whatever fits it or does not, the answer is one that it states."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bandits.base.errors import UserError
from bandits.policy import Policy
from bandits.serving.api import openapi
from bandits.serving.registry import Registry
from bandits.serving.service import Service
from tests.serving.test_http import running
from tests.serving.test_service import policy
from tests.support import often

Send = Callable[[str, str, bytes | None], tuple[int, Any]]
DESCRIBED = openapi(token=False)


@pytest.fixture(scope="module")
def send(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Send]:
    """Start a service; return a function that sends over one connection."""
    with started(tmp_path_factory.mktemp("service"), policy()) as ask:
        yield ask


@pytest.fixture(scope="module")
def send_arrays(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Send]:
    """Start a service whose contexts are two numbers."""
    made = Policy("linucb", ["a", "b", "c"], 2).to_bytes()
    with started(tmp_path_factory.mktemp("arrays"), made) as ask:
        yield ask


@contextmanager
def started(folder: Path, made: bytes) -> Iterator[Send]:
    registry = Registry(folder / "registry")
    registry.register(made, {})
    registry.promote(1)
    with running(Service(folder)) as port:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

        def ask(method: str, path: str, body: bytes | None = None) -> tuple[int, Any]:
            try:
                connection.request(method, path, body, {"content-type": "application/json"})
                response = connection.getresponse()
                text = response.read().decode()
            except (OSError, http.client.HTTPException):
                connection.close()
                raise
            return response.status, json.loads(text) if text.startswith("{") else text

        yield ask
        connection.close()


def check(method: str, path: str, status: int, answer: Any) -> None:
    """Refuse an answer that the description does not state."""
    stated = DESCRIBED["paths"][path][method.lower()]["responses"]
    assert str(status) in stated, (status, answer)
    ((kind, content),) = stated[str(status)]["content"].items()
    if kind == "application/json":
        schema = {**content["schema"], "components": DESCRIBED["components"]}
        jsonschema.validate(answer, schema, jsonschema.Draft202012Validator)


def test_every_address_is_described_and_answers_as_it_states(send: Send) -> None:
    assert send("GET", "/openapi.json") == (200, DESCRIBED)
    body = json.dumps({"event_id": "e", "context": {"x": 1, "y": 2}}).encode()
    for method, path, sent in (
        ("POST", "/decide", body),
        ("POST", "/reward", b'{"event_id": "e", "reward": 1}'),
        *(("GET", path, None) for path in ("/health", "/metrics", "/version")),
    ):
        status, answer = send(method, path, sent)
        assert status == 200
        check(method, path, status, answer)
    status, answer = send("GET", "/explain/e")
    assert status == 200
    check("GET", "/explain/{event_id}", status, answer)
    assert openapi(token=True)["paths"]["/health"]["get"]["responses"]["401"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda each: (
        st.lists(each, max_size=4) | st.dictionaries(st.text(max_size=5), each, max_size=4)
    ),
    max_leaves=6,
)
NUMBERS = st.sampled_from([float("nan"), float("inf"), 1.0]) | st.floats()
LIKELY = {
    "event_id": st.sampled_from(["e1", "e2", "\0é"]) | st.text(max_size=201),
    "context": st.fixed_dictionaries({"x": st.floats() | st.integers(), "y": JSON}),
    "candidates": st.lists(st.sampled_from(["a", "b", "c"]) | JSON, max_size=3),
    "reward": st.floats() | st.integers(),
}


def bodies(path: str) -> st.SearchStrategy[Any]:
    """Return what draws bodies with the fields of the description, right ones and wrong ones."""
    content = DESCRIBED["paths"][path]["post"]["requestBody"]["content"]["application/json"]
    name = content["schema"]["$ref"].rpartition("/")[2]
    fields = DESCRIBED["components"]["schemas"][name]["properties"]
    drawn = {field: LIKELY.get(field, JSON) | JSON for field in fields}
    return st.fixed_dictionaries({}, optional={**drawn, "unknown": JSON}) | JSON


BODIES = {path: bodies(path) for path in ("/decide", "/reward")}


@pytest.mark.parametrize("path", BODIES)
@settings(max_examples=often(50, 1_000), suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_no_body_is_answered_with_500(send: Send, path: str, data: st.DataObject) -> None:
    body = data.draw(BODIES[path])
    status, answer = send("POST", path, json.dumps(body).encode())
    check("POST", path, status, answer)


@settings(max_examples=often(50, 1_000), suppress_health_check=list(HealthCheck))
@given(context=st.lists(NUMBERS, min_size=2, max_size=2) | st.lists(JSON, max_size=3))
def test_no_array_is_answered_with_500(send_arrays: Send, context: list[Any]) -> None:
    body = json.dumps({"context": context}).encode()
    status, answer = send_arrays("POST", "/decide", body)
    check("POST", "/decide", status, answer)


@pytest.mark.parametrize(
    "body",
    [
        b'{"context": {"x": 1' + b"0" * 400 + b', "y": 1}}',
        b'{"context": {"x": 1' + b"0" * 5_000 + b', "y": 1}}',
        b'{"candidates": [1' + b"0" * 5_000 + b'], "context": {"x": 1, "y": 1}}',
        b'{"context": {"x": 1e308, "y": -1e308}}',
        b'{"context": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"event_id": "\\ud800", "context": {"x": 1, "y": 1}}',
        b'{"event_id": "\xed\xa0\x80", "context": {"x": 1, "y": 1}}',
        b'{"event_id": "\xff", "context": {"x": 1, "y": 1}}',
        b'{"candidates": ["a", "a"], "context": {"x": 1, "y": 1}}',
        b'{"candidates": ["a", 1], "context": {"x": 1, "y": 1}}',
        b'{"context": {"x": null, "y": 1}}',
        b'{"context": [1, 2]}',
        b'{"context": [[1, 2], [3, 4], [5, 6]]}',
    ],
)
def test_extreme_bodies_are_answered(send: Send, body: bytes) -> None:
    status, answer = send("POST", "/decide", body)
    check("POST", "/decide", status, answer)
    assert send("GET", "/health", None)[0] == 200


def test_scores_that_are_no_numbers_are_explained(tmp_path: Path) -> None:
    registry = Registry(tmp_path / "registry")
    registry.register(Policy("ucb1", ["a", "b"], {}).to_bytes(), {})
    registry.promote(1)
    with running(service := Service(tmp_path)) as port:
        service.decide(event_id="e")
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request("GET", "/explain/e")
        response = connection.getresponse()
        answer = json.loads(response.read())
        assert response.status == 200
        check("GET", "/explain/{event_id}", 200, answer)
        # a policy that has diverged has none
        agent = service._policies[1].agent
        state = agent.state_dict()
        agent.load_state_dict(
            {n: np.full_like(v, np.nan) if v.dtype == np.float64 else v for n, v in state.items()}
        )
        connection.request("GET", "/explain/e")
        response = connection.getresponse()
        refused = json.loads(response.read())
        connection.close()
    assert response.status == 422
    check("GET", "/explain/{event_id}", 422, refused)


def test_a_version_without_propensities_is_refused(tmp_path: Path) -> None:
    registry = Registry(tmp_path / "registry")
    registry.register(Policy("logistic_ts", ["a", "b"], {"x": "number"}, redraws=0).to_bytes(), {})
    registry.promote(1)
    with pytest.raises(UserError, match="version 1 states no propensities"):
        Service(tmp_path)
