"""How far each log goes, as one process knows it."""

import asyncio
import contextlib
from collections.abc import Collection, Mapping
from typing import Final

from domain.changes.model import LogBounds
from domain.changes.ports import EventReader
from domain.kernel.errors import Unavailable
from domain.kernel.tenancy import Tenant

LATELY: Final = 5.0
"""Seconds for which bounds will do where they need not be fresh."""
MOST_KNOWN: Final = 20_000
"""Logs whose bounds are remembered."""


class HighWatermarks:
    """One a process. However many ask at a time, one question at a time is asked for all of them."""

    def __init__(self, events: EventReader) -> None:
        self._events = events
        self._known: dict[Tenant, tuple[LogBounds, float]] = {}
        self._waiting: dict[Tenant, asyncio.Future[LogBounds]] = {}
        self._asking: asyncio.Task[None] | None = None

    def known(self, log: Tenant) -> LogBounds | None:
        """What was found when the log was asked last."""
        found = self._known.get(log)
        return found[0] if found else None

    def looked(self, log: Tenant) -> float:
        """When that was, by the loop's clock: what was committed before is within those bounds."""
        found = self._known.get(log)
        return found[1] if found else float("-inf")

    async def fresh(self, log: Tenant) -> LogBounds:
        """The bounds no older than this call: one question answers all who ask meanwhile. Raises Unavailable."""
        waiting = self._waiting.get(log)
        if waiting is None:
            waiting = self._waiting[log] = asyncio.get_running_loop().create_future()
        if self._asking is None:
            self._asking = asyncio.create_task(self._answer())
        return await asyncio.shield(waiting)

    async def lately(self, log: Tenant) -> LogBounds | None:
        """The bounds as they were LATELY seconds ago at most; older ones, or None, when the log is out of reach."""
        if asyncio.get_running_loop().time() - self.looked(log) >= LATELY:
            with contextlib.suppress(Unavailable):
                return await self.fresh(log)
        return self.known(log)

    async def _answer(self) -> None:
        """Ask for all who wait, and for those who came meanwhile: an answer on its way may be older than they are."""
        try:
            while self._waiting:
                asked, self._waiting = self._waiting, {}
                try:
                    found = await self.look(asked)
                except Exception as error:
                    _fail(asked.values(), error)
                else:
                    for log, future in asked.items():
                        if log not in found:
                            _fail((future,), Unavailable("The log is out of reach.", retry_after=2))
                        elif not future.done():
                            future.set_result(found[log])
        finally:
            self._asking = None

    async def confirmed(self, log: Tenant) -> LogBounds:
        """The bounds as the log itself has them, wherever it is: before it is said that something was lost. Raises Unavailable."""
        began = asyncio.get_running_loop().time()
        bounds = await self._events.confirmed(log)
        self._remember(log, bounds, began)
        return bounds

    async def look(self, logs: Collection[Tenant]) -> Mapping[Tenant, LogBounds]:
        """Ask all of these logs; those that cannot be asked now are left out. Raises Unavailable if that is all."""
        began = asyncio.get_running_loop().time()
        found = await self._events.bounds(logs)
        for log, bounds in found.items():
            self._remember(log, bounds, began)
        return found

    def _remember(self, log: Tenant, bounds: LogBounds, began: float) -> None:
        self._known.pop(log, None)
        self._known[log] = bounds, began
        while len(self._known) > MOST_KNOWN:
            del self._known[next(iter(self._known))]


def _fail(futures: Collection["asyncio.Future[LogBounds]"], error: Exception) -> None:
    for future in futures:
        if not future.done():
            future.set_exception(error)
            future.exception()  # whoever waited may be gone by now
