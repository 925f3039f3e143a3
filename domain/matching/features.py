"""Features of items for matching, computed from the texts of a row or from a stored variant."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from math import inf
from typing import Any, NamedTuple

from domain.catalogue.search_terms import normalise_gtin
from domain.ingestion.data import invert_table
from domain.ingestion.values.quantities import parse_weight
from domain.ingestion.values.text import clean_value
from domain.ingestion.values.words import parse_gtin
from domain.kernel.money import EXPONENTS
from domain.matching.measures import (
    CM_PER_HUNDREDTH_INCH,
    MAX_MEASURE,
    Size,
    discard_out_of_range,
    extract_sizes,
    parse_length_cell,
)
from domain.matching.words import (
    ADVERTISING_WORDS,
    COLOUR_AXES,
    COLOUR_FILLERS,
    COLOURS,
    COMPANY_WORDS,
    KINDS,
    MAX_WORD_CHARS,
    NUMBER_BY_WORD,
    QUANTITY_UNITS,
    SET_KIND,
    STOP_WORDS,
    UNITS_AFTER_SPACE,
    extract_code_stem,
    extract_model_number,
    find_kind,
    join_quantity,
    load_table,
    normalise_characters,
    normalise_compound,
    normalise_item_code,
    normalise_word,
    normalise_words,
    split_into_compounds,
)

_SET = re.compile(
    r"\b(?:sets?|packs?|boxe?s?|lot|case)(?:\s+of\s+|\s*/\s*)(\d{1,3}|[a-z]{3,6})\b"
    r"|\b(\d{1,3}|two|three|four|six|twin)[\s-]*(?:pk|packs?|er-?set)\b|\((\d{1,2})\)\s*$|(?<!\d )(?<!\d[\"'] "
    r")\bx\s?(\d{1,2})\s*$|\bqty\.?\s*(\d{1,3})"
)
_PIECES = re.compile(r"\b(\d{1,2}|two|three|four|five|six|seven)[\s-]*(?:pieces?|pcs?|pc\.|tlg|teilig|pezzi|piezas)\b")
_TABLE = re.compile(r"\btables?\s*(?:and|with|w/|\+|&)\s*(\d{1,2})\s*(?:\w+\s+)?(?:chairs?|chrs?|stools?|benches)")
_PLUS = re.compile(r"\+\s*(\d{1,2})\s*(?:chairs?|chrs?|stools?)")
_COMPLEMENT = re.compile(r"\b(?:for|fur|fuer|pour|para|per|voor|f|with|mit|avec|con|met|on|auf)\b")
"""Words before what an item is for, or what it has besides: `with legs`."""
_PHRASE_END = re.compile(r"[,;:|(/+&]| - |\b(?:and|und|in|of|von|de|di|aus|en)\b")
_NUMBERED_SET = re.compile(r"\bsets?(?=\s*(?:of\b|/|\d))")
_COMPOUND_UNIT = re.compile(r"(?<![a-z])(cu|fl|sq)\.? ?(ft|oz)(?![a-z])")
_WORD_AND_COUNT = re.compile(r"(?<=[a-z]{4})[/+](?=\d{1,2}\b)")
"""Sign between two counts (`2 drawers/3 doors`)."""
_PRICE = re.compile(r"\d[\d.,]*")
_QUANTITY = re.compile(r"\d+(?:\.\d+)?[a-z]+|\d+(?:\.\d+)?")
_WORD = re.compile(r"[^\W_]+")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_NUMBER_WITH_UNIT = re.compile(r"\d+[a-z]+")
_WORDY = re.compile(r"[a-z]{6}")
_PAIR = re.compile(r"\bpair\b")
_DIGITS = re.compile(r"\d+")
_MAX_PRICE = 10**12
_JOIN = " - "
_LIGHT_OR_DARK = frozenset(("light", "dark"))
_MAX_DESCRIPTION_CHARS = 600
_MAX_WORDS = 64
"""Maximum number of compared words of the title, and of the axes and the collection together."""
_MAX_FIELD_WORDS_OR_CODES = 32
"""Maximum number of words of a brand, of a colour and of a finish, and of codes in a title and in the axes."""
_MAX_UNIT_CHARS = 12
_MIN_NOUN_CHARS = 4
"""Minimum letters of a unit that is a noun: `2 drawers` has the word `drawers`, `2 gb` is only a quantity."""
_MAX_CODE_CHARS = 64
"""Maximum characters of a code."""
_DIMENSIONS = ("width", "depth", "height")
DimensionValues = tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class MatchFeatures:
    """Data of an item in the normalised form that comparisons use.

    Lengths are in centimetres, weights in kilograms. Words and codes are normalised (domain.matching.words).
    """

    id: str
    title: str
    """The title and the distinguishing axis values, not normalised."""
    words: frozenset[str]
    """Words of the title without brand, colours, codes and sizes."""
    quantities: frozenset[str]
    """Numbers with their units, and numbers without a unit: `8gb`, `2seat`, `161`."""
    brand: frozenset[str]
    colours: frozenset[str]
    """Words of the stated colour or finish; if none is stated, the known colours in the title."""
    shades: frozenset[str]
    """The known colours: words of `colours` that are listed as names of colours or finishes."""
    colour_stated: bool
    """True if a field states the colour or finish; otherwise `colours` is taken from the title."""
    codes: frozenset[str]
    """Codes of the item: the manufacturer's number, the model, the SKU, and codes in the title."""
    stems: frozenset[str]
    """Codes without letters at their ends: the results of `extract_code_stem` and `extract_model_number`."""
    part: str | None
    """The part number: the first that is known of the manufacturer's number, the model and the SKU."""
    mentioned: frozenset[str]
    """Codes that the description mentions and that are not in `codes`."""
    joined: frozenset[str]
    """Pairs of adjacent title words, joined to words that could be codes and are not in `codes`."""
    gtin: str | None
    sides: DimensionValues
    """The width, depth and height in centimetres, each None if unknown."""
    figures: DimensionValues
    """The width, depth and height as numbers in the source's units, each None if unknown."""
    sizes: tuple[Size, ...]
    """The sizes in the title and the axes."""
    weight: float | None
    price: float | None
    currency: str
    packs: int | None
    """The pack size: the number of equal pieces in a pack."""
    pieces: int | None
    """Number of pieces of a set, such as a table with chairs."""
    described: frozenset[str]
    """Words of the description, without stop words and advertising words."""
    kind: str = ""
    """The kind of the item, which is the head noun of the title or else of the category; empty if unknown."""


