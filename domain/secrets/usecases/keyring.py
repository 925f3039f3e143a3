"""The secret in force, the same for all processes: the one that seals the key ring.

Processes with old and new settings therefore work side by side: all seal and sign by the secret in force, which all
have. A new secret comes into force only when no process lacks it.
"""

import asyncio
import logging
import secrets

from domain.kernel.errors import DomainError
from domain.secrets.keys import WorkingKeys, cursor_key, hash_key, link_key
from domain.secrets.model import KeyRing
from domain.secrets.ports import KeyRings, StoredRing, Vault
from ports.clock import Clock

OWNER = "key ring"
SOON = 2.0
"""Seconds between checks while another secret is coming into force."""
LATER = 3600.0
"""Seconds between checks otherwise, which only delays the expiry of former keys."""

_LOG = logging.getLogger("joinery.secrets")


class SecretUnknown(DomainError):
    """The database is sealed under a secret that is not available."""


class Keyring:
    """The process's view of the key ring. Call `load` first; `watch` follows changes."""

    def __init__(self, rings: KeyRings, vault: Vault, keys: WorkingKeys, clock: Clock) -> None:
        self._rings, self._vault, self._keys, self._clock = rings, vault, keys, clock
        self._secrets = dict(zip(vault.keys, keys.secrets, strict=True))
        self._loaded = False
        vault.use(vault.keys[-1])

    @property
    def settled(self) -> bool:
        """True if the current secret is in force."""
        return self._loaded and self._vault.in_force == self._vault.keys[0]

    async def load(self) -> None:
        """Use the stored ring, or create the first one. Raises SecretUnknown, Unavailable."""
        stored = await self._rings.read() or await self._create()
        ring = self._open(stored)
        self._vault.use(self._vault.key_of(stored.sealed))
        self._keys.use(ring, self._secrets[self._vault.in_force], self._clock.now())
        self._loaded = True

    async def watch(self) -> None:
        """Reload periodically until cancelled; errors are logged."""
        while True:
            await asyncio.sleep(LATER if self.settled else SOON)
            try:
                await self.load()
            except Exception:
                _LOG.exception("key ring could not be read")

    async def lacking(self) -> int:
        """Return the number of connections of processes without the current secret."""
        return await self._rings.lacking(self._vault.keys[0])

    async def promote(self) -> None:
        """Bring the current secret into force; signatures of the previous one remain valid for a while."""
        stored = await self._rings.read()
        if stored is None or self._vault.key_of(stored.sealed) == self._vault.keys[0]:
            return await self.load()
        before = self._secrets[self._vault.key_of(stored.sealed)]
        ring = self._open(stored).superseded(cursor_key(before), link_key(before), self._clock.now())
        sealed = self._vault.seal(ring.plain(), OWNER, key=self._vault.keys[0])
        if await self._rings.write(sealed, stored.sealed):
            _LOG.info("secret %s is in force", self._vault.keys[0])
        return await self.load()

    async def _create(self) -> StoredRing:
        """Create the first ring.

        Existing API keys were hashed by a key of the oldest secret; without any, the key is random.
        """
        kept = await self._rings.has_api_keys()
        ring = KeyRing(hash_key(self._keys.secrets[-1]) if kept else secrets.token_bytes(32))
        await self._rings.write(self._vault.seal(ring.plain(), OWNER, key=self._vault.keys[-1]), None)
        stored = await self._rings.read()
        assert stored is not None, "a ring is never removed"
        return stored

    def _open(self, stored: StoredRing) -> KeyRing:
        try:
            return KeyRing.of(self._vault.open(stored.sealed, OWNER))
        except ValueError:
            key = self._vault.key_of(stored.sealed)
            if key in self._secrets:
                raise SecretUnknown("The key ring is damaged. Restore the table key_ring from a backup.") from None
            raise SecretUnknown(
                f"The database is sealed under secret {key}, which is not available. Set it in JOINERY_SECRET, or in "
                "JOINERY_SECRET_FORMER beside another one."
            ) from None
