"""Following the log as it grows: one listener a process reads what is new once and hands it to everyone who waits."""

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from domain.changes.model import ALL, Reader, Stretch
from domain.events.model import LoggedEvent
from domain.kernel.tenancy import Tenant
from ports.events import EventReader, EventRendering
from ports.signals import Signals, Subscription

IDLE: Final = 30.0
"""Seconds after which the log is asked though nothing was said."""
PAUSE: Final = 0.01
"""Seconds between two looks while events come in, or wait for a writer that is not done."""
PAGE: Final = 500
MOST_WAITING: Final = 5_000
"""Events held for one follower; one that is slower goes on from the log itself."""
TRUSTED: Final = 30.0
"""Seconds for which a tenant's licences are taken to hold."""
_RETRY: Final = 1.0

LOG: Final = logging.getLogger("joinery.changes")


class Following:
    """One way along the log: from the log itself until it is caught up, then from what the listener hands out.

    `position` is how far it has come: everything up to there has been answered.
    """

    def __init__(self, channel: "_Channel", position: int, most: int) -> None:
        self._channel, self._most = channel, most
        self._waiting: deque[LoggedEvent] = deque()
        self._reached = position
        self._live = False
        self._news = asyncio.Event()
        self.position = position
        self.overflowed = 0
        """How often it was too slow for the listener."""

    async def next(self, limit: int = PAGE, timeout: float | None = None) -> Stretch:
        """The next stretch: at once when there is anything, else as soon as there is; empty after `timeout` seconds."""
        if not self._live:
            stretch = await self._channel.catch_up(self, limit)
            if stretch.events or not stretch.caught_up:
                return stretch
        if not self._waiting and self._reached <= self.position and self._live:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._news.wait(), timeout)
        return self._take(limit)

    def _take(self, limit: int) -> Stretch:
        events = [self._waiting.popleft() for _ in range(min(limit, len(self._waiting)))]
        if not self._waiting:
            self._news.clear()
        self.position = max(self.position, events[-1].position if self._waiting else self._reached)
        return Stretch(events, self.position, caught_up=self._live and not self._waiting)

    def moved(self, stretch: Stretch) -> None:
        """It has read so far by itself."""
        self.position = self._reached = stretch.position

    def join(self) -> None:
        """From now on it is handed what is new."""
        self._live = True

    def hand(self, events: Sequence[LoggedEvent], position: int) -> None:
        """Everything new up to `position`; too much of it, and it reads from the log again."""
        if not self._live or position <= self._reached:
            return
        if len(self._waiting) + len(events) > self._most:
            self._live = False
            self._reached = self.position
            self._waiting.clear()
            self.overflowed += 1
        else:
            self._waiting.extend(event for event in events if event.position > self._reached)
            self._reached = position
        self._news.set()

    def wake(self) -> None:
        """Let whoever waits look again."""
        self._news.set()


@dataclass(slots=True)
class _Channel:
    """What one tenant's followers share: how far the listener has read for them, and whether there is more to read."""

    follower: "Follower"
    reader: Reader
    position: int
    trusted_until: float
    dirty: bool = True
    wanted: int = 0
    followings: set[Following] = field(default_factory=set)

    async def catch_up(self, following: Following, limit: int) -> Stretch:
        """The next page of the log for one who is behind; joins it to the others once it is not."""
        up_to = max(self.position, self.follower.horizon)
        if following.position < up_to:
            events = await self.follower.read(self.reader, following.position, up_to, limit)
            stretch = events
        else:
            stretch = Stretch((), following.position, caught_up=True)
        following.moved(stretch)
        if following.position >= self.position:
            following.join()
        return stretch


