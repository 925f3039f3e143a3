"""What a column's neighbours tell of it: sides among a package's columns are the package's, shapes among a rug's a rug's."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from domain.ingestion.mapping.evidence import CONTRADICTED
from domain.ingestion.values.amounts import amount_at
from domain.ingestion.vocabulary.concepts import words_of
from domain.ingestion.vocabulary.fields import MONEY
from domain.ingestion.vocabulary.headings import heading, plain_words
from domain.ingestion.vocabulary.senses import Sense

_SIDES: Final = {
    "dimensions.width": "width",
    "dimensions.depth": "depth",
    "dimensions.length": "depth",
    "dimensions.height": "height",
    "dimensions": "dimensions",
    "weight": "weight",
}
_PRESENT: Final = 60
_BEFORE_OTHERS: Final = 40
_PLAIN_SKU: Final = 90
_SELLABLE: Final = frozenset(
    "available avail ats atp sellable free salable saleable verfugbar disponible beschikbaar disponibile".split()
)
_PRICE_UNITS: Final = frozenset(
    ("preiseinheit", "preis einheit", "price unit", "price per", "prijseenheid", "unite de prix", "prisenhet", "pe")
)
_SIDE_LETTERS: Final = frozenset("wdhlbtpsvgxyzš")
_SEEN: Final = 60
_DAYS: Final = frozenset("start starts end ends from until till to begin begins expires expiry effective valid".split())
_SHOPIFY: Final = frozenset(("handle", "title", "option1 value", "variant price"))
_SHOPIFY_TYPE: Final = (Sense("category_path", 90, listed=True),)
_RUG_SIZE: Final = re.compile(
    r"^\s*\d[\d.\x27\" -]{0,12}(?:ft\.?\s*)?[x×]\s*\d|^\s*\d[\d.\x27\"]{0,6}\s*(?:r|rd|rnd|round|sq)\b", re.I
)
_PLAIN: Final = 100
_DOTTED: Final = re.compile(r"\.\d+$")
_PLACE: Final = re.compile(r"\.(\d+)\.")
_LETTER_SETS: Final = {
    "lph": {"l": "dimensions.width", "p": "dimensions.depth", "h": "dimensions.height"},
    "svh": {"s": "dimensions.width", "v": "dimensions.height", "h": "dimensions.depth"},
    "bth": {"b": "dimensions.width", "t": "dimensions.depth", "h": "dimensions.height"},
}
_BEARERS: Final = frozenset("item overall furniture rug variant".split())
_RUG_WORDS: Final = frozenset("rug rugs teppich teppiche tapis vloerkleed alfombra tappeto matta tæppe dywan".split())


def among_neighbours(
    headers: Sequence[str], columns: Sequence[Sequence[str]], known: Sequence[tuple[Sense, ...]]
) -> list[tuple[Sense, ...]]:
    """`known` with the senses that only the columns around can tell."""
    known = _ids_beside_codes(headers, _from_one(headers, known))
    known = _prices_of_today(headers, columns, _sellable_first(headers, known))
    return _shapes(headers, columns, _packages(headers, _letters(headers, _feet_and_inches(headers, columns, known))))


def of_platforms(headers: Sequence[str], known: Sequence[tuple[Sense, ...]]) -> list[tuple[Sense, ...]]:
    """`known` where the header set is a platform's own: there a plain word means what the platform says."""
    words = [plain_words(header) for header in headers]
    if not set(words) >= _SHOPIFY:
        return list(known)
    return [_SHOPIFY_TYPE if word == "type" else options for word, options in zip(words, known, strict=True)]


def _best(options: tuple[Sense, ...]) -> str:
    return options[0].field if options and options[0].score >= _PRESENT else ""


