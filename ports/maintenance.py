"""Maintenance of the database: partitions, statistics, and deletion of old rows."""

from typing import Protocol


class Maintenance(Protocol):
    """Maintenance for all tenants; each call may take minutes."""

    async def maintain_partitions(self) -> None:
        """Create the partitions of the next days, and drop the partitions that are older than the retention."""
        ...

    async def update_statistics(self) -> None:
        """Update the statistics of the query planner, so that it knows which tables have grown."""
        ...

    async def purge_request_logs(self) -> int:
        """Delete request logs that are older than the organisation's plan permits; return their number."""
        ...

    async def purge_stored_responses(self) -> int:
        """Delete stored responses whose idempotency keys have expired; return their number."""
        ...

    async def purge_inbound_messages(self) -> int:
        """Delete inbound messages older than the retention; return their number."""
        ...

    async def purge_audit_entries(self) -> int:
        """Delete audit entries and encrypted values for undo whose retention has ended; return the entries' number."""
        ...

    async def purge_deliveries(self) -> int:
        """Delete webhook deliveries that are older than the organisation's plan permits; return their number."""
        ...
