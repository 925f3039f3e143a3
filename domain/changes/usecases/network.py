"""Filling the network's logs: published events are copied in their owners' order, so that a reader reads one log of many."""

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
"""Seconds after which every publisher's log is looked at, whatever was said."""
PAUSE = 0.005
"""Seconds between two looks while events come in: what comes meanwhile goes in one transaction."""
AT_ONCE = 500
"""Events in one transaction."""
LEAST_SHARE = 20
"""Of one publisher, where many have something."""
_RETRY = 1.0

LOG = logging.getLogger("joinery.network")


class NetworkRelay:
    """One leads. Another one beside it does no harm: the checkpoint of each publisher lets only one of them go on."""

    def __init__(self, network: NetworkLog, signals: Signals, *, sweep: float = SWEEP) -> None:
        self._network, self._signals, self._sweep = network, signals, sweep
        self._checkpoints: dict[Tenant, LogPosition] = {}
        self._looked: dict[Tenant, LogPosition] = {}
        """Up to where each publisher's log was looked through, whether or not there was anything to copy."""
        self._turns: set[Tenant] = set()
        self._missed: set[Tenant] = set()
        self._swept = float("-inf")
        self._late: dict[Tenant | None, float] = {}
        """Whose events have been waiting since when; None stands for everybody, while nobody can be asked."""

    @property
    def lag(self) -> float:
        """Seconds since when something has been waiting to be copied, 0 when nothing does."""
        now = monotonic()
        return now - min(list(self._late.values()), default=now)

    async def run(self) -> None:
        """Copy until cancelled; trouble with a database is waited out. Each term of leading asks anew how far it has come."""
        self._swept = float("-inf")
        async with self._signals.subscribe(Channel.EVENTS) as listener:
            while True:
                try:
                    await self._listen(listener)
                except Exception:
                    self._late.setdefault(None, monotonic())
                    LOG.exception("the network's logs could not be filled, again in %.0f s", _RETRY)
                    self._swept = float("-inf")
                    await asyncio.sleep(_RETRY)

    async def _listen(self, listener: SignalListener) -> None:
        loop = asyncio.get_running_loop()
        said = self._swept > float("-inf") and await listener.wait(max(0.0, self._swept + self._sweep - loop.time()))
        heard = listener.heard()
        if not said or heard.missed or loop.time() - self._swept >= self._sweep:
            if self._swept == float("-inf"):
                await self._begin()
            self._swept = loop.time()
            await self.relay(await self._network.publishers())
        else:
            among = {signal.tenant for signal in heard.signals} - {network_of(True), network_of(False)}
            if among:
                await self.relay(await self._network.publishers(among))
                await asyncio.sleep(PAUSE)

    async def _begin(self) -> None:
        """With the checkpoints as they are."""
        self._checkpoints.clear()
        self._looked.clear()
        for livemode in (True, False):
            self._checkpoints |= await self._network.checkpoints(livemode)

    async def relay(self, publishers: Mapping[Tenant, LogBounds]) -> None:
        """Copy what is new of these publishers' logs, as they stand in their bounds."""
        self._missed.clear()
        waiting = {owner: bounds for owner, bounds in publishers.items() if self._looked.get(owner) != bounds.end}
        self._late |= {owner: monotonic() for owner in waiting if owner not in self._late}
        while waiting:
            for livemode in (True, False):
                owners = {owner: waiting[owner] for owner in waiting if owner.livemode == livemode}
                if not await self._copy(livemode, owners):
                    LOG.warning("somebody else fills the network's log as well; the checkpoints are read again")
                    await asyncio.sleep(PAUSE)
                    await self._begin()
            told = {owner: bounds for owner, bounds in waiting.items() if owner not in self._missed}
            left = {owner: bounds for owner, bounds in told.items() if self._looked.get(owner) != bounds.end}
            waiting = {owner: left[owner] for owner in sorted(left, key=lambda owner: owner in self._turns)}
            self._turns.clear()
        for owner in publishers.keys() - self._missed:
            self._late.pop(owner, None)
        self._late.pop(None, None)

    async def _copy(self, livemode: bool, owners: Mapping[Tenant, LogBounds]) -> bool:
        """One transaction's worth of them, of each its share; False when somebody else was faster.

        Who had a turn waits for those who had none.
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
                LOG.exception("what %s publishes could not be read, and is left for the next look", owner.org)
                self._missed.add(owner)
                continue
            if published.events:
                batch.append(published)
                self._turns.add(owner)
                room, weight = room - len(published.events), weight + weight_of(published.events)
            else:
                self._looked[owner] = bounds.end
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
            after = was  # its time is known: days before it need not be looked into
        events = await self._network.published(owner, after, room)
        return Published(owner, was, after.behind(events[-1]) if events else after, events)

    def _done(self, published: Published, bounds: LogBounds) -> None:
        self._checkpoints[published.owner] = published.reached
        if published.reached.position >= bounds.last:
            self._looked[published.owner] = bounds.end
