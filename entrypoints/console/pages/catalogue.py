"""The catalogue: search of products, a product with its offers and their history, and pictures."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from domain.catalogue import categories, search
from domain.catalogue.completions import Completions, grown
from domain.catalogue.filter_counts import FilterCounts
from domain.catalogue.model import ProductFilter
from domain.kernel.errors import DomainError, Unprocessable
from entrypoints.console.charts import history_of
from entrypoints.console.context import PageContext, Pages, Refused
from entrypoints.console.pages.sources import source_names
from entrypoints.console.products import amount_of, offered, origins_of, pictures_of, title_of
from entrypoints.console.rendering import Portion, number
from entrypoints.console.translation import N_, gettext, ngettext
from entrypoints.http.exchange import Response
from ports.clock import Clock

Json = Mapping[str, Any]
_FILTERS = ("brand", "category", "availability", "status", "source")
_NOTHING: Final[Json] = {"data": [], "has_more": False, "next_cursor": None}
_TYPED = 12
"""Products in the reply to a key press; a whole page has twice as many."""
_VARIANTS = 20
_OFFERS = 8
"""Offers side by side, the most recently observed first."""
_PICTURES = 9

pages = Pages("/console", section=N_("Catalogue"), scope="products:read")


@pages.get("/catalogue", title=N_("Products"))
async def list_products(page: PageContext) -> Response:
    """Show the list of products, or the part that htmx requests."""
    given, partial = page.query.given("q", *_FILTERS, "cursor"), page.request.partial
    q = given.get("q", "")
    if max(len(search.code(q)), len(q)) < 2:
        given.pop("q", None)
    found, counts, further, names = _NOTHING, None, list[str](), dict[str, str]()
    if partial != "filters":
        try:
            found, further = await _find(page, given)
        except Refused as error:
            if error.status != 400:
                raise
            page.refused = error
    if partial != "results":
        counts, names = await asyncio.gather(_counts(page, given), source_names(page))
    rows = []
    for product in found["data"]:
        offers = [offer for variant in product["variants"] for offer in variant["offers"]]
        picture = next(iter(pictures_of(*product["data"].get("media", ()))), None)
        rows.append((product, title_of(product), picture, offered(offers)))
    return page.render(
        "catalogue/products.html",
        status=200,
        pictures=(*origins_of(picture for _, _, picture, _ in rows), *page.console.object_origins),
        found=found,
        rows=rows,
        further=further,
        given=given,
        kept={name: value for name, value in given.items() if name != "cursor"},
        counts=counts,
        names=names,
        categories=categories.everything(),
        filtered=any(name in given for name in ("q", *_FILTERS)),
    )


async def _find(page: PageContext, given: Mapping[str, str]) -> tuple[Json, list[str]]:
    """Find products; fill an incomplete page with the completions of the last word of the query."""
    filters = {name: value for name, value in given.items() if name != "cursor"}
    cursor, q = given.get("cursor"), given.get("q", "")
    limit = _TYPED if page.request.partial == "results" and not cursor else 2 * _TYPED
    found = await page.api.get("/v1/products", limit=limit, starting_after=cursor, **filters)
    if not q or found["has_more"] or cursor:
        return found, []
    async with page.read() as tx:
        completions: Completions = await page.service("catalogue").completions(tx, q)
    queries = list(grown(q, completions))
    more: list[dict[str, Any]] = [{"q": query} for query in queries[:2]]
    if completions.variants:
        more.insert(0, {"variant": ",".join(completions.variants), "q": None})
    kept = {product["id"]: product for product in found["data"]}
    for other in more:
        if len(kept) < limit:
            others = await page.api.get("/v1/products", limit=limit, **filters | other)
            kept |= {product["id"]: product for product in others["data"] if product["id"] not in kept}
    return {**_NOTHING, "data": list(kept.values())[:limit]}, queries


async def _counts(page: PageContext, given: Mapping[str, str]) -> FilterCounts | None:
    filters: dict[str, Any] = {name: given[name] for name in ("q", *_FILTERS) if name in given}
    catalogue = page.service("catalogue")
    try:
        async with page.read() as tx:
            found: FilterCounts = await catalogue.filter_counts(tx, ProductFilter(**filters))
            q = filters.get("q", "")
            if not found.looked and (queries := grown(q, await catalogue.completions(tx, q))):
                found = await catalogue.filter_counts(tx, ProductFilter(**filters | {"q": queries[0]}))
    except DomainError:
        return None  # the list shows the error
    return found


@pages.get("/catalogue/<id>")
async def show_product(page: PageContext) -> Response:
    """Show a product, or the part of its page that htmx requests."""
    product, variants = await _product(page)
    part, query, names = page.request.partial or page.query["part"], page.query, await source_names(page)
    at = _variant_index(variants, query["variant"])
    variant = msgspec.json.decode(variants[at]) if variants else None
    offers = variant["offers"] if variant else []
    alone = [offer for offer in offers if offer["id"] == query["offer"]]
    newest = sorted(offers, key=lambda offer: offer["observed_at"], reverse=True)
    beside = Portion.of(alone or newest, query.number("offers"), _OFFERS)
    start = query.number("variants")
    listed = Portion.of(variants, at - at % _VARIANTS if start is None else start, _VARIANTS)
    gallery = pictures_of(*(variant["data"].get("media", ()) if variant else ()), *product["data"].get("media", ()))
    pictures = gallery if part == "pictures" else gallery[:_PICTURES]
    # The lowest price is marked when several sources offer.
    lowest = offered(offers).price if len({offer["source"] for offer in offers}) > 1 else None
    own = [origin["source"] for origin in product.get("provenance", {}).values() if origin.get("reason") == "own"]
    return page.render(
        "catalogue/product.html",
        pictures=(*origins_of(pictures), *page.console.object_origins),
        product=product,
        title=title_of(product),
        category=categories.everything().get(product["data"].get("category", "")),
        gallery=pictures,
        picture_count=len(gallery),
        variant=variant,
        variant_title=_variant_title(variant) if variant else "",
        listed=listed,
        rows=[(one, _variant_title(one), offered(one["offers"])) for one in map(msgspec.json.decode, listed.items)],
        beside=beside,
        columns=sorted(beside.items, key=lambda one: (names.get(one["source"], one["source"]), one["location"])),
        alone=bool(alone),
        best={offer["id"] for offer in beside.items if lowest and amount_of(offer) == lowest[0]},
        names=names,
        # An unmerged product comes from the source of its offers.
        own_source=next(iter((*own, *(offer["source"] for offer in offers))), ""),
        whole=part == "fields",
        history=await _history(page, product, beside.items, names) if part == "history" and offers else None,
        origin=await _origin(page, variant) if part == "origin" and variant else None,
    )


async def _product(page: PageContext) -> tuple[dict[str, Any], list[msgspec.Raw]]:
    """Return a product and its undecoded variants; a page shows a few of possibly thousands (ADR 73)."""
    body = await page.api.body(f"/v1/products/{page.ids['id']}")
    parts = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
    variants = msgspec.json.decode(parts.pop("variants"), type=list[msgspec.Raw])
    return {name: msgspec.json.decode(part) for name, part in parts.items()}, variants


def _variant_index(variants: Sequence[msgspec.Raw], id: str) -> int:
    """Return the index of the variant with the ID or of its merge target; 0 if neither exists."""
    for at, raw in enumerate(variants if id else ()):
        if id.encode() in bytes(raw):
            variant = msgspec.json.decode(raw)
            if id in (variant["id"], *variant.get("merged_from", ())):
                return at
    return 0


def _variant_title(variant: Json) -> str:
    """Return the title of a variant, else its options, SKU, vendor ID or ID."""
    data = variant["data"]
    axes = " / ".join(map(str, data.get("axes", {}).values()))
    return data.get("title") or axes or data.get("sku") or variant.get("external_id") or variant["id"]


async def _history(page: PageContext, product: Json, offers: Sequence[Json], names: Mapping[str, str]) -> Json:
    ids = [product["id"], *product.get("merged_from", ())]
    found = await page.service("changes").changes.history(page.principal.tenant, ids)
    several = len({offer["location"] for offer in offers}) > 1
    called = {
        offer["id"]: names.get(offer["source"], gettext("Source"))[:80] + (f", {offer['location']}" if several else "")
        for offer in offers
    }
    return history_of(offers, found.events, called, page.dependencies[Clock].now()) | {"whole": found.whole}


async def _origin(page: PageContext, variant: Json) -> Json:
    """Return the rows of a source's newest feed for the variant or else its product, or the reason for their absence."""
    source = page.query["source"]
    page.needs("sources:read")
    offers = (await page.api.get("/v1/offers", variant=variant["id"], source=source, limit=100))["data"]
    own = {one[name] for one in offers for name in ("variant_external_id", "variant_sku") if one.get(name)}
    product = {one["product_external_id"] for one in offers if one.get("product_external_id")}
    nothing: Json = {"source": source, "run": None, "rows": Portion.of((), 0, 0)}
    if not own and not product:
        return {**nothing, "why": gettext("This source does not offer the variant.")}
    try:
        found = await page.console.origins.find(page.principal.tenant, source, own | product)
    except Unprocessable as error:
        return {**nothing, "why": error.detail}
    rows = [row for row in found.found.rows if any(text in own for _, text in row.cells)] or list(found.found.rows)
    looked = found.found.looked
    why = ngettext(
        "The variant is not in the first row of the file.",
        "The variant is not in the first %(count)s rows of the file.",
        looked,
        count=number(looked),
    )
    return {"source": source, "run": found.run.id, "rows": Portion.of(rows, page.query.number("row"), 1), "why": why}


@pages.get("/pictures/<id>", section=None)
async def show_picture(page: PageContext) -> Response:
    """Redirect to the smallest rendition of at least the width `w`, or the original, by a short-lived link."""
    media = await page.api.get(f"/v1/media/{page.ids['id']}")
    wanted = page.query.number("w") or 1600
    links = (one["url"] for one in media["renditions"] if one["width"] >= wanted)
    link = next(links, media["download"]["url"])
    kept = b"private, max-age=600"  # links are valid for almost 15 minutes
    return Response(302, [(b"location", link.encode("ascii", "ignore")), (b"cache-control", kept)])
