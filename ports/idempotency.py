"""Answers kept for retries (docs/conventions.md#idempotency)."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """What was answered: status, headers worth repeating and the body's bytes; `fingerprint` is of the request."""

    fingerprint: bytes
    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes


class IdempotencyStore(Protocol):
    """In a tenant's transaction; a key is held until the transaction ends, also by a crash."""

    async def hold(self, key: str) -> StoredAnswer | None:
        """Hold the key and answer what is stored under it. Raises RequestInProgress when another request holds it."""
        ...

    async def keep(self, key: str, answer: StoredAnswer) -> None:
        """Keep the answer for 24 hours, in this transaction."""
        ...

    async def revise(self, key: str, body: bytes) -> None:
        """Answer with that body from now on; nothing where no answer is kept."""
        ...
