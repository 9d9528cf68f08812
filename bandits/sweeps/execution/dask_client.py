"""Blocks on a Dask cluster: other machines, started with Dask's own commands and reached over mutual TLS.

What Dask does well is left to it: certificates come from its configuration, a block whose worker dies is begun again
by its scheduler. What is added: nobody computes who would compute other numbers, and a cluster that is lost is said.
"""

from __future__ import annotations

import ipaddress
import logging
import pickle
import ssl
import threading
import time
import uuid
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from bandits.base.errors import UserError
from bandits.base.files import Arrays
from bandits.base.formatting import short
from bandits.runtime.task_queue import settle
from bandits.sweeps.blocks import Block
from bandits.sweeps.sweep import Sweep

from . import dask_worker
from .executors import ExecutorLostError

CONNECT = 10.0  # seconds for the scheduler to answer
FIRST = 30.0  # seconds for the first worker to be there
KNOWN = 300.0  # seconds for the known answer; a worker that is new compiles before it
SILENCE = 60.0  # seconds without a scheduler or a worker, then the cluster is given up
LOOK = 1.0  # seconds between looks at the cluster

VARIABLES = {"ca_file": "CA_FILE", "cert": "CLIENT__CERT"}  # of DASK_DISTRIBUTED__COMM__TLS__...


class DaskExecutor:
    """On the workers of a Dask scheduler.

    Parameters
    ----------
    address : str
        ``tls://host:port``; ``tcp://host:port`` on this machine only. Certificates: Dask's configuration.
    silence : float
        Seconds without a scheduler or a worker after which it is lost.

    Raises
    ------
    UserError
        A bad address; nobody there; other versions, or other numbers, than here.
    """

    note = ""

    def __init__(self, address: str, *, silence: float = SILENCE) -> None:
        dask = _distributed()
        self.address, self._silence = _checked(address), silence
        self._ours, self._client = (dask_worker.make(), dask_worker.probe()), _connect(dask, self.address)
        self._topic = f"bandits-{uuid.uuid4().hex}"
        self._open: dict[str, tuple[Future[Arrays], Callable[[int], None]]] = {}
        self._ended, self._closing, self._lost = threading.Event(), threading.Lock(), ""
        try:
            self.workers = self._judged()
        except BaseException:
            self.close()
            raise
        self._client.subscribe_topic(self._topic, self._hear)
        threading.Thread(target=self._watch, daemon=True).start()

    def submit(self, sweep: Sweep, block: Block, told: Callable[[int], None]) -> Future[Arrays]:
        """Hand a block to the scheduler.

        Raises
        ------
        Lost
            The cluster is gone; so do futures.
        """
        self._require()
        key, future = f"block-{uuid.uuid4().hex}", Future[Arrays]()
        self._open[key] = future, told
        asked = sweep.model_dump_json(), block.rows, *self._ours, self._topic, key
        try:
            theirs = self._ask(dask_worker.block, *asked, key=key)
            theirs.add_done_callback(partial(self._take, future))
        except (OSError, RuntimeError, ValueError) as error:  # what Dask says of a client that was closed meanwhile
            raise ExecutorLostError(self._gone(error)) from None
        future.add_done_callback(lambda _: self._release(key, theirs))
        if self._lost:  # in between
            settle(future, ExecutorLostError(self._lost))
        return future

    def close(self) -> None:
        """Let go of the cluster; whatever it still computes stops within a second."""
        self._ended.set()
        with self._closing, _silent(), suppress(OSError, RuntimeError):
            self._client.close(timeout=CONNECT)

    # -- before the first block --------------------------------------------------------------------------------

    def _judged(self) -> int:
        """How many workers there are; refused unless each of them computes what is computed here."""
        threads = self._threads()
        if many := next((w for w, n in threads.items() if n != 1), None):
            raise UserError(
                f"the worker {many} has {threads[many]} threads; start it with --nthreads 1 (several: --nworkers)"
            )
        asked = {w: self._ask(dask_worker.unlike, *self._ours, workers=[w]) for w in threads}
        end = time.monotonic() + KNOWN
        for worker, theirs in asked.items():
            try:
                sentence = theirs.result(timeout=max(end - time.monotonic(), 0.1))
            except TimeoutError:
                raise UserError(f"the worker {worker} has not answered a small question in {KNOWN:.0f} s") from None
            except Exception as error:  # noqa: BLE001 - whatever a foreign process runs into
                raise UserError(f"the worker {worker} cannot be used: {_told(error)}") from None
            if sentence:
                raise UserError(sentence)
        return len(threads)

    def _threads(self) -> dict[str, int]:
        with suppress(TimeoutError):
            self._client.wait_for_workers(1, timeout=FIRST)
        if not (found := self._client.nthreads()):
            raise UserError(
                f"the scheduler at {self.address} has no workers; start one: dask worker {self.address} --nthreads 1"
            )
        return dict(found)

    def _ask(self, function: Callable[..., object], *arguments: object, **options: Any) -> Any:
        """The Dask future of a call on a worker."""
        return self._client.submit(
            pickle.loads, pickle.dumps(dask_worker.Call(function, *arguments)), pure=False, **options
        )

    # -- behind the scenes -------------------------------------------------------------------------------------

    def _require(self) -> None:
        if self._client.status != "running":
            self._lose(self._gone())
        if self._lost:
            raise ExecutorLostError(self._lost)

    def _hear(self, event: tuple[float, dict[str, Any]]) -> None:
        message = event[1]
        if (known := self._open.get(message["key"])) is not None:
            known[1](message["step"])

    def _take(self, future: Future[Arrays], theirs: Any) -> None:
        """Fetch a block that is done, or the reason why it is not."""
        if future.done():
            return
        try:
            settle(future, theirs.result())
        except (ExecutorLostError, UserError) as said:
            settle(future, said)
        except CancelledError:  # not by us: the connection broke
            self._lose(self._gone())
        except Exception as error:  # noqa: BLE001 - whatever a foreign process ran into; somebody waits for the future
            if _broke(error):
                self._lose(self._gone())
            else:
                settle(future, _meant(error))

    def _release(self, key: str, theirs: Any) -> None:
        """Nobody wants it any more: its scheduler forgets it, and a worker that is at it sees that."""
        self._open.pop(key, None)
        with suppress(RuntimeError):  # the client was closed, which releases all
            theirs.release()

    def _watch(self) -> None:
        """A thread's life: how many workers there are, and whether anybody is there at all."""
        heard = time.monotonic()
        while not self._ended.wait(LOOK):
            try:
                threads = self._client.sync(self._client.scheduler.ncores, callback_timeout=CONNECT)
            except (OSError, RuntimeError, AttributeError, CancelledError):  # of a connection that is broken
                threads = {}
            silent = time.monotonic() - heard
            if threads:
                self.workers, heard = len(threads), time.monotonic()
            elif silent > self._silence:
                self._lose(f"the cluster at {self.address} has had no worker for {silent:.0f} s")
        self.close()

    def _lose(self, sentence: str) -> None:
        """Give the cluster up, and with it all that is not done."""
        self._lost = self._lost or sentence
        self._ended.set()
        for future, _ in list(self._open.values()):
            settle(future, ExecutorLostError(self._lost))

    def _gone(self, error: Exception | None = None) -> str:
        return f"the scheduler at {self.address} is gone" + (f" ({_told(error)})" if error else "")


