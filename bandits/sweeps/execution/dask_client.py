"""Compute blocks on a Dask cluster: other machines, started with Dask's commands and reached over
mutual TLS.

Dask provides the certificates (from its configuration) and restarts a block whose worker dies. This
module adds two checks: workers that would compute other numbers are refused, and a lost cluster is
reported. What workers return is judged (`audit`)."""

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
from bandits.base.extras import require
from bandits.base.files import Arrays
from bandits.base.formatting import short
from bandits.runtime.task_queue import settle
from bandits.sweeps.blocks import Block
from bandits.sweeps.sweep import Sweep

from . import dask_worker
from .audit import Audit
from .executors import ExecutorLostError, InProcessExecutor

# seconds for the scheduler to answer
CONNECT_TIMEOUT = 10.0
# seconds for the first worker to register
WORKER_TIMEOUT = 30.0
# seconds for the probe; a new worker compiles first
PROBE_TIMEOUT = 300.0
# seconds without a scheduler or a worker, after which the cluster counts as lost
MAX_SILENCE = 60.0
# seconds between checks of the cluster
POLL_INTERVAL = 1.0

# of DASK_DISTRIBUTED__COMM__TLS__...
VARIABLES = {"ca_file": "CA_FILE", "cert": "CLIENT__CERT"}


