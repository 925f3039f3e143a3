"""Serving of endpoints: each database, the endpoints of this worker's shards, and their events."""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from dataclasses import replace

from domain.changes.model import OPEN_END, FeedBatch, FeedPosition, network_of
from domain.changes.usecases.tailing import LogTailer
from domain.events.model import LogPosition
from domain.kernel.errors import CursorExpired, LeaseLost, Unavailable
from domain.kernel.tenancy import Tenant
from domain.webhooks.model import matches, shard_of
from domain.webhooks.ports import DeliveryLog, DeliveryPlace, DeliveryPlaces, Shards, Subscriber
from domain.webhooks.usecases.endpoint_queue import EndpointQueue
from domain.webhooks.usecases.posting import Posting
from domain.webhooks.usecases.recording import Recorder
from domain.webhooks.usecases.sending import RETRY, Sending
from domain.webhooks.usecases.service import WebhookService
from ports.clock import Clock
from ports.signals import Channel, Heard, Signal, Signals
from ports.unit_of_work import UnitOfWork

MOST_WAITING = 2_000
"""Maximum events held for one endpoint outside its queue; a slower one reads them from the log."""

LOG = logging.getLogger("joinery.webhooks")


REBALANCE = 10.0
"""Seconds between rebalancing of shards."""
GRACE = 12.0
"""Seconds that running attempts have to end when the process stops."""


Key = tuple[Tenant, str]
"""Tenant and id of an endpoint."""


