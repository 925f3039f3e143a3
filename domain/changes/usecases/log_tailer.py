"""Tailing of event logs: one listener per process reads new events once for all subscriptions."""

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
    LogView,
    get_network_tenant,
)
from domain.changes.ports import EventReader, EventRendering
from domain.changes.usecases.log_reader import MAX_BOUNDS_AGE, MAX_CACHED_LOGS, LogBoundsCache, LogReader
from domain.events.model import LoggedEvent, LogPosition, sum_body_bytes
from domain.kernel.bounds import CHANGES_BYTES, PROCESS_BYTES, READ_BYTES, SUBSCRIBER_BYTES, TENANT_BYTES
from domain.kernel.errors import CursorExpired
from domain.kernel.tenancy import Tenant
from ports.signals import Channel, SignalListener, Signals


class LogSubscription:
    """Subscription to one log: reads the log until it has caught up, then receives new events.

    Attributes:
        channel: The channel from which the subscription receives new events.
        wanted: The filter of events.
        position: The position after the last returned event.
        overflow_count: Number of times that more than `max_waiting` events would have waited.
    """

    def __init__(
        self, channel: "LogChannel", position: LogPosition, max_waiting: int, wanted: EventFilter, wakeup: asyncio.Event
    ) -> None:
        self.channel, self._max_waiting, self.wanted, self._wakeup = channel, max_waiting, wanted, wakeup
        self._waiting: deque[LoggedEvent] = deque()
        self._weight = 0
        self._reached = position
        self._live = self._lost = False
        self.position = position
        self.overflow_count = 0

    @property
    def is_ready(self) -> bool:
        """True if events, or at least a new position, can be returned without waiting."""
        return bool(self._waiting) or not self._live or self._lost or self._reached != self.position

    async def catch_up(self, limit: int, max_bytes: int) -> EventBatch:
        """Return the next page of the log if the subscription is behind, else an empty batch.

        Raises CursorExpired.
        """
        if self._lost:
            raise CursorExpired
        if self._live:
            return EventBatch((), self.position, caught_up=True)
        batch = await self.channel.read_for_subscription(self, limit, max_bytes)
        self.position = self._reached = batch.position
        self._live = batch.position.position >= self.channel.position.position
        return batch

    def take_received(self, limit: int, max_bytes: int) -> EventBatch:
        """Remove and return at most `limit` received events, ending with the event that reaches `max_bytes`."""
        events: list[LoggedEvent] = []
        taken, waiting = 0, self._waiting
        while waiting and len(events) < limit and taken < max_bytes:
            events.append(waiting.popleft())
            taken += len(events[-1].body)
        self._weight -= taken
        if waiting:
            self.position = self.position.after(events[-1]) if events else self.position
        else:
            self.position = self._reached
        return EventBatch(events, self.position, caught_up=self._live and not waiting)

    def receive(self, batch: EventBatch) -> None:
        """Add the batch's events to the waiting ones; if too many events wait, fall back to reading the log."""
        if not self._live or batch.position.position <= self._reached.position:
            return
        matching = [event for event in batch.events if event.position > self._reached.position]
        weight = sum_body_bytes(matching)
        if len(self._waiting) + len(matching) > self._max_waiting:
            self.fall_back()
            self.overflow_count += 1
        elif self._weight + weight > SUBSCRIBER_BYTES:
            self.fall_back()
        else:
            self._waiting.extend(matching)
            self._weight += weight
            self._reached = batch.position
        self._wakeup.set()

    @property
    def oldest_waiting_position(self) -> int | None:
        """The position of the first waiting event, or None."""
        return self._waiting[0].position if self._waiting else None

    def fall_back(self) -> None:
        """Discard the waiting events, so that they are read from the log later."""
        self._live = False
        self._reached = self.position
        self._waiting.clear()
        self._weight = 0
        self._wakeup.set()

    def mark_events_missed(self) -> None:
        """Mark the subscription as having missed events: the next read raises CursorExpired."""
        self.fall_back()
        self._lost = True


