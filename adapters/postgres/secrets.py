"""Key ring and encrypted values of all organisations in PostgreSQL."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from adapters.postgres.nodes.node_pool import APPLICATION, compute_secret_lock
from adapters.postgres.nodes.pool import create_row_reader
from adapters.postgres.stores import CoordinatorStore, build_tenant_params, fetch_first, load_statements
from domain.kernel.tenancy import Tenant
from domain.secrets.model import NO_TENANT, USER_KINDS, EncryptedValue, EncryptedValueKind
from domain.secrets.ports import KeyRingStore, StoredKeyRing

SQL = load_statements("secrets")
ENCRYPTED_RESPONSE_PREFIXES = [b"\x01\x10", b"\x02\x10"]
"""First bytes of the encrypted responses that are stored for idempotency keys: format version, and length of the key ID.

Other stored responses are JSON or empty.
"""
REFERENCE_TABLE_KINDS = frozenset({EncryptedValueKind.SSO_SECRETS})
"""Kinds of values in reference tables. Every node has a copy, so one node is read, and one write changes all copies."""


class PostgresKeyRingStore(CoordinatorStore, KeyRingStore):
    """Key ring in the database, and the secrets that processes have loaded.

    Every connection of a process holds a shared advisory lock for each secret that the process has loaded.
    """

    _sql = SQL
    read = fetch_first(StoredKeyRing, "get_key_ring")
    has_api_keys = fetch_first(bool)

    async def write(self, sealed: bytes, expected: bytes | None) -> bool:
        statement = "add_key_ring" if expected is None else "replace_key_ring"
        return await self._run(statement, sealed=sealed, expected=expected) == 1

    async def count_outdated_connections(self, secret_id: str) -> int:
        count = create_row_reader(
            SQL["count_outdated_connections"], application=APPLICATION, lock=compute_secret_lock(secret_id)
        )
        return sum([(await self._pool.run_on(node, count))[0][0] for node in await self._pool.list_nodes()])


class PostgresEncryptedValues(CoordinatorStore):
    """Encrypted values of all organisations. All nodes must respond, because an unreachable node may have more values."""

    _sql = SQL

    async def list_outdated(
        self, kind: EncryptedValueKind, current_prefix: bytes, after: EncryptedValue | None, limit: int
    ) -> Sequence[EncryptedValue]:
        values = {
            "current_prefix": current_prefix,
            "length": len(current_prefix),
            "limit": limit,
            "owner": after.owner if after else "",
        }
        statement = f"list_outdated_{kind}"
        if kind in USER_KINDS:
            return [EncryptedValue(kind, NO_TENANT, *row) for row in await self._fetch_rows(statement, **values)]
        values |= build_tenant_params(after.tenant if after else Tenant("", False)) | {
            "prefixes": ENCRYPTED_RESPONSE_PREFIXES
        }
        read = self._fetch_rows if kind in REFERENCE_TABLE_KINDS else self._gather_all
        rows = sorted(await read(statement, **values), key=lambda row: row[:3])[:limit]
        return [EncryptedValue(kind, Tenant(org, livemode), *rest) for org, livemode, *rest in rows]

    async def replace(self, value: EncryptedValue, reencrypted: bytes) -> bool:
        statement, values = (
            f"replace_{value.kind}",
            {"owner": value.owner, "reencrypted": reencrypted, "ciphertext": value.ciphertext},
        )
        if value.kind in USER_KINDS:
            return await self._run(statement, **values) == 1
        values |= build_tenant_params(value.tenant)
        if value.kind in REFERENCE_TABLE_KINDS:
            async with self._begin_as_owner() as connection:
                return await connection.run(SQL[statement], values) == 1
        return await self._pool.run(value.tenant, SQL[statement], values) == 1

    async def count_by_secret(self) -> Mapping[str, Mapping[str, int]]:
        totals: defaultdict[str, defaultdict[str, int]] = defaultdict(lambda: defaultdict(int))
        shared = await self._fetch_rows("count_user_values") + await self._fetch_rows("count_reference_table_values")
        for key, kind, count in (
            await self._gather_all("count_tenant_values", prefixes=ENCRYPTED_RESPONSE_PREFIXES) + shared
        ):
            totals[key][kind] += count
        return totals
