"""Following the logs as they grow: one listener per process reads new events once for all followers."""

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from domain.changes.model import (
    ALL,
    OPEN_END,
    EventBatch,
    EventFilter,
    FeedBatch,
    FeedPosition,
    LogBounds,
    View,
    network_of,
)
from domain.changes.ports import EventReader, EventRendering
from domain.changes.usecases.reading import LATELY, MOST_KNOWN, HighWatermarks, LogReading
from domain.events.model import LoggedEvent, LogPosition, weight_of
from domain.kernel.bounds import CHANGES_BYTES, FOLLOWER_BYTES, PROCESS_BYTES, READ_BYTES, TENANT_BYTES
from domain.kernel.errors import CursorExpired
from domain.kernel.tenancy import Tenant
from ports.signals import Channel, SignalListener, Signals


class LogSubscription:
    """A follower of one log, which reads the log until it has caught up, then receives new events.

    `position` is the end of what it has returned.
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
        """True if a batch or a new position can be returned without waiting."""
        return bool(self._waiting) or not self._live or self._lost or self._reached != self.position

    async def catch_up(self, limit: int, most_bytes: int) -> EventBatch:
        """Return the next page of the log for a subscription that is behind; an empty batch for one that is not.

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
        """Return events that were received."""
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
        """Receive new events that match, up to a position; fall back to reading the log if they are too many."""
        if not self._live or batch.position.position <= self._reached.position:
            return
        matching = [event for event in batch.events if event.position > self._reached.position]
        weight = weight_of(matching)
        if len(self._waiting) + len(matching) > self._most:
            self.fall_back()
            self.overflowed += 1
        elif self._weight + weight > FOLLOWER_BYTES:
            self.fall_back()
        else:
            self._waiting.extend(matching)
            self._weight += weight
            self._reached = batch.position
        self._news.set()

    @property
    def oldest(self) -> int | None:
        """The position of the first event that is held for the subscription, or None."""
        return self._waiting[0].position if self._waiting else None

    def fall_back(self) -> None:
        """Drop held events and continue from the log at the subscription's own pace."""
        self._live = False
        self._reached = self.position
        self._waiting.clear()
        self._weight = 0
        self._news.set()

    def lose(self) -> None:
        """Mark the position as lost, so that the next read raises CursorExpired."""
        self.fall_back()
        self._lost = True


