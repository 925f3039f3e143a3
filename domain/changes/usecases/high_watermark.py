"""How far the log goes, as one process knows it."""

import asyncio
from datetime import datetime

from ports.events import EventReader


class HighWatermark:
    """One a process. However many ask at a time, the database is asked once."""

    def __init__(self, events: EventReader) -> None:
        self._events = events
        self._asking: asyncio.Task[None] | None = None
        self.position = 0
        """Nothing can appear below it any more; it never goes back."""
        self.low_watermark = 0
        """Up to there events have been dropped by age."""
        self.last = 0
        """The highest position that was taken, above the high watermark while its writer is not done."""
        self.looked = float("-inf")
        """When it was asked last, by the loop's clock: what was committed before is not above `last`."""
        self.since: datetime | None = None
        """What appears above it carries no time before this."""

    @property
    def known(self) -> bool:
        """Whether the log has been asked yet."""
        return self.looked > float("-inf")

    async def fresh(self) -> int:
        """The position no older than this call: one question answers all who ask meanwhile."""
        running = self._asking
        if running is not None:
            await asyncio.wait((running,))  # it may have looked before the caller wrote
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self.look())
        await asyncio.shield(self._asking)
        return self.position

    async def look(self) -> None:
        """Ask the log."""
        began = asyncio.get_running_loop().time()
        bounds = await self._events.bounds()
        self.looked = began
        self.position = max(self.position, bounds.high_watermark)
        self.last, self.low_watermark, self.since = bounds.last, bounds.low_watermark, bounds.since
