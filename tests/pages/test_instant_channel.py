"""The websocket beside Streamlit's own: answers, and what it refuses."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from http.client import HTTPConnection
from typing import Any

import numpy as np
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from bandits import read, run
from bandits.runtime.pool import Pool
from bandits_app.arena.instant import channel, messages
from bandits_app.server.security import Guard
from bandits_app.widgets.live_panel.panel import unpack
from tests.support import experiment, often, wait_for

E = experiment("linucb", "random", steps=400, replications=4)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    app = Starlette(routes=channel.routes, middleware=[Middleware(Guard)])
    server = uvicorn.Server(uvicorn.Config(app, port=port, log_level="error"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    wait_for(lambda: server.started, "the server")
    yield f"127.0.0.1:{port}"
    server.should_exit = True
    thread.join()


def line(address: str, path: str = "instant", **options: Any) -> ClientConnection:
    options = {"origin": f"http://{address}", **options}
    return connect(f"ws://{address}/{path}", max_size=None, **options)


def question(seq: int = 1, **changes: Any) -> str:
    asked = {
        "seq": seq,
        "experiment": E.model_dump_json(),
        "label": "LinUCB",
        "params": {"alpha": 1.5},
    }
    return json.dumps({**asked, **changes})


def received(client: ClientConnection) -> tuple[dict[str, Any], bytes]:
    data = client.recv(timeout=120)
    assert isinstance(data, bytes)
    size = int.from_bytes(data[:4], "little")
    return json.loads(data[4 : 4 + size]), data[4 + size :]


def asked(client: ClientConnection, text: str) -> tuple[dict[str, Any], bytes]:
    client.send(text)
    return received(client)


def test_an_answer_holds_the_plots_of_the_agent(address: str) -> None:
    data = E.model_dump(mode="json")
    data["agents"][0]["alpha"] = 1.5
    expected = run(type(E).model_validate(data), workers=0).histories["LinUCB"]
    with line(address) as client:
        header, body = asked(client, question(7))
    assert (header["seq"], header["label"], header["whole"]) == (7, "LinUCB", True)
    assert header["rate"] == pytest.approx(expected.sums["clicks"][-1].mean() / 400)
    assert header["tile"]["rate"] == f"{header['rate']:.3f}"
    cells = unpack(body)["cells"]
    assert [{trace["legendgroup"] for trace in cell["figure"]["data"]} for cell in cells] == [
        {"LinUCB"}
    ] * 4
    regret = next(
        t
        for t in cells[1]["figure"]["data"]
        if t.get("legendgroup") == "LinUCB" and not t.get("fill")
    )
    lost = (expected.sums["best_value"] - expected.sums["value"])[-1].mean()
    assert np.asarray(regret["y"])[-1] == pytest.approx(lost, rel=1e-5)


def test_a_kept_run_is_shown_and_nothing_is_computed(address: str, pool: Pool) -> None:
    store, data = pool.store, E.model_dump(mode="json")
    assert store is not None
    data["agents"] = [data["agents"][1], {**data["agents"][0], "alpha": 1.5, "label": "Bold"}]
    result = run(read(data), workers=0)
    store.put(result.experiment, result.histories, 1.0)
    with line(address) as client:
        header, body = asked(client, question(3, kept=True))
        refused = [
            asked(client, question(kept=True, **changes))[0].get("error", "")
            for changes in (
                {"params": {"alpha": 1.4}},
                {"params": {"alpha": 1.5, "ridge": 1.0}},
                {"label": "Bold"},
                {"params": {"steps": 1.5}},
            )
        ]
    mean = result.histories["Bold"].sums["clicks"][-1].mean() / 400
    assert header["rate"] == pytest.approx(mean)
    assert header["tile"]["detail"] == "stored run: alpha = 1.5"
    assert header["sentence"].startswith(f"Stored run: alpha = 1.5, CTR {mean:.3f} ± ")
    assert {t["legendgroup"] for cell in unpack(body)["cells"] for t in cell["figure"]["data"]} == {
        "LinUCB"
    }
    assert [error.partition(";")[0][:12] for error in refused] == [
        "this run is ",
        "a stored run",
        "a stored run",
        "the agent ha",
    ]


def posted(address: str, text: str, origin: str = "", path: str = "instant") -> tuple[int, bytes]:
    """Ask without a websocket: the status, and the body of the answer."""
    connection = HTTPConnection(address, timeout=120)
    connection.request("POST", f"/{path}", text.encode(), {"Origin": origin or f"http://{address}"})
    answer = connection.getresponse()
    status, body = answer.status, answer.read()
    connection.close()
    return status, body


def test_without_a_websocket_the_answer_is_the_same(address: str) -> None:
    with line(address) as client:
        client.send(question(7))
        expected = client.recv(timeout=120)
    assert posted(address, question(7)) == (200, expected)
    assert posted(address, question(7), path="behind/a/proxy/instant") == (200, expected)
    status, body = posted(address, question(params={"alpha": -3}))
    assert status == 200
    assert b"must be a number from 0 to 10" in body
    assert posted(address, "x" * (messages.LONGEST + 1))[0] == 413
    assert posted(address, question(7)) == (200, expected)


def test_requests_that_wait_are_few(address: str) -> None:
    made, found = channel._channel(), list[int]()
    assert posted(address, question())[0] == 200
    asking = [
        threading.Thread(target=lambda: found.append(posted(address, question())[0]))
        for _ in range(channel.WAITING)
    ]
    with made.instant._previews[E.simulator.model_dump_json(), E.seed].lock:
        for thread in asking:
            thread.start()
        wait_for(lambda: made.waiting == channel.WAITING, "the requests to wait")
        assert posted(address, question())[0] == 503
    for thread in asking:
        thread.join()
    assert found == [200] * channel.WAITING
    wait_for(lambda: made.waiting == 0, "the requests to leave")
    assert posted(address, question())[0] == 200


def test_it_answers_below_any_path(address: str) -> None:
    with line(address, "behind/a/proxy/instant") as client:
        assert asked(client, question())[0]["label"] == "LinUCB"


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1.evil.example"])
def test_other_origins_are_refused(address: str, origin: str) -> None:
    with pytest.raises(InvalidStatus) as refusal, line(address, origin=origin):
        pass
    assert refusal.value.response.status_code == 403
    assert posted(address, question(), origin)[0] == 403


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        "[" * 30_000,
        question(seq=-1),
        question(params={}),
        question(params={"alpha": "x"}),
        question(params={"alpha": None}),
        question(more=1),
        question(view={"window": 0}),
        question(view={"x": "y"}),
        question(label=3),
        question(experiment="{"),
        question(experiment="[" * 30_000),
        question(experiment="{}x"),
        question(experiment='{"agents": []}'),
        question(params={"alpha": -3}),
        question(label="Nobody"),
        question(params={"nothing": 1}),
        question(rest="yes"),
        question(params={"alpha": 1e999}),
    ],
)
def test_what_is_no_question_is_refused_in_a_sentence_and_the_next_is_answered(
    address: str, text: str
) -> None:
    with line(address) as client:
        header, body = asked(client, text)
        assert 10 < len(header["error"]) < 400
        assert "Traceback" not in header["error"]
        assert body == b""
        assert asked(client, question(2))[0]["seq"] == 2


def test_a_long_message_ends_the_connection_and_nothing_else(address: str) -> None:
    with line(address) as client:
        client.send("x" * (messages.LONGEST + 1))
        with pytest.raises(ConnectionClosed) as end:
            client.recv(timeout=60)
        assert end.value.rcvd is not None
        assert end.value.rcvd.code == channel.TOO_LONG
    with line(address) as client:
        client.send(b"\x00\xff")
        with pytest.raises(ConnectionClosed):
            client.recv(timeout=60)
    with line(address) as client:
        assert asked(client, question())[0]["label"] == "LinUCB"


def test_of_many_questions_the_newest_is_answered(address: str) -> None:
    n = often(2000, 10_000)
    with line(address) as client, line(address) as other:
        for seq in range(1, n + 1):
            client.send(question(seq))
        assert asked(other, question(5))[0]["seq"] == 5  # meanwhile
        answered = []
        while not answered or answered[-1] < n:
            answered.append(received(client)[0]["seq"])
    assert answered == sorted(set(answered))
    # most were dropped
    assert len(answered) < n / 2


def test_more_visitors_than_there_is_room_for(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channel, "MAX_CLIENTS", 2)
    wait_for(lambda: not channel._channel().asked, "the others to leave")
    with ExitStack() as stack:
        for client in [stack.enter_context(line(address)) for _ in range(2)]:
            assert asked(client, question())[0]["seq"] == 1
        with line(address) as third, pytest.raises(ConnectionClosed) as end:
            third.recv(timeout=60)
        assert end.value.rcvd is not None
        assert end.value.rcvd.code == channel.TOO_MANY
    wait_for(lambda: not channel._channel().asked, "them to leave")


def test_silent_connections_give_way(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel, "MAX_CLIENTS", 2)
    monkeypatch.setattr(channel, "SILENT", 0.0)
    wait_for(lambda: not channel._channel().asked, "the others to leave")
    with ExitStack() as stack:
        silent, _ = (stack.enter_context(line(address)) for _ in range(2))
        wait_for(lambda: len(channel._channel().asked) == 2, "both")
        with line(address) as third:
            assert asked(third, question(4))[0]["seq"] == 4
        with pytest.raises(ConnectionClosed) as end:
            silent.recv(timeout=60)
        assert end.value.rcvd is not None
        assert end.value.rcvd.code == channel.TOO_MANY
    monkeypatch.setattr(channel, "IDLE", 0.1)
    with line(address) as idle, pytest.raises(ConnectionClosed):
        idle.recv(timeout=60)


def test_questions_about_a_simulator_that_is_being_prepared_hold_nobody_up(address: str) -> None:
    other = question(
        5, experiment=experiment("linucb", steps=400, replications=4, seed=2).model_dump_json()
    )
    with ExitStack() as stack:
        waiting = [stack.enter_context(line(address)) for _ in range(2 * channel.QUICK)]
        for client, text in zip(waiting, (question(), other), strict=False):
            asked(client, text)
        with channel._channel().instant._previews[E.simulator.model_dump_json(), E.seed].lock:
            for client in waiting:
                client.send(question())
            with line(address) as client:
                assert asked(client, other)[0]["seq"] == 5
        assert [received(client)[0]["seq"] for client in waiting] == [1] * len(waiting)


def test_who_leaves_before_the_answer_harms_nobody(address: str) -> None:
    for _ in range(20):
        with line(address) as client:
            client.send(question())
    with line(address) as client:
        assert asked(client, question(3))[0]["seq"] == 3
    wait_for(lambda: not channel._channel().asked, "them to leave")


def test_clients_get_the_numbers_that_they_asked_for(address: str) -> None:
    """Several at once, in the same simulator: nobody gets the numbers of another value."""
    values = [0.1 * i for i in range(1, 9)]
    with line(address) as client:
        alone = {
            value: asked(client, question(params={"alpha": value}))[0]["rate"] for value in values
        }
    found: dict[float, list[float]] = {value: [] for value in values}

    def ask(value: float) -> None:
        with line(address) as client:
            for seq in range(1, 6):
                found[value].append(
                    asked(client, question(seq, params={"alpha": value}))[0]["rate"]
                )

    threads = [threading.Thread(target=ask, args=(value,)) for value in values]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {value: [alone[value]] * 5 for value in values}
