"""Response times of the first and the ten-thousandth page of each list and filter (`make bench-read`)."""

import statistics
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

import aiohttp

from adapters.api_json.cursors import CursorSigner, build_cursor_context
from adapters.postgres.nodes.connections import Connection
from adapters.postgres.nodes.pool import Pool
from benchmarks.generated_rows import CATEGORIES, GTIN, RARE_NUMBER, build_row_id, create_past_partitions, insert_rows
from benchmarks.ingest import print_figure
from benchmarks.stack import AUDIT_CONTEXT, Stack
from domain.access.usecases import AccessService, KeyRequest
from domain.kernel.tenancy import Tenant
from domain.secrets.keys import ActiveKeys
from ports.unit_of_work import UnitOfWork

SMALL_ROWS, SMALL_ORGANISATIONS = 1_000, 50
"""Rows of each small organisation, and number of small organisations; half are created before the large one."""
PAGE_SIZE, DEEP_PAGE = 20, 10_000
_REPETITIONS = 25
Filters = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class ListQuery:
    """List of the API that is measured.

    Attributes:
        operation: Operation that returns the list.
        path: Path of the list.
        table: Table that contains the rows, optionally with a description of the rows.
        filters: Query parameters of the measured filters, by label.
        ids: IDs in the path, by parameter.
        key: Column that orders the list.
    """

    operation: str
    path: str
    table: str
    filters: Filters = field(default_factory=dict)
    ids: Mapping[str, str] = field(default_factory=dict)
    key: str = "id"


@dataclass(frozen=True)
class LargeOrganisation:
    """Organisation with many rows.

    Attributes:
        tenant: Live mode of the organisation.
        secret: API key of the organisation.
        rows: Number of offers, events, deliveries, request logs and runs.
        today: Time when the rows were created.
    """

    tenant: Tenant
    secret: str
    rows: int
    today: datetime


