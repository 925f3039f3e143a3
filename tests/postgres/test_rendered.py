"""Statements with optional lines, and that every list's statement is one that PostgreSQL takes, whatever is kept of it."""

from itertools import combinations

import psycopg
import pytest

from adapters.postgres.catalogue_query import FILTERS, list_sql
from adapters.postgres.sqlfile import rendered
from domain.kernel.paging import PageRequest
from tests.support.postgres import database

PAGES = (PageRequest(2), PageRequest(2, "a"), PageRequest(2, "a", True), PageRequest(2, None, True))
PARAMS = {
    "org": "org_1", "livemode": True, "page_key": "a", "updated_since": "2026-11-20", "code": "x",
    **dict.fromkeys(("status", "brand", "category", "availability", "source", "variant", "product", "word0"), "x"),
}  # fmt: skip


def test_optional_lines() -> None:
    statement = "-- a remark\nSELECT 1\n    AND a --? a\n    AND b --? a b\nLIMIT {limit}"
    assert rendered(statement, frozenset(), 3) == "SELECT 1\nLIMIT 3"
    assert rendered(statement, frozenset({"a"}), 3) == "SELECT 1\n    AND a\nLIMIT 3"
    assert rendered(statement, frozenset({"a", "b"}), 3) == "SELECT 1\n    AND a\n    AND b\nLIMIT 3"


@pytest.mark.asyncio
@pytest.mark.parametrize("name", FILTERS)
async def test_every_combination_is_a_statement(name: str) -> None:
    async with await psycopg.AsyncConnection.connect(await database()) as connection:
        for number in range(4):
            for filters in combinations(FILTERS[name], number):
                for page_request in PAGES:
                    words = ("word0",) if "q" in filters else ()
                    sql = list_sql(name, (*filters, *words), page_request)
                    assert "--?" not in sql and "{" not in sql
                    await connection.execute(f"EXPLAIN {sql}".encode(), PARAMS)
