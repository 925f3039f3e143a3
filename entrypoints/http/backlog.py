"""How far matching is behind, for who reads metrics: asked of the store when they are, and not more often than every few seconds."""

import asyncio
import logging
from math import nan
from time import monotonic
from typing import Final

from domain.matching.index import Backlog
from domain.matching.ports import MatchBacklog
from entrypoints.metrics import Metrics

LOG: Final = logging.getLogger("joinery.http")
EVERY: Final = 10.0
"""Seconds between two looks."""
_PATIENCE: Final = 2.0
_UNKNOWN: Final = Backlog(0, nan)


class MatchingBehind:
    """Two gauges; the age is NaN while the store does not answer."""

    def __init__(self, store: MatchBacklog, metrics: Metrics) -> None:
        self._store, self._next, self._found = store, 0.0, _UNKNOWN
        metrics.gauge("joinery_match_queue_variants", "Variants that wait to be matched.", lambda: self._found.variants)
        metrics.gauge(
            "joinery_match_queue_oldest_seconds", "How long the oldest of them has waited.", lambda: self._found.seconds
        )

    async def refresh(self) -> None:
        """Look again, if the last look is old enough."""
        if monotonic() < self._next:
            return
        self._next = monotonic() + EVERY
        try:
            async with asyncio.timeout(_PATIENCE):
                self._found = await self._store.backlog()
        except Exception as error:
            LOG.warning("nobody knows what waits to be matched (%s)", error)
            self._found = _UNKNOWN

    async def run(self) -> None:
        """Look again and again, for a port whose readers nobody can ask to wait."""
        while True:
            await self.refresh()
            await asyncio.sleep(EVERY)
