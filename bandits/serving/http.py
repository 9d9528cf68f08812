"""Put a service behind addresses: requests are checked here, decisions are made there."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import hashlib
import hmac
import os
import secrets
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import numpy as np
from pydantic import BaseModel, ValidationError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from bandits import __version__
from bandits.base.errors import UserError
from bandits.experiments.validation import refusal

from . import api
from .event_log import LogAwayError
from .service import ARMS, COUNTED, Service, UnknownDecisionError

_EVERY = 0.05
_JUDGE = 1.0
Handler = Callable[[Request], Awaitable[Response]]
T = TypeVar("T", bound=BaseModel)


def application(service: Service, *, token: str = "") -> Starlette:
    """Return the application of a service.

    Parameters
    ----------
    service : Service
    token : str
        Every request must carry it as ``Authorization: Bearer TOKEN``; empty: none is asked for.
    """
    key = _key(service.folder / "user.key")
    started = time.time()

    async def decide(request: Request) -> Response:
        body = await _body(request, api.DecideBody)
        user = ""
        if body.user is not None and body.consent:
            user = _pseudonym(key, body.user)
        answer = service.decide(
            body.context if body.consent else None,
            body.candidates,
            event_id=body.event_id,
            user=user,
        )
        return JSONResponse(answer._asdict())

    async def reward(request: Request) -> Response:
        body = await _body(request, api.RewardBody)
        learned = service.reward(body.event_id, body.reward, reward_id=body.reward_id)
        return _answer(api.RewardAnswer(learned=learned))

    async def health(_: Request) -> Response:
        log = service.log.health()
        reasons = service.problems()
        state = api.HealthAnswer(
            healthy=not reasons,
            problems=reasons,
            alarms=service.noticed(),
            loss_window_seconds=log.window,
            waiting_events=log.waiting,
            uptime_seconds=time.time() - started,
        )
        return _answer(state, 200 if not reasons else 503)

    async def metrics(_: Request) -> Response:
        return Response(exposition(service), media_type="text/plain; version=0.0.4")

    async def version(_: Request) -> Response:
        aliases = service.aliases
        return _answer(
            api.VersionAnswer(
                code=__version__,
                champion=aliases.champion,
                challenger=aliases.challenger,
                previous=aliases.previous,
                share=service.rollout.share if aliases.challenger is not None else 0.0,
            )
        )

    async def explain(request: Request) -> Response:
        return JSONResponse(service.explain(request.path_params["event_id"]))

    async def described(_: Request) -> Response:
        return JSONResponse(api.openapi(token=bool(token)))

    async def run() -> None:
        judged = time.monotonic()
        while True:
            await asyncio.sleep(_EVERY)
            try:
                service.tick()
                if time.monotonic() - judged > _JUDGE:
                    service.judge()
                    judged = time.monotonic()
            except (UserError, OSError) as error:
                # the versions that serve go on; /health shows why others do not
                service.report(str(error))

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        task = asyncio.create_task(run())
        yield
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        service.close()

    def guarded(handler: Handler) -> Handler:
        async def answer(request: Request) -> Response:
            if token and not secrets.compare_digest(
                request.headers.get("authorization", ""), f"Bearer {token}"
            ):
                return _refused(401, "the request must carry the token of this service")
            try:
                return await handler(request)
            except _RequestError as error:
                return _refused(error.status, str(error))
            except UnknownDecisionError as error:
                return _refused(404, str(error))
            except LogAwayError as error:
                return _refused(503, str(error))
            except UserError as error:
                return _refused(422, str(error))

        return answer

    routes = [
        Route("/decide", guarded(decide), methods=["POST"]),
        Route("/reward", guarded(reward), methods=["POST"]),
        Route("/health", guarded(health)),
        Route("/metrics", guarded(metrics)),
        Route("/version", guarded(version)),
        Route("/explain/{event_id}", guarded(explain)),
        Route("/openapi.json", guarded(described)),
    ]
    return Starlette(routes=routes, lifespan=lifespan)


def exposition(service: Service) -> bytes:
    """Return the numbers of a service in the text format of Prometheus."""
    from prometheus_client import CollectorRegistry, Gauge, generate_latest

    registry = CollectorRegistry()
    decisions = Gauge("bandits_decisions", "Decisions by arm", ["arm"], registry=registry)
    for arm in ARMS:
        decisions.labels(arm).set(service.counts[arm])
    for name in COUNTED:
        Gauge(f"bandits_{name}", f"Number of {name}".replace("_", " "), registry=registry).set(
            service.counts[name]
        )
    seconds = list(service.seconds)
    latency = Gauge(
        "bandits_decision_seconds", "Time of a decision", ["quantile"], registry=registry
    )
    for quantile in (0.5, 0.99):
        latency.labels(str(quantile)).set(np.quantile(seconds, quantile) if seconds else 0.0)
    log = service.log.health()
    Gauge("bandits_log_waiting", "Events not committed", registry=registry).set(log.waiting)
    Gauge("bandits_log_dropped", "Events given up", registry=registry).set(log.dropped)
    share = service.rollout.share if service.aliases.challenger is not None else 0.0
    alarms = Gauge("bandits_alarms", "Alarms by monitor", ["monitor"], registry=registry)
    for kind, n in service.alarmed.items():
        alarms.labels(kind).set(n)
    if service.unread is not None:
        Gauge("bandits_monitors_unread", "Events the monitors did not read", registry=registry).set(
            service.unread
        )
    Gauge("bandits_rollout_share", "Share of the challenger", registry=registry).set(share)
    if (verdict := service.verdict) is not None:
        interval = Gauge(
            "bandits_rollout_difference",
            "Anytime-valid bounds of challenger minus champion, per decision",
            ["bound"],
            registry=registry,
        )
        interval.labels("low").set(verdict.low)
        interval.labels("high").set(verdict.high)
    versions = Gauge("bandits_version", "Versions that serve", ["alias"], registry=registry)
    for alias, number in service.aliases._asdict().items():
        if number is not None:
            versions.labels(alias).set(number)
    Gauge(
        "bandits_version_age_seconds", "Seconds since a version was registered", registry=registry
    ).set(service.age)
    return bytes(generate_latest(registry))


class _RequestError(Exception):
    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


async def _body(request: Request, model: type[T]) -> T:
    """Return the body of a request, which is JSON of at most 256 kB."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise _RequestError(415, "the content type must be application/json")
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > api.MAX_BODY:
            raise _RequestError(413, "the body must have at most 256 kB")
    try:
        return model.model_validate_json(bytes(body))
    except ValidationError as error:
        raise _RequestError(422, refusal(error, model, "the body")) from None


