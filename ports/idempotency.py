"""Responses stored for repeated requests with the same Idempotency-Key (docs/conventions.md#idempotency)."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """Response that is returned again for a repeated request; `fingerprint` identifies the content of the request."""

    fingerprint: bytes
    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes


class IdempotencyStore(Protocol):
    """Storage of responses by idempotency key, in a tenant's transaction.

    A lock on a key ends with the transaction, even if the process crashes.
    """

    async def lock(self, key: str) -> StoredResponse | None:
        """Lock the key; return its stored response, or None. Raises RequestInProgress if another request has locked it."""
        ...

    async def store(self, key: str, response: StoredResponse) -> None:
        """Store the response for the key, for 24 hours, instead of one that is stored."""
        ...

    async def replace_body(self, key: str, body: bytes) -> None:
        """Replace the body of the stored response; do nothing if none is stored."""
        ...
