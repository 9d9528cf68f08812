"""The event log of a service beyond one machine: a stream of Redis, which many processes write and
one reads.

An event is acknowledged when the server has it. The reader removes what it has stored elsewhere, so
that the server holds what is not yet learned, and of each decision what its reward needs.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import time as clock
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from bandits.base.errors import UserError
from bandits.base.extras import require

from .event_log import AlreadyDecidedError, Event, Health, LogAwayError

_STREAM, _HEAD, _NUMBER, _READER, _USERS = (
    f"bandits:{name}" for name in ("events", "head", "head-number", "reader", "users")
)
_OF = "bandits:of:"
# seconds that an answer of the server may take, and until it is asked again where it took longer
_TIMEOUT = 5.0
_BATCH = 500
# in one step, so that of two processes with the same event id one decides; an append that is sent
# again, because its answer was lost, is known by its token
_APPEND = """
for _, row in ipairs(redis.call('LRANGE', KEYS[2], -100, -1)) do
  if string.find(row, ARGV[7], 1, true) then return cjson.decode(row)[1] end
end
if ARGV[2] == 'decision' and redis.call('EXISTS', KEYS[2]) == 1 then return 0 end
local id = redis.call('XADD', KEYS[1], '0-*', 'time', ARGV[1], 'kind', ARGV[2],
  'event_id', ARGV[3], 'user', ARGV[4], 'body', ARGV[5])
local position = tonumber(string.sub(id, 3))
redis.call('RPUSH', KEYS[2], cjson.encode({position, unpack(ARGV)}))
redis.call('EXPIRE', KEYS[2], ARGV[6])
return position
"""
# nothing, where the server was started again since the events were read
_REMOVE = """
if string.find(redis.call('INFO', 'server'), ARGV[1], 1, true) then
  redis.call('XTRIM', KEYS[1], 'MINID', ARGV[2])
