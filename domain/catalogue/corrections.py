"""Corrections: values that people set, lock or clear, and that take precedence over the values of all sources.

A correction belongs to the product, variant or offer for which it was made, also after merges. The data of the sources stays
unchanged, so that removing a correction restores it.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final

from domain.catalogue.differences import PRICES, STOCK_CHECK_FIELDS, merge_data, merge_offer_data
from domain.catalogue.model import KEPT_AVAILABILITIES, Availability, Offer
from domain.kernel.enums import StoredEnum

PERSON_EDIT = "person_edit"
"""Reason of a field's origin, and method of an event's value, that a person has set."""
_DIMENSIONS = ("width", "depth", "height", "diameter", "seat_height", "seat_depth", "arm_height", "clearance")
_COMPLIANCE = (
    "tsca_title_vi", "sturdy_act", "stability_rating", "ca_tb117_2013", "prop65_warning", "prop65_chemicals",
    "country_of_origin",
)  # fmt: skip
_RUG = ("shape", "size_text", "nominal", "construction", "pile_height", "indoor_outdoor")
PRICE_FIELDS: Final = ("price", "msrp", "map", "cost")
"""Prices that can be corrected. A corrected price has its currency, so that a feed cannot change its meaning."""
FIELDS_BY_LEVEL: Final[Mapping[str, tuple[str, ...]]] = {
    "product": (
        "title", "brand", "collection", "description", "category", "tags", "gpc_brick", "features",
        *(f"compliance.{name}" for name in _COMPLIANCE),
    ),
    "variant": (
        "title", "gtin", "mpn", "colour", "finish", "materials", *(f"dimensions.{name}" for name in _DIMENSIONS), "weight",
        "assembly_required", "white_glove", "freight_class", *(f"rug.{name}" for name in _RUG),
    ),
    "offer": (*PRICE_FIELDS, "availability", "quantity", "lead_time_days"),
}  # fmt: skip
"""Fields that can be corrected, by level; parts of nested fields have a dotted path.

Options of variants (`axes.Colour`) can be corrected as well. Fields by which runs and matching recognise items, such as the
SKU, and lists of objects, such as media and cartons, cannot.
"""
_LEVEL_BY_PREFIX: Final[Mapping[str, str]] = {"prod": "product", "var": "variant", "ofr": "offer"}
_MAX_AXIS_CHARS = 200


class CorrectionAction(StoredEnum):
    """Actions of corrections: set a value, keep the present value, or remove the value."""

    OVERRIDE = "override"
    LOCK = "lock"
    CLEAR = "clear"


class FeedState(StoredEnum):
    """States of the sources' value of a corrected field, compared with the time at which the correction was made."""

    UNCHANGED = "unchanged"
    AGREES = "agrees"
    CHANGED = "changed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Correction:
    """Correction of one field of a product, variant or offer.

    Attributes:
        source: The organisation's source `Corrections`, which is the origin of the value.
        product: The product to which the object's source assigns the object.
        object: The ID of the product, variant or offer.
        value: The value, as in the object's data; None if the field is cleared. A price is `{amount, currency}`, in minor units.
        stated_value: The value without the correction when it was made; None if there was none.
        feed_value: The value without the correction now.
        feed_state: Comparison of the two and of the correction's value.
        feed_changed_at: When `feed_value` last changed; None if it never has.
        made_by: The ID of the person.
        batch: The bulk correction that made the correction, or None.
    """

    id: str
    source: str
    product: str
    object: str
    field: str
    action: CorrectionAction
    value: Any = None
    stated_value: Any = None
    feed_value: Any = None
    feed_state: FeedState = FeedState.UNCHANGED
    feed_changed_at: datetime | None = None
    made_by: str
    made_at: datetime
    batch: str | None = None
    version: int = 1
    created_at: datetime
    updated_at: datetime

    def with_feed_value(self, value: Any, product: str, now: datetime) -> "Correction":
        """Return the correction after a run or a merge; itself if neither the value without it nor the product has changed."""
        if value == self.feed_value and product == self.product:
            return self
        if value == self.feed_value:
            return replace(self, product=product)
        state = FeedState.CHANGED
        if value == self.stated_value:
            state = FeedState.UNCHANGED
        elif value == self.value:
            state = FeedState.AGREES
        return replace(self, product=product, feed_value=value, feed_state=state, feed_changed_at=now, updated_at=now)


def find_level(id: str) -> str:
    """Return the level of an object by its ID: `product`, `variant` or `offer`. Raises KeyError for another ID."""
    return _LEVEL_BY_PREFIX[id.partition("_")[0]]


