"""Sealing anew what stands under a former secret, or in a former form: bit by bit, beside everything else."""

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
"""How often in a row nobody may lack the current secret before it comes into force: who lost a connection is back by then."""
AGAIN = timedelta(hours=1)
"""When it is looked again after a pass that found nothing to do."""

Destination = Callable[[str, Mapping[str, Any]], str | None]
"""Where the credentials of a source with this connector and these settings may go; None when the connector is not loaded."""

_LOG = logging.getLogger("joinery.secrets")


class Resealing:
    """What the leading scheduler ticks. Every value is replaced by itself and only as it was read.

    So it may end at any point, begin anew, and run beside whatever people do.
    """

    def __init__(
        self, keyring: Keyring, vault: Vault, values: SealedValues, destination: Destination, clock: Clock
    ) -> None:
        self._keyring, self._vault, self._values = keyring, vault, values
        self._destination, self._clock = destination, clock
        self._clear = 0
        self._next: datetime | None = None

    async def tick(self) -> int:
        """Bring the current secret into force once everybody knows it, then seal anew; answers how many values."""
        if not self._keyring.settled and not await self._promoted():
            return 0
        now = self._clock.now()
        if (self._next is not None and now < self._next) or await self._keyring.lacking():
            return 0  # a process of an earlier release could not open what is sealed now
        done = await self.run()
        self._next = None if done else now + AGAIN
        return done

    async def run(self) -> int:
        """Seal anew all that there is; answers how many values."""
        done = sum([await self._of(kind) for kind in SealedKind])
        if done:
            _LOG.info("sealed %d values anew", done)
        return done

    async def _promoted(self) -> bool:
        self._clear = 0 if await self._keyring.lacking() else self._clear + 1
        if self._clear < LOOKS:
            return False
        await self._keyring.promote()
        self._clear, self._next = 0, None
        return self._keyring.settled

    async def _of(self, kind: SealedKind) -> int:
        done, broken, last = 0, 0, None
        while batch := await self._values.stale(kind, self._vault.stamp, last, BATCH):
            for value in batch:
                fresh = self._anew(value)
                broken += fresh is None
                done += fresh is not None and await self._values.replace(value, fresh)
            last = batch[-1]
        if broken:
            _LOG.warning("%d values of kind %s cannot be opened, and stay as they are", broken, kind)
        return done

    def _anew(self, value: SealedValue) -> bytes | None:
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