@dataclass(frozen=True, slots=True)
class StoredVariant:
    """Stored variant with the data of the variant and of the product.

    Attributes:
        price: The representative price in minor units of `currency`, or None.
    """

    variant: str
    product: str
    source: str
    product_data: Mapping[str, Any]
    variant_data: Mapping[str, Any]
    price: int | None = None
    currency: str | None = None


def compute_features_from_texts(id: str, text_by_field: Mapping[str, str]) -> MatchFeatures:
    """Compute the features of an item from its texts.

    Args:
        id: The ID of the item.
        text_by_field: The texts of the item by field name (`find_fields_by_header`); missing fields count as empty.
    """
    title, axes = (clean_value(text_by_field.get(name, "")) or "" for name in ("title", "axes"))
    flats = [_COMPOUND_UNIT.sub(r"\1\2", normalise_characters(text).replace("w/", "with ")) for text in (title, axes)]
    (of_title, rest), (of_axes, others) = (extract_sizes(_WORD_AND_COUNT.sub(" ", flat)) for flat in flats)
    (named, codes_there), (more, other_codes) = map(_split_words_and_codes, (rest, others))
    more = [*more, *_list_words(text_by_field, "collection")]
    flat, rest = (_JOIN.join(filter(None, texts)) for texts in (flats, (rest, others)))
    own = _collect_item_codes(text_by_field)
    codes = frozenset(
        (
            *own,
            *_take_distinct(codes_there, _MAX_FIELD_WORDS_OR_CODES),
            *_take_distinct(other_codes, _MAX_FIELD_WORDS_OR_CODES),
        )
    )
    brand, weight = _collect_words(text_by_field, "brand"), text_by_field.get("weight", "")
    colour = (
        (_collect_words(text_by_field, "colour") | _collect_words(text_by_field, "finish"))
        - STOP_WORDS
        - COLOUR_FILLERS
    )
    known = _find_known_colours(rest, COLOURS & {*named, *more})
    aside = known | colour | STOP_WORDS | ADVERTISING_WORDS
    called = frozenset(
        w for some in (named, more) for w in _take_distinct((w for w in some if w not in aside), _MAX_WORDS)
    )
    counted = frozenset(w for w in called if _QUANTITY.fullmatch(w))
    gtin = parse_gtin(text_by_field["gtin"]) if text_by_field.get("gtin", "").strip() else None
    unit = text_by_field.get("dim_unit", "")
    sides, figures = zip(
        *(parse_length_cell(text_by_field.get(name, ""), unit) or (None, None) for name in _DIMENSIONS), strict=True
    )
    described = normalise_characters(text_by_field.get("description", "")[:_MAX_DESCRIPTION_CHARS])
    return MatchFeatures(
        id=id,
        title=_JOIN.join(filter(None, (title, axes))),
        words=called - counted,
        quantities=counted,
        brand=brand - COMPANY_WORDS or brand,
        colours=colour or known,
        shades=(colour or known) & COLOURS,
        colour_stated=bool(colour),
        codes=codes,
        stems=frozenset(made for one in codes for made in (extract_code_stem(one), extract_model_number(one)) if made),
        part=own[0] if own else None,
        mentioned=frozenset(normalise_item_code(chunk) for chunk in split_into_compounds(described) if _is_code(chunk))
        - codes,
        joined=_join_adjacent_words(rest) - codes,
        gtin=normalise_gtin(gtin.value) if gtin and gtin.value and not gtin.faults else None,
        sides=sides,
        figures=figures,
        sizes=of_title + of_axes,
        weight=_convert_to_kilograms(parse_weight(weight, text_by_field.get("weight_unit") or None).value)
        if weight.strip()
        else None,
        price=_parse_price(text_by_field.get("price", "")),
        currency=text_by_field.get("currency", "").strip().lower(),
        packs=_find_pack_size(flat, text_by_field.get("pack", "")),
        pieces=_find_piece_count(flat, text_by_field.get("pieces", "")),
        described=frozenset(w for w in normalise_words(described) if len(w) > 2) - STOP_WORDS - ADVERTISING_WORDS,
        kind=_find_head_noun(flats[0]) or _find_head_noun(normalise_characters(text_by_field.get("category", ""))),
    )


