"""The open deliveries of one endpoint: in order within each subject, independent between subjects."""

import asyncio
from bisect import bisect
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from heapq import heappop, heappush

from domain.changes.model import FeedPosition
from domain.events.model import LoggedEvent, LogPosition, weight_of
from domain.kernel.bounds import COMBINED, QUEUE_BYTES
from domain.kernel.tenancy import Tenant
from domain.webhooks.model import MOST_OPEN, Attempt, Delivery, DeliveryStatus, Endpoint, EndpointStatus, Verdict
from domain.webhooks.payload import combinable
from domain.webhooks.ports import Subscriber


class Lowest:
    """A set of positions with fast access to the lowest."""

    def __init__(self) -> None:
        self._heap: list[int] = []
        self._present: set[int] = set()

    def add(self, position: int) -> None:
        """Add a position."""
        if position not in self._present:
            self._present.add(position)
            heappush(self._heap, position)

    def discard(self, positions: Iterable[int]) -> None:
        """Remove positions."""
        self._present.difference_update(positions)

    def value(self) -> int | None:
        """Return the lowest position, or None."""
        while self._heap and self._heap[0] not in self._present:
            heappop(self._heap)
        return self._heap[0] if self._heap else None


class Track:
    """Progress in one log: the position taken in, and the open and unrecorded positions."""

    def __init__(self, position: LogPosition) -> None:
        self.taken = position
        self.open, self.unrecorded = Lowest(), Lowest()

    def add(self, position: int) -> None:
        """Add the position of an event that became part of a delivery."""
        self.open.add(position)
        self.unrecorded.add(position)

    def before(self, lowest: int | None) -> LogPosition:
        """Return the position before `lowest`, or the position taken in if nothing is open."""
        if lowest is None or lowest > self.taken.position:
            # deliveries from before the log went back do not count
            return self.taken
        return self.taken.at(lowest - 1)


AT_ONCE = 32
"""Maximum concurrent POSTs to one endpoint."""
AT_ONCE_FAILING = 4
FAILING_AFTER = 5
"""Consecutive failures after which concurrency is reduced."""
AHEAD = 200
"""Events read from the log at a time."""
MOST_UNSENT = 1_000
"""Maximum events without a window that are read ahead of their first attempt."""
MOST_OPEN_FAILING = 2_000
"""Maximum open deliveries of a failing endpoint, instead of MOST_OPEN, so that many of them do not fill the memory."""
PROBE = 60.0
"""Seconds without an attempt after which a failing endpoint is probed with another event."""


@dataclass(slots=True, eq=False)
class Item:
    """An open delivery, changed by its queue only.

    `taken` and `due` are times of the loop's clock, in seconds. `events` are held until they are recorded; `recorded`:
    the store has the delivery.
    """

    delivery: Delivery
    taken: float
    due: float
    events: tuple[LoggedEvent, ...] = ()
    recorded: bool = False
    ready: bool = False
    sending: bool = False
    unsent: bool = False
    stored_body: bool = False
    """Whether the body sent before is in the store, to be sent again unchanged."""


Snapshot = tuple[Item, Delivery]
"""An item, and its delivery at some moment."""


