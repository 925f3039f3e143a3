"""Normalisation of words and item codes for comparison: characters, plurals, synonyms and units.

The lists of words are in the folder `data`.
"""

import re
import tomllib
import unicodedata
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from typing import Any, Final

from rapidfuzz.distance import OSA, LCSseq

from domain.ingestion.data import invert_table, load_toml, load_word_set


def load_table(file_stem: str) -> dict[str, Any]:
    """Return the content of a TOML file in the folder `data`; `file_stem` is its name without extension."""
    return tomllib.loads(files("domain.matching").joinpath("data", f"{file_stem}.toml").read_text("utf-8"))


_TITLES, _UNITS, _COLOURS = load_table("titles"), load_table("units"), load_toml("colours")
COLOUR_BY_SYNONYM = invert_table(_COLOURS["titles"]) | invert_table(_COLOURS["names"])
"""The common name of each word for a colour, wood, metal or finish."""
COLOURS = load_word_set("colours", "plain").union(*map(str.split, _COLOURS["titles"] | _COLOURS["names"]))
COLOUR_AXES, COLOUR_FILLERS, FINISHES = (load_word_set("colours", name) for name in ("axes", "fillers", "finishes"))
WORD_BY_SYNONYM = invert_table(_TITLES["names"])
"""The word that is compared instead of each synonym, abbreviation and translation."""
STOP_WORDS = frozenset(_TITLES["stop"])
"""Words without information, such as articles and prepositions."""
ADVERTISING_WORDS = frozenset(_TITLES["dressing"])
"""Advertising words, such as `modern` and `elegant`, which do not distinguish items."""
COMPANY_WORDS = frozenset(_TITLES["corporate"])
"""Words that are often omitted from the names of companies, such as `ltd`."""
ACCESSORY_WORDS = frozenset(_TITLES["accessories"])
"""Kinds of accessory, such as `cover` and `cushion`."""
KINDS = frozenset(_TITLES["kinds"])
"""Kinds of main item, such as `sofa` and `rug`."""
ORIENTATIONS = frozenset(("left", "right"))
"""The sides at which an item, such as a corner sofa, has its longer end."""
USED_CONDITION = "refurbished"
"""The condition of an item that is not new."""
SET_KIND = "set"
"""The kind of a set of several main items."""
_KIND_BY_SUFFIX = invert_table(_TITLES["compounds"])
_MIN_PREFIX_CHARS = 3
"""Minimum characters before the last part of a compound."""
_MAX_SUFFIX_CHARS = max(map(len, _KIND_BY_SUFFIX))
NUMBER_BY_WORD: Final[Mapping[str, int]] = _TITLES["numbers"]
QUANTITY_UNITS = frozenset(_UNITS["quantities"])
COMPONENT_UNITS = frozenset(_UNITS["components"])
"""Units that count components of an item, such as `drawer` and `seat`."""
UNIT_BY_NAME = invert_table(_UNITS["names"])
UNITS_AFTER_SPACE = frozenset(unit for unit in QUANTITY_UNITS if len(unit) > 1) - {"in", "ch"} | {"g", "l", "v"}
"""Units that form one quantity with a preceding number and a space.

Ambiguous units are excluded: `in`, `ch`, and all single letters other than `g`, `l` and `v`.
"""
MAX_WORD_CHARS = 200
"""Maximum number of characters of a word that are compared; the rest is ignored."""
_MAX_SIMILAR_CHARS = 40
"""Maximum number of characters of similar words; longer words never count as similar."""
_LONG_STOP_WORDS = "|".join(sorted(word for word in STOP_WORDS if len(word) > 2))
_COMPOUND = re.compile(rf"\b(?:{_LONG_STOP_WORDS})(?=-)|[^\W_]+(?:[-/.'’][^\W_]+)*")
"""Word with inner punctuation, or a stop word before one: `new` in `new-c9202kh`. Short stop words also begin codes."""
_QUANTITY_OR_WORD = re.compile(r"\d+(?:\.\d+)?(?=[^\W\d_]*(?:[^\w.]|$))|[^\W_]+")
_NUMBER_WITH_UNIT = re.compile(r"(\d+(?:\.\d+)?)([^\W\d_]+)")
_MAX_CONVERTED_CHARS = 6
"""Maximum number of characters of a number that is converted to another unit; longer numbers retain their unit."""
_WORD = re.compile(r"[^\W_]+")
_LETTERS = str.maketrans({"ø": "o", "æ": "a", "œ": "o", "ß": "ss", "ł": "l", "đ": "d", "þ": "th", "ð": "d"})
_VOWELS = frozenset("aeiouy")
_UMLAUTS = re.compile("ae|oe|ue")
_SIGNS = str.maketrans({"⁄": "/", "×": "x", "”": '"', "“": '"', "″": '"', "′": "'", "–": "-"})


def normalise_characters(text: str) -> str:
    """Return the text in lower case, without accents, and with plain quotes and dashes."""
    text = text.lower()
    if text.isascii():
        return text
    plain = unicodedata.normalize("NFKD", text.translate(_LETTERS))
    return "".join(char for char in plain if not unicodedata.combining(char)).translate(_SIGNS)


