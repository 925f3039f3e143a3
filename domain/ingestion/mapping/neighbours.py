"""Sheets whose columns are being mapped, and evidence from neighbouring columns."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from domain.ingestion.data import expressions, load, phrases
from domain.ingestion.mapping.evidence import CONTRADICTED, traits_of
from domain.ingestion.model import FeedSettings
from domain.ingestion.values.quantities import amount_at
from domain.ingestion.values.text import clean
from domain.ingestion.vocabulary.fields import IGNORE, MONEY
from domain.ingestion.vocabulary.senses import (
    NOT_DROPPED,
    PHRASES,
    Sense,
    concepts_in,
    heading,
    is_filler,
    known,
    plain_words,
    senses,
    words_of,
)

_LISTS = {name: frozenset(phrases(text)) for name, text in load("places")["words"].items()}
_PRESENT = 60
_FEWEST_SHARED = 2
_MOST_OF_SHEET = 0.4
_BEHIND_PREFIX_COSTS = 10
_SHARED = frozenset(
    "quantity title description brand collection category_path media gtin mpn lead_time_days availability".split()
)
"""Fields accepted after a prefix that few headers share; `Bunk Width` is not the width of the piece."""
_SHOPIFY = frozenset(("handle", "title", "option1 value", "variant price"))
_PLAIN_SKU = 90
_WEAK_SKU = 60
_SEEN = 60
_FOOT = 12
_SIDES = {
    "dimensions.width": "width",
    "dimensions.depth": "depth",
    "dimensions.length": "depth",
    "dimensions.height": "height",
    "dimensions": "dimensions",
    "weight": "weight",
}
_SIDE_LETTERS = frozenset("wdhlbtpsvgxyzš")
_LETTER_SETS = (
    {"l": "dimensions.width", "p": "dimensions.depth", "h": "dimensions.height"},
    {"s": "dimensions.width", "v": "dimensions.height", "h": "dimensions.depth"},
    {"b": "dimensions.width", "t": "dimensions.depth", "h": "dimensions.height"},
)
_PLAIN = 100
_DOTTED = re.compile(r"\.\d+$")
_NUMBER = re.compile(r"\.(\d+)\.")
_BEARERS = frozenset("item overall furniture rug variant net".split())
"""Concepts of things with sides other than packages; net sizes are not those of a package."""
_RUG_SIZE = re.compile(
    r"^\s*\d[\d.\x27\" -]{0,12}(?:ft\.?\s*)?[x×]\s*\d|^\s*\d[\d.\x27\"]{0,6}\s*(?:r|rd|rnd|round|sq)\b", re.I
)


class Sheet:
    """Headers with their plain form, first values and traits, and the senses of each column, strongest first."""

    def __init__(
        self,
        headers: Sequence[str],
        samples: Sequence[Sequence[str]],
        settings: FeedSettings,
        options: list[tuple[Sense, ...]],
    ) -> None:
        self.headers, self.samples, self.settings, self.options = headers, samples, settings, options
        self.words = [plain_words(header) for header in headers]
        self.traits = [traits_of(values) for values in samples]
        self.concepts = [concepts_in(words_of(heading(header).readings[0])) for header in headers]

    def strongest(self, place: int) -> Sense:
        """Return the strongest sense of a column, or one without a field."""
        return self.options[place][0] if self.options[place] else Sense("", 0)

    def field_of(self, place: int) -> str:
        """Return the field that a column clearly has, or a blank."""
        first = self.strongest(place)
        return first.field if first.score >= _PRESENT else ""

    def places_of(self, *fields: str) -> list[int]:
        """Return the positions of columns whose strongest sense is one of the fields."""
        return [place for place in range(len(self.options)) if self.strongest(place).field in fields]

    def names(self, place: int, words: frozenset[str]) -> bool:
        """Return whether a column's header contains one of the words."""
        return not words.isdisjoint(self.words[place].split())

    def change(self, place: int, **changes: Any) -> None:
        """Change the strongest sense of a column."""
        self.options[place] = (replace(self.options[place][0], **changes), *self.options[place][1:])

    def contradict(self, place: int) -> None:
        """Mark all senses of a column as contradicted."""
        self.options[place] = (replace(self.options[place][0], field=CONTRADICTED, score=1),)


def without_prefixes(headers: Sequence[str]) -> list[tuple[Sense, ...]]:
    """Return the senses of headers; for a header without one, those of the words after an unknown prefix shared with others.

    Such a prefix is the name of a vendor or a platform and does not describe the column.
    """
    words = [(heading(header).readings or ("",))[0].split() for header in headers]
    firsts = Counter(texts[0] for texts in words if len(texts) > 1)
    return [
        senses(header) or _behind_prefix(texts, firsts[texts[0]], len(headers)) if texts else senses(header)
        for header, texts in zip(headers, words, strict=True)
    ]


