"""Corrections of the possible meanings of columns that depend on the other columns of the table."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from domain.ingestion.data import load_patterns, load_toml, split_phrases
from domain.ingestion.mapping.evidence import CONTRADICTED, compute_value_statistics
from domain.ingestion.model import FeedSettings
from domain.ingestion.values.quantities import parse_amount_at
from domain.ingestion.values.text import clean_line
from domain.ingestion.vocabulary.fields import IGNORE, MONEY
from domain.ingestion.vocabulary.header_meanings import (
    MEANINGFUL_PREFIXES,
    PHRASES,
    HeaderMeaning,
    combine_concepts,
    find_concepts,
    find_header_meanings,
    find_header_settings,
    find_sides_of_letters,
    has_no_meaning,
    normalise_header,
    normalise_words,
    split_into_words,
)
from domain.kernel.units import POUNDS_BY_UNIT

_LISTS = {name: frozenset(split_phrases(text)) for name, text in load_toml("places")["words"].items()}
_MIN_CLEAR_SCORE = 60
_MIN_PREFIX_COUNT = 2
_MIN_PREFIX_PROPORTION = 0.4
_PREFIX_PENALTY = 10
_FIELDS_AFTER_RARE_PREFIX = frozenset(
    "quantity title description brand collection category_path media gtin mpn lead_time_days availability".split()
)
"""Fields that are accepted for a header without its unknown first word, even if few headers begin with this word.

For other fields, many headers must begin with the word: `Bunk Width` is not the width of the item.
"""
_TABLE_FIELD_SCORE = 90
_GROUP_WORDS = range(1, 4)
_MAX_PHRASE_WORDS = 4
_GROUP_CONCEPTS = frozenset("package seat arm net set part".split())
"""Concepts in names of groups that can change the meaning of the headers below."""
_FIELDS_AFTER_GROUP = frozenset(
    "sku gtin mpn title brand collection description colour finish materials category_path media quantity lead_time_days "
    "product_key availability".split()
)
_CODES = frozenset(("sku", "mpn", "product_key"))
"""Fields that a single word without its group, such as the `id` of `Category id`, does not name."""
_CLEAR_SKU_SCORE = 90
_WEAK_SKU_SCORE = 60
_ITEM_IDS = frozenset(("id", "g id", "product id", "item id", "offer id"))
_MAX_INSPECTED = 60
_MIN_REPEATED_MODELS = 4
_FOOT = 12
_DIMENSIONS = {
    "dimensions.width": "width",
    "dimensions.depth": "depth",
    "dimensions.length": "depth",
    "dimensions.height": "height",
    "dimensions": "dimensions",
    "weight": "weight",
}
_DIMENSION_LETTERS = frozenset("wdhlbtpsvgxyz")
_LETTERS_OF_OTHER_MEASURES = frozenset("gvxyz")
"""Letters of weights, volumes and axes, which can occur beside the letters of sides."""
_MIN_LETTERS = 3
"""Minimum number of single-letter headers that show a language."""
_CLEAR_SCORE = 100
_CLEAR_LOCATION_USE_SCORE = 80
_MEASURE = re.compile(r"(?:dimensions|cartons|rug|weight)(?:\.|$)")
_VALUE_WORD = re.compile(r" (?:text|value|amount)$")
_DOTTED = re.compile(r"\.\d+$")
_NUMBER = re.compile(r"\.(\d+)\.")
_NOT_PACKAGE_CONCEPTS = frozenset("item overall furniture rug variant net".split())
"""Concepts in headers of sizes of an item, not of a package."""
_RUG_SIZE = re.compile(
    r"^\s*\d[\d.\x27\" -]{0,12}(?:ft\.?\s*)?[x×]\s*\d|^\s*\d[\d.\x27\"]{0,6}\s*(?:r|rd|rnd|round|sq)\b", re.I
)


class MappingDraft:
    """Unfinished column mapping: a table with the possible meanings of each column.

    Attributes:
        headers: The original headers.
        samples: The first values of each column.
        settings: The settings of the source.
        meanings: The possible meanings of each column, best first; they are corrected step by step.
        plain_headers: The headers in lower case without punctuation.
        statistics: The statistics of the values of each column; None for a column without values.
        concepts: The concepts that the words of each header have, such as `weight` and `package`.
        titles: The name of the sheet and the text above the table, in separate lines.
        price_field: The field of amounts that no header describes further, such as `cost` in a price list for dealers.
    """

    def __init__(
        self,
        headers: Sequence[str],
        samples: Sequence[Sequence[str]],
        settings: FeedSettings,
        meanings: list[tuple[HeaderMeaning, ...]],
        titles: str = "",
    ) -> None:
        self.titles, self.price_field = titles, "price"
        self.headers, self.samples, self.settings, self.meanings = headers, samples, settings, meanings
        self.plain_headers = [normalise_words(header) for header in headers]
        self.statistics = [compute_value_statistics(values) for values in samples]
        self.concepts = [
            combine_concepts(split_into_words(normalise_header(header).plain_texts[0])) for header in headers
        ]

    def find_best_meaning(self, position: int) -> HeaderMeaning:
        """Return the best meaning of the column at a position, or a meaning with an empty field if the column has none."""
        return self.meanings[position][0] if self.meanings[position] else HeaderMeaning("", 0)

    def find_confident_field(self, position: int) -> str:
        """Return the field of a column's best meaning if the meaning has a high score, or else an empty string."""
        first = self.find_best_meaning(position)
        return first.field if first.score >= _MIN_CLEAR_SCORE else ""

    def find_positions(self, *fields: str) -> list[int]:
        """Return the positions of the columns whose best meaning has one of the fields."""
        return [position for position in range(len(self.meanings)) if self.find_best_meaning(position).field in fields]

    def has_word(self, position: int, words: frozenset[str]) -> bool:
        """Return whether the header of the column at a position contains one of the words."""
        return not words.isdisjoint(self.plain_headers[position].split())

    def has_repeated_values(self, position: int) -> bool:
        """Return whether at least a third of a column's values, of at least four, repeat others."""
        values = [value for value in self.samples[position] if value.strip()]
        return len(values) >= _MIN_REPEATED_MODELS and len(set(values)) * 3 <= len(values) * 2

    def change_best_meaning(self, position: int, **changes: Any) -> None:
        """Replace attributes of the best meaning of a column."""
        self.meanings[position] = (replace(self.meanings[position][0], **changes), *self.meanings[position][1:])

    def exclude(self, position: int) -> None:
        """Exclude a column from the mapping: its only remaining meaning is the field CONTRADICTED."""
        self.meanings[position] = (replace(self.meanings[position][0], field=CONTRADICTED, score=1),)


