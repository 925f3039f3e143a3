"""One product: pictures, variants, the offers of all sources side by side, what became of price and stock, where fields come from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from domain.catalogue import categories
from domain.ingestion.reading import FoundRow
from domain.kernel.errors import Unprocessable
from entrypoints.console.large_product import LargeProduct
from entrypoints.console.page import Answer, Page
from entrypoints.console.portions import Portion, portion, shortened, weight_of
from entrypoints.console.product_facts import Fact, facts_of, plain_facts
from entrypoints.console.product_history import OfferHistory, history_of
from entrypoints.console.product_lines import (
    Picture,
    Span,
    asked_of,
    best_availability,
    origins_of,
    pictures_of,
    quantity_of,
    span_of,
    title_of,
)
from entrypoints.console.source_fields import source_names
from entrypoints.console.visit import Visit

Json = Mapping[str, Any]
_AMOUNTS: Final = (("price", "Price"), ("compare_at", "Compare at"), ("msrp", "MSRP"), ("map", "MAP"), ("cost", "Cost"))
_MOST_OFFERS: Final = 8
"""Offers side by side, those first that were observed last."""
_VARIANTS: Final = 20
"""Variants that are listed at once."""
_NAME: Final = 80
"""Bytes of a source's name beside each change of a history."""
_PICTURES: Final = 9
"""Pictures that are shown before one asks for the others."""
_PICTURE: Final = 400
"""Bytes of a page that a picture takes beside its addresses and words."""
_ARRIVALS: Final = 3
"""Deliveries on their way that are told of an offer beside others."""
_WHOLE: Final = 8_000
"""Bytes of a page that it may fill where fields are asked for."""
_TEXT: Final = 20_000
"""Bytes of a page that a description may fill there."""
_CELLS: Final = 12_000
"""Bytes of a page that the cells of a row may fill."""
_VALUE: Final = 300
"""Bytes of a page that a value may fill beside others."""


@dataclass(frozen=True, slots=True)
class VariantRow:
    """A variant in the product's table."""

    id: str
    name: str
    sku: str
    status: str
    price: Span | None
    availability: str | None
    quantity: int | None
    chosen: bool


@dataclass(frozen=True, slots=True)
class OfferColumn:
    """An offer beside others: `amounts` by name, `best`: nobody asks less."""

    offer: Json
    source: str
    location: str
    best: bool
    amounts: Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class OriginShown:
    """Rows of a source's feed as they are shown, one by one with as many of its cells as there is room for, or why there are none."""

    source: str
    run: str | None
    rows: Portion[FoundRow]
    cells: Portion[tuple[str, str]]
    why: str


_NO_ROWS: Final[Portion[Any]] = Portion((), 0, 0)


async def product(visit: Visit) -> Answer:
    """The page, or the part of it that htmx asks for."""
    found = LargeProduct(await visit.api.body(f"/v1/products/{visit.ids['id']}"))
    shown, names = found.data, await source_names(visit)
    place = found.place(visit.query["variant"])
    variant = found.variant(place) if place is not None else None
    offers = list(variant["offers"]) if variant else []
    part = visit.asked.partial or visit.query["part"]
    now = visit.dependencies.clock.now()
    listed = _offers(visit, offers)
    history = await _history(visit, shown, listed["offers"].items, names, now) if part == "history" and offers else None
    origin = await _origin(visit, variant) if part == "origin" and variant else None
    own_source = _own_source(shown, variant)
    whole = part == "fields"
    return visit.render(
        "catalogue/product.html",
        **_gallery(visit, shown, variant, every=part == "pictures"),
        **_variants(visit, found, place),
        **listed,
        product=shown,
        title=title_of(shown),
        category=categories.everything().get(shown["data"].get("category", "")),
        variant=variant,
        columns=_columns(listed["offers"].items, offers, names),
        amounts=[(name, title) for name, title in _AMOUNTS if any(offer.get(name) is not None for offer in offers)],
        product_facts=_facts(shown, whole=whole),
        variant_facts=_facts(variant, whole=whole) if variant else [],
        origins=_origins(shown, variant, own_source, names),
        room=_WHOLE if whole else _VALUE,
        text_room=_TEXT if whole else _WHOLE // 2,
        whole=whole,
        history=history,
        origin=origin,
        feeds=_feeds(listed["offers"].items, names) if visit.may("sources:read") else [],
        names=names,
        variant_name=variant_name,
        own_source=own_source,
    )


def _facts(thing: Json, *, whole: bool) -> list[tuple[str, str]]:
    """The fields of a list of facts; where all of a field is asked for, it is told with its origin."""
    return [] if whole else [(name, shortened(value, _VALUE)) for name, value in plain_facts(thing)]


def _gallery(visit: Visit, product: Json, variant: Json | None, *, every: bool) -> dict[str, Any]:
    """The pictures that are shown, how many there are, and the servers that they come from."""
    found = pictures_of([*(variant or {"data": {}})["data"].get("media", ()), *product["data"].get("media", ())])
    gallery = list({picture.large: picture for picture in found}.values())
    start, most = (visit.query.number("pictures"), len(gallery)) if every else (None, _PICTURES)
    shown = portion(gallery, start, most, _picture_weight)
    return {
        "gallery": shown.items,
        "shown_pictures": shown,
        "every_picture": every,
        "pictures": (*origins_of(shown.items), *visit.console.object_origins),
    }


def _picture_weight(picture: Picture) -> int:
    return 2 * (weight_of(picture.large) + weight_of(picture.small)) + min(120, weight_of(picture.alt)) + _PICTURE