def _from_one(headers: Sequence[str], known: Sequence[tuple[Sense, ...]]) -> list[tuple[Sense, ...]]:
    """Numbers behind a point count from zero (`boxes.0.width`), but where the sheet has none of zero: `width.1` is of the first."""
    firsts = {
        options[0].field.partition(".")[0]
        for options in known
        if options and (place := _PLACE.search(options[0].field)) and place[1] == "0"
    }
    return [
        (replace(options[0], field=_PLACE.sub(f".{int(place[1]) - 1}.", options[0].field)), *options[1:])
        if options
        and _DOTTED.search(header)
        and (place := _PLACE.search(options[0].field))
        and place[1] != "0"
        and options[0].field.partition(".")[0] not in firsts
        else options
        for header, options in zip(headers, known, strict=True)
    ]


def _ids_beside_codes(headers: Sequence[str], known: Sequence[tuple[Sense, ...]]) -> list[tuple[Sense, ...]]:
    """An item's id beside a code that is plainly the SKU is the platform's own key of the product."""
    if not any(options and options[0].field == "sku" and options[0].score >= _PLAIN_SKU for options in known):
        return list(known)
    return [
        (replace(options[0], field="product_key"),)
        if options
        and options[0].field == "sku"
        and options[0].score <= _PRESENT
        and {"id", "ids", "productid"} & _words(header)
        else options
        for header, options in zip(headers, known, strict=True)
    ]


def _sellable_first(headers: Sequence[str], known: Sequence[tuple[Sense, ...]]) -> list[tuple[Sense, ...]]:
    """Of several quantities the one that can be sold goes before what is on hand."""
    return [
        (replace(options[0], score=options[0].score + _BEFORE_OTHERS), *options[1:])
        if options and options[0].field == "quantity" and _SELLABLE & _words(header)
        else options
        for header, options in zip(headers, known, strict=True)
    ]


def _words(header: str) -> set[str]:
    return set(plain_words(header).split())


def _prices_of_today(
    headers: Sequence[str], columns: Sequence[Sequence[str]], known: Sequence[tuple[Sense, ...]]
) -> list[tuple[Sense, ...]]:
    """Prices that are not what one piece costs today are not read as if they were.

    A sale price whose days stand in columns of their own is told only; beside a column of price units (`100`) all prices are.
    """
    concepts = [{one for word in words_of(heading(header).readings[0]) for one in word.concepts} for header in headers]
    dated = any(
        "sale" in one and (one & {"date", "created", "time"} or _words(header) & _DAYS)
        for header, one in zip(headers, concepts, strict=True)
    )
    for_several = any(
        plain_words(header) in _PRICE_UNITS and any(_is_several(sample.strip()) for sample in samples[:_SEEN])
        for header, samples in zip(headers, columns, strict=True)
    )
    out = []
    for options in known:
        field = options[0].field if options else ""
        if field in MONEY and for_several:
            options = (replace(options[0], field=CONTRADICTED, score=1),)
        elif field == "sale_price" and dated:
            options = (replace(options[0], settings=(*options[0].settings, ("alternative", "yes"))),)
        out.append(options)
    return out


def _is_several(text: str) -> bool:
    """Whether a text is a whole number above one; it may have any number of digits."""
    return text.isdecimal() and text.lstrip("0") not in ("", "1")


def _feet_and_inches(
    headers: Sequence[str], columns: Sequence[Sequence[str]], known: Sequence[tuple[Sense, ...]]
) -> list[tuple[Sense, ...]]:
    """A side whose feet and inches stand in columns of their own is in neither of them."""
    units: dict[str, set[str]] = {}
    for header, samples, options in zip(headers, columns, known, strict=True):
        unit = heading(header).unit
        if _best(options) in _SIDES and (unit == "ft" or (unit == "in" and _below_a_foot(samples))):
            units.setdefault(_best(options), set()).add(unit)
    apart = {field for field, named in units.items() if {"ft", "in"} <= named}
    return [
        (replace(options[0], field=CONTRADICTED, score=1),)
        if _best(options) in apart and heading(header).unit in ("ft", "in")
        else options
        for header, options in zip(headers, known, strict=True)
    ]