def find_meanings_of_headers(headers: Sequence[str]) -> list[tuple[HeaderMeaning, ...]]:
    """Return the possible meanings of each header, best first.

    An unknown header is interpreted without its first word if other headers have the same first word, such as the name
    of a vendor.
    """
    words = [(normalise_header(header).plain_texts or ("",))[0].split() for header in headers]
    firsts = Counter(texts[0] for texts in words if len(texts) > 1)
    groups = Counter(tuple(texts[:size]) for texts in words for size in _GROUP_WORDS if len(texts) > size)
    found = []
    for header, texts in zip(headers, words, strict=True):
        meanings = find_header_meanings(header)
        if texts and not meanings:
            meanings = _find_meanings_after_prefix(texts, firsts[texts[0]], len(headers))
        found.append(_find_clear_meanings_after_group(texts, meanings, groups) or meanings)
    return found


def _find_clear_meanings_after_group(
    words: Sequence[str], meanings: Sequence[HeaderMeaning], groups: Mapping[tuple[str, ...], int]
) -> tuple[HeaderMeaning, ...]:
    """Return the meanings of a header without the name of its group, if only these are clear; otherwise an empty tuple.

    `Basic Information UPC` is a GTIN, because several headers begin with `Basic Information`. Names of groups that can change
    the meaning, such as `Carton`, and fields of measures and prices are excluded.
    """
    if meanings and not meanings[0].is_guess and meanings[0].field != IGNORE:
        return ()
    for size in _GROUP_WORDS:
        group, rest = tuple(words[:size]), words[size:]
        if not rest or groups[group] < _MIN_PREFIX_COUNT:
            continue
        if any(find_concepts(word) & _GROUP_CONCEPTS for word in group):
            continue
        after = find_header_meanings(" ".join(rest))
        field = after[0].field.partition(".")[0] if after and after[0].is_phrase else ""
        if field in _FIELDS_AFTER_GROUP and (len(rest) > 1 or field not in _CODES):
            return after
    return ()


