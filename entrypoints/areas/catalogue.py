"""Products, offers and categories: GET /v1/products, /v1/products/{id}, /v1/offers, /v1/categories."""

from collections.abc import Sequence
from hashlib import blake2b
from operator import attrgetter
from typing import Any, TypeAlias

from adapters.api_json import catalogue as documents
from adapters.api_json import products as wire
from domain.audit.model import AuditAct
from domain.bulk_actions.model import EXECUTE_BULK_ACTION
from domain.bulk_actions.usecases.execution import BulkActionExecutor
from domain.catalogue.filter_counts import TotalCount
from domain.catalogue.model import Document, OfferFilter, ProductFilter, ProductSort, ProductStatus
from domain.catalogue.usecases.service import CatalogueService
from domain.comparison.ports import ComparisonUpkeep
from domain.corrections.model import EXECUTE_BATCH
from domain.corrections.usecases.execution import BatchExecutor
from domain.corrections.usecases.service import CorrectionService
from domain.jobs.usecases.ticks import Tick
from domain.kernel.errors import InvalidRequest
from domain.kernel.paging import Page
from domain.kernel.schema import Schema, array, currency, enum, id_schema, integer, text, timestamp
from domain.search.facets import ColourFamily, CompletenessBand, FinishFamily
from domain.search.usecases import FILL_FACETS, FacetFiller
from entrypoints.operations.operation import Area, ConsoleAction, Read, ReadContext, Reply, UndoSupport
from entrypoints.operations.query_string import QueryParser
from ports.clock import Clock
from ports.unit_of_work import Tx

CatalogueReadContext: TypeAlias = ReadContext[CatalogueService]

_MAX_FILTER_VALUES = 100
"""Maximum number of values of a filter that accepts a list (docs/finding.md); requests with more are rejected."""


_MAX_AMOUNT = 10**15
"""Maximum price in filters, in minor units."""


def _build_list_filter(item: Schema, description: str) -> Schema:
    return array(
        item,
        min_items=1,
        max_items=_MAX_FILTER_VALUES,
        description=f"{description} 1 to {_MAX_FILTER_VALUES}, separated by commas.",
    )


def _build_extended_filter(item: Schema, description: str) -> Schema:
    """Return a filter that accepted a single value before, so that cursors of a list with one value remain valid."""
    return _build_list_filter(item, description) | {"x-cursor": "single"}


def _build_identifier_filters(article: str) -> dict[str, Schema]:
    """Return the filters by external_id, SKU, GTIN and MPN.

    Args:
        article: Name of the identified article in the filters' descriptions, such as `its variant`.
    """
    comma = "Write a comma inside a value as `\\,`."
    return {
        "external_id": _build_list_filter(
            text("LM-1001", max_length=10_000),
            "The ID of the product or variant at the source: the external_id of a pushed record, or the key of a row in a feed. "
            f"Exact match, case-sensitive. {comma}",
        ),
        "sku": _build_list_filter(
            text("HD-300-GY"),
            f"The SKU of {article}. Exact match, including case and punctuation. {comma}",
        ),
        "gtin": _build_list_filter(
            text("4006381333931", max_length=40),
            f"The GTIN (EAN, UPC) of {article}. Leading zeros are ignored, so 8, 12, 13 and 14-digit forms are equal.",
        ),
        "mpn": _build_list_filter(
            text("HD300"),
            f"The manufacturer's part number of {article}. Exact match, including case and punctuation. {comma}",
        ),
    }  # fmt: skip