def _find_head_noun(title: str) -> str:
    """Return the kind of item that a normalised title names; empty if unknown.

    The head noun is the last noun of the first phrase with a noun: `cover` in `Sofa cover, grey`. A title states after
    words such as `for` what the item is for. An accessory directly follows the item that it is for (`sofa leg`);
    otherwise it is a part of that item: `sofa, grey legs`.
    """
    if SET_KIND in title:
        title = _NUMBERED_SET.sub("", title)
    for phrase in _PHRASE_END.split(_COMPLEMENT.split(title, 1)[0]):
        words = _WORD.findall(phrase)
        head, head_at = "", 0
        for at, word in enumerate(words):
            kind = find_kind(word[:MAX_WORD_CHARS])
            if kind and (not head or (at - head_at <= 1 + (kind in KINDS) and not words[at - 1].isdigit())):
                head, head_at = kind, at
        if head and words != [SET_KIND]:
            return head
    return ""


def _take_distinct(values: Iterable[str], limit: int) -> list[str]:
    """Return the first `limit` distinct values, in their order."""
    return list(islice(dict.fromkeys(values), limit))


def _find_known_colours(title: str, colours: frozenset[str]) -> frozenset[str]:
    """Return the known colours in a normalised title.

    `light` and `dark` count only before another colour, not in `light weight`.

    Args:
        title: The normalised title.
        colours: The words of the title that are listed as names of colours or finishes.
    """
    if colours.isdisjoint(_LIGHT_OR_DARK):
        return colours
    words = normalise_words(title)
    degrees = {one for one, other in pairwise(words) if one in _LIGHT_OR_DARK and other in COLOURS}
    return frozenset(colour for colour in colours if colour not in _LIGHT_OR_DARK or colour in degrees)