def _behind_prefix(words: Sequence[str], count: int, width: int) -> tuple[Sense, ...]:
    first = words[0]
    is_meaningful = known(first) or is_filler(first) or first in NOT_DROPPED or not first.isalnum() or first.isdecimal()
    found = () if is_meaningful or count < _FEWEST_SHARED else senses(" ".join(words[1:]))
    if not found or not (count / width >= _MOST_OF_SHEET or found[0].field in _SHARED):
        return ()
    return tuple(
        replace(sense, score=sense.score - _BEHIND_PREFIX_COSTS, surmised=True, listed=False) for sense in found
    )


def read_platform(sheet: Sheet) -> None:
    """Map `Type` among Shopify's headers to the category path."""
    if _SHOPIFY.issubset(sheet.words):
        for place, words in enumerate(sheet.words):
            if words == "type":
                sheet.options[place] = (Sense("category_path", 90, listed=True),)


def read_neighbours(sheet: Sheet) -> None:
    """Change the senses that depend on other columns."""
    _count_from_one(sheet)
    _read_ids_beside_codes(sheet)
    _contradict_old_prices(sheet)
    _contradict_feet_and_inches(sheet)
    _read_letters(sheet)
    _read_packages(sheet)
    _read_shapes(sheet)


def _count_from_one(sheet: Sheet) -> None:
    """Count the numbers in headers from one if the sheet has no zero: `width.1` and `boxes.0.width` are both the first."""
    numbers = [_NUMBER.search(sheet.strongest(place).field) for place in range(len(sheet.headers))]
    families = {found.string.partition(".")[0] for found in numbers if found and found[1] == "0"}
    for place, found in enumerate(numbers):
        later = found and found[1] != "0" and found.string.partition(".")[0] not in families
        if found and later and _DOTTED.search(sheet.headers[place]):
            sheet.change(place, field=_NUMBER.sub(f".{int(found[1]) - 1}.", found.string))


def _read_ids_beside_codes(sheet: Sheet) -> None:
    """Map an ID beside a clear SKU to the product key of the platform."""
    codes = sheet.places_of("sku")
    if any(sheet.strongest(place).score >= _PLAIN_SKU for place in codes):
        for place in codes:
            first = sheet.strongest(place)
            if first.score <= _WEAK_SKU and sheet.names(place, _LISTS["ids"]):
                sheet.options[place] = (replace(first, field="product_key"),)


def _contradict_old_prices(sheet: Sheet) -> None:
    """Exclude prices that are not today's price of one piece.

    A sale price with its own date columns is only listed; beside a column of price units (`100`) all prices are excluded.
    """
    dated = any(
        "sale" in found and (found & {"date", "created", "time"} or sheet.names(place, _LISTS["days"]))
        for place, found in enumerate(sheet.concepts)
    )
    for_several = any(
        words in _LISTS["price_units"]
        and any(
            (text := sample.strip()).isdecimal() and text.lstrip("0") not in ("", "1") for sample in samples[:_SEEN]
        )
        for words, samples in zip(sheet.words, sheet.samples, strict=True)
    )
    for place in sheet.places_of(*MONEY) if dated or for_several else ():
        first = sheet.strongest(place)
        if for_several:
            sheet.contradict(place)
        elif first.field == "sale_price":
            sheet.options[place] = (replace(first, settings=(*first.settings, ("alternative", "yes"))),)


def _contradict_feet_and_inches(sheet: Sheet) -> None:
    """Exclude sides whose feet and inches are in separate columns."""
    units = {
        place: (sheet.field_of(place), unit)
        for place, header in enumerate(sheet.headers)
        if (unit := heading(header).unit) in ("ft", "in") and sheet.field_of(place) in _SIDES
    }
    below = {found for place, found in units.items() if found[1] == "ft" or _is_below_a_foot(sheet.samples[place])}
    for place, (side, _) in units.items():
        if {(side, "ft"), (side, "in")} <= below:
            sheet.contradict(place)


def _is_below_a_foot(samples: Sequence[str]) -> bool:
    given = [found.value for sample in samples if (found := amount_at(sample.strip(), 0))]
    return bool(given) and max(given) < _FOOT


def _read_letters(sheet: Sheet) -> None:
    """Map single letters by the set of letters present: `L P H` is French or Italian, `Š V H` Czech."""
    lasts = {place: heading(header).forms[-1:] for place, header in enumerate(sheet.headers)}
    letters = {place: last[0] for place, last in lasts.items() if last and len(last[0]) == 1}
    present = frozenset(letters.values())
    meant = next((sides for sides in _LETTER_SETS if sides.keys() <= present), {})
    for place, letter in letters.items():
        if present - _SIDE_LETTERS:  # levels named A, B, C, D are not sides
            sheet.options[place] = ()
        elif letter in meant:
            sheet.options[place] = (Sense(meant[letter], _PLAIN, sheet.strongest(place).settings),)


