"""Following the log as it grows: one listener a process reads what is new once and hands it to everyone who waits."""

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from domain.changes.model import ALL, EventBatch, EventFilter, Licence, Reader
from domain.changes.usecases.reading import LogReading
from domain.events.model import LoggedEvent
from domain.kernel.tenancy import Tenant
from ports.events import EventReader, EventRendering
from ports.signals import Channel, SignalListener, Signals

IDLE: Final = 5.0
"""Seconds after which the log is asked though nothing was said."""
PAUSE: Final = 0.01
"""Seconds between two looks while events come in, or wait for a writer that is not done."""
SLOWEST: Final = 0.1
"""Seconds to which the pause grows while that writer takes its time."""
PAGE: Final = 500
TURN: Final = 4
"""Pages that are read for one tenant before the next one's turn comes."""
MOST_WAITING: Final = 20_000
"""Events held for one subscription; one that is slower goes on from the log itself."""
_RETRY: Final = 1.0

LOG: Final = logging.getLogger("joinery.changes")


class Subscription:
    """One way along the log: from the log itself until it is caught up, then from what the listener hands out.

    `position` is how far it has come: everything up to there has been answered.
    """

    def __init__(self, channel: "_Channel", position: int, most: int, wanted: EventFilter) -> None:
        self._channel, self._most, self.wanted = channel, most, wanted
        self._waiting: deque[LoggedEvent] = deque()
        self._reached = position
        self._live = False
        self._news = asyncio.Event()
        self.position = position
        self.overflowed = 0
        """How often it was too slow for the listener."""

    async def next(self, limit: int = PAGE, timeout: float | None = None) -> EventBatch:
        """The next batch: at once when there is anything, else as soon as there is; empty after `timeout` seconds."""
        if not self._live:
            batch = await self._channel.catch_up(self, limit)
            if batch.events or not batch.caught_up:
                return batch
        if not self._waiting and self._reached <= self.position and self._live:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(timeout):
                    await self._news.wait()
        return self._take(limit)

    def _take(self, limit: int) -> EventBatch:
        events = [self._waiting.popleft() for _ in range(min(limit, len(self._waiting)))]
        if not self._waiting:
            self._news.clear()
        self.position = max(self.position, events[-1].position if self._waiting else self._reached)
        return EventBatch(events, self.position, caught_up=self._live and not self._waiting)

    def moved(self, batch: EventBatch) -> None:
        """It has read so far by itself."""
        self.position = self._reached = batch.position

    def join(self) -> None:
        """From now on it is handed what is new."""
        self._live = True

    def hand(self, events: Sequence[LoggedEvent], position: int) -> None:
        """Everything new, of what it asks for, up to `position`; too much of it, and it reads from the log again."""
        if not self._live or position <= self._reached:
            return
        asked = [event for event in events if event.position > self._reached]
        if len(self._waiting) + len(asked) > self._most:
            self._live = False
            self._reached = self.position
            self._waiting.clear()
            self.overflowed += 1
        else:
            self._waiting.extend(asked)
            self._reached = position
        self._news.set()

    def wake(self) -> None:
        """Let whoever waits look again."""
        self._news.set()


@dataclass(slots=True)
class _Channel:
    """What one tenant's subscriptions share: how far the listener has read for them, and whether there is more to read."""

    tailer: "LogTailer"
    tenant: Tenant
    position: int
    dirty: bool = True
    wanted: int = 0
    subscriptions: set[Subscription] = field(default_factory=set)
    owners: frozenset[Tenant] = frozenset()
    """Those whose events are read here."""
    since: datetime | None = None
    """What appears after `position` carries no time before this."""
    licensed: Reader | None = None
    known_to: int = -1
    """Up to where the licences are known."""

    def __post_init__(self) -> None:
        """Until the licences are known, one's own events are all."""
        self.owners = frozenset((self.tenant,))

    def learn(self, licences: Sequence[Licence], up_to: int) -> None:
        """These are held; they were asked for after the high watermark `up_to`."""
        self.licensed, self.known_to = Reader(self.tenant, tuple(licences)), max(self.known_to, up_to)
        self.owners = frozenset((self.tenant, *(one.owner for one in licences)))

    async def reader(self, up_to: int) -> Reader:
        """Who reads up to there. Licences are asked for after the high watermark, or what they open would be passed by unseen."""
        if self.licensed is None or up_to > self.known_to:
            await self.tailer.learn([self])
        return self.licensed or Reader(self.tenant)

    def move(self, position: int, since: datetime | None) -> None:
        """Everything up to there has been read, by a question to the log that answered `since`."""
        self.position, self.since = position, since

    async def catch_up(self, subscription: Subscription, limit: int) -> EventBatch:
        """The next page of the log for one who is behind; joins it to the others once it is not."""
        up_to = max(self.position, self.tailer.high_watermark.position)
        if subscription.position < up_to:
            reader = await self.reader(up_to)
            batch = await self.tailer.log.read_batch(reader, subscription.position, up_to, limit, subscription.wanted)
        else:
            batch = EventBatch((), subscription.position, caught_up=True)
        subscription.moved(batch)
        if subscription.position >= self.position:
            subscription.join()
        return batch


