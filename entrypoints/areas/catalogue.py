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

_MANY = 100
"""How many values a filter takes that takes many (docs/finding.md)."""


def _many(item: Schema, description: str) -> Schema:
    return array(item, least=1, most=_MANY, description=f"{description} 1 to {_MANY}, separated by commas.")


def _codes(whose: str) -> dict[str, Schema]:
    """The filters by what others know an item by, `whose` being what has it."""
    comma = "Write a comma inside a value as `\\,`."
    return {
        "external_id": _many(
            text("LM-1001", longest=10_000),
            "The id under which the source knows the product or variant: the external_id of a pushed record, the key of a row "
            f"in a feed. Exactly as it was given: upper and lower case count. {comma}",
        ),
        "sku": _many(
            text("HD-300-GY"),
            f"The SKU of {whose}, exactly as it is answered: upper and lower case and punctuation count. {comma}",
        ),
        "gtin": _many(
            text("4006381333931", longest=40),
            f"The GTIN (EAN, UPC) of {whose}. Leading zeros do not count, so its forms of 8, 12, 13 and 14 digits are the same.",
        ),
        "mpn": _many(
            text("HD300"),
            f"The manufacturer's part number of {whose}, exactly as it is answered: upper and lower case and punctuation "
            f"count. {comma}",
        ),
    }  # fmt: skip


_PRODUCT_FILTERS = {
    "updated_since": timestamp("Products changed at or after this moment; a variant or offer change counts."),
    "status": enum(*ProductStatus),
    "brand": text("Lindgren Möbler", longest=200, description="Ignores case and spacing."),
    "category": id_of("ctg", "This category or one below it."),
    "availability": wire.AVAILABILITY,
    "catalogue": id_of("cat", "One you cannot see lists nothing."),
    "source": id_of("src", "Products that the source feeds or fed, those it stopped listing included, and those that they are merged into."),
    "q": text(
        "oak sideboard", shortest=2, longest=100,
        description="Every word (at most 8) in title or brand, ignoring case; or a variant's SKU or MPN, ignoring case "
        "and punctuation.",
    ),
    "id": _many(id_of("prod"), "Products with one of these ids."),
    "variant": _many(id_of("var"), "Products that have one of these variants."),
    "offer": _many(id_of("ofr"), "Products of which one of these is an offer."),
    **_codes("one of its variants"),
}  # fmt: skip
_OFFER_FILTERS = {
    "variant": id_of("var"),
    "product": id_of("prod"),
    "source": id_of("src"),
    "availability": wire.AVAILABILITY,
    "updated_since": timestamp("Offers changed at or after this moment."),
    "id": _many(id_of("ofr"), "Offers with one of these ids."),
    **_codes("its variant"),
}
_CATEGORY_TREE: dict[str, Any] = {}


def spliced(page: Page[Document], cursor: str | None) -> Reply:
    """The list envelope around stored documents; its validator is made of theirs."""
    more = b"true" if page.has_more else b"false"
    following = b'"' + cursor.encode() + b'"' if cursor else b"null"
    validators = "".join(map(attrgetter("etag"), page.items)).encode()
    documents = b",".join(map(attrgetter("body"), page.items))
    parts = (b'{"object":"list","data":[', documents, b'],"has_more":', more, b',"next_cursor":', following, b"}")
    return Reply(b"".join(parts), etag=blake2b(following + validators, digest_size=12).hexdigest())


async def products(call: Reading) -> Reply:
    """A page of products."""
    page = await call.service.list_products(call.tx, ProductFilter(**call.query), call.page_request)
    return spliced(page, call.cursor(page.next_key))


async def product(call: Reading) -> Reply:
    """One product."""
    document = await call.service.get_product(call.tx, call.ids["id"])
    return Reply(document.body, etag=document.etag)


async def offers(call: Reading) -> Reply:
    """A page of offers."""
    return call.listing(
        await call.service.list_offers(call.tx, OfferFilter(**call.query), call.page_request), documents.offer_line
    )


async def categories(call: Reading) -> Reply:
    """The taxonomy, whole."""
    if not _CATEGORY_TREE:
        listed = [wire.category(entry) for entry in call.service.categories()]
        _CATEGORY_TREE.update({"object": "category_tree", "categories": listed})
    return Reply(_CATEGORY_TREE)


AREA = Area(
    "catalogue",
    "Catalogue",
    "Products, variants and offers: your own, and what other organisations have published, as far as you have a licence for it.",
    service=CatalogueService,
    operations=(
        Read(
            id="catalogue.list_products",
            path="/v1/products",
            summary="List products",
            description="Newest first. Every given filter must match.",
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
            description="With its variants and their offers.",
            handler=product,
            scope="products:read",
            reply=wire.PRODUCT,
        ),
        Read(
            id="catalogue.list_offers",
            path="/v1/offers",
            summary="List offers",
            description="Newest first. An offer is one source's price and stock for one variant at one location.",
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
            description="One taxonomy for everybody, answered whole, parents before their children.",
            handler=categories,
            scope="products:read",
            reply=wire.CATEGORIES,
        ),
    ),
)
