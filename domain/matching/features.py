"""Match features: the comparable form of an item, computed from a row of texts or a stored variant."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from math import inf
from typing import Any, NamedTuple

from domain.catalogue.search import gtin_key
from domain.ingestion.data import meanings
from domain.ingestion.values.quantities import parse_weight
from domain.ingestion.values.text import stated
from domain.ingestion.values.words import parse_gtin
from domain.kernel.money import EXPONENTS
from domain.matching.measures import MOST, Size, bounded, length, sizes
from domain.matching.words import (
    ACCESSORIES,
    COLOUR_AXES,
    COLOURS,
    CORPORATE,
    DRESSING,
    FILLERS,
    NUMBERS,
    QUANTITY_UNITS,
    SPACED,
    STOP,
    chunks,
    code,
    data,
    folded,
    number_of,
    parts,
    quantity,
    stem,
    word,
    words,
)

_SET = re.compile(
    r"\b(?:sets?|packs?|boxe?s?|lot|case)(?:\s+of\s+|\s*/\s*)(\d{1,3}|[a-z]{3,6})\b"
    r"|\b(\d{1,3}|two|three|four|six|twin)[\s-]*(?:pk|packs?|er-?set)\b|\((\d{1,2})\)\s*$|(?<!\d )(?<!\d[\"'] )\bx\s?(\d{1,2})\s*$|\bqty\.?\s*(\d{1,3})"
)
_PIECES = re.compile(r"\b(\d{1,2}|two|three|four|five|six|seven)[\s-]*(?:pieces?|pcs?|pc\.|tlg|teilig|pezzi|piezas)\b")
_TABLE = re.compile(r"\btables?\s*(?:and|with|w/|\+|&)\s*(\d{1,2})\s*(?:\w+\s+)?(?:chairs?|chrs?|stools?|benches)")
_PLUS = re.compile(r"\+\s*(\d{1,2})\s*(?:chairs?|chrs?|stools?)")
_FOR = re.compile(r"\bfor\b|\bf\.\s|\bfur\b|\bpour\b|\bpara\b")
_COMPOUND = re.compile(r"(?<![a-z])(cu|fl|sq)\.? ?(ft|oz)(?![a-z])")
_PRICE = re.compile(r"\d[\d.,]*")
_QUANTITY = re.compile(r"\d+(?:\.\d+)?[a-z]+|\d+(?:\.\d+)?")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_COUNTED = re.compile(r"\d+[a-z]+")
_WORDY = re.compile(r"[a-z]{6}")
_PAIR = re.compile(r"\bpair\b")
_DIGITS = re.compile(r"\d+")
_DEAREST = 10**12
_JOIN = " - "
_DEGREES = frozenset(("light", "dark"))
_DESCRIBED = 600
_MAX_WORDS = 64
"""Maximum number of title words, and of words of axes and collection, that are compared."""
_MAX_NAMES = 32
"""Maximum number of words of a brand, colour or finish, and of codes in a title or its axes."""
_UNIT = 12
_MIN_NOUN_CHARS = 4
"""Minimum letters of a unit that is a noun: `2 drawers` has drawers, `2 gb` is one number."""
_MAX_CODE_CHARS = 64
"""Maximum characters of a code."""
_SIDES = ("width", "depth", "height")
Sides = tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class MatchFeatures:
    """The features of an item. Lengths are in centimetres, weights in kilograms; sets have compared words and codes."""

    id: str
    title: str
    words: frozenset[str]
    """Words of the title without brand, colours, codes and sizes."""
    quantities: frozenset[str]
    """Numbers with their units, and bare ones: `8gb`, `2seat`, `161`."""
    brand: frozenset[str]
    colours: frozenset[str]
    """Words of its colour or finish; of the title, known colours only."""
    shades: frozenset[str]
    """Those colours among them that have a known name."""
    colour_stated: bool
    codes: frozenset[str]
    stems: frozenset[str]
    part: str | None
    """The manufacturer's number, or the model."""
    mentioned: frozenset[str]
    """Codes in its description."""
    joined: frozenset[str]
    """Adjacent title words joined, where that could be a code."""
    gtin: str | None
    sides: Sides
    """Width, depth and height."""
    figures: Sides
    """The same lengths as written, without conversion."""
    sizes: tuple[Size, ...]
    """The sizes that the title states."""
    weight: float | None
    price: float | None
    currency: str
    packs: int | None
    pieces: int | None
    accessory: frozenset[str]
    """The kind of accessory, if the item is an accessory `for` something."""
    described: frozenset[str]
    """Words of the description."""


