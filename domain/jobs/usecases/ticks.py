"""Periodic work of the leading process. Each tick runs independently, so that a slow or failing one delays no other."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from time import monotonic
from typing import Any

JITTER = 0.1
"""Fraction by which intervals vary at random, so that deployments do not run in step."""
FIRST_WITHIN = 5.0
"""Seconds within which each tick runs for the first time."""

LOG = logging.getLogger("joinery.scheduler")
RETRY = 2.0
"""Seconds between losing the leadership and requesting it again."""
Duty = Callable[[], Coroutine[Any, Any, None]]
Leadership = Callable[[], AbstractAsyncContextManager[Duty]]
"""Entering waits until no other process leads; leaving ends the leadership. The returned duty runs while this process
leads, and raises when the leadership is lost."""


@dataclass(frozen=True, slots=True)
class Tick:
    """A periodic task, run `every` seconds, counted from the end of one run to the start of the next.

    `purges` marks a tick that deletes by age; it is skipped while purges are refused.
    """

    name: str
    every: float
    run: Callable[[], Awaitable[object]]
    purges: bool = False


class Ticks:
    """The ticks of the leading scheduler."""

    def __init__(
        self,
        ticks: Sequence[Tick],
        *,
        may_purge: Callable[[], Awaitable[bool]] | None = None,
        random_part: Callable[[float, float], float] = random.uniform,
    ) -> None:
        self._ticks, self._may_purge, self._between = ticks, may_purge, random_part
        self._succeeded_at: dict[str, float] = {}

    async def run(self) -> None:
        """Run all ticks until cancelled."""
        self._succeeded_at = dict.fromkeys((tick.name for tick in self._ticks), monotonic())
        try:
            async with asyncio.TaskGroup() as group:
                for tick in self._ticks:
                    group.create_task(self._repeat(tick), name=f"tick {tick.name}")
                await asyncio.Event().wait()
        finally:
            self._succeeded_at = {}

    def ages(self) -> Mapping[str, float]:
        """Return, by tick, the intervals since its last success, or since the start; empty while ticks do not run."""
        now, every = monotonic(), {tick.name: tick.every for tick in self._ticks}
        return {name: (now - well) / every[name] for name, well in list(self._succeeded_at.items())}

    async def _repeat(self, tick: Tick) -> None:
        await asyncio.sleep(self._between(0, min(tick.every, FIRST_WITHIN)))
        while True:
            try:
                if not tick.purges or self._may_purge is None or await self._may_purge():
                    await tick.run()
                self._succeeded_at[tick.name] = monotonic()
            except Exception:
                LOG.exception("tick %s failed, retrying in about %.0f s", tick.name, tick.every)
            await asyncio.sleep(tick.every * self._between(1 - JITTER, 1 + JITTER))


class Leader:
    """Runs the process's duties (Relay.run, Ticks.run) concurrently while it leads.

    If one raises, all are stopped and the leadership ends, because its connection may be broken as well. If the
    leadership is lost, all are stopped, because another process may lead.
    """

    def __init__(self, leadership: Leadership, duties: Sequence[Duty], *, retry: float = RETRY) -> None:
        self._leadership, self._duties, self._retry = leadership, duties, retry

    async def run(self, stop: asyncio.Event) -> None:
        """Lead, or wait to lead, until `stop` is set."""
        work = asyncio.create_task(self._terms())
        stopped = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait((work, stopped), return_when=asyncio.FIRST_COMPLETED)
        finally:
            work.cancel()
            stopped.cancel()
            await asyncio.gather(work, stopped, return_exceptions=True)

    async def _terms(self) -> None:
        while True:
            try:
                async with self._leadership() as led, asyncio.TaskGroup() as group:
                    LOG.info("leadership acquired")
                    group.create_task(led())
                    for duty in self._duties:
                        group.create_task(duty())
            except Exception:
                LOG.exception("leadership ended, requesting it again in %.0f s", self._retry)
            await asyncio.sleep(self._retry)