_PRODUCT_FILTERS = {
    "updated_since": timestamp("Products changed at or after this time, including changes of variants and offers."),
    "status": _build_extended_filter(enum(*ProductStatus), "Products with one of these statuses."),
    "brand": text("Lindgren Möbler", max_length=200, description="Products of this brand. Case, accents and spaces are ignored."),
    "brands": _build_list_filter(
        text("Lindgren Möbler", max_length=200),
        "Products of one of these brands. Case, accents and spaces are ignored. Write a comma inside a brand as `\\,`.",
    ),
    "category": _build_extended_filter(id_schema("ctg"), "Products in one of the categories with these IDs or in a category below them."),
    "availability": _build_extended_filter(wire.AVAILABILITY, "Products with an offer with one of these availabilities."),
    "catalogue": id_schema("cat", "Products of the catalogue with this ID; none if you cannot read the catalogue."),
    "source": _build_extended_filter(
        id_schema("src"),
        "Products from one of the sources, including those it no longer lists, and the products into which they are merged.",
    ),
    "q": text(
        "oak sideboard", min_length=2, max_length=100,
        description="Products whose title, brand, colours and finishes together contain every word (at most 8), or that have a variant with this "
        "SKU, MPN or GTIN. Case, accents and punctuation are ignored. Products with other forms of the words follow, and those with a similar "
        "spelling of a word that finds nothing.",
    ),
    "colour": _build_list_filter(enum(*ColourFamily), "Products with a variant whose stated colour belongs to one of these families."),
    "finish": _build_list_filter(enum(*FinishFamily), "Products with a variant whose stated finish or colour names one of these woods, metals or surfaces."),
    "currency": currency() | {"description": "Products whose selling price is in this currency."},
    "min_price": integer(
        10000, minimum=0, maximum=_MAX_AMOUNT,
        description="Minimum of the lowest selling price of current offers, in minor units of `currency`, which is required.",
    ),
    "max_price": integer(
        50000, minimum=0, maximum=_MAX_AMOUNT,
        description="Maximum of the lowest selling price of current offers, in minor units of `currency`, which is required.",
    ),
    "completeness": _build_list_filter(
        enum(*CompletenessBand),
        "Products that have this share of the fields that retailers need: `low` is below 50 percent, `medium` below 80, `high` below 100.",
    ),
    "id": _build_list_filter(id_schema("prod"), "Products with one of these IDs."),
    "variant": _build_list_filter(id_schema("var"), "Products with one of these variants."),
    "offer": _build_list_filter(id_schema("ofr"), "Products with one of these offers."),
    **_build_identifier_filters("one of its variants"),
}  # fmt: skip
_PRODUCT_QUERY = _PRODUCT_FILTERS | {
    "sort": enum(*ProductSort) | {
        "description": "Order of the products. `updated` is by the last change, latest first. Prices are the lowest selling prices of current offers; "
        "currencies are sorted one after the other, and products without a selling price are last. Default `newest`.",
    },
    "include": array(
        enum("total_count"), min_items=1, max_items=1,
        description="Additional properties of the response. `total_count` is the number of products on all pages.",
    ) | {"x-cursor": "none"},
}  # fmt: skip
_OFFER_FILTERS = {
    "variant": id_schema("var"),
    "product": id_schema("prod"),
    "source": id_schema("src"),
    "availability": wire.AVAILABILITY,
    "updated_since": timestamp("Offers changed at or after this time."),
    "id": _build_list_filter(id_schema("ofr"), "Offers with one of these IDs."),
    **_build_identifier_filters("its variant"),
}
_CATEGORY_TREE: dict[str, Any] = {}


def build_document_reply(page: Page[Document], cursor: str | None, total: TotalCount | None = None) -> Reply:
    """Return the reply with a page of stored JSON documents, without decoding them.

    The ETag of the reply is derived from the ETags of the documents.
    """
    has_more = b"true" if page.has_more else b"false"
    next_cursor = b'"' + cursor.encode() + b'"' if cursor else b"null"
    validators = "".join(map(attrgetter("etag"), page.items)).encode()
    documents = b",".join(map(attrgetter("body"), page.items))
    end = b"}"
    if total is not None:
        end = b',"total_count":{"count":%d,"is_exact":%s}}' % (total.count, b"true" if total.is_exact else b"false")
        validators += end
    parts = (b'{"object":"list","data":[', documents, b'],"has_more":', has_more, b',"next_cursor":', next_cursor, end)
    return Reply(b"".join(parts), etag=blake2b(next_cursor + validators, digest_size=12).hexdigest())


def parse_product_filter(query: str) -> ProductFilter:
    """Return the filter in a query string of GET /v1/products; other parameters are ignored.

    Raises InvalidRequest as the operation does.
    """
    values, field_errors = _PRODUCT_QUERY_PARSER.parse(query)
    if field_errors:
        raise InvalidRequest(field_errors[0].detail, fields=field_errors)
    filters = _PRODUCT_QUERY_PARSER.exclude_paging(values)
    return ProductFilter(**{name: value for name, value in filters.items() if name in _PRODUCT_FILTERS})


