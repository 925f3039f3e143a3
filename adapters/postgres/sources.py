"""Sources, the addresses that mail reaches them by, and their mappings, in PostgreSQL."""

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
    conflicts={"sources_inbound_address": "The inbound address is taken."},
)
MAPPINGS = Table(
    SourceMapping,
    "mappings",
    exceptions={"samples": Column("samples", as_json, lambda rows: tuple(map(tuple, rows)))},
    conflicts={"mappings_headers": "The source has a mapping of these headers already."},
)
_KNOWN = ("headers", "columns", "unmapped")
SQL = statements("sources", mapping=MAPPINGS.columns(), known=", ".join(("digest", *_KNOWN)))


class PostgresSourceStore(TableStore[Source], SourceStore):
    """The tenant's sources, and their sealed credentials beside them."""

    _sql, _table = SQL, SOURCES
    seal = run()
    sealed = value()

    async def count(self, *, lock: bool = False) -> int:
        if lock:
            await self._session.take_turn("sources")
        return int(await self._value("count", disabled=SourceStatus.DISABLED))


class PostgresMappingStore(TableStore[SourceMapping], MappingStore):
    """The tenant's mappings."""

    _sql, _table = SQL, MAPPINGS
    of_headers = every(MAPPINGS.row_of)
    prune = run(proposed=MappingStatus.PROPOSED)

    async def confirmed(self, source: str, most: int) -> Sequence[KnownMapping]:
        return [*await self._confirmed("own", source, most), *await self._confirmed("others", source, most)]

    async def _confirmed(self, whose: str, source: str, most: int) -> Sequence[KnownMapping]:
        statement = rendered(SQL["confirmed"], frozenset({whose}))
        rows = await self._session.all(statement, source=source, most=most, confirmed=MappingStatus.CONFIRMED)
        codecs = [self._table.codecs[name] for name in _KNOWN]
        return [
            KnownMapping(
                digest, whose == "own", *(codec.load((value,)) for codec, value in zip(codecs, rest, strict=True))
            )
            for digest, *rest in rows
        ]


class PostgresSourceSchedule(CoordinatorStore, SourceSchedule):
    """Across tenants, for the scheduler."""

    _sql = SQL
    due = gathered()
    next_due = earliest()


class PostgresInboundAddresses(CoordinatorStore):
    """Across tenants: every node is queried for the sources that it holds."""

    _sql = SQL

    async def find(self, address: str) -> Recipient | None:
        """Find an address; one that no node within reach knows is looked up on all, so that it is not unknown while one is away."""
        found = await self._gather("address", address=address)
        if not found and len(await self._pool.holding()) > 1:
            found = await self._gather_all("address", address=address)
        return Recipient(Tenant(found[0][0], found[0][1]), found[0][2], address) if found else None