class LogTailer:
    """One a process. `run` must be running for anything new to be handed out."""

    def __init__(
        self,
        events: EventReader,
        rendering: EventRendering,
        signals: Signals,
        *,
        idle: float = IDLE,
        pause: float = PAUSE,
        most_waiting: int = MOST_WAITING,
    ) -> None:
        self.log = LogReading(events, rendering)
        self.high_watermark = HighWatermark(events)
        """At most `idle` seconds old while `run` is running."""
        self._events, self._signals = events, signals
        self._idle, self._pause, self._most = idle, pause, most_waiting
        self._channels: dict[Tenant, _Channel] = {}
        self._kick = asyncio.Event()
        self._swept, self._patience = 0.0, pause
        self.closing = False
        """The process is about to stop: whoever waits should come to an end."""

    @contextlib.asynccontextmanager
    async def follow(
        self, tenant: Tenant, after: int, wanted: EventFilter = ALL, *, most: int | None = None
    ) -> AsyncIterator[Subscription]:
        """Follow what the tenant may see, and asks for, from after that position on; `most` events are held for it."""
        channel = await self._channel(tenant)
        subscription = Subscription(channel, after, most or self._most, wanted)
        channel.subscriptions.add(subscription)
        self._kick.set()
        try:
            yield subscription
        finally:
            channel.subscriptions.discard(subscription)
            if not channel.subscriptions and self._channels.get(tenant) is channel:
                del self._channels[tenant]

    async def learn(self, channels: "Sequence[_Channel]") -> None:
        """Ask once for what the tenants of all these channels hold."""
        high_watermark = self.high_watermark.position
        held = await self.log.licences([channel.tenant for channel in channels])
        for channel in channels:
            channel.learn(held.get(channel.tenant, ()), high_watermark)

    def close(self) -> None:
        """The process is about to stop: let everyone who waits look again."""
        self.closing = True
        for channel in self._channels.values():
            for subscription in channel.subscriptions:
                subscription.wake()

    async def _channel(self, tenant: Tenant) -> _Channel:
        log = self.high_watermark
        if not log.known:
            await log.fresh()  # or the first of a process would have the listener read the log from its beginning
        return self._channels.setdefault(tenant, _Channel(self, tenant, log.position, since=log.since))

    async def run(self) -> None:
        """Listen until cancelled; trouble with the database is waited out."""
        async with self._signals.subscribe(Channel.EVENTS) as listener:
            while True:
                try:
                    await self._listen(listener)
                except Exception:
                    LOG.exception("the event log could not be read, again in %.0f s", _RETRY)
                    for channel in self._channels.values():
                        channel.dirty = True
                    await asyncio.sleep(_RETRY)

    async def _listen(self, listener: SignalListener) -> None:
        said = await self._wait(listener)
        sweep = not said or asyncio.get_running_loop().time() - self._swept >= self._idle
        heard = listener.heard()
        sweep = sweep or heard.missed
        self._mark(frozenset(signal.tenant for signal in heard.signals))
        if sweep or self._dirty():
            before = self.high_watermark.position
            await self.high_watermark.look()
            if sweep:
                await self._sweep()
            well = await self._advance()
            self._patience = self._pause if self.high_watermark.position > before else min(SLOWEST, self._patience * 2)
            await asyncio.sleep((0.0 if self._behind() else self._patience) if well else _RETRY)

    def _dirty(self) -> bool:
        return any(channel.dirty for channel in self._channels.values())

    def _behind(self) -> bool:
        return any(
            channel.dirty and channel.position < self.high_watermark.position for channel in self._channels.values()
        )

    async def _wait(self, listener: SignalListener) -> bool:
        """True for a signal, or when something is left to be read; False after `idle` seconds."""
        if self._dirty():
            return True
        heard = asyncio.ensure_future(listener.wait(self._idle))
        kicked = asyncio.ensure_future(self._kick.wait())
        try:
            await asyncio.wait((heard, kicked), return_when=asyncio.FIRST_COMPLETED)
            return True if self._kick.is_set() else heard.result()
        finally:
            self._kick.clear()
            for task in (heard, kicked):
                task.cancel()
            await asyncio.gather(heard, kicked, return_exceptions=True)

    def _mark(self, tenants: frozenset[Tenant]) -> None:
        for channel in self._channels.values():
            if not tenants.isdisjoint(channel.owners):
                channel.dirty, channel.wanted = True, 0

    async def _sweep(self) -> None:
        """Nobody need have said anything: one question finds those that have something to read, all others move on."""
        self._swept = asyncio.get_running_loop().time()
        high_watermark, since = self.high_watermark.position, self.high_watermark.since
        behind = [one for one in self._channels.values() if not one.dirty and one.position < high_watermark]
        if not behind:
            return
        await self.learn(behind)
        bounds = [since, *(one.since for one in behind)]
        bound = None if None in bounds else min(moment for moment in bounds if moment is not None)
        tenants_with_new_events = await self._events.tenants_with_new_events(
            {one.tenant: one.position for one in behind}, high_watermark, bound
        )
        for channel in behind:
            if channel.tenant in tenants_with_new_events or (channel.licensed and channel.licensed.licences):
                channel.dirty, channel.wanted = True, 0
            else:
                channel.move(high_watermark, since)
                for subscription in list(channel.subscriptions):
                    subscription.hand((), high_watermark)

    async def _advance(self) -> bool:
        """Read what is new for each tenant that has anything, and hand it out; False when it failed for one of them."""
        well = True
        dirty = [channel for channel in self._channels.values() if channel.dirty]
        if dirty:
            await self.learn(dirty)
            for channel in dirty:
                try:
                    await self._read_on(channel)
                except Exception:
                    LOG.exception("the events of %s could not be read", channel.tenant.org)
                    well = False
        return well

    async def _read_on(self, channel: _Channel) -> None:
        """A tenant that writes a lot leaves the others their turns."""
        channel.wanted = channel.wanted or self.high_watermark.last
        high_watermark, since = self.high_watermark.position, self.high_watermark.since
        bound = min(since, channel.since) if since and channel.since else None
        reader = await channel.reader(high_watermark)
        for _ in range(TURN):
            if channel.position >= high_watermark or not channel.subscriptions:
                break
            batch = await self.log.read_batch(reader, channel.position, high_watermark, PAGE, since=bound)
            channel.move(batch.position, bound if batch.position < high_watermark else since)
            asked: dict[EventFilter, list[LoggedEvent]] = {}
            for subscription in list(channel.subscriptions):
                wanted = subscription.wanted
                if wanted not in asked:
                    asked[wanted] = [event for event in batch.events if wanted.matches(event)]
                subscription.hand(asked[wanted], batch.position)
        channel.dirty = channel.position < channel.wanted
        if not channel.dirty:
            channel.wanted = 0


