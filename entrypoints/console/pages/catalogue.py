"""Pages of the catalogue: product search, a product with its offers and their history, and images."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from adapters.api_json.catalogue import hide_offer_fields
from domain.catalogue import categories, search_terms
from domain.catalogue.completions import Completions, complete_query
from domain.catalogue.filter_counts import FilterCounts
from domain.catalogue.licences import HIDDEN_FIELDS_BY_VIEW, NETWORK_VIEW, OWN_VIEW
from domain.catalogue.model import ProductFilter
from domain.kernel.errors import DomainError, NotFound, Unprocessable
from domain.orgs.model import VENDOR
from entrypoints.console.charts import build_offer_history
from entrypoints.console.context import OperationRefused, PageContext, Pages
from entrypoints.console.pages.sources import find_source_names
from entrypoints.console.products import find_price, find_title, list_picture_origins, list_pictures, summarise_offers
from entrypoints.console.rendering import ListPortion, format_number
from entrypoints.console.translation import N_, gettext, ngettext
from entrypoints.http.exchange import Response
from ports.clock import Clock

Json = Mapping[str, Any]
_FILTERS = ("brand", "category", "availability", "status", "source")
_EMPTY_PAGE: Final[Json] = {"data": [], "has_more": False, "next_cursor": None}
_INCREMENTAL_PAGE_SIZE = 12
"""Page size of the product list while the person types a search query. Otherwise, the page size is twice as large."""
_VARIANTS_PER_PAGE = 20
_OFFERS_PER_PAGE = 8
"""Maximum number of offers that a product's page shows side by side."""
_MAX_IMAGES = 9
"""Maximum number of images that a product's page shows until the person requests all."""

pages = Pages("/console", section=N_("Catalogue"), scope="products:read")


@pages.register_get("/catalogue", title=N_("Products"))
async def list_products(page: PageContext) -> Response:
    """Show the list of products, or only the element of the page that htmx requests."""
    filters, partial = page.query.select("q", *_FILTERS, "cursor"), page.request.element_id
    q = filters.get("q", "")
    if max(len(search_terms.normalise_code(q)), len(q)) < 2:
        filters.pop("q", None)
    found, counts, completions, names = _EMPTY_PAGE, None, list[str](), dict[str, str]()
    if partial != "filters":
        try:
            found, completions = await _find_products(page, filters)
        except OperationRefused as error:
            if error.status != 400:
                raise
            page.refused = error
    if partial != "results":
        counts, names = await asyncio.gather(_count_filters(page, filters), find_source_names(page))
    rows = []
    for product in found["data"]:
        offers = [offer for variant in product["variants"] for offer in variant["offers"]]
        picture = next(iter(list_pictures(*product["data"].get("media", ()))), None)
        rows.append((product, find_title(product), picture, summarise_offers(offers)))
    return page.render(
        "catalogue/products.html",
        status=200,
        image_origins=(*list_picture_origins(picture for _, _, picture, _ in rows), *page.console.object_origins),
        results=found,
        rows=rows,
        completions=completions,
        filters=filters,
        active_filters={name: value for name, value in filters.items() if name != "cursor"},
        counts=counts,
        source_names=names,
        categories=categories.category_by_id(),
        is_filtered=any(name in filters for name in ("q", *_FILTERS)),
    )


