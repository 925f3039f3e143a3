"""Statements with optional lines, in every combination, as PostgreSQL accepts them."""

from dataclasses import make_dataclass
from itertools import combinations
from typing import Any

import psycopg
import pytest

from adapters.postgres.catalogue_query import FILTERS, build_list_statement
from adapters.postgres.stores import _select_lines, render_statement
from domain.kernel.paging import Filter, PageRequest
from domain.sources.ports import SourceStore
from tests.support import builders
from tests.support.facet_statements import list_facet_statements
from tests.support.postgres import database, postgres_backend

PAGES = (PageRequest(2), PageRequest(2, "a"), PageRequest(2, "a", True), PageRequest(2, None, True))
PARAMS = {
    "org": "org_1", "livemode": True, "page_key": "a", "updated_since": "2026-11-20", "code": "x",
    "max_document_bytes": 1000, "max_data_bytes": 1000,
    **dict.fromkeys(("id", "offer", "external_id", "gtin"), "[]"), "sku": "{}", "mpn": "{}",
    **dict.fromkeys(("status", "brand", "category", "availability", "source", "catalogue", "product", "word0"), "x"), "variant": "[]",
}  # fmt: skip


def test_optional_lines_are_rendered() -> None:
    statement = "-- a remark\nSELECT 1\n    AND a --? a\n    AND b --? a b\nLIMIT {limit}"
    assert render_statement(statement, frozenset(), 3) == "SELECT 1\nLIMIT 3"
    assert render_statement(statement, frozenset({"a"}), 3) == "SELECT 1\n    AND a\nLIMIT 3"
    assert render_statement(statement, frozenset({"a", "b"}), 3) == "SELECT 1\n    AND a\n    AND b\nLIMIT 3"


def test_clients_cannot_fill_the_memory_with_choices() -> None:
    statement = "SELECT 1 -- --? a\nLIMIT {limit}"
    for limit in range(1000):
        render_statement(statement, frozenset({"a"}), limit)
    assert _select_lines.cache_info().maxsize is not None
    assert _select_lines.cache_info().currsize <= _select_lines.cache_info().maxsize


@pytest.mark.asyncio
async def test_a_filter_without_a_column_is_refused() -> None:
    kind: Any = make_dataclass("Named", [("colour", str), ("has_credentials", Any, None)], bases=(Filter,), frozen=True)
    async with postgres_backend() as backend:
        tenant = await backend.tenant()
        source = builders.source()
        async with backend.uow.begin(tenant, builders.CALL) as tx:
            await tx[SourceStore].add(source)
            await tx[SourceStore].save_encrypted_credentials(source.id, b"sealed")
            assert [row.id for row in (await tx[SourceStore].page(PageRequest(), kind(None, True))).items] == [
                source.id
            ]
            assert (await tx[SourceStore].page(PageRequest(), kind(None, False))).items == ()
            with pytest.raises(ValueError, match="colour"):
                await tx[SourceStore].page(PageRequest(), kind("red"))


@pytest.mark.asyncio
@pytest.mark.parametrize("name", FILTERS)
async def test_every_combination_is_a_statement(name: str) -> None:
    async with await psycopg.AsyncConnection.connect(await database()) as connection:
        for number in range(4):
            for filters in combinations(FILTERS[name], number):
                for page_request in PAGES:
                    words = ("word0",) if "q" in filters else ()
                    sql = build_list_statement(name, (*filters, *words), page_request)
                    assert "--?" not in sql and "{" not in sql
                    await connection.execute(f"EXPLAIN {sql}".encode(), PARAMS)


@pytest.mark.asyncio
async def test_lists_by_facets_are_statements() -> None:
    async with await psycopg.AsyncConnection.connect(await database()) as connection:
        for is_own in (False, True):
            for name, statement, values in list_facet_statements(is_own=is_own):
                assert "--?" not in statement and "{" not in statement, name
                await connection.execute(f"EXPLAIN {statement}".encode(), values | {"org": "org_1", "livemode": True})
