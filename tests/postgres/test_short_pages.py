"""Pages that end at the scan limit before they are full: the next page continues without gaps or duplicates."""

from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import pytest_asyncio

from adapters.api_json.catalogue import JsonCatalogueRendering
from adapters.api_json.events import JsonEventRendering
from adapters.postgres.catalogue_query import choose_scanned_filter
from adapters.postgres.nodes.connections import connect
from adapters.postgres.nodes.pool import Pool
from adapters.postgres.orgs import PostgresOrgRegistry
from adapters.postgres.unit_of_work import PostgresUnitOfWork
from benchmarks.generated_rows import CATEGORIES, GTIN, build_row_id, create_past_partitions, insert_rows
from domain.brand.model import DirectoryFilter, ProfileStatus
from domain.brand.ports import VendorProfileStore
from domain.catalogue.model import OfferFilter, ProductFilter
from domain.catalogue.ports import CatalogueStore
from domain.kernel.paging import Page, PageRequest
from domain.kernel.tenancy import Tenant
from domain.webhooks.model import DeliveryFilter, DeliveryStatus
from domain.webhooks.ports import WebhookStore
from ports.unit_of_work import Tx
from tests.postgres.databases import create_temporary_database
from tests.support import builders
from tests.support.memory.clock import SystemClock

pytestmark = pytest.mark.asyncio(loop_scope="module")
ROWS = 25_000
NOW = datetime.now(UTC)
YESTERDAY = NOW - timedelta(hours=36)
BeginReading = Callable[[], Any]
_PROFILES = """
WITH profiles AS (
    INSERT INTO vendor_profiles (livemode, id, name, slug, brands, status, verified, catalogue, version, created_at, updated_at, is_gathered,
        service_catalogue)
    SELECT true, 'vnd_' || lpad(n::text, 22, '0'), 'Name', n, '{}', 'unclaimed', false, 'cat_1', 1, now(), now(), true, 'cat_1'
    FROM generate_series(0, %s - 1) n RETURNING id, slug::integer AS n
), terms AS (
    INSERT INTO vendor_profile_terms (livemode, term, profile)
    SELECT true, term, id FROM profiles CROSS JOIN LATERAL (VALUES
        ('w:walnut', n %% 2 = 0 OR n < 50), ('w:oaken', n %% 2 = 1), ('w:oakens', n %% 4 = 1), ('w:chair', n %% 3 = 0), ('w:rare', n %% 999 = 0),
        ('w:walnutoaken', n = 9000), ('d:shop.example', n = 6), ('s:claimed', n %% 100 = 0), ('s:unclaimed', n %% 100 <> 0)
    ) AS t (term, is_set) WHERE is_set
)
INSERT INTO vendor_words (livemode, deletion, word)
SELECT true, deletion, word FROM (VALUES ('walnut', 'walnut'), ('wlnut', 'walnut'), ('oaken', 'oaken'), ('oaken', 'oakens'), ('chair', 'chair'),
    ('rare', 'rare'), ('walnutoaken', 'walnutoaken')) AS w (deletion, word)
"""
"""Statement that adds profiles with words, of which `walnut` and `oaken` occur together only in the oldest."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def begin_reading() -> AsyncIterator[BeginReading]:
    """Return an organisation with more rows than a page scans; the oldest tenth changed yesterday."""
    async with create_temporary_database("short_pages") as address, await connect(address, "filling") as owner:
        pool = Pool(address, size=2)
        try:
            registry = PostgresOrgRegistry(pool)
            organisation = builders.organisation(plan=await registry.find_plan("max"))
            await registry.create(organisation)
            await create_past_partitions(owner, NOW.date())
            await insert_rows(owner, organisation.id, organisation.get_catalogue_id(True), ROWS, NOW.date())
            await owner.execute("UPDATE webhook_deliveries SET status = 'failed' WHERE type = 'offer.changed'")
            await owner.execute(_PROFILES, (ROWS,))
            await owner.execute("ANALYZE")
            uow = PostgresUnitOfWork(pool, SystemClock(), JsonCatalogueRendering(), JsonEventRendering())
            yield lambda: uow.begin_reading(Tenant(organisation.id, True))
        finally:
            await pool.close()


async def _walk_pages(
    page: Callable[[PageRequest], Awaitable[Page[Any]]], first: PageRequest, key: Callable[[Any], str]
) -> tuple[list[str], int]:
    """Return the keys of all pages' items in order, and the number of pages that ended early."""
    found: list[str] = []
    short = 0
    request: PageRequest | None = first
    while request is not None:
        made = await page(request)
        keys = [key(item) for item in made.items]
        found += reversed(keys) if request.backwards else keys
        short += made.has_more and len(keys) < request.limit
        request = PageRequest(request.limit, made.next_key, request.backwards) if made.has_more else None
    return found, short


