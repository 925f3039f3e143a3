"""What an endpoint would have got, asked of the event log: its filters composed from whitelisted pieces."""

from datetime import datetime, timedelta
from typing import Any, Final, LiteralString

from adapters.postgres.sqlfile import statements
from domain.catalogue.search import category_term
from domain.webhooks.model import EVERY_TYPE, Endpoint
from domain.webhooks.subscription import FILED, OF_A_SOURCE, ON_REQUEST, WEBHOOKS_ONLY

SQL = statements("webhooks")
_CATALOGUES: Final[LiteralString] = " AND (e.catalogue = ANY(%(catalogues)s) OR e.type = ANY(%(webhooks_only)s))"
_SOURCES: Final[LiteralString] = " AND (NOT (e.type ^@ ANY(%(of_a_source)s)) OR e.source = ANY(%(sources)s))"
_CATEGORIES: Final[LiteralString] = (
    " AND (NOT (e.type ^@ ANY(%(filed)s)) OR EXISTS (SELECT FROM product_terms t WHERE t.org = %(org)s"
    " AND t.livemode = %(livemode)s AND t.product = e.product AND t.term = ANY(%(terms)s)))"
)
_APART: Final[LiteralString] = ", near AS (SELECT *, false AS close FROM wanted) "
_CLOSE: Final[LiteralString] = (
    ", near AS (SELECT *, coalesce(time - lag(time) OVER same < %(window)s OR lead(time) OVER same - time < %(window)s,"
    " false) AS close FROM wanted WINDOW same AS (PARTITION BY subject ORDER BY position)) "
)


def forecast_query(endpoint: Endpoint, since: datetime) -> tuple[LiteralString, LiteralString, dict[str, Any]]:
    """Two statements and their parameters.

    The first answers (events, the most in a minute, how many stand closer to another of their subject than the window);
    the second these, as (subject, type, time), subject by subject from the oldest on.
    """
    pieces, values = _narrowed(endpoint)
    values |= {"since": since, "window": timedelta(seconds=endpoint.coalesce_seconds)}
    wanted: LiteralString = (
        "WITH wanted AS (" + SQL["wanted"] + pieces + ")" + (_CLOSE if endpoint.coalesce_seconds else _APART)
    )
    return wanted + SQL["totals"], wanted + SQL["bursts"], values


def _narrowed(endpoint: Endpoint) -> tuple[LiteralString, dict[str, Any]]:
    """The conditions that domain.webhooks.subscription states, and their parameters."""
    filters = endpoint.filters
    pieces: LiteralString = " AND e.type <> ALL(%(types)s)"
    values: dict[str, Any] = {"types": sorted(ON_REQUEST)}
    if EVERY_TYPE not in endpoint.event_types:
        pieces, values = " AND e.type = ANY(%(types)s)", {"types": list(endpoint.event_types)}
    if filters.catalogues:
        pieces += _CATALOGUES
        values |= {"catalogues": list(filters.catalogues), "webhooks_only": sorted(WEBHOOKS_ONLY)}
    if filters.sources:
        pieces += _SOURCES
        values |= {"sources": list(filters.sources), "of_a_source": list(OF_A_SOURCE)}
    if filters.categories:
        pieces += _CATEGORIES
        values |= {"terms": [category_term(one) for one in filters.categories], "filed": list(FILED)}
    return pieces, values
