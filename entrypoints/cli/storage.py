"""What `joinery doctor` tells of the object store: what lies there, what waits, what a sweep frees."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from domain.kernel.plain import plain
from domain.kernel.tenancy import Tenant
from domain.runs.usecases.expiry import BatchExpiry
from domain.storage.model import Holding
from domain.storage.usecases.sweeping import Orphans, StorageSweeper
from entrypoints.container import Container


@dataclass(frozen=True, slots=True)
class Lying:
    """All that was seen. `due` are bytes that the next sweep frees by age, `deleting` what was freed and not deleted yet."""

    holdings: Sequence[Holding]
    deleting: Orphans
    orphans: Orphans
    batches: Sequence[tuple[Tenant, str, int, datetime]]
    seen_at: datetime

    def sentences(self) -> dict[str, str]:
        """What to tell of each thing looked at."""
        kinds = [f"{told(holding.count, holding.bytes)} as {holding.kind}" for holding in self.holdings]
        due = told(sum(one.due_count for one in self.holdings), sum(one.due_bytes for one in self.holdings))
        return {
            "storage": "; ".join(kinds) or "nothing is stored",
            "batches": self._batches(),
            "sweep": f"would look at {due} that are due by age, delete {told(self.deleting.count, self.deleting.bytes)} "
            f"that were freed and {told(self.orphans.count, self.orphans.bytes)} that belong to nothing",
        }

    def _batches(self) -> str:
        if not self.batches:
            return "no pushed batch is open"
        tenant, run, _, since = self.batches[0]
        hours = int((self.seen_at - since).total_seconds() // 3600)
        more = "or more " if len(self.batches) == 100 else ""
        return f"{len(self.batches)} {more}open, the oldest for {hours} h: {run} of {tenant.org}"

    def as_json(self) -> dict[str, Any]:
        """The same for programs."""
        return {
            "holdings": plain(self.holdings),
            "deleting": plain(self.deleting),
            "orphans": plain(self.orphans),
            "batches": [
                {"org": tenant.org, "livemode": tenant.livemode, "run": run, "bytes": bytes, "since": plain(since)}
                for tenant, run, bytes, since in self.batches
            ],
        }


def told(count: int, bytes: int) -> str:
    """So many things of so many bytes, for people."""
    power = min(4, max(0, (bytes.bit_length() - 1) // 10))
    size = f"{bytes / 1024**power:.1f}" if power else str(bytes)
    return f"{count} ({size} {('B', 'KiB', 'MiB', 'GiB', 'TiB')[power]})"


async def lying(container: Container) -> Lying:
    """Look at the ledger, and list the object store for what belongs to nothing (a million objects take a minute)."""
    upkeep, now = container.storage(), container.clock().now()
    return Lying(
        await upkeep.holdings(now),
        Orphans(*await upkeep.waiting()),
        await _sweeper(container).orphans(),
        await upkeep.batches(),
        now,
    )


async def sweep(container: Container) -> str:
    """Do at once what the scheduler does now and then; answers a sentence."""
    expired = await BatchExpiry(container.uow(), container.storage(), container.clock()).expire()
    freed = await _sweeper(container).free()
    orphans = await _sweeper(container).sweep()
    return (
        f"gave up {expired} batches, freed {freed} bytes by age, deleted {told(orphans.count, orphans.bytes)} that "
        "belonged to nothing"
    )


def _sweeper(container: Container) -> StorageSweeper:
    return StorageSweeper(container.uow(), container.storage(), container.objects(), container.clock())
