"""Delivers events: follows the log for each endpoint, sends what is due, records what came of it."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import replace
from datetime import timedelta
from heapq import heappop, heappush
from itertools import count
from typing import Any, Final

from domain.changes.following import Follower
from domain.changes.model import Stretch
from domain.kernel.errors import LeaseLost, Unavailable
from domain.kernel.tenancy import Tenant
from domain.webhooks.lane import Item, Lane, delivery_of
from domain.webhooks.model import shard_of
from domain.webhooks.posting import Posting
from domain.webhooks.recording import Recorder
from domain.webhooks.schedule import Verdict, is_failing
from domain.webhooks.wanting import wants
from ports.clock import Clock
from ports.signals import Signals
from ports.webhooks import DeliveryLog, Shards, Subscriber

REBALANCE: Final = 10.0
"""Seconds between two looks at which endpoints are this worker's."""
PAGE: Final = 200
GRACE: Final = 12.0
"""Seconds that attempts in hand have to end when the process stops."""
_RETRY: Final = 1.0
_COMPLAIN_EVERY: Final = 10.0

LOG: Final = logging.getLogger("joinery.webhooks")

Disable = Callable[[Tenant, str, str], Awaitable[None]]
"""Disables an endpoint (tenant, id, reason) in a transaction of its own."""


