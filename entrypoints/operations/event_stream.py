"""Server-sent events for one client."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Protocol

from adapters.api_json import changes as wire
from adapters.api_json.cursors import FeedCursorSigner
from domain.changes.model import EventFilter, FeedBatch, FeedPosition
from domain.changes.usecases.log_tailer import LogTailer, Subscription
from domain.kernel.bounds import STREAM_BYTES
from domain.kernel.errors import CursorExpired
from domain.kernel.tenancy import Tenant

HEARTBEAT_SECONDS = 15.0
"""Maximum seconds without data, after which a comment is sent to keep the connection open."""
MAX_EVENTS_PER_CHUNK = 100
"""Maximum events in one chunk."""


class ResponseStream(Protocol):
    """Response that is sent while it is created: server-sent events."""

    def end(self, reason: str) -> None:
        """End the stream: `lifetime`, or `credential` if the credential is no longer valid."""
        ...

    def iter_chunks(self) -> AsyncGenerator[bytes, None]:
        """Yield the encoded events."""
        ...


class EventStream:
    """Stream of server-sent events for one client. The event log is not read before the first chunk is requested.

    Args:
        tailer: Reads the event log.
        tenant: The tenant whose events are streamed.
        position: Position in the event log after which the stream starts.
        filter: Selects the events that the stream contains.
        cursors: Signs the cursor of each event.
    """

    def __init__(
        self,
        tailer: LogTailer,
        tenant: Tenant,
        position: FeedPosition,
        filter: EventFilter,
        cursors: FeedCursorSigner,
    ) -> None:
        self._tailer, self._tenant, self._position, self._filter = tailer, tenant, position, filter
        self._cursors = cursors
        self._subscription: Subscription | None = None
        self._reason: str | None = None

    def end(self, reason: str) -> None:
        """End the stream and send the reason to the client. If called again, the first reason is sent."""
        self._reason = self._reason or reason
        if self._subscription is not None:
            self._subscription.wake()

    async def iter_chunks(self) -> AsyncGenerator[bytes, None]:
        """Yield the encoded events in chunks. The stream of a client that reads too slowly ends with `slow_consumer`."""
        loop = asyncio.get_running_loop()
        yield wire.encode_stream_start()
        async with self._tailer.subscribe(self._tenant, self._position, self._filter) as subscription:
            self._subscription = subscription
            heartbeat_at = loop.time() + HEARTBEAT_SECONDS
            while not self._must_end(subscription):
                try:
                    read_batch = await subscription.next_batch(
                        MAX_EVENTS_PER_CHUNK, max(0.0, heartbeat_at - loop.time()), STREAM_BYTES
                    )
                except CursorExpired:
                    self.end("cursor_expired")
                    break
                if not read_batch.events and loop.time() < heartbeat_at:
                    continue
                yield self._encode_batch(read_batch) or wire.HEARTBEAT
                heartbeat_at = loop.time() + HEARTBEAT_SECONDS
            yield wire.encode_stream_end(
                self._reason or "shutdown", self._cursors.sign(self._tenant, subscription.position)
            )

    def _encode_batch(self, batch: FeedBatch) -> bytes:
        """Return the encoded events, each with its cursor, and advance the position to the end of the batch."""
        chunks = []
        for event in batch.events:
            self._position = self._position.after(event)
            chunks.append(wire.encode_stream_event(event, self._cursors.sign(self._tenant, self._position)))
        self._position = batch.position
        return b"".join(chunks)

    def _must_end(self, subscription: Subscription) -> bool:
        """Return whether the stream must end. A subscription that has overflowed sets the reason `slow_consumer`."""
        if subscription.overflow_count:
            self.end("slow_consumer")
        return self._reason is not None or self._tailer.is_closing
