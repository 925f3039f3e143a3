"""GET /status: what this process knows of the service's state, also when no database tells it anything."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import Final

from domain.kernel.paging import PageRequest
from domain.platform.incidents import Incident
from domain.platform.usecases import PlatformService, PlatformStatus
from entrypoints.http.exchange import Response
from entrypoints.http.pages import Pages
from ports.clock import Clock

EVERY: Final = 10.0
"""Seconds for which what was read is shown again."""
PATIENCE: Final = 2.0
SHOWN: Final = 20
"""Incidents on the page."""


class StatusPage:
    """One a process. It remembers what it read last, so that there is something to show when nothing can be read."""

    def __init__(
        self, service: PlatformService, look: Callable[[], Awaitable[Mapping[str, bool]]], clock: Clock
    ) -> None:
        self._service, self._look, self._clock = service, look, clock
        self._status: PlatformStatus | None = None
        self._history: Sequence[Incident] = ()
        self._read_at: datetime | None = None
        self._down: Sequence[str] = ()
        self._reading: asyncio.Task[None] | None = None
        self._read = float("-inf")

    async def __call__(self) -> Response:
        """The page. Whoever asks while it is read is shown what comes of that; nobody has it read more often."""
        due = asyncio.get_running_loop().time() - self._read >= EVERY
        if due and (self._reading is None or self._reading.done()):
            self._reading = asyncio.create_task(self._refresh(), name="status page")
        if self._reading is not None:
            await asyncio.shield(self._reading)
        return Pages.status(self._status, self._history, self._down, self._clock.now(), self._read_at)

    async def _refresh(self) -> None:
        answers, known = await asyncio.gather(self._look(), self._known(), return_exceptions=True)
        self._down = [name for name, up in answers.items() if not up] if not isinstance(answers, BaseException) else []
        if isinstance(known, BaseException):
            self._down = self._down or ["database"]
        self._read = asyncio.get_running_loop().time()

    async def _known(self) -> None:
        async with asyncio.timeout(PATIENCE):
            status = await self._service.status()
            history = (await self._service.history(PageRequest(limit=SHOWN))).items
        self._status, self._history, self._read_at = status, history, self._clock.now()
