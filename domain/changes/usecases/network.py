"""The relay, which copies events of published catalogues into the network log, the log for organisations with licences."""

import asyncio
import logging
from collections.abc import Mapping
from time import monotonic

from domain.changes.model import BEGINNING, LogBounds, get_network_tenant
from domain.changes.ports import NetworkLog, PublishedEvents
from domain.events.model import LogPosition, sum_body_bytes
from domain.kernel.bounds import READ_BYTES
from domain.kernel.tenancy import Tenant
from ports.signals import Channel, SignalListener, Signals

SWEEP_INTERVAL_SECONDS = 5.0
"""Seconds between two checks of the logs of all publishers (organisations with published catalogues)."""
PAUSE_SECONDS = 0.005
"""Seconds that the relay pauses after it has copied events; events that arrive meanwhile are then copied together."""
MAX_BATCH_EVENTS = 500
"""Maximum number of events in one transaction."""
MIN_PUBLISHER_EVENTS = 20
"""Smallest limit for the events of one publisher in a transaction; with few publishers, the limit is higher."""
_RETRY = 1.0

LOG = logging.getLogger("joinery.network")


class NetworkRelay:
    """Copies events of published catalogues into the network logs; runs in the leading process.

    A second relay does no harm: checkpoints ensure that only one of them advances.
    """

    def __init__(self, network: NetworkLog, signals: Signals, *, sweep_seconds: float = SWEEP_INTERVAL_SECONDS) -> None:
        self._network, self._signals, self._sweep_interval = network, signals, sweep_seconds
        self._checkpoints: dict[Tenant, LogPosition] = {}
        self._scanned: dict[Tenant, LogPosition] = {}
        """Position up to which each publisher's log was scanned."""
        self._served: set[Tenant] = set()
        self._failed: set[Tenant] = set()
        self._last_sweep_at = float("-inf")
        self._waiting_since: dict[Tenant | None, float] = {}
        """Since when events of each publisher wait; the key None stands for all, while the database is unreachable."""

    @property
    def lag(self) -> float:
        """Seconds for which the relay has known of events that are not copied yet; 0 if all are copied."""
        now = monotonic()
        return now - min(list(self._waiting_since.values()), default=now)

    async def run(self) -> None:
        """Copy events until cancelled; retry after database errors. Checkpoints are loaded at each start."""
        self._last_sweep_at = float("-inf")
        async with self._signals.subscribe(Channel.EVENTS) as listener:
            while True:
                try:
                    await self._process_signals(listener)
                except Exception:
                    self._waiting_since.setdefault(None, monotonic())
                    LOG.exception("events could not be copied into the network logs, retrying in %.0f s", _RETRY)
                    self._last_sweep_at = float("-inf")
                    await asyncio.sleep(_RETRY)

    async def _process_signals(self, listener: SignalListener) -> None:
        loop = asyncio.get_running_loop()
        notified = self._last_sweep_at > float("-inf") and await listener.wait(
            max(0.0, self._last_sweep_at + self._sweep_interval - loop.time())
        )
        received = listener.take_signals()
        if not notified or received.has_missed_signals or loop.time() - self._last_sweep_at >= self._sweep_interval:
            if self._last_sweep_at == float("-inf"):
                await self._load_checkpoints()
            self._last_sweep_at = loop.time()
            await self.copy_new_events(await self._network.list_publishers())
        else:
            among = {signal.tenant for signal in received.signals} - {
                get_network_tenant(True),
                get_network_tenant(False),
            }
            if among:
                await self.copy_new_events(await self._network.list_publishers(among))
                await asyncio.sleep(PAUSE_SECONDS)

    async def _load_checkpoints(self) -> None:
        """Reset the state and load the checkpoints."""
        self._checkpoints.clear()
        self._scanned.clear()
        for livemode in (True, False):
            self._checkpoints |= await self._network.load_checkpoints(livemode)

    async def copy_new_events(self, publishers: Mapping[Tenant, LogBounds]) -> None:
        """Copy the new events in the publishers' logs, up to these bounds."""
        self._failed.clear()
        waiting = {owner: bounds for owner, bounds in publishers.items() if self._scanned.get(owner) != bounds.end}
        self._waiting_since |= {owner: monotonic() for owner in waiting if owner not in self._waiting_since}
        while waiting:
            for livemode in (True, False):
                waiting_in_mode = {owner: waiting[owner] for owner in waiting if owner.livemode == livemode}
                if not await self._copy_batch(livemode, waiting_in_mode):
                    LOG.warning("checkpoints reloaded, because another relay copies events into the network log")
                    await asyncio.sleep(PAUSE_SECONDS)
                    await self._load_checkpoints()
            readable = {owner: bounds for owner, bounds in waiting.items() if owner not in self._failed}
            remaining = {owner: bounds for owner, bounds in readable.items() if self._scanned.get(owner) != bounds.end}
            waiting = {owner: remaining[owner] for owner in sorted(remaining, key=lambda owner: owner in self._served)}
            self._served.clear()
        for owner in publishers.keys() - self._failed:
            self._waiting_since.pop(owner, None)
        self._waiting_since.pop(None, None)

    async def _copy_batch(self, livemode: bool, publishers: Mapping[Tenant, LogBounds]) -> bool:
        """Copy a batch of events in one transaction; return False if another relay has copied events meanwhile.

        The number of events of each publisher is limited, so that all publishers take turns. `publishers` has the
        bounds of their logs.
        """
        batch: list[PublishedEvents] = []
        room, weight = MAX_BATCH_EVENTS, 0
        publisher_limit = max(MIN_PUBLISHER_EVENTS, MAX_BATCH_EVENTS // max(1, len(publishers)))
        for owner, bounds in publishers.items():
            if room <= 0 or weight >= READ_BYTES:
                break
            try:
                published = await self._read_published(owner, bounds, min(room, publisher_limit))
            except Exception:
                LOG.exception("published events of %s could not be read, retrying later", owner.org)
                self._failed.add(owner)
                continue
            if published.events:
                batch.append(published)
                self._served.add(owner)
                room, weight = room - len(published.events), weight + sum_body_bytes(published.events)
            else:
                self._scanned[owner] = bounds.end
        if batch and not await self._network.append(get_network_tenant(livemode), batch):
            return False
        for published in batch:
            self._record_progress(published, publishers[published.owner])
        return True

    async def _read_published(self, owner: Tenant, bounds: LogBounds, room: int) -> PublishedEvents:
        was = self._checkpoints.get(owner)
        if was is not None and not bounds.can_continue_after(was):
            bounds = await self._network.confirm_bounds(owner)
        after = bounds.find_resume_position(was or BEGINNING)
        if was is not None and (was.epoch, was.position) == (after.epoch, after.position):
            after = was  # its time is known, so older partitions need not be searched
        events = await self._network.read_published(owner, after, room)
        return PublishedEvents(owner, was, after.after(events[-1]) if events else after, events)

    def _record_progress(self, published: PublishedEvents, bounds: LogBounds) -> None:
        self._checkpoints[published.owner] = published.checkpoint_after
        if published.checkpoint_after.position >= bounds.last:
            self._scanned[published.owner] = bounds.end
