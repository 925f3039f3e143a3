"""The ledger of what is stored, in PostgreSQL."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from heapq import merge
from itertools import islice
from typing import Any, Final, LiteralString

from adapters.postgres.nodes.pool import Pool, reading
from adapters.postgres.session import Fetched, Session
from adapters.postgres.sqlfile import statements
from domain.kernel import retention
from domain.kernel.tenancy import Tenant
from domain.runs.model import OPEN, REPLAYABLE
from domain.storage.model import METER, RECENT, Holding, StoredKind, StoredObject

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
"""Of the entry `s`: an open run reads it, or it is the newest that a stream could be read from again.

Subqueries of one row: for EXISTS the planner goes through all runs (making room among 300,000: 146 ms, so 16 ms).
"""
_ENTRY: Final = ", ".join(field.name for field in fields(StoredObject))
SQL = statements("storage", needed=_NEEDED, entry=_ENTRY)
_BATCH: Final = 200
BATCHES: Final = 100
"""Open batches that operators are shown."""
_NEEDING: Final = {"open": sorted(OPEN), "replayable": sorted(REPLAYABLE)}


def _entry(row: Fetched) -> StoredObject:
    key, kind, *rest = row
    return StoredObject(key, StoredKind(kind), *rest)


class PostgresStorageLedger:
    """The tenant's entries. Each change locks the tenant's row of storage_usage first, so that none waits in a circle."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def get(self, key: str) -> StoredObject | None:
        row = await self._session.one(SQL["get"], key=key)
        return _entry(row) if row else None

    async def used(self) -> int:
        row = await self._session.one(SQL["used"])
        return int(row[0]) if row else 0

    async def make_room(self, bytes: int) -> bool:
        used, most = await self._account()
        excess = used + bytes - most if most is not None else 0
        if excess <= 0:
            return True
        unused = self._session.now + retention.SNAPSHOTS - RECENT
        while excess > 0:
            these = {"unused": unused, "bytes": excess, "limit": _BATCH, **_NEEDING}
            freed = await self._freed("free_unneeded", **these)
            if not freed:
                return False
            excess -= freed
        return True

    async def keep(self, wanted: StoredObject, instead_of: str | None = None) -> StoredObject | None:
        await self._account()
        if wanted.content is not None:
            same = {"content": wanted.content, "free_after": wanted.free_after, "run": wanted.run}
            if row := await self._session.one(SQL["same_content"], **same):
                return _entry(row)
        given = {"key": instead_of, "run": (instead_of or "").rpartition("/")[2]}
        row = await self._session.one(SQL["handed_in"], **given) if instead_of else None
        bytes = wanted.bytes - (int(row[0]) if row else 0)
        if bytes > 0 and not await self.make_room(bytes):
            return None
        if row and row[0]:
            await self._session.run(SQL["replaced"], **given)
        values = {field.name: getattr(wanted, field.name) for field in fields(wanted)}
        await self._session.run(SQL["add"], now=self._session.now, **values)
        await self._session.run(SQL["counted"], bytes=bytes)
        return wanted

    async def count(self, kind: StoredKind) -> int:
        row = await self._session.one(SQL["unread"], kind=kind)
        return int(row[0]) if row else 0

    async def assign(self, key: str, run: str) -> None:
        await self._session.run(SQL["assign"], key=key, run=run)

    async def settle(self, key: str) -> bool:
        return await self._session.run(SQL["settle"], key=key, free_after=retention.UNTIL_FREED) == 1

    async def holds(self, key: str) -> bool:
        return bool(await self._session.all(SQL["holds"], key=key))

    async def free(self, key: str) -> None:
        await self._account()
        await self._freed("free", key=key)

    async def free_due(self, keys: Collection[str], again: datetime) -> int:
        await self._account()
        these: dict[str, Any] = {"keys": list(keys), "now": self._session.now}
        await self._session.run(SQL["postpone"], again=again, **these, **_NEEDING)
        return await self._freed("free_due", **these)

    async def _account(self) -> tuple[int, int | None]:
        """What counts and how much the plan includes (None: any amount); others of the tenant wait from here on."""
        row = await self._session.one(SQL["account"], meter=METER)
        if row is None:
            await self._session.run(SQL["open_account"])
            row = await self._session.one(SQL["account"], meter=METER)
        assert row is not None, "a tenant without an organisation"
        return int(row[0]), row[1]

    async def _freed(self, statement: str, **values: Any) -> int:
        freed: int = sum(row[0] for row in await self._session.all(SQL[statement], **values))
        if freed:
            await self._session.run(SQL["counted"], bytes=-freed)
        return freed


class PostgresStorageUpkeep:
    """Across tenants, for the scheduler and for operators, who are told of every node or of none."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def due(self, kinds: Collection[StoredKind], now: datetime, limit: int) -> Sequence[tuple[Tenant, str]]:
        found = await self._pool.scatter_best_effort(reading(SQL["due"], kinds=sorted(kinds), now=now, limit=limit))
        return [(Tenant(org, livemode), key) for _, org, livemode, key in _first(found, limit)]

    async def freed(self, after: str, limit: int) -> Sequence[tuple[Tenant, str]]:
        found = await self._pool.scatter_best_effort(reading(SQL["freed"], after=after, limit=limit))
        return [(Tenant(org, livemode), key) for key, org, livemode in _first(found, limit)]

    async def forget(self, tenant: Tenant, keys: Collection[str]) -> None:
        of = {"org": tenant.org, "livemode": tenant.livemode, "keys": list(keys)}
        await self._pool.run(tenant, SQL["forget"], of)

    async def orphans(self, keys: Mapping[Tenant, Collection[str]]) -> Collection[str]:
        found: set[str] = set()
        for tenant, own in keys.items():
            of = {"org": tenant.org, "livemode": tenant.livemode, "keys": list(own), "open": sorted(OPEN)}
            found |= {row[0] for row in await self._pool.rows(tenant, SQL["orphans"], of)}
        return found

    async def holdings(self, now: datetime) -> Sequence[Holding]:
        sums: dict[str, list[int]] = {}
        for rows in await self._pool.scatter_all(reading(SQL["holdings"], now=now, push=StoredKind.PUSH)):
            for kind, *numbers in rows:
                sums[kind] = [a + int(b) for a, b in zip(sums.get(kind, [0] * len(numbers)), numbers, strict=True)]
        return [Holding(StoredKind(kind), *numbers) for kind, numbers in sorted(sums.items())]

    async def waiting(self) -> tuple[int, int]:
        found = [rows[0] for rows in await self._pool.scatter_all(reading(SQL["waiting"]))]
        return sum(count for count, _ in found), sum(int(bytes) for _, bytes in found)

    async def batches(self) -> Sequence[tuple[Tenant, str, int, datetime]]:
        found = await self._pool.scatter_all(reading(SQL["batches"], kind=StoredKind.PUSH))
        oldest = _first(found, BATCHES)
        return [(Tenant(org, livemode), run, int(bytes), made) for made, org, livemode, run, bytes in oldest]


def _first(found: Sequence[Sequence[Fetched]], limit: int) -> Sequence[Fetched]:
    """The least rows of those that several nodes answered, each in order."""
    return list(islice(merge(*found), limit))
