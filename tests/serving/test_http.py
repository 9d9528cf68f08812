"""The service behind real addresses: statuses, tokens, privacy, health, metrics, swaps."""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from bandits.serving.alarms import Seen
from bandits.serving.http import application
from bandits.serving.registry import Registry
from bandits.serving.service import Service
from tests.serving.test_service import policy
from tests.support import often, wait_for

Ask = Callable[..., tuple[int, Any]]


def ask(
    port: int, path: str, body: Any = None, *, headers: dict[str, str] | None = None
) -> tuple[int, Any]:
    """Send a request; return the status and what was answered."""
    data = None
    if body is not None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
    sent = {"content-type": "application/json"} | (headers or {})
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data, sent)
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            status, text = response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        status, text = error.code, error.read().decode()
    return status, json.loads(text) if text.startswith("{") else text


@contextmanager
def running(service: Service, token: str = "") -> Iterator[int]:
    """Run a service in this process, behind a real socket; yield its port."""
    config = uvicorn.Config(
        application(service, token=token), host="127.0.0.1", port=0, log_level="error"
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        wait_for(lambda: server.started, "the server")
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        thread.join()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., tuple[Service, Ask]]]:
    """Start a service of a small shop."""
    with ExitStack() as stack:

        def started(token: str = "") -> tuple[Service, Ask]:
            registry = Registry(tmp_path / "registry")
            registry.register(policy(), {})
            registry.promote(1)
            service = Service(tmp_path)
            port = stack.enter_context(running(service, token))
            return service, lambda path, body=None, **options: ask(port, path, body, **options)

        yield started


def test_decisions_rewards_and_what_is_known_of_them(
    start: Callable[..., tuple[Service, Ask]],
) -> None:
    service, send = start()
    body = {"event_id": "e1", "user": "ann@example.com", "context": {"x": 1, "y": 0.5}}
    status, answer = send("/decide", body)
    assert status == 200
    assert answer["event_id"] == "e1"
    assert answer["item"] in ("a", "b", "c")
    assert (answer["arm"], answer["version"]) == ("champion", 1)
    assert send("/decide", body) == (200, answer)
    assert send("/reward", {"event_id": "e1", "reward": 1}) == (200, {"learned": True})
    assert send("/reward", {"event_id": "e1", "reward": 1}) == (200, {"learned": False})
    status, found = send("/explain/e1")
    assert found["rewards"] == [1.0, 1.0]
    named = {"event_id": "e1", "reward": 0, "reward_id": "r1"}
    for _ in range(2):
        assert send("/reward", named) == (200, {"learned": False})
    assert len(send("/explain/e1")[1]["rewards"]) == 3
    service.alarms.append(Seen(0.0, "adwin", 2, 0.2, "The mean reward fell."))
    service.alarmed["adwin"] += 1
    assert send("/version")[1]["champion"] == 1
    status, health = send("/health")
    assert (status, health["healthy"], health["loss_window_seconds"]) == (200, True, 0.05)
    (alarm,) = health["alarms"]
    assert alarm.startswith("1970-01-01T00:00:00+00:00 version 2, Adaptive windowing (ADWIN): The")
    metrics = send("/metrics")[1]
    assert 'bandits_alarms{monitor="adwin"} 1.0' in metrics
    assert 'bandits_alarms{monitor="fallbacks"} 0.0' in metrics
    assert 'bandits_decisions{arm="champion"} 1.0' in metrics
    assert "bandits_learned 1.0" in metrics
    # without consent: no context, no user
    status, answer = send("/decide", body | {"event_id": "e2", "consent": False})
    assert status == 422 or service.log.find("e2")[0].user == ""
    events = list(service.log.events())
    assert all("ann@example.com" not in json.dumps(event) for event in events)
    assert (service.folder / "user.key").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("path", "body", "headers", "status", "sentence"),
    [
        ("/reward", {"event_id": "never", "reward": 1}, {}, 404, "no decision 'never'"),
        ("/explain/never", None, {}, 404, "no decision 'never'"),
        ("/reward", b'{"event_id": "e", "reward": NaN}', {}, 422, "reward"),
        ("/reward", {"event_id": "e"}, {}, 422, "reward is missing"),
        ("/decide", {"contxt": {}}, {}, 422, "contxt"),
        ("/decide", {"context": {"x": 1}}, {}, 422, "y"),
        ("/decide", {"context": {"x": 1, "y": 1, "z": 1}}, {}, 422, "z"),
        ("/decide", {"candidates": ["a"] * 10_001}, {}, 422, "10000"),
        ("/decide", b"x" * 300_000, {}, 413, "256 kB"),
        ("/decide", b"{", {}, 422, ""),
        ("/decide", b"{}", {"content-type": "text/plain"}, 415, "application/json"),
        ("/nowhere", None, {}, 404, ""),
    ],
)
def test_bad_requests_are_refused_in_a_sentence(
    start: Callable[..., tuple[Service, Ask]],
    path: str,
    body: Any,
    headers: dict[str, str],
    status: int,
    sentence: str,
) -> None:
    service, send = start()
    got, answer = send(path, body, headers=headers)
    assert got == status
    assert sentence in (answer["error"] if isinstance(answer, dict) else answer)
    service.store.flush()
    assert [event.kind for event in service.log.events()] == ["versions"]


def test_a_token_is_asked_for(start: Callable[..., tuple[Service, Ask]]) -> None:
    _, send = start(token="secret")
    assert send("/health")[0] == 401
    assert send("/health", headers={"authorization": "Bearer wrong"})[0] == 401
    assert send("/health", headers={"authorization": "Bearer secret"})[0] == 200


def test_promotions_lose_no_request(start: Callable[..., tuple[Service, Ask]]) -> None:
    service, send = start()
    service.registry.register(policy(alpha=1.0), {})
    answers: list[tuple[int, Any]] = []
    ended = threading.Event()

    def load() -> None:
        while not ended.is_set():
            answers.append(send("/decide", {"context": {"x": 1, "y": 0}}))

    clients = [threading.Thread(target=load) for _ in range(2)]
    for client in clients:
        client.start()
    # a promotion and a rollback
    for number in (2, 1) * often(2, 50):
        if number == 2:
            service.registry.promote(2)
        else:
            service.registry.rollback()
        wait_for(lambda number=number: send("/version")[1]["champion"] == number, "the swap")  # type: ignore[misc]
    ended.set()
    for client in clients:
        client.join()
    assert {status for status, _ in answers} == {200}
    assert {answer["version"] for _, answer in answers} == {1, 2}
    for event in service.log.events():
        if event.kind == "versions":
            champion = event.body["aliases"][0]
        elif event.kind == "decision":
            assert event.body["version"] == champion
