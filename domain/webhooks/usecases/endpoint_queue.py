"""One endpoint's deliveries on their way: in order for each subject, and no subject held up by another."""

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
    """The lowest of a set of positions that come and go."""

    def __init__(self) -> None:
        self._heap: list[int] = []
        self._present: set[int] = set()

    def add(self, position: int) -> None:
        """One comes."""
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
    """How far one log was taken in, and what of it is on its way."""

    def __init__(self, position: LogPosition) -> None:
        self.taken = position
        self.open, self.unrecorded = Lowest(), Lowest()

    def add(self, position: int) -> None:
        """Add the position of an event that has become part of a delivery."""
        self.open.add(position)
        self.unrecorded.add(position)

    def before(self, lowest: int | None) -> LogPosition:
        """Right before that position, or how far everything was taken in."""
        if lowest is None or lowest > self.taken.position:
            # of what is on its way since before the log went back, nothing counts
            return self.taken
        return self.taken.at(lowest - 1)


AT_ONCE = 32
"""POSTs to one endpoint at a time."""
AT_ONCE_FAILING = 4
FAILING_AFTER = 5
"""Failures in a row after which fewer POSTs are made at a time."""
AHEAD = 200
"""Events taken out of the log at a time."""
MOST_UNSENT = 1_000
"""Events taken out of the log ahead of their first attempt, of those that wait for no window."""
MOST_OPEN_FAILING = 2_000
"""Instead of MOST_OPEN while the endpoint fails: many that do may not fill the memory, and more of it would fail as well."""
PROBE = 60.0
"""Seconds without an attempt after which such an endpoint is tried with one event more."""