def _collect_words(texts: Mapping[str, str], field: str) -> frozenset[str]:
    """Return the distinct standard words of a field, up to a limit."""
    return frozenset(_take_distinct(_list_words(texts, field), _MAX_FIELD_WORDS_OR_CODES))


def _list_words(texts: Mapping[str, str], field: str) -> list[str]:
    """Return the standard words of a field in order."""
    return normalise_words(normalise_characters(clean_value(texts.get(field, "")) or ""))


def _split_words_and_codes(title: str) -> tuple[Collection[str], Collection[str]]:
    """Return the standard words and the codes in a normalised title, each without duplicates and in order."""
    words: dict[str, None] = {}
    codes: dict[str, None] = {}
    compounds = split_into_compounds(title)
    counted = {
        index
        for index, (number, unit) in enumerate(pairwise(compounds))
        if _NUMBER.fullmatch(number) and normalise_word(unit[:_MAX_UNIT_CHARS]) in UNITS_AFTER_SPACE
    }
    for index, compound in enumerate(compounds):
        if index in counted:
            words[join_quantity(compound[:_MAX_CODE_CHARS], compounds[index + 1])] = None
        elif index - 1 in counted:
            words.update(dict.fromkeys(w for w in normalise_compound(compound) if len(w) >= _MIN_NOUN_CHARS))
        elif _is_code(compound):
            codes[normalise_item_code(compound)] = None
            codes.update(
                (normalise_item_code(piece), None)
                for piece in compound.split("/")
                if piece != compound and _is_code(piece)
            )
        else:
            words.update(dict.fromkeys(normalise_compound(compound)))
    return words, codes


def _join_adjacent_words(title: str) -> frozenset[str]:
    """Return pairs of adjacent words of a normalised title that form a code if they are joined.

    Vendors write both `Coolpix P80` and `COOLPIXP80`.
    """
    compounds = split_into_compounds(title)
    made = (
        made
        for first, second in pairwise(compounds)
        if not first[-1].isdigit()
        and any(map(str.isdigit, second))
        and 4 <= len(made := normalise_item_code(first + second)) <= 16
    )
    return frozenset(_take_distinct(made, 2 * _MAX_WORDS))


def _is_code(compound: str) -> bool:
    """Return whether a word of a title is a model code: it has letters and digits, or is a long number.

    A quantity with its unit is not a code.
    """
    code = normalise_item_code(compound)
    if len(code) > _MAX_CODE_CHARS:
        return False
    digits = sum(map(str.isdigit, code))
    letters = len(code) - digits
    if not letters:
        return (digits >= 5 and compound.isdigit()) or (digits >= 8 and "." not in compound)
    if not digits or len(code) < 4:
        return False
    if _NUMBER_WITH_UNIT.fullmatch(code):
        unit = code.lstrip("0123456789")
        if len(unit) > 1 and unit in QUANTITY_UNITS:
            return False
        if len(code) - len(unit) <= 4:
            return len(unit) <= 3 and unit not in QUANTITY_UNITS and "-" not in compound
    if digits == 1:
        return len(code) >= 5 and code[0].isalpha() and not _WORDY.search(code)
    return letters <= 8 or digits >= 3


def _collect_item_codes(text_by_field: Mapping[str, str]) -> list[str]:
    """Return the distinct codes in the fields of the item: the manufacturer's number, the model and the SKU."""
    texts = [clean_value(text_by_field.get(name, "")) for name in ("mpn", "model", "sku")]
    return list(
        dict.fromkeys(made for text in texts if text and 3 <= len(made := normalise_item_code(text)) <= _MAX_CODE_CHARS)
    )


def _convert_to_kilograms(weight: Mapping[str, Any] | None) -> float | None:
    """Return a weight in kilograms; None if it is missing or too great."""
    return weight["hundredths_lb"] * 0.0045359237 if weight and weight["hundredths_lb"] < 100 * MAX_MEASURE else None


