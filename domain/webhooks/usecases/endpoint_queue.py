"""The open deliveries of one endpoint, which are sent in order for each subject and independently otherwise."""

import asyncio
from bisect import bisect
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from heapq import heappop, heappush

from domain.changes.model import FeedPosition
from domain.events.model import LoggedEvent, LogPosition, sum_body_bytes
from domain.kernel.bounds import MAX_COMBINED_EVENTS, QUEUE_BYTES
from domain.kernel.tenancy import Tenant
from domain.webhooks.model import (
    MAX_OPEN_DELIVERIES,
    AttemptVerdict,
    Delivery,
    DeliveryAttempt,
    DeliveryStatus,
    Endpoint,
    EndpointStatus,
)
from domain.webhooks.payload import can_combine
from domain.webhooks.ports import Subscriber


class PositionHeap:
    """Set of log positions with fast access to the lowest position."""

    def __init__(self) -> None:
        self._heap: list[int] = []
        self._positions: set[int] = set()

    def add(self, position: int) -> None:
        """Add a position."""
        if position not in self._positions:
            self._positions.add(position)
            heappush(self._heap, position)

    def discard(self, positions: Iterable[int]) -> None:
        """Remove positions."""
        self._positions.difference_update(positions)

    def find_lowest(self) -> int | None:
        """Return the lowest position, or None."""
        while self._heap and self._heap[0] not in self._positions:
            heappop(self._heap)
        return self._heap[0] if self._heap else None


class LogProgress:
    """Progress of an endpoint in one log.

    Attributes:
        read_position: Position up to which events were read.
        open_positions: Positions of events whose delivery is open.
        unrecorded_positions: Positions of events whose delivery is not recorded in the store yet.
    """

    def __init__(self, position: LogPosition) -> None:
        self.read_position = position
        self.open_positions, self.unrecorded_positions = PositionHeap(), PositionHeap()

    def add_position(self, position: int) -> None:
        """Add the position of an event for which a delivery was created or extended."""
        self.open_positions.add(position)
        self.unrecorded_positions.add(position)

    def find_checkpoint(self, lowest: int | None) -> LogPosition:
        """Return the position before `lowest`, but at most the position up to which events were read.

        Args:
            lowest: Lowest position of an open delivery, or of an unrecorded one; None if there is none.
        """
        if lowest is None or lowest > self.read_position.position:
            # a later position belongs to a log that was replaced by an older copy
            return self.read_position
        return self.read_position.with_position(lowest - 1)


MAX_CONCURRENT = 32
"""Maximum number of concurrent POST requests to one endpoint; other deliveries wait."""
MAX_CONCURRENT_FAILING = 4
"""Maximum number of concurrent POST requests to a failing endpoint."""
FAILING_THRESHOLD = 5
"""Number of consecutive failed attempts from which an endpoint counts as failing."""
MAX_READ_EVENTS = 200
"""Maximum number of events that are read from the log at once."""
MAX_UNSENT = 1_000
"""Number of an endpoint's unsent deliveries from which no more events are read, unless changes are combined."""
MAX_OPEN_FAILING = 2_000
"""Maximum number of open deliveries of a failing endpoint in memory, instead of MAX_OPEN_DELIVERIES."""
PROBE_SECONDS = 60.0
"""Seconds without an attempt after which one more event is sent to a failing endpoint, to detect a recovery."""


@dataclass(slots=True, eq=False)
class QueuedDelivery:
    """Open delivery in memory, which only its queue changes.

    Attributes:
        delivery: The current state of the delivery.
        added_at: When the delivery was added, in seconds of the event loop's clock.
        due_at: When the delivery must be sent, in seconds of the event loop's clock.
        events: The delivery's events; empty if they are not in memory and must be read from the log.
        is_recorded: Whether the store has the delivery with the log positions of all its events.
        is_ready: Whether the delivery is due and waits to be sent.
        is_sending: Whether an attempt is running.
        is_unsent: Whether no attempt has been made and no batch window applies; MAX_UNSENT limits the number of such deliveries.
        has_stored_body: Whether the store has the body of an earlier attempt, which is sent again unchanged.
    """

    delivery: Delivery
    added_at: float
    due_at: float
    events: tuple[LoggedEvent, ...] = ()
    is_recorded: bool = False
    is_ready: bool = False
    is_sending: bool = False
    is_unsent: bool = False
    has_stored_body: bool = False


DeliveryState = tuple[QueuedDelivery, Delivery]
"""An item of the queue, and the state of its delivery that is to be recorded in the store."""