def _answer(model: BaseModel, status: int = 200) -> Response:
    return JSONResponse(model.model_dump(), status_code=status)


def _refused(status: int, sentence: str) -> Response:
    return JSONResponse({"error": sentence}, status_code=status)


def pseudonym(folder: Path, user: str) -> str:
    """Return what the log of a service calls a user."""
    return _pseudonym(_key(folder / "user.key"), user)


def fingerprint(folder: Path) -> str:
    """Return a text that is the same for the same key of pseudonyms, and does not give it away."""
    return hashlib.sha256(b"key" + _key(folder / "user.key")).hexdigest()


def _pseudonym(key: bytes, user: str) -> str:
    return hmac.new(key, user.encode(), hashlib.sha256).hexdigest()


def _key(path: Path) -> bytes:
    """Return the key of the users' pseudonyms, made at the first start."""
    with contextlib.suppress(FileExistsError):
        handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(secrets.token_bytes(32))
    return path.read_bytes()


def serve(
    service: Service, host: str, port: int, *, token: str = "", ready: Callable[[str], None]
) -> None:
    """Answer requests until the process is interrupted.

    Parameters
    ----------
    service : Service
    host, port
        Where to listen; port 0 takes a free one.
    token : str
        See `application`.
    ready : callable
        Receives the address, before the first request is answered.

    Raises
    ------
    OSError
        The address is in use.
    """
    import uvicorn

    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # with the protocol named, asyncio sends answers at once; else each waits 40 ms to be collected
    with socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        service.warm_up()
        # what a start leaves is not looked through again: that takes 100 ms, and requests wait
        gc.collect()
        gc.freeze()
        # not before: who is refused may go elsewhere
        listening.listen()
        name = f"[{host}]" if ":" in host else host
        ready(f"http://{name}:{listening.getsockname()[1]}")
        app = application(service, token=token)
        config = uvicorn.Config(app, log_level="warning", access_log=False)
        uvicorn.Server(config).run(sockets=[listening])