@lru_cache(maxsize=1 << 17)
def normalise_word(word: str) -> str:
    """Return the standard spelling of a word whose characters are normalised (`normalise_characters`).

    Plurals become singulars, and synonyms get one spelling: `chairs` and `chr` become `chair`, `boerje` becomes
    `borje`, `navy` becomes `dark blue`.
    """
    if found := COLOUR_BY_SYNONYM.get(word) or WORD_BY_SYNONYM.get(word):
        return found
    if word in COLOURS:
        return word
    if word.isdigit():
        return word.lstrip("0") or "0"
    bare = word
    if len(word) > 3 and word.endswith("s") and not word.endswith("ss"):
        bare = word[:-3] + "y" if word.endswith("ies") and len(word) > 4 else word[:-1]
        if word.endswith(("ches", "shes", "xes", "sses")):
            bare = word[:-2]
        if found := COLOUR_BY_SYNONYM.get(bare) or WORD_BY_SYNONYM.get(bare):
            return found
    return _UMLAUTS.sub(lambda pair: pair[0][0], bare)


@lru_cache(maxsize=1 << 17)
def find_kind(word: str) -> str | None:
    """Return the kind of main item or accessory that a word means (`Esstisch`: `table`), or None for other words."""
    plain = normalise_word(word)
    if plain in KINDS or plain in ACCESSORY_WORDS or plain == SET_KIND:
        return plain
    starts = range(max(_MIN_PREFIX_CHARS, len(word) - _MAX_SUFFIX_CHARS), len(word))
    return next((kind for start in starts if (kind := _KIND_BY_SUFFIX.get(word[start:]))), None)


def split_into_compounds(text: str) -> list[str]:
    """Split a normalised text into words, and keep words with inner punctuation whole, such as `dsc-w150` or `2-seat`."""
    return _COMPOUND.findall(text)


def normalise_words(text: str) -> list[str]:
    """Split a normalised text into words, and return their standard spellings (`normalise_word`) in order."""
    return [one for found in _WORD.findall(text) for one in normalise_word(found[:MAX_WORD_CHARS]).split()]


@lru_cache(maxsize=1 << 17)
def normalise_item_code(code: str) -> str:
    """Return an item code in lower case without punctuation; leading zeros stay."""
    return "".join(_WORD.findall(normalise_characters(code)))


@lru_cache(maxsize=1 << 17)
def normalise_compound(compound: str) -> tuple[str, ...]:
    """Return the standard spellings of the parts of a compound, a word with inner punctuation.

    A number and its unit stay one word: `8gb`, `2seat`.
    """
    made: list[str] = []
    for found in _QUANTITY_OR_WORD.findall(compound):
        part = found[:MAX_WORD_CHARS]
        counted = _NUMBER_WITH_UNIT.fullmatch(part)
        if counted and counted[2] in QUANTITY_UNITS:
            made.append(join_quantity(counted[1], counted[2]))
        elif part in QUANTITY_UNITS and made and made[-1].replace(".", "").isdigit():
            made[-1] = join_quantity(made[-1], part)
        elif part.replace(".", "").isdigit():
            made.append(part)
        else:
            made.extend(normalise_word(part).split())
    return tuple(made)


def join_quantity(number: str, unit: str) -> str:
    """Return a number and its unit as one word, in a common unit: `0.5 kg` and `500 g` become `500g`."""
    plain = unit if unit in _UNITS["names"] else normalise_word(unit)  # elsewhere `w` means `with`
    named = UNIT_BY_NAME.get(plain, plain)
    if (scale := _UNITS["scales"].get(named)) and len(number) <= _MAX_CONVERTED_CHARS:
        return f"{float(number) * scale['factor']:.0f}{scale['unit']}"
    return (number.rstrip("0").rstrip(".") if "." in number else number) + named


def extract_code_stem(code: str) -> str | None:
    """Return a code without its final letters, which usually state the colour: `rxv663` for `rxv663bk`.

    Leading zeros, which spreadsheets remove from numbers, are omitted as well. Return None if the rest is too short to identify a model.
    """
    bare = code.rstrip("abcdefghijklmnopqrstuvwxyz")
    if len(code) - len(bare) > 4:
        bare = code
    bare = bare.lstrip("0")
    return bare if len(bare) >= 4 and sum(map(str.isdigit, bare)) >= 2 else None


def extract_model_number(code: str) -> str | None:
    """Return the number in a code of one number and a few letters, or None if the number has fewer than six digits.

    Brands write such codes with and without the letters.
    """
    bare = code.strip("abcdefghijklmnopqrstuvwxyz")
    return bare if len(bare) >= 6 and bare.isdigit() and len(code) - len(bare) <= 7 else None


@lru_cache(maxsize=1 << 18)
def are_similar_words(first: str, second: str) -> bool:
    """Return whether one of two different words probably is an abbreviation, a prefix or a misspelling of the other."""
    short, long = (first, second) if len(first) <= len(second) else (second, first)
    if not short or len(long) > _MAX_SIMILAR_CHARS or short[0].isdigit() or long[0].isdigit():
        return False
    if short[0] != long[0] and short[-1] != long[-1]:
        return False
    if short[0] == long[0] and len(short) >= 2:
        if len(short) >= 4 and long.startswith(short):
            return True
        if len(long) >= 4 and _VOWELS.isdisjoint(short[1:]) and LCSseq.similarity(short, long) == len(short):
            return True
    return len(short) >= 5 and OSA.distance(short, long, score_cutoff=1) <= 1