def _find_meanings_after_prefix(
    words: Sequence[str], same_prefix_count: int, header_count: int
) -> tuple[HeaderMeaning, ...]:
    """Return the meanings of a header without its first word; empty if that word has a meaning or too few headers begin with it.

    Args:
        words: The words of the header.
        same_prefix_count: The number of headers with the same first word.
        header_count: The number of all headers.
    """
    first = words[0]
    is_meaningful = (
        find_concepts(first)
        or has_no_meaning(first)
        or first in MEANINGFUL_PREFIXES
        or not first.isalnum()
        or first.isdecimal()
    )
    meanings = (
        () if is_meaningful or same_prefix_count < _MIN_PREFIX_COUNT else find_header_meanings(" ".join(words[1:]))
    )
    if not meanings or not (
        same_prefix_count / header_count >= _MIN_PREFIX_PROPORTION or meanings[0].field in _FIELDS_AFTER_RARE_PREFIX
    ):
        return ()
    return tuple(
        replace(meaning, score=meaning.score - _PREFIX_PENALTY, is_guess=True, is_phrase=False) for meaning in meanings
    )


@dataclass(frozen=True, slots=True)
class _TableKind:
    """Kind of tables in which some headers have another meaning: one row of tables.toml.

    Attributes:
        headers: Headers that are typical of the kind.
        least: The minimum number of these headers in a table.
        has: Fields that columns of the table must have.
        lacks: Fields that no column may have.
        field_by_header: The field of each header with another meaning.
        has_items: Whether the rows are items, so that columns have fields.
    """

    headers: frozenset[str]
    least: int
    has: Sequence[str]
    lacks: Sequence[str]
    field_by_header: Mapping[str, str]
    has_items: bool

    def includes(self, draft: MappingDraft, names: frozenset[str]) -> bool:
        """Return whether a table is of this kind; `names` are its headers, and the phrases of its titles."""
        return (
            len(self.headers & names) >= self.least
            and all(draft.find_positions(field) for field in self.has)
            and not draft.find_positions(*self.lacks)
        )


_TABLE_KINDS = tuple(
    _TableKind(
        frozenset(split_phrases(row["headers"])),
        row["least"],
        split_phrases(row.get("has", "")),
        split_phrases(row.get("lacks", "")),
        {header: field for field, text in row.get("fields", {}).items() for header in split_phrases(text)},
        row.get("has_items", True),
    )
    for row in load_toml("tables")["tables"]
)


def _list_phrases(titles: str) -> Iterator[str]:
    """Yield each group of up to four words in the lines of a text, in plain form."""
    for line in titles.splitlines():
        words = normalise_words(line).split()
        for size in range(1, _MAX_PHRASE_WORDS + 1):
            yield from (" ".join(words[at : at + size]) for at in range(len(words) - size + 1))


def map_tables_of_known_kinds(draft: MappingDraft) -> None:
    """Set the meanings of headers that mean something else in tables of a known kind, such as prices in order forms."""
    texts = [(normalise_header(header).plain_texts or ("",))[0] for header in draft.headers]
    names = frozenset((*texts, *_list_phrases(draft.titles)))
    for kind in _TABLE_KINDS:
        if kind.includes(draft, names):
            draft.price_field = kind.field_by_header.get("price", draft.price_field)
            for position, text in enumerate(texts):
                if not kind.has_items:
                    draft.meanings[position] = ()
                elif field := kind.field_by_header.get(text):
                    settings = find_header_settings(field, draft.headers[position])
                    draft.meanings[position] = (HeaderMeaning(field, _TABLE_FIELD_SCORE, settings, is_phrase=True),)


def correct_by_neighbours(draft: MappingDraft) -> None:
    """Correct the meanings of columns that depend on other columns, except columns of warehouses."""
    _renumber_from_zero(draft)
    _map_id_to_product_key(draft)
    _map_repeated_models(draft)
    _exclude_other_prices(draft)
    _exclude_separate_feet_and_inches(draft)
    _map_single_letters(draft)
    _map_package_dimensions(draft)
    _map_rug_columns(draft)
    _assign_units_to_columns(draft)


