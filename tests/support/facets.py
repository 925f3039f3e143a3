"""Check that stored facets are those of the documents that readers see."""

from typing import Any

from domain.kernel.tenancy import Tenant
from domain.search.ports import FacetStore
from ports.unit_of_work import Tx, UnitOfWork
from tests.support import builders

_TERMS = "SELECT product, term FROM product_terms WHERE org = %(org)s AND livemode = %(livemode)s ORDER BY 1, 2"
_OWN = "SELECT * FROM product_facets WHERE org = %(org)s AND livemode = %(livemode)s ORDER BY product"
_COPIES = "SELECT * FROM published_facets WHERE org = %(org)s AND livemode = %(livemode)s ORDER BY product"


async def check_facets(uow: UnitOfWork, tenant: Tenant) -> None:
    """Check that facets and terms equal those that are computed from all documents; also those of copies."""
    async with uow.begin(tenant, builders.CALL) as tx:
        stored = await _read_rows(tx)
        session: Any = tx[FacetStore]._session  # type: ignore[attr-defined]
        await session.run("DELETE FROM product_facets WHERE org = %(org)s AND livemode = %(livemode)s")
        async with session.as_owner():
            await session.run("DELETE FROM published_facets WHERE org = %(org)s AND livemode = %(livemode)s")
        after: str | None = ""
        while after is not None:
            after = await tx[FacetStore].fill_facets(after, 3)
        assert await _read_rows(tx) == stored


async def _read_rows(tx: Tx) -> dict[str, list[Any]]:
    session: Any = tx[FacetStore]._session  # type: ignore[attr-defined]
    found = {"terms": await session.fetch_rows(_TERMS), "own": await session.fetch_rows(_OWN)}
    async with session.as_owner():
        return {**found, "copies": await session.fetch_rows(_COPIES)}
