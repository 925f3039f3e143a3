"""The key ring, and what is sealed, over all organisations."""

from collections.abc import Mapping, Sequence
from typing import Final

from adapters.postgres.node_pool import APPLICATION, key_lock
from adapters.postgres.pool import Pool
from adapters.postgres.sqlfile import statements
from domain.kernel.tenancy import Tenant
from domain.secrets.model import SealedKind, SealedValue
from ports.secrets import StoredRing

SQL = statements("secrets")
HEADS: Final = [b"\x01\x10", b"\x02\x10"]
"""How sealed answers begin: a version, and the length of the key's name; all others are JSON, or empty."""


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
        async with self._pool.system() as link:
            cursor = await link.cursor.execute(SQL["has_api_keys"])
            row = await cursor.fetchone()
        return bool(row and row[0])

    async def lacking(self, key: str) -> int:
        async with self._pool.system() as link:
            cursor = await link.cursor.execute(SQL["lacking"], {"application": APPLICATION, "lock": key_lock(key)})
            row = await cursor.fetchone()
        return int(row[0]) if row else 0


class PostgresSealedValues:
    """What is sealed in the tables of every organisation."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def stale(
        self, kind: SealedKind, stamp: bytes, after: SealedValue | None, limit: int
    ) -> Sequence[SealedValue]:
        place = (after.tenant.org, after.tenant.livemode, after.owner) if after else ("", False, "")
        values = dict(zip(("org", "livemode", "owner"), place, strict=True))
        if kind is SealedKind.ANSWERS:
            values["heads"] = HEADS
        values |= {"stamp": stamp, "length": len(stamp), "limit": limit}
        async with self._pool.system() as link:
            cursor = await link.cursor.execute(SQL[f"stale_{kind}"], values)
            rows = await cursor.fetchall()
        return [SealedValue(kind, Tenant(org, livemode), *rest) for org, livemode, *rest in rows]

    async def replace(self, value: SealedValue, fresh: bytes) -> bool:
        place = {"org": value.tenant.org, "livemode": value.tenant.livemode, "owner": value.owner}
        async with self._pool.tenant(value.tenant) as link:
            cursor = await link.cursor.execute(
                SQL[f"replace_{value.kind}"], {**place, "fresh": fresh, "sealed": value.sealed}
            )
            return cursor.rowcount == 1

    async def counts(self) -> Mapping[str, Mapping[str, int]]:
        async with self._pool.system() as link:
            cursor = await link.cursor.execute(SQL["counts"], {"heads": HEADS})
            rows = await cursor.fetchall()
        found: dict[str, dict[str, int]] = {}
        for key, kind, count in rows:
            found.setdefault(key, {})[kind] = count
        return found
