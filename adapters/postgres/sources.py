"""Sources, their inbound addresses and their column mappings in PostgreSQL."""

from collections.abc import Sequence
from datetime import datetime

from adapters.postgres.stores import (
    CoordinatorStore,
    execute_count,
    fetch_all,
    fetch_scalar,
    gather_due,
    gather_earliest,
    load_statements,
    render_statement,
)
from adapters.postgres.table import ColumnCodec, Table, TableStore, encode_json
from domain.catalogue.licences import ReadableCatalogue
from domain.ingestion.mapping.learned import ConfirmedMapping
from domain.kernel.tenancy import Tenant
from domain.mail.ports import Recipient
from domain.mappings.model import MappingStatus, SourceMapping
from domain.mappings.ports import MappingStore
from domain.sources.model import CORRECTIONS_CONNECTOR, Follower, Source, SourceContents, SourceStatus
from domain.sources.ports import SourceSchedule, SourceStore

SOURCES = Table(
    Source,
    "sources",
    expression_by_field={"has_credentials": "credentials IS NOT NULL"},
    conflicts={"sources_inbound_address": "The inbound address is already in use."},
)
MAPPINGS = Table(
    SourceMapping,
    "mappings",
    special_codecs={
        "samples": ColumnCodec("samples", encode_json, lambda rows: tuple(map(tuple, rows))),
        "question_positions": ColumnCodec("asked", list, tuple),
    },
    conflicts={"mappings_headers": "The source already has a column mapping for these headers."},
)
_LEARNED_COLUMNS = ("headers", "columns", "unmapped")
SQL = load_statements(
    "sources", mapping=MAPPINGS.build_column_list(), learned_columns=", ".join(("digest", *_LEARNED_COLUMNS))
)


class PostgresSourceStore(TableStore[Source], SourceStore):
    """Sources of the tenant, with their encrypted credentials."""

    _sql, _table = SQL, SOURCES
    save_encrypted_credentials = execute_count()
    load_encrypted_credentials = fetch_scalar()
    summarise_contents = fetch_all(SourceContents)
    sample_documents = fetch_all(lambda source, body: (source, bytes(body)))

    async def count(self, *, lock: bool = False) -> int:
        if lock:
            await self._session.acquire_lock("sources")
        return int(await self._fetch_scalar("count", disabled=SourceStatus.DISABLED, corrections=CORRECTIONS_CONNECTOR))


class PostgresMappingStore(TableStore[SourceMapping], MappingStore):
    """Column mappings of the tenant."""

    _sql, _table = SQL, MAPPINGS
    lock_by_digest = fetch_all(MAPPINGS.build_from_row)
    prune = execute_count(proposed=MappingStatus.PROPOSED)

    async def list_confirmed(self, source: str, max_mappings: int) -> Sequence[ConfirmedMapping]:
        return [
            *await self._fetch_confirmed("own", source, max_mappings),
            *await self._fetch_confirmed("others", source, max_mappings),
        ]

    async def _fetch_confirmed(self, scope: str, source: str, max_mappings: int) -> Sequence[ConfirmedMapping]:
        statement = render_statement(SQL["list_confirmed"], frozenset({scope}))
        rows = await self._session.fetch_rows(
            statement, source=source, max_mappings=max_mappings, confirmed=MappingStatus.CONFIRMED
        )
        codecs = [self._table.codecs[name] for name in _LEARNED_COLUMNS]
        return [
            ConfirmedMapping(
                digest, scope == "own", *(codec.load((value,)) for codec, value in zip(codecs, rest, strict=True))
            )
            for digest, *rest in rows
        ]


class PostgresSourceSchedule(CoordinatorStore, SourceSchedule):
    """Due sources of all tenants, for the scheduler."""

    _sql = SQL
    list_due = gather_due()
    find_next_due = gather_earliest()

    async def list_followers(self, now: datetime) -> Sequence[Follower]:
        rows = await self._gather("list_followers", now=now)
        return [
            Follower(Tenant(org, livemode), source, ReadableCatalogue(*readable), state)
            for org, livemode, source, *readable, state in rows
        ]


class PostgresInboundAddresses(CoordinatorStore):
    """Inbound addresses of all tenants."""

    _sql = SQL

    async def find_recipient(self, address: str) -> Recipient | None:
        """Find the source with this inbound address. Raises Unavailable if it was not found and a node is unreachable."""
        found = await self._gather("find_recipient", address=address)
        if not found and len(await self._pool.list_tenant_nodes()) > 1:
            found = await self._gather_all("find_recipient", address=address)
        return Recipient(Tenant(found[0][0], found[0][1]), found[0][2], address) if found else None
