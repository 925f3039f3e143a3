"""Parser of labels next to lengths (`Seat height`) in all supported languages, and assignment of lengths to dimensions.

    label     := modifier* dimension modifier*          ("Overall height", "hauteur d'assise", "Sitzhöhe", "heigth")
    modifier  := neutral | bound | seat | arm | free | part | noun

With neutral modifiers, the label means a dimension of the item. Words for a bound (`min`, `max`) mark a minimum or a
maximum. With words for seat, arm and clearance, the label means another measure. A word for a part (drawer, mattress,
cable) or another quantity (load, volume) means that the number is not a dimension of the item. Any other noun names the
item or piece that has the dimension. Words for dimensions with five letters or more are recognised with one letter
wrong, missing, added or swapped. The words are in `data/labels.toml`.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from rapidfuzz.distance import OSA

from domain.catalogue.data import Dimensions, Length
from domain.ingestion.data import invert_table, load_patterns, load_toml, load_word_set
from domain.ingestion.values.text import ParseFault, ParseResult, build_conflict_fault, build_unreadable_result

DIMENSION_BY_WORD = invert_table(load_toml("labels")["sides"])
DIMENSION_BY_LETTER = {
    "w": "width",
    "d": "depth",
    "h": "height",
    "l": "length",
    "b": "width",
    "t": "depth",
    "p": "depth",
}
(
    NEUTRAL_WORDS,
    _FUNCTION_WORDS,
    _LOWER,
    _UPPER,
    SEAT_WORDS,
    ARM_WORDS,
    _CLEARANCE_WORDS,
    _UNDER,
    _PARTS,
    _OTHER_QUANTITIES,
    _CERTAIN_STATES,
    _POSSIBLE_STATES,
    _NORMAL_STATES,
    _INTERIOR_OR_PACKAGE,
) = (
    load_word_set("labels", name)
    for name in (
        "neutral function_words lower upper seat arm clearances under parts other_quantities certain_states"
        " possible_states normal_states interior_or_package"
    ).split()
)
_COMPOUND_ENDINGS = load_toml("labels")["compound_endings"].split()
_THICKNESS = load_word_set("labels", "thickness")
_SEQUENCE_PARTS = _INTERIOR_OR_PACKAGE | load_word_set("labels", "sequence_parts")
_KNOWN = load_word_set("labels", "valid_words").union(
    NEUTRAL_WORDS,
    _PARTS,
    SEAT_WORDS,
    ARM_WORDS,
    _FUNCTION_WORDS,
    _OTHER_QUANTITIES,
    _NORMAL_STATES,
    _CERTAIN_STATES,
    DIMENSION_BY_WORD,
)
_MIN_CORRECTABLE_CHARS = 5
_LONG_DIMENSION_WORDS = [word for word in DIMENSION_BY_WORD if len(word) >= _MIN_CORRECTABLE_CHARS]
LABEL_WORDS_BEFORE_LETTER = _PARTS | _LOWER | _UPPER | NEUTRAL_WORDS | _CLEARANCE_WORDS
"""Words directly before the letter of a dimension that belong to the label and are not the name of an item: `Drawer W`, `Max H`."""
_ATTRIBUTE_NAME = re.compile(
    r"(?:minimum|maximum)?(overall|total|product|assembled|item|seat|arm|armrest|clearance)(?:product)?"
    r"(width|depth|height|length|diameter|from|weight)?([a-z]*)"
)
_LIGATURES = str.maketrans({"ß": "ss", "ł": "l", "ø": "o", "æ": "ae", "đ": "d", "œ": "oe", "ё": "е"})
_LETTER_RUNS = re.compile(r"[^\W\d_]+")
_PACKAGING = re.compile(r"verpa[ck]k|emballa|embala|imball|packag|pakk?et|forpack|opakow|shipping|lieferma|versandma")
_HEIGHT_PREPOSITION = re.compile(r"(?i)(?:\bà|\bat|\bauf|\bop)\s*$")
"""Pattern of a preposition before the height of a seat: `Assise à 49 cm`."""
_DIMENSION_BY_ABBREVIATION = {"sh": "seat_height", "sd": "seat_depth", "ah": "arm_height"}


@dataclass(frozen=True, slots=True)
class NumberLabel:
    """Meaning of the words next to a number in a size.

    Attributes:
        role: `dimension` (a dimension of the item, or a measure of its seat), `max` (the maximum of a dimension),
            `other` (a dimension of a part, or not a size), `noun` (a dimension of the item or piece that `noun` names),
            or an empty string if the words name no dimension.
        dimension: The dimension, such as `width` or `seat_height`, or None.
        noun: The name of the item or piece that has the dimension; empty for other roles than `noun`.
    """

    role: str = ""
    dimension: str | None = None
    noun: str = ""


EMPTY_LABEL = NumberLabel()
_OTHER = NumberLabel("other")


@lru_cache(maxsize=16384)
def normalise_word(word: str) -> str:
    """Normalise a word for comparisons: lower case, without accents."""
    low = word.lower()
    if low.isascii():
        return low
    flat = "".join(c for c in unicodedata.normalize("NFKD", low.translate(_LIGATURES)) if not unicodedata.combining(c))
    # Composing again keeps Cyrillic й, whose mark is part of the letter, comparable in one form.
    return unicodedata.normalize("NFC", flat)


def split_into_plain_words(text: str) -> list[str]:
    """Split a text into words in lower case without accents; all other characters than letters separate words."""
    return [normalise_word(word) for word in _LETTER_RUNS.findall(unicodedata.normalize("NFC", text))]


@lru_cache(maxsize=16384)
def find_dimension_of_word(word: str) -> str | None:
    """Return the dimension (or `length`) that a word means, even if misspelt by one letter, or None."""
    side = DIMENSION_BY_WORD.get(word)
    if side or not _MIN_CORRECTABLE_CHARS <= len(word) < 20 or word in _KNOWN:
        return side
    meant = {
        DIMENSION_BY_WORD[known] for known in _LONG_DIMENSION_WORDS if OSA.distance(word, known, score_cutoff=1) <= 1
    }
    return meant.pop() if len(meant) == 1 else None


def _separate_dimension_words(words: list[str]) -> tuple[list[str], list[str]]:
    """Separate words for dimensions from other words, and return the dimensions and the other words.

    Compounds such as `sitzhohe` are split.
    """
    if len(words) == 2 and min(map(len, words)) <= 2 and (joined := DIMENSION_BY_WORD.get("".join(words))):
        # A blank inside a word: `dept h`.
        return [joined], []
    sides: list[str] = []
    others: list[str] = []
    for word in words:
        if side := find_dimension_of_word(word):
            sides.append(side)
        elif root := next((root for root in _COMPOUND_ENDINGS if word.endswith(root)), None):
            sides.append(DIMENSION_BY_WORD[root])
            first = word.removesuffix(root).rstrip("s")
            # The first part is compared without linking letters (`ruckenlehnen` is `ruckenlehne`).
            stems = (first.removesuffix(link) for link in ("", "n", "s", "en", "es"))
            others.append(next((stem for stem in stems if stem in _KNOWN), first))
        else:
            others.append(word)
    if sides or len(words) > 3:
        return sides, others
    return [DIMENSION_BY_LETTER[word] for word in others if word in DIMENSION_BY_LETTER], [
        word for word in others if word not in DIMENSION_BY_LETTER
    ]


def _parse_attribute_name(words: list[str]) -> NumberLabel | None:
    """Parse an attribute name without spaces, such as `overallheight-toptobottom`, to a label; None for other words."""
    match = _ATTRIBUTE_NAME.fullmatch("".join(words)) if len(words[0]) > 8 else None
    if match is None or not (match[2] or match[1] == "clearance"):
        return None
    if match[1] == "clearance":
        return NumberLabel("dimension", "clearance")
    if match[1] in ("seat", "arm", "armrest"):
        return _build_seat_or_arm_label(match[1].removesuffix("rest"), match[2])
    return _OTHER if match[2] in ("from", "weight") else NumberLabel("dimension", match[2])


def _build_seat_or_arm_label(seat_or_arm: str, dimension: str) -> NumberLabel:
    """Build the label for a dimension of the seat or the arm; if the catalogue has no such field, the role is `other`.

    Args:
        seat_or_arm: `seat` or `arm`.
        dimension: The dimension, such as `height`.
    """
    name = f"{seat_or_arm}_{dimension}"
    return NumberLabel("dimension", name) if name in _DIMENSION_BY_ABBREVIATION.values() else _OTHER


def _build_clearance_label(other_words: set[str]) -> NumberLabel:
    """Build the label for the free height below an item, unless other words show that something else is meant."""
    return _OTHER if other_words & {"wall", "knee", "recline"} else NumberLabel("dimension", "clearance")


def _build_dimension_label(dimension: str, other_words: list[str]) -> NumberLabel:
    """Build the label for a dimension, depending on the other words next to the number.

    Args:
        dimension: The dimension that a word names.
        other_words: The other words.
    """
    kinds = set(other_words)
    if kinds & _OTHER_QUANTITIES:
        return _OTHER
    if kinds & _CLEARANCE_WORDS or (
        kinds & _UNDER and dimension == "height" and not kinds & _PARTS - _UNDER - {"free"}
    ):
        return _build_clearance_label(kinds)
    # A single letter next to a word is a mark in a drawing: `A Overall height`.
    idle = NEUTRAL_WORDS | _FUNCTION_WORDS | _LOWER | _UPPER
    significant = [word for word in other_words if word not in idle and len(word) > 1]
    if kinds & SEAT_WORDS or (kinds & ARM_WORDS and dimension == "height"):
        kind, own_words = ("seat", SEAT_WORDS) if kinds & SEAT_WORDS else ("arm", ARM_WORDS | {"rest"})
        unexpected_words = set(significant) - own_words - {"height", "adjustable"}
        return _OTHER if unexpected_words or kinds & _UPPER else _build_seat_or_arm_label(kind, dimension)
    if {"back", "front"} <= kinds:
        significant = [word for word in significant if word != "back"]
    including = kinds & {"including", "incl", "inc"}
    if any(map(_PACKAGING.match, significant)) or (not including and not (_PARTS | ARM_WORDS).isdisjoint(significant)):
        return _OTHER
    if significant and not including:
        return NumberLabel("noun", dimension, " ".join(significant))
    return NumberLabel("max" if kinds & _UPPER else "dimension", dimension)


@lru_cache(maxsize=16384)
def parse_label(text: str) -> NumberLabel:
    """Parse the words next to a number, such as `SEAT HT`, `Frame, depth`, `Min. height` or `hauteur d'assise`."""
    words = split_into_plain_words(text)
    if not words:
        return EMPTY_LABEL
    if len(words) == 1 and words[0] in _DIMENSION_BY_ABBREVIATION:
        return NumberLabel("dimension", _DIMENSION_BY_ABBREVIATION[words[0]])
    if glued := _parse_attribute_name(words):
        return glued
    sides, others = _separate_dimension_words(words)
    kinds = set(others)
    if len(set(sides)) == 1:
        return _build_dimension_label(sides[0], others)
    if not sides and _HEIGHT_PREPOSITION.search(text) and (kind := find_seat_or_arm(text)):
        return NumberLabel("dimension", f"{kind}_height")
    if not sides and kinds & _CLEARANCE_WORDS:
        return _build_clearance_label(kinds)
    if kinds & (_OTHER_QUANTITIES | _THICKNESS) or (sides and not kinds <= NEUTRAL_WORDS | _FUNCTION_WORDS):
        return _OTHER
    return EMPTY_LABEL


@lru_cache(maxsize=4096)
def detect_bound(text: str) -> str:
    """Return `max` for words that mean a maximum (`up to`), `min` for a minimum (`from`), else an empty string."""
    words = set(split_into_plain_words(text))
    significant = words - NEUTRAL_WORDS - _FUNCTION_WORDS | words & {"from", "de", "von"}
    if significant and significant <= _UPPER | {"up"}:
        return "max"
    return "min" if significant and significant <= _LOWER | {"from", "ab", "de", "von", "da", "desde", "vanaf"} else ""


def _remove_size_ending(word: str) -> str:
    """Return the first part of a German or Dutch compound with a word for size (`innen` for `Innenmaße`), or the word itself."""
    for ending in ("masse", "mass", "abmessungen", "abmessung", "afmetingen", "maten"):
        stem = word.removesuffix(ending)
        if stem != word and (
            known := {stem, stem.rstrip("s")} & (NEUTRAL_WORDS | _PARTS | SEAT_WORDS | ARM_WORDS | {"stell", "liege"})
        ):
            return {"stell": "total", "liege": "sleeping"}.get(min(known), min(known))
    return word


def find_seat_or_arm(name: str) -> str:
    """Return `seat` or `arm` if a name means only this part (`Sitzmaße`, `Armrest`), else an empty string."""
    significant = set(map(_remove_size_ending, split_into_plain_words(name))) - NEUTRAL_WORDS - _FUNCTION_WORDS
    if significant and significant <= SEAT_WORDS:
        return "seat"
    return "arm" if significant and significant <= ARM_WORDS | {"rest"} else ""


def consists_of_part_words(text: str) -> bool:
    """Return whether a name consists only of words for parts of an item: `Frame`, `Drawer interior`."""
    return set(split_into_plain_words(text)) <= _PARTS | _FUNCTION_WORDS | NEUTRAL_WORDS


def contains_part_word(text: str) -> bool:
    """Return whether a name contains a word for a part of an item, or for a quantity that is not a size."""
    return bool(set(split_into_plain_words(text)) & (_PARTS | _OTHER_QUANTITIES))


@lru_cache(maxsize=16384)
def determine_name_role(text: str) -> str:
    """Return the role of a name before a size, which determines what has the size.

    The roles are:

    - `whole`: the item; the name is empty or general.
    - `normal_state`: the item in its normal state, such as closed or upright.
    - `other_state`: the item in another state, such as reclined or extended.
    - `interior_or_package`: the inside of the item, its package, or something inside or above the item, such as a drawer or a lamp shade.
    - `part`: a part of the item.
    - `piece`: a piece of a set.
    """
    words = [_remove_size_ending(word) for word in split_into_plain_words(text) if word not in _FUNCTION_WORDS]
    if any(map(_PACKAGING.match, words)):
        return "interior_or_package"
    significant = [word for word in words if word not in NEUTRAL_WORDS]
    if not significant:
        return "whole"
    kinds = set(significant)
    if kinds & _CERTAIN_STATES or (
        kinds & _POSSIBLE_STATES
        and (significant[-1] in _POSSIBLE_STATES or kinds <= _POSSIBLE_STATES | {"when", "position"})
    ):
        return "other_state"
    if "up" in kinds and re.search(r"\bup to\W*$", text, re.I):
        return "other_state"
    if kinds <= _NORMAL_STATES | _LOWER | {"position", "when"}:
        return "normal_state"
    if kinds & _UPPER and kinds <= _UPPER | _LOWER:
        return "other_state"
    if kinds & _INTERIOR_OR_PACKAGE and (
        significant[-1] in _INTERIOR_OR_PACKAGE or kinds <= _INTERIOR_OR_PACKAGE | _SEQUENCE_PARTS
    ):
        return "interior_or_package"
    return "part" if significant[-1] in _SEQUENCE_PARTS or significant[0] in _INTERIOR_OR_PACKAGE else "piece"


_WITH_ABBREVIATED = re.compile(r"(?i)(?<![^\W_])w/")
(_SIZE_WORDS, _NO_BED, _BED, _RUG, _PILLOW, _FURNITURE, _BED_SIZES) = (
    load_patterns("labels")[name] for name in "dimension_suffix no_bed bed rug pillow furniture bed_sizes".split()
)


def clean_piece_name(name: str, text: str) -> str:
    """Remove words such as "size" from the name of a piece of a set; `with` becomes `w/` if the text contains `w/`.

    Args:
        name: The name in the normalised text.
        text: The original text.
    """
    abbreviated = _WITH_ABBREVIATED.search(text)
    return _SIZE_WORDS.sub("", re.sub(r"\bwith\b", abbreviated[0], name) if abbreviated else name)


# Assignment of lengths to dimensions by letters, words or positions.


TRADE_ORDER = "trade"
"""Order of dimensions for which numbers without letters are width x depth x height, as usual in the furniture trade."""
BED = "bed"
RUG = "rug"
PILLOW = "pillow"
_MAX_CHARS = 500
_USUAL_ORDER = ("width", "depth", "height")
_DIMENSION_BY_ORDER_LETTER = {**DIMENSION_BY_LETTER, "o": "diameter"}
"""Dimensions by letter in an order of dimensions such as `wdh`; `o` is the diameter."""


def find_dimension_of_label(label: str) -> str | None:
    """Return the dimension (or `length`) of the item that a label names, or None if it names no such dimension."""
    found = parse_label(label)
    return found.dimension if found.role in ("dimension", "max") else None


@lru_cache(maxsize=16384)
def determine_size_kind(category: str, title: str) -> str:
    """Return the kind of furniture if letters of dimensions have a special meaning for it: `bed`, `rug` or `pillow`, else an empty string.

    Args:
        category: The category path, which is examined before the title.
        title: The title.
    """
    category, title = category[:_MAX_CHARS], title[:_MAX_CHARS]
    leaf = re.split(r"[>|/]\s*+", category)[-1].rstrip()
    for text in (leaf, category, title):
        if _RUG.search(text):
            return RUG
        if _BED.search(text) and not _NO_BED.search(text):
            return BED
        if _PILLOW.search(text) and text is not title:
            return PILLOW
    return ""


@lru_cache(maxsize=4096)
def determine_piece_kind(name: str, kind: str) -> str:
    """Return the kind of a piece of a set (`determine_size_kind`), according to its name, or else the kind of the set.

    Args:
        name: The name of the piece.
        kind: The kind of the set.
    """
    if _BED_SIZES.fullmatch(name.strip()):
        return BED
    return determine_size_kind(name, "") or ("" if kind == BED and _FURNITURE.search(name[:_MAX_CHARS]) else kind)


LabelledLength = tuple[Length, str | None]
"""A length, and the dimension that a letter or word next to it names, or None."""


def _assign_by_letters(items: Sequence[LabelledLength], kind: str) -> tuple[dict[str, Length], list[Length]]:
    """Assign lengths to the dimensions that their letters name.

    L is the width, and W is then the depth if there is no D. On a bed or rug, L next to W without D is the depth. L
    next to W and D is the height, or is omitted if there is an H.

    Args:
        items: The lengths, each with the named dimension or None.
        kind: The kind of the item (`determine_size_kind`).

    Returns:
        The lengths by dimension, and the lengths whose dimension is repeated.
    """
    sides = {side for _, side in items}
    is_length_depth = kind in (BED, RUG) and "width" in sides
    # With L and W but no D, L is the width and W the depth; on beds and rugs L is the depth and W the width.
    is_length_first = {"length", "width"} <= sides and "depth" not in sides and not is_length_depth
    side_of_length = "depth" if is_length_depth and "depth" not in sides else "width"
    if {"width", "depth"} <= sides:
        side_of_length = "" if "height" in sides else "height"
    length_by_dimension: dict[str, Length] = {}
    repeated: list[Length] = []
    for length, side in items:
        target = side_of_length if side == "length" else "depth" if side == "width" and is_length_first else side
        if target in length_by_dimension:
            repeated.append(length)
        elif target:
            length_by_dimension[target] = length  # W, D and H take precedence; a length in addition to them is reported
    return length_by_dimension, repeated


def _assign_by_position(
    items: Sequence[LabelledLength], text: str, kind: str, order: str, *, is_usual: bool
) -> ParseResult[Dimensions]:
    """Assign lengths without letters to dimensions by their position.

    Args:
        items: The lengths.
        text: The cell, for faults.
        kind: The kind of the item (`determine_size_kind`).
        order: The order of dimensions as letters (`bht`), `TRADE_ORDER`, or an empty string.
        is_usual: Whether the lengths are written as usual in the trade, so that `TRADE_ORDER` applies.
    """
    side_names: Sequence[str | None] = [_DIMENSION_BY_ORDER_LETTER.get(letter) for letter in order]
    if order and None not in side_names and len(side_names) == len(items):
        return assign_dimensions(
            [(length, name) for (length, _), name in zip(items, side_names, strict=True)], text, kind
        )
    if len(items) not in (2, 3):
        return build_unreadable_result(text, "does not state which dimension it measures")
    side_names = ("width", "height") if kind == PILLOW and len(items) == 2 else _USUAL_ORDER[: len(items)]
    sides: Any = {name: length for name, (length, _) in zip(side_names, items, strict=True)}
    is_cube = len({length["hundredths_in"] for length, _ in items}) == 1
    if len(items) == 2 or is_cube or (is_usual and order == TRADE_ORDER):
        return ParseResult(sides)
    return ParseResult(
        sides, (build_conflict_fault(text, f"does not name the dimensions; read as {' x '.join(_USUAL_ORDER)}"),)
    )


def assign_dimensions(
    lengths: Sequence[LabelledLength], text: str, kind: str = "", order: str = "", is_usual_notation: bool = True
) -> ParseResult[Dimensions]:
    """Assign a sequence of lengths to dimensions. A repeated letter, or a length without a dimension, is a conflict.

    Args:
        lengths: The lengths, each with the dimension that a letter or word next to it names, or None.
        text: The cell, for faults.
        kind: The kind of the item (`determine_size_kind`).
        order: The order of dimensions as letters (`bht`), `TRADE_ORDER`, or an empty string.
        is_usual_notation: Whether lengths without letters are written as usual in the trade, so that `TRADE_ORDER` applies.
    """
    if all(side is None for _, side in lengths):
        return _assign_by_position(lengths, text, kind, order, is_usual=is_usual_notation)
    length_by_dimension, repeated = _assign_by_letters(lengths, kind)
    unassigned = repeated + [length for length, side in lengths if side is None]
    replaced_by_diameter = ("width", "depth") if "diameter" in length_by_dimension else ()
    free = [side for side in _USUAL_ORDER if side not in length_by_dimension and side not in replaced_by_diameter]
    named = [at for at, (_, side) in enumerate(lengths) if side is not None]
    faults: list[ParseFault] = []
    if {"length", "width", "depth"} <= {side for _, side in lengths}:
        faults.append(build_conflict_fault(text, "states a length in addition to width and depth"))
    if repeated:
        faults.append(build_conflict_fault(text, "states the same dimension twice"))
    if not repeated and len(lengths) == 3 and len(named) == 1 and list(length_by_dimension) == [_USUAL_ORDER[named[0]]]:
        # `265 x 158 x H 84`: the other dimensions are in the order of the trade around the named dimension.
        length_by_dimension.update(zip(free, unassigned, strict=True))
        if named[0] != 2:
            faults.append(build_conflict_fault(text, f"names only one dimension; read as {' x '.join(_USUAL_ORDER)}"))
    elif len(free) == len(unassigned) == 1:
        length_by_dimension[free[0]] = unassigned[0]
    elif len(lengths) == 2 and named == [1] and set(length_by_dimension) == {"height"}:
        length_by_dimension["width"] = unassigned[0]
        faults.append(build_conflict_fault(text, "names only one dimension; read as width x height"))
    elif unassigned and not repeated:
        faults.append(build_conflict_fault(text, "contains a number without a dimension (width, depth or height)"))
    sides: Any = length_by_dimension
    return ParseResult(sides, tuple(faults))