@dataclass(slots=True)
class LogChannel:
    """Shared state of all subscriptions to one view of a log.

    Attributes:
        position: Position up to which the log was read.
        is_dirty: Whether the log may have events after `position`.
        is_visible: Whether the tenant may see any event of the log; None until this was queried.
        distributed_events: Position and size in bytes of each distributed event that a subscription may still hold.
        distributed_bytes: The sum of these sizes.
    """

    log_reader: LogReader
    bounds_cache: LogBoundsCache
    view: LogView
    position: LogPosition
    is_dirty: bool = True
    is_visible: bool | None = None
    subscriptions: set[LogSubscription] = field(default_factory=set)
    distributed_events: deque[tuple[int, int]] = field(default_factory=deque)
    distributed_bytes: int = 0

    @property
    def key(self) -> tuple[Tenant, LogPosition]:
        """The log, and the position up to which it was read."""
        return self.view.log, self.position

    def add_subscription(
        self, after: LogPosition, wanted: EventFilter, max_waiting: int, wakeup: asyncio.Event
    ) -> LogSubscription:
        """Add a subscription to the channel.

        Args:
            after: The position after which the subscription starts.
            wanted: The filter of events.
            max_waiting: Maximum number of events that wait in the subscription.
            wakeup: Event that is set whenever the subscription may have events to return.
        """
        subscription = LogSubscription(self, after, max_waiting, wanted, wakeup)
        self.subscriptions.add(subscription)
        return subscription

    async def read_for_subscription(self, subscription: LogSubscription, limit: int, max_bytes: int) -> EventBatch:
        """Return the next page of the log for a subscription that is behind the channel. Raises CursorExpired.

        If the tenant may not see any event, the batch is empty and ends at the position of the channel.
        """
        after = subscription.position
        if self.is_visible is None:
            self.update_licence(await self.log_reader.filter_licensed([self.view.tenant]))
        if not self.is_visible:
            return EventBatch((), self.position, caught_up=True)
        if after.contradicts(self.position):
            raise CursorExpired
        epochs_differ = bool(after.position) and after.epoch != self.position.epoch
        if epochs_differ and not (await self.bounds_cache.query_confirmed(self.view.log)).can_continue_after(after):
            raise CursorExpired
        if after.position == self.position.position:
            return EventBatch((), self.position, caught_up=True)
        end = self.position
        if after.position > end.position:  # the channel may be behind, or the log restored
            self.is_dirty, end = True, LogPosition(end.epoch, OPEN_END)
        return await self.log_reader.read_batch(self.view, after, end, limit, subscription.wanted, max_bytes=max_bytes)

    async def read_new_events(self, limit: int, max_bytes: int) -> bool:
        """Read and distribute a page of new events; return whether there are more. Raises CursorExpired."""
        end = LogPosition(self.position.epoch, OPEN_END)
        batch = await self.log_reader.read_batch(self.view, self.position, end, limit, ALL, max_bytes=max_bytes)
        self.distribute(batch)
        return not batch.caught_up

    def distribute(self, batch: EventBatch) -> None:
        """Pass to each subscription the events of the batch that match the subscription's filter."""
        self.position = batch.position
        matching: dict[EventFilter, EventBatch] = {}
        for subscription in list(self.subscriptions):
            wanted = subscription.wanted
            if wanted not in matching:
                events = [event for event in batch.events if wanted.matches(event)]
                matching[wanted] = EventBatch(events, batch.position, batch.caught_up)
            subscription.receive(matching[wanted])
        self.distributed_events.extend((event.position, len(event.body)) for event in batch.events)
        self.distributed_bytes += sum_body_bytes(batch.events)
        self.limit_held_bytes(TENANT_BYTES)

    def update_licence(self, licensed: frozenset[Tenant]) -> None:
        """Update whether the tenant may see any event of the log; `licensed` are the tenants with licences."""
        self.is_visible = not self.view.is_network or self.view.tenant in licensed

    def apply_bounds(self, bounds: LogBounds) -> None:
        """Compare the channel's position with the log's current bounds.

        New events make the channel dirty. If the log was restored to an earlier state, or has deleted events that were not
        read, the subscriptions are marked as having missed events. If the tenant may not see any event, the channel skips to the end.
        """
        if not self.is_visible:
            self.skip_to(bounds.end)
        elif not bounds.can_continue_after(self.position):
            self.mark_events_missed(bounds.end)
        else:
            self.position = replace(self.position, epoch=bounds.epoch)
            self.is_dirty = self.is_dirty or bounds.last > self.position.position

    def skip_to(self, end: LogPosition) -> None:
        """Move the channel and all subscriptions to the end of the log without reading events."""
        self.is_dirty, self.position = False, end
        for subscription in list(self.subscriptions):
            subscription.receive(EventBatch((), end, caught_up=True))

    def mark_events_missed(self, end: LogPosition) -> None:
        """Mark all subscriptions as having missed events, and continue at the end of the log.

        Call this if the log was restored to an earlier state, or has deleted events that the subscriptions have not read.
        """
        self.is_dirty, self.position = False, end
        for subscription in list(self.subscriptions):
            subscription.mark_events_missed()

    @property
    def held_bytes(self) -> int:
        """Total size in bytes of the events that wait in any subscription; each event counts once."""
        oldest = min(
            (at for sub in self.subscriptions if (at := sub.oldest_waiting_position) is not None),
            default=self.position.position + 1,
        )
        while self.distributed_events and self.distributed_events[0][0] < oldest:
            self.distributed_bytes -= self.distributed_events.popleft()[1]
        return self.distributed_bytes

    def limit_held_bytes(self, max_bytes: int) -> None:
        """Make the slowest subscriptions fall back to reading the log.

        Args:
            max_bytes: Maximum number of bytes that may be held afterwards.
        """
        while self.held_bytes > max_bytes:
            holding = [
                (at, id(sub), sub) for sub in self.subscriptions if (at := sub.oldest_waiting_position) is not None
            ]
            min(holding)[2].fall_back()


