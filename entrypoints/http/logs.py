"""The access log, one line per request, and the request log, stored in batches."""

import asyncio
import contextlib
import logging
import re
import sys
from collections import deque
from collections.abc import Awaitable, Mapping, Sequence
from functools import partial
from time import perf_counter

import msgspec

from domain.kernel.clock import now
from domain.kernel.errors import Unavailable
from domain.request_logs.model import RequestLog
from domain.request_logs.ports import RequestLogSink
from entrypoints.http.checks import RequestState
from entrypoints.http.exchange import Response

ACCESS_LOG = logging.getLogger("joinery.access")
FLUSH_SECONDS = 0.2
"""Seconds for which lines are buffered, because writing each line separately is slow."""


class AccessLog:
    """Log of requests on standard error, one JSON line for each, unless disabled or the log level is above INFO."""

    def __init__(self, *, enabled: bool = True) -> None:
        self._enabled = enabled and ACCESS_LOG.isEnabledFor(logging.INFO)
        self._encode = msgspec.json.Encoder().encode
        self._lines: list[bytes] = []

    def __call__(
        self, method: str, route: str, status: int, seconds: float, request_id: str, org: str | None = None
    ) -> None:
        """Log one request; `route` is the path template, such as `/v1/products/{id}`."""
        if not self._enabled:
            return
        if not self._lines:
            asyncio.get_running_loop().call_later(FLUSH_SECONDS, self.flush)
        line = {
            "time": now().isoformat(timespec="milliseconds"),
            "level": "info",
            "logger": ACCESS_LOG.name,
            "message": "request",
            "request_id": request_id,
            "method": method,
            "route": route,
            "status": status,
            "ms": round(seconds * 1000, 1),
            "org": org,
        }
        self._lines.append(self._encode(line))

    def flush(self) -> None:
        """Write the buffered lines."""
        lines, self._lines = self._lines, []
        if lines:
            sys.stderr.write((b"\n".join(lines) + b"\n").decode())
            sys.stderr.flush()


log = logging.getLogger("joinery.request_logs")

BATCH_SIZE = 500
"""Maximum number of entries in a batch; when as many are waiting, they are written at once."""
WRITE_INTERVAL_SECONDS = 0.5
"""Seconds after which waiting entries are written even if they are fewer than BATCH_SIZE."""
DELAY_THRESHOLD = 10_000
"""Number of waiting entries beyond which requests are delayed."""
MAX_DELAY_SECONDS = 0.25
"""Maximum seconds for which a request is delayed while the queue is full."""
MAX_WAITING_ENTRIES = 50_000
"""Number of waiting entries beyond which further entries are dropped and counted, to bound memory."""
BACKOFF_SECONDS = (0.5, 1.0, 2.0, 5.0)
"""Seconds between attempts to write a batch while the store is unreachable."""
UNREACHABLE_ERRORS = (Unavailable, OSError)
"""Errors that show that the store is unreachable; any other error is caused by the entries."""
DEFERRED_RETRY_SECONDS = 5.0
"""Seconds after which entries that the store could not accept yet are written again."""
STOP_SECONDS = 10.0
"""Maximum seconds of the last writes when the process stops."""