def _assign_units_to_columns(draft: MappingDraft) -> None:
    """Assign columns of units to the columns of measures whose headers theirs begin with: `Item width`, `Item width unit`.

    A table with only one column of units has one unit for all its lengths or weights.
    """
    names = {}
    for position, name in enumerate(draft.plain_headers):
        if _MEASURE.match(draft.find_best_meaning(position).field):
            names[_VALUE_WORD.sub("", name)] = draft.headers[position]
    for field in ("dimension_unit", "weight_unit"):
        units = draft.find_positions(field)
        for position in units if len(units) > 1 else ():
            own = [name for name in names if name and draft.plain_headers[position].startswith(f"{name} ")]
            if own:
                settings = (*draft.find_best_meaning(position).settings, ("applies_to", names[max(own, key=len)]))
                draft.change_best_meaning(position, settings=settings)


def _renumber_from_zero(draft: MappingDraft) -> None:
    """Decrease the numbers in fields by 1 (`cartons.0.width`) if the headers count from 1 (`carton width.1`)."""
    numbers = [_NUMBER.search(draft.find_best_meaning(position).field) for position in range(len(draft.headers))]
    families = {found.string.partition(".")[0] for found in numbers if found and found[1] == "0"}
    for position, found in enumerate(numbers):
        later = found and found[1] != "0" and found.string.partition(".")[0] not in families
        if found and later and _DOTTED.search(draft.headers[position]):
            draft.change_best_meaning(position, field=_NUMBER.sub(f".{int(found[1]) - 1}.", found.string))


def _map_id_to_product_key(draft: MappingDraft) -> None:
    """Change the meaning of an ID column from SKU to product key if another column is clearly the SKU, and the other way round."""
    codes, keys = draft.find_positions("sku"), draft.find_positions("product_key")
    if not codes and any(draft.find_best_meaning(position).score >= _CLEAR_SKU_SCORE for position in keys):
        for position in keys:
            if (
                draft.find_best_meaning(position).score <= _WEAK_SKU_SCORE
                and draft.plain_headers[position] in _ITEM_IDS
            ):
                draft.change_best_meaning(position, field="sku")
    if any(draft.find_best_meaning(position).score >= _CLEAR_SKU_SCORE for position in codes):
        for position in codes:
            first = draft.find_best_meaning(position)
            if first.score <= _WEAK_SKU_SCORE and draft.has_word(position, _LISTS["ids"]):
                draft.meanings[position] = (replace(first, field="product_key"),)


def _map_repeated_models(draft: MappingDraft) -> None:
    """Change the meaning of a manufacturer's number or SKU whose values most rows share, if other SKUs distinguish the rows.

    Such a value is the key of a product. It is the name of a collection if the titles of its rows begin with different words,
    such as `Armchair` and `Sofa 2 seats`.
    """
    codes = draft.find_positions("sku")
    distinct = [position for position in codes if not draft.has_repeated_values(position)]
    for position in draft.find_positions("mpn", "sku") if distinct else ():
        if draft.has_repeated_values(position):
            field = "collection" if _have_different_beginnings(draft, position) else "product_key"
            draft.change_best_meaning(position, field=field)


def _have_different_beginnings(draft: MappingDraft, position: int) -> bool:
    """Return whether titles of rows with the same value in a column begin with different words."""
    titles = draft.find_positions("title") or draft.find_positions("description")
    beginnings: dict[str, set[str]] = {}
    for value, title in zip(draft.samples[position], draft.samples[titles[0]], strict=False) if titles else ():
        words = normalise_words(title).split()
        if value.strip() and words:
            beginnings.setdefault(value.strip(), set()).add(words[0])
    return any(len(words) > 1 for words in beginnings.values())


