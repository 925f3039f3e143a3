"""`joinery sql`: the statements of the lists, whole, as they are sent to PostgreSQL."""

from typing import Annotated

from cyclopts import Parameter

from adapters.postgres.catalogue_query import FILTERS, list_sql
from adapters.postgres.listing import page_names
from adapters.postgres.sqlfile import rendered
from adapters.postgres.tables import TABLES
from domain.kernel.paging import PageRequest
from entrypoints.errors import CommandError


def sql(
    name: str | None = None,
    /,
    *,
    filters: Annotated[tuple[str, ...], Parameter("--filter")] = (),
    limit: int = 20,
    after: bool = False,
    before: bool = False,
) -> int:
    """Print the statement of a list as it is sent to PostgreSQL, or the names of all lists.

    Args:
        name: products, offers or a table; without one, all names
        filters: with this filter; again for more
        limit: items on a page
        after: the page after a cursor
        before: the page before a cursor
    """
    tables = {table.name: table for table in TABLES}
    known = {name: table.stored for name, table in tables.items()} | FILTERS
    if name is None:
        for one in sorted(known):
            print(f"{one:<22} filters: {', '.join(sorted(known[one]))}")
        return 0
    if name not in known:
        raise CommandError(f"There is no list {name}; `joinery sql` names them all.")
    if unknown := set(filters) - set(known[name]):
        raise CommandError(f"The list {name} has no filter {', '.join(sorted(unknown))}.")
    request = PageRequest(limit, "…" if after or before else None, backwards=before)
    if name in FILTERS:
        words = ["word0"] if "q" in filters else []
        print(list_sql(name, [*filters, *words], request))
    else:
        print(rendered(tables[name].list, page_names(request).union(filters), request.limit + 1))
    return 0
