"""Pages of a product: its offers and their history, the origin of its fields, and images."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from adapters.api_json.catalogue import hide_offer_fields
from domain.catalogue import categories
from domain.catalogue.data import list_current_offers
from domain.catalogue.licences import HIDDEN_FIELDS_BY_VIEW, NETWORK_VIEW, OWN_VIEW
from domain.catalogue.model import ProductFilter
from domain.kernel.errors import NotFound, Unprocessable
from domain.kernel.paging import PageRequest
from domain.orgs.model import VENDOR
from entrypoints.console.charts import build_offer_history
from entrypoints.console.context import PageContext, Pages
from entrypoints.console.corrections import read_editor
from entrypoints.console.pages.sources import find_source_names
from entrypoints.console.products import (
    Picture,
    count_missing_pictures,
    find_cheapest_offers,
    find_title,
    list_pictures,
    summarise_offers,
)
from entrypoints.console.rendering import ListPortion, format_number
from entrypoints.console.translation import N_, gettext, ngettext
from entrypoints.http.exchange import Response
from ports.clock import Clock

Json = Mapping[str, Any]
_VARIANTS_PER_PAGE = 20
_OFFERS_PER_PAGE = 8
"""Maximum number of offers that a product's page shows side by side."""
_MAX_IMAGES = 9
"""Maximum number of images that a product's page shows until the person requests all."""

pages = Pages("/console", section=N_("Catalogue"), scope="products:read")


@pages.register_get("/catalogue/<id>")
async def show_product(page: PageContext) -> Response:
    """Show a product, or only the element of the page that htmx requests."""
    return await _render_product(page, OWN_VIEW)


@pages.register_get("/catalogue/<id>/retailer", organisation_kind=VENDOR)
async def show_product_to_retailers(page: PageContext) -> Response:
    """Show a vendor's own product as organisations without a licence of their own read it."""
    return await _render_product(page, NETWORK_VIEW)


async def _render_product(page: PageContext, view: str) -> Response:
    """Render a product with the fields of the view, as its owner or as another organisation.

    Raises NotFound if the view is another organisation's, and the product is not the person's organisation's.
    """
    product, variants = await _read_product(page, view)
    is_own = product["catalogue"] in page.principal.organisation.catalogues
    if view != OWN_VIEW and not is_own:
        raise NotFound
    shows_origins = is_own and view == OWN_VIEW
    part, query, names = page.request.element_id or page.query["part"], page.query, await find_source_names(page)
    selected_variant = query["variant"] or page.form["variant"]
    variant_index = _find_variant_index(variants, selected_variant)
    variant = msgspec.json.decode(variants[variant_index]) if variants else None
    offers = variant["offers"] if variant else []
    selected_offers = [offer for offer in offers if offer["id"] == query["offer"]]
    newest = sorted(offers, key=lambda offer: offer["observed_at"], reverse=True)
    offer_page = ListPortion.from_items(selected_offers or newest, query.get_number("offers"), _OFFERS_PER_PAGE)
    start = query.get_number("variants")
    start = variant_index - variant_index % _VARIANTS_PER_PAGE if start is None else start
    variant_page = ListPortion.from_items(variants, start, _VARIANTS_PER_PAGE)
    media = variant["data"].get("media", ()) if variant else (), product["data"].get("media", ())
    gallery = list_pictures(*media)
    pictures = gallery if part == "pictures" else gallery[:_MAX_IMAGES]
    own_sources = [
        origin["source"] for origin in product.get("provenance", {}).values() if origin.get("reason") == "own"
    ]
    objects = [product["id"], *product.get("merged_from", ()), *(offer["id"] for offer in offer_page.items)]
    objects += [variant["id"], *variant.get("merged_from", ())] if variant else []
    return page.render(
        "catalogue/product.html",
        editor=await read_editor(page, objects, is_own=shows_origins),
        image_origins=page.console.object_origins,
        product=product,
        title=find_title(product),
        category=categories.category_by_id().get(product["data"].get("category", "")),
        images=pictures,
        image_count=len(gallery),
        missing_image_count=count_missing_pictures(*media),
        variant=variant,
        variant_title=format_variant_title(variant) if variant else "",
        variant_page=variant_page,
        rows=[
            (item, format_variant_title(item), summarise_offers(item["offers"]))
            for item in map(msgspec.json.decode, variant_page.items)
        ],
        offer_page=offer_page,
        offers=sorted(offer_page.items, key=lambda item: (names.get(item["source"], item["source"]), item["location"])),
        has_selected_offer=bool(selected_offers),
        cheapest_offers=find_cheapest_offers(list_current_offers(offers)),
        source_names=names,
        # An unmerged product comes from the source of its offers.
        own_source=next(iter((*own_sources, *(offer["source"] for offer in offers))), ""),
        shows_all_fields=part == "fields",
        is_own=is_own,
        shows_origins=shows_origins,
        history=await _read_history(page, product, offer_page.items, names)
        if part == "history" and offers and shows_origins
        else None,
        origin=await _find_origin_rows(page, variant) if part == "origin" and variant and shows_origins else None,
    )


