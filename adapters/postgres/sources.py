"""Sources, their inbound addresses and their column mappings in PostgreSQL."""

from collections.abc import Sequence

from adapters.postgres.stores import CoordinatorStore, earliest, every, gathered, rendered, run, statements, value
from adapters.postgres.table import Column, Table, TableStore, as_json
from domain.ingestion.mapping.learned import KnownMapping
from domain.kernel.tenancy import Tenant
from domain.mail.ports import Recipient
from domain.mappings.model import MappingStatus, SourceMapping
from domain.mappings.ports import MappingStore
from domain.sources.model import Source, SourceStatus
from domain.sources.ports import SourceSchedule, SourceStore

SOURCES = Table(
    Source,
    "sources",
    computed={"has_credentials": "credentials IS NOT NULL"},
    conflicts={"sources_inbound_address": "The inbound address is already in use."},
)
MAPPINGS = Table(
    SourceMapping,
    "mappings",
    exceptions={"samples": Column("samples", as_json, lambda rows: tuple(map(tuple, rows)))},
    conflicts={"mappings_headers": "The source already has a column mapping for these headers."},
)
_LEARNED_COLUMNS = ("headers", "columns", "unmapped")
SQL = statements("sources", mapping=MAPPINGS.columns(), known=", ".join(("digest", *_LEARNED_COLUMNS)))


class PostgresSourceStore(TableStore[Source], SourceStore):
    """Sources of the tenant, with their sealed credentials."""

    _sql, _table = SQL, SOURCES
    seal = run()
    sealed = value()

    async def count(self, *, lock: bool = False) -> int:
        if lock:
            await self._session.take_turn("sources")
        return int(await self._value("count", disabled=SourceStatus.DISABLED))


class PostgresMappingStore(TableStore[SourceMapping], MappingStore):
    """Column mappings of the tenant."""

    _sql, _table = SQL, MAPPINGS
    of_headers = every(MAPPINGS.row_of)
    prune = run(proposed=MappingStatus.PROPOSED)

    async def confirmed(self, source: str, most: int) -> Sequence[KnownMapping]:
        return [*await self._confirmed("own", source, most), *await self._confirmed("others", source, most)]

    async def _confirmed(self, scope: str, source: str, most: int) -> Sequence[KnownMapping]:
        statement = rendered(SQL["confirmed"], frozenset({scope}))
        rows = await self._session.all(statement, source=source, most=most, confirmed=MappingStatus.CONFIRMED)
        codecs = [self._table.codecs[name] for name in _LEARNED_COLUMNS]
        return [
            KnownMapping(
                digest, scope == "own", *(codec.load((value,)) for codec, value in zip(codecs, rest, strict=True))
            )
            for digest, *rest in rows
        ]


class PostgresSourceSchedule(CoordinatorStore, SourceSchedule):
    """Due sources of all tenants, for the scheduler."""

    _sql = SQL
    due = gathered()
    next_due = earliest()


class PostgresInboundAddresses(CoordinatorStore):
    """Inbound addresses of all tenants."""

    _sql = SQL

    async def find(self, address: str) -> Recipient | None:
        """Find the source of an address. Raises Unavailable if a node is unreachable and no other node has the address."""
        found = await self._gather("address", address=address)
        if not found and len(await self._pool.holding()) > 1:
            found = await self._gather_all("address", address=address)
        return Recipient(Tenant(found[0][0], found[0][1]), found[0][2], address) if found else None
