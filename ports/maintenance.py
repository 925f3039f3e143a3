"""Keeping the store small and its plans right, over all organisations."""

from typing import Protocol


class Maintenance(Protocol):
    """Each call works across tenants and may take a while."""

    async def partitions(self) -> None:
        """Have room for the next days, and drop the days that are older than what is kept."""
        ...

    async def statistics(self) -> None:
        """Have the store look at how much there is: what just grew is otherwise planned for as if it were small."""
        ...

    async def purge_request_logs(self) -> int:
        """Drop request logs older than each organisation's plan keeps them; answers how many."""
        ...

    async def purge_answers(self) -> int:
        """Drop answers that are older than they are kept for retries; answers how many."""
        ...

    async def purge_inbound_messages(self) -> int:
        """Drop what is told of inbound mail once it is older than it is kept; answers how many."""
        ...

    async def purge_audit(self) -> int:
        """Drop audit entries older than they are kept, and what was kept sealed beside others; answers how many entries."""
        ...

    async def purge_deliveries(self) -> int:
        """Drop webhook deliveries older than each organisation's plan keeps them; answers how many."""
        ...
