"""Plans of every list with every filter: a page reads little more than its rows, with custom and generic plans.

The lists are those of the operation table. Each is requested over HTTP on large, analysed tables; its statements are explained
as executed, with custom and generic plans.
"""

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from itertools import combinations
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import psycopg
import pytest
import pytest_asyncio

from adapters.postgres.nodes.connections import connect
from adapters.postgres.stores import SCAN_LIMIT
from benchmarks.generated_rows import CATEGORIES, GTIN, RARE_NUMBER, build_row_id, create_past_partitions, insert_rows
from domain.access.usecases import AccessService, KeyRequest
from domain.catalogue import search_terms
from domain.kernel.tenancy import Actor, AuditContext, Tenant
from domain.orgs.ports import OrgRegistry
from entrypoints.areas.registry import AREAS
from entrypoints.dependencies import Dependencies
from entrypoints.operations.operation import Operation
from ports.unit_of_work import UnitOfWork
from tests.http.client import Client
from tests.postgres.databases import create_temporary_database
from tests.postgres.plans import explain_plan, list_nodes
from tests.support import builders
from tests.tenancy.application import build_path, serve_application

pytestmark = pytest.mark.asyncio(loop_scope="module")
ROWS, FEW, OTHERS = 20_000, 200, 6
LIMIT = 5
ELSEWHERE = {"changes", "orgs", "platform", "vendor_directory"}
"""Areas without pages of a tenant: the log is read by positions, memberships, incidents and profiles across organisations."""
LISTS = {
    operation.id: operation
    for area in AREAS
    if area.name not in ELSEWHERE
    for operation in area.operations
    if operation.paging in ("both", "forward") and operation.caller_kind == "any"
}
"""Lists that a key can read; those of a person read by an index of the person, or have at most 50 rows."""
ROUTINE = 400
"""Rows that a page with at most one filter may read, including related rows, in each partition."""
SORTED = 5_000
"""Rows that may be sorted: recent changes and results of codes have no index in the order of the list."""