@dataclass(frozen=True, slots=True)
class StoredVariant:
    """A variant as its source states it: ProductData, VariantData, and one price in minor units of its currency."""

    variant: str
    product: str
    source: str
    product_data: Mapping[str, Any]
    variant_data: Mapping[str, Any]
    price: int | None = None
    currency: str | None = None


def read_features(id: str, given: Mapping[str, str]) -> MatchFeatures:
    """Return the features of an item from its texts by field name (`fields_by_header`); missing fields count as blank."""
    title, axes = (stated(given.get(name, "")) or "" for name in ("title", "axes"))
    flats = [_COMPOUND.sub(r"\1\2", folded(text).replace("w/", "with ")) for text in (title, axes)]
    (of_title, rest), (of_axes, others) = map(sizes, flats)
    (named, codes_there), (more, codes_beside) = map(_named, (rest, others))
    more = [*more, *_words_in(given, "collection")]
    flat, rest = (_JOIN.join(filter(None, texts)) for texts in (flats, (rest, others)))
    own = _own_codes(given)
    codes = frozenset((*own, *_first(codes_there, _MAX_NAMES), *_first(codes_beside, _MAX_NAMES)))
    brand, weight = _words_of(given, "brand"), given.get("weight", "")
    colour = (_words_of(given, "colour") | _words_of(given, "finish")) - STOP - FILLERS
    known = _shades(rest, COLOURS & {*named, *more})
    aside = known | colour | STOP | DRESSING
    called = frozenset(w for some in (named, more) for w in _first((w for w in some if w not in aside), _MAX_WORDS))
    counted = frozenset(w for w in called if _QUANTITY.fullmatch(w))
    gtin = parse_gtin(given["gtin"]) if given.get("gtin", "").strip() else None
    main = _FOR.search(flat)
    unit = given.get("dim_unit", "")
    sides, figures = zip(*(length(given.get(name, ""), unit) or (None, None) for name in _SIDES), strict=True)
    described = folded(given.get("description", "")[:_DESCRIBED])
    return MatchFeatures(
        id=id,
        title=_JOIN.join(filter(None, (title, axes))),
        words=called - counted,
        quantities=counted,
        brand=brand - CORPORATE or brand,
        colours=colour or known,
        shades=(colour or known) & COLOURS,
        colour_stated=bool(colour),
        codes=codes,
        stems=frozenset(made for one in codes for made in (stem(one), number_of(one)) if made),
        part=own[0] if own else None,
        mentioned=frozenset(code(chunk) for chunk in chunks(described) if _is_code(chunk)) - codes,
        joined=_joined(rest) - codes,
        gtin=gtin_key(gtin.value) if gtin and gtin.value and not gtin.faults else None,
        sides=sides,
        figures=figures,
        sizes=of_title + of_axes,
        weight=_kilograms(parse_weight(weight, given.get("weight_unit") or None).value) if weight.strip() else None,
        price=_price(given.get("price", "")),
        currency=given.get("currency", "").strip().lower(),
        packs=_packs(flat, given.get("pack", "")),
        pieces=_pieces(flat, given.get("pieces", "")),
        accessory=ACCESSORIES.intersection(words(flat[: main.start()]) if main else ()),
        described=frozenset(w for w in words(described) if len(w) > 2) - STOP - DRESSING,
    )


def _first(found: Iterable[str], most: int) -> list[str]:
    """Return the first distinct values, in their order."""
    return list(islice(dict.fromkeys(found), most))


def _shades(flat: str, known: frozenset[str]) -> frozenset[str]:
    """Return the colours of a title; `light` and `dark` are some only before a colour, not in `light weight`."""
    if known.isdisjoint(_DEGREES):
        return known
    told = words(flat)
    beside = {one for one, other in pairwise(told) if one in _DEGREES and other in COLOURS}
    return frozenset(shade for shade in known if shade not in _DEGREES or shade in beside)


def _words_of(given: Mapping[str, str], field: str) -> frozenset[str]:
    return frozenset(_first(_words_in(given, field), _MAX_NAMES))


def _words_in(given: Mapping[str, str], field: str) -> list[str]:
    return words(folded(stated(given.get(field, "")) or ""))