class Deliverer:
    """Serves the endpoints of the shards that it holds, and starts again when it loses them."""

    def __init__(
        self,
        tailer: LogTailer,
        log: DeliveryLog,
        shards: Shards,
        posting: Posting,
        service: WebhookService,
        uow: UnitOfWork,
        signals: Signals,
        clock: Clock,
        grace: float = GRACE,
    ) -> None:
        self._tailer, self._log, self._shards = tailer, log, shards
        self._signals, self._clock, self._grace = signals, clock, grace
        self._recorder = Recorder(log)
        self._sending = Sending(posting, self._recorder, service, uow, clock, lambda queue: self._drop(queue.key))
        self._queues: dict[Key, EndpointQueue] = {}
        self._intakes: dict[Key, asyncio.Task[None]] = {}
        self._held: frozenset[int] = frozenset()
        self._calm = False
        self._away = False
        self._shaken = asyncio.Event()
        self._serving = asyncio.Lock()

    async def run(self, stop: asyncio.Event) -> None:
        """Deliver until `stop` is set; then finish running attempts, record them, and release the shards."""

        def relieved() -> None:
            for queue in list(self._queues.values()):
                self._sending.dispatch_ready(queue)

        recording = self._recorder.run(self._lost, relieved)
        duties = (self._mind_shards(), self._listen(), self._sending.run(), recording)
        running = [asyncio.create_task(duty) for duty in duties]
        stopped = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait((*running, stopped), return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._sending.stop()
            stopped.cancel()
            await self._end(running)

    async def _end(self, running: list[asyncio.Task[None]]) -> None:
        for task in (*running, *self._intakes.values()):
            task.cancel()
        results = await asyncio.gather(*running, *self._intakes.values(), return_exceptions=True)
        await self._sending.close(self._grace)
        with contextlib.suppress(Exception):
            await self._recorder.flush(everything=True)
        with contextlib.suppress(Exception):
            await self._shards.close()
        for result in results[: len(running)]:
            if isinstance(result, Exception):
                raise result

    async def _mind_shards(self) -> None:
        while True:
            try:
                await self._rebalance()
            except LeaseLost:
                self._lost()
                await asyncio.sleep(RETRY)
            except Unavailable as error:
                if not self._away:
                    LOG.warning("shards unavailable, retrying: %s", error)
                self._away = True
                await asyncio.sleep(RETRY)
            except Exception:
                LOG.exception("shards could not be rebalanced, retrying in %.0f s", RETRY)
                await asyncio.sleep(RETRY)
            else:
                self._away = False
                self._shaken.clear()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(REBALANCE if self._held and self._calm else RETRY):
                        await self._shaken.wait()

    async def _rebalance(self) -> None:
        held = await self._shards.rebalance()
        self._calm = held == self._held
        if new := held - self._held:
            self._held = held
            try:
                for subscriber in await self._log.subscribers(sorted(new)):
                    await self._serve(subscriber)
            except BaseException:
                self._held -= new
                raise
        if surplus := await self._shards.surplus():
            await self._give_up(surplus)

    async def _give_up(self, shards: frozenset[int]) -> None:
        """Stop serving these shards, wait for running attempts, record them, then release the shards."""
        async with self._serving:
            self._held -= shards
            queues = self._drop(*(key for key in self._queues if shard_of(key[1]) in shards))
        await asyncio.gather(*(queue.drained() for queue in queues))
        await self._recorder.flush(everything=True)
        await self._shards.release(shards)

    def _lost(self) -> None:
        """Discard all state, because other workers hold the shards; the store is authoritative."""
        LOG.warning("shards lost, requesting them again")
        self._held = frozenset()
        self._shaken.set()
        self._recorder.drop_everything()
        self._drop(*self._queues)

    async def _listen(self) -> None:
        async with self._signals.subscribe(Channel.WEBHOOKS) as listener:
            while True:
                await listener.wait(None)
                heard: Heard | None = listener.heard()
                while heard is not None:
                    try:
                        await (self._read_all() if heard.missed else self._read(heard.signals))
                        heard = None
                    except Exception:
                        LOG.exception("changed endpoints could not be read, retrying in %.0f s", RETRY)
                        heard = Heard(frozenset(), missed=True)
                        await asyncio.sleep(RETRY)

    async def _read(self, signals: frozenset[Signal]) -> None:
        """Load the changes of these endpoints."""
        for signal in signals:
            if signal.id is not None and shard_of(signal.id) in self._held:
                subscriber = await self._log.subscriber(signal.tenant, signal.id)
                if subscriber is None:
                    await self._leave((signal.tenant, signal.id))
                else:
                    await self._serve(subscriber)

    async def _read_all(self) -> None:
        """Load the changes of all endpoints of the held shards."""
        found = {(one.tenant, one.endpoint.id): one for one in await self._log.subscribers(sorted(self._held))}
        await self._leave(*(self._queues.keys() - found.keys()))
        for subscriber in found.values():
            await self._serve(subscriber)

    async def _serve(self, subscriber: Subscriber) -> None:
        """Start to serve the endpoint, or apply its changes and requeued deliveries."""
        async with self._serving:
            queue = self._queues.get((subscriber.tenant, subscriber.endpoint.id))
            if queue is not None:
                queue.endpoint_changed(subscriber)
                await self._restore(queue)
            else:
                await self._begin(EndpointQueue(subscriber))

    async def _leave(self, *endpoints: Key) -> None:
        """Stop serving deleted or disabled endpoints."""
        async with self._serving:
            self._drop(*endpoints)

    async def _begin(self, queue: EndpointQueue) -> None:
        """Start to serve the endpoint, unless its shard is released or lost meanwhile."""
        key = queue.key
        await self._recorder.flush(everything=True)  # an earlier queue of the endpoint may have unrecorded results
        known = await self._log.known(*key, queue.subscriber.checkpoint)
        if shard_of(key[1]) not in self._held:
            return
        self._queues[key] = queue
        self._recorder.register(queue)
        try:
            await self._restore(queue)
        except BaseException:
            self._drop(key)
            raise
        if queue.served:
            self._intakes[key] = asyncio.create_task(self._take_events(queue, known), name=f"webhooks {key[1]}")

    async def _restore(self, queue: EndpointQueue) -> None:
        """Load the open deliveries from the store, after recording the running ones."""
        with queue.restoring():
            await self._recorder.flush(everything=True)
            found = await self._log.open(*queue.key)
            now, clock = asyncio.get_running_loop().time(), self._clock.now()
            restored = []
            for delivery in found:
                waits = (delivery.next_attempt_at - clock).total_seconds() if delivery.next_attempt_at else 0.0
                if (item := queue.restore(delivery, now, now + max(0.0, waits))) is not None:
                    restored.append(item)
        for item in restored:
            self._sending.schedule(queue, item)
        self._sending.dispatch_ready(queue)

    def _drop(self, *endpoints: Key) -> list[EndpointQueue]:
        """Stop serving these endpoints; return the queues of those that were served."""
        queues = []
        for key in endpoints:
            if (intake := self._intakes.pop(key, None)) is not None:
                intake.cancel()
            if (queue := self._queues.pop(key, None)) is not None:
                queue.give_up()
                self._recorder.leave(queue)
                queues.append(queue)
        self._sending.drop_unserved()
        return queues

    async def _take_events(self, queue: EndpointQueue, known: frozenset[tuple[bool, int]]) -> None:
        """Fill the queue as far ahead as there is room.

        `known` are later positions that already have a delivery. If a log was replaced, all state is discarded, because
        it may refer to the old one; the store is authoritative.
        """
        tenant, endpoint = queue.key
        begun = queue.taken_up_to.network.position < OPEN_END
        while True:
            try:
                taken = queue.taken_up_to
                start = await self._nearest(tenant, taken)
                if start.network.epoch != taken.network.epoch:
                    # the network log alone went back, so that its positions denote other events
                    known = frozenset(place for place in known if not place[0])
                queue.passed(start)
                if not begun:  # otherwise it would start later after a crash and miss events
                    self._recorder.wake(queue)
                    await self._recorder.flush(everything=True)
                    begun = True
                async with self._tailer.follow(tenant, start, most=MOST_WAITING) as subscription:
                    while True:
                        most = await queue.room()
                        await self._take_in(queue, await subscription.next(most), known)
            except CursorExpired:
                LOG.warning("endpoint %s: log was replaced, deliveries continue from the new one", endpoint)
                self._lost()
                return
            except Exception:
                LOG.exception("endpoint %s: events could not be read, retrying in %.0f s", endpoint, RETRY)
                await asyncio.sleep(RETRY)

    async def _nearest(self, tenant: Tenant, taken: FeedPosition) -> FeedPosition:
        """Return that position in the logs' present epochs.

        The checkpoint is stored with the organisation's own log and goes back with it. The network log may go back
        alone; events that it repeats are sent again with the same ids.
        """
        log = self._tailer.high_watermarks
        own, network = await log.confirmed(tenant), await log.lately(network_of(tenant.livemode))
        return FeedPosition(
            _dated(own.nearest(LogPosition(own.epoch, taken.own.position)), taken.own),
            _dated(network.nearest(taken.network), taken.network) if network else taken.network,
        )

    async def _take_in(self, queue: EndpointQueue, batch: FeedBatch, known: frozenset[tuple[bool, int]]) -> None:
        filed: frozenset[str] = frozenset()
        if batch.events and (categories := queue.subscriber.endpoint.filters.categories):
            products = {event.product or event.subject for event in batch.events}
            filed = await self._log.filed_under(queue.subscriber.tenant, sorted(products), categories)
        now, clock = asyncio.get_running_loop().time(), self._clock.now()
        subscriber = queue.subscriber
        for event in batch.events:
            if (event.of_network, event.position) in known:
                continue
            if event.subject == subscriber.endpoint.id:  # an endpoint is not told of its own disabling
                continue
            if matches(subscriber.endpoint, event, filed=(event.product or event.subject) in filed):
                self._sending.schedule(queue, queue.take(event, now, clock))
        queue.passed(batch.position)
        self._recorder.wake(queue)
        self._sending.dispatch_ready(queue)


def _dated(position: LogPosition, taken: LogPosition) -> LogPosition:
    """Return the position with the time of the event taken there, so that reading detects another event in its place."""
    return replace(position, time=taken.time) if position.position == taken.position else position


LOOK = 10.0
"""Seconds between queries of the databases."""
SOON = 1.0
"""The same while the query fails."""


class Serving:
    """Runs a deliverer per database, so that a lost or slow one delays no other."""

    def __init__(self, places: DeliveryPlaces, deliverer: Callable[[DeliveryPlace], Deliverer]) -> None:
        self._places, self._deliverer = places, deliverer
        self._served: dict[str, tuple[asyncio.Event, asyncio.Task[None]]] = {}

    async def run(self, stop: asyncio.Event) -> None:
        """Deliver until `stop` is set. Raises the error of a deliverer that ends."""
        stopped = asyncio.create_task(stop.wait())
        try:
            while not stop.is_set():
                found = await self._follow()
                running = [task for _, task in self._served.values()]
                ended, _ = await asyncio.wait(
                    (stopped, *running), timeout=LOOK if found else SOON, return_when=asyncio.FIRST_COMPLETED
                )
                for task in ended - {stopped}:
                    task.result()
        finally:
            stopped.cancel()
            await self._leave(*self._served)

    async def _follow(self) -> bool:
        """Start and stop deliverers by the present databases; return whether these could be queried."""
        try:
            places = {place.name: place for place in await self._places.current()}
        except Unavailable as error:
            LOG.warning("databases of endpoints could not be queried: %s", error)
            return False
        await self._leave(*(self._served.keys() - places.keys()))
        for name in places.keys() - self._served.keys():
            stop = asyncio.Event()
            work = self._deliverer(places[name]).run(stop)
            self._served[name] = (stop, asyncio.create_task(work, name=f"delivering from {name}"))
        return True

    async def _leave(self, *names: str) -> None:
        """Stop these deliverers after their running attempts."""
        left = [self._served.pop(name) for name in names]
        for stop, _ in left:
            stop.set()
        with contextlib.suppress(Unavailable):
            await asyncio.gather(*(task for _, task in left))
