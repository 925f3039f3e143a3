"""The facts of a stored variant: what its source states of it, its product and its price."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from domain.kernel.money import EXPONENTS
from domain.matching.facts import Facts, Sides, read
from domain.matching.indexed import StoredVariant
from domain.matching.measures import MOST, bounded
from domain.matching.words import folded, words

_KG: Final = 0.0045359237
_CM: Final = 0.0254
_COLOUR_AXES: Final = frozenset("color colour farbe couleur kleur colore".split())
_FINISH_AXES: Final = frozenset("finish oberflache wood frame".split())
_PACK_AXES: Final = frozenset("pack quantity qty".split())
_SIDES: Final = ("width", "depth", "height")
_DIAMETER: Final = "diameter"


def facts_of(item: StoredVariant) -> Facts:
    """The facts of a variant. Its axes tell it from its siblings, and materials count as described.

    Cartons are no facts: they are the parcel, not the item.
    """
    product, variant = item.product_data, item.variant_data
    colour, finish, others, pack = _axes(variant)
    title, axes = _titles(product, variant, others)
    given = {
        "title": title,
        "axes": axes,
        "brand": product.get("brand", ""),
        "collection": product.get("collection", ""),
        "description": " ".join((product.get("description", ""), *variant.get("materials", ()))),
        "gtin": variant.get("gtin", ""),
        "mpn": variant.get("mpn", ""),
        "sku": variant.get("sku", ""),
        "colour": variant.get("colour", "") or colour,
        "finish": variant.get("finish", "") or finish,
        "pack": pack,
        "pieces": _pieces(variant),
        "currency": item.currency or "",
    }
    sides, figures = _sides(variant)
    weight = variant.get("weight")
    return replace(
        read(item.variant, given),
        sides=sides,
        figures=figures,
        weight=weight["hundredths_lb"] * _KG if weight and weight["hundredths_lb"] < 100 * MOST else None,
        price=_price(item),
    )


def _axes(variant: Mapping[str, Any]) -> tuple[str, str, list[str], str]:
    """Colour, finish, what else the axes say, and how many are sold together."""
    colours, finishes, others, pack = list[str](), list[str](), list[str](), ""
    for name, value in variant.get("axes", {}).items():
        called = set(folded(name).replace("_", " ").split())
        if called & _COLOUR_AXES:
            colours.append(value)
        elif called & _FINISH_AXES:
            finishes.append(value)
        elif called & _PACK_AXES and value.strip().isdigit():
            pack = value
        else:
            others.append(value)
    return " ".join(colours), " ".join(finishes), others, pack


def _titles(product: Mapping[str, Any], variant: Mapping[str, Any], axes: Iterable[str]) -> tuple[str, str]:
    """Product and variant as one title, and what the axes say beside it; what is said twice once."""
    title, own = product.get("title", ""), variant.get("title", "")
    if own and set(words(folded(title))) <= set(words(folded(own))):
        title, own = own, ""
    rug = "" if variant.get("dimensions") else variant.get("rug", {}).get("size_text", "")
    told: list[str] = []
    return _unsaid((title, own), told), _unsaid((*axes, rug), told)


def _unsaid(texts: Iterable[str], told: list[str]) -> str:
    """Those of the texts that none of `told` contains, which has what was said so far, folded."""
    new: list[str] = []
    for text in texts:
        flat = folded(text)
        if text and not any(flat in one for one in told):
            new.append(text)
            told.append(flat)
    return " - ".join(new)


def _pieces(variant: Mapping[str, Any]) -> str:
    """How many pieces a set has; blank for what is no set."""
    whole = sum(component.get("quantity", 1) for component in variant.get("components", ()))
    return str(whole) if 1 < whole < MOST else ""


def _sides(variant: Mapping[str, Any]) -> tuple[Sides, Sides]:
    """Width, depth and height in centimetres, and as they were written; something round is as wide as it is deep."""
    stated = dict(variant.get("dimensions", {}))
    if round_ := stated.get(_DIAMETER):
        stated = {"width": round_, "depth": round_} | stated
    lengths = [stated.get(name) for name in _SIDES]
    read = [one if one and one["hundredths_in"] < 100 * MOST else None for one in lengths]
    made = [round(one["hundredths_in"] * _CM, 2) or None if one else None for one in read]
    given = [bounded(float(one["given"]["value"])) or None if one else None for one in read]
    return (made[0], made[1], made[2]), (given[0], given[1], given[2])


def _price(item: StoredVariant) -> float | None:
    if not item.price or item.currency is None:
        return None
    return item.price / float(10 ** EXPONENTS.get(item.currency, 2))