end
"""
T = TypeVar("T")


class RedisLog:
    """Append events, and read those that are not yet removed, in their order.

    Parameters
    ----------
    url : str
        ``redis://HOST:PORT/DATABASE``: a database for each service.
    keep : float
        Seconds for which a decision can be found.

    Raises
    ------
    UserError
        The server is away, older than version 7, or loses what it acknowledges when it is killed.
    """

    def __init__(self, url: str, *, keep: float) -> None:
        require("redis")
        import redis
        from redis.backoff import NoBackoff
        from redis.retry import Retry

        self.keep = keep
        self._errors: Any = redis.RedisError
        self._away: Any = (redis.ConnectionError, redis.TimeoutError)
        # a server that hangs is not asked again until then: each question would wait as long
        self._hangs, self._silent_until = redis.TimeoutError, 0.0
        try:
            self._server: Any = redis.Redis.from_url(
                url,
                socket_timeout=_TIMEOUT,
                socket_connect_timeout=_TIMEOUT,
                # a connection may be older than the server's last start
                retry=Retry(NoBackoff(), 1, (redis.ConnectionError,)),
            )
        except ValueError as error:
            raise UserError(f"log: {error}") from None
        at = self._server.connection_pool.connection_kwargs
        # without the password
        self.name = f"redis at {at.get('host', at.get('path', ''))}:{at.get('port', '')}"
        about = self._asked(lambda: self._server.info("server"))
        if int(str(about["redis_version"]).split(".")[0]) < 7:
            raise UserError(
                f"{self.name} is version {about['redis_version']}; at least 7 is needed"
            )
        stores = self._asked(lambda: self._server.config_get("append*"))
        if stores.get("appendonly") != "yes" or stores.get("appendfsync") == "no":
            raise UserError(
                f"{self.name} would lose events: start it with appendonly yes, and appendfsync "
                "always (or everysec, which may lose a second)"
            )
        self.window = 0.0 if stores["appendfsync"] == "always" else 1.0
        self._append = self._server.register_script(_APPEND)
        self._remove = self._server.register_script(_REMOVE)

    def append(
        self,
        kind: str,
        event_id: str,
        body: Mapping[str, Any],
        *,
        user: str = "",
        time: float | None = None,
    ) -> int:
        """Add an event, and return its position; the server has it.

        Raises
        ------
        AlreadyDecidedError
            It is a decision, and there is one with this event id.
        LogAwayError
            The server does not answer.
        """
        moment = clock.time() if time is None else time
        text = json.dumps(body, allow_nan=False)
        values: list[str | int] = [
            repr(moment),
            kind,
            event_id,
            user,
            text,
            max(1, round(self.keep)),
            _token(event_id, body.get("reward_id")),
        ]
        position = self._asked(
            lambda: self._append(keys=[_STREAM, f"{_OF}{event_id}"], args=values)
        )
        if not position:
            raise AlreadyDecidedError(event_id)
        return int(position)

    def events(self, after: int = 0) -> Iterator[Event]:
        """Yield the events behind a position, in their order."""
        while found := self._asked(
            lambda: self._server.xrange(_STREAM, f"(0-{after}", count=_BATCH)  # noqa: B023
        ):
            for name, fields in found:
                after = int(name.split(b"-")[1])
                values = [fields[key.encode()].decode() for key in Event._fields[1:]]
                yield _event(after, *values)

    def find(self, event_id: str) -> list[Event]:
        """Return the events of one decision, for as long as they are kept."""
        rows = self._asked(lambda: self._server.lrange(f"{_OF}{event_id}", 0, -1))
        return [_event(*json.loads(row)[:6]) for row in rows]

    def health(self) -> Health:
        """Return the state of the log; events wait until the reader has stored them."""
        try:
            waiting = self._asked(lambda: self._server.xlen(_STREAM))
        except LogAwayError as error:
            return Health(self.window, 0, 0, str(error))
        return Health(self.window, int(waiting), 0, "")

    def close(self) -> None:
        """Close the connection."""
        self._server.close()

    # for the one process that reads

    def claim(self, reader: str, after: int) -> None:
        """Become the reader of the stream, or remain it.

        Parameters
        ----------
        reader : str
            Its name, the same after a restart.
        after : int
            Position up to which it has read.

        Raises
        ------
        UserError
            The stream has another reader, or has begun anew since it was read.
        """
        if after and not self._asked(lambda: self._server.exists(_READER)):
            raise UserError(
                f"{self.name} has no reader, and the folder holds {after:,} of its events: the "
                "server has lost its data; learn in a new folder"
            )
        self._asked(lambda: self._server.set(_READER, reader, nx=True))
        if self._asked(lambda: self._server.get(_READER)) != reader.encode():
            raise UserError(f"the events of {self.name} are learned in another folder")

    def started(self) -> tuple[str, int]:
        """Return the name of the server's last start, and the last position that it gave."""
        name = self._asked(lambda: self._server.info("server")["run_id"])
        exists = self._asked(lambda: self._server.exists(_STREAM))
        last = self._asked(lambda: self._server.xinfo_stream(_STREAM)) if exists else None
        return str(name), int(last["last-generated-id"].split(b"-")[1]) if last else 0

    def remove(self, position: int, start: str) -> None:
        """Remove the events up to a position, which were read since a start of the server; `find`
        still finds them.
        """
        self._asked(lambda: self._remove(keys=[_STREAM], args=[start, f"0-{position + 1}"]))

    def publish(self, head: bytes) -> None:
        """Replace the head with which the others decide."""

        def put() -> None:
            with self._server.pipeline(transaction=True) as together:
                together.set(_HEAD, head)
                together.incr(_NUMBER)
                together.execute()

        self._asked(put)

    def forget(self, user: str) -> int:
        """Erase the events of a user, and the rewards of their decisions; return how many.

        Raises
        ------
        UserError
            The user is the empty text, which stands for unknown users.
        """
        if not user:
            raise UserError("user: must not be empty")
        mine, erased = set(), 0
        for key in self._asked(lambda: list(self._server.scan_iter(f"{_OF}*", count=1_000))):
            rows = self._asked(lambda: self._server.lrange(key, 0, -1))  # noqa: B023
            if any(json.loads(row)[4] == user for row in rows):
                mine.add(key.decode().removeprefix(_OF))
                erased += len(rows)
                self._asked(lambda: self._server.delete(key))  # noqa: B023
        for event in list(self.events()):
            if event.user == user or event.event_id in mine:
                self._asked(lambda: self._server.xdel(_STREAM, f"0-{event.position}"))  # noqa: B023
        # what was deleted stays in the server's own file otherwise
        self._asked(lambda: self._server.bgrewriteaof())
        return erased

    # for those that decide

    def head(self, known: int = 0) -> tuple[int, bytes] | None:
        """Return the newest head with its number; None: it is the known one, or there is none."""
        if int(self._asked(lambda: self._server.get(_NUMBER)) or 0) == known:
            return None
        number, head = self._asked(lambda: self._server.mget(_NUMBER, _HEAD))
        return None if head is None else (int(number), head)

    def same_users(self, fingerprint: str) -> bool:
        """Return whether all processes call users alike: with the key of the first."""
        self._asked(lambda: self._server.set(_USERS, fingerprint, nx=True))
        return bool(self._asked(lambda: self._server.get(_USERS)) == fingerprint.encode())

    def _asked(self, ask: Callable[[], T]) -> T:
        if clock.monotonic() < self._silent_until:
            raise LogAwayError(f"{self.name} does not answer: it hangs")
        try:
            return ask()
        except self._errors as error:
            if isinstance(error, self._hangs):
                self._silent_until = clock.monotonic() + _TIMEOUT
            problem = "does not answer" if isinstance(error, self._away) else "refuses"
            raise LogAwayError(f"{self.name} {problem}: {error}") from error


def _token(event_id: str, reward_id: str | None) -> str:
    """Return a name of one append; the same for a reward with an id, from all processes."""
    if reward_id is None:
        return secrets.token_hex(16)
    return hashlib.sha256(json.dumps([event_id, reward_id]).encode()).hexdigest()


def _event(position: int, time: str, kind: str, event_id: str, user: str, body: str) -> Event:
    return Event(position, float(time), kind, event_id, user, json.loads(body))