@dataclass(slots=True)
class LogChannel:
    """The shared state of the subscriptions of one view of a log: the position read up to, and whether there is more."""

    reading: LogReading
    high_watermarks: HighWatermarks
    view: View
    position: LogPosition
    dirty: bool = True
    shown: bool | None = None
    """Whether the tenant may see any event; None until it is known."""
    subscriptions: set[LogSubscription] = field(default_factory=set)
    handed: deque[tuple[int, int]] = field(default_factory=deque)
    """Position and bytes of distributed events that may still be held; `weight` is their sum."""
    weight: int = 0

    @property
    def key(self) -> tuple[Tenant, LogPosition]:
        """The log, and the position up to which it was read."""
        return self.view.log, self.position

    def join(self, after: LogPosition, wanted: EventFilter, most: int, news: asyncio.Event) -> LogSubscription:
        """Add a subscription that starts after the position."""
        subscription = LogSubscription(self, after, most, wanted, news)
        self.subscriptions.add(subscription)
        return subscription

    async def catch_up(self, subscription: LogSubscription, limit: int, most_bytes: int) -> EventBatch:
        """Return the next page of the log for a subscription that is behind."""
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
        if after.position > end.position:  # the channel may be behind, or the log restored
            self.dirty, end = True, LogPosition(end.epoch, OPEN_END)
        return await self.reading.read_batch(self.view, after, end, limit, subscription.wanted, most_bytes=most_bytes)

    async def read_on(self, limit: int, most_bytes: int) -> bool:
        """Read and distribute new events; return whether there are more. Raises CursorExpired."""
        end = LogPosition(self.position.epoch, OPEN_END)
        batch = await self.reading.read_batch(self.view, self.position, end, limit, ALL, most_bytes=most_bytes)
        self.hand_on(batch)
        return not batch.caught_up

    def hand_on(self, batch: EventBatch) -> None:
        """Distribute a batch to the subscriptions by their filters."""
        self.position = batch.position
        matching: dict[EventFilter, EventBatch] = {}
        for subscription in list(self.subscriptions):
            wanted = subscription.wanted
            if wanted not in matching:
                events = [event for event in batch.events if wanted.matches(event)]
                matching[wanted] = EventBatch(events, batch.position, batch.caught_up)
            subscription.hand(matching[wanted])
        self.handed.extend((event.position, len(event.body)) for event in batch.events)
        self.weight += weight_of(batch.events)
        self.relieve(TENANT_BYTES)

    def learn(self, licensed: frozenset[Tenant]) -> None:
        """Update whether the tenant may see any event, given the tenants that have licences."""
        self.shown = not self.view.of_network or self.view.tenant in licensed

    def compare(self, bounds: LogBounds) -> None:
        """Compare the position with the log's bounds: mark new events, or a log that is not the one that was read."""
        if not self.shown:
            self.pass_on(bounds.end)
        elif not bounds.holds(self.position):
            self.lose(bounds.end)
        else:
            self.position = replace(self.position, epoch=bounds.epoch)
            self.dirty = self.dirty or bounds.last > self.position.position

    def pass_on(self, end: LogPosition) -> None:
        """Advance all subscriptions to the end without events."""
        self.dirty, self.position = False, end
        for subscription in list(self.subscriptions):
            subscription.hand(EventBatch((), end, caught_up=True))

    def lose(self, end: LogPosition) -> None:
        """Mark all subscriptions as lost and continue at the end.

        The log went back in time or deleted events that they need.
        """
        self.dirty, self.position = False, end
        for subscription in list(self.subscriptions):
            subscription.lose()

    @property
    def held(self) -> int:
        """Bytes of events that are held for any subscription, each event counted once."""
        oldest = min(
            (at for sub in self.subscriptions if (at := sub.oldest) is not None), default=self.position.position + 1
        )
        while self.handed and self.handed[0][0] < oldest:
            self.weight -= self.handed.popleft()[1]
        return self.weight

    def relieve(self, most: int) -> None:
        """Make the slowest subscriptions fall back to the log until at most `most` bytes are held."""
        while self.held > most:
            holding = [(at, id(sub), sub) for sub in self.subscriptions if (at := sub.oldest) is not None]
            min(holding)[2].fall_back()


IDLE = 5.0
"""Seconds after which the logs are checked, even without a notification."""
PAUSE = 0.01
"""Seconds between two checks while events arrive."""
PAGE = 500
TURN = 4
"""Pages read of one log before the next log's turn."""
MOST_WAITING = 20_000
"""Maximum events held for one subscription; a slower one falls back to reading the log."""
AT_ONCE = 50
"""Channels that are served before the event loop gets a turn."""
_RETRY = 1.0

LOG = logging.getLogger("joinery.changes")


@dataclass(frozen=True, slots=True)
class Subscription:
    """A follower of everything that a tenant sees: its own log and the network log."""

    own: LogSubscription
    network: LogSubscription
    news: asyncio.Event

    @property
    def position(self) -> FeedPosition:
        """The end of what has been returned, in both logs."""
        return FeedPosition(self.own.position, self.network.position)

    @property
    def overflowed(self) -> int:
        """How often the follower was too slow and fell back to the log."""
        return self.own.overflowed + self.network.overflowed

    async def next(self, limit: int = PAGE, timeout: float | None = None, most_bytes: int = CHANGES_BYTES) -> FeedBatch:
        """Return the next batch, waiting up to `timeout` seconds for one; empty after that.

        The batch ends with the event that reaches `most_bytes`. Raises CursorExpired if a log has lost what comes next.
        """
        for part in (self.own, self.network):
            batch = await part.catch_up(limit, most_bytes)
            if batch.events or not batch.caught_up:
                others = self.own.has_news or self.network.has_news
                return FeedBatch(batch.events, self.position, caught_up=batch.caught_up and not others)
        if not self.own.has_news and not self.network.has_news:
            self.news.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(timeout):
                    await self.news.wait()
        ours = self.own.take(limit, most_bytes)
        theirs = self.network.take(limit - len(ours.events), most_bytes)
        return FeedBatch((*ours.events, *theirs.events), self.position, caught_up=ours.caught_up and theirs.caught_up)

    def wake(self) -> None:
        """Make a waiting `next` check again."""
        self.news.set()


