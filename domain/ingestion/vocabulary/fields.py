"""Fields that a column mapping can assign to columns, such as `title` and `dimensions.width`."""

import re
from collections.abc import Mapping

from domain.catalogue.differences import PRICES

PRODUCT = frozenset(
    "product_key title brand collection description category_path category tags features gpc_brick google_category "
    "media media.hero status".split()
)
VARIANT = frozenset(
    "sku variant_key gtin mpn variant_title axes colour finish materials dimensions weight components cartons "
    "carton_count "
    "assembly_required white_glove freight_class discontinued replacement_sku variant_media media_alt media_position "
    "dimension_unit weight_unit".split()
)
OFFER = frozenset(
    "cost msrp map price compare_at sale_price currency quantity availability location lead_time_days".split()
)
COMPLIANCE = frozenset(
    "tsca_title_vi sturdy_act stability_rating ca_tb117_2013 prop65_warning prop65_chemicals country_of_origin".split()
)
DIMENSION_PARTS = frozenset("width depth height diameter seat_height seat_depth arm_height clearance length".split())
RUG_PARTS = frozenset("shape size_text nominal construction pile_height indoor_outdoor".split())
CARTON_PARTS = frozenset("width depth height weight count dimensions".split())
MONEY = frozenset((*PRICES, "sale_price"))
IGNORE = "ignore"
KEYS = ("sku", "variant_key", "product_key", "gtin", "mpn")
COMBINED_FIELDS = frozenset("tags features materials media components variant_media".split())
"""Fields whose value combines the cells of several columns."""
_NUMBERED_FIELD = re.compile(
    r"(?:category_path|option_name|option_value)\.\d{1,2}|cartons\.\d{1,2}\.(?P<carton>\w+)|incoming\.\d{1,2}\.(?:quantity|eta)"
)
_SUBFIELDS = {
    "compliance": COMPLIANCE,
    "dimensions": DIMENSION_PARTS,
    "rug": RUG_PARTS,
}

_REMOVED_FIELDS = {
    "category": ("product.category",),
    "media.hero": (),
    "variant_title": ("variant.title",),
    "variant_media": ("variant.media",),
    "carton_count": (),
    "dimensions.length": (),
    "option_value": ("variant.axes",),
    "sale_price": ("offer.compare_at",),
    "quantity": ("offer.quantity", "offer.availability"),
}
_FIELDS_BY_LEVEL = {
    "product": "title brand collection description category_path tags features gpc_brick media compliance".split(),
    "variant": "gtin mpn axes colour finish materials dimensions weight components cartons assembly_required "
    "white_glove "
    "freight_class replacement_sku rug".split(),
    "offer": (*PRICES, "availability", "lead_time_days", "incoming"),
}
_LEVEL_BY_FIELD = {name: level for level, names in _FIELDS_BY_LEVEL.items() for name in names}


def find_removed_fields(field: str) -> tuple[str, ...]:
    """Return the paths of the catalogue fields that a blank cell in a column removes, such as `product.title`.

    Keys are never removed. Columns that only modify others (units, locations, currencies) remove nothing.
    """
    first_part, _, second_part = field.partition(".")
    if (removed := _REMOVED_FIELDS.get(field) or _REMOVED_FIELDS.get(first_part)) is not None:
        return removed
    level = _LEVEL_BY_FIELD.get(first_part)
    if level is None:
        return ()
    return (
        (f"{level}.{first_part}.{second_part}",)
        if second_part and first_part in (*_SUBFIELDS, "axes")
        else (f"{level}.{first_part}",)
    )


def is_field(name: str) -> bool:
    """Return whether a name is a field that a column mapping can assign."""
    if name in PRODUCT or name in VARIANT or name in OFFER or name == IGNORE:
        return True
    if match := _NUMBERED_FIELD.fullmatch(name):
        return match["carton"] is None or match["carton"] in CARTON_PARTS
    head, _, tail = name.partition(".")
    return bool(tail) and (head == "axes" or tail in _SUBFIELDS.get(head, ()))


def split_field(name: str) -> tuple[str, str]:
    """Split a field into its template and its variable part: `cartons.*.width` and `1`, or `axes.*` and `Color`.

    The template of a field without a variable part is the field itself.
    """
    head, _, rest = name.partition(".")
    if head == "axes" and rest:
        return "axes.*", rest
    number, dot, part = rest.partition(".")
    return (f"{head}.*{dot}{part}", number) if number.isdecimal() else (name, "")


def parse_declared_field(text: str) -> tuple[str, Mapping[str, str]]:
    """Split a connector's declaration of a field, such as `weight@unit=g&decimal=dot`, into the field and its settings."""
    name, _, rest = text.partition("@")
    pairs = (piece.partition("=") for piece in rest.split("&") if piece)
    return name, {key: value for key, _, value in pairs}