class Follower:
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
        self._events, self._rendering, self._signals = events, rendering, signals
        self._idle, self._pause, self._most = idle, pause, most_waiting
        self._channels: dict[Tenant, _Channel] = {}
        self._asking: asyncio.Task[None] | None = None
        self._kick = asyncio.Event()
        self.horizon = 0
        """A horizon of the log, at most `idle` seconds old while `run` is running."""
        self.floor = 0
        self.last = 0

    @contextlib.asynccontextmanager
    async def follow(self, tenant: Tenant, after: int) -> AsyncIterator[Following]:
        """Follow what the tenant may see from after that position on."""
        channel = await self._channel(tenant)
        following = Following(channel, after, self._most)
        channel.followings.add(following)
        self._kick.set()
        try:
            yield following
        finally:
            channel.followings.discard(following)
            if not channel.followings and self._channels.get(tenant) is channel:
                del self._channels[tenant]

    async def fresh(self) -> int:
        """A horizon no older than this call: one question to the database answers all who ask meanwhile."""
        running = self._asking
        if running is not None:
            await asyncio.wait((running,))  # it may have looked before the caller wrote
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self._reach())
        await asyncio.shield(self._asking)
        return self.horizon

    async def read(self, reader: Reader, after: int, up_to: int, limit: int) -> Stretch:
        """The next `limit` events up to `up_to`, of every type, as the reader may see them."""
        found = await self._events.page(reader, after, up_to, limit, ALL)
        whole = len(found) < limit
        return Stretch(self.shown(found), up_to if whole else found[-1].position, caught_up=whole)

    def shown(self, events: Sequence[LoggedEvent]) -> list[LoggedEvent]:
        """The events as licences show them: others' fields cut to the groups, and what shows nothing left out."""
        if all(event.groups is None for event in events):
            return list(events)
        return [shown for event in events if (shown := self._shown(event)) is not None]

    def _shown(self, event: LoggedEvent) -> LoggedEvent | None:
        if event.groups is None:
            return event
        body = self._rendering.redacted(event, event.groups)
        return None if body is None else LoggedEvent(
            event.position, event.id, event.type, event.subject, event.product, event.source, event.catalogue,
            event.version, event.time, body, event.groups,
        )  # fmt: skip

    async def reader(self, tenant: Tenant) -> Reader:
        """The tenant with the licences that it holds."""
        channel = self._channels.get(tenant)
        if channel is not None and asyncio.get_running_loop().time() < channel.trusted_until:
            return channel.reader
        return Reader(tenant, tuple(await self._events.licences(tenant)))

    def wake_all(self) -> None:
        """Let everyone who waits look again: the process is about to stop."""
        for channel in self._channels.values():
            for following in channel.followings:
                following.wake()

    async def _channel(self, tenant: Tenant) -> _Channel:
        if tenant not in self._channels:
            reader = await self.reader(tenant)
            until = asyncio.get_running_loop().time() + TRUSTED
            self._channels.setdefault(tenant, _Channel(self, reader, self.horizon, until))
        return self._channels[tenant]

    async def run(self) -> None:
        """Listen until cancelled; trouble with the database is waited out."""
        async with self._signals.subscribe("events") as subscription:
            while True:
                try:
                    await self._listen(subscription)
                except Exception:
                    LOG.exception("the event log could not be read, again in %.0f s", _RETRY)
                    for channel in self._channels.values():
                        channel.dirty = True
                    await asyncio.sleep(_RETRY)

    async def _listen(self, subscription: Subscription) -> None:
        said = await self._wait(subscription)
        self._mark(subscription.words(), everything=not said)
        if not said or any(channel.dirty for channel in self._channels.values()):
            await self._reach()
            await self._advance()
            await asyncio.sleep(self._pause)

    async def _wait(self, subscription: Subscription) -> bool:
        """True for a signal, or when something is left to be read; False after `idle` seconds."""
        if any(channel.dirty for channel in self._channels.values()):
            return True
        heard = asyncio.ensure_future(subscription.wait(self._idle))
        kicked = asyncio.ensure_future(self._kick.wait())
        try:
            await asyncio.wait((heard, kicked), return_when=asyncio.FIRST_COMPLETED)
            return True if self._kick.is_set() else heard.result()
        finally:
            self._kick.clear()
            for task in (heard, kicked):
                task.cancel()
            await asyncio.gather(heard, kicked, return_exceptions=True)

    def _mark(self, words: frozenset[str], *, everything: bool) -> None:
        everything = everything or "" in words
        for tenant, channel in self._channels.items():
            if (
                everything
                or _word(tenant) in words
                or any(_word(one.owner) in words for one in channel.reader.licences)
            ):
                channel.dirty, channel.wanted = True, 0

    async def _reach(self) -> None:
        reach = await self._events.reach()
        self.horizon = max(self.horizon, reach.horizon)
        self.last, self.floor = reach.last, reach.floor

    async def _advance(self) -> None:
        """Read what is new for each tenant that has anything, up to the horizon, and hand it out."""
        for channel in list(self._channels.values()):
            if not channel.dirty:
                continue
            channel.wanted = channel.wanted or self.last
            await self._trust(channel)
            horizon = self.horizon
            while channel.position < horizon and channel.followings:
                stretch = await self.read(channel.reader, channel.position, horizon, PAGE)
                channel.position = stretch.position
                for following in list(channel.followings):
                    following.hand(stretch.events, stretch.position)
            channel.dirty = channel.position < channel.wanted
            if not channel.dirty:
                channel.wanted = 0

    async def _trust(self, channel: _Channel) -> None:
        now = asyncio.get_running_loop().time()
        if now >= channel.trusted_until:
            tenant = channel.reader.tenant
            channel.reader = Reader(tenant, tuple(await self._events.licences(tenant)))
            channel.trusted_until = now + TRUSTED


def _word(tenant: Tenant) -> str:
    return f"{tenant.org} {'t' if tenant.livemode else 'f'}"
