"""The store of one kind of resource: what a plain resource needs, and what special ones add their own questions to."""

from collections.abc import Sequence
from typing import Protocol, TypeVar

from domain.kernel.paging import Filter, Page, PageRequest

R = TypeVar("R")


class Store(Protocol[R]):
    """In a tenant's transaction: its rows of the domain's dataclass R, by id. Lists are newest first."""

    async def get(self, id: str, *, lock: bool = False) -> R | None:
        """One row; `lock` keeps others from changing it until the transaction ends."""
        ...

    async def add(self, row: R) -> None:
        """Keep a new row. Raises Conflict when what must be unique is taken."""
        ...

    async def add_all(self, rows: Sequence[R]) -> None:
        """Keep new rows, many at a time, as `add` does."""
        ...

    async def save(self, row: R, *, expected_version: int | None = None) -> None:
        """Keep the new state. Raises PreconditionFailed when another version than expected is stored, NotFound for no row."""
        ...

    async def remove(self, id: str) -> bool:
        """Forget the row; False when there was none."""
        ...

    async def page(self, request: PageRequest, filter: Filter | None = None) -> Page[R]:
        """A page of the rows that the filter lets through."""
        ...