async def _wait(event: asyncio.Event, seconds: float | None) -> None:
    """Wait until the event is set, or for at most `seconds`."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()


class RequestLogQueue:
    """Queue of request log entries, which a background task writes to the store.

    `dropped_count` is the number of entries that were dropped.
    """

    def __init__(self, sink: RequestLogSink) -> None:
        self._sink = sink
        self._waiting: deque[RequestLog] = deque()
        self._has_work = asyncio.Event()
        self._has_room = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._stopping = False
        self._deferred: deque[RequestLog] = deque()
        self._retry_at = 0.0
        self.dropped_count = 0

    def __len__(self) -> int:
        """Return the number of waiting entries."""
        return len(self._waiting) + len(self._deferred)

    def put(self, entry: RequestLog) -> Awaitable[None] | None:
        """Add an entry to the queue; if MAX_WAITING_ENTRIES entries are waiting, drop the entry instead.

        If more than DELAY_THRESHOLD entries are waiting, returns an awaitable that delays the request until entries are
        written, but for at most MAX_DELAY_SECONDS.
        """
        entries = self._waiting
        if len(entries) >= MAX_WAITING_ENTRIES:
            self.dropped_count += 1
            return None
        entries.append(entry)
        count = len(entries)
        if count in (1, BATCH_SIZE):
            self._has_work.set()
        return self._wait_until_not_full() if count > DELAY_THRESHOLD else None

    async def _wait_until_not_full(self) -> None:
        self._has_room.clear()
        await _wait(self._has_room, MAX_DELAY_SECONDS)

    async def start(self) -> None:
        """Start the background task that writes entries."""
        self._stopping = False
        self._task = asyncio.create_task(self._run(), name="request-logs")

    async def stop(self) -> None:
        """Write the waiting entries, for at most STOP_SECONDS, and stop the background task."""
        self._stopping = True
        self._has_work.set()
        if self._task is not None:
            _, unfinished_tasks = await asyncio.wait({self._task}, timeout=STOP_SECONDS)
            for task in unfinished_tasks:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
            self._task = None
        if len(self):
            log.error("request logs lost at shutdown", extra={"count": len(self)})

    async def _run(self) -> None:
        while True:
            await _wait(self._has_work, DEFERRED_RETRY_SECONDS if self._deferred else None)
            self._has_work.clear()
            self._requeue_deferred()
            while self._waiting:
                if not self._stopping and len(self._waiting) < BATCH_SIZE:
                    self._has_work.clear()  # set by the first entry added during the last write
                    await _wait(self._has_work, WRITE_INTERVAL_SECONDS)  # more entries may come
                await self._write_batch()
                if not self._stopping:
                    self._requeue_deferred()  # this loop does not end while entries keep arriving
            if self._stopping:
                if not self._deferred:
                    return
                await asyncio.sleep(BACKOFF_SECONDS[0])
                self._has_work.set()

    def _requeue_deferred(self) -> None:
        """Move the deferred entries back to the queue if DEFERRED_RETRY_SECONDS have passed or the task is stopping."""
        if self._deferred and (self._stopping or asyncio.get_running_loop().time() >= self._retry_at):
            self._waiting.extend(self._deferred)
            self._deferred.clear()

    def _defer(self, entries: Sequence[RequestLog]) -> None:
        """Keep entries for a retry after DEFERRED_RETRY_SECONDS; drop the oldest ones beyond DELAY_THRESHOLD."""
        self._deferred.extend(entries)
        self._retry_at = asyncio.get_running_loop().time() + DEFERRED_RETRY_SECONDS
        while len(self._deferred) > DELAY_THRESHOLD:
            self._deferred.popleft()
            self.dropped_count += 1

    async def _write_batch(self) -> None:
        """Write one batch of entries; while the store is unreachable, retry with increasing delays."""
        batch = [self._waiting.popleft() for _ in range(min(BATCH_SIZE, len(self._waiting)))]
        for wait in (*BACKOFF_SECONDS, None):
            error = await self._try_write(batch)
            if error is None:
                break
            if not isinstance(error, UNREACHABLE_ERRORS):
                await self._write_by_halves(batch)
                break
            if wait is None:
                self._waiting.extendleft(reversed(batch))
            else:
                await asyncio.sleep(wait)
        if len(self._waiting) <= DELAY_THRESHOLD:
            self._has_room.set()

    async def _try_write(self, batch: list[RequestLog]) -> Exception | None:
        try:
            if deferred := await self._sink.write(batch):
                self._defer(deferred)
        except Exception as error:
            log.warning("request logs not written", extra={"count": len(batch), "cause": repr(error)})
            return error
        return None

    async def _write_by_halves(self, batch: list[RequestLog]) -> None:
        """Write a rejected batch in two halves, and rejected halves likewise; drop single entries that are rejected."""
        if len(batch) == 1:
            self.dropped_count += 1
            return
        middle = len(batch) // 2
        for half in (batch[:middle], batch[middle:]):
            error = await self._try_write(half)
            if isinstance(error, UNREACHABLE_ERRORS):
                self._waiting.extendleft(reversed(half))
            elif error is not None:
                await self._write_by_halves(half)


MAX_TEXT_CHARS = 500
"""Maximum stored characters of an idempotency key or User-Agent."""
MAX_METHOD_CHARS = 32
"""Maximum stored characters of a method."""
_SECRET = re.compile(r"(svc_(?:[a-z]+_){1,2})[0-9A-Za-z]{12,}")
redact_credentials = partial(_SECRET.sub, r"\1…")
"""Function that shortens credentials in a text to their prefix, because users put keys into URLs."""


def read_user_agent(headers: Mapping[str, str]) -> str | None:
    """Return the User-Agent header as it may be stored: shortened, and without credentials; None if it is missing."""
    agent = headers.get("user-agent")
    return redact_credentials(agent[:MAX_TEXT_CHARS]) if agent else None


class RequestLogger:
    """Step that adds the request log entry of a completed request to the queue.

    `latest_version` is the newest API version, which is logged if neither request nor organisation has one.
    """

    def __init__(self, queue: RequestLogQueue, latest_version: str) -> None:
        self._queue = queue
        self._latest_version = latest_version

    def __call__(self, state: RequestState, response: Response) -> Awaitable[None] | None:
        """Queue an entry unless the caller is not authenticated; return an awaitable only if the queue is full."""
        caller, request, route = state.principal, state.request, state.match.route
        if caller is None or response.status == 401:
            return None
        headers = request.headers
        key = headers.get("idempotency-key")
        return self._queue.put(
            RequestLog(
                id=state.request_id,
                tenant=caller.tenant,
                method=request.method[:MAX_METHOD_CHARS],
                path=redact_credentials(request.path),
                route=route.operation.path if route is not None else state.route_label or None,
                query=redact_credentials(request.query) if request.query else None,
                status=response.status,
                error_code=state.error_code,
                duration_ms=int((perf_counter() - state.started) * 1000),
                actor=caller.actor,
                via=caller.via,
                api_version=state.version or caller.organisation.api_version or self._latest_version,
                idempotency_key=redact_credentials(key[:MAX_TEXT_CHARS]) if key else None,
                ip=state.address or None,
                user_agent=read_user_agent(headers),
                created_at=state.now,
            )
        )
