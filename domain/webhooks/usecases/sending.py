"""Sends what is due: of each subject the first delivery, of each endpoint as many at a time as its lane lets go."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from dataclasses import replace
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Any, Final

from domain.kernel.errors import Unavailable
from domain.kernel.tenancy import Tenant
from domain.webhooks.schedule import Verdict, is_failing
from domain.webhooks.usecases.endpoint_queue import EndpointQueue, Item
from domain.webhooks.usecases.posting import Posting
from domain.webhooks.usecases.recording import Recorder
from ports.clock import Clock

RETRY: Final = 1.0
"""Seconds until what failed on our side is tried again."""
_COMPLAIN_EVERY: Final = 10.0

LOG: Final = logging.getLogger("joinery.webhooks")

Disable = Callable[[Tenant, str, str], Awaitable[None]]
"""Disables an endpoint (tenant, id, reason) in a transaction of its own."""


class Sending:
    """One a process. `disabled` is called with the lane of an endpoint that has just been disabled."""

    def __init__(
        self,
        posting: Posting,
        recorder: Recorder,
        disable: Disable,
        clock: Clock,
        disabled: Callable[[EndpointQueue], None],
    ) -> None:
        self._posting, self._recorder, self._disable, self._clock = posting, recorder, disable, clock
        self._disabled = disabled
        self._due: list[tuple[float, int, EndpointQueue, Item]] = []
        self._order = count()
        self._due_changed = asyncio.Event()
        self._attempts: set[asyncio.Task[None]] = set()
        self._complained = float("-inf")
        self._stopping = False

    async def run(self) -> None:
        """Make ready what falls due, until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            self._due_changed.clear()
            while self._due and self._due[0][0] <= loop.time():
                _, _, queue, item = heappop(self._due)
                if item.due <= loop.time():
                    queue.make_ready(item)
                    self.dispatch_ready(queue)
            wait = self._due[0][0] - loop.time() if self._due else None
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._due_changed.wait()

    def stop(self) -> None:
        """Begin nothing more."""
        self._stopping = True

    async def end(self, grace: float) -> None:
        """Let attempts in hand end, for `grace` seconds."""
        if self._attempts:
            _, late = await asyncio.wait(self._attempts, timeout=grace)
            for attempt in late:
                attempt.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    def schedule(self, queue: EndpointQueue, item: Item) -> None:
        """Have it sent once it is due and nothing of its subject goes before it; `pump` sends what is due already."""
        if not queue.is_head(item):
            return
        if item.due <= asyncio.get_running_loop().time():
            queue.make_ready(item)
        else:
            heappush(self._due, (item.due, next(self._order), queue, item))
            self._due_changed.set()

    def drop_unserved(self) -> None:
        """Let go of what waits in lanes that are no longer served: it may wait for hours."""
        self._due = [entry for entry in self._due if entry[2].served]
        heapify(self._due)

    def dispatch_ready(self, queue: EndpointQueue) -> None:
        """Send what is ready and may go."""
        if self._stopping or not queue.served:
            return
        while self._recorder.keeps_up and (item := queue.next()) is not None:
            self._start(self._attempt(queue, item))

    def dispatch_all_ready(self, queues: Iterable[EndpointQueue]) -> None:
        """Go on after the recorder was behind."""
        for queue in list(queues):
            self.dispatch_ready(queue)

    def _start(self, attempt: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(attempt)
        self._attempts.add(task)
        task.add_done_callback(self._attempts.discard)

    async def _attempt(self, queue: EndpointQueue, item: Item) -> None:
        try:
            verdict = await self._posting.attempt(queue, item)
        except Exception as error:
            self._complain(item, error)
            queue.settle(item, done=False)
            item.due = asyncio.get_running_loop().time() + RETRY
            self.schedule(queue, item)
        else:
            await self._settle(queue, item, verdict)

    def _complain(self, item: Item, error: Exception) -> None:
        """What fails on our side mostly fails for every delivery that is due: one line in ten seconds is enough."""
        now = asyncio.get_running_loop().time()
        if now - self._complained >= _COMPLAIN_EVERY:
            self._complained = now
            known = isinstance(error, Unavailable)
            told = error if known else f"{type(error).__name__} (delivery {item.delivery.id})"
            LOG.warning("deliveries could not be attempted, again in %.0f s: %s", RETRY, told, exc_info=not known)

    async def _settle(self, queue: EndpointQueue, item: Item, verdict: Verdict) -> None:
        now, delivery = self._clock.now(), item.delivery
        delivery.status, delivery.next_attempt_at = verdict.status, verdict.next_attempt_at
        done = verdict.next_attempt_at is None
        if done:
            delivery.completed_at = now
        else:
            wait = (verdict.next_attempt_at or now) - now
            item.due = asyncio.get_running_loop().time() + wait.total_seconds()
        following = queue.settle(item, done=done)
        self._recorder.on_attempt_finished(queue, succeeded=verdict.status == "succeeded", at=now)
        if following is not None:
            self.schedule(queue, following)
        if not done:
            self.schedule(queue, item)
        self.dispatch_ready(queue)
        await self._judge_endpoint(queue, verdict)

    async def _judge_endpoint(self, queue: EndpointQueue, verdict: Verdict) -> None:
        endpoint = queue.subscriber.endpoint
        failing = verdict.status != "succeeded" and is_failing(endpoint.failing_since, self._clock.now())
        if not (verdict.gone or failing) or endpoint.status != "enabled":
            return
        queue.subscriber = replace(queue.subscriber, endpoint=replace(endpoint, status="disabled"))
        try:
            await self._recorder.flush(everything=True)
            await self._disable(queue.subscriber.tenant, endpoint.id, "gone" if verdict.gone else "failing")
        except Exception:
            LOG.exception("endpoint %s could not be disabled; its next failure will try again", endpoint.id)
            queue.subscriber = replace(queue.subscriber, endpoint=endpoint)
        else:
            self._disabled(queue)