@dataclass(slots=True, eq=False)
class Item:
    """One open delivery, which its queue alone changes. `taken` and `due` are readings of the loop's clock, in seconds.

    `events` are at hand from taking in until recording; `recorded` tells that the store has it.
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
    """What was sent before lies in the store and is sent again as it is."""


Snapshot = tuple[Item, Delivery]
"""An item, and its delivery as it was at some moment."""


class EndpointQueue:
    """The open deliveries of one subscriber: which is next, what the store does not know yet, and how far it has come.

    Its state is its own: those who take in, send or record report what happened. Only `room` and `drained` wait.
    """

    def __init__(self, subscriber: Subscriber) -> None:
        self.subscriber = subscriber
        """The endpoint as it is known here: as it was read last, and failing or well as its attempts have gone since."""
        self.served = True
        """Whether this process serves the endpoint."""
        self.lost = False
        """Whether another worker serves the endpoint by now, so that nothing of it is to be recorded here."""
        self._items: dict[str, Item] = {}
        self._subjects: dict[str, deque[Item]] = {}
        self._ready: deque[Item] = deque()
        self._fresh: deque[Item] = deque()
        self._changed: dict[str, Item] = {}
        self._tracks = (Track(subscriber.checkpoint.own), Track(subscriber.checkpoint.network))
        """Of its organisation's own log, and of the network's."""
        self._failures = self._in_flight = self._unsent = self._at_hand = 0
        self._finished: set[str] | None = None
        self._probing = False
        self._settled, self._drained = asyncio.Event(), asyncio.Event()
        self._drained.set()

    @property
    def key(self) -> tuple[Tenant, str]:
        """Return whose endpoint it is, and which."""
        return self.subscriber.tenant, self.subscriber.endpoint.id

    @property
    def taken_up_to(self) -> FeedPosition:
        """The position in the logs up to which events have been looked at."""
        return FeedPosition(*(track.taken for track in self._tracks))

    @property
    def delivered_up_to(self) -> FeedPosition:
        """Up to where everything is delivered, of what was taken in."""
        return FeedPosition(*(track.before(track.open.value()) for track in self._tracks))

    @property
    def checkpoint(self) -> FeedPosition:
        """Up to where everything is in the store, or needs nothing."""
        return FeedPosition(*(track.before(track.unrecorded.value()) for track in self._tracks))

    def endpoint_changed(self, subscriber: Subscriber) -> None:
        """Know the endpoint as it was read again."""
        self.subscriber = subscriber

    @contextmanager
    def disabling(self) -> Iterator[None]:
        """Count the endpoint as disabled from here on; as before when disabling it raises."""
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
        """Stop sending for an endpoint that another process serves; attempts in progress end and are recorded."""
        self.served = False

    def lose(self) -> None:
        """Another worker serves the endpoint by now."""
        self.lost = True

    async def drained(self) -> None:
        """Wait until nothing is being sent."""
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
        """It fails, is full, and all that it holds waits for the next attempts of something."""
        return self._fails and self._unsent < MOST_UNSENT and not self._in_flight and not self._ready

    async def room(self) -> int:
        """Wait until events may be taken out of the log; answers how many.

        The next attempts of an endpoint that fails may be hours away. So that it is noticed when it is well again, it is
        given another event each minute: one after the other, until one of them can be sent.
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
        """Take in an event that the endpoint wants: it joins a delivery that waits for its window, or becomes one.

        `now` is the loop's clock, `at` the same moment by the calendar.
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
        """Have the event at hand, as long as there is room; without it all of the item's are read from the log again."""
        if (first or item.events) and self._at_hand + len(event.body) <= QUEUE_BYTES:
            item.events = (*item.events, event)
            self._at_hand += len(event.body)
        else:
            self._let_go(item)

    def _let_go(self, item: Item) -> None:
        self._at_hand -= weight_of(item.events)
        item.events = ()

    def passed(self, position: FeedPosition) -> None:
        """Everything up to there has been looked at."""
        for track, reached in zip(self._tracks, (position.own, position.network), strict=True):
            track.taken = reached

    @contextmanager
    def restoring(self) -> Iterator[None]:
        """While the store is asked for open deliveries: of what is finished meanwhile its answer is out of date."""
        self._finished = set()
        try:
            yield
        finally:
            self._finished = None

    def restore(self, delivery: Delivery, now: float, due: float) -> Item | None:
        """Go on with a delivery out of the store; None when it is under way already."""
        if delivery.id in self._items or delivery.id in (self._finished or ()):
            return None
        item = Item(delivery, now, due, recorded=True, stored_body=delivery.made > 0 or not delivery.positions)
        for position in delivery.positions:
            self._tracks[delivery.network].open.add(position)
        self._put(item)
        return item

    def _put(self, item: Item) -> None:
        """In order of positions within the subject, behind whatever is being sent."""
        self._items[item.delivery.id] = item
        waiting = self._subjects.setdefault(item.delivery.subject, deque())
        first = 1 if waiting and waiting[0].sending else 0
        place = bisect(waiting, item.delivery.position, lo=first, key=lambda other: other.delivery.position)
        waiting.insert(place, item)

    # What is sent

    def is_head(self, item: Item) -> bool:
        """Return whether nothing of its subject goes before it."""
        waiting = self._subjects.get(item.delivery.subject)
        return waiting is not None and waiting[0] is item

    def _may_go(self, item: Item) -> bool:
        return not item.sending and self._items.get(item.delivery.id) is item and self.is_head(item)

    def make_ready(self, item: Item) -> None:
        """Mark a due item as ready."""
        if not item.ready and self._may_go(item):
            item.ready = True
            self._ready.append(item)

    def next(self) -> Item | None:
        """Return what to send now, if anything may be sent; it counts as being sent until its attempt has ended."""
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
        """Record that an attempt has started."""
        item.delivery = item.delivery.sending(body)

    def attempt_ended(
        self, item: Item, verdict: Verdict, attempt: Attempt | None, *, at: datetime, due: float
    ) -> Item | None:
        """Record the verdict on an attempt, or that there is nothing to send; return the item to schedule next.

        That is the delivery itself, which is tried again at `due`, or what waited for it to be finished.
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
        """Something failed on our side: it is as if nothing had been sent, until `due`."""
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
        """Return whether anything is to be recorded, now or when it is a little older."""
        return bool(self._changed or self._fresh)

    def unrecorded(self, older_than: float) -> list[Snapshot]:
        """Return what the store should learn now: what attempts changed, and what was taken in before that moment."""
        while self._fresh and self._fresh[0].taken < older_than:
            item = self._fresh.popleft()
            if not item.recorded and self._items.get(item.delivery.id) is item:
                self._changed[item.delivery.id] = item
        changed, self._changed = self._changed, {}
        return [(item, item.delivery) for item in changed.values()]

    def recorded(self, snapshots: Sequence[Snapshot]) -> None:
        """Record that the store has the snapshots, so that their events are safe."""
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
        """Keep the snapshots that the store could not accept, to record them again."""
        for item, _ in snapshots:
            self._changed.setdefault(item.delivery.id, item)


def _joins(last: Item, event: LoggedEvent) -> bool:
    begun = last.sending or last.stored_body or last.delivery.body is not None  # what is sent again has the same bytes
    begun = begun or len(last.delivery.positions) >= COMBINED
    return not begun and not last.delivery.tries and combinable(last.delivery.type, event.type)