def _variants(visit: Visit, product: LargeProduct, place: int | None) -> dict[str, Any]:
    """The portion of the variants that is asked for, or in which the chosen one stands."""
    start = visit.query.number("variants")
    if start is None and place is not None:
        start = place - place % _VARIANTS
    listed = portion(range(product.count), start, _VARIANTS)
    rows = [_row(product.variant(at), chosen=at == place) for at in listed.items]
    return {"listed": listed, "variants": rows, "variant_count": product.count}


def _offers(visit: Visit, offers: Sequence[Json]) -> dict[str, Any]:
    """The portion of a variant's offers that stands side by side; of one that is asked for alone, everything is told."""
    alone = [offer for offer in offers if offer["id"] == visit.query["offer"]]
    newest = sorted(offers, key=lambda offer: offer["observed_at"], reverse=True)
    shown = portion(alone or newest, visit.query.number("offers"), _MOST_OFFERS)
    return {"offers": shown, "alone": bool(alone), "arrivals": None if alone else _ARRIVALS}


def _own_source(product: Json, variant: Json | None) -> str:
    """The source that an unmerged product comes from: that of its offers."""
    told = [origin["source"] for origin in product.get("provenance", {}).values() if origin.get("reason") == "own"]
    offered = [offer["source"] for offer in variant["offers"]] if variant else []
    return next(iter((*told, *offered)), "")


def variant_name(variant: Json) -> str:
    """What to call a variant: its title, else what sets it apart, else the id its source knows it by."""
    data = variant["data"]
    axes = " / ".join(str(value) for value in data.get("axes", {}).values())
    return data.get("title") or axes or data.get("sku") or variant.get("external_id") or variant["id"]


def _row(variant: Json, *, chosen: bool) -> VariantRow:
    offers = [offer for offer in variant["offers"] if not offer.get("withdrawn_at")]
    return VariantRow(
        id=variant["id"],
        name=variant_name(variant),
        sku=variant["data"].get("sku", ""),
        status=variant["status"],
        price=span_of(map(asked_of, offers)),
        availability=best_availability(offers),
        quantity=quantity_of(offers),
        chosen=chosen,
    )


def _columns(some: Sequence[Json], offers: Sequence[Json], names: Mapping[str, str]) -> list[OfferColumn]:
    """Some of a variant's offers beside each other; which one asks least is decided among all of them."""
    shown = sorted(some, key=lambda offer: (names.get(offer["source"], offer["source"]), offer["location"]))
    lowest = span_of(asked_of(offer) for offer in offers if not offer.get("withdrawn_at"))
    several = len({offer["source"] for offer in offers}) > 1
    found = []
    for offer in shown:
        asked = asked_of(offer)
        best = several and lowest is not None and asked == lowest.low and not offer.get("withdrawn_at")
        amounts = {
            name: {"amount": offer[name], "currency": offer.get("currency", "")}
            for name, _ in _AMOUNTS
            if offer.get(name) is not None
        }
        found.append(OfferColumn(offer, names.get(offer["source"], offer["source"]), offer["location"], best, amounts))
    return found


def _origins(
    product: Json, variant: Json | None, own_source: str, names: Mapping[str, str]
) -> list[tuple[str, list[Fact]]]:
    found = [("Product", facts_of(product, own_source, names))]
    if variant is not None:
        own = next((offer["source"] for offer in variant["offers"]), own_source)
        found.append(
            (
                f"Variant {variant_name(variant)}",
                facts_of(variant, own if not variant.get("provenance") else own_source, names),
            )
        )
    return found


async def _history(
    visit: Visit, product: Json, offers: Sequence[Json], names: Mapping[str, str], now: datetime
) -> OfferHistory:
    ids = [product["id"], *product.get("merged_from", ())]
    told = await visit.service("changes").changes.history(visit.principal.tenant, ids)
    several = len({offer["location"] for offer in offers}) > 1
    called = {
        offer["id"]: shortened(names.get(offer["source"], "Source"), _NAME)
        + (f", {offer['location']}" if several else "")
        for offer in offers
    }
    return history_of(offers, told.events, called, now, whole=told.whole)


def _feeds(offers: Sequence[Json], names: Mapping[str, str]) -> list[tuple[str, str]]:
    """The sources of some offers that are the organisation's own: id and name, each once."""
    return [(source, names[source]) for source in dict.fromkeys(offer["source"] for offer in offers) if source in names]


async def _origin(visit: Visit, variant: Json) -> OriginShown:
    """The rows of one source's newest feed that name the variant, or else its product."""
    source = visit.query["source"]
    visit.needs("sources:read")
    lines = (await visit.api.get("/v1/offers", variant=variant["id"], source=source, limit=100))["data"]
    own = {line[name] for line in lines for name in ("variant_external_id", "variant_sku") if line.get(name)}
    product = {line["product_external_id"] for line in lines if line.get("product_external_id")}
    if not own and not product:
        return OriginShown(source, None, _NO_ROWS, _NO_ROWS, "This source does not offer the variant.")
    try:
        found = await visit.console.origins.find(visit.principal.tenant, source, own | product)
    except Unprocessable as error:
        return OriginShown(source, None, _NO_ROWS, _NO_ROWS, error.detail)
    rows = [row for row in found.found.rows if any(text in own for _, text in row.cells)] or list(found.found.rows)
    why = "" if rows else f"No row among the {found.found.looked:,} looked at names it."
    row = portion(rows, visit.query.number("row"), 1)
    told = [(header, text) for one in row.items for header, text in one.cells if text]
    cells = portion(told, visit.query.number("cells"), len(told), lambda cell: sum(map(weight_of, cell)) + 40, _CELLS)
    return OriginShown(source, found.run.id, row, cells, why)


PAGES: Final = (Page("/console/catalogue/<id>", product, scope="products:read", menu="Catalogue"),)