async def list_products(context: CatalogueReadContext) -> Reply:
    """Return a page of products."""
    query = dict(context.query)
    sort, include = ProductSort(query.pop("sort", ProductSort.NEWEST)), query.pop("include", ())
    filter = ProductFilter(**query)
    page = await context.service.list_products(context.tx, filter, context.page_request, sort)
    total = await context.service.count_products(context.tx, filter) if "total_count" in include else None
    return build_document_reply(page, context.sign_cursor(page.next_key), total)


async def read_product(context: CatalogueReadContext) -> Reply:
    """Return one product with its variants and offers."""
    document = await context.service.get_product(context.tx, context.ids["id"])
    return Reply(document.body, etag=document.etag)


async def list_offers(context: CatalogueReadContext) -> Reply:
    """Return a page of offers."""
    return context.build_page_reply(
        await context.service.list_offers(context.tx, OfferFilter(**context.query), context.page_request),
        documents.render_offer_line,
    )


async def list_categories(context: CatalogueReadContext) -> Reply:
    """Return all categories of the taxonomy."""
    if not _CATEGORY_TREE:
        rendered = [wire.render_category(entry) for entry in context.service.list_categories()]
        _CATEGORY_TREE.update({"object": "category_tree", "categories": rendered})
    return Reply(_CATEGORY_TREE)


LIST_PRODUCTS = Read(
    id="catalogue.list_products",
    path="/v1/products",
    summary="List products",
    description="Returns products, newest first unless `sort` is given. Products must match all filters.",
    handler=list_products,
    scope="products:read",
    reply=wire.PRODUCTS,
    paging="forward",
    query=_PRODUCT_QUERY,
    dataset="products",
)
_PRODUCT_QUERY_PARSER = QueryParser(LIST_PRODUCTS)


async def _undo_corrections(_: CatalogueService, tx: Tx, act: AuditAct) -> None:
    await CorrectionService().undo(tx, act)


def _create_ticks(comparisons: ComparisonUpkeep, clock: Clock) -> Sequence[Tick]:
    async def delete_expired() -> None:
        await comparisons.delete_expired(clock.now())

    return [Tick("expired links to comparisons", 3600, delete_expired, is_purge=True)]


AREA = Area(
    "catalogue",
    "Catalogue",
    "Products, variants and offers: your own, and those of other organisations for which you have a licence.",
    create_service=CatalogueService,
    create_ticks=_create_ticks,
    operations=(
        LIST_PRODUCTS,
        Read(
            id="catalogue.read_product",
            path="/v1/products/{id}",
            summary="Read a product",
            description="Returns a product with its variants and their offers.",
            handler=read_product,
            scope="products:read",
            reply=wire.PRODUCT,
        ),
        Read(
            id="catalogue.list_offers",
            path="/v1/offers",
            summary="List offers",
            description="Returns offers, newest first. An offer is one source's price and stock for one variant at one location.",
            handler=list_offers,
            scope="products:read",
            reply=wire.OFFERS,
            paging="forward",
            query=_OFFER_FILTERS,
            dataset="offers",
        ),
        Read(
            id="catalogue.list_categories",
            path="/v1/categories",
            summary="Read the category tree",
            description="Returns the whole taxonomy, which is the same for all organisations, parents before their children.",
            handler=list_categories,
            scope="products:read",
            reply=wire.CATEGORIES,
        ),
    ),
    console_actions=(
        ConsoleAction(
            id="catalogue.correct",
            scope="products:write",
            undo=UndoSupport(
                "The fields get their previous corrections, or what the sources state.", _undo_corrections
            ),
        ),
        ConsoleAction(
            id="catalogue.correct_many",
            scope="products:write",
            undo=UndoSupport("A job restores the previous corrections of the products.", _undo_corrections),
        ),
    ),
    handler_factories={FILL_FACETS: FacetFiller, EXECUTE_BULK_ACTION: BulkActionExecutor, EXECUTE_BATCH: BatchExecutor},
)
