"""Ledger of stored objects in PostgreSQL."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, LiteralString

from adapters.postgres.stores import (
    CoordinatorStore,
    TenantStore,
    done,
    first,
    gathered,
    run,
    statements,
    tenant_values,
)
from adapters.postgres.table import Record
from domain.kernel import retention
from domain.kernel.tenancy import Tenant
from domain.runs.model import OPEN, REPLAYABLE
from domain.storage.model import METER, RECENT, Holding, StoredKind, StoredObject
from domain.storage.ports import StorageLedger, StorageUpkeep

_NEEDED: Final[LiteralString] = """
    (SELECT true FROM runs r
     WHERE r.org = %(org)s AND r.livemode = %(livemode)s AND r.id = s.run AND r.status = ANY(%(open)s)) IS NOT NULL
    OR (SELECT true FROM runs r
        WHERE r.org = %(org)s AND r.livemode = %(livemode)s AND r.snapshot COLLATE "C" = s.key
            AND (r.status = ANY(%(open)s) OR (r.status = ANY(%(replayable)s) AND (
                SELECT true FROM runs n WHERE n.org = %(org)s AND n.livemode = %(livemode)s AND n.source = r.source
                    AND n.stream = r.stream AND n.status = r.status AND n.snapshot IS NOT NULL AND n.id > r.id
                LIMIT 1) IS NULL))
        LIMIT 1) IS NOT NULL
"""
"""Condition that the entry `s` is needed: an open run reads it, or it is the newest snapshot that a stream can be replayed from.

The subqueries return one row, because the planner scans all runs for EXISTS (146 ms instead of 16 ms with 300,000 runs).
"""
_ENTRIES = Record(StoredObject)
SQL = statements("storage", needed=_NEEDED, entry=_ENTRIES.columns())
_BATCH = 200
BATCHES = 100
"""Maximum number of open batches that are shown to operators."""
_NEEDED_STATUSES = {"open": sorted(OPEN), "replayable": sorted(REPLAYABLE)}


class PostgresStorageLedger(TenantStore, StorageLedger):
    """Storage ledger of the tenant. Each change first locks the tenant's row of storage_usage, which prevents deadlocks."""

    _sql = SQL
    get = first(_ENTRIES.row_of)
    count = first(int, "unread")
    assign = run()
    settle = done(free_after=retention.UNTIL_FREED)

    async def used(self) -> int:
        return int(await self._value("used", 0))

    async def make_room(self, bytes: int) -> bool:
        used, most = await self._account()
        excess = used + bytes - most if most is not None else 0
        unused = self._session.now + retention.SNAPSHOTS - RECENT
        while excess > 0:
            freed = await self._free_entries(
                "free_unneeded", unused=unused, bytes=excess, limit=_BATCH, **_NEEDED_STATUSES
            )
            if not freed:
                return False
            excess -= freed
        return True

    async def keep(self, wanted: StoredObject, instead_of: str | None = None) -> StoredObject | None:
        await self._account()
        values = _ENTRIES.values(wanted)
        if wanted.content is not None and (same := await self._first(_ENTRIES.row_of, "same_content", **values)):
            return same
        replaced = {"key": instead_of, "run": (instead_of or "").rpartition("/")[2]}
        replaced_bytes = int(await self._value("handed_in", **replaced)) if instead_of else 0
        bytes = wanted.bytes - replaced_bytes
        if bytes > 0 and not await self.make_room(bytes):
            return None
        if replaced_bytes:
            await self._run("replaced", **replaced)
        await self._run("add", **values)
        await self._run("counted", bytes=bytes)
        return wanted

    async def holds(self, key: str) -> bool:
        return bool(await self._rows("holds", key=key))

    async def free(self, key: str) -> None:
        await self._account()
        await self._free_entries("free", key=key)

    async def free_due(self, keys: Collection[str], again: datetime) -> int:
        await self._account()
        values: dict[str, Any] = {"keys": list(keys)}
        await self._run("postpone", again=again, **values, **_NEEDED_STATUSES)
        return await self._free_entries("free_due", **values)

    async def _account(self) -> tuple[int, int | None]:
        """Lock the tenant's account; return the counted bytes and the plan's quota (None if unlimited)."""
        rows = await self._rows("account", meter=METER)
        if not rows:
            await self._run("open_account")
            rows = await self._rows("account", meter=METER)
        assert rows, "a tenant without an organisation"
        used, most = rows[0]
        return int(used), most

    async def _free_entries(self, statement: str, /, **values: Any) -> int:
        freed: int = sum(bytes for (bytes,) in await self._rows(statement, **values))
        if freed:
            await self._run("counted", bytes=-freed)
        return freed


class PostgresStorageUpkeep(CoordinatorStore, StorageUpkeep):
    """Storage of all tenants, for the scheduler and for operators; figures require that every node answers."""

    _sql = SQL
    due = gathered()
    freed = gathered()

    async def forget(self, tenant: Tenant, keys: Collection[str]) -> None:
        await self._pool.run(tenant, SQL["forget"], tenant_values(tenant) | {"keys": list(keys)})

    async def orphans(self, keys: Mapping[Tenant, Collection[str]]) -> Collection[str]:
        orphans: set[str] = set()
        for tenant, tenant_keys in keys.items():
            values = tenant_values(tenant) | {"keys": list(tenant_keys), "open": sorted(OPEN)}
            orphans |= {key for (key,) in await self._pool.rows(tenant, SQL["orphans"], values)}
        return orphans

    async def holdings(self, now: datetime) -> Sequence[Holding]:
        sums: dict[str, list[int]] = {}
        for kind, *numbers in await self._gather_all("holdings", now=now, push=StoredKind.PUSH):
            sums[kind] = [a + int(b) for a, b in zip(sums.get(kind, [0] * len(numbers)), numbers, strict=True)]
        return [Holding(StoredKind(kind), *numbers) for kind, numbers in sorted(sums.items())]

    async def waiting(self) -> tuple[int, int]:
        found = await self._gather_all("waiting")
        return sum(count for count, _ in found), sum(int(bytes) for _, bytes in found)

    async def batches(self) -> Sequence[tuple[Tenant, str, int, datetime]]:
        oldest = sorted(await self._gather_all("batches", kind=StoredKind.PUSH))[:BATCHES]
        return [(Tenant(org, livemode), run, int(bytes), created) for created, org, livemode, run, bytes in oldest]
