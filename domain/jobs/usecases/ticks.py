"""Runs what is to be done every so often: each tick by itself, so that a slow or failing one holds up no other."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

JITTER: Final = 0.1
"""Part of the interval by which each pause is longer or shorter, so that deployments do not beat in time."""
FIRST_WITHIN: Final = 5.0
"""Seconds within which each tick runs for the first time."""

LOG: Final = logging.getLogger("joinery.scheduler")


@dataclass(frozen=True, slots=True)
class Tick:
    """Something to do about every `every` seconds, counted from the end of one run to the start of the next."""

    name: str
    every: float
    run: Callable[[], Awaitable[object]]


class Ticks:
    """The ticks of the leading scheduler."""

    def __init__(self, ticks: Sequence[Tick], *, random_part: Callable[[float, float], float] = random.uniform) -> None:
        self._ticks, self._between = ticks, random_part

    async def run(self) -> None:
        """Tick until cancelled."""
        async with asyncio.TaskGroup() as group:
            for tick in self._ticks:
                group.create_task(self._beat(tick), name=f"tick {tick.name}")
            await asyncio.Event().wait()

    async def _beat(self, tick: Tick) -> None:
        await asyncio.sleep(self._between(0, min(tick.every, FIRST_WITHIN)))
        while True:
            try:
                await tick.run()
            except Exception:
                LOG.exception("tick %s failed, again in about %.0f s", tick.name, tick.every)
            await asyncio.sleep(tick.every * self._between(1 - JITTER, 1 + JITTER))
