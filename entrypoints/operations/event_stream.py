"""Server-sent event stream of one client."""

import asyncio
from collections.abc import AsyncGenerator

from adapters.wire import changes as wire
from adapters.wire.cursors import FeedCursors
from domain.changes.model import EventFilter, FeedBatch, FeedPosition
from domain.changes.usecases.tailing import LogTailer, Subscription
from domain.kernel.bounds import STREAM_BYTES
from domain.kernel.errors import CursorExpired
from domain.kernel.tenancy import Tenant

HEARTBEAT = 15.0
"""Maximum seconds without data; then a comment is sent."""
AT_ONCE = 100
"""Maximum events in one chunk."""


class EventStream:
    """Event stream that holds no resources before its first chunk is read. `end` may be called at any time."""

    def __init__(
        self,
        tailer: LogTailer,
        tenant: Tenant,
        after: FeedPosition,
        wanted: EventFilter,
        cursors: FeedCursors,
    ) -> None:
        self._tailer, self._tenant, self._after, self._wanted = tailer, tenant, after, wanted
        self._cursors = cursors
        self._subscription: Subscription | None = None
        self._reason: str | None = None

    def end(self, reason: str) -> None:
        """End the stream with a reason; the first reason counts."""
        self._reason = self._reason or reason
        if self._subscription is not None:
            self._subscription.wake()

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        """Yield the stream's chunks; a client that falls too far behind the log gets `slow_consumer` and must reconnect."""
        loop = asyncio.get_running_loop()
        yield wire.opening()
        async with self._tailer.follow(self._tenant, self._after, self._wanted) as subscription:
            self._subscription = subscription
            due = loop.time() + HEARTBEAT
            while not self._is_over(subscription):
                try:
                    read_batch = await subscription.next(AT_ONCE, max(0.0, due - loop.time()), STREAM_BYTES)
                except CursorExpired:
                    self.end("cursor_expired")
                    break
                if not read_batch.events and loop.time() < due:
                    continue
                yield self._encode_batch(read_batch) or wire.HEARTBEAT
                due = loop.time() + HEARTBEAT
            yield wire.ending(self._reason or "shutdown", self._cursors.sign(self._tenant, subscription.position))

    def _encode_batch(self, batch: FeedBatch) -> bytes:
        pieces = []
        for event in batch.events:
            self._after = self._after.behind(event)
            pieces.append(wire.streamed(event, self._cursors.sign(self._tenant, self._after)))
        self._after = batch.position
        return b"".join(pieces)

    def _is_over(self, subscription: Subscription) -> bool:
        if subscription.overflowed:
            self.end("slow_consumer")
        return self._reason is not None or self._tailer.closing