async def _read_product(page: PageContext, view: str) -> tuple[dict[str, Any], list[msgspec.Raw]]:
    """Return a product with the fields of the view, without its variants, and the variants as undecoded JSON."""
    # A page shows only a few of possibly thousands of variants (ADR 73).
    body = await page.api.get_bytes(f"/v1/products/{page.path_parameters['id']}")
    if view != OWN_VIEW:
        body = hide_offer_fields(body, HIDDEN_FIELDS_BY_VIEW[view])
    parts = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
    variants = msgspec.json.decode(parts.pop("variants"), type=list[msgspec.Raw])
    return {name: msgspec.json.decode(part) for name, part in parts.items()}, variants


def _find_variant_index(variants: Sequence[msgspec.Raw], id: str) -> int:
    """Return the index of the variant with an ID, or of the variant into which it was merged; 0 if there is neither."""
    for index, raw in enumerate(variants if id else ()):
        if id.encode() in bytes(raw):
            variant = msgspec.json.decode(raw)
            if id in (variant["id"], *variant.get("merged_from", ())):
                return index
    return 0


def format_variant_title(variant: Json) -> str:
    """Return the title of a variant.

    The title of an untitled variant is the first available of its options, its SKU, the vendor's ID and its ID.
    """
    data = variant["data"]
    axes = " / ".join(map(str, data.get("axes", {}).values()))
    return data.get("title") or axes or data.get("sku") or variant.get("external_id") or variant["id"]


class NamedItem(NamedTuple):
    """Product or variant in a list: the product's ID and title, the variant's title (empty for a product), and a picture."""

    product: str
    title: str
    variant_title: str
    picture: Picture | None


class _NamedProduct(msgspec.Struct):
    """Part of a product's JSON that names it, with its variants undecoded, since products can have thousands of offers."""

    id: str
    data: dict[str, Any]
    variants: msgspec.Raw
    external_id: str | None = None


class _NamedVariant(msgspec.Struct):
    """Part of a variant's JSON that names it."""

    id: str
    data: dict[str, Any]
    external_id: str | None = None


_DECODE_PRODUCT = msgspec.json.Decoder(_NamedProduct).decode
_DECODE_VARIANTS = msgspec.json.Decoder(list[_NamedVariant]).decode


