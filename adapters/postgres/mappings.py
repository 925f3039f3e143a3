"""Mappings in PostgreSQL."""

from collections.abc import Sequence
from typing import Final

from adapters.postgres.columns import Column, as_json
from adapters.postgres.sqlfile import rendered, statements
from adapters.postgres.table import Table, TableStore
from domain.ingestion.mapping.learned import KnownMapping
from domain.mappings.model import MappingStatus, SourceMapping

MAPPINGS: Final = Table(
    SourceMapping,
    "mappings",
    exceptions={"samples": Column("samples", as_json, lambda rows: tuple(map(tuple, rows)))},
    conflicts={"mappings_headers": "The source has a mapping of these headers already."},
)
_KNOWN: Final = ("headers", "columns", "unmapped")
SQL = statements("mappings", mapping=MAPPINGS.columns(), known=", ".join(("digest", *_KNOWN)))


class PostgresMappingStore(TableStore[SourceMapping]):
    """The tenant's mappings."""

    async def of_headers(self, source: str, digests: Sequence[str]) -> Sequence[SourceMapping]:
        rows = await self.session.all(SQL["of_headers"], source=source, digests=list(digests))
        return [self.table.row_of(row) for row in rows]

    async def confirmed(self, source: str, most: int) -> Sequence[KnownMapping]:
        return [*await self._confirmed("own", source, most), *await self._confirmed("others", source, most)]

    async def _confirmed(self, whose: str, source: str, most: int) -> Sequence[KnownMapping]:
        statement = rendered(SQL["confirmed"], frozenset({whose}))
        rows = await self.session.all(statement, source=source, most=most, confirmed=MappingStatus.CONFIRMED)
        codecs = [self.table.codecs[name] for name in _KNOWN]
        return [
            KnownMapping(
                digest, whose == "own", *(codec.load((value,)) for codec, value in zip(codecs, rest, strict=True))
            )
            for digest, *rest in rows
        ]

    async def prune(self, source: str, keep: int) -> None:
        await self.session.run(SQL["prune"], source=source, keep=keep, proposed=MappingStatus.PROPOSED)
