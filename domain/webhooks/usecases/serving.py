"""Serves every place where endpoints lie, each by a deliverer of its own."""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from domain.kernel.errors import Unavailable
from domain.webhooks.ports import DeliveryPlace, DeliveryPlaces
from domain.webhooks.usecases.deliverer import Deliverer

LOOK: Final = 10.0
"""Seconds between two looks at which places there are."""
SOON: Final = 1.0
"""The same while none could be told."""

LOG: Final = logging.getLogger("joinery.webhooks")


@dataclass(frozen=True, slots=True)
class _Served:
    stop: asyncio.Event
    task: asyncio.Task[None]


class Serving:
    """One a process. A place that is lost, or slow, holds up no other."""

    def __init__(self, places: DeliveryPlaces, deliverer: Callable[[DeliveryPlace], Deliverer]) -> None:
        self._places, self._deliverer = places, deliverer
        self._served: dict[str, _Served] = {}

    async def run(self, stop: asyncio.Event) -> None:
        """Deliver until `stop`. Raises what ends a deliverer."""
        stopped = asyncio.create_task(stop.wait())
        try:
            while not stop.is_set():
                found = await self._follow()
                running = [served.task for served in self._served.values()]
                ended, _ = await asyncio.wait(
                    (stopped, *running), timeout=LOOK if found else SOON, return_when=asyncio.FIRST_COMPLETED
                )
                for task in ended - {stopped}:
                    task.result()
        finally:
            stopped.cancel()
            await self._leave(*self._served)

    async def _follow(self) -> bool:
        """Serve the places that there are now; whether they could be told."""
        try:
            places = {place.name: place for place in await self._places.current()}
        except Unavailable as error:
            LOG.warning("where endpoints lie could not be asked for: %s", error)
            return False
        await self._leave(*(self._served.keys() - places.keys()))
        for name in places.keys() - self._served.keys():
            stop = asyncio.Event()
            work = self._deliverer(places[name]).run(stop)
            self._served[name] = _Served(stop, asyncio.create_task(work, name=f"delivering from {name}"))
        return True

    async def _leave(self, *names: str) -> None:
        """What is in hand there ends first."""
        left = [self._served.pop(name) for name in names]
        for served in left:
            served.stop.set()
        with contextlib.suppress(Unavailable):
            await asyncio.gather(*(served.task for served in left))
