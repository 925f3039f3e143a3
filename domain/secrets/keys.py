"""Keys derived from the operator's secret, except the vault's own, and the keys in use by a process."""

import hashlib
import hmac
from collections.abc import Sequence
from datetime import UTC, datetime

from domain.kernel.errors import Unavailable
from domain.secrets.model import FormerKey, KeyRing, counting

_ALWAYS = datetime.max.replace(tzinfo=UTC)


def cursor_key(secret: str) -> bytes:
    """Derive the key that signs cursors."""
    return hashlib.blake2b(secret.encode(), digest_size=32, person=b"joinery-cursors").digest()


def link_key(secret: str) -> bytes:
    """Derive the key that signs links to objects."""
    return hmac.digest(secret.encode(), b"joinery: links to objects, version 1", hashlib.sha256)


def hash_key(secret: str) -> bytes:
    """Derive the key of API key hashes that was used before that key became independent."""
    return hashlib.sha256(b"joinery/api-keys/" + secret.encode()).digest()


class SigningKeys:
    """The key that signs, and former keys whose signatures are still valid; changed in place."""

    __slots__ = ("current", "former")

    def __init__(self, current: bytes, former: tuple[FormerKey, ...] = ()) -> None:
        self.current, self.former = current, former


class WorkingKeys:
    """The keys of this process.

    `secrets` are those available, the current one first. Until the key ring is read, the oldest secret signs, because
    every process can verify it.
    """

    def __init__(self, secrets: Sequence[str]) -> None:
        self.secrets = tuple(secrets)
        oldest = self.secrets[-1]
        self.cursors, self.links = SigningKeys(cursor_key(oldest)), SigningKeys(link_key(oldest))
        self._api_keys: bytes | None = None

    def use(self, ring: KeyRing, in_force: str, now: datetime) -> None:
        """Use the ring, and sign by the secret in force.

        Until that is the current one, other processes may already sign by any available secret, so all of them verify.
        """
        others = () if in_force == self.secrets[0] else tuple(secret for secret in self.secrets if secret != in_force)
        self._api_keys = ring.api_keys
        self.cursors.current, self.links.current = cursor_key(in_force), link_key(in_force)
        self.cursors.former = (
            *(FormerKey(cursor_key(secret), _ALWAYS) for secret in others), *counting(ring.cursors, now)
        )  # fmt: skip
        self.links.former = (
            *(FormerKey(link_key(secret), _ALWAYS) for secret in others), *counting(ring.links, now)
        )  # fmt: skip

    @property
    def api_keys(self) -> bytes:
        """The key of API key hashes. Raises Unavailable before the ring was read."""
        if self._api_keys is None:
            raise Unavailable("The service's keys could not be read yet.", retry_after=2)
        return self._api_keys
