"""Takes events out of the log into an endpoint's queue, as far ahead as there is room."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from domain.changes.model import OPEN_END, FeedBatch, FeedPosition, network_of
from domain.changes.usecases.tailing import LogTailer
from domain.events.model import LogPosition
from domain.kernel.errors import CursorExpired
from domain.kernel.tenancy import Tenant
from domain.webhooks.ports import DeliveryLog
from domain.webhooks.subscription import matches
from domain.webhooks.usecases.endpoint_queue import EndpointQueue
from domain.webhooks.usecases.recording import Recorder
from domain.webhooks.usecases.sending import RETRY, Sending
from ports.clock import Clock

MOST_WAITING: Final = 2_000
"""Events held for one endpoint beside its queue; one that is slower has them read from the log."""

LOG: Final = logging.getLogger("joinery.webhooks")


class Intake:
    """One a process; it keeps nothing of its own."""

    def __init__(self, tailer: LogTailer, log: DeliveryLog, recorder: Recorder, sending: Sending, clock: Clock) -> None:
        self._tailer, self._log, self._recorder, self._sending, self._clock = tailer, log, recorder, sending, clock

    async def run(self, queue: EndpointQueue, known: frozenset[tuple[bool, int]], lost: Callable[[], None]) -> None:
        """Feed the queue until cancelled. `known` are positions beyond its beginning that have a delivery already.

        `lost` is called when a log is another one than was read: what is in hand may be of it, and the store has the truth.
        """
        tenant, endpoint = queue.key
        begun = queue.taken_up_to.network.position < OPEN_END
        while True:
            try:
                taken = queue.taken_up_to
                start = await self._nearest(tenant, taken)
                if start.network.epoch != taken.network.epoch:
                    # the network went back alone: its positions are others' by now
                    known = frozenset(place for place in known if not place[0])
                queue.passed(start)
                if not begun:  # else it would begin later after a crash, and miss what lies between
                    self._recorder.wake(queue)
                    await self._recorder.flush(everything=True)
                    begun = True
                async with self._tailer.follow(tenant, start, most=MOST_WAITING) as subscription:
                    while True:
                        most = await queue.room()
                        await self._take_in(queue, await subscription.next(most), known)
            except CursorExpired:
                LOG.warning("endpoint %s: the log is another one by now, deliveries go on in that", endpoint)
                lost()
                return
            except Exception:
                LOG.exception("endpoint %s: events could not be taken in, again in %.0f s", endpoint, RETRY)
                await asyncio.sleep(RETRY)

    async def _nearest(self, tenant: Tenant, taken: FeedPosition) -> FeedPosition:
        """That position in the present epoch of the logs.

        The checkpoint lies beside its own organisation's log and has gone back with it, if that has; the network's may
        have done so alone, and what it tells again is sent again, under the same event ids.
        """
        log = self._tailer.high_watermarks
        own, network = await log.confirmed(tenant), await log.lately(network_of(tenant.livemode))
        return FeedPosition(
            _dated(own.nearest(LogPosition(own.epoch, taken.own.position)), taken.own),
            _dated(network.nearest(taken.network), taken.network) if network else taken.network,
        )

    async def _take_in(self, queue: EndpointQueue, batch: FeedBatch, known: frozenset[tuple[bool, int]]) -> None:
        filed = await self._filed(queue, batch)
        now, clock = asyncio.get_running_loop().time(), self._clock.now()
        subscriber = queue.subscriber
        for event in batch.events:
            if (event.of_network, event.position) in known:
                continue
            if event.subject == subscriber.endpoint.id:  # that it was disabled is for others to hear
                continue
            if matches(subscriber.endpoint, event, filed=(event.product or event.subject) in filed):
                self._sending.schedule(queue, queue.take(event, now, clock))
        queue.passed(batch.position)
        self._recorder.wake(queue)
        self._sending.dispatch_ready(queue)

    async def _filed(self, queue: EndpointQueue, batch: FeedBatch) -> frozenset[str]:
        categories = queue.subscriber.endpoint.filters.categories
        if not categories or not batch.events:
            return frozenset()
        products = {event.product or event.subject for event in batch.events}
        return await self._log.filed_under(queue.subscriber.tenant, sorted(products), categories)


def _dated(position: LogPosition, taken: LogPosition) -> LogPosition:
    """With the time of the event that was taken in there: if another one stands there now, reading on tells."""
    return replace(position, time=taken.time) if position.position == taken.position else position
