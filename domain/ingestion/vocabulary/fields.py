"""Fields that mappings can assign to columns."""

import re
from collections.abc import Mapping

from domain.catalogue.differences import PRICES

PRODUCT = frozenset(
    "product_key title brand collection description category_path category tags features gpc_brick google_category "
    "media media.hero status".split()
)
VARIANT = frozenset(
    "sku variant_key gtin mpn variant_title axes colour finish materials dimensions weight components cartons carton_count "
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
FAMILIES = frozenset("tags features materials media components variant_media".split())
"""Fields to which several columns can add values."""
_NUMBERED = re.compile(
    r"(?:category_path|option_name|option_value)\.\d{1,2}|cartons\.\d{1,2}\.(?P<carton>\w+)|incoming\.\d{1,2}\.(?:quantity|eta)"
)
_NAMED = {
    "compliance": COMPLIANCE,
    "dimensions": DIMENSION_PARTS,
    "rug": RUG_PARTS,
}

_BLANK = {
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
_BLANK_LEVELS = {
    "product": "title brand collection description category_path tags features gpc_brick media compliance".split(),
    "variant": "gtin mpn axes colour finish materials dimensions weight components cartons assembly_required white_glove "
    "freight_class replacement_sku rug".split(),
    "offer": (*PRICES, "availability", "lead_time_days", "incoming"),
}
_LEVEL_OF = {name: level for level, names in _BLANK_LEVELS.items() for name in names}


def blank_fields(name: str) -> tuple[str, ...]:
    """Return the fields of the catalogue that a blank cell under this field removes, as ProductStatement.blank has them.

    Keys are never removed, nor what is only read with another column (units, locations, currencies).
    """
    head, _, part = name.partition(".")
    if (known := _BLANK.get(name) or _BLANK.get(head)) is not None:
        return known
    level = _LEVEL_OF.get(head)
    if level is None:
        return ()
    return (f"{level}.{head}.{part}",) if part and head in (*_NAMED, "axes") else (f"{level}.{head}",)


def is_field(name: str) -> bool:
    """Return whether a mapping can use the field."""
    if name in PRODUCT or name in VARIANT or name in OFFER or name == IGNORE:
        return True
    if match := _NUMBERED.fullmatch(name):
        return match["carton"] is None or match["carton"] in CARTON_PARTS
    head, _, tail = name.partition(".")
    return bool(tail) and (head == "axes" or tail in _NAMED.get(head, ()))


def parse_given(text: str) -> tuple[str, Mapping[str, str]]:
    """Parse a field with settings, as connectors state it: `weight@unit=g`, `quantity@location=NJ`, separated by `&`."""
    name, _, rest = text.partition("@")
    pairs = (piece.partition("=") for piece in rest.split("&") if piece)
    return name, {key: value for key, _, value in pairs}