def _named(flat: str) -> tuple[Collection[str], Collection[str]]:
    """Return the compared words of a title and the codes in it, each once and in their order."""
    named: dict[str, None] = {}
    codes: dict[str, None] = {}
    found = chunks(flat)
    counted = {
        at for at, (one, unit) in enumerate(pairwise(found)) if _NUMBER.fullmatch(one) and word(unit[:_UNIT]) in SPACED
    }
    for at, chunk in enumerate(found):
        if at in counted:
            named[quantity(chunk[:_MAX_CODE_CHARS], found[at + 1])] = None
        elif at - 1 in counted:
            named.update(dict.fromkeys(w for w in parts(chunk) if len(w) >= _MIN_NOUN_CHARS))
        elif _is_code(chunk):
            codes[code(chunk)] = None
            codes.update((code(piece), None) for piece in chunk.split("/") if piece != chunk and _is_code(piece))
        else:
            named.update(dict.fromkeys(parts(chunk)))
    return named, codes


def _joined(flat: str) -> frozenset[str]:
    """Return adjacent title words as one code, because many write `Coolpix P80` and `COOLPIXP80`."""
    found = chunks(flat)
    made = (
        made
        for one, other in pairwise(found)
        if not one[-1].isdigit() and any(map(str.isdigit, other)) and 4 <= len(made := code(one + other)) <= 16
    )
    return frozenset(_first(made, 2 * _MAX_WORDS))


def _is_code(chunk: str) -> bool:
    """Return whether a chunk of a title names a model: letters with digits, or a long number; a quantity with its unit does not."""
    made = code(chunk)
    if len(made) > _MAX_CODE_CHARS:
        return False
    digits = sum(map(str.isdigit, made))
    letters = len(made) - digits
    if not letters:
        return (digits >= 5 and chunk.isdigit()) or (digits >= 8 and "." not in chunk)
    if not digits or len(made) < 4:
        return False
    if _COUNTED.fullmatch(made):
        unit = made.lstrip("0123456789")
        if len(unit) > 1 and unit in QUANTITY_UNITS:
            return False
        if len(made) - len(unit) <= 4:
            return len(unit) <= 3 and unit not in QUANTITY_UNITS and "-" not in chunk
    if digits == 1:
        return len(made) >= 5 and made[0].isalpha() and not _WORDY.search(made)
    return letters <= 8 or digits >= 3


def _own_codes(given: Mapping[str, str]) -> list[str]:
    texts = [stated(given.get(name, "")) for name in ("mpn", "model", "sku")]
    return list(dict.fromkeys(made for text in texts if text and 3 <= len(made := code(text)) <= _MAX_CODE_CHARS))


def _kilograms(weight: Mapping[str, Any] | None) -> float | None:
    return weight["hundredths_lb"] * 0.0045359237 if weight and weight["hundredths_lb"] < 100 * MOST else None


def _price(text: str) -> float | None:
    match = _PRICE.search(text)
    if match is None:
        return None
    bare = match[0].strip(".,")
    if re.search(r",\d{1,2}$", bare):
        bare = bare.replace(".", "").replace(",", ".")
    try:
        return bounded(float(bare.replace(",", "")), _DEAREST) or None
    except ValueError:
        return None


def _stated_count(field: str) -> int | None:
    """Return the first number of a column with a count; None if there is none, or one that is too long."""
    match = _DIGITS.search(field)
    return int(match[0]) if match and len(match[0]) < len(str(MOST)) else None


def _written_count(match: re.Match[str]) -> int | None:
    """Return the number that the first group of a match names, in digits or in words."""
    text = next(filter(None, match.groups()), "")
    return int(text) if text.isdigit() else NUMBERS.get(text)


def _packs(flat: str, field: str) -> int | None:
    """Return the number of pieces in a pack; None if unknown."""
    if (count := _stated_count(field)) is not None:
        return count
    if match := _SET.search(flat):
        return _written_count(match)
    return 2 if _PAIR.search(flat) else None


def _pieces(flat: str, field: str) -> int | None:
    """Return the number of pieces of a set: `table and 4 chairs` has five."""
    if (count := _stated_count(field)) is not None:
        return count
    if match := _PIECES.search(flat):
        return _written_count(match)
    match = _TABLE.search(flat) or _PLUS.search(flat)
    return int(match[1]) + 1 if match else None


_FIELDS = meanings(data("columns"))
"""The field that each header states."""


def fields_by_header(headers: Iterable[str]) -> dict[str, str]:
    """Return the field of each header that has one, whatever its case; of several headers of a field all are kept."""
    named = {header: "_".join(folded(header).replace("-", " ").replace("_", " ").split()) for header in headers}
    return {header: _FIELDS[name] for header, name in named.items() if name in _FIELDS}


