"""The relay that copies publishers' events into the network logs, so that readers of many catalogues read one log."""

import asyncio
import logging
from collections.abc import Mapping
from time import monotonic

from domain.changes.model import BEGINNING, LogBounds, network_of
from domain.changes.ports import NetworkLog, Published
from domain.events.model import LogPosition, weight_of
from domain.kernel.bounds import READ_BYTES
from domain.kernel.tenancy import Tenant
from ports.signals import Channel, SignalListener, Signals

SWEEP = 5.0
"""Seconds after which all publishers' logs are checked, even without a notification."""
PAUSE = 0.005
"""Seconds between two checks while events arrive; events in between share a transaction."""
AT_ONCE = 500
"""Events in one transaction."""
LEAST_SHARE = 20
"""Minimum events of one publisher in a transaction."""
_RETRY = 1.0

LOG = logging.getLogger("joinery.network")


class NetworkRelay:
    """Copies published events, in the leading process.

    A second relay is harmless: checkpoints let only one of them advance.
    """

    def __init__(self, network: NetworkLog, signals: Signals, *, sweep: float = SWEEP) -> None:
        self._network, self._signals, self._sweep = network, signals, sweep
        self._checkpoints: dict[Tenant, LogPosition] = {}
        self._scanned: dict[Tenant, LogPosition] = {}
        """Position up to which each publisher's log was scanned."""
        self._served: set[Tenant] = set()
        self._failed: set[Tenant] = set()
        self._swept = float("-inf")
        self._waiting_since: dict[Tenant | None, float] = {}
        """Start of waiting by publisher; None stands for all, while the database is unreachable."""

    @property
    def lag(self) -> float:
        """Seconds for which the oldest event has been waiting to be copied; 0 if none is."""
        now = monotonic()
        return now - min(list(self._waiting_since.values()), default=now)

    async def run(self) -> None:
        """Copy until cancelled and retry after database errors. Checkpoints are read again at each start."""
        self._swept = float("-inf")
        async with self._signals.subscribe(Channel.EVENTS) as listener:
            while True:
                try:
                    await self._listen(listener)
                except Exception:
                    self._waiting_since.setdefault(None, monotonic())
                    LOG.exception("network logs could not be filled, retrying in %.0f s", _RETRY)
                    self._swept = float("-inf")
                    await asyncio.sleep(_RETRY)

    async def _listen(self, listener: SignalListener) -> None:
        loop = asyncio.get_running_loop()
        notified = self._swept > float("-inf") and await listener.wait(
            max(0.0, self._swept + self._sweep - loop.time())
        )
        received = listener.heard()
        if not notified or received.missed or loop.time() - self._swept >= self._sweep:
            if self._swept == float("-inf"):
                await self._begin()
            self._swept = loop.time()
            await self.relay(await self._network.publishers())
        else:
            among = {signal.tenant for signal in received.signals} - {network_of(True), network_of(False)}
            if among:
                await self.relay(await self._network.publishers(among))
                await asyncio.sleep(PAUSE)

    async def _begin(self) -> None:
        """Reset the state and read the checkpoints."""
        self._checkpoints.clear()
        self._scanned.clear()
        for livemode in (True, False):
            self._checkpoints |= await self._network.checkpoints(livemode)

    async def relay(self, publishers: Mapping[Tenant, LogBounds]) -> None:
        """Copy new events of these publishers' logs, up to their bounds."""
        self._failed.clear()
        waiting = {owner: bounds for owner, bounds in publishers.items() if self._scanned.get(owner) != bounds.end}
        self._waiting_since |= {owner: monotonic() for owner in waiting if owner not in self._waiting_since}
        while waiting:
            for livemode in (True, False):
                owners = {owner: waiting[owner] for owner in waiting if owner.livemode == livemode}
                if not await self._copy(livemode, owners):
                    LOG.warning("another relay fills the network log, checkpoints reloaded")
                    await asyncio.sleep(PAUSE)
                    await self._begin()
            readable = {owner: bounds for owner, bounds in waiting.items() if owner not in self._failed}
            remaining = {owner: bounds for owner, bounds in readable.items() if self._scanned.get(owner) != bounds.end}
            waiting = {owner: remaining[owner] for owner in sorted(remaining, key=lambda owner: owner in self._served)}
            self._served.clear()
        for owner in publishers.keys() - self._failed:
            self._waiting_since.pop(owner, None)
        self._waiting_since.pop(None, None)

    async def _copy(self, livemode: bool, owners: Mapping[Tenant, LogBounds]) -> bool:
        """Copy one transaction's worth of events, a share of each publisher; return False if another relay was faster.

        Publishers that had a turn wait for those that had none.
        """
        batch: list[Published] = []
        room, weight = AT_ONCE, 0
        share = max(LEAST_SHARE, AT_ONCE // max(1, len(owners)))
        for owner, bounds in owners.items():
            if room <= 0 or weight >= READ_BYTES:
                break
            try:
                published = await self._read(owner, bounds, min(room, share))
            except Exception:
                LOG.exception("published events of %s could not be read, retrying later", owner.org)
                self._failed.add(owner)
                continue
            if published.events:
                batch.append(published)
                self._served.add(owner)
                room, weight = room - len(published.events), weight + weight_of(published.events)
            else:
                self._scanned[owner] = bounds.end
        if batch and not await self._network.append(network_of(livemode), batch):
            return False
        for published in batch:
            self._done(published, owners[published.owner])
        return True

    async def _read(self, owner: Tenant, bounds: LogBounds, room: int) -> Published:
        was = self._checkpoints.get(owner)
        if was is not None and not bounds.holds(was):
            bounds = await self._network.confirmed(owner)
        after = bounds.nearest(was or BEGINNING)
        if was is not None and (was.epoch, was.position) == (after.epoch, after.position):
            after = was  # its time is known, so that older partitions need not be searched
        events = await self._network.published(owner, after, room)
        return Published(owner, was, after.behind(events[-1]) if events else after, events)

    def _done(self, published: Published, bounds: LogBounds) -> None:
        self._checkpoints[published.owner] = published.reached
        if published.reached.position >= bounds.last:
            self._scanned[published.owner] = bounds.end
