"""One log as those who follow it share it: read once for all, handed to each, or read by itself by who is behind."""

import asyncio
from collections import deque
from dataclasses import dataclass, field, replace

from domain.changes.model import ALL, OPEN_END, EventBatch, EventFilter, LogBounds, View
from domain.changes.usecases.high_watermark import HighWatermarks
from domain.changes.usecases.reading import LogReading
from domain.events.model import LoggedEvent, LogPosition, weight_of
from domain.kernel.bounds import FOLLOWER_BYTES, TENANT_BYTES
from domain.kernel.errors import CursorExpired
from domain.kernel.tenancy import Tenant


class LogSubscription:
    """One way along one log: from the log itself until it is caught up, then from what is handed out.

    `position` is how far it has come: everything up to there has been answered.
    """

    def __init__(
        self, channel: "LogChannel", position: LogPosition, most: int, wanted: EventFilter, news: asyncio.Event
    ) -> None:
        self.channel, self._most, self.wanted, self._news = channel, most, wanted, news
        self._waiting: deque[LoggedEvent] = deque()
        self._weight = 0
        self._reached = position
        self._live = self._lost = False
        self.position = position
        self.overflowed = 0

    @property
    def has_news(self) -> bool:
        """Whether there is anything to answer without waiting, if only how far the log goes."""
        return bool(self._waiting) or not self._live or self._lost or self._reached != self.position

    async def catch_up(self, limit: int, most_bytes: int) -> EventBatch:
        """The next page out of the log for one who is behind; empty and caught up for one who is not.

        Raises CursorExpired.
        """
        if self._lost:
            raise CursorExpired
        if self._live:
            return EventBatch((), self.position, caught_up=True)
        batch = await self.channel.catch_up(self, limit, most_bytes)
        self.position = self._reached = batch.position
        self._live = batch.position.position >= self.channel.position.position
        return batch

    def take(self, limit: int, most_bytes: int) -> EventBatch:
        """What was handed out."""
        events: list[LoggedEvent] = []
        taken, waiting = 0, self._waiting
        while waiting and len(events) < limit and taken < most_bytes:
            events.append(waiting.popleft())
            taken += len(events[-1].body)
        self._weight -= taken
        if waiting:
            self.position = self.position.behind(events[-1]) if events else self.position
        else:
            self.position = self._reached
        return EventBatch(events, self.position, caught_up=self._live and not waiting)

    def hand(self, batch: EventBatch) -> None:
        """Everything new, of what it asks for, up to a position; too much of it, and it reads from the log again."""
        if not self._live or batch.position.position <= self._reached.position:
            return
        asked = [event for event in batch.events if event.position > self._reached.position]
        weight = weight_of(asked)
        if len(self._waiting) + len(asked) > self._most:
            self.fall_back()
            self.overflowed += 1
        elif self._weight + weight > FOLLOWER_BYTES:
            self.fall_back()
        else:
            self._waiting.extend(asked)
            self._weight += weight
            self._reached = batch.position
        self._news.set()

    @property
    def oldest(self) -> int | None:
        """The position of the first event that is held for it."""
        return self._waiting[0].position if self._waiting else None

    def fall_back(self) -> None:
        """Hold nothing more for it: it goes on from the log itself, at its own pace."""
        self._live = False
        self._reached = self.position
        self._waiting.clear()
        self._weight = 0
        self._news.set()

    def lose(self) -> None:
        """The log is another one by now: whoever asks for more is told."""
        self.fall_back()
        self._lost = True