class Deliverer:
    """One a process. It serves the endpoints of the shards that it holds, and starts anew when it loses them."""

    def __init__(
        self,
        follower: Follower,
        log: DeliveryLog,
        shards: Shards,
        posting: Posting,
        disable: Disable,
        signals: Signals,
        clock: Clock,
        grace: float = GRACE,
    ) -> None:
        self._follower, self._log, self._shards, self._posting = follower, log, shards, posting
        self._disable, self._signals, self._clock, self._grace = disable, signals, clock, grace
        self._lanes: dict[tuple[Tenant, str], Lane] = {}
        self._pulls: dict[tuple[Tenant, str], asyncio.Task[None]] = {}
        self._room: dict[tuple[Tenant, str], asyncio.Event] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._due: list[tuple[float, int, Lane, Item]] = []
        self._order = count()
        self._due_changed = asyncio.Event()
        self._recorder = Recorder(log)
        self._held: frozenset[int] = frozenset()
        self._calm = False
        self._shaken = asyncio.Event()
        self._complained = float("-inf")
        self._stopping = False
        self._serving = asyncio.Lock()

    async def run(self, stop: asyncio.Event) -> None:
        """Deliver until `stop`; then let what is in hand end, record it, and give the endpoints up."""
        duties = (self._mind_shards(), self._listen(), self._ring(), self._recorder.run(self._lost, self._pump_all))
        running = [asyncio.create_task(duty) for duty in duties]
        stopped = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait((*running, stopped), return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._stopping = True
            stopped.cancel()
            await self._end(running)

    async def _end(self, running: list[asyncio.Task[None]]) -> None:
        for task in (*running, *self._pulls.values()):
            task.cancel()
        results = await asyncio.gather(*running, *self._pulls.values(), return_exceptions=True)
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=self._grace)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        with contextlib.suppress(Exception):
            await self._recorder.flush(everything=True)
        with contextlib.suppress(Exception):
            await self._shards.close()
        for result in results[: len(running)]:
            if isinstance(result, Exception):
                raise result

    # Which endpoints are served

    async def _mind_shards(self) -> None:
        while True:
            try:
                await self._rebalance()
            except LeaseLost:
                self._lost()
                await asyncio.sleep(_RETRY)
            except Exception:
                LOG.exception("endpoints could not be shared out, again in %.0f s", _RETRY)
                await asyncio.sleep(_RETRY)
            else:
                self._shaken.clear()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._shaken.wait(), REBALANCE if self._held and self._calm else _RETRY)

    async def _rebalance(self) -> None:
        held = await self._shards.rebalance()
        self._calm = held == self._held
        if new := held - self._held:
            self._held = held
            try:
                for subscriber in await self._log.subscribers(sorted(new)):
                    await self._serve(subscriber)
            except BaseException:
                self._held = held - new
                raise
        if surplus := await self._shards.surplus():
            await self._give_up(surplus)

    async def _give_up(self, shards: frozenset[int]) -> None:
        """Stop serving these, wait for what is in hand, record it, then let others take them."""
        self._held -= shards
        mine = [key for key in self._lanes if shard_of(key[1]) in shards]
        lanes = [lane for key in mine if (lane := self._drop(*key)) is not None]
        await asyncio.gather(*(lane.quiet.wait() for lane in lanes))
        await self._recorder.flush(everything=True)
        await self._shards.release(shards)

    def _lost(self) -> None:
        """The shards are others' by now: forget everything, the store has the truth."""
        LOG.warning("the endpoints of this worker were lost, and are asked for again")
        self._held = frozenset()
        self._shaken.set()
        self._recorder.forget()
        for key in list(self._lanes):
            self._drop(*key)

    async def _listen(self) -> None:
        async with self._signals.subscribe("webhooks") as subscription:
            while True:
                await subscription.wait(None)
                words = subscription.words()
                while words:
                    try:
                        await self._hear(words)
                        words = frozenset()
                    except Exception:
                        LOG.exception("changed endpoints could not be read, again in %.0f s", _RETRY)
                        words = frozenset(("",))
                        await asyncio.sleep(_RETRY)

    async def _hear(self, words: frozenset[str]) -> None:
        """Take up what changed about these endpoints, or about all of them for an empty text."""
        if "" in words:
            found = {(one.tenant, one.endpoint.id): one for one in await self._log.subscribers(sorted(self._held))}
            for key in self._lanes.keys() - found.keys():
                self._drop(*key)
            for subscriber in found.values():
                await self._serve(subscriber)
            return
        for word in words:
            org, mode, endpoint = word.split(" ")
            if shard_of(endpoint) in self._held:
                tenant = Tenant(org, mode == "t")
                found_one = await self._log.subscriber(tenant, endpoint)
                if found_one is None:
                    self._drop(tenant, endpoint)
                else:
                    await self._serve(found_one)

    async def _serve(self, subscriber: Subscriber) -> None:
        """Begin to serve the endpoint, or go on with what changed about it and what was asked to be sent again."""
        key = (subscriber.tenant, subscriber.endpoint.id)
        async with self._serving:
            lane = self._lanes.get(key)
            if lane is not None:
                lane.subscriber = subscriber
                await self._restore(lane)
            else:
                await self._begin(Lane(subscriber))

    async def _begin(self, lane: Lane) -> None:
        key = lane.key
        await self._recorder.flush(everything=True)  # an earlier lane of the endpoint may have something left to tell
        known = await self._log.known(*key, lane.subscriber.routed)
        self._lanes[key] = lane
        self._room[key] = asyncio.Event()
        self._recorder.mind(lane)
        await self._restore(lane)
        self._pulls[key] = asyncio.create_task(self._pull(lane, known), name=f"webhooks {key[1]}")

    async def _restore(self, lane: Lane) -> None:
        """Take up the open deliveries that the store knows of, once it knows what became of those in hand."""
        lane.done = set()
        try:
            await self._recorder.flush(everything=True)
            found = await self._log.open(*lane.key)
            now, clock = asyncio.get_running_loop().time(), self._clock.now()
            for delivery in found:
                waits = (delivery.next_attempt_at - clock).total_seconds() if delivery.next_attempt_at else 0.0
                lane.restore(delivery, now, now + max(0.0, waits))
        finally:
            lane.done = None
        for item in lane.heads():
            self._schedule(lane, item)
        self._pump(lane)

    def _drop(self, tenant: Tenant, endpoint: str) -> Lane | None:
        key = (tenant, endpoint)
        if (pull := self._pulls.pop(key, None)) is not None:
            pull.cancel()
        self._room.pop(key, None)
        lane = self._lanes.pop(key, None)
        if lane is not None:
            self._recorder.leave(lane)
        return lane

    # From the log into the lanes

    async def _pull(self, lane: Lane, known: frozenset[int]) -> None:
        key = lane.key
        while True:
            try:
                async with self._follower.follow(key[0], lane.taken_up_to) as following:
                    while True:
                        while not lane.has_room:
                            self._room[key].clear()
                            await self._room[key].wait()
                        stretch = await following.next(PAGE)
                        await self._take_in(lane, stretch, known)
            except Exception:
                LOG.exception("endpoint %s: events could not be taken in, again in %.0f s", key[1], _RETRY)
                await asyncio.sleep(_RETRY)

    async def _take_in(self, lane: Lane, stretch: Stretch, known: frozenset[int]) -> None:
        filed = await self._filed(lane, stretch)
        now, clock = asyncio.get_running_loop().time(), self._clock.now()
        subscriber = lane.subscriber
        for event in stretch.events:
            if event.position <= lane.taken_up_to or event.position in known:
                continue
            if wants(subscriber.endpoint, event, filed=(event.product or event.subject) in filed):
                item = lane.take(event, now, delivery_of(event, subscriber, clock))
                waits = timedelta(seconds=max(0.0, item.due - now))
                item.delivery.next_attempt_at = clock + waits if lane.is_head(item) else None
                self._schedule(lane, item)
            lane.pass_by(event.position)
        lane.pass_by(stretch.position)
        self._recorder.wake(lane)
        self._pump(lane)

    async def _filed(self, lane: Lane, stretch: Stretch) -> frozenset[str]:
        categories = lane.subscriber.endpoint.filters.categories
        if not categories or not stretch.events:
            return frozenset()
        products = {event.product or event.subject for event in stretch.events}
        return await self._log.filed_under(lane.subscriber.tenant, sorted(products), categories)

    # Sending

    def _schedule(self, lane: Lane, item: Item) -> None:
        """Have it sent once it is due and nothing of its subject goes before it."""
        if not lane.is_head(item):
            return
        if item.due <= asyncio.get_running_loop().time():
            lane.make_ready(item)
        else:
            heappush(self._due, (item.due, next(self._order), lane, item))
            self._due_changed.set()

    async def _ring(self) -> None:
        """Make ready what falls due."""
        loop = asyncio.get_running_loop()
        while True:
            self._due_changed.clear()
            while self._due and self._due[0][0] <= loop.time():
                _, _, lane, item = heappop(self._due)
                if item.due <= loop.time():
                    lane.make_ready(item)
                    self._pump(lane)
            wait = self._due[0][0] - loop.time() if self._due else None
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._due_changed.wait(), wait)

    def _pump(self, lane: Lane) -> None:
        if self._stopping or self._lanes.get(lane.key) is not lane:
            return
        while self._recorder.keeps_up and (item := lane.next()) is not None:
            self._start(self._attempt(lane, item))

    def _pump_all(self) -> None:
        for lane in list(self._lanes.values()):
            self._pump(lane)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _attempt(self, lane: Lane, item: Item) -> None:
        try:
            verdict = await self._posting.attempt(lane, item, self._follower)
        except Exception as error:
            self._complain(item, error)
            lane.settle(item, done=False)
            item.due = asyncio.get_running_loop().time() + _RETRY
            self._schedule(lane, item)
        else:
            await self._settle(lane, item, verdict)

    def _complain(self, item: Item, error: Exception) -> None:
        """While the database is away, every due delivery fails here: one line in ten seconds is enough."""
        now = asyncio.get_running_loop().time()
        if not isinstance(error, Unavailable):
            LOG.error("delivery %s could not be attempted", item.delivery.id, exc_info=error)
        elif now - self._complained >= _COMPLAIN_EVERY:
            self._complained = now
            LOG.warning("deliveries could not be attempted, again in %.0f s: %s", _RETRY, error)

    async def _settle(self, lane: Lane, item: Item, verdict: Verdict) -> None:
        now, delivery = self._clock.now(), item.delivery
        delivery.status, delivery.next_attempt_at = verdict.status, verdict.next_attempt_at
        done = verdict.next_attempt_at is None
        if done:
            delivery.completed_at = now
        else:
            wait = (verdict.next_attempt_at or now) - now
            item.due = asyncio.get_running_loop().time() + wait.total_seconds()
        following = lane.settle(item, done=done)
        self._recorder.heard(lane, succeeded=verdict.status == "succeeded", at=now)
        if following is not None:
            self._schedule(lane, following)
        if not done:
            self._schedule(lane, item)
        if (room := self._room.get(lane.key)) and lane.has_room:
            room.set()
        self._pump(lane)
        await self._judge_endpoint(lane, verdict)

    async def _judge_endpoint(self, lane: Lane, verdict: Verdict) -> None:
        endpoint = lane.subscriber.endpoint
        failing = verdict.status != "succeeded" and is_failing(endpoint.failing_since, self._clock.now())
        if not (verdict.gone or failing) or endpoint.status != "enabled":
            return
        lane.subscriber = replace(lane.subscriber, endpoint=replace(endpoint, status="disabled"))
        try:
            await self._recorder.flush(everything=True)
            await self._disable(lane.subscriber.tenant, endpoint.id, "gone" if verdict.gone else "failing")
        except Exception:
            LOG.exception("endpoint %s could not be disabled; its next failure will try again", endpoint.id)
            lane.subscriber = replace(lane.subscriber, endpoint=endpoint)
        else:
            self._drop(lane.subscriber.tenant, endpoint.id)
