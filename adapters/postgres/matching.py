"""Pairs, merges and the judge's settings in PostgreSQL."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Final

from adapters.postgres.columns import Column
from adapters.postgres.listing import page_names, page_of, page_params
from adapters.postgres.session import texts
from adapters.postgres.sqlfile import rendered, statements
from adapters.postgres.table import Table, TableStore
from domain.kernel.paging import Page, PageRequest
from domain.matching.model import JudgeSettings, MatchPair, Merge, MergeFilter, PairFilter

PAIRS: Final = Table(
    MatchPair,
    "match_pairs",
    exceptions={"left": Column("left_variant"), "right": Column("right_variant")},
    conflicts={"match_pairs_key": "There is a pair of these two already."},
)
MERGES: Final = Table(Merge, "merges", conflicts={"merges_applied": "It is merged already."})
JUDGE_SETTINGS: Final = Table(
    JudgeSettings,
    "judge_settings",
    conflicts={
        "judge_settings_pkey": "Somebody else set the judge at the same moment; read its settings and try again."
    },
)
SQL = statements("matching", pair=PAIRS.columns(), merge=MERGES.columns())
_TYPES: Final = (
    "text", "text", "text", "text", "text", "text", "float8", "float8", "jsonb", "text[]", "timestamptz",
    "timestamptz", "jsonb", "text", "bool",
)  # fmt: skip


class PostgresPairStore(TableStore[MatchPair]):
    """The tenant's pairs."""

    async def matching(self, filter: PairFilter, page_request: PageRequest) -> Page[MatchPair]:
        given = {name: value for name, value in asdict(filter).items() if value is not None}
        query = rendered(SQL["pairs"], page_names(page_request).union(given), page_request.limit + 1)
        rows = await self.session.all(query, **given, **page_params(page_request))
        return page_of([self.table.row_of(row) for row in rows], page_request, _id)

    async def add_all(self, rows: Sequence[MatchPair]) -> None:
        """By COPY: a batch of matching has hundreds, each with a page of evidence."""
        if not rows:
            return
        await self.session.stage(SQL["staging"])
        await self.session.run("DELETE FROM new_match_pairs")
        await self.session.copy(SQL["copy_pairs"], ([*self.table.values(row).values()] for row in rows), _TYPES)
        await self.session.run(SQL["add_pairs"])

    async def of_variants(self, variants: Sequence[str], *, lock: bool = False) -> Sequence[MatchPair]:
        statement = SQL["pairs_of_locked" if lock else "pairs_of"]
        return [self.table.row_of(row) for row in await self.session.all(statement, ids=texts(variants))]

    async def open_of(self, variants: Sequence[str]) -> Sequence[MatchPair]:
        return [self.table.row_of(row) for row in await self.session.all(SQL["open_of"], ids=texts(variants))]

    async def unjudged(self, limit: int) -> Sequence[MatchPair]:
        return [self.table.row_of(row) for row in await self.session.all(SQL["unjudged"], most=limit)]


class PostgresMergeStore(TableStore[Merge]):
    """The tenant's merges."""

    async def matching(self, filter: MergeFilter, page_request: PageRequest) -> Page[Merge]:
        given = {name: value for name, value in asdict(filter).items() if value is not None}
        query = rendered(SQL["merges"], page_names(page_request).union(given), page_request.limit + 1)
        rows = await self.session.all(query, **given, **page_params(page_request))
        return page_of([self.table.row_of(row) for row in rows], page_request, _id)

    async def applied(self, ids: Sequence[str]) -> Sequence[Merge]:
        return [self.table.row_of(row) for row in await self.session.all(SQL["applied"], ids=texts(ids))]


def _id(row: Any) -> str:
    key: str = row.id
    return key
