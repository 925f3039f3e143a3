"""Stores with declared methods: statements and their named parameters."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Protocol

import pytest

from adapters.postgres.stores import (
    NamedStatementStore,
    execute_count,
    execute_one,
    fetch_all,
    fetch_first,
    fetch_page,
    fetch_scalar,
)
from domain.kernel.paging import Page, PageRequest

pytestmark = pytest.mark.asyncio


@dataclass(frozen=True)
class Chair:
    id: str
    legs: int


class Chairs(Protocol):
    async def get(self, id: str) -> Chair | None: ...

    async def several(self, ids: Collection[str], legs: int = 4) -> list[Chair]: ...

    async def add(self, chair: Chair) -> None: ...

    async def remove(self, id: str, *, now: str | None = None) -> bool: ...

    async def legs(self, id: str) -> int | None: ...

    async def page(self, page_request: PageRequest, legs: int) -> Page[Chair]: ...

    async def repair(self, chair: Chair, legs: int) -> bool: ...

    async def rename(self, chair: Chair) -> None: ...


class RecordingSession:
    """Session that records statements and parameters."""

    def __init__(self, *rows: tuple[Any, ...]) -> None:
        self.rows, self.statements = list(rows), []

    async def run(self, sql: Any, **values: Any) -> int:
        self.statements.append((sql, values))
        return len(self.rows)

    async def fetch_rows(self, sql: Any, **values: Any) -> list[tuple[Any, ...]]:
        self.statements.append((sql, values))
        return self.rows


def _build_parameters(chair: Chair) -> dict[str, Any]:
    return {"id": chair.id.upper()}


SQL = {name: f"-- {name}" for name in ("chair", "several", "add", "drop_chair", "legs", "page", "repair", "rename")}


class ChairStore(NamedStatementStore, Chairs):
    _sql = SQL

    get = fetch_first(Chair, "chair")
    several = fetch_all(Chair, most=9)
    add = execute_count()
    remove = execute_one("drop_chair")
    legs = fetch_scalar()
    page = fetch_page(Chair)
    repair = execute_one()
    rename = execute_count(values=_build_parameters)

    def __init__(self, *rows: tuple[Any, ...]) -> None:
        self._session = RecordingSession(*rows)

    @property
    def last(self) -> Any:
        return self._session.statements[-1]


async def test_the_first_row_or_none() -> None:
    assert await ChairStore(("a", 4), ("b", 3)).get("a") == Chair("a", 4)
    empty = ChairStore()
    assert await empty.get(id="a") is None
    assert empty.last == ("-- chair", {"id": "a"})


async def test_collections_are_lists_and_defaults_are_the_ports() -> None:
    chairs = ChairStore(("a", 4))
    assert await chairs.several({"a": 1}.keys()) == [Chair("a", 4)]
    assert chairs.last == ("-- several", {"ids": ["a"], "legs": 4, "most": 9})
    await chairs.several(("a",), legs=3)
    assert chairs.last[1] == {"ids": ["a"], "legs": 3, "most": 9}


async def test_parameters_are_the_fields_of_a_dataclass_by_default() -> None:
    chairs = ChairStore()
    await chairs.add(Chair("a", 4))
    assert chairs.last == ("-- add", {"id": "a", "legs": 4})
    await chairs.repair(Chair("a", 3), 4)
    assert chairs.last == ("-- repair", {"id": "a", "legs": 4}), "named arguments are used"
    await chairs.rename(Chair("a", 4))
    assert chairs.last == ("-- rename", {"id": "A"})


async def test_the_result_states_whether_a_row_was_changed() -> None:
    assert await ChairStore(()).remove("a") is True
    gone = ChairStore()
    assert await gone.remove("a", now="noon") is False
    assert gone.last == ("-- drop_chair", {"id": "a", "now": "noon"})


async def test_values_and_pages_are_read() -> None:
    assert await ChairStore((4,)).legs("a") == 4
    chairs = ChairStore(("b", 4), ("a", 4))
    page = await chairs.page(PageRequest(limit=1), 4)
    assert (page.items, page.has_more, page.next_key) == ((Chair("b", 4),), True, "b")
    assert chairs.last[1] == {"legs": 4, "page_key": None}
