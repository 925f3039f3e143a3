"""Which concepts of a header, taken together, mean which field: the first rule that fits says it."""

from dataclasses import dataclass
from typing import Final

NEUTRAL: Final = frozenset("item overall lang furniture variant rug within".split())
"""Concepts that change nothing."""
PARTS: Final = frozenset(
    "leg back frame base tabletop front drawer shelf cushion headboard insert shade canopy inner cable mattress seat arm component".split()
)
"""Parts of furniture: what is measured of one is not the piece's."""
_PART: Final = "|".join(sorted(PARTS))
_SIDE: Final = "width|depth|height|length|diameter|thickness"


@dataclass(frozen=True, slots=True)
class Rule:
    """`needs`: of each group one concept must be there. `allows`: what else may be; `loose`: and unknown words, too.

    `senses` are fields with their ranks, best first; none for what lies outside the catalogue.
    """

    senses: tuple[tuple[str, int], ...]
    needs: tuple[frozenset[str], ...]
    allows: frozenset[str]
    loose: bool = False
    anything: bool = False


def _rule(senses: str, needs: str, allows: str = "", *, loose: bool = False) -> Rule:
    """`senses`: `field:rank field:rank`; `needs`: groups parted by `+`, of alternatives parted by `|`."""
    pairs = (sense.rpartition(":") for sense in senses.split())
    groups = tuple(frozenset(group.strip().split("|")) for group in needs.split("+"))
    return Rule(
        tuple((field, int(rank)) for field, _, rank in pairs),
        groups,
        frozenset(allows.split()) | NEUTRAL,
        loose,
        allows == "*",
    )


def _outside(needs: str) -> Rule:
    return _rule("", needs, "*", loose=True)


