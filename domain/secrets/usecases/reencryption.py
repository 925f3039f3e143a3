"""Gradual re-encryption of values that are encrypted with an earlier secret or in an earlier format."""

import logging
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

from domain.secrets.model import EncryptedValue, EncryptedValueKind
from domain.secrets.ports import EncryptedValues, Vault
from domain.secrets.usecases.keyring import KeyRingKeeper
from ports.clock import Clock

BATCH_SIZE = 200
"""Number of values that are read at once."""
REQUIRED_CHECKS = 3
"""Number of consecutive checks that must find the newest secret in all processes before it becomes active.

One check is not enough, because a process may have no database connection for a moment.
"""
SEARCH_INTERVAL = timedelta(hours=1)
"""Delay before the next search after one that found nothing to re-encrypt."""

DestinationFinder = Callable[[str, Mapping[str, Any]], str | None]
"""Function that returns the destination of a source's credentials; None if the connector is not loaded."""

_LOG = logging.getLogger("joinery.secrets")


class ValueReencrypter:
    """Scheduled task that re-encrypts values with the active secret. Concurrent runs do no harm."""

    def __init__(
        self,
        keyring: KeyRingKeeper,
        vault: Vault,
        values: EncryptedValues,
        destination: DestinationFinder,
        clock: Clock,
    ) -> None:
        self._keyring, self._vault, self._values = keyring, vault, values
        self._destination, self._clock = destination, clock
        self._passed_checks = 0
        self._next_search_at: datetime | None = None

    async def activate_and_reencrypt(self) -> int:
        """Make the newest secret active if all processes have loaded it; re-encrypt values and return their number."""
        if not self._keyring.is_newest_active and not await self._activate_newest():
            return 0
        now = self._clock.now()
        if (
            self._next_search_at is not None and now < self._next_search_at
        ) or await self._keyring.count_outdated_connections():
            return 0  # a process of an earlier release could not decrypt the current format
        done = await self.reencrypt_all()
        self._next_search_at = None if done else now + SEARCH_INTERVAL
        return done

    async def reencrypt_all(self) -> int:
        """Re-encrypt all values that have an earlier secret or format; return the number of these values."""
        done = sum([await self._reencrypt_kind(kind) for kind in EncryptedValueKind])
        if done:
            _LOG.info("%d values re-encrypted", done)
        return done

    async def _activate_newest(self) -> bool:
        self._passed_checks = 0 if await self._keyring.count_outdated_connections() else self._passed_checks + 1
        if self._passed_checks < REQUIRED_CHECKS:
            return False
        await self._keyring.activate_newest()
        self._passed_checks, self._next_search_at = 0, None
        return self._keyring.is_newest_active

    async def _reencrypt_kind(self, kind: EncryptedValueKind) -> int:
        count, skipped_count, last = 0, 0, None
        while batch := await self._values.list_outdated(kind, self._vault.current_prefix, last, BATCH_SIZE):
            for value in batch:
                reencrypted = self._reencrypt(value)
                skipped_count += reencrypted is None
                count += reencrypted is not None and await self._values.replace(value, reencrypted)
            last = batch[-1]
        if skipped_count:
            _LOG.warning("%d values of kind %s skipped, because they cannot be decrypted", skipped_count, kind)
        return count

    def _reencrypt(self, value: EncryptedValue) -> bytes | None:
        destination: str | None = ""
        if value.kind is EncryptedValueKind.CREDENTIALS:
            destination = self._destination(value.connector, value.config)
        if destination is None:
            return None
        try:
            opened = self._vault.decrypt(value.ciphertext, value.owner, destination)
        except ValueError:
            return None
        return self._vault.encrypt(opened, value.owner, destination)