def _letters(headers: Sequence[str], known: Sequence[tuple[Sense, ...]]) -> list[tuple[Sense, ...]]:
    """Single letters as headers mean what the set of them means: `L P H` is French or Italian, `Š V H` Czech."""
    letters = {
        place: words
        for place, header in enumerate(headers)
        if (forms := heading(header).forms) and len(words := forms[-1]) == 1
    }
    present = set(letters.values())
    if present - _SIDE_LETTERS:  # levels named A, B, C, D are no sides
        return [() if place in letters else options for place, options in enumerate(known)]
    meant = next((sides for named, sides in _LETTER_SETS.items() if set(named) <= present), None)
    if meant is None:
        return list(known)
    return [
        (Sense(meant[letters[place]], _PLAIN, known[place][0].settings if known[place] else ()),)
        if letters.get(place) in meant
        else known[place]
        for place in range(len(headers))
    ]


def _below_a_foot(samples: Sequence[str]) -> bool:
    given = [found.value for sample in samples if (found := amount_at(sample.strip(), 0))]
    return bool(given) and max(given) < 12


def _shapes(
    headers: Sequence[str], columns: Sequence[Sequence[str]], known: Sequence[tuple[Sense, ...]]
) -> list[tuple[Sense, ...]]:
    """A shape is a rug's where other columns speak of rugs; a table's lies outside the catalogue."""
    fields = {_best(options) for options in known}
    rugs = any(field.startswith("rug.") and field not in ("rug.shape", "rug.indoor_outdoor") for field in fields)
    if rugs or any(_RUG_WORDS & set(plain_words(header).split()) for header in headers):
        return [_rug_size(*column) for column in zip(headers, columns, known, strict=True)]
    return [() if _best(options) == "rug.shape" else options for options in known]


def _rug_size(header: str, samples: Sequence[str], options: tuple[Sense, ...]) -> tuple[Sense, ...]:
    """The size of a rug is read as rugs' sizes are written (`5.3 X 7.7` in feet and inches)."""
    sized = _best(options) in ("axes.Size", "dimensions") and "size" in plain_words(header).split()
    given = [sample for sample in samples if sample.strip()]
    rugs = sum(bool(_RUG_SIZE.search(sample)) for sample in given) * 2 > len(given)
    unit = heading(header).unit
    if not sized or not rugs or unit not in (None, "ft"):
        return options
    return (replace(options[0], field="rug.size_text", settings=(("unit", unit),) if unit else ()), *options)


def _packages(headers: Sequence[str], known: Sequence[tuple[Sense, ...]]) -> list[tuple[Sense, ...]]:
    """A run of plain sides right behind or between a package's columns is the package's.

    Right behind counts only where the same sides stand elsewhere, too; without them they may be the piece's own.
    """
    out = list(known)
    at = 0
    while at < len(out):
        end = at
        while end < len(out) and _best(out[end]) in _SIDES and _is_bare(headers[end]):
            end += 1
        if end == at:
            at += 1
            continue
        box = _box(out[at - 1]) if at else None
        sides = {_best(options) for options in out[at:end]}
        elsewhere = {_best(options) for place, options in enumerate(out) if not at <= place < end}
        between = end < len(out) and _box(out[end]) is not None
        if box is not None and (between or len(sides & elsewhere) * 2 > len(sides)):
            out[at:end] = [_of_package(options, box) for options in out[at:end]]
        at = end
    return out


def _box(options: tuple[Sense, ...]) -> str | None:
    """The number of the box that a column is about, or None when it is about none."""
    field = _best(options)
    if field in ("carton_count", "cartons"):
        return "0"
    return field.split(".")[1] if field.startswith("cartons.") and field.count(".") == 2 else None


def _is_bare(header: str) -> bool:
    """Whether a header names a side and nothing that has it; what is net is no package's."""
    return all(not word.concepts & (_BEARERS | {"net"}) for word in words_of(heading(header).readings[0]))


def _of_package(options: tuple[Sense, ...], box: str) -> tuple[Sense, ...]:
    first = options[0]
    return (replace(first, field=f"cartons.{box}.{_SIDES[first.field]}"),)