def is_correctable(level: str, field: str) -> bool:
    """Return whether the field of the level can be corrected."""
    name, _, axis = field.partition(".")
    if level == "variant" and name == "axes":
        return bool(axis.strip()) and len(axis) <= _MAX_AXIS_CHARS
    return field in FIELDS_BY_LEVEL.get(level, ())


def get_field(data: Mapping[str, Any], field: str) -> Any:
    """Return the value of a field in the data of a product, variant or offer, or None. A price has its currency."""
    name, _, part = field.partition(".")
    value = data.get(name)
    if part:
        return (value or {}).get(part)
    return {"amount": value, "currency": data.get("currency")} if name in PRICES and value is not None else value


def set_field(data: Mapping[str, Any], field: str, value: Any) -> dict[str, Any]:
    """Return the data of a product or variant with the field changed; None removes it."""
    name, _, part = field.partition(".")
    return merge_data(data, {name: {part: value} if part else value})


def correct_offer(offer: Offer, corrections: Collection[Correction]) -> dict[str, Any]:
    """Return the data of an offer with its corrections.

    Corrections of stock do not apply to a withdrawn offer. All prices have the currency of the newest corrected price; prices
    that a source states in another currency are omitted. A corrected quantity determines the availability, unless the
    availability is corrected too, or is `preorder`, `backorder` or `discontinued`.
    """
    if offer.withdrawn_at is not None:
        corrections = [one for one in corrections if one.field not in STOCK_CHECK_FIELDS]
    values = {one.field: one.value for one in sorted(corrections, key=_get_order)}
    currencies = [values[name]["currency"] for name in values if name in PRICES and values[name] is not None]
    stated: dict[str, Any] = {"currency": currencies[-1]} if currencies else {}
    for name, value in values.items():
        if name not in PRICES or value is None:
            stated[name] = value
        elif value["currency"] == currencies[-1]:
            stated[name] = value["amount"]
    data, _ = merge_offer_data(offer.data, stated)
    quantity = stated.get("quantity")
    if quantity is not None and "availability" not in stated and data.get("availability") not in KEPT_AVAILABILITIES:
        data["availability"] = Availability.from_quantity(quantity)
    data.setdefault("availability", Availability.UNKNOWN)
    return data


def _get_order(correction: Correction) -> tuple[datetime, str]:
    return correction.made_at, correction.id


@dataclass(frozen=True, slots=True)
class Corrections:
    """Corrections of several objects."""

    by_object: Mapping[str, Mapping[str, Correction]] = field(default_factory=dict)

    @classmethod
    def from_list(cls, corrections: Iterable[Correction]) -> "Corrections":
        """Group corrections by object and field."""
        grouped: defaultdict[str, dict[str, Correction]] = defaultdict(dict)
        for one in corrections:
            grouped[one.object][one.field] = one
        return cls(dict(grouped))

    def __bool__(self) -> bool:
        """Return whether there is any correction."""
        return bool(self.by_object)

    def get(self, object: str) -> Mapping[str, Correction]:
        """Return the corrections of an object by field."""
        return self.by_object.get(object, {})

    def list_all(self) -> list[Correction]:
        """Return all corrections, oldest ID first."""
        return sorted((one for fields in self.by_object.values() for one in fields.values()), key=lambda one: one.id)

    def restrict_to(self, products: Collection[str]) -> "Corrections":
        """Return only the corrections of these products, of their variants and of their offers."""
        return Corrections.from_list(one for one in self.list_all() if one.product in products)

    def list_of_objects(self, objects: Collection[str]) -> list[Correction]:
        """Return the corrections of these objects."""
        return [one for id in objects for one in self.get(id).values()]

    def with_field(self, object: str, field: str, correction: Correction | None) -> "Corrections":
        """Return the corrections with that of one field replaced; None removes it."""
        fields = {name: one for name, one in self.get(object).items() if name != field}
        if correction is not None:
            fields[field] = correction
        others = {id: own for id, own in self.by_object.items() if id != object}
        return Corrections({**others, object: fields} if fields else others)

    def choose(self, survivor: str, members: Iterable[str], own_fields: Collection[str]) -> dict[str, Correction]:
        """Return the corrections that apply to an object that represents itself and others.

        A correction of the object itself has precedence, then the newest one. For `own_fields`, only those of the object apply.

        Args:
            survivor: The object that readers see.
            members: The objects that it represents, including itself.
            own_fields: Fields whose values are specific to one source.
        """
        others = [one for id in members if id != survivor for one in self.get(id).values()]
        chosen = {
            one.field: one for one in sorted(others, key=_get_order) if one.field.partition(".")[0] not in own_fields
        }
        return chosen | dict(self.get(survivor))