class HighWatermark:
    """One a process. However many ask at a time, the database is asked once."""

    def __init__(self, events: EventReader) -> None:
        self._events = events
        self._asking: asyncio.Task[None] | None = None
        self.position = 0
        """Nothing can appear below it any more; it never goes back."""
        self.low_watermark = 0
        """Up to there events have been dropped by age."""
        self.last = 0
        """The highest position that was taken, above the high watermark while its writer is not done."""
        self.looked = float("-inf")
        """When it was asked last, by the loop's clock: what was committed before is not above `last`."""
        self.since: datetime | None = None
        """What appears above it carries no time before this."""

    @property
    def known(self) -> bool:
        """Whether the log has been asked yet."""
        return self.looked > float("-inf")

    async def fresh(self) -> int:
        """The position no older than this call: one question answers all who ask meanwhile."""
        running = self._asking
        if running is not None:
            await asyncio.wait((running,))  # it may have looked before the caller wrote
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self.look())
        await asyncio.shield(self._asking)
        return self.position

    async def look(self) -> None:
        """Ask the log."""
        began = asyncio.get_running_loop().time()
        bounds = await self._events.bounds()
        self.looked = began
        self.position = max(self.position, bounds.high_watermark)
        self.last, self.low_watermark, self.since = bounds.last, bounds.low_watermark, bounds.since
