"""GET /v1/products, /v1/products/{id}, /v1/offers, /v1/categories."""

from hashlib import blake2b
from operator import attrgetter
from typing import Any, TypeAlias

from adapters.wire import catalogue as documents
from adapters.wire import products as wire
from domain.catalogue.model import Document, OfferFilter, ProductFilter, ProductStatus
from domain.catalogue.usecases.service import CatalogueService
from domain.kernel.paging import Page
from domain.kernel.schema import Schema, array, enum, id_of, text, timestamp
from entrypoints.operations.operation import Area, Read, ReadContext, Reply

Reading: TypeAlias = ReadContext[CatalogueService]

_MAX_VALUES = 100
"""Maximum values of a filter that accepts several (docs/finding.md)."""


def _list_filter(item: Schema, description: str) -> Schema:
    return array(item, least=1, most=_MAX_VALUES, description=f"{description} 1 to {_MAX_VALUES}, separated by commas.")


def _identifier_filters(whose: str) -> dict[str, Schema]:
    """Return the filters by external identifiers; `whose` names their owner in the descriptions."""
    comma = "Write a comma inside a value as `\\,`."
    return {
        "external_id": _list_filter(
            text("LM-1001", longest=10_000),
            "The ID of the product or variant at the source: the external_id of a pushed record, or the key of a row in a feed. "
            f"Exact match, case-sensitive. {comma}",
        ),
        "sku": _list_filter(
            text("HD-300-GY"),
            f"The SKU of {whose}. Exact match, including case and punctuation. {comma}",
        ),
        "gtin": _list_filter(
            text("4006381333931", longest=40),
            f"The GTIN (EAN, UPC) of {whose}. Leading zeros are ignored, so 8, 12, 13 and 14-digit forms are equal.",
        ),
        "mpn": _list_filter(
            text("HD300"),
            f"The manufacturer's part number of {whose}. Exact match, including case and punctuation. {comma}",
        ),
    }  # fmt: skip


_PRODUCT_FILTERS = {
    "updated_since": timestamp("Products changed at or after this time, including changes of variants and offers."),
    "status": enum(*ProductStatus),
    "brand": text("Lindgren Möbler", longest=200, description="Ignores case and spacing."),
    "category": id_of("ctg", "This category and those below it."),
    "availability": wire.AVAILABILITY,
    "catalogue": id_of("cat", "A catalogue that is not visible to you returns no products."),
    "source": id_of("src", "Products from the source, including those it no longer lists, and the products into which they are merged."),
    "q": text(
        "oak sideboard", shortest=2, longest=100,
        description="All words (at most 8) in title or brand, ignoring case; or the SKU or MPN of a variant, ignoring case "
        "and punctuation.",
    ),
    "id": _list_filter(id_of("prod"), "Products with one of these IDs."),
    "variant": _list_filter(id_of("var"), "Products with one of these variants."),
    "offer": _list_filter(id_of("ofr"), "Products with one of these offers."),
    **_identifier_filters("one of its variants"),
}  # fmt: skip
_OFFER_FILTERS = {
    "variant": id_of("var"),
    "product": id_of("prod"),
    "source": id_of("src"),
    "availability": wire.AVAILABILITY,
    "updated_since": timestamp("Offers changed at or after this time."),
    "id": _list_filter(id_of("ofr"), "Offers with one of these IDs."),
    **_identifier_filters("its variant"),
}
_CATEGORY_TREE: dict[str, Any] = {}


def spliced(page: Page[Document], cursor: str | None) -> Reply:
    """Return the list envelope around stored documents; its ETag is derived from theirs."""
    has_more = b"true" if page.has_more else b"false"
    next_cursor = b'"' + cursor.encode() + b'"' if cursor else b"null"
    validators = "".join(map(attrgetter("etag"), page.items)).encode()
    documents = b",".join(map(attrgetter("body"), page.items))
    parts = (b'{"object":"list","data":[', documents, b'],"has_more":', has_more, b',"next_cursor":', next_cursor, b"}")
    return Reply(b"".join(parts), etag=blake2b(next_cursor + validators, digest_size=12).hexdigest())


async def products(call: Reading) -> Reply:
    """Return a page of products."""
    page = await call.service.list_products(call.tx, ProductFilter(**call.query), call.page_request)
    return spliced(page, call.cursor(page.next_key))


async def product(call: Reading) -> Reply:
    """Return one product."""
    document = await call.service.get_product(call.tx, call.ids["id"])
    return Reply(document.body, etag=document.etag)


async def offers(call: Reading) -> Reply:
    """Return a page of offers."""
    return call.listing(
        await call.service.list_offers(call.tx, OfferFilter(**call.query), call.page_request), documents.offer_line
    )


async def categories(call: Reading) -> Reply:
    """Return the whole taxonomy."""
    if not _CATEGORY_TREE:
        rendered = [wire.category(entry) for entry in call.service.categories()]
        _CATEGORY_TREE.update({"object": "category_tree", "categories": rendered})
    return Reply(_CATEGORY_TREE)


AREA = Area(
    "catalogue",
    "Catalogue",
    "Products, variants and offers: your own, and those of other organisations for which you have a licence.",
    service=CatalogueService,
    operations=(
        Read(
            id="catalogue.list_products",
            path="/v1/products",
            summary="List products",
            description="Returns products, newest first. Products must match all filters.",
            handler=products,
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
            handler=product,
            scope="products:read",
            reply=wire.PRODUCT,
        ),
        Read(
            id="catalogue.list_offers",
            path="/v1/offers",
            summary="List offers",
            description="Returns offers, newest first. An offer is one source's price and stock for one variant at one location.",
            handler=offers,
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
            handler=categories,
            scope="products:read",
            reply=wire.CATEGORIES,
        ),
    ),
)
