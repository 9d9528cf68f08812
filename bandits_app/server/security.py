"""Refuse foreign hosts, origins and frames before Streamlit sees a request, and mark requests of a
person at the server's console.
"""

from __future__ import annotations

import ipaddress
import os
import re
import secrets
import socket
from functools import lru_cache
from urllib.parse import parse_qs, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import PlainTextResponse, RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocketClose
from streamlit import config

from bandits.base.errors import UserError

CONSOLE_HEADER = "x-bandits-console"
"""Set by `Guard` alone: the browser has opened the link of the console.

A page reads it in its headers.
"""

_REFUSED = "This server does not answer to that name or origin. See docs/deploy.md, Public names.\n"
# the field of the console's link, and characters of a token that cannot be guessed
_FIELD, SHORTEST_TOKEN = "console", 16
CONSOLE_VARIABLE = "BANDITS_CONSOLE_TOKEN"


@lru_cache(maxsize=1)
def console_token() -> str:
    """Return what the link of the console holds: ``BANDITS_CONSOLE_TOKEN``, or a random text.

    Raises
    ------
    UserError
        The setting is short, or has other characters than letters, digits, - and _.
    """
    token = os.environ.get(CONSOLE_VARIABLE, "")
    if token and not re.fullmatch(rf"[\w-]{{{SHORTEST_TOKEN},}}", token, re.ASCII):
        raise UserError(
            f"{CONSOLE_VARIABLE} must have at least {SHORTEST_TOKEN} letters, digits, - or _"
        )
    return token or secrets.token_urlsafe(24)


def console_link() -> str:
    """Return the link that makes a browser the console, as it is opened on this machine."""
    port, base = config.get_option("server.port"), config.get_option("server.baseUrlPath")
    path = f"/{base.strip('/')}/" if base else "/"
    return f"http://127.0.0.1:{port}{path}?{_FIELD}={console_token()}"


def _cookie() -> str:
    # browsers send a cookie to every port of a host
    return f"bandits-console-{config.get_option('server.port')}"


# a site, with or without scheme and port, or all sites below one: https://*.example.org:8080
_ANCESTOR = re.compile(r"'self'|(https?://)?(\*\.)?[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:\d{1,5})?")
NO_SITE = "'none'"


@lru_cache(maxsize=1)
def frame_ancestors() -> str:
    """Return the sites that may show the app in a frame: ``BANDITS_FRAME_ANCESTORS``.

    Empty without any. They are separated by spaces or commas.

    Raises
    ------
    UserError
        One of them is no site.
    """
    sites = _listed("BANDITS_FRAME_ANCESTORS")
    for site in sites:
        if not _ANCESTOR.fullmatch(site):
            raise UserError(
                f"BANDITS_FRAME_ANCESTORS: '{site}' is no site; write, for example, "
                "https://course.example.org"
            )
    return " ".join(sites)


def _listed(variable: str) -> list[str]:
    return os.environ.get(variable, "").lower().replace(",", " ").split()


class Guard:
    """Middleware that refuses foreign hosts and origins, forbids frames, and marks requests of the
    console.

    The console is a browser that has opened `console_link`; where it runs does not matter, because
    a tunnel or a proxy gives every visitor an address of this machine.

    A name that another site lets point to this machine (DNS rebinding) is no host of ours; the
    pages of that site have another origin and may not show ours in a frame, unless
    `frame_ancestors` names it. Nothing is looked up in the network.

    Parameters
    ----------
    app : ASGIApp
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on."""
        if scope["type"] not in ("http", "websocket"):
            return await self._app(scope, receive, send)

        async def send_protected(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                allowed = frame_ancestors()
                headers["Content-Security-Policy"] = f"frame-ancestors {allowed or NO_SITE}"
                if not allowed:
                    headers["X-Frame-Options"] = "DENY"
            await send(message)

        headers = Headers(scope=scope)
        if not (is_known_host(headers.get("host")) and _is_known_origin(headers)):
            websocket = scope["type"] == "websocket"
            refusal = WebSocketClose(1008) if websocket else PlainTextResponse(_REFUSED, 403)
            return await refusal(scope, receive, send_protected)
        fields = parse_qs(scope.get("query_string", b"").decode("latin-1"))
        if scope["type"] == "http" and _is_token(fields.get(_FIELD, [""])[0]):
            answer = RedirectResponse("./", 303)
            answer.set_cookie(_cookie(), console_token(), httponly=True, samesite="strict")
            return await answer(scope, receive, send_protected)
        at_console = _is_token(cookie_parser(headers.get("cookie", "")).get(_cookie(), ""))
        # names of functions and counts of caches
        if scope["path"].endswith("/_stcore/metrics") and not at_console:
            return await PlainTextResponse("Not found.\n", 404)(scope, receive, send_protected)
        kept = [
            (name, value)
            for name, value in scope["headers"]
            if name.decode("latin-1").lower() != CONSOLE_HEADER
        ]
        marker = [(CONSOLE_HEADER.encode(), b"1")] if at_console else []
        return await self._app({**scope, "headers": [*kept, *marker]}, receive, send_protected)


def is_known_host(host: str | None) -> bool:
    """Return whether a ``Host`` header names this server.

    Known are the names in ``server.allowedHosts``; without these, this machine's own names, those
    in ``BANDITS_HOSTS``, every IP address (which no one else can let point here) and the public
    name in ``browser.serverAddress``."""
    name = _hostname(f"//{host}") if host else None
    if not name:
        return False
    if allowed := [
        str(entry).strip().lower().rstrip(".") for entry in config.get_option("server.allowedHosts")
    ]:
        return any(
            entry in ("*", name) or (entry.startswith("*.") and name.endswith(entry[1:]))
            for entry in allowed
        )
    return (
        name in _machine_names()
        or name in _listed("BANDITS_HOSTS")
        or name.endswith(".localhost")
        or _is_address(name)
        or name == _public_name()
    )


def _is_known_origin(headers: Headers) -> bool:
    """Return whether a request comes from a page of this server, or from no page."""
    origin = headers.get("origin")
    if origin is None or not config.get_option("server.enableCORS"):
        return True
    if origin.partition("://")[2] == headers.get("host"):
        return True
    name = _hostname(origin)
    return (name is not None and name == _public_name()) or origin in config.get_option(
        "server.corsAllowedOrigins"
    )


def _is_token(text: str) -> bool:
    return secrets.compare_digest(text.encode(), console_token().encode())


def _hostname(url: str) -> str | None:
    """Return the host of an address in lower case; None if the address is no address."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return None
    plain = parts.username is None and not (parts.path or parts.query or parts.fragment)
    return parts.hostname.lower().rstrip(".") if parts.hostname and plain else None


@lru_cache(maxsize=1)
def _machine_names() -> frozenset[str]:
    name = socket.gethostname().lower()
    return frozenset(
        {"localhost", name, f"{name.partition('.')[0]}", f"{name.partition('.')[0]}.local"} - {""}
    )


def _public_name() -> str | None:
    if not config.is_manually_set("browser.serverAddress"):
        return None
    return str(config.get_option("browser.serverAddress")).lower().rstrip(".")


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