def texts_by_field(row: Mapping[str, str], known: Mapping[str, str]) -> dict[str, str]:
    """Return a row's texts by field; where several columns state one, the first that is not blank."""
    found: dict[str, str] = {}
    for header, field in known.items():
        text = row.get(header) or ""
        if text.strip() and field not in found:
            found[field] = text
    return found


def ignored_headers(headers: Sequence[str], known: Mapping[str, str]) -> list[str]:
    """Return the headers without a field, except the ID column."""
    return [header for header in headers if header not in known and folded(header).strip() != "id"]


_FINISH_AXES = frozenset("finish oberflache wood frame".split())
_PACK_AXES = frozenset("pack quantity qty".split())


def features_of(item: StoredVariant) -> MatchFeatures:
    """Return the features of a variant. Axes distinguish it from its siblings; materials count as description.

    Cartons are ignored, because they describe the parcel.
    """
    product, variant = item.product_data, item.variant_data
    colour, finish, others, pack = _axes(variant)
    title, axes = _titles(product, variant, others)
    whole = sum(component.get("quantity", 1) for component in variant.get("components", ()))
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
        "pieces": str(whole) if 1 < whole < MOST else "",
        "currency": item.currency or "",
    }
    sides, figures = _sides(variant)
    return replace(
        read_features(item.variant, given),
        sides=sides,
        figures=figures,
        weight=_kilograms(variant.get("weight")),
        price=item.price / float(10 ** EXPONENTS.get(item.currency, 2))
        if item.price and item.currency is not None
        else None,
    )


def _axes(variant: Mapping[str, Any]) -> tuple[str, str, list[str], str]:
    """Return colour, finish, other axis values, and the pack size."""
    colours, finishes, others, pack = list[str](), list[str](), list[str](), ""
    for name, value in variant.get("axes", {}).items():
        called = set(folded(name).replace("_", " ").split())
        if called & COLOUR_AXES:
            colours.append(value)
        elif called & _FINISH_AXES:
            finishes.append(value)
        elif called & _PACK_AXES and value.strip().isdigit():
            pack = value
        else:
            others.append(value)
    return " ".join(colours), " ".join(finishes), others, pack


def _titles(product: Mapping[str, Any], variant: Mapping[str, Any], axes: Iterable[str]) -> tuple[str, str]:
    """Return the title of product and variant without repetitions, with additional words of the axes."""
    title, own = product.get("title", ""), variant.get("title", "")
    if own and set(words(folded(title))) <= set(words(folded(own))):
        title, own = own, ""
    rug = "" if variant.get("dimensions") else variant.get("rug", {}).get("size_text", "")
    told: list[str] = []
    return _new_texts((title, own), told), _new_texts((*axes, rug), told)


def _new_texts(texts: Iterable[str], told: list[str]) -> str:
    """Return the texts that are not contained in `told`, which has the folded texts so far."""
    new: list[str] = []
    for text in texts:
        flat = folded(text)
        if text and not any(flat in one for one in told):
            new.append(text)
            told.append(flat)
    return " - ".join(new)


def _sides(variant: Mapping[str, Any]) -> tuple[Sides, Sides]:
    """Return width, depth and height in centimetres, and as written; a round item is as wide as it is deep."""
    stated = variant.get("dimensions", {})
    if round_ := stated.get("diameter"):
        stated = {"width": round_, "depth": round_, **stated}
    read = [one if one and one["hundredths_in"] < 100 * MOST else None for one in map(stated.get, _SIDES)]
    made = [round(one["hundredths_in"] * 0.0254, 2) or None if one else None for one in read]
    return tuple(made), tuple(bounded(float(one["given"]["value"])) or None if one else None for one in read)


_RECOMMENDED = ("msrp", "map")


class Price(NamedTuple):
    """An amount in minor units of a currency; None if unknown."""

    amount: int | None = None
    currency: str | None = None


def going_price(offers: Iterable[tuple[str, Mapping[str, Any]]]) -> Price:
    """Return the lowest price of active offers, else the lowest recommended price (MSRP, else MAP), from offers' data by ID."""
    data = min(
        offers,
        key=lambda offer: (
            _amount(offer[1], "price", default=inf),
            _amount(offer[1], *_RECOMMENDED, default=inf),
            offer[0],
        ),
        default=("", dict[str, Any]()),
    )[1]
    return Price(_amount(data, "price", *_RECOMMENDED), data.get("currency"))


def _amount(data: Mapping[str, Any], *names: str, default: Any = None) -> Any:
    """Return the first of an offer's prices that is stated."""
    return next((data[name] for name in names if data.get(name) is not None), default)