def _exclude_other_prices(draft: MappingDraft) -> None:
    """Exclude prices that are not the current price of one item.

    A sale price is not read if columns limit it to certain dates. All prices are excluded if they are for several items.
    """
    dated = any(
        "sale" in found
        and draft.statistics[position]
        and (found & {"date", "created", "time"} or draft.has_word(position, _LISTS["sale_period"]))
        for position, found in enumerate(draft.concepts)
    )
    for_several = any(
        words in _LISTS["price_units"]
        and any(
            (text := sample.strip()).isdecimal() and text.lstrip("0") not in ("", "1")
            for sample in samples[:_MAX_INSPECTED]
        )
        for words, samples in zip(draft.plain_headers, draft.samples, strict=True)
    )
    for position in draft.find_positions(*MONEY) if dated or for_several else ():
        first = draft.find_best_meaning(position)
        if for_several:
            draft.exclude(position)
        elif first.field == "sale_price":
            draft.meanings[position] = (replace(first, settings=(*first.settings, ("alternative", "yes"))),)


def _exclude_separate_feet_and_inches(draft: MappingDraft) -> None:
    """Exclude columns that contain the feet and the inches of one length separately."""
    units = {
        position: (draft.find_confident_field(position), unit)
        for position, header in enumerate(draft.headers)
        if (unit := normalise_header(header).unit) in ("ft", "in")
        and draft.find_confident_field(position) in _DIMENSIONS
    }
    below = {found for position, found in units.items() if found[1] == "ft" or _are_below_12(draft.samples[position])}
    for position, (side, _) in units.items():
        if {(side, "ft"), (side, "in")} <= below:
            draft.exclude(position)


def _are_below_12(samples: Sequence[str]) -> bool:
    """Return whether all numbers in the samples are below 12, as inches in addition to feet are."""
    given = [found.value for sample in samples if (found := parse_amount_at(sample.strip(), 0))]
    return bool(given) and max(given) < _FOOT


def _map_single_letters(draft: MappingDraft) -> None:
    """Set the meanings of one-letter headers by the language that their letters indicate (`L P H` is French, `Š V H` is Czech)."""
    found = {position: normalise_header(header) for position, header in enumerate(draft.headers)}
    letters = {
        position: header.lookup_texts[-1]
        for position, header in found.items()
        if header.lookup_texts
        and header.unit not in POUNDS_BY_UNIT
        and len(header.lookup_texts[-1]) == 1
        and (header.unit or len(header.plain_texts[0]) == 1)
    } or _find_letters_after_same_words(draft)
    present = frozenset(letters.values())
    complete = present if find_sides_of_letters(present) else present - _LETTERS_OF_OTHER_MEASURES
    side_by_letter = find_sides_of_letters(complete) if len(complete) >= _MIN_LETTERS else {}
    for position, letter in letters.items():
        if letter in side_by_letter:
            settings = draft.find_best_meaning(position).settings
            draft.meanings[position] = (HeaderMeaning(f"dimensions.{side_by_letter[letter]}", _CLEAR_SCORE, settings),)
        elif present - _DIMENSION_LETTERS:  # levels named A, B, C, D are not dimensions
            draft.meanings[position] = ()


def _find_letters_after_same_words(draft: MappingDraft) -> dict[int, str]:
    """Return the last letter of headers that are equal except for it (`Dimensioni L`, `Dimensioni P`), by position.

    The result is empty if the same words are not about the dimensions of the item.
    """
    letters_by_words: dict[str, dict[int, str]] = {}
    for position, header in enumerate(draft.headers):
        words, _, letter = (normalise_header(header).plain_texts or ("",))[0].rpartition(" ")
        if len(letter) == 1 and letter.isalpha() and not draft.concepts[position] & {"package", "seat", "arm"}:
            letters_by_words.setdefault(words, {})[position] = letter
    for words, letters in letters_by_words.items():
        if len(letters) >= _MIN_LETTERS and any(sense.field == "dimensions" for sense in find_header_meanings(words)):
            return letters
    return {}


def _map_package_dimensions(draft: MappingDraft) -> None:
    """Change the meaning of columns with dimensions or weights after a column about a carton to measures of the carton.

    Another column about a carton must follow them, or more than half of their fields must also occur in other columns.
    """
    width, start = len(draft.headers), 0
    while start < width:
        end = start
        while (
            end < width
            and draft.find_confident_field(end) in _DIMENSIONS
            and not draft.concepts[end] & _NOT_PACKAGE_CONCEPTS
        ):
            end += 1
        carton_number = _find_carton_number(draft, start - 1)
        positions = range(start, end)
        sides = {draft.find_confident_field(position) for position in positions}
        elsewhere = {draft.find_confident_field(position) for position in range(width) if position not in positions}
        if (
            positions
            and carton_number is not None
            and (_find_carton_number(draft, end) is not None or len(sides & elsewhere) * 2 > len(sides))
        ):
            for position in positions:
                first = draft.find_best_meaning(position)
                draft.meanings[position] = (
                    replace(first, field=f"cartons.{carton_number}.{_DIMENSIONS[first.field]}"),
                )
        start = max(end, start + 1)