async def prepare(stack: Stack, rows: int) -> LargeOrganisation:
    """Create an organisation with `rows` rows of each kind among fifty small organisations."""
    today = datetime.now(UTC)
    large = await stack.create_organisation("Large")
    small_organisations = [await stack.create_organisation(f"Small {number}") for number in range(SMALL_ORGANISATIONS)]
    async with stack.dependencies[Pool].connect_as_owner() as pooled:
        await pooled.driver_connection.execute("SET synchronous_commit = off")
        await create_past_partitions(pooled.driver_connection, today.date())
        for number, organisation in enumerate(
            [*small_organisations[: SMALL_ORGANISATIONS // 2], large, *small_organisations[SMALL_ORGANISATIONS // 2 :]]
        ):
            started = time.perf_counter()
            count = rows if organisation is large else SMALL_ROWS
            await insert_rows(
                pooled.driver_connection, organisation.id, organisation.get_catalogue_id(True), count, today.date()
            )
            if organisation is large:
                print_figure(
                    f"{rows:,} rows of one organisation",
                    f"{time.perf_counter() - started:.1f} s, after {number} small organisations",
                )
        await pooled.driver_connection.execute("VACUUM ANALYZE")
    tenant = Tenant(large.id, True)
    async with stack.dependencies[UnitOfWork].begin(tenant, AUDIT_CONTEXT) as tx:
        _, secret = await stack.dependencies[AccessService].create_key(tx, KeyRequest("bench"))
    return LargeOrganisation(tenant, secret, rows, today)


def _build_code_filters(source: str) -> dict[str, dict[str, Any]]:
    """Return filters by codes: one code, a hundred codes, an unknown code, and codes that many variants share."""
    return {
        "sku": {"sku": ["SKU-77"]},
        "sku, a hundred": {"sku": [f"SKU-{number * 997}" for number in range(100)]},
        "sku, none": {"sku": ["none"]},
        "mpn of every third variant": {"mpn": ["MANY"]},
        "mpn, a frequent one and 99 others": {"mpn": ["MANY", *(f"M-{number}" for number in range(99))]},
        "gtin": {"gtin": ["78"]},
        "gtin of every fourth variant": {"gtin": [GTIN]},
        "external_id, a hundred": {"external_id": [f"{kind}{number * 997}" for number in range(50) for kind in "PV"]},
        "sku and a frequent gtin": {"sku": [f"SKU-{number * 997}" for number in range(100)], "gtin": [GTIN]},
        "mpn and gtin, both frequent": {"mpn": ["MANY"], "gtin": [GTIN]},
        "gtin and source, both frequent": {"gtin": [GTIN], "source": source},
    }


def _build_facet_filters() -> dict[str, dict[str, Any]]:
    """Return filters that are read by facets, orders, and totals."""
    price = {"currency": "usd", "min_price": 50000, "max_price": 50400}
    several = {"category": CATEGORIES[0], "colour": ["grey", "brown"], "availability": ["in_stock", "low_stock"]}
    return {
        "brands": {"brands": ["brand7", "brand8"]},
        "colour, rare": {"colour": ["red"]},
        "price": price,
        "completeness": {"completeness": ["low"]},
        "several facets": several | price,
        "several facets, rare": several | price | {"brands": ["brand7"], "finish": ["walnut"]},
        "by title": {"sort": "title"},
        "by update": {"sort": "updated"},
        "by price": {"sort": "price_high"},
        "several facets, by price": several | {"sort": "price_low"},
        "several facets, by title": several | price | {"sort": "title"},
        "several facets, by update": several | {"sort": "updated"},
        "q=walnut sofa, by price": {"q": "walnut sofa", "sort": "price_low"},
        "q=halden alone sofa, by title": {"q": "halden alone sofa", "sort": "title"},
        "q=sofas": {"q": "sofas"},
        "q=wlanut sofa": {"q": "wlanut sofa"},
        "total": {"include": ["total_count"]},
        "several facets, total": several | price | {"include": ["total_count"]},
        "several facets, rare, total": several
        | price
        | {"brands": ["brand7"], "finish": ["walnut"], "include": ["total_count"]},
    }


def build_queries(large: LargeOrganisation) -> Iterator[ListQuery]:
    """Yield each list with its filters, both by frequent values and by values that one row or no row has."""
    day, now = large.today.date(), large.today.replace(microsecond=0)
    sources = {"frequent": build_row_id("src", 0, day), "rare": build_row_id("src", RARE_NUMBER, day)}
    endpoint = build_row_id("whe", 0, day)
    date_filters = {
        "updated_since, all rows": {"updated_since": now - timedelta(days=100)},
        "updated_since, one row": {"updated_since": now - timedelta(hours=6)},
        "updated_since, the oldest tenth": {"updated_since": now - timedelta(hours=36)},
    }
    source_filters = {f"source, {name}": {"source": id} for name, id in sources.items()}
    availability_filters = {
        "availability, frequent": {"availability": "in_stock"},
        "availability, rare": {"availability": "preorder"},
        "availability, none": {"availability": "discontinued"},
    }
    code_filters = _build_code_filters(sources["frequent"])
    variants = [build_row_id("var", number * 997, day, large.rows // 2) for number in range(100)]
    offers = [build_row_id("ofr", number * 997, day, large.rows) for number in range(100)]
    yield ListQuery(
        "catalogue.list_offers",
        "/v1/offers",
        "offers",
        {
            **source_filters,
            **availability_filters,
            **date_filters,
            "variant": {"variant": build_row_id("var", 9, day, large.rows // 2)},
            "product": {"product": build_row_id("prod", 9, day, large.rows // 5)},
            **code_filters,
            "id, a hundred": {"id": offers},
            "source and availability": {"source": sources["frequent"], "availability": "preorder"},
        },
    )
    yield ListQuery(
        "catalogue.list_products",
        "/v1/products",
        "products",
        {
            **source_filters,
            **availability_filters,
            **date_filters,
            "status, frequent": {"status": "active"},
            "status, rare": {"status": "discontinued"},
            "brand": {"brand": "brand7"},
            "brand, rare": {"brand": "alone"},
            "category": {"category": CATEGORIES[0]},
            "category, rare": {"category": CATEGORIES[1]},
            "q=sofa": {"q": "sofa"},
            "q=walnut sofa": {"q": "walnut sofa"},
            "q=halden alone sofa": {"q": "halden alone sofa"},
            "q, a SKU": {"q": "sku77"},
            **code_filters,
            "id, a hundred": {
                "id": [build_row_id("prod", number * 997, day, large.rows // 5) for number in range(100)]
            },
            "variant, a hundred": {"variant": variants},
            "offer, a hundred": {"offer": offers},
            "category and brand": {"category": CATEGORIES[0], "brand": "brand7"},
            **_build_facet_filters(),
        },
    )
    for name, id in sources.items():
        yield ListQuery("runs.list", f"/v1/sources/{id}/runs", f"runs of a {name} source", ids={"id": id})
    yield ListQuery(
        "webhooks.list_deliveries",
        f"/v1/webhook-endpoints/{endpoint}/deliveries",
        "webhook_deliveries",
        {
            "status, frequent": {"status": "succeeded"},
            "status, rare": {"status": "failed"},
            "status, none": {"status": "pending"},
            "type, frequent": {"type": "offer.changed"},
            "type, rare": {"type": "source.blocked"},
            "type, none": {"type": "product.merged"},
            "event": {"event": build_row_id("evt", 7, day, large.rows)},
            "status and type": {"status": "failed", "type": "offer.changed"},
        },
        ids={"id": endpoint},
    )
    yield ListQuery("request_logs.list", "/v1/request-logs", "request_logs", key="position")
    yield ListQuery("sources.list", "/v1/sources", "sources")
    yield ListQuery("webhooks.list", "/v1/webhook-endpoints", "webhook_endpoints")


class PageTimer:
    """Client that requests pages over one persistent connection and prints their response times."""

    def __init__(self, base: str, large: LargeOrganisation, cursors: CursorSigner, connection: Connection) -> None:
        self._base, self._large, self._cursors, self._connection = base, large, cursors, connection
        self._headers = {"Authorization": f"Bearer {large.secret}"}

    async def measure_all(self) -> None:
        """Print the response times of all lists and of the event log."""
        async with aiohttp.ClientSession(headers=self._headers) as session:
            for list_query in build_queries(self._large):
                key = await self._find_deep_key(list_query)
                for name, query in {"plain": {}, **list_query.filters}.items():
                    await self._print_times(session, list_query, name, query, key)
            await self._measure_events(session)

    async def _find_deep_key(self, list_query: ListQuery) -> str | None:
        """Return the key before the ten-thousandth page of the unfiltered list, or before a shorter list's last page."""
        table = list_query.table.partition(" ")[0]
        source_sql = f"FROM {table} WHERE org = %s" + (" AND source = %s" if table == "runs" else "")
        values = (self._large.tenant.org, *(list_query.ids.values() if table == "runs" else ()))
        [count] = await self._fetch_row(f"SELECT count(*) {source_sql}", values)
        if count <= PAGE_SIZE:
            return None
        offset = min(PAGE_SIZE * DEEP_PAGE, count - PAGE_SIZE) - 1
        [key] = await self._fetch_row(
            f"SELECT {list_query.key} {source_sql} ORDER BY {list_query.key} DESC OFFSET {offset} LIMIT 1", values
        )
        return str(key)

    async def _fetch_row(self, statement: str, values: tuple[Any, ...]) -> tuple[Any, ...]:
        row = await (await self._connection.execute(statement.encode(), values)).fetchone()
        assert row is not None
        return row

    async def _print_times(
        self,
        session: aiohttp.ClientSession,
        list_query: ListQuery,
        name: str,
        query: Mapping[str, Any],
        key: str | None,
    ) -> None:
        """Print a line with the first and the deep page, each compared with the unfiltered first page."""
        parameters = {name: _format_value(value) for name, value in query.items()}
        pages = {"first": f"{list_query.path}?{urlencode(parameters)}"}
        if key is not None:
            cursor = self._cursors.sign(
                build_cursor_context(list_query.operation, self._large.tenant, list_query.ids, query), key
            )
            pages["deep"] = f"{list_query.path}?{urlencode({**parameters, 'starting_after': cursor})}"
        figures = []
        for page, path in pages.items():
            milliseconds, baseline, rows = await self._measure_page(session, path, list_query.path)
            figures.append(f"{page} {milliseconds:6.2f} ms, {rows:>2} rows, ratio {milliseconds / baseline:5.2f}")
        print_figure(f"{list_query.table}: {name}", "   ".join(figures))

    async def _measure_page(self, session: aiohttp.ClientSession, path: str, baseline: str) -> tuple[float, float, int]:
        """Request two paths alternately; return the milliseconds of both, and the number of rows of `path`.

        The result is the lower quartile of the second half of the requests, because PostgreSQL chooses a plan during
        the first ones and other processes disturb the measurement.
        """
        times: dict[str, list[float]] = {path: [], baseline: []}
        rows = 0
        for _ in range(_REPETITIONS):
            for target in (baseline, path):
                started = time.perf_counter()
                async with session.get(self._base + target) as response:
                    response.raise_for_status()
                    body = await response.json()
                times[target].append((time.perf_counter() - started) * 1000)
                rows = len(body["data"])
        path_time, baseline_time = (
            statistics.quantiles(times[target_path][_REPETITIONS // 2 :], n=4)[0] for target_path in (path, baseline)
        )
        return path_time, baseline_time, rows

    async def _measure_events(self, session: aiohttp.ClientSession) -> None:
        """Print the times of pages at the beginning of the event log, 10,000 pages later, and of its newest events."""
        for name, query in {
            "plain": {},
            "type, frequent": {"types": "offer.changed"},
            "type, rare": {"types": "source.blocked"},
        }.items():
            for path, size in (("/v1/changes", 1000), ("/v1/changes/recent", PAGE_SIZE)):
                pages = {"first": {}, "deep": await self._find_deep_cursor(session, path, query)}
                baseline_path = f"{path}?limit={size}"
                figures = []
                for page, page_parameters in pages.items():
                    milliseconds, baseline, rows = await self._measure_page(
                        session, f"{path}?{urlencode({**query, 'limit': size, **page_parameters})}", baseline_path
                    )
                    figures.append(
                        f"{page} {milliseconds:6.2f} ms, {rows:>4} rows, ratio {milliseconds / baseline:5.2f}"
                    )
                print_figure(f"{path}: {name}, pages of {size}", "   ".join(figures))

    async def _find_deep_cursor(
        self, session: aiohttp.ClientSession, path: str, query: Mapping[str, str]
    ) -> dict[str, str]:
        """Return the query parameters of the page after PAGE_SIZE * DEEP_PAGE events, or of a shorter list's last page."""
        parameter, limit = ("cursor", 1000) if path == "/v1/changes" else ("starting_after", 100)
        page_parameters: dict[str, str] = {}
        for _ in range(PAGE_SIZE * DEEP_PAGE // limit):
            async with session.get(
                f"{self._base}{path}?{urlencode({**query, 'limit': limit, **page_parameters})}"
            ) as response:
                response.raise_for_status()
                page = await response.json()
            if not page["next_cursor"] or not page["data"]:
                break
            page_parameters = {parameter: page["next_cursor"]}
        return page_parameters


def _format_value(value: Any) -> str:
    """Return the value of a filter as it is written in the query string."""
    if isinstance(value, datetime):
        return value.isoformat()
    return ",".join(value) if isinstance(value, list) else str(value)


async def measure_lists(stack: Stack, base: str, large: LargeOrganisation) -> None:
    """Print the response times of all lists of the large organisation."""
    async with stack.dependencies[Pool].connect_as_owner() as pooled:
        await PageTimer(
            base, large, CursorSigner(stack.dependencies[ActiveKeys].cursor_keys), pooled.driver_connection
        ).measure_all()