class DaskExecutor:
    """Computes blocks on the workers of a Dask scheduler.

    Parameters
    ----------
    address : str
        ``tls://host:port``; ``tcp://host:port`` on this machine only. Certificates come from Dask's
        configuration.
    audit : Audit, optional
        Judges the blocks; one that computes in this process by default.
    silence : float
        Seconds without a scheduler or a worker after which the cluster counts as lost.

    Raises
    ------
    UserError
        If the address is invalid, no scheduler or worker answers, or a worker has other versions or
        numbers.
    """

    def __init__(
        self, address: str, audit: Audit | None = None, *, silence: float = MAX_SILENCE
    ) -> None:
        dask = _distributed()
        self.audit = audit or Audit(InProcessExecutor)
        self.address, self._silence = _check_address(address), silence
        self._expected = dask_worker.fingerprint(), dask_worker.probe()
        self._client = _connect(dask, self.address)
        self._topic = f"bandits-{uuid.uuid4().hex}"
        self._open: dict[str, tuple[Future[Arrays], Callable[[int], None]]] = {}
        self._ended, self._closing, self._lost = threading.Event(), threading.Lock(), ""
        try:
            self.workers = self._check_workers()
        except BaseException:
            self.close()
            raise
        self._client.subscribe_topic(self._topic, self._on_event)
        threading.Thread(target=self._watch, daemon=True).start()

    @property
    def note(self) -> str:
        """Which worker was shut out, for the user; usually empty."""
        return self.audit.note

    def submit(self, sweep: Sweep, block: Block, on_step: Callable[[int], None]) -> Future[Arrays]:
        """Submit a block to the scheduler.

        Raises
        ------
        ExecutorLostError
            If the cluster is lost; futures may raise it too.
        """
        self._require_running()
        key, future = f"block-{uuid.uuid4().hex}", Future[Arrays]()
        self._open[key] = future, on_step
        arguments = sweep.model_dump_json(), block.rows, *self._expected, self._topic, key
        try:
            remote = self._call(dask_worker.compute_block, *arguments, key=key, **self._placement())
            remote.add_done_callback(partial(self._collect, sweep, block, future))
        except (OSError, RuntimeError, ValueError) as error:
            # raised by Dask if the client was closed meanwhile
            raise ExecutorLostError(self._lost_message(error)) from None
        future.add_done_callback(lambda _: self._release(key, remote))
        if self._lost:  # meanwhile
            settle(future, ExecutorLostError(self._lost))
        return future

    def close(self) -> None:
        """Disconnect from the cluster; running blocks stop within a second."""
        self._ended.set()
        with self._closing, _quiet_client(), suppress(OSError, RuntimeError):
            self._client.close(timeout=CONNECT_TIMEOUT)

    # -- before the first block
    # --------------------------------------------------------------------------------

    def _check_workers(self) -> int:
        """Return the number of workers.

        Refuse a cluster with workers that compute other numbers.
        """
        threads = {w: n for w, n in self._threads().items() if w not in self.audit.shut_out}
        if not threads:
            raise UserError(f"every worker of the cluster at {self.address} was shut out")
        if many := next((w for w, n in threads.items() if n != 1), None):
            raise UserError(
                f"the worker {many} has {threads[many]} threads; start it with --nthreads 1 "
                "(several: --nworkers)"
            )
        remotes = {
            w: self._call(dask_worker.find_difference, *self._expected, workers=[w])
            for w in threads
        }
        end = time.monotonic() + PROBE_TIMEOUT
        for worker, remote in remotes.items():
            try:
                difference = remote.result(timeout=max(end - time.monotonic(), 0.1))
            except TimeoutError:
                raise UserError(
                    f"the worker {worker} did not compute the probe in {PROBE_TIMEOUT:.0f} s"
                ) from None
            except Exception as error:  # noqa: BLE001
                raise UserError(
                    f"the worker {worker} cannot be used: {_error_text(error)}"
                ) from None
            if difference:
                raise UserError(difference)
        return len(threads)

    def _threads(self) -> dict[str, int]:
        with suppress(TimeoutError):
            self._client.wait_for_workers(1, timeout=WORKER_TIMEOUT)
        if not (threads := self._client.nthreads()):
            raise UserError(
                f"the scheduler at {self.address} has no workers; start one: dask worker "
                f"{self.address} --nthreads 1"
            )
        return dict(threads)

    def _call(self, function: Callable[..., object], *arguments: object, **options: Any) -> Any:
        """Call a function on a worker; returns a Dask future."""
        return self._client.submit(
            pickle.loads,
            pickle.dumps(dask_worker.Call(function, *arguments)),
            pure=False,
            **options,
        )

    # -- behind the scenes
    # -------------------------------------------------------------------------------------

    def _require_running(self) -> None:
        if self._client.status != "running":
            self._lose(self._lost_message())
        if self._lost:
            raise ExecutorLostError(self._lost)

    def _on_event(self, event: tuple[float, dict[str, Any]]) -> None:
        message = event[1]
        if (known := self._open.get(message["key"])) is not None:
            known[1](message["step"])

    def _placement(self) -> dict[str, list[str]]:
        """Name the workers that may compute a block, after one was shut out."""
        if not self.audit.shut_out:
            return {}
        if left := [
            worker for worker in self._client.nthreads() if worker not in self.audit.shut_out
        ]:
            return {"workers": left}
        raise ExecutorLostError(f"every worker of the cluster at {self.address} was shut out")

    def _collect(self, sweep: Sweep, block: Block, future: Future[Arrays], remote: Any) -> None:
        """Fetch the result of a block and judge it, or fetch its error."""
        if future.done():
            return
        try:
            worker = next(
                (w for workers in self._client.who_has([remote]).values() for w in workers),
                "unknown",
            )
            self.audit.judge(sweep, block, remote.result(), worker, future)
        except (ExecutorLostError, UserError) as error:
            settle(future, error)
        except CancelledError:
            # not cancelled by this process: the connection broke
            self._lose(self._lost_message())
        except Exception as error:  # noqa: BLE001
            if _is_disconnect(error):
                self._lose(self._lost_message())
            else:
                settle(future, _block_error(error))

    def _release(self, key: str, remote: Any) -> None:
        """Release a task that is no longer needed; a worker that computes it notices that."""
        self._open.pop(key, None)
        # the client was closed, which releases all tasks
        with suppress(RuntimeError):
            remote.release()

    def _watch(self) -> None:
        """Update the number of workers, and detect a lost cluster; runs in a thread."""
        last_seen = time.monotonic()
        while not self._ended.wait(POLL_INTERVAL):
            try:
                threads = self._client.sync(
                    self._client.scheduler.ncores, callback_timeout=CONNECT_TIMEOUT
                )
            except (OSError, RuntimeError, AttributeError, CancelledError):
                # the connection is broken
                threads = {}
            silence = time.monotonic() - last_seen
            if threads:
                self.workers, last_seen = len(threads), time.monotonic()
            elif silence > self._silence:
                self._lose(f"the cluster at {self.address} has had no worker for {silence:.0f} s")
        self.close()

    def _lose(self, reason: str) -> None:
        """Mark the cluster as lost and fail all unfinished blocks."""
        self._lost = self._lost or reason
        self._ended.set()
        for future, _ in list(self._open.values()):
            settle(future, ExecutorLostError(self._lost))

    def _lost_message(self, error: Exception | None = None) -> str:
        return f"the scheduler at {self.address} is gone" + (
            f" ({_error_text(error)})" if error else ""
        )


