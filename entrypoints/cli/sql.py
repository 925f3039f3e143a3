"""`joinery sql`: the statements of the lists, whole, as they are sent to PostgreSQL."""

import argparse

from adapters.postgres.catalogue_query import FILTERS, list_sql
from adapters.postgres.listing import page_names
from adapters.postgres.sqlfile import rendered
from adapters.postgres.tables import TABLES
from domain.kernel.paging import PageRequest
from entrypoints.cli.errors import CommandError


async def sql(options: argparse.Namespace) -> int:
    """Print one list's statement with these filters, or the names of all lists."""
    tables = {table.name: table for table in TABLES}
    if options.list is None:
        for name in sorted({*FILTERS, *tables}):
            filters = FILTERS[name] if name in FILTERS else tables[name].stored
            print(f"{name:<22} filters: {', '.join(sorted(filters))}")
        return 0
    if options.list not in {*FILTERS, *tables}:
        raise CommandError(f"There is no list {options.list}; `joinery sql` names them all.")
    known = FILTERS.get(options.list) or tables[options.list].stored
    if unknown := set(options.filter) - set(known):
        raise CommandError(f"The list {options.list} has no filter {', '.join(sorted(unknown))}.")
    request = PageRequest(options.limit, "…" if options.after or options.before else None, backwards=options.before)
    if options.list in FILTERS:
        words = ["word0"] if "q" in options.filter else []
        print(list_sql(options.list, [*options.filter, *words], request))
    else:
        print(rendered(tables[options.list].list, page_names(request).union(options.filter), request.limit + 1))
    return 0
