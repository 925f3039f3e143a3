"""Maintenance of the store: partitions, statistics and retention."""

from typing import Protocol


class Maintenance(Protocol):
    """Maintenance across all tenants; each call may take minutes."""

    async def partitions(self) -> None:
        """Create the partitions of the next days and drop those older than the retention."""
        ...

    async def statistics(self) -> None:
        """Update the planner statistics, so that tables that have just grown are not planned for as small ones."""
        ...

    async def purge_request_logs(self) -> int:
        """Delete request logs older than each organisation's plan keeps them; return their number."""
        ...

    async def purge_answers(self) -> int:
        """Delete responses older than they are kept for retries; return their number."""
        ...

    async def purge_inbound_messages(self) -> int:
        """Delete inbound messages older than the retention; return their number."""
        ...

    async def purge_audit(self) -> int:
        """Delete audit entries and sealed values older than the retention; return the number of entries."""
        ...

    async def purge_deliveries(self) -> int:
        """Delete webhook deliveries older than each organisation's plan keeps them; return their number."""
        ...
