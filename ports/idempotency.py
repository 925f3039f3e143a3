"""Responses stored for retries (docs/conventions.md#idempotency)."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """Status, replayed headers and body of a response, with the fingerprint of its request."""

    fingerprint: bytes
    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes


class IdempotencyStore(Protocol):
    """Responses by idempotency key, in a tenant's transaction; a lock on a key ends with the transaction, even by a crash."""

    async def hold(self, key: str) -> StoredAnswer | None:
        """Lock the key and return the response stored under it. Raises RequestInProgress if another request holds the lock."""
        ...

    async def keep(self, key: str, answer: StoredAnswer) -> None:
        """Store the response for 24 hours, in this transaction."""
        ...

    async def revise(self, key: str, body: bytes) -> None:
        """Replace the body of the stored response; do nothing if none is stored."""
        ...