def _find_carton_number(draft: MappingDraft, position: int) -> str | None:
    """Return the number of the carton in the field of the column at a position, or None for other columns."""
    head, _, number = (draft.find_confident_field(position) if 0 <= position < len(draft.headers) else "").partition(
        "."
    )
    if head == "carton_count" or (head == "cartons" and not number):
        return "0"
    return number.partition(".")[0] if head == "cartons" and number.count(".") == 1 else None


def _map_rug_columns(draft: MappingDraft) -> None:
    """Set the meaning of columns with rug sizes to `rug.size_text`; without rugs, clear meanings with `rug.shape`.

    A column has rug sizes if its header contains `size` and most of its values have the form of a rug size (`5' x 8'`).
    """
    positions = range(len(draft.headers))
    fields = {draft.find_confident_field(position) for position in positions} - {"rug.shape", "rug.indoor_outdoor"}
    among_rugs = any(name.startswith("rug.") for name in fields)
    among_rugs = among_rugs or any(draft.has_word(position, _LISTS["rugs"]) for position in positions)
    for position in positions:
        if not among_rugs and draft.find_confident_field(position) in ("rug.shape", "rug.indoor_outdoor"):
            best = draft.find_best_meaning(position)
            if best.field == "rug.shape" or best.score < _CLEAR_LOCATION_USE_SCORE:
                draft.meanings[position] = ()
        if not among_rugs or draft.find_confident_field(position) not in ("axes.Size", "dimensions"):
            continue
        values = [sample for sample in draft.samples[position] if sample.strip()]
        are_rug_sizes = sum(bool(_RUG_SIZE.search(sample)) for sample in values) * 2 > len(values)
        unit = normalise_header(draft.headers[position]).unit
        if are_rug_sizes and unit in (None, "ft", "cm") and "size" in draft.plain_headers[position].split():
            rug = replace(
                draft.find_best_meaning(position), field="rug.size_text", settings=(("unit", unit),) if unit else ()
            )
            draft.meanings[position] = (rug, *draft.meanings[position])
    for position in draft.find_positions("rug.size_text"):
        if draft.has_word(position, _LISTS["actual"]):
            # Beside an actual size, the other size is the nominal one, which is only a fallback.
            draft.change_best_meaning(position, score=draft.find_best_meaning(position).score + 1)


# Stock sheets with a column for each warehouse: the columns and their locations.


_PATTERNS = load_patterns("places")
_SEPARATORS = re.compile(r"[_\-:/()\[\].]+")
_KEYS = ("sku", "gtin", "mpn", "variant_key")
_NEVER_LOCATION_FIELDS = frozenset((*_KEYS, "product_key", "title", "gpc_brick"))
_LOCATION_WORDS = frozenset(("warehouse", "lang", "stock"))
_CLEAR_LOCATION_SCORE = 100
_CLEAR_QUANTITY_SCORE = 80
_SELLABLE_BONUS = 40
_MAX_LOCATION_CHARS = 24
_MAX_LOCATION_WORDS = 4
_MAX_QUANTITY_WORDS = 3


def find_location_in_header(header: str) -> str | None:
    """Return the header if it is the name of a location (`NJ`, `Warehouse 3`, `East Coast`), else None."""
    plain = normalise_words(header)
    words = plain.split()
    places = _LISTS["places"] | _LISTS["directions"]
    unknown_words = [one for one in words if one not in places and one not in _LISTS["generic"] and not one.isdigit()]
    if len(words) > _MAX_LOCATION_WORDS:
        return None
    names_location = any(one in places or one in _LISTS["generic"] for one in words)
    if names_location and not unknown_words and (plain in places or plain not in _LISTS["not_locations"]):
        return clean_line(header).strip("* ")
    is_code = _PATTERNS["code"].fullmatch(plain) and not unknown_words[1:] and words[0] not in ("x", "h", "d")
    return clean_line(header) if is_code else None