def _distributed() -> Any:
    try:
        import distributed
    except ImportError:
        raise UserError(
            "a sweep on a cluster needs Dask, which is not installed; pip install -r requirements-cluster.txt"
        ) from None
    logging.getLogger("distributed.batched").setLevel(logging.WARNING)  # a connection that broke is said by us
    return distributed


def _checked(address: str) -> str:
    """An address that may be connected to: encrypted, or on this machine."""
    try:
        parts = urlsplit(address)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if not host or not port or parts.scheme not in ("tls", "tcp") or parts.netloc.count("@") or parts.path.strip("/"):
        raise UserError(
            f"the cluster is {short(address)}; it must be tls://host:port, or tcp://host:port on this machine"
        )
    if parts.scheme == "tcp" and not _local(host):
        raise UserError(
            f"the cluster {short(address)} is not encrypted; tcp:// is for this machine only (127.0.0.1), use tls://"
        )
    return address.rstrip("/")


def _local(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _connect(dask: Any, address: str) -> Any:
    if address.startswith("tls:"):
        _require_certificates(dask)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of other versions: it is told in a sentence of ours, or does not matter
            return dask.Client(address, timeout=CONNECT, set_as_default=False)
    except (OSError, ssl.SSLError, ValueError) as error:
        raise UserError(f"no Dask scheduler answers at {address}: {_told(error)}") from None


def _require_certificates(dask: Any) -> None:
    import dask as configuration

    if configuration.config.get("distributed.client.security-loader", None):
        return  # they come from elsewhere
    tls = dask.Security().get_tls_config_for_role("client")
    for name, variable in VARIABLES.items():
        if not tls[name]:
            raise UserError(f"a tls:// cluster needs certificates; set DASK_DISTRIBUTED__COMM__TLS__{variable}")


def _broke(error: Exception) -> bool:
    """Whether it is the connection that failed, while a result was fetched."""
    from distributed.comm import CommClosedError

    return isinstance(error, CommClosedError)


def _meant(error: Exception) -> ExecutorLostError | UserError:
    """What became of a block, in a sentence: its workers died, there are none, or it cannot be computed."""
    from distributed import KilledWorker
    from distributed.scheduler import NoWorkerError

    if isinstance(error, KilledWorker):
        return UserError(f"{error.allowed_failures + 1} workers of the cluster died of the same block of this sweep")
    return (ExecutorLostError if isinstance(error, NoWorkerError) else UserError)(_told(error))


@contextmanager
def _silent() -> Iterator[None]:
    """Without what Dask's client logs while it is closed: that a scheduler does not answer is said already."""
    logger = logging.getLogger("distributed.client")
    logger.disabled = True
    try:
        yield
    finally:
        logger.disabled = False


def _told(error: BaseException) -> str:
    """What an error of somebody else's says, in one line."""
    return short(str(error) or type(error).__name__, 200)