def _distributed() -> Any:
    require("distributed")
    import distributed

    # `DaskExecutor` reports a broken connection
    logging.getLogger("distributed.batched").setLevel(logging.WARNING)
    return distributed


def _check_address(address: str) -> str:
    """Return an address that is encrypted or on this machine; raises UserError for others."""
    try:
        parts = urlsplit(address)
        host, port = parts.hostname, parts.port
    except ValueError:
        parts, host, port = urlsplit(""), None, None
    # urlsplit drops line breaks
    odd = not address.isprintable() or "@" in parts.netloc or parts.path.strip("/")
    if odd or not host or not port or parts.scheme not in ("tls", "tcp"):
        raise UserError(
            f"the cluster is {short(address)}; it must be tls://host:port, or tcp://host:port on "
            "this machine"
        )
    if parts.scheme == "tcp" and not _is_local(host):
        raise UserError(
            f"the cluster {short(address)} is not encrypted; tcp:// is for this machine only "
            "(127.0.0.1), use tls://"
        )
    return address.rstrip("/")


def _is_local(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _connect(dask: Any, address: str) -> Any:
    if address.startswith("tls:"):
        _require_certificates(dask)
    try:
        with warnings.catch_warnings():
            # version differences are checked by `find_difference`
            warnings.simplefilter("ignore")
            return dask.Client(address, timeout=CONNECT_TIMEOUT, set_as_default=False)
    except (OSError, ssl.SSLError, ValueError) as error:
        raise UserError(f"no Dask scheduler answers at {address}: {_error_text(error)}") from None


def _require_certificates(dask: Any) -> None:
    import dask as configuration

    if configuration.config.get("distributed.client.security-loader", None):
        # a custom loader provides them
        return
    tls = dask.Security().get_tls_config_for_role("client")
    for name, variable in VARIABLES.items():
        if not tls[name]:
            raise UserError(
                f"a tls:// cluster needs certificates; set DASK_DISTRIBUTED__COMM__TLS__{variable}"
            )


def _is_disconnect(error: Exception) -> bool:
    """Whether the connection failed while a result was fetched."""
    from distributed.comm import CommClosedError

    return isinstance(error, CommClosedError)


def _block_error(error: Exception) -> ExecutorLostError | UserError:
    """Translate the error of a block: its workers died, there are none, or it cannot be
    computed.
    """
    from distributed import KilledWorker
    from distributed.scheduler import NoWorkerError

    if isinstance(error, KilledWorker):
        deaths = error.allowed_failures + 1
        return UserError(
            f"{deaths} workers of the cluster died while computing the same block of this sweep"
        )
    return (ExecutorLostError if isinstance(error, NoWorkerError) else UserError)(
        _error_text(error)
    )


@contextmanager
def _quiet_client() -> Iterator[None]:
    """Silence the log of Dask's client while it is closed: a lost scheduler is reported already."""
    logger = logging.getLogger("distributed.client")
    logger.disabled = True
    try:
        yield
    finally:
        logger.disabled = False


def _error_text(error: BaseException) -> str:
    """Return the message of an error in one line."""
    return short(str(error) or type(error).__name__, 200)
