"""Columns that each contain the prices or the stock of one variant, such as one for each fabric group or size."""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from domain.ingestion.data import load_patterns
from domain.ingestion.mapping.neighbours import MappingDraft
from domain.ingestion.values.money import parse_money
from domain.ingestion.values.text import clean_line, clean_value
from domain.ingestion.values.words import parse_number
from domain.ingestion.vocabulary.fields import IGNORE, MONEY
from domain.ingestion.vocabulary.header_meanings import HeaderMeaning, find_header_meanings, normalise_words

_SIZE_AXIS = "Size"
_CURRENCY = re.compile(r"\s*(?:\([A-Za-z€$£]{1,3}\)|[€$£]|\b(?:EUR|USD|GBP|CHF|PLN|SEK|NOK|DKK|CAD|AUD))$")
_WEIGHT_OR_VOLUME = re.compile(r"(?i)\((?:kgs?|g|lbs?|oz|cbm|l)\)$")
_LENGTH = re.compile(r"(?i)\((?:mm|cm|m|in|ft|yds?)\)$")
_PARTS = re.compile(r"[/()\[\]|:]")
_NAMED_OPTIONS = ("group", "bed")
"""Patterns of options that are no sizes, so that a unit of length in the header is that of the column's values."""
_MIN_COLUMNS = 2
_MAX_OPTIONS = 200
"""Maximum number of options of a table, because each row is read once for each option."""
_OPTION_SETTINGS = ("axis", "option")
_FLAGS = frozenset("01")
_AMOUNT_SHARE = 0.8
_MAX_PREFIX_WORDS = 5
_SCORE = 70
_MIN_CLEAR_SCORE = 60
_VALUE_FIELDS = MONEY | {"quantity"}
_OPTION_FIELDS = _VALUE_FIELDS | {
    "",
    IGNORE,
    "axes.Size",
    "dimensions",
    "rug.size_text",
    "category_path",
    "dimensions.diameter",
}
"""Fields that headers of options can have before their values are examined."""


@dataclass(frozen=True, slots=True)
class _OptionHeader:
    """Header that names a variant: the words before it, the axis, and the value of the axis."""

    before: str
    axis: str
    value: str


def _parse_header(header: str) -> _OptionHeader | None:
    line = clean_line(header)
    if _WEIGHT_OR_VOLUME.search(line):
        return None
    text, states_length = _CURRENCY.sub("", line), _LENGTH.search(line) is not None
    for name, pattern in load_patterns("options").items():
        if states_length and name in _NAMED_OPTIONS:
            continue
        if found := pattern.fullmatch(text):
            axis = found["axis"] if name == "group" else _SIZE_AXIS
            return _OptionHeader(found["before"].strip(" :-/("), axis, found["value"].strip())
    return None


def _fold_option(option: _OptionHeader) -> tuple[str, str]:
    """Return the axis and the value in the form in which options are compared: `200 x 290` and `200×290` are equal."""
    return option.axis.casefold(), "".join(option.value.casefold().replace("×", "x").split())


def map_options(draft: MappingDraft) -> None:
    """Set the meanings of columns that contain the prices or the stock of one variant each.

    There must be at least two such columns with the same axis and the same words before it, and their values must be
    amounts, or quantities if all are 0 or 1. Columns of more than 200 options have no field. The words determine the field;
    without words, the amounts are prices, or quantities in a feed of stock. Other columns of quantities then have no field.
    If the source has a `price_code` that names an option, only this option is read.
    """
    known: dict[tuple[str, str], _OptionHeader] = {}
    mapped: set[int] = set()
    known_words: set[str] = set()
    # A single column is an option only beside others with the same words before it: `EK PG 1`, `EK PG 2`, `EK Leder 70`.
    for (before, _), options in sorted(_group_options(draft).items(), key=lambda group: -len(group[1])):
        values = {option.value.casefold() for option in options.values()}
        cells = [cell for position in options for cell in draft.samples[position] if clean_value(cell)]
        is_single = len(values) < _MIN_COLUMNS and before not in known_words
        if is_single or len(values) < len(options) or not _are_amounts(cells):
            continue
        found = {_fold_option(option): option for option in options.values()} | known
        if len(found) > _MAX_OPTIONS:
            continue
        known = found
        for position, option in options.items():
            spelling = found[_fold_option(option)]
            options[position] = replace(option, axis=spelling.axis, value=spelling.value)
        are_flags = _FLAGS.issuperset(map(str.strip, cells))
        for position, meaning in _build_meanings(draft, options):
            if meaning.field == "quantity" or not are_flags:
                draft.meanings[position] = (meaning,)
                mapped.add(position)
                known_words.add(before)
    if _select_price_code(draft, mapped) or not mapped:
        return
    # A quantity of the whole row is the stock of no single variant.
    for position in set(draft.find_positions("quantity")) - mapped:
        draft.exclude(position)


def _group_options(draft: MappingDraft) -> dict[tuple[str, str], dict[int, _OptionHeader]]:
    """Return the headers of options by position, grouped by the words before the option and its axis."""
    groups: dict[tuple[str, str], dict[int, _OptionHeader]] = defaultdict(dict)
    for position, header in enumerate(draft.headers):
        option = _parse_header(header)
        if option is not None and draft.find_confident_field(position) in _OPTION_FIELDS:
            groups[option.before.casefold(), option.axis.casefold()][position] = option
    return groups


def _select_price_code(draft: MappingDraft, mapped: set[int]) -> bool:
    """Read only the option that the `price_code` of the source names, as the price of the row; return whether there is one."""
    code = normalise_words(draft.settings.price_code or "")
    chosen = {position for position in mapped if code and f" {code} " in f" {draft.plain_headers[position]} "}
    for position in mapped if chosen else ():
        if position in chosen:
            settings = draft.find_best_meaning(position).settings
            draft.change_best_meaning(
                position, settings=tuple(entry for entry in settings if entry[0] not in _OPTION_SETTINGS)
            )
        else:
            draft.exclude(position)
    return bool(chosen)


def _are_amounts(cells: Sequence[str]) -> bool:
    """Return whether at least four fifths of the cells are amounts; others can be remarks such as `auf Anfrage`."""
    amounts = [
        cell for cell in cells if parse_number(cell).value is not None or parse_money(cell, "usd").value is not None
    ]
    return len(amounts) >= max(_AMOUNT_SHARE * len(cells), 1)


def _build_meanings(draft: MappingDraft, options: dict[int, _OptionHeader]) -> Iterator[tuple[int, HeaderMeaning]]:
    """Yield the meaning of each column of a group, if the words before the options have no other meaning."""
    before = next(iter(options.values())).before
    # `Size (cm) / trade price`, `Sizes (net price)` and `Trade price by fabric` name the axis and the field.
    words = before.split()
    meanings = [
        found[0]
        for text in (
            before,
            *_PARTS.split(before),
            *(" ".join(words[:count]) for count in range(min(len(words) - 1, _MAX_PREFIX_WORDS), 0, -1)),
        )
        if (found := find_header_meanings(text)) and found[0].score >= _MIN_CLEAR_SCORE
    ]
    stated = next((meaning for meaning in meanings if meaning.field in _VALUE_FIELDS), None)
    if stated is None and any(meaning.field not in _OPTION_FIELDS for meaning in meanings):
        return
    default = "quantity" if draft.settings.stream == "stock" else draft.price_field
    for position, option in options.items():
        settings = (*(stated.settings if stated else ()), ("axis", option.axis), ("option", option.value))
        score = stated.score if stated else _SCORE
        yield position, HeaderMeaning(stated.field if stated else default, score, settings, is_guess=stated is None)