async def _find_products(page: PageContext, parameters: Mapping[str, str]) -> tuple[Json, list[str]]:
    """Return a page of products, and completions of the search query.

    If the page is not full, it also contains products that match a completion of the query's last word.
    """
    filters = {name: value for name, value in parameters.items() if name != "cursor"}
    cursor, q = parameters.get("cursor"), parameters.get("q", "")
    limit = (
        _INCREMENTAL_PAGE_SIZE if page.request.element_id == "results" and not cursor else 2 * _INCREMENTAL_PAGE_SIZE
    )
    found = await page.api.get("/v1/products", limit=limit, starting_after=cursor, **filters)
    if not q or found["has_more"] or cursor:
        return found, []
    async with page.open_read_transaction() as tx:
        completions: Completions = await page.get_service("catalogue").find_completions(tx, q)
    queries = list(complete_query(q, completions))
    further_queries: list[dict[str, Any]] = [{"q": query} for query in queries[:2]]
    if completions.variants:
        further_queries.insert(0, {"variant": ",".join(completions.variants), "q": None})
    product_by_id = {product["id"]: product for product in found["data"]}
    for further_query in further_queries:
        if len(product_by_id) < limit:
            further_page = await page.api.get("/v1/products", limit=limit, **filters | further_query)
            product_by_id |= {
                product["id"]: product for product in further_page["data"] if product["id"] not in product_by_id
            }
    return {**_EMPTY_PAGE, "data": list(product_by_id.values())[:limit]}, queries


async def _count_filters(page: PageContext, query: Mapping[str, str]) -> FilterCounts | None:
    """Count the products that match the search by value of each filter; None if the search is invalid.

    If no product matches, those that match the first completion of the query are counted.
    """
    filters: dict[str, Any] = {name: query[name] for name in ("q", *_FILTERS) if name in query}
    catalogue = page.get_service("catalogue")
    try:
        async with page.open_read_transaction() as tx:
            found: FilterCounts = await catalogue.count_filter_values(tx, ProductFilter(**filters))
            q = filters.get("q", "")
            if not found.counted_products and (queries := complete_query(q, await catalogue.find_completions(tx, q))):
                found = await catalogue.count_filter_values(tx, ProductFilter(**filters | {"q": queries[0]}))
    except DomainError:
        return None  # the list shows the error
    return found


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
    variant_index = _find_variant_index(variants, query["variant"])
    variant = msgspec.json.decode(variants[variant_index]) if variants else None
    offers = variant["offers"] if variant else []
    selected_offers = [offer for offer in offers if offer["id"] == query["offer"]]
    newest = sorted(offers, key=lambda offer: offer["observed_at"], reverse=True)
    offer_page = ListPortion.from_items(selected_offers or newest, query.get_number("offers"), _OFFERS_PER_PAGE)
    start = query.get_number("variants")
    start = variant_index - variant_index % _VARIANTS_PER_PAGE if start is None else start
    variant_page = ListPortion.from_items(variants, start, _VARIANTS_PER_PAGE)
    gallery = list_pictures(*(variant["data"].get("media", ()) if variant else ()), *product["data"].get("media", ()))
    pictures = gallery if part == "pictures" else gallery[:_MAX_IMAGES]
    # The lowest price is marked when several sources offer.
    lowest = summarise_offers(offers).price if len({offer["source"] for offer in offers}) > 1 else None
    own_sources = [
        origin["source"] for origin in product.get("provenance", {}).values() if origin.get("reason") == "own"
    ]
    return page.render(
        "catalogue/product.html",
        image_origins=(*list_picture_origins(pictures), *page.console.object_origins),
        product=product,
        title=find_title(product),
        category=categories.category_by_id().get(product["data"].get("category", "")),
        images=pictures,
        image_count=len(gallery),
        variant=variant,
        variant_title=_format_variant_title(variant) if variant else "",
        variant_page=variant_page,
        rows=[
            (item, _format_variant_title(item), summarise_offers(item["offers"]))
            for item in map(msgspec.json.decode, variant_page.items)
        ],
        offer_page=offer_page,
        offers=sorted(offer_page.items, key=lambda item: (names.get(item["source"], item["source"]), item["location"])),
        has_selected_offer=bool(selected_offers),
        cheapest_offers={offer["id"] for offer in offer_page.items if lowest and find_price(offer) == lowest[0]},
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


def _format_variant_title(variant: Json) -> str:
    """Return the title of a variant.

    The title of an untitled variant is the first available of its options, its SKU, the vendor's ID and its ID.
    """
    data = variant["data"]
    axes = " / ".join(map(str, data.get("axes", {}).values()))
    return data.get("title") or axes or data.get("sku") or variant.get("external_id") or variant["id"]


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
