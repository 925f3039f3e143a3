"""The access log, one line per request, and the request log, stored in batches."""

import asyncio
import contextlib
import logging
import re
import sys
from collections import deque
from collections.abc import Awaitable, Sequence
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
"""Seconds for which lines are buffered, because writing each line alone costs three times its encoding."""


class AccessLog:
    """Writes a JSON line for each answered request to standard error, unless switched off or below the log level."""

    def __init__(self, *, enabled: bool = True) -> None:
        self._enabled = enabled and ACCESS_LOG.isEnabledFor(logging.INFO)
        self._encode = msgspec.json.Encoder().encode
        self._lines: list[bytes] = []

    def __call__(
        self, method: str, route: str, status: int, seconds: float, request_id: str, org: str | None = None
    ) -> None:
        """Log one request. `route` is a path template, because paths may contain tokens."""
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

BATCH = 500
INTERVAL = 0.5
"""Number of entries and seconds after which waiting entries are written."""
FULL = 10_000
"""Number of waiting entries from which requests wait for room."""
MOMENT = 0.25
OVERFLOW = 50_000
"""Number of waiting entries beyond which further entries are dropped and counted, to bound memory."""
BACKOFF = (0.5, 1.0, 2.0, 5.0)
AWAY = (Unavailable, OSError)
"""Errors that mean that the store is unreachable; any other error is about the entries."""
APART = 5.0
"""Seconds after which entries whose partition was unreachable are retried; more than FULL of them are dropped."""
LAST_TRY = 10.0
"""Seconds that the final write may take at a clean stop."""


async def _wait(event: asyncio.Event, seconds: float | None) -> None:
    """Wait for an event for at most `seconds`."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()


class RequestLogQueue:
    """Queue of request log entries, written by a background task. `lost` counts dropped entries."""

    def __init__(self, sink: RequestLogSink) -> None:
        self._sink = sink
        self._waiting: deque[RequestLog] = deque()
        self._wake = asyncio.Event()
        self._room = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._stopping = False
        self._deferred: deque[RequestLog] = deque()
        self._retry_at = 0.0
        self.lost = 0

    def __len__(self) -> int:
        """Return the number of waiting entries."""
        return len(self._waiting) + len(self._deferred)

    def put(self, entry: RequestLog) -> Awaitable[None] | None:
        """Add an entry. Returns an awaitable only while the database is behind; it takes at most MOMENT seconds."""
        waiting = self._waiting
        if len(waiting) >= OVERFLOW:
            self.lost += 1
            return None
        waiting.append(entry)
        count = len(waiting)
        if count in (1, BATCH):
            self._wake.set()
        return self._wait_for_room() if count > FULL else None

    async def _wait_for_room(self) -> None:
        self._room.clear()
        await _wait(self._room, MOMENT)

    async def start(self) -> None:
        """Start the background task."""
        self._stopping = False
        self._task = asyncio.create_task(self._run(), name="request-logs")

    async def stop(self) -> None:
        """Write the waiting entries, for at most LAST_TRY seconds."""
        self._stopping = True
        self._wake.set()
        if self._task is not None:
            _, late = await asyncio.wait({self._task}, timeout=LAST_TRY)
            for task in late:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
            self._task = None
        if len(self):
            log.error("request logs lost at stop", extra={"count": len(self)})

    async def _run(self) -> None:
        while True:
            await _wait(self._wake, APART if self._deferred else None)
            self._wake.clear()
            self._requeue_deferred()
            while self._waiting:
                if not self._stopping and len(self._waiting) < BATCH:
                    self._wake.clear()  # set by the first entry added during the last write
                    await _wait(self._wake, INTERVAL)  # more entries may come
                await self._write()
                if not self._stopping:
                    self._requeue_deferred()  # this loop does not end while entries keep arriving
            if self._stopping:
                if not self._deferred:
                    return
                await asyncio.sleep(BACKOFF[0])
                self._wake.set()

    def _requeue_deferred(self) -> None:
        """Return deferred entries to the queue when their retry is due."""
        if self._deferred and (self._stopping or asyncio.get_running_loop().time() >= self._retry_at):
            self._waiting.extend(self._deferred)
            self._deferred.clear()

    def _defer(self, entries: Sequence[RequestLog]) -> None:
        """Defer entries, so that they do not hold up others."""
        self._deferred.extend(entries)
        self._retry_at = asyncio.get_running_loop().time() + APART
        while len(self._deferred) > FULL:
            self._deferred.popleft()
            self.lost += 1

    async def _write(self) -> None:
        """Write one batch; while the store is unreachable, retry with increasing delays."""
        batch = [self._waiting.popleft() for _ in range(min(BATCH, len(self._waiting)))]
        for wait in (*BACKOFF, None):
            error = await self._try_write(batch)
            if error is None:
                break
            if not isinstance(error, AWAY):
                await self._divide(batch)
                break
            if wait is None:
                self._waiting.extendleft(reversed(batch))
            else:
                await asyncio.sleep(wait)
        if len(self._waiting) <= FULL:
            self._room.set()

    async def _try_write(self, batch: list[RequestLog]) -> Exception | None:
        try:
            if deferred := await self._sink.write(batch):
                self._defer(deferred)
        except Exception as error:
            log.warning("request logs not written", extra={"count": len(batch), "cause": repr(error)})
            return error
        return None

    async def _divide(self, batch: list[RequestLog]) -> None:
        """Bisect a batch that the store rejects, until only the entries that it cannot store are dropped."""
        if len(batch) == 1:
            self.lost += 1
            return
        middle = len(batch) // 2
        for half in (batch[:middle], batch[middle:]):
            error = await self._try_write(half)
            if isinstance(error, AWAY):
                self._waiting.extendleft(reversed(half))
            elif error is not None:
                await self._divide(half)


LONGEST = 500
LONGEST_METHOD = 32
_SECRET = re.compile(r"(svc_(?:[a-z]+_){1,2})[0-9A-Za-z]{12,}")
without_secrets = partial(_SECRET.sub, r"\1…")
"""Truncate credentials in a text to their prefix, because users put keys into URLs."""


class LogRequest:
    """Step that queues the request log entry."""

    def __init__(self, queue: RequestLogQueue, latest: str) -> None:
        self._queue = queue
        self._latest = latest

    def __call__(self, state: RequestState, response: Response) -> Awaitable[None] | None:
        """Queue an entry, except for a 401, which has no organisation. Returns an awaitable while the queue is full."""
        caller, request, route = state.principal, state.request, state.match.route
        if caller is None or response.status == 401:
            return None
        headers = request.headers
        key, agent = headers.get("idempotency-key"), headers.get("user-agent")
        return self._queue.put(
            RequestLog(
                id=state.request_id,
                tenant=caller.tenant,
                method=request.method[:LONGEST_METHOD],
                path=without_secrets(request.path),
                route=route.operation.path if route is not None else state.place or None,
                query=without_secrets(request.query) if request.query else None,
                status=response.status,
                error_code=state.error_code,
                duration_ms=int((perf_counter() - state.started) * 1000),
                actor=caller.actor,
                via=caller.via,
                api_version=state.version or caller.organisation.api_version or self._latest,
                idempotency_key=without_secrets(key[:LONGEST]) if key else None,
                ip=state.address or None,
                user_agent=without_secrets(agent[:LONGEST]) if agent else None,
                created_at=state.now,
            )
        )
