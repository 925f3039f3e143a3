"""One product: pictures, variants, the offers of all sources side by side, what became of price and stock, where fields come from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from domain.catalogue import categories
from domain.ingestion.reading import FoundRow
from domain.kernel.errors import Unprocessable
from entrypoints.console.page import Answer, Page
from entrypoints.console.product_facts import Fact, facts_of, plain_facts
from entrypoints.console.product_history import OfferHistory, history_of
from entrypoints.console.product_lines import (
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
_MOST_OFFERS: Final = 12
"""Offers side by side; of more, those that were observed last."""


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
    """Rows of a source's feed as they are shown, or why there are none."""

    source: str
    run: str | None
    rows: Sequence[FoundRow]
    why: str


async def product(visit: Visit) -> Answer:
    """The page, or the part of it that htmx asks for."""
    shown = await visit.api.get(f"/v1/products/{visit.ids['id']}")
    names = await source_names(visit)
    variant = _chosen(shown, visit.query["variant"])
    offers = list(variant["offers"]) if variant else []
    part = visit.asked.partial or visit.query["part"]
    now = visit.dependencies.clock.now()
    history = await _history(visit, shown, offers, names, now) if part == "history" and offers else None
    origin = await _origin(visit, variant) if part == "origin" and variant else None
    pictures = pictures_of([*(variant or {"data": {}})["data"].get("media", ()), *shown["data"].get("media", ())])
    own_source = _own_source(shown)
    return visit.render(
        "catalogue/product.html",
        pictures=(*origins_of(pictures), *visit.console.object_origins),
        product=shown,
        title=title_of(shown),
        category=categories.everything().get(shown["data"].get("category", "")),
        gallery=list({picture.large: picture for picture in pictures}.values()),
        variant=variant,
        variants=[_row(one, variant) for one in shown["variants"]],
        columns=_columns(offers, names),
        amounts=[(name, title) for name, title in _AMOUNTS if any(offer.get(name) is not None for offer in offers)],
        left_out=max(0, len(offers) - _MOST_OFFERS),
        product_facts=plain_facts(shown),
        variant_facts=plain_facts(variant) if variant else [],
        origins=_origins(shown, variant, own_source, names),
        history=history,
        origin=origin,
        feeds=_feeds(offers, names) if visit.may("sources:read") else [],
        names=names,
        own_source=own_source,
    )


def _chosen(product: Json, id: str) -> Json | None:
    variants = product["variants"]
    return next(
        (one for one in variants if one["id"] == id or id in one.get("merged_from", ())), next(iter(variants), None)
    )


def _own_source(product: Json) -> str:
    """The source that an unmerged product comes from: that of its offers."""
    provenance = product.get("provenance", {})
    told = [origin["source"] for origin in provenance.values() if origin.get("reason") == "own"]
    offered = [offer["source"] for variant in product["variants"] for offer in variant["offers"]]
    return next(iter((*told, *offered)), "")


def variant_name(variant: Json) -> str:
    """What to call a variant: its title, else what sets it apart, else the id its source knows it by."""
    data = variant["data"]
    axes = " / ".join(str(value) for value in data.get("axes", {}).values())
    return data.get("title") or axes or data.get("sku") or variant.get("external_id") or variant["id"]


def _row(variant: Json, chosen: Json | None) -> VariantRow:
    offers = [offer for offer in variant["offers"] if not offer.get("withdrawn_at")]
    return VariantRow(
        id=variant["id"],
        name=variant_name(variant),
        sku=variant["data"].get("sku", ""),
        status=variant["status"],
        price=span_of(map(asked_of, offers)),
        availability=best_availability(offers),
        quantity=quantity_of(offers),
        chosen=variant is chosen,
    )


def _columns(offers: Sequence[Json], names: Mapping[str, str]) -> list[OfferColumn]:
    newest = sorted(offers, key=lambda offer: offer["observed_at"], reverse=True)[:_MOST_OFFERS]
    shown = sorted(newest, key=lambda offer: (names.get(offer["source"], offer["source"]), offer["location"]))
    lowest = span_of(asked_of(offer) for offer in shown if not offer.get("withdrawn_at"))
    several = len({offer["source"] for offer in shown}) > 1
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
        offer["id"]: names.get(offer["source"], "Source") + (f", {offer['location']}" if several else "")
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
        return OriginShown(source, None, (), "This source does not offer the variant.")
    try:
        found = await visit.console.origins.find(visit.principal.tenant, source, own | product)
    except Unprocessable as error:
        return OriginShown(source, None, (), error.detail)
    rows = [row for row in found.found.rows if any(text in own for _, text in row.cells)] or list(found.found.rows)
    why = "" if rows else f"No row among the {found.found.looked:,} looked at names it."
    return OriginShown(source, found.run.id, rows, why)


PAGES: Final = (Page("/console/catalogue/<id>", product, scope="products:read", menu="Catalogue"),)