def _read_packages(sheet: Sheet) -> None:
    """Map sides after or between a package's columns to the package.

    Sides only after them are mapped so only if the same sides also occur elsewhere.
    """
    width, start = len(sheet.headers), 0
    while start < width:
        end = start
        while end < width and sheet.field_of(end) in _SIDES and not sheet.concepts[end] & _BEARERS:
            end += 1
        box = _box(sheet, start - 1)
        run = range(start, end)
        sides = {sheet.field_of(place) for place in run}
        elsewhere = {sheet.field_of(place) for place in range(width) if place not in run}
        if run and box is not None and (_box(sheet, end) is not None or len(sides & elsewhere) * 2 > len(sides)):
            for place in run:
                first = sheet.strongest(place)
                sheet.options[place] = (replace(first, field=f"cartons.{box}.{_SIDES[first.field]}"),)
        start = max(end, start + 1)


def _box(sheet: Sheet, place: int) -> str | None:
    """Return the number of the box that a column describes, or None."""
    head, _, number = (sheet.field_of(place) if 0 <= place < len(sheet.headers) else "").partition(".")
    if head == "carton_count" or (head == "cartons" and not number):
        return "0"
    return number.partition(".")[0] if head == "cartons" and number.count(".") == 1 else None


def _read_shapes(sheet: Sheet) -> None:
    """Keep shapes only if other columns describe rugs, and then read sizes in the form of rugs (`5.3 X 7.7` in feet and inches)."""
    places = range(len(sheet.headers))
    fields = {sheet.field_of(place) for place in places} - {"rug.shape", "rug.indoor_outdoor"}
    among_rugs = any(name.startswith("rug.") for name in fields)
    among_rugs = among_rugs or any(sheet.names(place, _LISTS["rugs"]) for place in places)
    for place in places:
        if not among_rugs and sheet.field_of(place) == "rug.shape":
            sheet.options[place] = ()
        if not among_rugs or sheet.field_of(place) not in ("axes.Size", "dimensions"):
            continue
        given = [sample for sample in sheet.samples[place] if sample.strip()]
        sized = sum(bool(_RUG_SIZE.search(sample)) for sample in given) * 2 > len(given)
        unit = heading(sheet.headers[place]).unit
        if sized and unit in (None, "ft") and "size" in sheet.words[place].split():
            rug = replace(sheet.strongest(place), field="rug.size_text", settings=(("unit", unit),) if unit else ())
            sheet.options[place] = (rug, *sheet.options[place])


# Stock sheets with a column for each warehouse: the columns and their locations.


_PATTERNS = expressions("places")
_SEPARATORS = re.compile(r"[_\-:/()\[\].]+")
_KEYS = ("sku", "gtin", "mpn", "variant_key")
_NEVER_PLACES = frozenset((*_KEYS, "product_key", "title", "gpc_brick"))
_SAID_OF_PLACES = frozenset(("warehouse", "lang", "stock"))
_PLAIN_PLACE = 100
_QUITE_PLAIN = 80
_BEFORE_OTHERS = 40
_LONGEST = 24
_MOST_WORDS = 4


def place_named(text: str) -> str | None:
    """Return the location that the whole header names (`NJ`, `Warehouse 3`, `East Coast`), as written, or None."""
    plain = plain_words(text)
    given = plain.split()
    places = _LISTS["places"] | _LISTS["directions"]
    rest = [one for one in given if one not in places and one not in _LISTS["generic"] and not one.isdigit()]
    if len(given) > _MOST_WORDS:
        return None
    named = any(one in places or one in _LISTS["generic"] for one in given)
    if named and not rest and (plain in places or plain not in _LISTS["no_places"]):
        return clean(text).strip("* ")
    coded = _PATTERNS["code"].fullmatch(plain) and not rest[1:] and given[0] not in ("x", "h", "d")
    return clean(text) if coded else None


def _place_beside(kind: str, text: str) -> str:
    """Return the text beside the words for a quantity, an arrival or an order (`ETA NJ`), or a blank."""
    flat = _SEPARATORS.sub(" ", clean(text))
    pattern = _PATTERNS[kind]
    return " ".join(pattern.sub(" ", flat).split()).strip("* ") if pattern.search(flat) else ""


def _given(samples: Sequence[str]) -> list[str]:
    return [stripped for sample in samples if (stripped := sample.strip())]