MAX_CHECK_INTERVAL_SECONDS = 5.0
"""Maximum seconds between two checks of the bounds of all subscribed logs; notifications cause earlier checks of one log."""
PAUSE_SECONDS = 0.01
"""Seconds between two checks while events arrive."""
MAX_PAGE_EVENTS = 500
"""Maximum number of events in a page that is read from a log at once."""
MAX_PAGES_PER_TURN = 4
"""Maximum number of pages read from one log before the next log is read."""
MAX_WAITING_EVENTS = 20_000
"""Maximum number of events that wait in one subscription; a slower subscription falls back to reading the log."""
CHANNELS_PER_YIELD = 50
"""Number of channels to which events are distributed before control returns to the event loop."""
_RETRY = 1.0

LOG = logging.getLogger("joinery.changes")


@dataclass(frozen=True, slots=True)
class Subscription:
    """Subscription to all events that a tenant can see: in the tenant's own log, and in the network log (events of published catalogues).

    `wakeup` is set whenever one of the two subscriptions may have events to return.
    """

    own: LogSubscription
    network: LogSubscription
    wakeup: asyncio.Event

    @property
    def position(self) -> FeedPosition:
        """The position after the last returned event, in both logs."""
        return FeedPosition(self.own.position, self.network.position)

    @property
    def overflow_count(self) -> int:
        """Number of times that the subscriber was too slow and fell back to reading the log."""
        return self.own.overflow_count + self.network.overflow_count

    async def next_batch(
        self, limit: int = MAX_PAGE_EVENTS, timeout: float | None = None, max_bytes: int = CHANGES_BYTES
    ) -> FeedBatch:
        """Return the next batch of events; wait for events for up to `timeout` seconds (None: without limit).

        The batch is empty if no event arrives in this time, and ends with the event that reaches `max_bytes`. Raises
        CursorExpired if a log has lost the next events.
        """
        for subscription in (self.own, self.network):
            batch = await subscription.catch_up(limit, max_bytes)
            if batch.events or not batch.caught_up:
                others = self.own.is_ready or self.network.is_ready
                return FeedBatch(batch.events, self.position, caught_up=batch.caught_up and not others)
        if not self.own.is_ready and not self.network.is_ready:
            self.wakeup.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(timeout):
                    await self.wakeup.wait()
        ours = self.own.take_received(limit, max_bytes)
        theirs = self.network.take_received(limit - len(ours.events), max_bytes)
        return FeedBatch((*ours.events, *theirs.events), self.position, caught_up=ours.caught_up and theirs.caught_up)

    def wake(self) -> None:
        """Make a waiting call of `next_batch` return, if need be with an empty batch."""
        self.wakeup.set()


