"""Products, offers and categories: GET /v1/products, /v1/products/{id}, /v1/offers, /v1/categories."""

from hashlib import blake2b
from operator import attrgetter
from typing import Any, TypeAlias

from adapters.api_json import catalogue as documents
from adapters.api_json import products as wire
from domain.catalogue.model import Document, OfferFilter, ProductFilter, ProductStatus
from domain.catalogue.usecases.service import CatalogueService
from domain.kernel.paging import Page
from domain.kernel.schema import Schema, array, enum, id_schema, text, timestamp
from entrypoints.operations.operation import Area, Read, ReadContext, Reply

CatalogueReadContext: TypeAlias = ReadContext[CatalogueService]

_MAX_FILTER_VALUES = 100
"""Maximum number of values of a filter that accepts a list (docs/finding.md); requests with more are rejected."""


def _build_list_filter(item: Schema, description: str) -> Schema:
    return array(
        item,
        min_items=1,
        max_items=_MAX_FILTER_VALUES,
        description=f"{description} 1 to {_MAX_FILTER_VALUES}, separated by commas.",
    )


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
    "status": enum(*ProductStatus),
    "brand": text("Lindgren Möbler", max_length=200, description="Products of this brand. Case, accents and spaces are ignored."),
    "category": id_schema("ctg", "Products in the category with this ID or in a category below it."),
    "availability": wire.AVAILABILITY,
    "catalogue": id_schema("cat", "Products of the catalogue with this ID; none if you cannot read the catalogue."),
    "source": id_schema("src", "Products from the source, including those it no longer lists, and the products into which they are merged."),
    "q": text(
        "oak sideboard", min_length=2, max_length=100,
        description="Products whose title and brand together contain every word (at most 8), or that have a variant with this SKU or MPN. "
        "Case, accents and punctuation are ignored.",
    ),
    "id": _build_list_filter(id_schema("prod"), "Products with one of these IDs."),
    "variant": _build_list_filter(id_schema("var"), "Products with one of these variants."),
    "offer": _build_list_filter(id_schema("ofr"), "Products with one of these offers."),
    **_build_identifier_filters("one of its variants"),
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


def build_document_reply(page: Page[Document], cursor: str | None) -> Reply:
    """Return the reply with a page of stored JSON documents, without decoding them.

    The ETag of the reply is derived from the ETags of the documents.
    """
    has_more = b"true" if page.has_more else b"false"
    next_cursor = b'"' + cursor.encode() + b'"' if cursor else b"null"
    validators = "".join(map(attrgetter("etag"), page.items)).encode()
    documents = b",".join(map(attrgetter("body"), page.items))
    parts = (b'{"object":"list","data":[', documents, b'],"has_more":', has_more, b',"next_cursor":', next_cursor, b"}")
    return Reply(b"".join(parts), etag=blake2b(next_cursor + validators, digest_size=12).hexdigest())


async def list_products(context: CatalogueReadContext) -> Reply:
    """Return a page of products."""
    page = await context.service.list_products(context.tx, ProductFilter(**context.query), context.page_request)
    return build_document_reply(page, context.sign_cursor(page.next_key))


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


AREA = Area(
    "catalogue",
    "Catalogue",
    "Products, variants and offers: your own, and those of other organisations for which you have a licence.",
    create_service=CatalogueService,
    operations=(
        Read(
            id="catalogue.list_products",
            path="/v1/products",
            summary="List products",
            description="Returns products, newest first. Products must match all filters.",
            handler=list_products,
            scope="products:read",
            reply=wire.PRODUCTS,
            paging="forward",
            query=_PRODUCT_FILTERS,
            dataset="products",
        ),
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
)
