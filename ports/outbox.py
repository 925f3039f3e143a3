"""Outgoing mail in store: nobody's tenant."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from domain.outbox.model import OutgoingMessage


class Outbox(Protocol):
    """Messages to people. Each call is a transaction of its own."""

    async def add(self, message: OutgoingMessage) -> None:
        """Keep a new message."""
        ...

    async def latest(self, limit: int) -> Sequence[OutgoingMessage]:
        """The newest first."""
        ...

    async def claim(
        self, now: datetime, until: datetime, not_before: datetime, limit: int
    ) -> Sequence[OutgoingMessage]:
        """The longest due, with one attempt more each; nobody else has them `until` then. Those made before `not_before` stay."""
        ...

    async def sent(self, id: str, now: datetime) -> None:
        """It was taken; its text is kept no longer."""
        ...

    async def failed(self, id: str, failure: str, next_at: datetime | None) -> None:
        """It was not; it is tried again then, or never (None)."""
        ...

    async def forget(self, before: datetime) -> int:
        """Delete those made before then; answers how many."""
        ...
