"""Methods of stores that are declared: their statement, and its parameters as the port names them."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Protocol

import pytest

from adapters.postgres.stores import NamedStatements, done, every, first, paged, run, value
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

    async def mend(self, chair: Chair, legs: int) -> bool: ...

    async def rename(self, chair: Chair) -> None: ...


class Told:
    """A session that tells what it was given."""

    def __init__(self, *rows: tuple[Any, ...]) -> None:
        self.rows, self.told = list(rows), []

    async def run(self, sql: Any, **values: Any) -> int:
        self.told.append((sql, values))
        return len(self.rows)

    async def all(self, sql: Any, **values: Any) -> list[tuple[Any, ...]]:
        self.told.append((sql, values))
        return self.rows


def _renamed(chair: Chair) -> dict[str, Any]:
    return {"id": chair.id.upper()}


SQL = {name: f"-- {name}" for name in ("chair", "several", "add", "drop_chair", "legs", "page", "mend", "rename")}


class ToldChairs(NamedStatements, Chairs):
    _sql = SQL

    get = first(Chair, "chair")
    several = every(Chair, most=9)
    add = run()
    remove = done("drop_chair")
    legs = value()
    page = paged(Chair)
    mend = done()
    rename = run(values=_renamed)

    def __init__(self, *rows: tuple[Any, ...]) -> None:
        self._session = Told(*rows)

    @property
    def told(self) -> Any:
        return self._session.told[-1]


async def test_the_first_row_or_none() -> None:
    assert await ToldChairs(("a", 4), ("b", 3)).get("a") == Chair("a", 4)
    empty = ToldChairs()
    assert await empty.get(id="a") is None
    assert empty.told == ("-- chair", {"id": "a"})


async def test_collections_are_lists_and_defaults_are_the_ports() -> None:
    chairs = ToldChairs(("a", 4))
    assert await chairs.several({"a": 1}.keys()) == [Chair("a", 4)]
    assert chairs.told == ("-- several", {"ids": ["a"], "legs": 4, "most": 9})
    await chairs.several(("a",), legs=3)
    assert chairs.told[1] == {"ids": ["a"], "legs": 3, "most": 9}


async def test_a_dataclass_is_its_fields_unless_something_else_makes_the_parameters() -> None:
    chairs = ToldChairs()
    await chairs.add(Chair("a", 4))
    assert chairs.told == ("-- add", {"id": "a", "legs": 4})
    await chairs.mend(Chair("a", 3), 4)
    assert chairs.told == ("-- mend", {"id": "a", "legs": 4}), "what is given by name counts"
    await chairs.rename(Chair("a", 4))
    assert chairs.told == ("-- rename", {"id": "A"})


async def test_whether_a_row_was_touched() -> None:
    assert await ToldChairs(()).remove("a") is True
    gone = ToldChairs()
    assert await gone.remove("a", now="noon") is False
    assert gone.told == ("-- drop_chair", {"id": "a", "now": "noon"})


async def test_a_value_and_a_page() -> None:
    assert await ToldChairs((4,)).legs("a") == 4
    chairs = ToldChairs(("b", 4), ("a", 4))
    page = await chairs.page(PageRequest(limit=1), 4)
    assert (page.items, page.has_more, page.next_key) == ((Chair("b", 4),), True, "b")
    assert chairs.told[1] == {"legs": 4, "page_key": None}
