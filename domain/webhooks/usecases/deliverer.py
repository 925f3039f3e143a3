"""Delivery of events to endpoints: one deliverer per database, which serves the endpoints of this worker's shards."""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from dataclasses import replace

from domain.changes.model import OPEN_END, FeedBatch, FeedPosition, get_network_tenant
from domain.changes.usecases.log_tailer import LogTailer
from domain.events.model import LogPosition
from domain.kernel.errors import CursorExpired, LeaseLost, Unavailable
from domain.kernel.tenancy import Tenant
from domain.webhooks.model import compute_shard, matches_endpoint
from domain.webhooks.ports import DeliveryDatabase, DeliveryDatabases, DeliveryStore, Shards, Subscriber
from domain.webhooks.usecases.attempts import AttemptSender
from domain.webhooks.usecases.endpoint_queue import EndpointQueue
from domain.webhooks.usecases.recorder import DeliveryRecorder
from domain.webhooks.usecases.scheduler import RETRY_SECONDS, DeliveryScheduler
from domain.webhooks.usecases.service import WebhookService
from ports.clock import Clock
from ports.signals import Channel, ReceivedSignals, Signal, Signals
from ports.unit_of_work import UnitOfWork

MAX_WAITING_EVENTS = 2_000
"""Maximum number of new events that wait in memory for an endpoint's queue; others are read from the log later."""

LOG = logging.getLogger("joinery.webhooks")


REBALANCE_SECONDS = 10.0
"""Seconds between two rebalancings of shards."""
SHUTDOWN_SECONDS = 12.0
"""Seconds within which running attempts must end when the process stops."""


EndpointKey = tuple[Tenant, str]
"""Tenant and ID of an endpoint."""


