"""Scheduled tasks ("ticks") of the leading process. Each runs independently, so that a slow or failing one does not delay others."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import dataclass
from time import monotonic
from typing import Any

from domain.kernel.errors import DomainError
from domain.kernel.tenancy import Tenant

JITTER = 0.1
"""Fraction by which intervals vary randomly, so that deployments do not run tasks at the same time."""
MAX_FIRST_DELAY_SECONDS = 5.0
"""Seconds within which each tick runs for the first time."""

LOG = logging.getLogger("joinery.scheduler")
LEADERSHIP_RETRY_SECONDS = 2.0
"""Seconds between losing the leadership and requesting it again."""
LeaderTask = Callable[[], Coroutine[Any, Any, None]]
"""Coroutine function that runs while this process leads, and is cancelled when the leadership ends."""
Leadership = Callable[[], AbstractAsyncContextManager[LeaderTask]]
"""Function that returns the context manager of the leadership.

Entering waits until no other process leads; leaving ends the leadership. The context's value is a
coroutine function that waits until the leadership is lost, and then raises.
"""


@contextmanager
def log_errors(log: logging.Logger, message: str, tenant: Tenant) -> Iterator[None]:
    """Log an error instead of raising it, so that a task continues with the next tenant."""
    try:
        yield
    except DomainError as error:
        log.warning("%s: %s", message, error, extra={"org": tenant.org})
    except Exception:
        log.exception(message, extra={"org": tenant.org})


@dataclass(frozen=True, slots=True)
class Tick:
    """Periodic task of the leading process.

    Attributes:
        interval_seconds: Seconds from the end of one execution to the start of the next.
        is_purge: Whether the task deletes data by age, so that it is skipped while purges are not permitted.
    """

    name: str
    interval_seconds: float
    run: Callable[[], Awaitable[object]]
    is_purge: bool = False


class TickRunner:
    """Runs the scheduled tasks of the leading process."""

    def __init__(
        self,
        ticks: Sequence[Tick],
        *,
        may_purge: Callable[[], Awaitable[bool]] | None = None,
        random_between: Callable[[float, float], float] = random.uniform,
    ) -> None:
        self._ticks, self._may_purge, self._between = ticks, may_purge, random_between
        self._succeeded_at: dict[str, float] = {}

    async def run(self) -> None:
        """Run all tasks until cancelled."""
        self._succeeded_at = dict.fromkeys((tick.name for tick in self._ticks), monotonic())
        try:
            async with asyncio.TaskGroup() as group:
                for tick in self._ticks:
                    group.create_task(self._repeat(tick), name=f"tick {tick.name}")
                await asyncio.Event().wait()
        finally:
            self._succeeded_at = {}

    def compute_relative_ages(self) -> Mapping[str, float]:
        """Return the time since each task last succeeded, as a multiple of its interval; empty while the tasks do not run."""
        # a task that has not succeeded yet counts from the start of `run`
        now, every = monotonic(), {tick.name: tick.interval_seconds for tick in self._ticks}
        return {name: (now - succeeded_at) / every[name] for name, succeeded_at in list(self._succeeded_at.items())}

    async def _repeat(self, tick: Tick) -> None:
        await asyncio.sleep(self._between(0, min(tick.interval_seconds, MAX_FIRST_DELAY_SECONDS)))
        while True:
            try:
                if not tick.is_purge or self._may_purge is None or await self._may_purge():
                    await tick.run()
                self._succeeded_at[tick.name] = monotonic()
            except Exception:
                LOG.exception("tick %s failed, retrying in about %.0f s", tick.name, tick.interval_seconds)
            await asyncio.sleep(tick.interval_seconds * self._between(1 - JITTER, 1 + JITTER))


class Leader:
    """Runs the process's duties (Relay.run, TickRunner.run) concurrently while this process leads.

    All duties are stopped if one of them raises, which ends the leadership, and if the leadership is lost.
    """

    def __init__(
        self, leadership: Leadership, duties: Sequence[LeaderTask], *, retry_seconds: float = LEADERSHIP_RETRY_SECONDS
    ) -> None:
        self._leadership, self._duties, self._retry = leadership, duties, retry_seconds

    async def run(self, stop: asyncio.Event) -> None:
        """Lead, or wait for the leadership, until `stop` is set."""
        work = asyncio.create_task(self._lead_repeatedly())
        stopped = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait((work, stopped), return_when=asyncio.FIRST_COMPLETED)
        finally:
            work.cancel()
            stopped.cancel()
            await asyncio.gather(work, stopped, return_exceptions=True)

    async def _lead_repeatedly(self) -> None:
        while True:
            try:
                async with self._leadership() as wait_until_lost, asyncio.TaskGroup() as group:
                    LOG.info("leadership acquired")
                    group.create_task(wait_until_lost())
                    for duty in self._duties:
                        group.create_task(duty())
            except Exception:
                LOG.exception("leadership ended, next request in %.0f s", self._retry)
            await asyncio.sleep(self._retry)
