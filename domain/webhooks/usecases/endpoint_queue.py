"""One endpoint's deliveries on their way: in order for each subject, and no subject held up by another."""

import asyncio
from bisect import bisect
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from heapq import heappop, heappush
from typing import Final

from domain.events.model import LoggedEvent
from domain.kernel.ids import new_id
from domain.kernel.tenancy import Tenant
from domain.webhooks.model import MOST_OPEN, Delivery
from domain.webhooks.payload import combinable
from ports.webhooks import Subscriber

AT_ONCE: Final = 32
"""POSTs to one endpoint at a time."""
AT_ONCE_FAILING: Final = 4
FAILING_AFTER: Final = 5
"""Failures in a row after which fewer POSTs are made at a time."""
AHEAD: Final = 200
"""Events taken out of the log at a time."""
MOST_UNSENT: Final = 1_000
"""Events taken out of the log ahead of their first attempt, of those that wait for no window."""
MOST_OPEN_FAILING: Final = 2_000
"""Instead of MOST_OPEN while the endpoint fails: many that do may not fill the memory, and more of it would fail as well."""
PROBE: Final = 60.0
"""Seconds without an attempt after which such an endpoint is tried with one event more."""


@dataclass(slots=True, eq=False)
class Item:
    """One open delivery. `events` are at hand from taking in until recording; `recorded` tells that the store has it.

    `taken` and `due` are readings of the loop's clock, in seconds.
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


class _Lowest:
    """The lowest of a set of positions that come and go."""

    def __init__(self) -> None:
        self._heap: list[int] = []
        self._present: set[int] = set()

    def add(self, position: int) -> None:
        if position not in self._present:
            self._present.add(position)
            heappush(self._heap, position)

    def discard(self, positions: Iterable[int]) -> None:
        self._present.difference_update(positions)

    def value(self) -> int | None:
        while self._heap and self._heap[0] not in self._present:
            heappop(self._heap)
        return self._heap[0] if self._heap else None


@dataclass(eq=False)
class EndpointQueue:
    """The open deliveries of one subscriber. It does nothing by itself: who delivers asks it what is next."""

    subscriber: Subscriber
    items: dict[str, Item] = field(default_factory=dict)
    taken_up_to: int = 0
    failures: int = 0
    """Failed attempts in a row."""
    in_flight: int = 0
    quiet: asyncio.Event = field(default_factory=asyncio.Event)
    """Nothing is being sent."""
    unsent: int = 0
    done: set[str] | None = None
    """While the store is asked for open deliveries: what was done with meanwhile, of which its answer is out of date."""
    served: bool = True
    """This process serves the endpoint."""
    lost: bool = False
    """Another worker serves the endpoint by now."""
    _subjects: dict[str, deque[Item]] = field(default_factory=dict)
    _ready: deque[Item] = field(default_factory=deque)
    _open: _Lowest = field(default_factory=_Lowest)
    _unrecorded: _Lowest = field(default_factory=_Lowest)
    _fresh: deque[Item] = field(default_factory=deque)
    _changed: dict[str, Item] = field(default_factory=dict)
    _settled: asyncio.Event = field(default_factory=asyncio.Event)
    _probing: bool = False

    def __post_init__(self) -> None:
        """Start where the store says that the endpoint has been served up to."""
        self.taken_up_to = max(self.taken_up_to, self.subscriber.checkpoint)
        self.quiet.set()

    @property
    def key(self) -> tuple[Tenant, str]:
        """Whose endpoint it is, and which."""
        return self.subscriber.tenant, self.subscriber.endpoint.id

    @property
    def _fails(self) -> bool:
        return self.failures >= FAILING_AFTER

    @property
    def _has_room(self) -> bool:
        return self.unsent < MOST_UNSENT and len(self.items) < (MOST_OPEN_FAILING if self._fails else MOST_OPEN)

    @property
    def _stuck(self) -> bool:
        """It fails, is full, and all that it holds waits for the next attempts of something."""
        return self._fails and self.unsent < MOST_UNSENT and not self.in_flight and not self._ready

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

    @property
    def lowest_open(self) -> int | None:
        """The position of the first event that is not delivered yet, of those taken in."""
        return self._open.value()

    @property
    def checkpoint(self) -> int:
        """Up to where everything is in the store, or needs nothing."""
        lowest = self._unrecorded.value()
        return self.taken_up_to if lowest is None else lowest - 1

    def take(self, event: LoggedEvent, now: float, delivery: Delivery, age: float = 0.0) -> Item:
        """Take in an event that the endpoint wants, `age` seconds after it happened.

        `delivery` is what it becomes unless it joins one that waits.
        """
        window = self.subscriber.endpoint.coalesce_seconds
        waiting = self._subjects.get(event.subject)
        self._open.add(event.position)
        self._unrecorded.add(event.position)
        if window and waiting and self._joins(waiting[-1], event):
            return self._join(waiting[-1], event)
        item = Item(delivery, now, now + max(0.0, window - age), (event,), unsent=not window)
        self._put(item)
        self.unsent += item.unsent
        self._fresh.append(item)
        return item

    @staticmethod
    def _joins(last: Item, event: LoggedEvent) -> bool:
        return not last.sending and not last.delivery.tries and combinable(last.delivery.type, event.type)

    def _join(self, item: Item, event: LoggedEvent) -> Item:
        delivery = item.delivery
        delivery.positions = (*delivery.positions, event.position)
        delivery.event = event.id
        if not delivery.type.endswith(".created"):
            delivery.type = event.type
        if item.events:
            item.events = (*item.events, event)
        item.recorded = False
        self._fresh.append(item)
        return item

    def restore(self, delivery: Delivery, now: float, due: float) -> Item | None:
        """Go on with a delivery out of the store; None when it is under way already."""
        if delivery.id in self.items or delivery.id in (self.done or ()):
            return None
        item = Item(delivery, now, due, recorded=True, stored_body=delivery.made > 0 or not delivery.positions)
        for position in delivery.positions:
            self._open.add(position)
        self._put(item)
        return item

    def _put(self, item: Item) -> None:
        """In order of positions within the subject, behind whatever is being sent."""
        self.items[item.delivery.id] = item
        waiting = self._subjects.setdefault(item.delivery.subject, deque())
        first = 1 if waiting and waiting[0].sending else 0
        place = bisect(waiting, item.delivery.position, lo=first, key=lambda other: other.delivery.position)
        waiting.insert(place, item)

    def is_head(self, item: Item) -> bool:
        """Whether nothing of its subject goes before it."""
        waiting = self._subjects.get(item.delivery.subject)
        return waiting is not None and waiting[0] is item

    def _may_go(self, item: Item) -> bool:
        return not item.sending and self.items.get(item.delivery.id) is item and self.is_head(item)

    def make_ready(self, item: Item) -> None:
        """It is due."""
        if not item.ready and self._may_go(item):
            item.ready = True
            self._ready.append(item)

    def next(self) -> Item | None:
        """What to send now, if anything may be sent; it counts as being sent from now on."""
        while self._ready and self.in_flight < (AT_ONCE_FAILING if self._fails else AT_ONCE):
            item = self._ready.popleft()
            item.ready = False
            if self._may_go(item):
                self._probing = False
                item.sending = True
                self.in_flight += 1
                self.quiet.clear()
                self.unsent -= item.unsent
                item.unsent = False
                return item
        return None

    def settle(self, item: Item, *, done: bool) -> Item | None:
        """An attempt is over and the delivery has its new state; answers the subject's next one if it is done."""
        item.sending = False
        item.events = ()
        item.stored_body = True
        self.in_flight -= 1
        if not self.in_flight:
            self.quiet.set()
        self._settled.set()
        if self.items.get(item.delivery.id) is not item:
            return None
        self._changed[item.delivery.id] = item
        return self._remove(item) if done else None

    def _remove(self, item: Item) -> Item | None:
        waiting = self._subjects[item.delivery.subject]
        waiting.remove(item)
        del self.items[item.delivery.id]
        if self.done is not None:
            self.done.add(item.delivery.id)
        self._open.discard(item.delivery.positions)
        if not waiting:
            del self._subjects[item.delivery.subject]
            return None
        return waiting[0]

    def pass_by(self, position: int) -> None:
        """Everything up to there has been looked at."""
        self.taken_up_to = max(self.taken_up_to, position)

    def unrecorded(self, older_than: float) -> list[Item]:
        """What the store should learn now: what attempts changed, and what was taken in before that moment."""
        while self._fresh and self._fresh[0].taken < older_than:
            item = self._fresh.popleft()
            if not item.recorded and self.items.get(item.delivery.id) is item:
                self._changed[item.delivery.id] = item
        changed, self._changed = list(self._changed.values()), {}
        return changed

    def recorded(self, told: Sequence[tuple[Item, Delivery]]) -> None:
        """The store has these, as they were told; the events that they stand for are safe."""
        for item, as_told in told:
            self._unrecorded.discard(as_told.positions)
            item.recorded = item.delivery.positions == as_told.positions
            item.delivery.attempts = item.delivery.attempts[len(as_told.attempts) :]
            if not item.sending:
                item.delivery.body = None
            if item.recorded and not item.sending and not (self.is_head(item) and item.due <= item.taken):
                item.events = ()

    def not_recorded(self, items: Sequence[Item]) -> None:
        """The store could not take them: they are to be told again."""
        for item in items:
            self._changed.setdefault(item.delivery.id, item)

    def waits(self) -> bool:
        """Whether anything is to be recorded, now or when it is a little older."""
        return bool(self._changed or self._fresh)


def delivery_of(event: LoggedEvent, subscriber: Subscriber, now: datetime) -> Delivery:
    """What an event becomes for an endpoint."""
    return Delivery(
        id=new_id("dlv"),
        endpoint=subscriber.endpoint.id,
        event=event.id,
        type=event.type,
        subject=event.subject,
        positions=(event.position,),
        status="pending",
        created_at=now,
        next_attempt_at=now,
    )
