"""Keys for signatures and hashes, derived from the deployment's secret, and the keys that a process uses."""

import hashlib
import hmac
from collections.abc import Sequence
from datetime import UTC, datetime

from domain.kernel.errors import Unavailable
from domain.secrets.model import FormerKey, KeyRing, select_valid_keys

_ALWAYS = datetime.max.replace(tzinfo=UTC)


def derive_cursor_key(secret: str) -> bytes:
    """Derive the key that signs cursors."""
    return hashlib.blake2b(secret.encode(), digest_size=32, person=b"joinery-cursors").digest()


def derive_link_key(secret: str) -> bytes:
    """Derive the key that signs links to objects."""
    return hmac.digest(secret.encode(), b"joinery: links to objects, version 1", hashlib.sha256)


def derive_hash_key(secret: str) -> bytes:
    """Derive the key with which earlier releases hashed API keys."""
    return hashlib.sha256(b"joinery/api-keys/" + secret.encode()).digest()


class SigningKeys:
    """Key that signs, and former keys whose signatures are still valid."""

    __slots__ = ("current", "former")

    def __init__(self, current: bytes, former: tuple[FormerKey, ...] = ()) -> None:
        self.current, self.former = current, former


class ActiveKeys:
    """Keys that this process uses.

    Attributes:
        secrets: The available secrets, the newest first.
        cursor_keys: Keys that sign cursors.
        link_keys: Keys that sign links to objects.
    """

    def __init__(self, secrets: Sequence[str]) -> None:
        self.secrets = tuple(secrets)
        oldest = self.secrets[-1]  # all processes can verify its signatures; used until the key ring is loaded
        self.cursor_keys, self.link_keys = SigningKeys(derive_cursor_key(oldest)), SigningKeys(derive_link_key(oldest))
        self._api_keys: bytes | None = None

    def use_key_ring(self, key_ring: KeyRing, active_secret: str, now: datetime) -> None:
        """Use the keys of the key ring, and sign with keys of the active secret `active_secret`.

        Until the newest secret is active, signatures with all available secrets are valid.
        """
        # other processes may already sign with another available secret
        others = (
            ()
            if active_secret == self.secrets[0]
            else tuple(secret for secret in self.secrets if secret != active_secret)
        )
        self._api_keys = key_ring.api_key_hash_key
        self.cursor_keys.current, self.link_keys.current = (
            derive_cursor_key(active_secret),
            derive_link_key(active_secret),
        )
        self.cursor_keys.former = (
            *(FormerKey(derive_cursor_key(secret), _ALWAYS) for secret in others), *select_valid_keys(key_ring.former_cursor_keys, now)
        )  # fmt: skip
        self.link_keys.former = (
            *(FormerKey(derive_link_key(secret), _ALWAYS) for secret in others), *select_valid_keys(key_ring.former_link_keys, now)
        )  # fmt: skip

    @property
    def api_key_hash_key(self) -> bytes:
        """The key with which API keys are hashed. Raises Unavailable before the key ring is loaded."""
        if self._api_keys is None:
            raise Unavailable("The service's keys are not loaded yet. Try again shortly.", retry_after=2)
        return self._api_keys
