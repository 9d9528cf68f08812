"""Refuse foreign hosts, origins and frames before Streamlit sees a request, and mark requests from
this machine.
"""

from __future__ import annotations

import ipaddress
import os
import re
import socket
from functools import lru_cache
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocketClose
from streamlit import config

from bandits.base.errors import UserError

CONSOLE_HEADER = "x-bandits-console"
"""Set by `Guard` alone: the request comes from a browser on the server itself.

A page reads it in its headers.
"""

_REFUSED = "This server does not answer to that name or origin. See docs/deploy.md, Public names.\n"
# what proxies add
_FORWARDED = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via")


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
    """Middleware that refuses foreign hosts and origins, forbids frames, and marks requests from
    this machine.

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
        at_console = _is_at_console(scope, headers)
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


def _is_at_console(scope: Scope, headers: Headers) -> bool:
    """Return whether a browser on this machine sends a request, with no proxy in between.

    A proxy may leave out what it is expected to add, so host and origin must be this machine's too,
    and the server must have no public name."""
    client, public = scope.get("client"), _public_name()
    names = (
        client[0] if client else None,
        _hostname(f"//{headers.get('host')}"),
        _hostname(headers.get("origin", "")),
    )
    local = all(name is not None and _is_loopback(name) for name in names)
    published = public is not None and not _is_loopback(public)
    return local and not published and not any(name in headers for name in _FORWARDED)


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


def _is_loopback(name: str) -> bool:
    return name == "localhost" or (_is_address(name) and ipaddress.ip_address(name).is_loopback)