RULES: Final = (
    # What is understood and lies outside the catalogue.
    *map(
        _outside,
        (
            "review",
            "customs",
            "warranty",
            "care",
            "energy",
            "persons",
            "age",
            "designer",
            "certificate",
            "moq",
            "surcharge",
            "cable",
            "angle",
            "capacity",
            "seo",
            "video",
            "stackable",
        ),
    ),
    _rule("media_alt:85", "image_text", "hero base additional"),
    _outside("image + id|group|code|sku|type|status"),
    _outside("image + energy|document|warranty|certificate|discount"),
    _rule("media_position:90", "image + position", "item"),
    _rule("media_alt:85", "image + desc", "hero additional text"),
    _rule("media_alt:90", "image + alt", "hero additional text", loose=True),
    _rule("", "image + quantity"),
    _outside("image + created"),
    _rule(
        "variant_media:90", "image + variant|color|fabric|finish|swatch", "url name additional hero file", loose=True
    ),
    _rule("media.hero:95", "image + hero", "url name value"),
    _rule("media:90", "image", "*", loose=True),
    _outside("document"),
    _outside("created"),
    _rule("google_category:90", "google + category", "name code value type id sub"),
    _outside("google"),
    _outside("prop65 + text"),
    _rule("compliance.sturdy_act:85", "sturdy", "*", loose=True),
    _rule("compliance.prop65_chemicals:90", "prop65 + chemical", "*", loose=True),
    _rule("compliance.prop65_warning:90", "prop65", "*"),
    _rule("compliance.tsca_title_vi:85", "tsca", "*"),
    _outside("note"),
    # Options of a variant: a name, a value, a kind.
    Rule((("option_value.0", 80),), (frozenset(("variant",)), frozenset(("value",))), NEUTRAL),
    Rule((("option_name.0", 75), ("variant_title", 70)), (frozenset(("variant",)), frozenset(("name",))), NEUTRAL),
    Rule((), (frozenset(("variant",)), frozenset(("type", "style", "pattern", "group"))), NEUTRAL),
    # Keys.
    _rule("gpc_brick:92", "gpc", "category code name value"),
    _outside("gtin + package|master|component"),
    _rule("gtin:92", "gtin", "code maker unit value hero supplier type brand retail", loose=True),
    _rule("variant_key:30", "uuid", "code"),
    _rule("replacement_sku:92", "replacement", "code sku model supplier maker"),
    _rule(
        "",
        "color|finish|fabric|material|size|collection|category|room|leather|wood|customs|unit|style|type + code|id",
        "parent type maker supplier sub name short retail variant value",
    ),
    _rule("compliance.country_of_origin:70", "country + code", "origin maker"),
    _rule("currency:92", "currency", "id code price name type short cost retail trade supplier list sale"),
    _rule("product_key:85", "parent + code|id|sku|mpn|uuid", "variant maker supplier value", loose=True),
    _rule("product_key:85", "group + code|id|sku + item|variant", "", loose=True),
    _rule("product_key:80", "parent + item", ""),
    _rule("product_key:80", "family + code|sku|id", ""),
    _rule("product_key:80", "sku + group", ""),
    _rule("", "group + code|id", "*", loose=True),
    _rule(
        "",
        "brand|retail|trade|warehouse|delivery|document|reserved|review + code|id",
        "supplier maker name price stock",
        loose=True,
    ),
    _rule("mpn:92", "maker|mpn + code|sku|mpn", "supplier brand value type"),
    _rule("mpn:80", "maker + model", "code value"),
    _rule("mpn:90", "mpn", "code value"),
    _rule("mpn:80 sku:60", "model + code|sku", "brand"),
    _rule("mpn:65 product_key:60 sku:50", "pattern|style + code", "supplier"),
    _rule("sku:92 mpn:30", "supplier + sku", "code value"),
    _rule("sku:85 mpn:60", "supplier + ref", "code sku"),
    _rule("sku:85 mpn:60", "supplier + code + item", ""),
    _rule("sku:85 mpn:60", "supplier + code + component", ""),
    _rule("sku:45", "supplier + code", ""),
    _rule("", "supplier|maker + id", "", loose=True),
    _rule("sku:60 product_key:50", "id + item", ""),
    _rule("sku:40 product_key:50", "id", "", loose=False),
    _rule("sku:82 mpn:60", "component + code", ""),
    _rule("", "sku + type", ""),
    _rule("sku:92 mpn:30", "sku", "code ref short retail value type", loose=True),
    # Prices.
    _outside("returns"),
    _outside("bound + price|quantity|stock|time|delivery"),
    _outside("tax + rate|discount|code|type|status|id"),
    _outside("delivery + price|cost|status|type|code|country|note|group"),
    _outside("assembly + price|cost|time|document"),
    _rule("sale_price:80", "reduced", "price retail tax currency value unit"),
    _outside("discount"),
    _outside("price + per + area|quantity|weight|volume|length|package"),
    _outside("price + date|time|area|type|per|text|note"),
    _outside("map + status"),
    _rule("map:92", "map", "price retail sale tax currency"),
    _rule("compare_at:88", "old + price|msrp", "retail sale list tax currency value discount", loose=True),
    _rule("msrp:90", "advised + price", "retail list tax maker supplier currency brand item", loose=True),
    _rule("msrp:92", "msrp", "advised price retail list tax maker supplier currency trade value brand", loose=True),
    _rule("compare_at:70", "ref + price", "retail tax currency value"),
    _rule("sale_price:85", "sale + price", "retail tax currency value"),
    _rule("msrp:70 price:60", "list + price", "supplier maker tax currency retail value trade"),
    _rule(
        "cost:90",
        "cost|trade + price|rate",
        "supplier maker tax currency list package retail base value master brand net unit",
        loose=True,
    ),
    _rule("cost:85", "cost", "supplier maker tax currency unit base trade net sale retail"),
    _rule("cost:85", "warehouse + price", "tax currency"),
    _rule("cost:70", "master + price", "tax currency", loose=True),
    _rule("cost:80", "supplier + price", "tax currency net value unit"),
    _rule("cost:70 price:60", "price + net", "tax currency value unit"),
    _rule("price:90", "price + retail", "tax currency value unit brand base net", loose=True),
    _rule("price:88", "price", "tax currency value unit gross search"),
    _rule("price:70 cost:60", "price", "base type supplier maker brand name"),
    _outside("tax"),
    # Stock and delivery.
    _outside("reserved + stock|quantity|availability|code|delivery"),
    _outside("stock + value"),
    _rule(
        "incoming.0.eta:90",
        "incoming|stock|availability|delivery|eta + date|eta",
        "quantity warehouse supplier time next",
        loose=True,
    ),
    _outside("country + warehouse|stock"),
    _outside("replacement + leadtime|time|delivery"),
    _rule(
        "lead_time_days:90",
        "leadtime",
        "delivery time stock supplier maker warehouse value unit retail availability package",
        loose=True,
    ),
    _rule(
        "lead_time_days:90",
        "delivery + time",
        "stock supplier maker warehouse value unit retail availability package base short long quantity",
        loose=True,
    ),
    _rule("incoming.0.eta:80 incoming.0.quantity:70", "arrival", "stock availability warehouse next item"),
    _rule("incoming.0.quantity:88", "incoming + quantity|stock", "supplier warehouse delivery code", loose=True),
    _rule("incoming.0.eta:75", "incoming + availability", ""),
    _rule("incoming.0.quantity:75", "incoming", "supplier"),
    _rule("", "quantity + within + package|master", "*"),
    _rule("carton_count:90", "quantity + package", "code unit base delivery name"),
    _rule("carton_count:80", "count + package", "delivery"),
    _rule(
        "",
        "quantity + package|per|set|component|drawer|shelf|seat|cushion|front|leg|master|arm|persons|mattress|insert|color",
        "*",
    ),
    _rule("", "sold_out + quantity"),
    _rule("quantity:80 availability:75", "availability + sale"),
    _rule("availability:90", "stock|availability + status|text", "retail value delivery name code type", loose=True),
    _rule(
        "quantity:90",
        "stock|availability + quantity|stock",
        "warehouse retail unit supplier list value maker type free",
    ),
    _rule("quantity:85 availability:60", "stock", "unit retail supplier value maker list free"),
    _rule("availability:90", "availability", "retail delivery supplier value"),
    _rule("availability:70", "delivery + status", ""),
    _rule("location:88", "warehouse", "name stock code delivery value"),
    _rule("", "unit + quantity", "value"),
    _rule("quantity:78", "quantity", "unit retail base value"),
    # Boxes.
    _outside("unit + features|variant|quantity"),
    _outside("volume"),
    _outside("area"),
    _outside("weight + fabric|pile|" + _PART),
    _outside("master + weight|dims|size|" + _SIDE),
    *(
        _rule(f"dimension_unit:88 dimensions.{side}:60", f"unit + {side}", "code name")
        for side in ("width", "depth", "height", "length")
    ),
    _rule("dimension_unit:88", "unit + dims|size|" + _SIDE, "code name package"),
    _rule("weight_unit:88 weight:60", "unit + weight", "code name package gross"),
    _rule("cartons.0.width:90", "package|gross + width", "delivery value unit size dims"),
    _rule("cartons.0.depth:90", "package|gross + length", "delivery value unit size dims"),
    _rule("cartons.0.depth:88", "package|gross + depth", "delivery value unit size dims"),
    _rule("cartons.0.height:90", "package|gross + height", "delivery value unit size dims"),
    _rule("cartons.0.weight:90", "package|gross + weight", "delivery value unit tax list retail"),
    _rule("cartons.0.dimensions:88", "package|gross + dims|size|axes_order", "delivery value unit"),
    _rule("cartons.0.width:85", "casepack + width"),
    _rule("cartons.0.depth:85", "casepack + length|depth"),
    _rule("cartons.0.height:85", "casepack + height"),
    _rule("cartons.0.weight:85", "casepack + weight"),
    _outside("casepack"),
    _outside("package"),
    # Sides.
    _rule("dimensions.seat_height:92", "seat + height", "value unit size dims"),
    _rule("dimensions.seat_depth:92", "seat + depth", "value unit size dims"),
    _rule("dimensions.arm_height:92", "arm + height", "value unit"),
    _rule("dimensions.clearance:90", "step_foot", "height leg value unit base"),
    _rule("rug.pile_height:92", "pile + height|thickness|length", "rug value unit"),
    _rule("", "dims|size|axes_order|" + _SIDE + " + " + _PART, "*"),
    _rule("rug.size_text:88", "rug + size|dims", "value unit"),
    _rule("dimensions.width:62", "width + bound", "value unit size dims"),
    _rule("dimensions.depth:62", "depth + bound", "value unit size dims"),
    _rule("dimensions.height:62", "height + bound", "value unit size dims"),
    _rule("dimensions.length:62", "length + bound", "value unit size dims"),
    _rule("dimensions.width:92", "width", "assembled value unit size dims rug"),
    _rule("dimensions.depth:92", "depth", "assembled value unit size dims"),
    _rule("dimensions.height:92", "height", "assembled value unit size dims"),
    _rule("dimensions.length:92", "length", "assembled value unit size dims rug"),
    _rule("dimensions.diameter:92", "diameter", "assembled value unit size dims rug length"),
    _outside("thickness"),
    _rule("weight:92", "weight", "value unit retail tax maker net assembled dims"),
    _rule(
        "dimensions:92",
        "dims|axes_order",
        "assembled value unit size width depth height length axes_order dims desc text name",
        loose=True,
    ),
    _rule("axes.Size:80 dimensions:50", "size", "name value desc"),
    # Looks and stuff.
    _outside("color|finish|material|fabric + parent|type + code"),
    _outside("fabric|leather|material + group|parent"),
    _rule("", "color + arm", ""),
    _rule(
        "finish:75 colour:70",
        "color + frame|leg|metal|wood|base|finish|front|tabletop|glass",
        "name value desc hero",
        loose=True,
    ),
    _rule("colour:90", "color", "name value desc hero maker base type short pattern"),
    _rule("colour:80", "color + material", "name value"),
    _rule("colour:55", "color + group", "name value hero unit"),
    _rule(
        "colour:75", "color", "fabric seat cushion leather back shade rug name value desc hero headboard", loose=True
    ),
    _rule("finish:88", "finish", "name value wood metal frame leg base front tabletop desc hero type material"),
    _rule(
        "materials:80",
        "material|fabric|filling",
        "wood metal leather glass frame leg base seat cushion tabletop front back shade arm headboard inner drawer shelf insert mattress rug name value type desc hero base text material fabric filling texture finish",
        loose=True,
    ),
    _rule("materials:75", "wood|metal|leather", "type name value frame leg base seat fabric back"),
    _rule("materials:55", "frame|leg|base|tabletop|front|shade", "fabric material"),
    _rule("rug.shape:85", "shape", "rug name value tabletop"),
    _rule("rug.construction:85", "construction", "rug type name value"),
    _rule("rug.indoor_outdoor:75", "location_use", "name value"),
    # Origin and states.
    _rule("compliance.country_of_origin:90", "country + origin|maker", "name code value"),
    _rule("compliance.country_of_origin:85", "origin", "name value"),
    _rule("compliance.country_of_origin:62", "country", "name"),
    _outside("assembly + type|component|text|name|code"),
    _rule("assembly_required:88", "assembly", "required status value", loose=True),
    _outside("assembled"),
    _outside("required"),
    _rule("white_glove:90", "white_glove", "delivery required status availability"),
    _rule("freight_class:90", "freight_class", "code"),
    _outside("discontinued + date"),
    _rule("discontinued:90", "discontinued", "status value origin maker"),
    _rule("status:80", "status", "name value code"),
    # Categories and texts.
    _rule("category_path:60", "category + id + name", "long"),
    _rule("category_path.1:85", "subcategory", "name code type value"),
    _rule("category_path.1:85", "sub + category|group|type", "name code value"),
    _rule("category_path.0:88", "category + hero", "name value"),
    _rule(
        "category_path:85",
        "category",
        "name value type code long path text tags url room retail supplier hero",
        loose=True,
    ),
    _rule("collection:85", "collection", "name value model brand maker supplier parent"),
    _rule("collection:80", "model|collection + parent|group", "name"),
    _rule("brand:92", "brand", "name value maker supplier"),
    _rule("brand:88", "maker", "name value"),
    _outside("supplier"),
    _rule("tags:80", "tags", "name value text list", loose=True),
    _rule("tags:70", "style|room", "name value type sub"),
    _rule("features:88", "features", "text list name value short long desc", loose=True),
    _rule("description:60 title:55", "component + desc", "item"),
    _rule("components:80", "component", "sku code list parent desc text set"),
    _rule("collection:70 title:50", "model + name", "maker brand"),
    _rule("title:88", "name", "short long value retail sku hero", loose=False),
    _rule("title:55", "name", "desc code"),
    _rule("description:88 title:30", "desc + short", "text value sku name retail"),
    _rule("description:90", "desc + long", "text value sku name type"),
    _outside("search"),
    _rule("description:92 title:45", "desc", "text value sku name hero retail code list collection supplier"),
    _rule("description:75", "text", "short long retail value additional"),
    _rule("description:70", "desc", "additional retail sale", loose=True),
    _rule("category_path:58", "type", "name value"),
    _rule("sku:70", "ref|code|sku + inner", "supplier"),
    _rule("sku:60", "code", "short value"),
    _rule("sku:45 mpn:40 collection:35", "model", "value"),
    _rule("category_path:65", "group", "name"),
    Rule((("axes", 60),), (frozenset(("variant",)),), frozenset(("lang",))),
    _outside("url"),
    _outside("unit"),
    _rule("sku:58 title:50", "item"),
)
