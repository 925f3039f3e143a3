"""Takes events out of the log into an endpoint's lane, as far ahead as there is room."""

import asyncio
import logging
from datetime import timedelta
from typing import Final

from domain.changes.following import Follower
from domain.changes.model import Stretch
from domain.webhooks.lane import Lane, delivery_of
from domain.webhooks.recording import Recorder
from domain.webhooks.sending import RETRY, Sending
from domain.webhooks.wanting import wants
from ports.clock import Clock
from ports.webhooks import DeliveryLog

MOST_WAITING: Final = 2_000
"""Events held for one endpoint beside its lane; one that is slower has them read from the log."""

LOG: Final = logging.getLogger("joinery.webhooks")


class Intake:
    """One a process; it keeps nothing of its own."""

    def __init__(
        self, follower: Follower, log: DeliveryLog, recorder: Recorder, sending: Sending, clock: Clock
    ) -> None:
        self._follower, self._log, self._recorder, self._sending, self._clock = follower, log, recorder, sending, clock

    async def run(self, lane: Lane, known: frozenset[int]) -> None:
        """Feed the lane until cancelled. `known` are positions beyond its beginning that have a delivery already."""
        tenant, endpoint = lane.key
        while True:
            try:
                async with self._follower.follow(tenant, lane.taken_up_to, most=MOST_WAITING) as following:
                    while True:
                        most = await lane.room()
                        await self._take_in(lane, await following.next(most), known)
            except Exception:
                LOG.exception("endpoint %s: events could not be taken in, again in %.0f s", endpoint, RETRY)
                await asyncio.sleep(RETRY)

    async def _take_in(self, lane: Lane, stretch: Stretch, known: frozenset[int]) -> None:
        filed = await self._filed(lane, stretch)
        now, clock = asyncio.get_running_loop().time(), self._clock.now()
        subscriber = lane.subscriber
        for event in stretch.events:
            if event.position <= lane.taken_up_to or event.position in known:
                continue
            if wants(subscriber.endpoint, event, filed=(event.product or event.subject) in filed):
                age = max(0.0, (clock - event.time).total_seconds())
                item = lane.take(event, now, delivery_of(event, subscriber, clock), age)
                waits = timedelta(seconds=max(0.0, item.due - now))
                item.delivery.next_attempt_at = clock + waits if lane.is_head(item) else None
                self._sending.schedule(lane, item)
            lane.pass_by(event.position)
        lane.pass_by(stretch.position)
        self._recorder.wake(lane)
        self._sending.pump(lane)

    async def _filed(self, lane: Lane, stretch: Stretch) -> frozenset[str]:
        categories = lane.subscriber.endpoint.filters.categories
        if not categories or not stretch.events:
            return frozenset()
        products = {event.product or event.subject for event in stretch.events}
        return await self._log.filed_under(lane.subscriber.tenant, sorted(products), categories)
