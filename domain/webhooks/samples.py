"""Made-up events of real shape, for trying out receivers in test mode (docs/conventions.md#event-types)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from domain.catalogue import categories, differences
from domain.events.model import TYPES, Changed, Event, FieldChange, Provenance
from domain.kernel.ids import new_id

TYPES_WITH_SAMPLE: Final = tuple(sorted(name for name, entry in TYPES.items() if entry.sample))

_PRODUCT: Final[Mapping[str, Any]] = {
    "title": "Halden dining table",
    "brand": "Lindgren",
    "collection": "Halden",
    "description": "Solid oak table with a hand-oiled top; seats six.",
    "tags": ["oak", "dining"],
    "features": ["Hand-oiled top", "Levelling feet"],
    "compliance": {"tsca_title_vi": True, "country_of_origin": "SE"},
}
_VARIANT: Final[Mapping[str, Any]] = {
    "sku": "LM-1001-OAK",
    "gtin": "07312345678909",
    "title": "Halden dining table, oak, 72 in",
    "axes": {"finish": "Oak"},
    "finish": "Oak",
    "materials": ["oak"],
    "dimensions": {
        "width": {"hundredths_in": 7200, "given": {"value": 72, "unit": "in"}},
        "depth": {"hundredths_in": 3600, "given": {"value": 36, "unit": "in"}},
        "height": {"hundredths_in": 2953, "given": {"value": 750, "unit": "mm"}},
    },
    "weight": {"hundredths_lb": 13200, "given": {"value": 132, "unit": "lb"}},
    "assembly_required": True,
}
_OFFER: Final[Mapping[str, Any]] = {
    "currency": "usd",
    "cost": 64900,
    "msrp": 149900,
    "price": 129900,
    "quantity": 14,
    "availability": "in_stock",
    "lead_time_days": 5,
}


@dataclass(frozen=True, slots=True)
class _Scene:
    """The made-up things that one sample is about."""

    catalogue: str
    source: str
    run: str
    product: str
    variant: str
    provenance: Provenance

    def catalogue_event(self, type: str, subject: str, version: int, data: Mapping[str, Any], **more: Any) -> Event:
        """An event that a run of the source led to."""
        provenance = self.provenance if more.get("fields") else None
        return Event(
            type, subject, version, data, provenance=provenance, source=self.source, catalogue=self.catalogue,
            correlation_id=self.run, **more,
        )  # fmt: skip


def _product(scene: _Scene, type: str) -> Event:
    every = differences.created(_whole_product())
    updated = [
        FieldChange("data.tags", ["oak"], ["oak", "dining"]),
        FieldChange("data.title", "Halden table", _PRODUCT["title"]),
    ]
    kinds: dict[str, tuple[int, list[Changed], dict[str, Any]]] = {
        "created": (1, every, {}),
        "updated": (4, list(updated), {}),
        "discontinued": (5, [FieldChange("status", "probably_discontinued", "discontinued")], {}),
        "merged": (6, [], {"merged_into": new_id("prod"), "merge": new_id("mrg")}),
        "unmerged": (7, every, {"unmerged_from": new_id("prod"), "merge": new_id("mrg")}),
        "published": (2, every, {}),
        "withdrawn": (3, [], {}),
    }
    version, fields, more = kinds[type.partition(".")[2]]
    return scene.catalogue_event(type, scene.product, version, {"id": scene.product, **more}, fields=fields)


def _whole_product() -> dict[str, Any]:
    table = next(category for category in categories.everything().values() if category.slug == "dining-tables")
    return {**_PRODUCT, "category_path": list(table.path), "category": table.id}


def _variant(scene: _Scene, type: str) -> Event:
    every = differences.created(_VARIANT)
    kinds: dict[str, tuple[int, list[Changed], dict[str, Any]]] = {
        "created": (1, every, {}),
        "updated": (3, [FieldChange("data.finish", "Natural oak", "Oak")], {}),
        "merged": (4, [], {"merged_into": new_id("var"), "previous_product": new_id("prod"), "merge": new_id("mrg")}),
        "unmerged": (
            5,
            every,
            {"unmerged_from": new_id("var"), "previous_product": new_id("prod"), "merge": new_id("mrg")},
        ),
    }
    version, fields, more = kinds[type.partition(".")[2]]
    data = {"id": scene.variant, "product": scene.product, **more}
    return scene.catalogue_event(type, scene.variant, version, data, fields=fields)


def _offer(scene: _Scene, type: str) -> Event:
    offer = new_id("ofr")
    data = {
        "id": offer,
        "variant": scene.variant,
        "product": scene.product,
        "source": scene.source,
        "location": "Main",
        "availability": _OFFER["availability"],
    }
    if type == "offer.created":
        return scene.catalogue_event(type, offer, 1, data, fields=differences.created(_OFFER, ""))
    changes: list[Changed] = [
        FieldChange("availability", "out_of_stock", "in_stock"),
        FieldChange("price", 139900, 129900),
        FieldChange("quantity", 0, 14),
    ]
    return scene.catalogue_event(type, offer, 8, data, fields=changes, facets=differences.facets(changes))


def _source(scene: _Scene, type: str) -> Event:
    old, new = {
        "degraded": ("active", "degraded"),
        "blocked": ("degraded", "blocked"),
        "recovered": ("degraded", "active"),
    }[type.partition(".")[2]]
    data: dict[str, Any] = {"id": scene.source, "status": new, "run": scene.run}
    if new != "active":
        data["status_reason"] = {"code": "fetch_failed", "message": "The feed answered 503."}
    change = FieldChange("status", old, new)
    return Event(
        type, scene.source, 4, data, fields=(change,), source=scene.source, catalogue=scene.catalogue,
        correlation_id=scene.run,
    )  # fmt: skip


def _catalogue(scene: _Scene, type: str) -> Event:
    data = {"id": scene.catalogue, "profile": new_id("vnd"), "claim": new_id("vcl")}
    return Event(type, scene.catalogue, 2, data, catalogue=scene.catalogue)


_MAKERS: Final[Mapping[str, Callable[[_Scene, str], Event]]] = {
    "product": _product,
    "variant": _variant,
    "offer": _offer,
    "source": _source,
    "catalogue": _catalogue,
}


def sample(type: str, catalogue: str, now: datetime) -> Event:
    """An event of the type as a run might have led to it just now, about things of that catalogue that do not exist.

    `type` is one of TYPES_WITH_SAMPLE.
    """
    source = new_id("src")
    provenance = Provenance(source, "mapped", 1.0, now - timedelta(seconds=2))
    scene = _Scene(catalogue, source, new_id("run"), new_id("prod"), new_id("var"), provenance)
    return _MAKERS[type.partition(".")[0]](scene, type)