async def find_named_items(page: PageContext, ids: Iterable[str | None]) -> dict[str, NamedItem]:
    """Return titles and pictures of products and variants by ID. IDs of other and of merged objects are omitted.

    Args:
        page: The context.
        ids: At most 100 IDs.
    """
    wanted, items = {id for id in ids if id}, dict[str, NamedItem]()
    products, variants = (sorted(id for id in wanted if id.startswith(prefix)) for prefix in ("prod_", "var_"))
    filters = [ProductFilter(id=products)] if products else []
    filters += [ProductFilter(variant=variants)] if variants else []
    async with page.open_read_transaction() as tx:
        service = page.get_service("catalogue")
        results = [await service.list_products(tx, filter, PageRequest(100)) for filter in filters]
    for product in (_DECODE_PRODUCT(document.body) for found in results for document in found.items):
        id, title, media = product.id, find_title(msgspec.structs.asdict(product)), product.data.get("media", ())
        items[id] = NamedItem(id, title, "", next(iter(list_pictures(media)), None))
        for variant in _DECODE_VARIANTS(product.variants) if variants else ():
            if variant.id in wanted:
                picture = next(iter(list_pictures(variant.data.get("media", ()), media)), None)
                variant_title = format_variant_title(msgspec.structs.asdict(variant))
                items[variant.id] = NamedItem(id, title, variant_title, picture)
    return {id: item for id, item in items.items() if id in wanted}


async def _read_history(page: PageContext, product: Json, offers: Sequence[Json], names: Mapping[str, str]) -> Json:
    """Return the template variables of the price and stock history of offers.

    Args:
        page: The context.
        product: The product of the offers.
        offers: The offers.
        names: The names of the sources by ID.
    """
    ids = [product["id"], *product.get("merged_from", ())]
    found = await page.get_service("changes").changes.find_product_history(page.principal.tenant, ids)
    has_locations = len({offer["location"] for offer in offers}) > 1
    name_by_offer = {
        offer["id"]: names.get(offer["source"], gettext("Source"))[:80]
        + (f", {offer['location']}" if has_locations else "")
        for offer in offers
    }
    return build_offer_history(offers, found.events, name_by_offer, page.dependencies[Clock].now()) | {
        "is_complete": found.is_complete
    }


async def _find_origin_rows(page: PageContext, variant: Json) -> Json:
    """Find the rows of a variant in the stored file of the last successful run of the source in the query string.

    Returns:
        Template variables `source`, `run`, `rows` and `reason`. `rows` contains the rows of the product if the variant has
        none. `reason` is the text that is shown if `rows` is empty.
    """
    source = page.query["source"]
    page.require_scope("sources:read")
    offers = (await page.api.get("/v1/offers", variant=variant["id"], source=source, limit=100))["data"]
    variant_keys = {
        offer[name] for offer in offers for name in ("variant_external_id", "variant_sku") if offer.get(name)
    }
    product_keys = {offer["product_external_id"] for offer in offers if offer.get("product_external_id")}
    empty: Json = {"source": source, "run": None, "rows": ListPortion.from_items((), 0, 0)}
    if not variant_keys and not product_keys:
        return {**empty, "reason": gettext("This source does not offer the variant.")}
    try:
        found = await page.console.origin_finder.find_rows(page.principal.tenant, source, variant_keys | product_keys)
    except Unprocessable as error:
        return {**empty, "reason": error.detail}
    rows = [row for row in found.search_result.rows if any(text in variant_keys for _, text in row.cells)] or list(
        found.search_result.rows
    )
    searched_count = found.search_result.searched_rows
    reason = ngettext(
        "The variant was not found in the first row of the file. Later rows are not searched.",
        "The variant was not found in the first %(count)s rows of the file. Later rows are not searched.",
        searched_count,
        count=format_number(searched_count),
    )
    return {
        "source": source,
        "run": found.run.id,
        "rows": ListPortion.from_items(rows, page.query.get_number("row"), 1),
        "reason": reason,
    }


@pages.register_get("/pictures/<id>", section=None)
async def redirect_to_image(page: PageContext) -> Response:
    """Redirect to an image's smallest rendition of sufficient width, or to the image itself if none is wide enough.

    The query parameter `w` is the minimum width in pixels, by default 1600.
    """
    media = await page.api.get(f"/v1/media/{page.path_parameters['id']}")
    min_width = page.query.get_number("w") or 1600
    links = (rendition["url"] for rendition in media["renditions"] if rendition["width"] >= min_width)
    link = next(links, media["download"]["url"])
    cache_control = b"private, max-age=600"  # links are valid for almost 15 minutes
    return Response(302, [(b"location", link.encode("ascii", "ignore")), (b"cache-control", cache_control)])
