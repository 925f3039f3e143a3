"""One open stream of events: what is sent on it, and when it ends."""

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
"""Seconds after which something is sent, if only a comment."""
AT_ONCE = 100
"""Events in one piece."""


class EventStream:
    """Until its first piece is taken nothing is held. `end` may be called from anywhere, at any time."""

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
        """Come to an end, telling this reason; the first one counts."""
        self._reason = self._reason or reason
        if self._subscription is not None:
            self._subscription.wake()

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        """What to send, piece by piece. Whoever takes them too slowly for the log is told to come again."""
        loop = asyncio.get_running_loop()
        yield wire.opening()
        async with self._tailer.follow(self._tenant, self._after, self._wanted) as subscription:
            self._subscription = subscription
            due = loop.time() + HEARTBEAT
            while not self._over(subscription):
                try:
                    read_batch = await subscription.next(AT_ONCE, max(0.0, due - loop.time()), STREAM_BYTES)
                except CursorExpired:
                    self.end("cursor_expired")
                    break
                if not read_batch.events and loop.time() < due:
                    continue
                yield self._written(read_batch) or wire.HEARTBEAT
                due = loop.time() + HEARTBEAT
            yield wire.ending(self._reason or "shutdown", self._cursors.sign(self._tenant, subscription.position))

    def _written(self, batch: FeedBatch) -> bytes:
        pieces = []
        for event in batch.events:
            self._after = self._after.behind(event)
            pieces.append(wire.streamed(event, self._cursors.sign(self._tenant, self._after)))
        self._after = batch.position
        return b"".join(pieces)

    def _over(self, subscription: Subscription) -> bool:
        if subscription.overflowed:
            self.end("slow_consumer")
        return self._reason is not None or self._tailer.closing
