"""Key ring, and sealed values of all organisations, in PostgreSQL."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from adapters.postgres.nodes.node_pool import APPLICATION, key_lock
from adapters.postgres.nodes.pool import reading
from adapters.postgres.stores import CoordinatorStore, first, statements, tenant_values
from domain.kernel.tenancy import Tenant
from domain.secrets.model import NOBODYS, OF_PEOPLE, SealedKind, SealedValue
from domain.secrets.ports import KeyRings, StoredRing

SQL = statements("secrets")
HEADS = [b"\x01\x10", b"\x02\x10"]
"""First bytes of sealed responses: version and length of the key's name; other responses are JSON or empty."""
EVERYWHERE = frozenset({SealedKind.SSO_SECRETS})
"""Kinds in reference tables, which are read and written once."""


class PostgresKeyRings(CoordinatorStore, KeyRings):
    """Key ring; shared advisory locks of connections show which process knows which secret."""

    _sql = SQL
    read = first(StoredRing, "ring")
    has_api_keys = first(bool)

    async def write(self, sealed: bytes, expected: bytes | None) -> bool:
        statement = "found" if expected is None else "supersede"
        return await self._run(statement, sealed=sealed, expected=expected) == 1

    async def lacking(self, key: str) -> int:
        count = reading(SQL["lacking"], application=APPLICATION, lock=key_lock(key))
        return sum([(await self._pool.on(node, count))[0][0] for node in await self._pool.nodes()])


class PostgresSealedValues(CoordinatorStore):
    """Sealed values of all organisations; all nodes must answer, because an unreachable one may hold more."""

    _sql = SQL

    async def stale(
        self, kind: SealedKind, stamp: bytes, after: SealedValue | None, limit: int
    ) -> Sequence[SealedValue]:
        values = {"stamp": stamp, "length": len(stamp), "limit": limit, "owner": after.owner if after else ""}
        statement = f"stale_{kind}"
        if kind in OF_PEOPLE:
            return [SealedValue(kind, NOBODYS, *row) for row in await self._rows(statement, **values)]
        values |= tenant_values(after.tenant if after else Tenant("", False)) | {"heads": HEADS}
        read = self._rows if kind in EVERYWHERE else self._gather_all
        rows = sorted(await read(statement, **values), key=lambda row: row[:3])[:limit]
        return [SealedValue(kind, Tenant(org, livemode), *rest) for org, livemode, *rest in rows]

    async def replace(self, value: SealedValue, fresh: bytes) -> bool:
        statement, values = f"replace_{value.kind}", {"owner": value.owner, "fresh": fresh, "sealed": value.sealed}
        if value.kind in OF_PEOPLE:
            return await self._run(statement, **values) == 1
        values |= tenant_values(value.tenant)
        if value.kind in EVERYWHERE:
            async with self._owning() as link:
                return await link.run(SQL[statement], values) == 1
        return await self._pool.run(value.tenant, SQL[statement], values) == 1

    async def counts(self) -> Mapping[str, Mapping[str, int]]:
        totals: defaultdict[str, defaultdict[str, int]] = defaultdict(lambda: defaultdict(int))
        shared = await self._rows("counts_of_people") + await self._rows("counts_everywhere")
        for key, kind, count in await self._gather_all("counts", heads=HEADS) + shared:
            totals[key][kind] += count
        return totals