@pytest.mark.parametrize("backwards", [False, True])
async def test_offers_that_changed_long_ago_are_listed(begin_reading: BeginReading, backwards: bool) -> None:
    wanted = [build_row_id("ofr", number, NOW.date(), ROWS) for number in range(ROWS // 10)]
    async with begin_reading() as tx:
        found, short = await _walk_pages(
            lambda request: tx[CatalogueStore].list_offers(OfferFilter(updated_since=YESTERDAY), request),
            PageRequest(100, None, backwards),
            lambda line: line.offer.id,
        )
    assert found == (wanted if backwards else wanted[::-1])
    assert short


async def test_products_are_listed_by_term_and_column(begin_reading: BeginReading) -> None:
    """Every product has the category; the scan looks up the time of change of each."""
    products = ROWS // 5
    wanted = [build_row_id("prod", number, NOW.date(), products) for number in reversed(range(products // 10))]
    filter = ProductFilter(category=[CATEGORIES[0]], updated_since=YESTERDAY, status=["active"])
    async with begin_reading() as tx:
        found, short = await _walk_pages(
            lambda request: tx[CatalogueStore].list_products(filter, request),
            PageRequest(100),
            lambda document: document.id,
        )
    active = [id for id in wanted if int(id[-14:]) % 20]
    assert found == active
    assert short


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("codes", [{"gtin": [GTIN]}, {"mpn": ["MANY"], "gtin": [GTIN, "2"]}])
async def test_codes_of_more_items_than_the_limit_are_listed(
    begin_reading: BeginReading, codes: dict[str, list[str]], backwards: bool
) -> None:
    """Every fourth variant has the GTIN, every third the MPN; products and offers are scanned in order."""
    variants = [n for n in range(ROWS // 2) if n % 4 == 0 and (n % 3 == 0 or "mpn" not in codes)]
    assert len(variants) > (2_000 if "mpn" not in codes else 1_000)
    offers = [build_row_id("ofr", n, NOW.date(), ROWS) for n in range(ROWS) if n // 2 in set(variants)]
    async with begin_reading() as tx:
        found, _ = await _walk_pages(
            lambda request: tx[CatalogueStore].list_offers(OfferFilter(**codes), request),
            PageRequest(100, None, backwards),
            lambda line: line.offer.id,
        )
        assert found == (offers if backwards else offers[::-1])
        found, _ = await _walk_pages(
            lambda request: tx[CatalogueStore].list_products(ProductFilter(gtin=[GTIN]), request),
            PageRequest(100, None, backwards),
            lambda document: document.id,
        )
    owners = sorted({build_row_id("prod", n * 2 // 5, NOW.date(), ROWS // 5) for n in range(0, ROWS // 2, 4)})
    assert found == (owners if backwards else owners[::-1])


@pytest.mark.parametrize("backwards", [False, True])
async def test_deliveries_are_listed_by_status_and_type(begin_reading: BeginReading, backwards: bool) -> None:
    filter = DeliveryFilter(DeliveryStatus.FAILED, "source.blocked", None, build_row_id("whe", 0, NOW.date()))
    async with begin_reading() as tx:
        found, short = await _walk_pages(
            lambda request: tx[WebhookStore].list_deliveries(filter, request),
            PageRequest(20, None, backwards),
            lambda delivery: delivery.id,
        )
    assert found == [build_row_id("dlv", 0, NOW.date(), ROWS)]
    assert short


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize(
    ("filter", "is_match", "may_be_short"),
    [
        (DirectoryFilter(q="oaken"), lambda n: n % 2 == 1, False),
        (DirectoryFilter(q="wlanut chair"), lambda n: n % 3 == 0 and (n % 2 == 0 or n < 50), False),
        (DirectoryFilter(q="walnut oaken"), lambda n: (n % 2 == 1 and n < 50) or n == 9000, True),
        (DirectoryFilter(q="rare chair oaken"), lambda n: n % 999 == 0 and n % 2 == 1, False),
        (DirectoryFilter(q="walnut", domain="shop.example"), lambda n: n == 6, False),
        (DirectoryFilter(q="chair nowhere"), lambda n: False, False),
        (DirectoryFilter(status=ProfileStatus.CLAIMED, verified=False), lambda n: n % 100 == 0, False),
        (DirectoryFilter(q="chair", status=ProfileStatus.CLAIMED), lambda n: n % 300 == 0, False),
        (DirectoryFilter(q="oaken", status=ProfileStatus.CLAIMED), lambda n: False, False),
        (DirectoryFilter(q="oaken", verified=False), lambda n: n % 2 == 1, False),
        (DirectoryFilter(verified=True), lambda n: False, False),
    ],
)
async def test_profiles_are_searched(
    begin_reading: BeginReading,
    filter: DirectoryFilter,
    is_match: Callable[[int], bool],
    may_be_short: bool,
    backwards: bool,
) -> None:
    wanted = [f"vnd_{n:022}" for n in range(ROWS) if is_match(n)]
    async with begin_reading() as tx:
        found, short = await _walk_pages(
            lambda request: tx[VendorProfileStore].page(request, filter),
            PageRequest(100, None, backwards),
            lambda profile: profile.id,
        )
    assert found == (wanted if backwards else wanted[::-1])
    assert bool(short) is may_be_short


async def test_pages_of_one_filter_are_full(begin_reading: BeginReading) -> None:
    async def lines(tx: Tx, request: PageRequest) -> Page[Any]:
        return await tx[CatalogueStore].list_offers(OfferFilter(availability="low_stock"), request)

    async with begin_reading() as tx:
        found, short = await _walk_pages(
            lambda request: lines(tx, request), PageRequest(100), lambda line: line.offer.id
        )
    assert len(found) == len(set(found)) > 1000
    assert not short


@pytest.mark.parametrize(
    ("name", "filters", "sizes", "walked"),
    [
        ("offers", {"source"}, {}, "source"),
        ("offers", set(), {}, ""),
        ("offers", {"source", "availability"}, {"": 501, "source": 500, "availability": 7}, "availability"),
        ("offers", {"source", "availability"}, {"": 501, "source": 500, "availability": 500}, "source"),
        ("offers", {"updated_since"}, {"": 501, "updated_since": 20}, "updated_since"),
        ("offers", {"updated_since"}, {"": 501, "updated_since": 500}, ""),
        ("offers", {"updated_since", "source"}, {"": 501, "updated_since": 20, "source": 3}, "source"),
        ("products", {"q", "word0", "word1"}, {"": 501, "word0": 500, "word1": 40}, "word1"),
        ("offers", {"sku"}, {"": 501, "sku": 499}, "sku"),
        ("offers", {"sku"}, {"": 501, "sku": 500}, ""),
        ("offers", {"sku", "source"}, {"": 501, "sku": 500, "source": 500}, "source"),
        ("products", {"gtin", "mpn", "status"}, {"": 501, "gtin": 20, "mpn": 3, "status": 500}, "mpn"),
        ("products", {"id", "sku"}, {}, "id"),
        ("products", {"status", "brand"}, {"": 501, "status": 500, "brand": 500}, "brand"),
    ],
)
async def test_the_rarest_filter_is_scanned(name: str, filters: set[str], sizes: dict[str, int], walked: str) -> None:
    assert choose_scanned_filter(name, filters, sizes) == walked