class Deliverer:
    """Serves the endpoints of the shards that are assigned to this process in one database."""

    def __init__(
        self,
        tailer: LogTailer,
        store: DeliveryStore,
        shards: Shards,
        sender: AttemptSender,
        service: WebhookService,
        uow: UnitOfWork,
        signals: Signals,
        clock: Clock,
        shutdown_seconds: float = SHUTDOWN_SECONDS,
    ) -> None:
        self._tailer, self._store, self._shards = tailer, store, shards
        self._signals, self._clock, self._grace = signals, clock, shutdown_seconds
        self._recorder = DeliveryRecorder(store)
        self._scheduler = DeliveryScheduler(
            sender, self._recorder, service, uow, clock, lambda queue: self._remove_queues(queue.key)
        )
        self._queues: dict[EndpointKey, EndpointQueue] = {}
        self._readers: dict[EndpointKey, asyncio.Task[None]] = {}
        self._shard_numbers: frozenset[int] = frozenset()
        self._is_balanced = False
        self._is_unavailable = False
        self._shards_lost = asyncio.Event()
        self._serving_lock = asyncio.Lock()

    async def run(self, stop: asyncio.Event) -> None:
        """Deliver events until `stop` is set; then finish and record running attempts, and release the shards."""

        def resume_sending() -> None:
            for queue in list(self._queues.values()):
                self._scheduler.dispatch_ready(queue)

        recording = self._recorder.run(self._discard_state, resume_sending)
        coroutines = (self._rebalance_periodically(), self._process_signals(), self._scheduler.run(), recording)
        running = [asyncio.create_task(duty) for duty in coroutines]
        stopped = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait((*running, stopped), return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._scheduler.stop()
            stopped.cancel()
            await self._shut_down(running)

    async def _shut_down(self, running: list[asyncio.Task[None]]) -> None:
        for task in (*running, *self._readers.values()):
            task.cancel()
        results = await asyncio.gather(*running, *self._readers.values(), return_exceptions=True)
        await self._scheduler.close(self._grace)
        with contextlib.suppress(Exception):
            await self._recorder.record_results(includes_newest=True)
        with contextlib.suppress(Exception):
            await self._shards.close()
        for result in results[: len(running)]:
            if isinstance(result, Exception):
                raise result

    async def _rebalance_periodically(self) -> None:
        while True:
            try:
                await self._rebalance()
            except LeaseLost:
                self._discard_state()
                await asyncio.sleep(RETRY_SECONDS)
            except Unavailable as error:
                if not self._is_unavailable:
                    LOG.warning("shards unavailable, retrying: %s", error)
                self._is_unavailable = True
                await asyncio.sleep(RETRY_SECONDS)
            except Exception:
                LOG.exception("shards could not be rebalanced, retrying in %.0f s", RETRY_SECONDS)
                await asyncio.sleep(RETRY_SECONDS)
            else:
                self._is_unavailable = False
                self._shards_lost.clear()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(
                        REBALANCE_SECONDS if self._shard_numbers and self._is_balanced else RETRY_SECONDS
                    ):
                        await self._shards_lost.wait()

    async def _rebalance(self) -> None:
        held = await self._shards.rebalance()
        self._is_balanced = held == self._shard_numbers
        if new := held - self._shard_numbers:
            self._shard_numbers = held
            try:
                for subscriber in await self._store.list_subscribers(sorted(new)):
                    await self._serve(subscriber)
            except BaseException:
                self._shard_numbers -= new
                raise
        if surplus := await self._shards.find_surplus():
            await self._release_shards(surplus)

    async def _release_shards(self, shards: frozenset[int]) -> None:
        """Stop serving these shards, wait for running attempts, record the results, and release the shards."""
        async with self._serving_lock:
            self._shard_numbers -= shards
            queues = self._remove_queues(*(key for key in self._queues if compute_shard(key[1]) in shards))
        await asyncio.gather(*(queue.wait_until_drained() for queue in queues))
        await self._recorder.record_results(includes_newest=True)
        await self._shards.release(shards)

    def _discard_state(self) -> None:
        """Discard the state of all endpoints, because other workers serve the shards or the log was replaced."""
        LOG.warning("shards lost, requesting them again")
        self._shard_numbers = frozenset()
        self._shards_lost.set()
        self._recorder.discard_queues()
        self._remove_queues(*self._queues)

    async def _process_signals(self) -> None:
        async with self._signals.subscribe(Channel.WEBHOOKS) as listener:
            while True:
                await listener.wait(None)
                received: ReceivedSignals | None = listener.take_signals()
                while received is not None:
                    try:
                        await (self._reload_all() if received.has_missed_signals else self._reload(received.signals))
                        received = None
                    except Exception:
                        LOG.exception("changed endpoints could not be read, retrying in %.0f s", RETRY_SECONDS)
                        received = ReceivedSignals(frozenset(), has_missed_signals=True)
                        await asyncio.sleep(RETRY_SECONDS)

    async def _reload(self, signals: frozenset[Signal]) -> None:
        """Reload the endpoints to which the signals refer."""
        for signal in signals:
            if signal.id is not None and compute_shard(signal.id) in self._shard_numbers:
                subscriber = await self._store.get_subscriber(signal.tenant, signal.id)
                if subscriber is None:
                    await self._stop_serving((signal.tenant, signal.id))
                else:
                    await self._serve(subscriber)

    async def _reload_all(self) -> None:
        """Reload all endpoints of the shards of this process."""
        found = {
            (one.tenant, one.endpoint.id): one
            for one in await self._store.list_subscribers(sorted(self._shard_numbers))
        }
        await self._stop_serving(*(self._queues.keys() - found.keys()))
        for subscriber in found.values():
            await self._serve(subscriber)

    async def _serve(self, subscriber: Subscriber) -> None:
        """Start to serve the endpoint; if it is served already, apply its new state and load requeued deliveries."""
        async with self._serving_lock:
            queue = self._queues.get((subscriber.tenant, subscriber.endpoint.id))
            if queue is not None:
                queue.update_subscriber(subscriber)
                await self._load_open_deliveries(queue)
            else:
                await self._start_serving(EndpointQueue(subscriber))

    async def _stop_serving(self, *endpoints: EndpointKey) -> None:
        """Stop serving these endpoints, which are deleted or disabled."""
        async with self._serving_lock:
            self._remove_queues(*endpoints)

    async def _start_serving(self, queue: EndpointQueue) -> None:
        """Start to serve the endpoint, unless this process no longer has the endpoint's shard."""
        key = queue.key
        await self._recorder.record_results(
            includes_newest=True
        )  # an earlier queue of the endpoint may have unrecorded results
        known = await self._store.list_known_positions(*key, queue.subscriber.checkpoint)
        if compute_shard(key[1]) not in self._shard_numbers:
            return
        self._queues[key] = queue
        self._recorder.register(queue)
        try:
            await self._load_open_deliveries(queue)
        except BaseException:
            self._remove_queues(key)
            raise
        if queue.is_served:
            self._readers[key] = asyncio.create_task(self._read_events(queue, known), name=f"webhooks {key[1]}")

    async def _load_open_deliveries(self, queue: EndpointQueue) -> None:
        """Load the endpoint's open deliveries from the store into the queue, and schedule them."""
        with queue.track_finished():
            await self._recorder.record_results(includes_newest=True)  # so that the store has the current states
            found = await self._store.list_open(*queue.key)
            now, clock = asyncio.get_running_loop().time(), self._clock.now()
            restored = []
            for delivery in found:
                waits = (delivery.next_attempt_at - clock).total_seconds() if delivery.next_attempt_at else 0.0
                if (item := queue.add_stored(delivery, now, now + max(0.0, waits))) is not None:
                    restored.append(item)
        for item in restored:
            self._scheduler.schedule(queue, item)
        self._scheduler.dispatch_ready(queue)

    def _remove_queues(self, *endpoints: EndpointKey) -> list[EndpointQueue]:
        """Stop serving these endpoints and remove their queues; return the removed queues."""
        queues = []
        for key in endpoints:
            if (reader := self._readers.pop(key, None)) is not None:
                reader.cancel()
            if (queue := self._queues.pop(key, None)) is not None:
                queue.stop_serving()
                self._recorder.unregister(queue)
                queues.append(queue)
        self._scheduler.drop_unserved()
        return queues

    async def _read_events(self, queue: EndpointQueue, known_positions: frozenset[tuple[bool, int]]) -> None:
        """Read events into the queue whenever it can take more.

        If a log was replaced by an older copy, all state is discarded.

        Args:
            queue: The endpoint's queue.
            known_positions: Positions after the checkpoint whose events already have a delivery, and are therefore skipped. Each
                is a pair: whether the position is in the network log (events of published catalogues), and the position.
        """
        tenant, endpoint = queue.key
        has_start = queue.read_up_to.network.position < OPEN_END
        while True:
            try:
                read_position = queue.read_up_to
                start = await self._find_start(tenant, read_position)
                if start.network.epoch != read_position.network.epoch:
                    # the network log was replaced by an older copy, in which its positions denote other events
                    known_positions = frozenset(known for known in known_positions if not known[0])
                queue.set_read_position(start)
                if not has_start:  # otherwise it would resume at a later position after a crash, and miss events
                    self._recorder.schedule_check(queue)
                    await self._recorder.record_results(includes_newest=True)
                    has_start = True
                async with self._tailer.subscribe(tenant, start, max_waiting=MAX_WAITING_EVENTS) as subscription:
                    while True:
                        max_events = await queue.wait_for_room()
                        await self._add_batch(queue, await subscription.next_batch(max_events), known_positions)
            except CursorExpired:
                LOG.warning("endpoint %s: log was replaced, deliveries continue from the new one", endpoint)
                self._discard_state()
                return
            except Exception:
                LOG.exception("endpoint %s: events could not be read, retrying in %.0f s", endpoint, RETRY_SECONDS)
                await asyncio.sleep(RETRY_SECONDS)

    async def _find_start(self, tenant: Tenant, position: FeedPosition) -> FeedPosition:
        """Return the position from which reading resumes: `position`, or another if events were deleted or replaced."""
        # the checkpoint and the organisation's own log are in one database and restored together; the network log may
        # be restored alone, and repeated events are then sent again with the same IDs
        watermarks = self._tailer.bounds_cache
        own, network = (
            await watermarks.query_confirmed(tenant),
            await watermarks.get_recent(get_network_tenant(tenant.livemode)),
        )
        return FeedPosition(
            _add_known_time(own.find_resume_position(LogPosition(own.epoch, position.own.position)), position.own),
            _add_known_time(network.find_resume_position(position.network), position.network)
            if network
            else position.network,
        )

    async def _add_batch(
        self, queue: EndpointQueue, batch: FeedBatch, known_positions: frozenset[tuple[bool, int]]
    ) -> None:
        in_categories: frozenset[str] = frozenset()
        if batch.events and (categories := queue.subscriber.endpoint.filters.categories):
            products = {event.product or event.subject for event in batch.events}
            in_categories = await self._store.filter_by_categories(
                queue.subscriber.tenant, sorted(products), categories
            )
        loop_time, current_time = asyncio.get_running_loop().time(), self._clock.now()
        subscriber = queue.subscriber
        for event in batch.events:
            if (event.is_from_network, event.position) in known_positions:
                continue
            if event.subject == subscriber.endpoint.id:  # an endpoint does not receive the event of its own disabling
                continue
            if matches_endpoint(
                subscriber.endpoint, event, is_in_category=(event.product or event.subject) in in_categories
            ):
                self._scheduler.schedule(queue, queue.add_event(event, loop_time, current_time))
        queue.set_read_position(batch.position)
        self._recorder.schedule_check(queue)
        self._scheduler.dispatch_ready(queue)


def _add_known_time(position: LogPosition, known: LogPosition) -> LogPosition:
    """Return `position`; if `known` has the same position number, with the time of `known`.

    With the time, `LogPosition.contradicts` detects that another event has the number after a restore of the log.
    """
    return replace(position, time=known.time) if position.position == known.position else position


QUERY_SECONDS = 10.0
"""Seconds between two queries for the current databases."""
QUERY_RETRY_SECONDS = 1.0
"""Seconds between two queries for the current databases while queries fail."""


class DeliveryCoordinator:
    """Runs a deliverer for each database, so that a failing or slow database does not delay others."""

    def __init__(self, databases: DeliveryDatabases, create_deliverer: Callable[[DeliveryDatabase], Deliverer]) -> None:
        self._databases, self._deliverer = databases, create_deliverer
        self._served: dict[str, tuple[asyncio.Event, asyncio.Task[None]]] = {}

    async def run(self, stop: asyncio.Event) -> None:
        """Run the deliverers until `stop` is set. Raises the error of a deliverer that ends unexpectedly."""
        stopped = asyncio.create_task(stop.wait())
        try:
            while not stop.is_set():
                found = await self._update_deliverers()
                running = [task for _, task in self._served.values()]
                ended, _ = await asyncio.wait(
                    (stopped, *running),
                    timeout=QUERY_SECONDS if found else QUERY_RETRY_SECONDS,
                    return_when=asyncio.FIRST_COMPLETED,
                )
                for task in ended - {stopped}:
                    task.result()
        finally:
            stopped.cancel()
            await self._stop_deliverers(*self._served)

    async def _update_deliverers(self) -> bool:
        """Start deliverers for new databases and stop others; return False if the databases could not be queried."""
        try:
            databases = {database.name: database for database in await self._databases.list_current()}
        except Unavailable as error:
            LOG.warning("databases with webhook endpoints could not be listed: %s", error)
            return False
        await self._stop_deliverers(*(self._served.keys() - databases.keys()))
        for name in databases.keys() - self._served.keys():
            stop = asyncio.Event()
            work = self._deliverer(databases[name]).run(stop)
            self._served[name] = (stop, asyncio.create_task(work, name=f"webhook deliveries of database {name}"))
        return True

    async def _stop_deliverers(self, *names: str) -> None:
        """Stop the deliverers of these databases, and wait until their running attempts end."""
        left = [self._served.pop(name) for name in names]
        for stop, _ in left:
            stop.set()
        with contextlib.suppress(Unavailable):
            await asyncio.gather(*(task for _, task in left))