def _remove_quantity_words(kind: str, text: str) -> str:
    """Return the rest of a header with words for a quantity, an arrival or an order (`NJ` of `ETA NJ`).

    The result is an empty string if the header contains no such words.

    Args:
        kind: The kind of words: `quantity`, `arrival` (date) or `incoming` (ordered quantity).
        text: The header.
    """
    flat = _SEPARATORS.sub(" ", clean_line(text))
    pattern = _PATTERNS[kind]
    return " ".join(pattern.sub(" ", flat).split()).strip("* ") if pattern.search(flat) else ""


def _list_nonblank(samples: Sequence[str]) -> list[str]:
    return [stripped for sample in samples if (stripped := sample.strip())]


def _are_stock(samples: Sequence[str]) -> bool:
    """Return whether all values of a column are quantities or words for stock."""
    given = _list_nonblank(samples)
    return not any(map(_PATTERNS["money"].search, given)) and all(map(_PATTERNS["stock"].fullmatch, given))


def _are_surely_stock(samples: Sequence[str]) -> bool:
    """Return whether all values of a column can be stock, and some can only be stock (`20+`, `Call`)."""
    return any(map(_PATTERNS["certain_stock"].fullmatch, _list_nonblank(samples))) and _are_stock(samples)


def _are_counts(samples: Sequence[str]) -> bool:
    """Return whether all values of a column are whole numbers and some are 0, unlike prices."""
    given = _list_nonblank(samples)
    return len(given) > 1 and "0" in given and all(value.isdecimal() for value in given)


def _find_arrivals(draft: MappingDraft) -> dict[int, str]:
    """Find columns with arrival dates for a location (`ETA NJ`), and return the location by position of the column."""
    found = {position: _remove_quantity_words("arrival", header) for position, header in enumerate(draft.headers)}
    return {
        position: name
        for position, name in found.items()
        if 0 < len(name) <= _MAX_LOCATION_CHARS and draft.find_best_meaning(position).score < _CLEAR_LOCATION_SCORE
    }


def _find_stock_columns(draft: MappingDraft, arrival_locations: set[str]) -> dict[int, str]:
    """Find columns whose header is a location and whose values are quantities, and return the location by position of the column.

    Args:
        draft: The draft of the mapping.
        arrival_locations: The locations of columns with arrival dates.
    """
    found: dict[int, str] = {}
    is_stock_feed = draft.settings.stream == "stock"
    for position, header in enumerate(draft.headers):
        values, is_known, name = draft.samples[position], bool(draft.meanings[position]), clean_line(header)
        location = name if name in arrival_locations else find_location_in_header(header)
        if (
            location is None
            and is_stock_feed
            and not is_known
            and len(name) <= _MAX_LOCATION_CHARS
            and _are_surely_stock(values)
        ):
            location = name
        if not location or draft.find_best_meaning(position).field in _NEVER_LOCATION_FIELDS or not _are_stock(values):
            continue
        # Directions occur above prices, and a known header is a location only if its values confirm it.
        is_doubtful = is_known or not _LISTS["directions"].isdisjoint(draft.plain_headers[position].split())
        if (
            not is_doubtful
            or name in arrival_locations
            or is_stock_feed
            or _are_surely_stock(values)
            or _are_counts(values)
        ):
            found[position] = location
    return found


def _may_be_location(text: str) -> bool:
    """Return whether the rest of a header with a word for quantity can name a location, because it has no other meaning."""
    plain = normalise_words(text)
    if len(text) > _MAX_LOCATION_CHARS or plain in _LISTS["not_locations"]:
        return False
    return find_location_in_header(text) is not None or combine_concepts(split_into_words(plain)) <= _LOCATION_WORDS