class EndpointQueue:
    """Open deliveries of one endpoint, with their order, unrecorded changes and the progress in the logs.

    Callers report the results of attempts. Only `wait_for_room` and `wait_until_drained` wait.
    """

    def __init__(self, subscriber: Subscriber) -> None:
        self.subscriber = subscriber
        """The endpoint as it was last read from the store, updated by the results of later attempts."""
        self.is_served = True
        """True if this process serves the endpoint."""
        self.is_lost = False
        """True if another worker serves the endpoint, so that this process must not record anything."""
        self._items: dict[str, QueuedDelivery] = {}
        self._subjects: dict[str, deque[QueuedDelivery]] = {}
        self._ready: deque[QueuedDelivery] = deque()
        self._added: deque[QueuedDelivery] = deque()
        self._changed: dict[str, QueuedDelivery] = {}
        self._progress = (LogProgress(subscriber.checkpoint.own), LogProgress(subscriber.checkpoint.network))
        """Progress in the organisation's own log and in the network log (events of published catalogues)."""
        self._failures = self._in_flight = self._unsent = self._event_bytes = 0
        self._finished_ids: set[str] | None = None
        self._may_probe = False
        self._attempt_ended, self._drained = asyncio.Event(), asyncio.Event()
        self._drained.set()

    @property
    def key(self) -> tuple[Tenant, str]:
        """Tenant and ID of the endpoint."""
        return self.subscriber.tenant, self.subscriber.endpoint.id

    @property
    def read_up_to(self) -> FeedPosition:
        """The position in both logs up to which events were read."""
        return FeedPosition(*(track.read_position for track in self._progress))

    @property
    def delivered_up_to(self) -> FeedPosition:
        """The position in both logs up to which every matching event was delivered."""
        return FeedPosition(*(track.find_checkpoint(track.open_positions.find_lowest()) for track in self._progress))

    @property
    def checkpoint(self) -> FeedPosition:
        """The position in both logs up to which every event has a recorded delivery or needs none."""
        return FeedPosition(
            *(track.find_checkpoint(track.unrecorded_positions.find_lowest()) for track in self._progress)
        )

    def update_subscriber(self, subscriber: Subscriber) -> None:
        """Replace the stored endpoint data with newly loaded data."""
        self.subscriber = subscriber

    @contextmanager
    def treat_as_disabled(self) -> Iterator[None]:
        """Treat the endpoint as disabled; if the context ends with an exception, undo this."""
        endpoint = self.subscriber.endpoint
        self._change_endpoint(replace(endpoint, status=EndpointStatus.DISABLED))
        try:
            yield
        except Exception:
            self._change_endpoint(endpoint)
            raise

    def _change_endpoint(self, endpoint: Endpoint) -> None:
        self.subscriber = replace(self.subscriber, endpoint=endpoint)

    def stop_serving(self) -> None:
        """Stop serving the endpoint: no further attempts start; running attempts end and are recorded."""
        self.is_served = False

    def mark_lost(self) -> None:
        """Mark the endpoint as served by another worker, so that nothing more is recorded."""
        self.is_lost = True

    async def wait_until_drained(self) -> None:
        """Wait until no attempt is running."""
        await self._drained.wait()

    # Admission of events

    @property
    def _is_failing(self) -> bool:
        """True if at least the last FAILING_THRESHOLD attempts failed."""
        return self._failures >= FAILING_THRESHOLD

    @property
    def _has_room(self) -> bool:
        """True if the limits of unsent and open deliveries permit more events."""
        return self._unsent < MAX_UNSENT and len(self._items) < (
            MAX_OPEN_FAILING if self._is_failing else MAX_OPEN_DELIVERIES
        )

    @property
    def _is_stuck(self) -> bool:
        """True if the endpoint is failing and all open deliveries wait for later attempts."""
        return self._is_failing and self._unsent < MAX_UNSENT and not self._in_flight and not self._ready

    async def wait_for_room(self) -> int:
        """Wait until the queue can take more events; return the maximum number of events to read from the log.

        The next attempts of a failing endpoint may be hours away. One more event is therefore read every PROBE_SECONDS
        seconds, so that its delivery detects a recovery.
        """
        while not self._has_room:
            if self._may_probe and self._is_stuck:
                return 1
            self._attempt_ended.clear()
            try:
                async with asyncio.timeout(PROBE_SECONDS if self._is_stuck else None):
                    await self._attempt_ended.wait()
            except TimeoutError:
                self._may_probe = True
        return MAX_READ_EVENTS

    # Additions

    def add_event(self, event: LoggedEvent, clock_now: float, at: datetime) -> QueuedDelivery:
        """Add a matching event to a delivery that still waits for further changes, or create a delivery for it.

        Args:
            event: The event.
            clock_now: The current time of the event loop's clock, in seconds.
            at: The current date and time.
        """
        window = self.subscriber.endpoint.coalesce_seconds
        waiting = self._subjects.get(event.subject)
        self._progress[event.is_from_network].add_position(event.position)
        if window and waiting and _can_combine(waiting[-1], event):
            item = waiting[-1]
            remaining = timedelta(seconds=max(0.0, item.due_at - clock_now))
            item.delivery = item.delivery.with_event(event, at + remaining if self.is_head(item) else None)
            self._cache_event(item, event)
            item.is_recorded = False
        else:
            wait = max(0.0, window - max(0.0, (at - event.time).total_seconds())) if window else 0.0
            due_at = at + timedelta(seconds=wait)
            delivery = Delivery.from_event(event, self.subscriber.endpoint.id, at, due_at)
            item = QueuedDelivery(delivery, clock_now, clock_now + wait, is_unsent=not window)
            self._cache_event(item, event, is_first=True)
            self._insert(item)
            self._unsent += item.is_unsent
            if not self.is_head(item):
                item.delivery = replace(delivery, next_attempt_at=None)
        self._added.append(item)
        return item

    def _cache_event(self, item: QueuedDelivery, event: LoggedEvent, *, is_first: bool = False) -> None:
        """Keep the event in memory with the item; if the queue exceeds QUEUE_BYTES, release all events of the item.

        After the release, further events of the item are not kept. `is_first` means that the item has no other event.
        """
        if (is_first or item.events) and self._event_bytes + len(event.body) <= QUEUE_BYTES:
            item.events = (*item.events, event)
            self._event_bytes += len(event.body)
        else:
            self._release_events(item)

    def _release_events(self, item: QueuedDelivery) -> None:
        self._event_bytes -= sum_body_bytes(item.events)
        item.events = ()

    def set_read_position(self, position: FeedPosition) -> None:
        """Set the position in both logs up to which events have been read."""
        for track, reached in zip(self._progress, (position.own, position.network), strict=True):
            track.read_position = reached

    @contextmanager
    def track_finished(self) -> Iterator[None]:
        """Note the deliveries that finish within the context, so that `add_stored` ignores them.

        A query that started before a delivery finished may still return the delivery as open.
        """
        self._finished_ids = set()
        try:
            yield
        finally:
            self._finished_ids = None

    def add_stored(self, delivery: Delivery, clock_now: float, due: float) -> QueuedDelivery | None:
        """Add an open delivery from the store.

        Returns None, without adding it, if it is in the queue already or has finished since the query.

        Args:
            delivery: The delivery.
            clock_now: The current time of the event loop's clock, in seconds.
            due: When the delivery must be sent, in seconds of the event loop's clock.
        """
        if delivery.id in self._items or delivery.id in (self._finished_ids or ()):
            return None
        item = QueuedDelivery(
            delivery,
            clock_now,
            due,
            is_recorded=True,
            has_stored_body=delivery.attempts_made > 0 or not delivery.positions,
        )
        for position in delivery.positions:
            self._progress[delivery.network].open_positions.add(position)
        self._insert(item)
        return item

    def _insert(self, item: QueuedDelivery) -> None:
        """Insert the item into the queue of its subject by position, but after an item that is being sent."""
        self._items[item.delivery.id] = item
        waiting = self._subjects.setdefault(item.delivery.subject, deque())
        first = 1 if waiting and waiting[0].is_sending else 0
        index = bisect(waiting, item.delivery.position, lo=first, key=lambda other: other.delivery.position)
        waiting.insert(index, item)

    # Sending

    def is_head(self, item: QueuedDelivery) -> bool:
        """Return whether the item is the first of its subject; later ones are sent after it."""
        waiting = self._subjects.get(item.delivery.subject)
        return waiting is not None and waiting[0] is item

    def _can_be_sent(self, item: QueuedDelivery) -> bool:
        return not item.is_sending and self._items.get(item.delivery.id) is item and self.is_head(item)

    def make_ready(self, item: QueuedDelivery) -> None:
        """Mark the item as ready to send, if it is the first of its subject and not being sent."""
        if not item.is_ready and self._can_be_sent(item):
            item.is_ready = True
            self._ready.append(item)

    def take_next(self) -> QueuedDelivery | None:
        """Return the next ready item, and mark it as being sent until its attempt ends; None without a ready item."""
        while self._ready and self._in_flight < (MAX_CONCURRENT_FAILING if self._is_failing else MAX_CONCURRENT):
            item = self._ready.popleft()
            item.is_ready = False
            if self._can_be_sent(item):
                self._may_probe = False
                item.is_sending = True
                self._in_flight += 1
                self._drained.clear()
                self._unsent -= item.is_unsent
                item.is_unsent = False
                return item
        return None

    def start_attempt(self, item: QueuedDelivery, body: bytes) -> None:
        """Record that an attempt with this body has started."""
        item.delivery = item.delivery.with_body(body)

    def end_attempt(
        self,
        item: QueuedDelivery,
        verdict: AttemptVerdict,
        attempt: DeliveryAttempt | None,
        *,
        at: datetime,
        due: float,
    ) -> QueuedDelivery | None:
        """Record the result of an attempt; return the item of the subject to schedule next, or None.

        Args:
            item: The item that was sent; it is returned if it will be retried.
            verdict: The verdict on the attempt.
            attempt: The attempt; None if nothing could be sent.
            at: The current date and time.
            due: When the next attempt of the item is due, in seconds of the event loop's clock.
        """
        item.delivery = item.delivery.with_attempt(attempt, verdict, at)
        item.due_at = due
        succeeded, endpoint = verdict.status == DeliveryStatus.SUCCEEDED, self.subscriber.endpoint
        self._failures = 0 if succeeded else self._failures + 1
        if succeeded == (endpoint.failing_since is not None):
            self._change_endpoint(replace(endpoint, failing_since=None if succeeded else at))
        self._end_sending(item)
        return item if item.delivery.is_open else self._remove(item)

    def postpone_attempt(self, item: QueuedDelivery, due: float) -> None:
        """Record that an internal error prevented the attempt, which is repeated at `due` (event loop's clock)."""
        item.due_at = due
        self._end_sending(item)

    def _end_sending(self, item: QueuedDelivery) -> None:
        item.is_sending = False
        self._release_events(item)
        item.has_stored_body = True
        self._changed[item.delivery.id] = item
        self._in_flight -= 1
        if not self._in_flight:
            self._drained.set()
        self._attempt_ended.set()

    def _remove(self, item: QueuedDelivery) -> QueuedDelivery | None:
        waiting = self._subjects[item.delivery.subject]
        waiting.remove(item)
        del self._items[item.delivery.id]
        if self._finished_ids is not None:
            self._finished_ids.add(item.delivery.id)
        self._progress[item.delivery.network].open_positions.discard(item.delivery.positions)
        if not waiting:
            del self._subjects[item.delivery.subject]
            return None
        return waiting[0]

    # Recording

    @property
    def has_unrecorded(self) -> bool:
        """True if there are changes that are not recorded in the store."""
        return bool(self._changed or self._added)

    def take_unrecorded(self, older_than: float) -> list[DeliveryState]:
        """Remove deliveries from the unrecorded ones, and return their states to record.

        These are the deliveries changed by attempts, and the unrecorded deliveries added before `older_than`.

        Args:
            older_than: Time in seconds of the event loop's clock.
        """
        while self._added and self._added[0].added_at < older_than:
            item = self._added.popleft()
            if not item.is_recorded and self._items.get(item.delivery.id) is item:
                self._changed[item.delivery.id] = item
        changed, self._changed = self._changed, {}
        return [(item, item.delivery) for item in changed.values()]

    def mark_recorded(self, states: Sequence[DeliveryState]) -> None:
        """Mark these states of deliveries as recorded in the store."""
        for item, stored in states:
            delivery = item.delivery
            self._progress[delivery.network].unrecorded_positions.discard(stored.positions)
            item.is_recorded = delivery.positions == stored.positions
            if (stored.attempts or stored.body is not None) and (delivery is not stored or delivery.is_open):
                body = delivery.body if item.is_sending or stored.body is None else None
                item.delivery = replace(delivery, attempts=delivery.attempts[len(stored.attempts) :], body=body)
            if item.is_recorded and not item.is_sending and not (self.is_head(item) and item.due_at <= item.added_at):
                self._release_events(item)

    def mark_unrecorded(self, states: Sequence[DeliveryState]) -> None:
        """Mark these deliveries as unrecorded again, because the store failed to record them."""
        for item, _ in states:
            self._changed.setdefault(item.delivery.id, item)


def _can_combine(last: QueuedDelivery, event: LoggedEvent) -> bool:
    # a repeated delivery has the same bytes
    is_started = last.is_sending or last.has_stored_body or last.delivery.body is not None
    is_started = is_started or len(last.delivery.positions) >= MAX_COMBINED_EVENTS
    return not is_started and not last.delivery.tries and can_combine(last.delivery.type, event.type)