def _parse_price(text: str) -> float | None:
    """Return the first number in a text as a price; None without a number above 0."""
    match = _PRICE.search(text)
    if match is None:
        return None
    bare = match[0].strip(".,")
    if re.search(r",\d{1,2}$", bare):
        bare = bare.replace(".", "").replace(",", ".")
    try:
        return discard_out_of_range(float(bare.replace(",", "")), _MAX_PRICE) or None
    except ValueError:
        return None


def _parse_count_cell(cell: str) -> int | None:
    """Return the first number in a cell; None if the cell has no number or the number is too long."""
    match = _DIGITS.search(cell)
    return int(match[0]) if match and len(match[0]) < len(str(MAX_MEASURE)) else None


def _parse_matched_count(match: re.Match[str]) -> int | None:
    """Return the count that a regular expression has matched, in digits or as a word; None for an unknown word."""
    text = next(filter(None, match.groups()), "")
    return int(text) if text.isdigit() else NUMBER_BY_WORD.get(text)


def _find_pack_size(title: str, cell: str) -> int | None:
    """Return the number of equal pieces in a pack, from the cell or else from the title; None if unknown."""
    if (count := _parse_count_cell(cell)) is not None:
        return count
    if match := _SET.search(title):
        return _parse_matched_count(match)
    return 2 if _PAIR.search(title) else None


def _find_piece_count(title: str, cell: str) -> int | None:
    """Return the number of pieces of a set, from the cell or else the title: `table and 4 chairs` has five."""
    if (count := _parse_count_cell(cell)) is not None:
        return count
    if match := _PIECES.search(title):
        return _parse_matched_count(match)
    match = _TABLE.search(title) or _PLUS.search(title)
    return int(match[1]) + 1 if match else None


_FIELD_BY_HEADER = invert_table(load_table("columns"))
"""The field of each known header; headers are normalised, with underscores between words."""


def find_fields_by_header(headers: Iterable[str]) -> dict[str, str]:
    """Return the field of each known header, by header. Several headers can have the same field; case is ignored."""
    named = {
        header: "_".join(normalise_characters(header).replace("-", " ").replace("_", " ").split()) for header in headers
    }
    return {header: _FIELD_BY_HEADER[name] for header, name in named.items() if name in _FIELD_BY_HEADER}


def select_texts_by_field(row: Mapping[str, str], field_by_header: Mapping[str, str]) -> dict[str, str]:
    """Return the texts of a row by field.

    If several columns have the same field, the first text that is not blank is used.

    Args:
        row: The texts by header.
        field_by_header: The field of each known header.
    """
    found: dict[str, str] = {}
    for header, field in field_by_header.items():
        text = row.get(header) or ""
        if text.strip() and field not in found:
            found[field] = text
    return found


def list_ignored_headers(headers: Sequence[str], field_by_header: Mapping[str, str]) -> list[str]:
    """Return the headers without a known field, except the header of the ID column."""
    return [
        header for header in headers if header not in field_by_header and normalise_characters(header).strip() != "id"
    ]


_FINISH_AXES = frozenset("finish oberflache wood frame".split())
_PACK_AXES = frozenset("pack quantity qty".split())


def compute_features(item: StoredVariant) -> MatchFeatures:
    """Return the features of a stored variant.

    Axes distinguish the variant from its siblings. Materials count as part of the description. Cartons are ignored,
    because they describe the parcel.
    """
    product, variant = item.product_data, item.variant_data
    colour, finish, others, pack = _split_axes(variant)
    title, axes = _build_titles(product, variant, others)
    piece_count = sum(component.get("quantity", 1) for component in variant.get("components", ()))
    texts = {
        "title": title,
        "axes": axes,
        "brand": product.get("brand", ""),
        "collection": product.get("collection", ""),
        "category": ", ".join(reversed(product.get("category_path", ()))),
        "description": " ".join((product.get("description", ""), *variant.get("materials", ()))),
        "gtin": variant.get("gtin", ""),
        "mpn": variant.get("mpn", ""),
        "sku": variant.get("sku", ""),
        "colour": variant.get("colour", "") or colour,
        "finish": variant.get("finish", "") or finish,
        "pack": pack,
        "pieces": str(piece_count) if 1 < piece_count < MAX_MEASURE else "",
        "currency": item.currency or "",
    }
    sides, figures = _convert_dimensions(variant)
    return replace(
        compute_features_from_texts(item.variant, texts),
        sides=sides,
        figures=figures,
        weight=_convert_to_kilograms(variant.get("weight")),
        price=item.price / float(10 ** EXPONENTS.get(item.currency, 2))
        if item.price and item.currency is not None
        else None,
    )


