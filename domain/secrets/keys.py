"""Everything that is derived from the operator's secret but the vault's own keys, and what of it a process works with."""

import hashlib
import hmac
from collections.abc import Sequence
from datetime import UTC, datetime

from domain.kernel.errors import Unavailable
from domain.secrets.model import FormerKey, KeyRing, counting

_ALWAYS = datetime.max.replace(tzinfo=UTC)


def cursor_key(secret: str) -> bytes:
    """Return the key that signs cursors."""
    return hashlib.blake2b(secret.encode(), digest_size=32, person=b"joinery-cursors").digest()


def link_key(secret: str) -> bytes:
    """Return the key that signs links to objects."""
    return hmac.digest(secret.encode(), b"joinery: links to objects, version 1", hashlib.sha256)


def hash_key(secret: str) -> bytes:
    """Return the key of API key hashes from before the key ring."""
    return hashlib.sha256(b"joinery/api-keys/" + secret.encode()).digest()


class SigningKeys:
    """The key that signs now, and those whose signatures still count; changed in place."""

    __slots__ = ("current", "former")

    def __init__(self, current: bytes, former: tuple[FormerKey, ...] = ()) -> None:
        self.current, self.former = current, former


class WorkingKeys:
    """The keys of this process. `secrets` are those at hand, the current one first.

    Until the store has told which secret is in force, it signs by the oldest one, as every other process can check.
    """

    def __init__(self, secrets: Sequence[str]) -> None:
        self.secrets = tuple(secrets)
        oldest = self.secrets[-1]
        self.cursors, self.links = SigningKeys(cursor_key(oldest)), SigningKeys(link_key(oldest))
        self._api_keys: bytes | None = None

    def use(self, ring: KeyRing, in_force: str, now: datetime) -> None:
        """Work with the ring, sign by the secret in force.

        While that is not the current one, processes that know more may already sign by any that is at hand.
        """
        others = () if in_force == self.secrets[0] else tuple(one for one in self.secrets if one != in_force)
        self._api_keys = ring.api_keys
        self.cursors.current, self.links.current = cursor_key(in_force), link_key(in_force)
        self.cursors.former = (
            *(FormerKey(cursor_key(one), _ALWAYS) for one in others), *counting(ring.cursors, now)
        )  # fmt: skip
        self.links.former = (
            *(FormerKey(link_key(one), _ALWAYS) for one in others), *counting(ring.links, now)
        )  # fmt: skip

    @property
    def api_keys(self) -> bytes:
        """What keys the hashes of API keys. Raises Unavailable before the ring was read."""
        if self._api_keys is None:
            raise Unavailable("The service's keys could not be read yet.", retry_after=2)
        return self._api_keys
