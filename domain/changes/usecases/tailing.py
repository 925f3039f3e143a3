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
from domain.changes.usecases.high_watermark import HighWatermark
from domain.changes.usecases.reading import LogReading
from domain.events.model import LoggedEvent, weight_of
from domain.kernel.bounds import CHANGES_BYTES, FOLLOWER_BYTES, PROCESS_BYTES, READ_BYTES, TENANT_BYTES
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
        self._weight = 0
        self._reached = position
        self._live = False
        self._news = asyncio.Event()
        self.position = position
        self.overflowed = 0
        """How often it was too slow for the listener."""

    async def next(
        self, limit: int = PAGE, timeout: float | None = None, most_bytes: int = CHANGES_BYTES
    ) -> EventBatch:
        """The next batch: at once when there is anything, else as soon as there is; empty after `timeout` seconds.

        It ends with the event that reaches `most_bytes`.
        """
        if not self._live:
            batch = await self._channel.catch_up(self, limit, most_bytes)
            if batch.events or not batch.caught_up:
                return batch
        if not self._waiting and self._reached <= self.position and self._live:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(timeout):
                    await self._news.wait()
        return self._take(limit, most_bytes)

    def _take(self, limit: int, most_bytes: int) -> EventBatch:
        events: list[LoggedEvent] = []
        taken, waiting = 0, self._waiting
        while waiting and len(events) < limit and taken < most_bytes:
            events.append(waiting.popleft())
            taken += len(events[-1].body)
        self._weight -= taken
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
        weight = weight_of(asked)
        if len(self._waiting) + len(asked) > self._most:
            self.fall_back()
            self.overflowed += 1
        elif self._weight + weight > FOLLOWER_BYTES:
            self.fall_back()
        else:
            self._waiting.extend(asked)
            self._weight += weight
            self._reached = position
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
    handed: deque[tuple[int, int]] = field(default_factory=deque)
    """Position and bytes of what was handed out and may still be held, and (`weight`) the bytes in all."""
    weight: int = 0

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

    @property
    def held(self) -> int:
        """Bytes of events that are held for any of the subscriptions, each event once."""
        oldest = min((at for one in self.subscriptions if (at := one.oldest) is not None), default=self.position + 1)
        while self.handed and self.handed[0][0] < oldest:
            self.weight -= self.handed.popleft()[1]
        return self.weight

    def hand_out(self, batch: EventBatch) -> None:
        """Hand on what was read, to each what it asks for."""
        asked: dict[EventFilter, list[LoggedEvent]] = {}
        for subscription in list(self.subscriptions):
            wanted = subscription.wanted
            if wanted not in asked:
                asked[wanted] = [event for event in batch.events if wanted.matches(event)]
            subscription.hand(asked[wanted], batch.position)
        self.handed.extend((event.position, len(event.body)) for event in batch.events)
        self.weight += weight_of(batch.events)
        self.relieve(TENANT_BYTES)

    def relieve(self, most: int) -> None:
        """Have those who are furthest behind read the log by themselves, until no more than `most` bytes are held."""
        while self.held > most:
            holding = [(at, id(one), one) for one in self.subscriptions if (at := one.oldest) is not None]
            min(holding)[2].fall_back()

    async def catch_up(self, subscription: Subscription, limit: int, most_bytes: int) -> EventBatch:
        """The next page of the log for one who is behind; joins it to the others once it is not."""
        up_to = max(self.position, self.tailer.high_watermark.position)
        if subscription.position < up_to:
            reader = await self.reader(up_to)
            batch = await self.tailer.log.read_batch(
                reader, subscription.position, up_to, limit, subscription.wanted, most_bytes=most_bytes
            )
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
            batch = await self.log.read_batch(
                reader, channel.position, high_watermark, PAGE, since=bound, most_bytes=READ_BYTES
            )
            channel.move(batch.position, bound if batch.position < high_watermark else since)
            channel.hand_out(batch)
            self._relieve(channel)
        channel.dirty = channel.position < channel.wanted
        if not channel.dirty:
            channel.wanted = 0

    def _relieve(self, channel: _Channel) -> None:
        """Hold no more in the process than it may: what was handed out last goes first back to the log."""
        channels = self._channels.values()
        if sum([one.weight for one in channels]) > PROCESS_BYTES:
            others = sum(one.held for one in channels if one is not channel)
            channel.relieve(max(0, PROCESS_BYTES - others))