def _list_filter_values(operation: str, filter: str, today: datetime) -> tuple[str, ...]:
    """Return values of a filter that many rows have, that one row has, that the oldest has, and that none has."""
    day = today.date()
    known = {
        "catalogue.list_products status": ("active", "discontinued"),
        "webhooks.list_deliveries status": ("succeeded", "failed", "pending"),
        "matching.list_pairs status": ("open", "dismissed", "merged"),
        "matching.list_merges status": ("applied", "undone"),
        "proposals.list status": ("proposed", "applied", "stale"),
        "proposals.list kind": ("mapping", "triage_note"),
        "subject": (build_row_id("map", 9, day, ROWS), build_row_id("src", 0, day)),
        "agent": (build_row_id("agt", 9, day, ROWS),),
        "request_logs.list status": ("2xx", "404", "5xx", "301"),
        "method": ("GET", "DELETE"),
        "route": ("/v1/products", "/v1/things"),
        "actor": ("key_1", "key_2"),
        "error_code": ("not_found", "conflict"),
        "since": tuple((today - timedelta(hours=hours)).isoformat() for hours in (24 * 100, 36, -24)),
        "until": tuple((today - timedelta(hours=hours)).isoformat() for hours in (-24, 36, 24 * 100)),
        "audit.list actor": ("key_1", "key_alone", "none"),
        "action": ("sources.update", "matching.merge_pair", "none"),
        "target": ("src_many", "src_0", "none"),
        "object": ("source", "merge", "none"),
        "undoable": ("true", "false"),
        "kind": ("variant", "product"),
        "survivor": (build_row_id("var", 9, day, ROWS // 2), build_row_id("var", 9, day, ROWS * 9)),
        "merged": (build_row_id("var", 9, day, ROWS),),
        "pair": (build_row_id("mpr", 9, day, ROWS),),
        "availability": ("in_stock", "preorder", "discontinued"),
        "brand": ("brand7", "alone", "none"),
        "category": CATEGORIES,
        "catalogue": (CATALOGUE,),
        "brands": ("brand7,brand8", "alone", "none"),
        "colour": ("grey,brown", "red", "gold"),
        "finish": ("walnut", "walnut,oak", "brass"),
        "currency": ("usd", "chf", "eur"),
        "min_price": ("50000", "60000"),
        "max_price": ("60000", "0"),
        "completeness": ("low", "medium,high", "complete"),
        "sort": ("updated", "title", "price_low", "price_high"),
        "include": ("total_count",),
        "catalogue.list_products availability": ("in_stock", "in_stock,preorder", "preorder", "discontinued"),
        "catalogue.list_products category": (CATEGORIES[0], ",".join(CATEGORIES), CATEGORIES[1]),
        "q": ("sofa", "walnut sofa", "halden alone sofa", "sku77", "nothing"),
        "type": ("offer.changed", "source.blocked", "product.merged"),
        "event": (build_row_id("evt", 7, day, ROWS),),
        "catalogue.list_products id": (build_row_id("prod", 9, day, ROWS // 5), _build_ids(day, "prod", ROWS // 5)),
        "catalogue.list_products variant": (build_row_id("var", 9, day, ROWS // 2), _build_ids(day, "var", ROWS // 2)),
        "catalogue.list_offers id": (build_row_id("ofr", 9, day, ROWS), _build_ids(day, "ofr", ROWS)),
        "offer": (build_row_id("ofr", 9, day, ROWS), _build_ids(day, "ofr", ROWS)),
        "external_id": ("V0", ",".join(f"{kind}{number}" for number in range(50) for kind in "PV"), "none"),
        "sku": ("SKU-9", ",".join(f"SKU-{number}" for number in range(100)), "none"),
        "mpn": ("MANY", ",".join(("MANY", *(f"M-{number}" for number in range(99)))), "M-1", "none"),
        "gtin": (GTIN, ",".join(str(number) for number in range(1, 101)), "12345678"),
        "variant": (build_row_id("var", 9, day, ROWS // 2),),
        "product": (build_row_id("prod", 9, day, ROWS // 5),),
        "source": (build_row_id("src", 0, day), build_row_id("src", RARE_NUMBER, day)),
        "visibility": ("listed", "hidden", "unlisted"),
        "missing": ("media", "gtin", "sku"),
        "period": ("7d", "30d", "90d"),
        "updated_since": tuple((today - timedelta(hours=hours)).isoformat() for hours in (24 * 100, 36, 6, -24)),
    }
    return known.get(f"{operation} {filter}") or known[filter]


def _build_ids(day: date, kind: str, of: int) -> str:
    return ",".join(build_row_id(kind, number, day, of) for number in range(100))


@dataclass
class ListHarness:
    """Service with one large organisation among small ones, and a database session of the large one."""

    client: Client
    tenant: Tenant
    today: datetime
    connection: psycopg.AsyncConnection[Any]
    statements: list[tuple[str, Any]] = field(default_factory=list)

    @contextmanager
    def record_statements(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        """Record the tenant statements that are executed."""
        self.statements.clear()
        execute = psycopg.AsyncCursor.execute

        async def record(cursor: Any, query: Any, params: Any = None, **more: Any) -> Any:
            if isinstance(query, str) and isinstance(params, dict) and "livemode" in params:
                self.statements.append((query, params))
            return await execute(cursor, query, params, **more)

        with monkeypatch.context() as patch:
            patch.setattr(psycopg.AsyncCursor, "execute", record)
            yield


CATALOGUE = "cat_0000000000000000000001"
_DEMAND_CELLS = """
INSERT INTO demand_cells SELECT %s, true, 'prod_' || product, current_date - day, type, 9, 5
FROM generate_series(1, %s) AS product, generate_series(1, 8) AS day, unnest(ARRAY['view', 'save', 'quote', 'cart', 'order']) AS type
"""


@asynccontextmanager
async def _create_harness(folder: Path) -> AsyncIterator[ListHarness]:
    today = datetime.now(UTC).replace(
        hour=20
    )  # the number of rows of the current day determines the rows that a page reads
    async with (
        create_temporary_database("list_plans") as address,
        serve_application(folder, JOINERY_DATABASE_URL=address) as application,
        await connect(address, "filling") as owner,
    ):
        await create_past_partitions(owner, today.date())
        tenant = await _create_organisation(application.dependencies, owner, CATALOGUE, ROWS, today)
        for number in range(1, OTHERS):
            await _create_organisation(application.dependencies, owner, f"cat_x{number:021d}", FEW, today)
        await owner.execute("VACUUM ANALYZE")
        async with application.dependencies[UnitOfWork].begin(
            tenant, AuditContext(Actor("service", "tests"), "tests")
        ) as tx:
            _, secret = await application.dependencies[AccessService].create_key(tx, KeyRequest("plans"))
        await owner.execute("SET ROLE joinery_app")
        scope = "SELECT set_config('joinery.org', %s, false), set_config('joinery.livemode', 't', false)"
        await owner.execute(scope, (tenant.org,))
        yield ListHarness(Client(application.app, secret), tenant, today, owner)


async def _create_organisation(
    container: Dependencies, owner: Any, catalogue: str, rows: int, today: datetime
) -> Tenant:
    plan = await container[OrgRegistry].find_plan("max")
    organisation = builders.organisation(plan=plan, kind="vendor", catalogues=(catalogue, catalogue + "t"))
    await container[OrgRegistry].create(organisation)
    await insert_rows(owner, organisation.id, catalogue, rows, today.date())
    await owner.execute(_DEMAND_CELLS, (organisation.id, rows // 40))
    return Tenant(organisation.id, True)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def harness(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ListHarness]:
    async with _create_harness(tmp_path_factory.mktemp("plans")) as made:
        yield made


def _build_queries(operation: Operation, today: datetime) -> Iterator[dict[str, str]]:
    """Yield queries without a filter, with each value of each filter, and with pairs of filters."""
    yield {}
    values = {name: _list_filter_values(operation.id, name, today) for name in operation.query}
    for name, known in values.items():
        yield from ({name: value} for value in known)
    for one, other in combinations(values, 2):
        yield {one: values[one][0], other: values[other][-1]}
        yield {one: values[one][-1], other: values[other][0]}


def _add_required(query: Mapping[str, str]) -> dict[str, str]:
    """Add the currency that filters by price require."""
    return {"currency": "usd", **query} if {"min_price", "max_price"} & query.keys() else dict(query)


async def _request_pages(harness: ListHarness, operation: Operation, query: Mapping[str, str]) -> None:
    """Request the first page, the next one, and the previous one."""
    path = build_path(
        operation,
        {"src": build_row_id("src", 0, harness.today.date()), "whe": build_row_id("whe", 0, harness.today.date())},
    )
    way = "starting_after"
    cursor: str | None = None
    for _ in range(3):
        page = {"limit": str(LIMIT), **query, **({way: cursor} if cursor else {})}
        answer = await harness.client.send("GET", f"{path}?{urlencode(page)}")
        assert answer.status == 200, answer.body
        cursor = answer.json()["next_cursor"]
        if cursor is None:
            return
        way = "ending_before" if operation.paging == "both" and "starting_after" in page else "starting_after"


def find_faults(found: Mapping[str, Any], most: int, sorted_: int, whole: int = FEW) -> list[str]:
    """Return the properties of an executed plan that a page of a list must not have."""
    messages = []
    looked = 0
    for node in list_nodes(found):
        rows = (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"]
        if "Relation Name" in node and node["Node Type"] != "Bitmap Index Scan":
            looked += rows
            if node["Node Type"] == "Seq Scan" and rows > whole:
                messages.append(f"all of {node['Relation Name']} is read")
        if "Sort" in node["Node Type"]:
            given = sum(part["Actual Rows"] * part["Actual Loops"] for part in node["Plans"])
            if given > sorted_:
                messages.append(f"{given} rows are sorted by {node['Sort Key']}")
    return [*messages, f"{looked} rows are looked at"] if looked > most else messages


@pytest.mark.parametrize("operation", LISTS.values(), ids=LISTS)
async def test_a_page_reads_few_rows(
    harness: ListHarness, operation: Operation, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = set()
    for query in map(_add_required, _build_queries(operation, harness.today)):
        with harness.record_statements(monkeypatch):
            await _request_pages(harness, operation, query)
        either_side = operation.id == "matching.list_pairs" and not {"variant", "product"}.isdisjoint(query)
        unordered = (
            either_side
            or not {"updated_since", "id", "offer", *search_terms.CODE_FILTERS}.isdisjoint(query)
            or "," in query.get("variant", "")
        )
        by_days = operation.id == "request_logs.list"
        # variants of a vendor are read in portions, and no index supports their filters
        is_scanned = operation.id == "publishing.list_variants" and bool(query)
        narrow = is_scanned or len(query.get("q", "").split()) + len(query) - ("q" in query) > 1 or unordered
        for statement, values in harness.statements:
            for mode in ("force_custom_plan", "force_generic_plan"):
                if (mode, statement, str(values)) in seen:
                    continue
                seen.add((mode, statement, str(values)))
                await harness.connection.execute(f"SET plan_cache_mode = {mode}".encode())
                found = await explain_plan(harness.connection, statement, values, "ANALYZE", "TIMING off")
                most = SCAN_LIMIT + ROUTINE + SORTED if narrow else ROUTINE
                # few rows of the own and of the licensed catalogues are sorted together
                few, whole = FEW if operation.area == "catalogue" else LIMIT + 1, FEW
                if by_days:
                    # days with few requests may be read and sorted completely, and the log has no index for rare filters
                    most, few, whole = (
                        (2 * SCAN_LIMIT, SCAN_LIMIT, SCAN_LIMIT) if "custom" in mode else (ROWS, ROWS, SCAN_LIMIT)
                    )
                if "_facets " in statement:
                    # without filters, a page reads its rows; otherwise statements read all products of a filter, or of a catalogue of this size
                    is_sorted_only = query.keys() == {"sort"}
                    most, few, whole = (ROUTINE, FEW, FEW) if is_sorted_only else (ROWS, SORTED, ROWS)
                messages = find_faults(
                    found, most, (ROWS if "_facets " in statement else SORTED) if unordered else few, whole
                )
                assert not messages, (operation.id, query, mode, messages, statement)
    assert seen


async def test_a_full_scan_is_detected(harness: ListHarness) -> None:
    """Checks a list without an index in its order, and one that reads its whole table."""
    values = {"org": harness.tenant.org}
    await harness.connection.execute("SET plan_cache_mode = force_custom_plan")
    for wrong, word in {
        "SELECT id FROM offers WHERE org = %(org)s ORDER BY price DESC LIMIT 6": "sorted",
        "SELECT id FROM offers WHERE org = %(org)s AND currency = 'eur' ORDER BY id LIMIT 6": "looked at",
        "SELECT count(*) FROM offers WHERE org = %(org)s AND price > 0": "is read",
    }.items():
        messages = find_faults(await explain_plan(harness.connection, wrong, values, "ANALYZE"), ROUTINE, LIMIT + 1)
        assert any(word in one for one in messages), (wrong, messages)