class LogTailer:
    """Reader of new events, one per process, that distributes them to subscriptions while `run` is running."""

    def __init__(
        self,
        events: EventReader,
        rendering: EventRendering,
        signals: Signals,
        *,
        idle_seconds: float = MAX_CHECK_INTERVAL_SECONDS,
        pause_seconds: float = PAUSE_SECONDS,
        max_waiting: int = MAX_WAITING_EVENTS,
    ) -> None:
        self.log_reader = LogReader(events, rendering)
        self.bounds_cache = LogBoundsCache(events)
        """Bounds of logs; the bounds of subscribed logs are at most `idle_seconds` old while `run` is running."""
        self._signals = signals
        self._idle, self._pause, self._max_waiting = idle_seconds, pause_seconds, max_waiting
        self._channels: dict[LogView, LogChannel] = {}
        self._subscriptions: set[Subscription] = set()
        self._new_work = asyncio.Event()
        self._last_sweep = 0.0
        self._notified_at: dict[Tenant, float] = {}
        """Time of the last notification for each log, by which outdated cached bounds are recognised."""
        self.is_closing = False
        """True if the process is stopping, so that waiting subscribers should end."""

    @contextlib.asynccontextmanager
    async def subscribe(
        self, tenant: Tenant, after: FeedPosition, wanted: EventFilter = ALL, *, max_waiting: int | None = None
    ) -> AsyncIterator[Subscription]:
        """Subscribe to the tenant's visible, matching events after the position.

        Args:
            tenant: The tenant whose own log and network log are read.
            after: Position in both logs.
            wanted: Filter of events.
            max_waiting: Maximum number of events that wait in the subscription to each log; None for the maximum of the
                tailer.
        """
        wakeup = asyncio.Event()
        async with contextlib.AsyncExitStack() as joined:
            own = await self._join(LogView.own(tenant), after.own, wanted, max_waiting or self._max_waiting, wakeup)
            joined.callback(self._leave, own)
            network = await self._join(
                LogView.network(tenant), after.network, wanted, max_waiting or self._max_waiting, wakeup
            )
            joined.callback(self._leave, network)
            subscription = Subscription(own, network, wakeup)
            self._subscriptions.add(subscription)
            joined.callback(self._subscriptions.discard, subscription)
            if own.channel.is_dirty or network.channel.is_dirty:
                self._new_work.set()
            yield subscription

    async def _join(
        self, view: LogView, after: LogPosition, wanted: EventFilter, max_waiting: int, wakeup: asyncio.Event
    ) -> LogSubscription:
        channel = self._channels.get(view)
        if channel is None:
            bounds = await self.bounds_cache.get_recent(view.log)
            channel = self._channels.setdefault(
                view, LogChannel(self.log_reader, self.bounds_cache, view, bounds.end if bounds else after)
            )
            channel.is_dirty = self._notified_at.get(view.log, 0.0) >= self.bounds_cache.get_query_time(view.log)
        return channel.add_subscription(after, wanted, max_waiting, wakeup)

    def _leave(self, subscription: LogSubscription) -> None:
        channel = subscription.channel
        channel.subscriptions.discard(subscription)
        if not channel.subscriptions and self._channels.get(channel.view) is channel:
            del self._channels[channel.view]

    def close(self) -> None:
        """Wake all subscribers, so that they end when the process stops."""
        self.is_closing = True
        for subscription in self._subscriptions:
            subscription.wake()

    async def run(self) -> None:
        """Read and distribute new events until cancelled; retry after database errors."""
        async with self._signals.subscribe(Channel.EVENTS) as listener:
            while True:
                try:
                    await self._process_signals(listener)
                except Exception:
                    LOG.exception("event logs could not be read, retrying in %.0f s", _RETRY)
                    self._last_sweep = 0.0
                    await asyncio.sleep(_RETRY)

    async def _process_signals(self, listener: SignalListener) -> None:
        """Wait for signals once, then query the logs' bounds if needed, and distribute new events."""
        notified = await self._wait(listener)
        heard = listener.take_signals()
        self._mark_dirty(frozenset(signal.tenant for signal in heard.signals))
        if (
            heard.has_missed_signals
            or not notified
            or asyncio.get_running_loop().time() - self._last_sweep >= self._idle
        ):
            await self._query_all_bounds()
        if self._has_dirty_channel():
            succeeded = await self._read_dirty()
            await asyncio.sleep(self._pause if succeeded else _RETRY)

    def _has_dirty_channel(self) -> bool:
        return any(channel.is_dirty for channel in self._channels.values())

    async def _wait(self, listener: SignalListener) -> bool:
        """Wait until a channel is dirty or a signal arrives; return False if neither happens within `idle_seconds`."""
        if self._has_dirty_channel():
            return True
        heard = asyncio.ensure_future(listener.wait(self._idle))
        kicked = asyncio.ensure_future(self._new_work.wait())
        try:
            await asyncio.wait((heard, kicked), return_when=asyncio.FIRST_COMPLETED)
            return True if self._new_work.is_set() else heard.result()
        finally:
            self._new_work.clear()
            for task in (heard, kicked):
                task.cancel()
            await asyncio.gather(heard, kicked, return_exceptions=True)

    def _mark_dirty(self, logs: frozenset[Tenant]) -> None:
        now = asyncio.get_running_loop().time()
        self._notified_at.update(dict.fromkeys(logs, now))
        if len(self._notified_at) > MAX_CACHED_LOGS:
            self._notified_at = {
                log: notified for log, notified in self._notified_at.items() if notified > now - MAX_BOUNDS_AGE
            }
        for channel in self._channels.values():
            if channel.view.log in logs and channel.is_visible is not False:
                channel.is_dirty = True

    async def _query_all_bounds(self) -> None:
        """Query the bounds and licences of all subscribed logs, including those without a notification."""
        self._last_sweep = asyncio.get_running_loop().time()
        channels = list(self._channels.values())
        tenants = {channel.view.tenant for channel in channels}
        if not tenants:
            return
        logs = tenants | {get_network_tenant(tenant.livemode) for tenant in tenants}
        found = await self.bounds_cache.query(logs)
        # after the bounds, or the events that a new licence makes visible would be skipped
        licensed = await self.log_reader.filter_licensed(tenants)
        for channel in channels:
            channel.update_licence(licensed)
            if (bounds := found.get(channel.view.log)) is None:
                continue
            if channel.is_visible and not bounds.can_continue_after(channel.position):
                bounds = await self.bounds_cache.query_confirmed(channel.view.log)
            channel.apply_bounds(bounds)

    async def _read_dirty(self) -> bool:
        """Read and distribute new events of each dirty channel; return False if a channel could not be read."""
        succeeded = True
        await self._query_new_licences()
        dirty = [channel for channel in self._channels.values() if channel.is_dirty]
        grouped = _group_by_position(dirty)
        for channel in dirty:
            if channel.view.is_network and channel.key in grouped:
                continue
            try:
                await self._read_pages(channel)
            except CursorExpired:
                await self._restart_channel(channel)
            except Exception:
                LOG.exception("events of %s could not be read", channel.view.log.org)
                succeeded = False
        for channels in grouped.values():
            succeeded = await self._read_for_group(channels) and succeeded
        return succeeded

    async def _read_for_group(self, channels: Sequence[LogChannel]) -> bool:
        """Read a page of the network log once for channels at the same position; return False if it could not be read."""
        first, at = channels[0], channels[0].position
        try:
            batch, shown = await self.log_reader.read_for_tenants(
                first.view.log, at, MAX_PAGE_EVENTS, READ_BYTES, [channel.view.tenant for channel in channels]
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
                channel.is_dirty = not batch.caught_up
                channel.distribute(EventBatch(shown.get(channel.view.tenant, ()), batch.position, batch.caught_up))
                self._limit_memory(channel)
            if number % CHANNELS_PER_YIELD == CHANNELS_PER_YIELD - 1:
                await asyncio.sleep(0)
        return True

    async def _query_new_licences(self) -> None:
        """Query for new channels whether their tenants may see any event of the network log."""
        fresh = [channel for channel in self._channels.values() if channel.is_visible is None]
        if fresh:
            licensed = await self.log_reader.filter_licensed(
                {channel.view.tenant for channel in fresh if channel.view.is_network}
            )
            for channel in fresh:
                channel.update_licence(licensed)
                channel.is_dirty = channel.is_dirty and bool(channel.is_visible)

    async def _restart_channel(self, channel: LogChannel) -> None:
        """Continue the channel at the log's end, because the log was restored to an earlier state."""
        LOG.warning("event log of %s restored to an earlier state, subscribers need new cursors", channel.view.log.org)
        channel.mark_events_missed((await self.bounds_cache.query_confirmed(channel.view.log)).end)

    async def _read_pages(self, channel: LogChannel) -> None:
        """Read at most MAX_PAGES_PER_TURN pages of the channel's log, so that other logs do not have to wait."""
        channel.is_dirty = False
        for turn in range(MAX_PAGES_PER_TURN):
            if not channel.subscriptions:
                return
            try:
                more = await channel.read_new_events(MAX_PAGE_EVENTS, READ_BYTES)
            except BaseException:
                channel.is_dirty = True
                raise
            self._limit_memory(channel)
            if not more:
                return
            channel.is_dirty = channel.is_dirty or turn == MAX_PAGES_PER_TURN - 1

    def _limit_memory(self, channel: LogChannel) -> None:
        """Keep the process within PROCESS_BYTES: make this channel's subscriptions fall back to reading the log."""
        channels = self._channels.values()
        if sum([other.distributed_bytes for other in channels]) > PROCESS_BYTES:
            others = sum(other.held_bytes for other in channels if other is not channel)
            channel.limit_held_bytes(max(0, PROCESS_BYTES - others))


def _group_by_position(dirty: Sequence[LogChannel]) -> Mapping[tuple[Tenant, LogPosition], list[LogChannel]]:
    """Group the channels of network logs by log and position; groups of a single channel are omitted."""
    found: dict[tuple[Tenant, LogPosition], list[LogChannel]] = {}
    for channel in dirty:
        if channel.view.is_network and channel.subscriptions:
            found.setdefault(channel.key, []).append(channel)
    return {key: channels for key, channels in found.items() if len(channels) > 1}
