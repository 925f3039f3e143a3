"""The key ring, and what is sealed, over all organisations."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, LiteralString

from adapters.postgres.nodes.node_pool import APPLICATION, key_lock
from adapters.postgres.nodes.pool import Pool, reading
from adapters.postgres.sqlfile import statements
from domain.kernel.tenancy import Tenant
from domain.secrets.model import NOBODYS, OF_PEOPLE, SealedKind, SealedValue
from domain.secrets.ports import StoredRing

SQL = statements("secrets")
HEADS: Final = [b"\x01\x10", b"\x02\x10"]
"""How sealed answers begin: a version, and the length of the key's name; all others are JSON, or empty."""


EVERYWHERE: Final = frozenset({SealedKind.SSO_SECRETS})
"""What lies on every node alike, and is read and written once."""


class PostgresKeyRings:
    """The key ring. Who knows which secret is told by locks that connections share."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def read(self) -> StoredRing | None:
        async with self._pool.system() as link:
            cursor = await link.cursor.execute(SQL["ring"])
            row = await cursor.fetchone()
        return StoredRing(*row) if row else None

    async def write(self, sealed: bytes, expected: bytes | None) -> bool:
        statement = SQL["found"] if expected is None else SQL["supersede"]
        values = {"sealed": sealed} if expected is None else {"sealed": sealed, "expected": expected}
        async with self._pool.system() as link:
            cursor = await link.cursor.execute(statement, values)
            return cursor.rowcount == 1

    async def has_api_keys(self) -> bool:
        async with self._pool.reference() as link:
            cursor = await link.cursor.execute(SQL["has_api_keys"])
            row = await cursor.fetchone()
        return bool(row and row[0])

    async def lacking(self, key: str) -> int:
        counting = reading(SQL["lacking"], application=APPLICATION, lock=key_lock(key))
        return sum(rows[0][0] for rows in await self._pool.scatter_all(counting, await self._pool.nodes()))


class PostgresSealedValues:
    """What is sealed in the tables of every organisation: a node out of reach may hold more, so without it nothing is told."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def stale(
        self, kind: SealedKind, stamp: bytes, after: SealedValue | None, limit: int
    ) -> Sequence[SealedValue]:
        if kind in OF_PEOPLE:
            return await self._of_people(kind, stamp, after.owner if after else "", limit)
        place = (after.tenant.org, after.tenant.livemode, after.owner) if after else ("", False, "")
        values = dict(zip(("org", "livemode", "owner"), place, strict=True))
        if kind is SealedKind.ANSWERS:
            values["heads"] = HEADS
        values |= {"stamp": stamp, "length": len(stamp), "limit": limit}
        if kind in EVERYWHERE:
            found = [await self._anywhere(SQL[f"stale_{kind}"], **values)]
        else:
            found = await self._pool.scatter_all(reading(SQL[f"stale_{kind}"], **values))
        first = sorted((row for rows in found for row in rows), key=lambda row: row[:3])[:limit]
        return [SealedValue(kind, Tenant(org, livemode), *rest) for org, livemode, *rest in first]

    async def _of_people(self, kind: SealedKind, stamp: bytes, after: str, limit: int) -> Sequence[SealedValue]:
        values = {"stamp": stamp, "length": len(stamp), "limit": limit, "owner": after}
        async with self._pool.system() as link:
            cursor = await link.cursor.execute(SQL[f"stale_{kind}"], values)
            return [SealedValue(kind, NOBODYS, owner, bytes(sealed)) for owner, sealed in await cursor.fetchall()]

    async def replace(self, value: SealedValue, fresh: bytes) -> bool:
        if value.kind in OF_PEOPLE:
            told = {"owner": value.owner, "fresh": fresh, "sealed": value.sealed}
            async with self._pool.system() as link:
                return (await link.cursor.execute(SQL[f"replace_{value.kind}"], told)).rowcount == 1
        place = {"org": value.tenant.org, "livemode": value.tenant.livemode, "owner": value.owner}
        values = {**place, "fresh": fresh, "sealed": value.sealed}
        if value.kind in EVERYWHERE:
            async with self._pool.system() as link, link.connection.transaction(), link.owning():
                return (await link.cursor.execute(SQL[f"replace_{value.kind}"], values)).rowcount == 1
        return await self._pool.run(value.tenant, SQL[f"replace_{value.kind}"], values) == 1

    async def counts(self) -> Mapping[str, Mapping[str, int]]:
        found: dict[str, dict[str, int]] = {}
        everywhere = list(await self._pool.scatter_all(reading(SQL["counts"], heads=HEADS)))
        async with self._pool.system() as link:
            cursor = await link.cursor.execute(SQL["counts_of_people"])
            everywhere.append(await cursor.fetchall())
            everywhere.append(await (await link.cursor.execute(SQL["counts_everywhere"])).fetchall())
        for rows in everywhere:
            for key, kind, count in rows:
                kinds = found.setdefault(key, {})
                kinds[kind] = kinds.get(kind, 0) + count
        return found

    async def _anywhere(self, statement: LiteralString, **values: Any) -> list[tuple[Any, ...]]:
        async with self._pool.system() as link:
            return await (await link.cursor.execute(statement, values)).fetchall()
