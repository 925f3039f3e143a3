"""Titles as words that can be compared: folded, without endings, under one name for each thing."""

import re
import unicodedata
from functools import lru_cache
from typing import Final

from domain.matching.lexicon import COLOURS, NAMES, QUANTITY_UNITS, SCALES, SHADES, UNITS

LONGEST: Final = 200
"""Characters of a word that it is compared by, at most."""
_ALIKE: Final = 40
"""Characters of the longest word that may be written otherwise."""
_CHUNK: Final = re.compile(r"[^\W_]+(?:[-/.'’][^\W_]+)*")
_PART: Final = re.compile(r"\d+(?:\.\d+)?(?=[^\W\d_]*(?:[^\w.]|$))|[^\W_]+")
_COUNTED: Final = re.compile(r"(\d+(?:\.\d+)?)([^\W\d_]+)")
_SCALED: Final = 6
"""Characters of a number that is brought to another unit, at most."""
_WORD: Final = re.compile(r"[^\W_]+")
_LETTERS: Final = str.maketrans({"ø": "o", "æ": "a", "œ": "o", "ß": "ss", "ł": "l", "đ": "d", "þ": "th", "ð": "d"})
_UMLAUTS: Final = re.compile("ae|oe|ue")
_VOWEL: Final = re.compile("[aeiouy]")


def folded(text: str) -> str:
    """The text in lower case without accents, quotes and dashes in their plain forms."""
    text = text.lower()
    if text.isascii():
        return text
    plain = unicodedata.normalize("NFKD", text.translate(_LETTERS)).replace("⁄", "/")
    plain = "".join(char for char in plain if not unicodedata.combining(char))
    return (
        plain.replace("×", "x")
        .replace("”", '"')
        .replace("“", '"')
        .replace("″", '"')
        .replace("′", "'")
        .replace("–", "-")
    )


@lru_cache(maxsize=1 << 17)
def word(text: str) -> str:
    """What a folded word is compared by: `chairs` and `chr` as `chair`, `boerje` as `borje`, `navy` as `dark blue`."""
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
    """The pieces of a folded text as they are written, punctuation inside kept: `dsc-w150`, `2-seat`."""
    return _CHUNK.findall(text)


def words(text: str) -> list[str]:
    """The compared words of a folded text in their order."""
    return [one for found in _WORD.findall(text) for one in word(found[:LONGEST]).split()]


@lru_cache(maxsize=1 << 17)
def code(text: str) -> str:
    """A code without case and punctuation; leading zeros stay."""
    return "".join(_WORD.findall(folded(text)))


@lru_cache(maxsize=1 << 17)
def parts(chunk: str) -> tuple[str, ...]:
    """The compared words of one chunk; a number and its unit stay together: `8gb`, `2seat`."""
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
    """A number and its unit as one word, whichever of its names the unit goes by: `0.5 kg` and `500 g` as `500g`."""
    named = UNITS.get(plain := word(unit), plain)
    if named in SCALES and len(number) <= _SCALED:
        factor, named = SCALES[named]
        return f"{float(number) * factor:.0f}{named}"
    return (number.rstrip("0").rstrip(".") if "." in number else number) + named


def stem(made: str) -> str | None:
    """A code without the letters at its end, which mostly say the colour: `rxv663bk` is `rxv663`; None if too little is left."""
    bare = made.rstrip("abcdefghijklmnopqrstuvwxyz")
    if len(made) - len(bare) > 4:
        bare = made
    return bare if len(bare) >= 4 and sum(map(str.isdigit, bare)) >= 2 else None


def number_of(made: str) -> str | None:
    """The one number of six digits or more within a code, which brands write with and without letters around it."""
    bare = made.strip("abcdefghijklmnopqrstuvwxyz")
    return bare if len(bare) >= 6 and bare.isdigit() and len(made) - len(bare) <= 7 else None


@lru_cache(maxsize=1 << 18)
def alike(one: str, other: str) -> bool:
    """Whether two different words are likely one: an abbreviation, the beginning, or one slip of the keys."""
    short, long = (one, other) if len(one) <= len(other) else (other, one)
    if not short or len(long) > _ALIKE or short[0].isdigit() or long[0].isdigit():
        return False
    if short[0] != long[0] and short[-1] != long[-1]:
        return False
    if short[0] == long[0] and len(short) >= 2:
        if len(short) >= 4 and long.startswith(short):
            return True
        if len(long) >= 4 and not _VOWEL.search(short[1:]) and _within(short, long):
            return True
    return len(short) >= 5 and len(long) - len(short) <= 1 and _one_slip(short, long)


def _within(short: str, long: str) -> bool:
    letters = iter(long)
    return all(letter in letters for letter in short)


def _one_slip(short: str, long: str) -> bool:
    at = next((i for i, letter in enumerate(short) if letter != long[i]), len(short))
    if len(short) < len(long):
        return short[at:] == long[at + 1 :]
    swapped = short[at + 1 : at + 2] + short[at : at + 1] + short[at + 2 :]
    return short[at + 1 :] == long[at + 1 :] or swapped == long[at:]
