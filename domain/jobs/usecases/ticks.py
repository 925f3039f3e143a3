"""What one process of all does every so often: each tick by itself, so that a slow or failing one holds up no other."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from time import monotonic
from typing import Any

JITTER = 0.1
"""Part of the interval by which each pause is longer or shorter, so that deployments do not beat in time."""
FIRST_WITHIN = 5.0
"""Seconds within which each tick runs for the first time."""

LOG = logging.getLogger("joinery.scheduler")
RETRY = 2.0
"""Seconds between losing the lead and asking for it again."""
Duty = Callable[[], Coroutine[Any, Any, None]]
Leadership = Callable[[], AbstractAsyncContextManager[Duty]]
"""Entering waits until no other process leads; leaving gives the lead away. What it answers runs as long as this process
leads, and raises when the lead is lost."""


@dataclass(frozen=True, slots=True)
class Tick:
    """Something to do about every `every` seconds, counted from the end of one run to the start of the next.

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
        self._well: dict[str, float] = {}

    async def run(self) -> None:
        """Tick until cancelled."""
        self._well = dict.fromkeys((tick.name for tick in self._ticks), monotonic())
        try:
            async with asyncio.TaskGroup() as group:
                for tick in self._ticks:
                    group.create_task(self._beat(tick), name=f"tick {tick.name}")
                await asyncio.Event().wait()
        finally:
            self._well = {}

    def ages(self) -> Mapping[str, float]:
        """For how many intervals of its own each tick has not ended well, or since they began; of none while they do not run."""
        now, every = monotonic(), {tick.name: tick.every for tick in self._ticks}
        return {name: (now - well) / every[name] for name, well in list(self._well.items())}

    async def _beat(self, tick: Tick) -> None:
        await asyncio.sleep(self._between(0, min(tick.every, FIRST_WITHIN)))
        while True:
            try:
                if not tick.purges or self._may_purge is None or await self._may_purge():
                    await tick.run()
                self._well[tick.name] = monotonic()
            except Exception:
                LOG.exception("tick %s failed, again in about %.0f s", tick.name, tick.every)
            await asyncio.sleep(tick.every * self._between(1 - JITTER, 1 + JITTER))


class Leader:
    """One a process. It does its duties (Relay.run, Ticks.run), side by side, while it leads.

    When one of them raises, all are stopped and the lead is given away: its connection may be as dead as theirs. When the
    lead is lost, all are stopped, too: another process may lead by now.
    """

    def __init__(self, leadership: Leadership, duties: Sequence[Duty], *, retry: float = RETRY) -> None:
        self._leadership, self._duties, self._retry = leadership, duties, retry

    async def run(self, stop: asyncio.Event) -> None:
        """Lead, or wait to lead, until `stop`."""
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
                    LOG.info("this process leads")
                    group.create_task(led())
                    for duty in self._duties:
                        group.create_task(duty())
            except Exception:
                LOG.exception("the lead is given up, and asked for again in %.0f s", self._retry)
            await asyncio.sleep(self._retry)
