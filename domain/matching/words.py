"""Normalised words: folded, without endings, with one name for each concept; the lists of words are in `data`."""

import re
import tomllib
import unicodedata
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from typing import Any, Final

from rapidfuzz.distance import OSA, LCSseq

from domain.ingestion.data import load, meanings
from domain.ingestion.data import words as words_of


def data(name: str) -> dict[str, Any]:
    """Return the tables of a file in `data`."""
    return tomllib.loads(files("domain.matching").joinpath("data", f"{name}.toml").read_text("utf-8"))


_TITLES, _UNITS, _COLOURS = data("titles"), data("units"), load("colours")
SHADES = meanings(_COLOURS["titles"]) | meanings(_COLOURS["names"])
"""The names of colours, woods, metals and finishes by all their words."""
COLOURS = words_of("colours", "plain").union(*map(str.split, _COLOURS["titles"] | _COLOURS["names"]))
COLOUR_AXES, FILLERS, FINISHES = (words_of("colours", name) for name in ("axes", "fillers", "finishes"))
NAMES = meanings(_TITLES["names"])
STOP = frozenset(_TITLES["stop"])
DRESSING = frozenset(_TITLES["dressing"])
CORPORATE = frozenset(_TITLES["corporate"])
ACCESSORIES = frozenset(_TITLES["accessories"])
NUMBERS: Final[Mapping[str, int]] = _TITLES["numbers"]
QUANTITY_UNITS = frozenset(_UNITS["quantities"])
UNITS = meanings(_UNITS["names"])
SPACED = frozenset(unit for unit in QUANTITY_UNITS if len(unit) > 1) - {"in", "ch"} | {"g", "l", "v"}
"""Units that make one quantity with a number before them, a blank between: a single letter is mostly something else."""
LONGEST = 200
"""Maximum characters of a compared word."""
_ALIKE = 40
"""Characters of the longest word that may be written otherwise."""
_CHUNK = re.compile(r"[^\W_]+(?:[-/.'’][^\W_]+)*")
_PART = re.compile(r"\d+(?:\.\d+)?(?=[^\W\d_]*(?:[^\w.]|$))|[^\W_]+")
_COUNTED = re.compile(r"(\d+(?:\.\d+)?)([^\W\d_]+)")
_SCALED = 6
"""Characters of a number that is brought to another unit, at most."""
_WORD = re.compile(r"[^\W_]+")
_LETTERS = str.maketrans({"ø": "o", "æ": "a", "œ": "o", "ß": "ss", "ł": "l", "đ": "d", "þ": "th", "ð": "d"})
_VOWELS = frozenset("aeiouy")
_UMLAUTS = re.compile("ae|oe|ue")
_SIGNS = str.maketrans({"⁄": "/", "×": "x", "”": '"', "“": '"', "″": '"', "′": "'", "–": "-"})


def folded(text: str) -> str:
    """Return the text in lower case without accents, quotes and dashes in their plain forms."""
    text = text.lower()
    if text.isascii():
        return text
    plain = unicodedata.normalize("NFKD", text.translate(_LETTERS))
    return "".join(char for char in plain if not unicodedata.combining(char)).translate(_SIGNS)


@lru_cache(maxsize=1 << 17)
def word(text: str) -> str:
    """Return the comparison form of a folded word: `chairs` and `chr` as `chair`, `boerje` as `borje`, `navy` as `dark blue`."""
    if found := SHADES.get(text) or NAMES.get(text):
        return found
    if text in COLOURS:
        return text
    if text.isdigit():
        return text.lstrip("0") or "0"
    bare = text
    if len(text) > 3 and text.endswith("s") and not text.endswith("ss"):
        bare = text[:-3] + "y" if text.endswith("ies") and len(text) > 4 else text[:-1]
        if text.endswith(("ches", "shes", "xes", "sses")):
            bare = text[:-2]
        if found := SHADES.get(bare) or NAMES.get(bare):
            return found
    return _UMLAUTS.sub(lambda pair: pair[0][0], bare)


def chunks(text: str) -> list[str]:
    """Return the pieces of a folded text as written, with inner punctuation: `dsc-w150`, `2-seat`."""
    return _CHUNK.findall(text)


def words(text: str) -> list[str]:
    """Return the compared words of a folded text in their order."""
    return [one for found in _WORD.findall(text) for one in word(found[:LONGEST]).split()]


@lru_cache(maxsize=1 << 17)
def code(text: str) -> str:
    """Return a code without case and punctuation; leading zeros stay."""
    return "".join(_WORD.findall(folded(text)))


@lru_cache(maxsize=1 << 17)
def parts(chunk: str) -> tuple[str, ...]:
    """Return the compared words of one chunk; a number and its unit stay together: `8gb`, `2seat`."""
    made: list[str] = []
    for found in _PART.findall(chunk):
        part = found[:LONGEST]
        counted = _COUNTED.fullmatch(part)
        if counted and counted[2] in QUANTITY_UNITS:
            made.append(quantity(counted[1], counted[2]))
        elif part in QUANTITY_UNITS and made and made[-1].replace(".", "").isdigit():
            made[-1] = quantity(made[-1], part)
        elif part.replace(".", "").isdigit():
            made.append(part)
        else:
            made.extend(word(part).split())
    return tuple(made)


def quantity(number: str, unit: str) -> str:
    """Return a number and its unit as one word, whichever of its names the unit goes by: `0.5 kg` and `500 g` as `500g`."""
    named = UNITS.get(plain := word(unit), plain)
    if (scale := _UNITS["scales"].get(named)) and len(number) <= _SCALED:
        return f"{float(number) * scale['factor']:.0f}{scale['unit']}"
    return (number.rstrip("0").rstrip(".") if "." in number else number) + named


def stem(made: str) -> str | None:
    """Return a code without the letters at its end, which mostly say the colour: `rxv663bk` is `rxv663`; None if too little is left."""
    bare = made.rstrip("abcdefghijklmnopqrstuvwxyz")
    if len(made) - len(bare) > 4:
        bare = made
    return bare if len(bare) >= 4 and sum(map(str.isdigit, bare)) >= 2 else None


def number_of(made: str) -> str | None:
    """Return the one number of six digits or more within a code, which brands write with and without letters around it."""
    bare = made.strip("abcdefghijklmnopqrstuvwxyz")
    return bare if len(bare) >= 6 and bare.isdigit() and len(made) - len(bare) <= 7 else None


@lru_cache(maxsize=1 << 18)
def alike(one: str, other: str) -> bool:
    """Return whether two different words are likely one: an abbreviation, the beginning, or one slip of the keys."""
    short, long = (one, other) if len(one) <= len(other) else (other, one)
    if not short or len(long) > _ALIKE or short[0].isdigit() or long[0].isdigit():
        return False
    if short[0] != long[0] and short[-1] != long[-1]:
        return False
    if short[0] == long[0] and len(short) >= 2:
        if len(short) >= 4 and long.startswith(short):
            return True
        if len(long) >= 4 and _VOWELS.isdisjoint(short[1:]) and LCSseq.similarity(short, long) == len(short):
            return True
    return len(short) >= 5 and OSA.distance(short, long, score_cutoff=1) <= 1