def _find_located_quantities(draft: MappingDraft) -> dict[int, str]:
    """Find columns with a quantity and a location in the header (`Qty NJ`), and return the location by position of the column.

    A single column counts only if its location is a known name. If it is, other columns with the same words for the quantity
    have locations as well (`High Point Avail` beside `Ontario CA Avail`).
    """
    found: dict[int, str] = {}
    others: dict[int, str] = {}
    for position, header in enumerate(draft.headers):
        name = "" if _PATTERNS["cost"].search(header) else _remove_quantity_words("quantity", header)
        is_plain_quantity = draft.find_best_meaning(
            position
        ).score >= _CLEAR_QUANTITY_SCORE and not find_location_in_header(name)
        if name and not is_plain_quantity and _may_be_location(name) and draft.plain_headers[position] not in PHRASES:
            found[position] = name
        elif name and len(name) <= _MAX_LOCATION_CHARS and normalise_words(name) not in _LISTS["not_locations"]:
            others[position] = name
    found |= _find_locations_after_same_words(draft)
    quantity_words = {
        draft.headers[position].replace(name, "") for position, name in found.items() if find_location_in_header(name)
    }
    found |= {
        position: name
        for position, name in others.items()
        if draft.headers[position].replace(name, "") in quantity_words
    }
    return found if len(found) > 1 or any(map(find_location_in_header, found.values())) else {}


def _find_locations_after_same_words(draft: MappingDraft) -> dict[int, str]:
    """Return the rest of headers that are equal up to it and begin with words for a quantity, by position.

    `Verfügbarer Bestand Kassel` and `Verfügbarer Bestand Bielefeld` have the locations `Kassel` and `Bielefeld`.
    """
    rests_by_words: dict[str, dict[int, str]] = {}
    for position, header in enumerate(draft.headers):
        words = clean_line(header).split()
        for size in range(1, min(len(words), _MAX_QUANTITY_WORDS + 1)):
            rest = " ".join(words[size:])
            if len(rest) <= _MAX_LOCATION_CHARS and rest[0].isupper() and _are_stock(draft.samples[position]):
                rests_by_words.setdefault(" ".join(words[:size]), {})[position] = rest
    for words_before, rests in sorted(rests_by_words.items(), key=lambda entry: -len(entry[0])):
        is_quantity = any(
            sense.field == "quantity" and sense.score >= _CLEAR_QUANTITY_SCORE
            for sense in find_header_meanings(words_before)
        )
        if len(rests) > 1 and is_quantity and not any(find_header_meanings(rest) for rest in rests.values()):
            return rests
    return {}


def map_warehouses(draft: MappingDraft) -> None:
    """Set the meanings of columns with the stock, arrival dates and orders of single warehouses.

    A quantity column belongs to a warehouse if its header, or the header of its column of arrival dates, names a location. Any
    other quantity column is then ignored as the total.
    """
    for position in draft.find_positions("quantity"):
        if draft.has_word(position, _LISTS["sellable"]):
            draft.change_best_meaning(position, score=draft.find_best_meaning(position).score + _SELLABLE_BONUS)
    if not draft.find_positions(*_KEYS):
        return
    arrivals, located_quantities = _find_arrivals(draft), _find_located_quantities(draft)
    stock_columns = _find_stock_columns(draft, set(arrivals.values()))
    if (
        len(stock_columns) + len(located_quantities) < 2
        and not (stock_columns and arrivals)
        and not (located_quantities and not stock_columns)
    ):
        stock_columns = {}
    quantities = located_quantities | stock_columns
    locations = set(quantities.values())
    located = {
        position: ("quantity", name)
        for position, name in quantities.items()
        if draft.find_best_meaning(position).field not in MONEY
        or draft.find_best_meaning(position).score < _CLEAR_LOCATION_SCORE
    }
    located |= {
        p: ("incoming.0.eta", name)
        for p, name in arrivals.items()
        if name in locations or find_location_in_header(name)
    }
    order_columns = (
        (position, _remove_quantity_words("incoming", header)) for position, header in enumerate(draft.headers)
    )
    located |= {position: ("incoming.0.quantity", name) for position, name in order_columns if name in locations}
    for position, options in enumerate(draft.meanings):
        if position in located:
            field, name = located[position]
            draft.meanings[position] = (HeaderMeaning(field, _CLEAR_LOCATION_SCORE, (("location", name),)),)
        elif locations and position not in quantities:
            draft.meanings[position] = tuple(
                HeaderMeaning(IGNORE, meaning.score) if meaning.field == "quantity" else meaning for meaning in options
            )