def _split_axes(variant: Mapping[str, Any]) -> tuple[str, str, list[str], str]:
    """Return the values of a variant's axes: the colour, the finish, all other values, and the pack size."""
    colours, finishes, others, pack = list[str](), list[str](), list[str](), ""
    for name, value in variant.get("axes", {}).items():
        called = set(normalise_characters(name).replace("_", " ").split())
        if called & COLOUR_AXES:
            colours.append(value)
        elif called & _FINISH_AXES:
            finishes.append(value)
        elif called & _PACK_AXES and value.strip().isdigit():
            pack = value
        else:
            others.append(value)
    return " ".join(colours), " ".join(finishes), others, pack


def _build_titles(product: Mapping[str, Any], variant: Mapping[str, Any], axes: Iterable[str]) -> tuple[str, str]:
    """Return the combined title of a product and its variant, and further texts that distinguish the variant.

    Texts that repeat earlier texts are omitted.
    """
    title, own = product.get("title", ""), variant.get("title", "")
    if own and set(normalise_words(normalise_characters(title))) <= set(normalise_words(normalise_characters(own))):
        title, own = own, ""
    rug = "" if variant.get("dimensions") else variant.get("rug", {}).get("size_text", "")
    texts_seen: list[str] = []
    return _join_new_texts((title, own), texts_seen), _join_new_texts((*axes, rug), texts_seen)


def _join_new_texts(texts: Iterable[str], texts_seen: list[str]) -> str:
    """Join the texts, without texts that an earlier text contains.

    Args:
        texts: The texts in order.
        texts_seen: The normalised earlier texts, to which the new texts are added.
    """
    new: list[str] = []
    for text in texts:
        flat = normalise_characters(text)
        if text and not any(flat in one for one in texts_seen):
            new.append(text)
            texts_seen.append(flat)
    return " - ".join(new)


def _convert_dimensions(variant: Mapping[str, Any]) -> tuple[DimensionValues, DimensionValues]:
    """Return width, depth and height in centimetres, and the same lengths as numbers in the source's units.

    The diameter of a round item is its width and its depth.
    """
    dimensions = variant.get("dimensions", {})
    if diameter := dimensions.get("diameter"):
        dimensions = {"width": diameter, "depth": diameter, **dimensions}
    lengths = [
        one if one and one["hundredths_in"] < 100 * MAX_MEASURE else None for one in map(dimensions.get, _DIMENSIONS)
    ]
    centimetres = [round(one["hundredths_in"] * CM_PER_HUNDREDTH_INCH, 2) or None if one else None for one in lengths]
    return tuple(centimetres), tuple(
        discard_out_of_range(float(one["given"]["value"])) or None if one else None for one in lengths
    )


_RECOMMENDED = ("msrp", "map")


class Price(NamedTuple):
    """Amount in minor units of a currency; both are None if no price is known."""

    amount: int | None = None
    currency: str | None = None


def find_lowest_price(offers: Iterable[tuple[str, Mapping[str, Any]]]) -> Price:
    """Return the lowest price of the offers; if no offer has a price, the lowest recommended price (MSRP, else MAP).

    Args:
        offers: Active offers as pairs of ID and data.
    """
    data = min(
        offers,
        key=lambda offer: (
            _find_first_amount(offer[1], "price", default=inf),
            _find_first_amount(offer[1], *_RECOMMENDED, default=inf),
            offer[0],
        ),
        default=("", dict[str, Any]()),
    )[1]
    return Price(_find_first_amount(data, "price", *_RECOMMENDED), data.get("currency"))


def _find_first_amount(data: Mapping[str, Any], *names: str, default: Any = None) -> Any:
    """Return the first of the named prices that the offer has, or `default`."""
    return next((data[name] for name in names if data.get(name) is not None), default)