@dataclass(slots=True)
class LogChannel:
    """What the subscriptions of one view of a log share: how far it was read for them, and whether there is more."""

    reading: LogReading
    high_watermarks: HighWatermarks
    view: View
    position: LogPosition
    dirty: bool = True
    shown: bool | None = None
    """Whether the tenant may see anything of it; None as long as nobody has asked."""
    subscriptions: set[LogSubscription] = field(default_factory=set)
    handed: deque[tuple[int, int]] = field(default_factory=deque)
    """Position and bytes of what was handed out and may still be held, and (`weight`) the bytes in all."""
    weight: int = 0

    @property
    def key(self) -> tuple[Tenant, LogPosition]:
        """Which log, and how far it was read."""
        return self.view.log, self.position

    def join(self, after: LogPosition, wanted: EventFilter, most: int, news: asyncio.Event) -> LogSubscription:
        """One more that follows, from there."""
        subscription = LogSubscription(self, after, most, wanted, news)
        self.subscriptions.add(subscription)
        return subscription

    async def catch_up(self, subscription: LogSubscription, limit: int, most_bytes: int) -> EventBatch:
        """The next page of the log for one who is behind."""
        after = subscription.position
        if self.shown is None:
            self.learn(await self.reading.licensed([self.view.tenant]))
        if not self.shown:
            return EventBatch((), self.position, caught_up=True)
        if after.differs(self.position):
            raise CursorExpired
        epochs_differ = bool(after.position) and after.epoch != self.position.epoch
        if epochs_differ and not (await self.high_watermarks.confirmed(self.view.log)).holds(after):
            raise CursorExpired
        if after.position == self.position.position:
            return EventBatch((), self.position, caught_up=True)
        end = self.position
        if after.position > end.position:  # the channel may not have come so far, or the log have gone back
            self.dirty, end = True, LogPosition(end.epoch, OPEN_END)
        return await self.reading.read_batch(self.view, after, end, limit, subscription.wanted, most_bytes=most_bytes)

    async def read_on(self, limit: int, most_bytes: int) -> bool:
        """Read what is new, and hand it out; answers whether there is more. Raises CursorExpired."""
        end = LogPosition(self.position.epoch, OPEN_END)
        batch = await self.reading.read_batch(self.view, self.position, end, limit, ALL, most_bytes=most_bytes)
        self.hand_on(batch)
        return not batch.caught_up

    def hand_on(self, batch: EventBatch) -> None:
        """This was read: to each what it asks for."""
        self.position = batch.position
        asked: dict[EventFilter, EventBatch] = {}
        for subscription in list(self.subscriptions):
            wanted = subscription.wanted
            if wanted not in asked:
                events = [event for event in batch.events if wanted.matches(event)]
                asked[wanted] = EventBatch(events, batch.position, batch.caught_up)
            subscription.hand(asked[wanted])
        self.handed.extend((event.position, len(event.body)) for event in batch.events)
        self.weight += weight_of(batch.events)
        self.relieve(TENANT_BYTES)

    def learn(self, licensed: frozenset[Tenant]) -> None:
        """These may see something of others' catalogues."""
        self.shown = not self.view.of_network or self.view.tenant in licensed

    def compare(self, bounds: LogBounds) -> None:
        """The log goes so far: tell whether there is anything to read, and whether it is the one that was read until now."""
        if not self.shown:
            self.pass_on(bounds.end)
        elif not bounds.holds(self.position):
            self.lose(bounds.end)
        else:
            self.position = replace(self.position, epoch=bounds.epoch)
            self.dirty = self.dirty or bounds.last > self.position.position

    def pass_on(self, end: LogPosition) -> None:
        """Nothing up to there is for them."""
        self.dirty, self.position = False, end
        for subscription in list(self.subscriptions):
            subscription.hand(EventBatch((), end, caught_up=True))

    def lose(self, end: LogPosition) -> None:
        """The log went back in time, or has dropped what they stood at: they cannot go on; others begin at its end."""
        self.dirty, self.position = False, end
        for subscription in list(self.subscriptions):
            subscription.lose()

    @property
    def held(self) -> int:
        """Bytes of events that are held for any of the subscriptions, each event once."""
        oldest = min(
            (at for one in self.subscriptions if (at := one.oldest) is not None), default=self.position.position + 1
        )
        while self.handed and self.handed[0][0] < oldest:
            self.weight -= self.handed.popleft()[1]
        return self.weight

    def relieve(self, most: int) -> None:
        """Have those who are furthest behind read the log by themselves, until no more than `most` bytes are held."""
        while self.held > most:
            holding = [(at, id(one), one) for one in self.subscriptions if (at := one.oldest) is not None]
            min(holding)[2].fall_back()
