"""Loading of the key ring, and selection of the active secret: the one with which the stored key ring is encrypted.

All processes encrypt and sign with the active secret. A new secret becomes active once all processes have loaded it, so
that processes with old and with new settings can run at the same time.
"""

import asyncio
import logging
import secrets

from domain.kernel.errors import DomainError
from domain.secrets.keys import ActiveKeys, derive_cursor_key, derive_hash_key, derive_link_key
from domain.secrets.model import KeyRing
from domain.secrets.ports import KeyRingStore, StoredKeyRing, Vault
from ports.clock import Clock

KEY_RING_OWNER = "key ring"
"""Associated data of the encrypted key ring, as `owner` of `Vault.encrypt`."""
FAST_INTERVAL = 2.0
"""Seconds between reloads of the key ring until the newest secret is active."""
SLOW_INTERVAL = 3600.0
"""Seconds between reloads of the key ring once the newest secret is active; they only remove expired keys."""

_LOG = logging.getLogger("joinery.secrets")


class SecretUnknown(DomainError):
    """The key ring in the database is encrypted with a secret that is not available, or is damaged."""


class KeyRingKeeper:
    """Loads the key ring into this process, and activates secrets. Call `load` first, then run `watch`."""

    def __init__(self, rings: KeyRingStore, vault: Vault, keys: ActiveKeys, clock: Clock) -> None:
        self._rings, self._vault, self._keys, self._clock = rings, vault, keys, clock
        self._secrets = dict(zip(vault.secret_ids, keys.secrets, strict=True))
        self._loaded = False
        vault.activate_secret(vault.secret_ids[-1])

    @property
    def is_newest_active(self) -> bool:
        """True if the key ring is loaded and the newest secret is active."""
        return self._loaded and self._vault.active_secret_id == self._vault.secret_ids[0]

    async def load(self) -> None:
        """Load the stored key ring, or create and store one if there is none. Raises SecretUnknown, Unavailable."""
        stored = await self._rings.read() or await self._create()
        ring = self._decrypt(stored)
        self._vault.activate_secret(self._vault.parse_secret_id(stored.ciphertext))
        self._keys.use_key_ring(ring, self._secrets[self._vault.active_secret_id], self._clock.now())
        self._loaded = True

    async def watch(self) -> None:
        """Reload the key ring periodically until cancelled; errors are logged."""
        while True:
            await asyncio.sleep(SLOW_INTERVAL if self.is_newest_active else FAST_INTERVAL)
            try:
                await self.load()
            except Exception:
                _LOG.exception("key ring could not be loaded")

    async def count_outdated_connections(self) -> int:
        """Return how many database connections belong to processes that have not loaded the newest secret."""
        return await self._rings.count_outdated_connections(self._vault.secret_ids[0])

    async def activate_newest(self) -> None:
        """Make the newest secret active; signatures with the previous secret remain valid for a while."""
        stored = await self._rings.read()
        if stored is None or self._vault.parse_secret_id(stored.ciphertext) == self._vault.secret_ids[0]:
            return await self.load()
        before = self._secrets[self._vault.parse_secret_id(stored.ciphertext)]
        ring = self._decrypt(stored).with_former_keys(
            derive_cursor_key(before), derive_link_key(before), self._clock.now()
        )
        sealed = self._vault.encrypt(ring.to_json(), KEY_RING_OWNER, secret_id=self._vault.secret_ids[0])
        if await self._rings.write(sealed, stored.ciphertext):
            _LOG.info("secret %s activated", self._vault.secret_ids[0])
        return await self.load()

    async def _create(self) -> StoredKeyRing:
        """Create and store the first key ring, and return it.

        The key for hashing API keys is random. If API keys exist, it is the key derived from the oldest secret, with
        which these API keys were hashed.
        """
        has_api_keys = await self._rings.has_api_keys()
        ring = KeyRing(derive_hash_key(self._keys.secrets[-1]) if has_api_keys else secrets.token_bytes(32))
        await self._rings.write(
            self._vault.encrypt(ring.to_json(), KEY_RING_OWNER, secret_id=self._vault.secret_ids[-1]), None
        )
        stored = await self._rings.read()
        assert stored is not None, "a ring is never removed"
        return stored

    def _decrypt(self, stored: StoredKeyRing) -> KeyRing:
        try:
            return KeyRing.from_json(self._vault.decrypt(stored.ciphertext, KEY_RING_OWNER))
        except ValueError:
            key = self._vault.parse_secret_id(stored.ciphertext)
            if key in self._secrets:
                raise SecretUnknown("The key ring is damaged. Restore the table key_ring from a backup.") from None
            raise SecretUnknown(
                f"The database is encrypted with secret {key}, which is not available. Set this secret in "
                f"JOINERY_SECRET or JOINERY_SECRET_FORMER."
            ) from None