class EndpointQueue:
    """The open deliveries of one subscriber: their order, unrecorded changes and progress.

    Callers report what happened; only `room` and `drained` wait.
    """

    def __init__(self, subscriber: Subscriber) -> None:
        self.subscriber = subscriber
        """The endpoint as last read, with the health that its attempts show since."""
        self.served = True
        """Whether this process serves the endpoint."""
        self.lost = False
        """Whether another worker serves the endpoint, so that nothing may be recorded here."""
        self._items: dict[str, Item] = {}
        self._subjects: dict[str, deque[Item]] = {}
        self._ready: deque[Item] = deque()
        self._fresh: deque[Item] = deque()
        self._changed: dict[str, Item] = {}
        self._tracks = (Track(subscriber.checkpoint.own), Track(subscriber.checkpoint.network))
        """Progress in the organisation's own log and in the network log."""
        self._failures = self._in_flight = self._unsent = self._at_hand = 0
        self._finished: set[str] | None = None
        self._probing = False
        self._settled, self._drained = asyncio.Event(), asyncio.Event()
        self._drained.set()

    @property
    def key(self) -> tuple[Tenant, str]:
        """Tenant and id of the endpoint."""
        return self.subscriber.tenant, self.subscriber.endpoint.id

    @property
    def taken_up_to(self) -> FeedPosition:
        """The position in the logs up to which events were examined."""
        return FeedPosition(*(track.taken for track in self._tracks))

    @property
    def delivered_up_to(self) -> FeedPosition:
        """The position up to which all matching events are delivered."""
        return FeedPosition(*(track.before(track.open.value()) for track in self._tracks))

    @property
    def checkpoint(self) -> FeedPosition:
        """The position up to which all events are in the store, or need no delivery."""
        return FeedPosition(*(track.before(track.unrecorded.value()) for track in self._tracks))

    def endpoint_changed(self, subscriber: Subscriber) -> None:
        """Update the endpoint after it was read again."""
        self.subscriber = subscriber

    @contextmanager
    def disabling(self) -> Iterator[None]:
        """Treat the endpoint as disabled from here on; revert if disabling raises."""
        endpoint = self.subscriber.endpoint
        self._change_endpoint(replace(endpoint, status=EndpointStatus.DISABLED))
        try:
            yield
        except Exception:
            self._change_endpoint(endpoint)
            raise

    def _change_endpoint(self, endpoint: Endpoint) -> None:
        self.subscriber = replace(self.subscriber, endpoint=endpoint)

    def give_up(self) -> None:
        """Stop serving the endpoint: nothing more is sent, running attempts end and are recorded."""
        self.served = False

    def lose(self) -> None:
        """Mark the endpoint as served by another worker."""
        self.lost = True

    async def drained(self) -> None:
        """Wait until no attempt is running."""
        await self._drained.wait()

    # How much is taken in

    @property
    def _fails(self) -> bool:
        return self._failures >= FAILING_AFTER

    @property
    def _has_room(self) -> bool:
        return self._unsent < MOST_UNSENT and len(self._items) < (MOST_OPEN_FAILING if self._fails else MOST_OPEN)

    @property
    def _stuck(self) -> bool:
        """True if the endpoint fails, the queue is full, and everything in it waits for later attempts."""
        return self._fails and self._unsent < MOST_UNSENT and not self._in_flight and not self._ready

    async def room(self) -> int:
        """Wait until events may be read from the log; return how many.

        The next attempts of a failing endpoint may be hours away. To notice its recovery, it gets another event each
        minute, one at a time, until one can be sent.
        """
        while not self._has_room:
            if self._probing and self._stuck:
                return 1
            self._settled.clear()
            try:
                async with asyncio.timeout(PROBE if self._stuck else None):
                    await self._settled.wait()
            except TimeoutError:
                self._probing = True
        return AHEAD

    # What comes in

    def take(self, event: LoggedEvent, now: float, at: datetime) -> Item:
        """Add an event that matches: combine it with a delivery that waits for its window, or create one.

        `now` is the loop's clock, `at` the same moment as a date.
        """
        window = self.subscriber.endpoint.coalesce_seconds
        waiting = self._subjects.get(event.subject)
        self._tracks[event.of_network].add(event.position)
        if window and waiting and _joins(waiting[-1], event):
            item = waiting[-1]
            waits = timedelta(seconds=max(0.0, item.due - now))
            item.delivery = item.delivery.joined(event, at + waits if self.is_head(item) else None)
            self._keep(item, event)
            item.recorded = False
        else:
            wait = max(0.0, window - max(0.0, (at - event.time).total_seconds())) if window else 0.0
            due_at = at + timedelta(seconds=wait)
            delivery = Delivery.of(event, self.subscriber.endpoint.id, at, due_at)
            item = Item(delivery, now, now + wait, unsent=not window)
            self._keep(item, event, first=True)
            self._put(item)
            self._unsent += item.unsent
            if not self.is_head(item):
                item.delivery = replace(delivery, next_attempt_at=None)
        self._fresh.append(item)
        return item

    def _keep(self, item: Item, event: LoggedEvent, *, first: bool = False) -> None:
        """Hold the event if there is room; otherwise all events of the item are read from the log again."""
        if (first or item.events) and self._at_hand + len(event.body) <= QUEUE_BYTES:
            item.events = (*item.events, event)
            self._at_hand += len(event.body)
        else:
            self._let_go(item)

    def _let_go(self, item: Item) -> None:
        self._at_hand -= weight_of(item.events)
        item.events = ()

    def passed(self, position: FeedPosition) -> None:
        """Advance the position up to which events were examined."""
        for track, reached in zip(self._tracks, (position.own, position.network), strict=True):
            track.taken = reached

    @contextmanager
    def restoring(self) -> Iterator[None]:
        """Track deliveries that finish during a query of open ones, whose result is then outdated."""
        self._finished = set()
        try:
            yield
        finally:
            self._finished = None

    def restore(self, delivery: Delivery, now: float, due: float) -> Item | None:
        """Add a delivery from the store; return None if it is in the queue already or just finished."""
        if delivery.id in self._items or delivery.id in (self._finished or ()):
            return None
        item = Item(delivery, now, due, recorded=True, stored_body=delivery.made > 0 or not delivery.positions)
        for position in delivery.positions:
            self._tracks[delivery.network].open.add(position)
        self._put(item)
        return item

    def _put(self, item: Item) -> None:
        """Insert in order of positions within the subject, after a delivery that is being sent."""
        self._items[item.delivery.id] = item
        waiting = self._subjects.setdefault(item.delivery.subject, deque())
        first = 1 if waiting and waiting[0].sending else 0
        place = bisect(waiting, item.delivery.position, lo=first, key=lambda other: other.delivery.position)
        waiting.insert(place, item)

    # What is sent

    def is_head(self, item: Item) -> bool:
        """Return whether the item is the first of its subject."""
        waiting = self._subjects.get(item.delivery.subject)
        return waiting is not None and waiting[0] is item

    def _may_go(self, item: Item) -> bool:
        return not item.sending and self._items.get(item.delivery.id) is item and self.is_head(item)

    def make_ready(self, item: Item) -> None:
        """Mark the item as due."""
        if not item.ready and self._may_go(item):
            item.ready = True
            self._ready.append(item)

    def next(self) -> Item | None:
        """Return the next item to send, if any; it counts as being sent until its attempt ends."""
        while self._ready and self._in_flight < (AT_ONCE_FAILING if self._fails else AT_ONCE):
            item = self._ready.popleft()
            item.ready = False
            if self._may_go(item):
                self._probing = False
                item.sending = True
                self._in_flight += 1
                self._drained.clear()
                self._unsent -= item.unsent
                item.unsent = False
                return item
        return None

    def attempt_began(self, item: Item, body: bytes) -> None:
        """Record that the body is being POSTed."""
        item.delivery = item.delivery.sending(body)

    def attempt_ended(
        self, item: Item, verdict: Verdict, attempt: Attempt | None, *, at: datetime, due: float
    ) -> Item | None:
        """Record an attempt's verdict (`attempt` None: nothing was left to send); return what to schedule now.

        That is the delivery itself, retried at `due`, or the next of its subject.
        """
        item.delivery = item.delivery.attempted(attempt, verdict, at)
        item.due = due
        succeeded, endpoint = verdict.status == DeliveryStatus.SUCCEEDED, self.subscriber.endpoint
        self._failures = 0 if succeeded else self._failures + 1
        if succeeded == (endpoint.failing_since is not None):
            self._change_endpoint(replace(endpoint, failing_since=None if succeeded else at))
        self._settle(item)
        return item if item.delivery.is_open else self._remove(item)

    def attempt_not_made(self, item: Item, due: float) -> None:
        """Record a failure on our side, as if nothing had been sent, until `due`."""
        item.due = due
        self._settle(item)

    def _settle(self, item: Item) -> None:
        item.sending = False
        self._let_go(item)
        item.stored_body = True
        self._changed[item.delivery.id] = item
        self._in_flight -= 1
        if not self._in_flight:
            self._drained.set()
        self._settled.set()

    def _remove(self, item: Item) -> Item | None:
        waiting = self._subjects[item.delivery.subject]
        waiting.remove(item)
        del self._items[item.delivery.id]
        if self._finished is not None:
            self._finished.add(item.delivery.id)
        self._tracks[item.delivery.network].open.discard(item.delivery.positions)
        if not waiting:
            del self._subjects[item.delivery.subject]
            return None
        return waiting[0]

    # What is recorded

    @property
    def has_unrecorded(self) -> bool:
        """True if anything must be recorded, now or later."""
        return bool(self._changed or self._fresh)

    def unrecorded(self, older_than: float) -> list[Snapshot]:
        """Return what to record now: changes by attempts, and deliveries older than that moment."""
        while self._fresh and self._fresh[0].taken < older_than:
            item = self._fresh.popleft()
            if not item.recorded and self._items.get(item.delivery.id) is item:
                self._changed[item.delivery.id] = item
        changed, self._changed = self._changed, {}
        return [(item, item.delivery) for item in changed.values()]

    def recorded(self, snapshots: Sequence[Snapshot]) -> None:
        """Mark snapshots as recorded; their events are safe."""
        for item, stored in snapshots:
            delivery = item.delivery
            self._tracks[delivery.network].unrecorded.discard(stored.positions)
            item.recorded = delivery.positions == stored.positions
            if (stored.attempts or stored.body is not None) and (delivery is not stored or delivery.is_open):
                body = delivery.body if item.sending or stored.body is None else None
                item.delivery = replace(delivery, attempts=delivery.attempts[len(stored.attempts) :], body=body)
            if item.recorded and not item.sending and not (self.is_head(item) and item.due <= item.taken):
                self._let_go(item)

    def not_recorded(self, snapshots: Sequence[Snapshot]) -> None:
        """Mark snapshots for another record, because the store failed."""
        for item, _ in snapshots:
            self._changed.setdefault(item.delivery.id, item)


def _joins(last: Item, event: LoggedEvent) -> bool:
    begun = last.sending or last.stored_body or last.delivery.body is not None  # a repeated delivery has the same bytes
    begun = begun or len(last.delivery.positions) >= COMBINED
    return not begun and not last.delivery.tries and combinable(last.delivery.type, event.type)