class LogTailer:
    """The process's listener for new events, which are distributed only while `run` is running."""

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
        self.high_watermarks = HighWatermarks(events)
        """Bounds of the followed logs are at most `idle` seconds old while `run` is running."""
        self._signals = signals
        self._idle, self._pause, self._most = idle, pause, most_waiting
        self._channels: dict[View, LogChannel] = {}
        self._followed: set[Subscription] = set()
        self._kick = asyncio.Event()
        self._swept = 0.0
        self._notified_at: dict[Tenant, float] = {}
        """Time of the last notification by log, for logs whose cached bounds may be older."""
        self.closing = False
        """Whether the process is stopping, so that waiting followers should end."""

    @contextlib.asynccontextmanager
    async def follow(
        self, tenant: Tenant, after: FeedPosition, wanted: EventFilter = ALL, *, most: int | None = None
    ) -> AsyncIterator[Subscription]:
        """Follow the tenant's visible, matching events after that position.

        At most `most` events are held for the follower.
        """
        news = asyncio.Event()
        async with contextlib.AsyncExitStack() as joined:
            own = await self._join(View.own(tenant), after.own, wanted, most or self._most, news)
            joined.callback(self._leave, own)
            network = await self._join(View.network(tenant), after.network, wanted, most or self._most, news)
            joined.callback(self._leave, network)
            subscription = Subscription(own, network, news)
            self._followed.add(subscription)
            joined.callback(self._followed.discard, subscription)
            if own.channel.dirty or network.channel.dirty:
                self._kick.set()
            yield subscription

    async def _join(
        self, view: View, after: LogPosition, wanted: EventFilter, most: int, news: asyncio.Event
    ) -> LogSubscription:
        channel = self._channels.get(view)
        if channel is None:
            bounds = await self.high_watermarks.lately(view.log)
            channel = self._channels.setdefault(
                view, LogChannel(self.log, self.high_watermarks, view, bounds.end if bounds else after)
            )
            channel.dirty = self._notified_at.get(view.log, 0.0) >= self.high_watermarks.looked(view.log)
        return channel.join(after, wanted, most, news)

    def _leave(self, part: LogSubscription) -> None:
        channel = part.channel
        channel.subscriptions.discard(part)
        if not channel.subscriptions and self._channels.get(channel.view) is channel:
            del self._channels[channel.view]

    def close(self) -> None:
        """Wake all followers, because the process is stopping."""
        self.closing = True
        for subscription in self._followed:
            subscription.wake()

    async def run(self) -> None:
        """Listen until cancelled and retry after database errors."""
        async with self._signals.subscribe(Channel.EVENTS) as listener:
            while True:
                try:
                    await self._listen(listener)
                except Exception:
                    LOG.exception("event logs could not be read, retrying in %.0f s", _RETRY)
                    self._swept = 0.0
                    await asyncio.sleep(_RETRY)

    async def _listen(self, listener: SignalListener) -> None:
        notified = await self._wait(listener)
        heard = listener.heard()
        self._mark(frozenset(signal.tenant for signal in heard.signals))
        if heard.missed or not notified or asyncio.get_running_loop().time() - self._swept >= self._idle:
            await self._sweep()
        if self._dirty():
            succeeded = await self._advance()
            await asyncio.sleep(self._pause if succeeded else _RETRY)

    def _dirty(self) -> bool:
        return any(channel.dirty for channel in self._channels.values())

    async def _wait(self, listener: SignalListener) -> bool:
        """Wait for a signal or new work; return False after `idle` seconds without one."""
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

    def _mark(self, logs: frozenset[Tenant]) -> None:
        now = asyncio.get_running_loop().time()
        self._notified_at.update(dict.fromkeys(logs, now))
        if len(self._notified_at) > MOST_KNOWN:
            self._notified_at = {
                log: notified for log, notified in self._notified_at.items() if notified > now - LATELY
            }
        for channel in self._channels.values():
            if channel.view.log in logs and channel.shown is not False:
                channel.dirty = True

    async def _sweep(self) -> None:
        """Query the bounds of all followed logs, and who has licences, even without notifications.

        Licences are queried after the bounds; otherwise events that a new licence opens would be skipped. Followers
        that join meanwhile are not included.
        """
        self._swept = asyncio.get_running_loop().time()
        channels = list(self._channels.values())
        tenants = {channel.view.tenant for channel in channels}
        if not tenants:
            return
        logs = tenants | {network_of(tenant.livemode) for tenant in tenants}
        found = await self.high_watermarks.look(logs)
        licensed = await self.log.licensed(tenants)
        for channel in channels:
            channel.learn(licensed)
            if (bounds := found.get(channel.view.log)) is None:
                continue
            if channel.shown and not bounds.holds(channel.position):
                bounds = await self.high_watermarks.confirmed(channel.view.log)
            channel.compare(bounds)

    async def _advance(self) -> bool:
        """Read and distribute new events of each dirty log; return False if one failed."""
        succeeded = True
        await self._load_licences()
        dirty = [channel for channel in self._channels.values() if channel.dirty]
        grouped = _group_by_position(dirty)
        for channel in dirty:
            if channel.view.of_network and channel.key in grouped:
                continue
            try:
                await self._read_on(channel)
            except CursorExpired:
                await self._restart_channel(channel)
            except Exception:
                LOG.exception("events of %s could not be read", channel.view.log.org)
                succeeded = False
        for channels in grouped.values():
            succeeded = await self._read_together(channels) and succeeded
        return succeeded

    async def _read_together(self, channels: Sequence[LogChannel]) -> bool:
        """Read a network log once for all channels at the same position; each reads the remainder by itself."""
        first, at = channels[0], channels[0].position
        try:
            batch, shown = await self.log.shared(
                first.view.log, at, PAGE, READ_BYTES, [channel.view.tenant for channel in channels]
            )
        except CursorExpired:
            for channel in channels:
                await self._restart_channel(channel)
            return True
        except Exception:
            LOG.exception("events of %s could not be read", first.view.log.org)
            return False
        for number, channel in enumerate(channels):
            if channel.position == at:
                channel.dirty = not batch.caught_up
                channel.hand_on(EventBatch(shown.get(channel.view.tenant, ()), batch.position, batch.caught_up))
                self._relieve(channel)
            if number % AT_ONCE == AT_ONCE - 1:
                await asyncio.sleep(0)
        return True

    async def _load_licences(self) -> None:
        """Query whether new channels may see any event of the network log."""
        fresh = [channel for channel in self._channels.values() if channel.shown is None]
        if fresh:
            licensed = await self.log.licensed({channel.view.tenant for channel in fresh if channel.view.of_network})
            for channel in fresh:
                channel.learn(licensed)
                channel.dirty = channel.dirty and bool(channel.shown)

    async def _restart_channel(self, channel: LogChannel) -> None:
        """Restart the channel at the log's end, because the log went back in time."""
        LOG.warning("log of %s was replaced, its followers must start again", channel.view.log.org)
        channel.lose((await self.high_watermarks.confirmed(channel.view.log)).end)

    async def _read_on(self, channel: LogChannel) -> None:
        """Read at most TURN pages, so that other logs get their turns."""
        channel.dirty = False
        for turn in range(TURN):
            if not channel.subscriptions:
                return
            try:
                more = await channel.read_on(PAGE, READ_BYTES)
            except BaseException:
                channel.dirty = True
                raise
            self._relieve(channel)
            if not more:
                return
            channel.dirty = channel.dirty or turn == TURN - 1

    def _relieve(self, channel: LogChannel) -> None:
        """Keep the process within its limit by making this channel's followers fall back to the log."""
        channels = self._channels.values()
        if sum([other.weight for other in channels]) > PROCESS_BYTES:
            others = sum(other.held for other in channels if other is not channel)
            channel.relieve(max(0, PROCESS_BYTES - others))


def _group_by_position(dirty: Sequence[LogChannel]) -> Mapping[tuple[Tenant, LogPosition], list[LogChannel]]:
    """Group the network channels at the same position, where there are several."""
    found: dict[tuple[Tenant, LogPosition], list[LogChannel]] = {}
    for channel in dirty:
        if channel.view.of_network and channel.subscriptions:
            found.setdefault(channel.key, []).append(channel)
    return {key: channels for key, channels in found.items() if len(channels) > 1}