def _are_stock(samples: Sequence[str]) -> bool:
    """Return whether a column's values are quantities or stock words."""
    given = _given(samples)
    return not any(map(_PATTERNS["money"].search, given)) and all(map(_PATTERNS["stock"].fullmatch, given))


def _are_surely_stock(samples: Sequence[str]) -> bool:
    """Return whether some values can only be stock (`20+`, `Call`)."""
    return any(map(_PATTERNS["surely_stock"].fullmatch, _given(samples))) and _are_stock(samples)


def _are_counts(samples: Sequence[str]) -> bool:
    """Return whether values are whole numbers that include zeros, which prices do not."""
    given = _given(samples)
    return len(given) > 1 and "0" in given and all(value.isdecimal() for value in given)


def _arrivals(sheet: Sheet) -> dict[int, str]:
    """Return the location of each column of arrivals at a location."""
    found = {place: _place_beside("arrival", header) for place, header in enumerate(sheet.headers)}
    return {
        place: name
        for place, name in found.items()
        if 0 < len(name) <= _LONGEST and sheet.strongest(place).score < _PLAIN_PLACE
    }


def _stock_columns(sheet: Sheet, arrivals: set[str]) -> dict[int, str]:
    """Return the location of each column that has a location as header and quantities as values."""
    found: dict[int, str] = {}
    of_stock = sheet.settings.stream == "stock"
    for place, header in enumerate(sheet.headers):
        values, is_known, name = sheet.samples[place], bool(sheet.options[place]), clean(header)
        named = name if name in arrivals else place_named(header)
        if named is None and of_stock and not is_known and len(name) <= _LONGEST and _are_surely_stock(values):
            named = name
        if not named or sheet.strongest(place).field in _NEVER_PLACES or not _are_stock(values):
            continue
        # Directions occur above prices, and a known header is a location only if its values confirm it.
        doubtful = is_known or not _LISTS["directions"].isdisjoint(sheet.words[place].split())
        if not doubtful or name in arrivals or of_stock or _are_surely_stock(values) or _are_counts(values):
            found[place] = named
    return found


def _may_be_place(text: str) -> bool:
    """Return whether words beside a quantity can name a location, which words with other meanings in headers cannot."""
    plain = plain_words(text)
    if len(text) > _LONGEST or plain in _LISTS["no_places"]:
        return False
    return place_named(text) is not None or concepts_in(words_of(plain)) <= _SAID_OF_PLACES


def _named_quantities(sheet: Sheet) -> dict[int, str]:
    """Return the location of each column with quantity and location (`Qty NJ`); a single one must name a known location."""
    found: dict[int, str] = {}
    for place, header in enumerate(sheet.headers):
        name = "" if _PATTERNS["cost"].search(header) else _place_beside("quantity", header)
        plainly = sheet.strongest(place).score >= _QUITE_PLAIN and not place_named(name)
        if name and not plainly and _may_be_place(name) and sheet.words[place] not in PHRASES:
            found[place] = name
    return found if len(found) > 1 or any(map(place_named, found.values())) else {}


def read_warehouses(sheet: Sheet) -> None:
    """Assign locations to columns of quantities, arrivals and orders.

    A column belongs to a warehouse if its header, or a column of arrivals, names a location and its values are quantities. A
    quantity without a location beside such columns is their sum and ignored.
    """
    for place in sheet.places_of("quantity"):
        if sheet.names(place, _LISTS["sellable"]):
            sheet.change(place, score=sheet.strongest(place).score + _BEFORE_OTHERS)
    if not sheet.places_of(*_KEYS):
        return
    arrivals, named = _arrivals(sheet), _named_quantities(sheet)
    stock = _stock_columns(sheet, set(arrivals.values()))
    if len(stock) + len(named) < 2 and not (stock and arrivals) and not (named and not stock):
        stock = {}
    quantities = named | stock
    names = set(quantities.values())
    located = {
        place: ("quantity", name)
        for place, name in quantities.items()
        if sheet.strongest(place).field not in MONEY or sheet.strongest(place).score < _PLAIN_PLACE
    }
    located |= {p: ("incoming.0.eta", name) for p, name in arrivals.items() if name in names or place_named(name)}
    orders = ((place, _place_beside("incoming", header)) for place, header in enumerate(sheet.headers))
    located |= {place: ("incoming.0.quantity", name) for place, name in orders if name in names}
    for place, options in enumerate(sheet.options):
        if place in located:
            field, name = located[place]
            sheet.options[place] = (Sense(field, _PLAIN_PLACE, (("location", name),)),)
        elif names and place not in quantities:
            sheet.options[place] = tuple(
                Sense(IGNORE, sense.score) if sense.field == "quantity" else sense for sense in options
            )
