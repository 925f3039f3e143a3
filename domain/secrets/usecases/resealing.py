"""Gradual resealing of values that are sealed under a former secret or in a former format."""

import logging
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

from domain.secrets.model import SealedKind, SealedValue
from domain.secrets.ports import SealedValues, Vault
from domain.secrets.usecases.keyring import Keyring
from ports.clock import Clock

BATCH = 200
LOOKS = 3
"""Consecutive checks without a process that lacks the current secret before it comes into force, so that dropped connections are counted."""
AGAIN = timedelta(hours=1)
"""Pause after a pass that found nothing to do."""

Destination = Callable[[str, Mapping[str, Any]], str | None]
"""Returns the destination of a source's credentials by connector and settings; None if the connector is not loaded."""

_LOG = logging.getLogger("joinery.secrets")


class Resealing:
    """Tick of the leading scheduler.

    Each value is replaced only if unchanged, so that resealing can be interrupted, repeated and run concurrently.
    """

    def __init__(
        self, keyring: Keyring, vault: Vault, values: SealedValues, destination: Destination, clock: Clock
    ) -> None:
        self._keyring, self._vault, self._values = keyring, vault, values
        self._destination, self._clock = destination, clock
        self._checks_passed = 0
        self._next: datetime | None = None

    async def tick(self) -> int:
        """Bring the current secret into force once every process has it, then reseal; return the number of values."""
        if not self._keyring.settled and not await self._promote():
            return 0
        now = self._clock.now()
        if (self._next is not None and now < self._next) or await self._keyring.lacking():
            return 0  # a process of an earlier release could not open the present format
        done = await self.run()
        self._next = None if done else now + AGAIN
        return done

    async def run(self) -> int:
        """Reseal all values; return their number."""
        done = sum([await self._reseal_kind(kind) for kind in SealedKind])
        if done:
            _LOG.info("resealed %d values", done)
        return done

    async def _promote(self) -> bool:
        self._checks_passed = 0 if await self._keyring.lacking() else self._checks_passed + 1
        if self._checks_passed < LOOKS:
            return False
        await self._keyring.promote()
        self._checks_passed, self._next = 0, None
        return self._keyring.settled

    async def _reseal_kind(self, kind: SealedKind) -> int:
        done, broken, last = 0, 0, None
        while batch := await self._values.stale(kind, self._vault.stamp, last, BATCH):
            for value in batch:
                fresh = self._reseal(value)
                broken += fresh is None
                done += fresh is not None and await self._values.replace(value, fresh)
            last = batch[-1]
        if broken:
            _LOG.warning("%d values of kind %s could not be opened and were skipped", broken, kind)
        return done

    def _reseal(self, value: SealedValue) -> bytes | None:
        destination: str | None = ""
        if value.kind is SealedKind.CREDENTIALS:
            destination = self._destination(value.connector, value.config)
        if destination is None:
            return None
        try:
            opened = self._vault.open(value.sealed, value.owner, destination)
        except ValueError:
            return None
        return self._vault.seal(opened, value.owner, destination)
