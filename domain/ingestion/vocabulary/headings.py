"""Headers as vendors write them, brought to one form that a vocabulary can be asked by."""

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from domain.ingestion.values.lengths import unit_named
from domain.ingestion.values.text import clean
from domain.ingestion.values.weights import weight_unit_named
from domain.kernel.money import EXPONENTS

_SMALL: Final = "a-zß-öø-ÿа-яё"
_LARGE: Final = "A-ZÀ-ÖØ-ÞА-ЯЁ"
_CAMEL: Final = re.compile(rf"(?<=[{_SMALL}])(?=[{_LARGE}])|(?<=[{_LARGE}])(?=[{_LARGE}][{_SMALL}])")
_BRACKET: Final = re.compile(r"[(\[]([^()\[\]]*)[)\]]")
_NOISE: Final = re.compile(r"[^\w%]+|_+")
_LETTERS: Final = str.maketrans(
    {"ß": "ss", "ł": "l", "Ł": "l", "ø": "o", "Ø": "o", "æ": "ae", "Æ": "ae", "đ": "d", "ı": "i", "œ": "oe"}
)
_DIGITS: Final = re.compile(r"(?<![a-z])\d{1,2}(?![a-z])|(?<=[a-z])\d{1,2}\b")
_CURRENCY_SIGNS: Final = {"$": "usd", "€": "eur", "£": "gbp"}
_NO_UNIT: Final = frozenset(("m", "g", "t", "pie", "pies", "ft"))
_NUMBER_SIGN: Final = re.compile(r"(?<=[a-z])\s?#(?![\d\w])", re.I)
_PER: Final = re.compile(
    r"/\s{0,4}(?=(?:pkg|ctn|carton|box|pallet|container|karton|ve|colis|doos|bulto|collo|embalaje|caja|emballage|imballo|krt|kartong)\b)",
    re.I,
)
_CYRILLIC_UNITS: Final = {"мм": "mm", "см": "cm", "кг": "kg", "г": "g", "гр": "g"}
_HUNGARIAN: Final = re.compile(r"^[a-z](?=[A-Z][a-z])")
_OF_PACKAGE: Final = re.compile(r"ship|pack|carton|box", re.I)
"""Names in a path that change what the names below them say."""
_LONGEST: Final = 1_000
_INVISIBLE: Final = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]")
_MOST_PARTS: Final = 3
_METAFIELD: Final = re.compile(r"\((product|variant)\.metafields\.[^)]{0,300}\)", re.I)


@dataclass(frozen=True, slots=True)
class Heading:
    """A header's words: all of them, those outside brackets, and both with digits as `#` and units left out.

    `forms` is what to look up, best first; `index` the first number in it, `unit` and `currency` what it names. `readings`
    are what to read word by word: all of it, what stands outside brackets, and what stands between slashes.
    """

    forms: tuple[str, ...]
    index: int | None = None
    unit: str | None = None
    currency: str | None = None
    metafield: str | None = None
    readings: tuple[str, ...] = ()


def plain_words(text: str) -> str:
    """`text` in lower case without accents and punctuation, words parted by one blank."""
    text = _INVISIBLE.sub("", text[:_LONGEST])
    decomposed = unicodedata.normalize("NFKD", text.translate(_LETTERS))
    letters = "".join(char for char in decomposed if not unicodedata.combining(char))
    return _NOISE.sub(" ", letters.lower()).strip()


def _split(text: str) -> str:
    """Words of camelCase and snake_case; `UPC` and `SKUs` stay whole."""
    return text if " " in text.strip() else _CAMEL.sub(" ", _HUNGARIAN.sub("", text))


def _unit_in(words: list[str], bracketed: list[str]) -> str | None:
    for word in words:
        if word in _CYRILLIC_UNITS:
            return _CYRILLIC_UNITS[word]
    for word in bracketed:
        if unit := unit_named(word) or weight_unit_named(word):
            return unit
    for last in words[:0:-1][:2]:
        if last not in _NO_UNIT and (unit := unit_named(last) or weight_unit_named(last)):
            return unit
    return weight_unit_named(words[-1]) if len(words) > 1 and words[-1] == "g" else None


def _without_units(words: str) -> str:
    kept = [word for word in words.split() if not (unit_named(word) or weight_unit_named(word)) or word == "pounds off"]
    return " ".join(kept) if kept else words


def _without_currency(words: str) -> str:
    kept = [word for word in words.split() if word not in EXPONENTS or word in ("all", "top", "map", "cup", "try")]
    return " ".join(kept) if kept else words


def _numbered(words: str) -> str:
    return " ".join(_DIGITS.sub(" # ", words).split())


def _forms(full: str, bare: str) -> tuple[str, ...]:
    forms: dict[str, None] = {}
    for words in (full, bare):
        for form in (words, _without_units(words), _without_currency(words), _without_currency(_without_units(words))):
            forms[form] = None
            forms[_numbered(form)] = None
    return tuple(form for form in forms if form)


def _currency_in(raw: str, words: list[str]) -> str | None:
    for word in words:
        if len(word) == 3 and word in EXPONENTS and word not in ("all", "top", "map", "cup", "try"):
            return word
    return next((code for sign, code in _CURRENCY_SIGNS.items() if sign in raw), None)


def _between_slashes(split: str) -> list[str]:
    parts = [plain_words(part) for part in _BRACKET.sub(" ", split).split("/")]
    return [part for part in parts if len(part) > 2] if 1 < len(parts) <= _MOST_PARTS else []


def _behind_colon(split: str) -> list[str]:
    """The last name of a path (`core::supplierPartNumber`), or what stands behind a label (`Parameter: Brand`)."""
    before, colon, last = split.rpartition(":")
    words = plain_words(last)
    return [words] if colon and plain_words(before) and len(words) > 2 else []


@lru_cache(maxsize=8192)
def heading(text: str) -> Heading:
    """The heading of a header cell as the feed has it (BOM, line breaks, `*`, `#`, brackets and all)."""
    raw = clean(text)
    raw = re.sub(r"^(?:g:|\{[^}]*\})", "", raw)
    metafield = _METAFIELD.search(raw)
    raw = _METAFIELD.sub(" ", raw)
    raw = _PER.sub(" per ", raw)
    split = _split(_NUMBER_SIGN.sub(" number", raw))
    full = plain_words(split)
    bare = plain_words(_BRACKET.sub(" ", split)) or full
    bracketed = [word for content in _BRACKET.findall(raw) for word in [*plain_words(content).split(), content.strip()]]
    forms = _forms(full, bare)
    number = _DIGITS.search(full)
    last = _behind_colon(split) if "::" in raw and not _OF_PACKAGE.search(raw) else []
    words = full.split()
    if raw.rstrip().endswith('"') and len(words) > 0:
        bracketed.append('"')
    if last:
        forms = (*_forms(last[0], last[0]), *forms)
    return Heading(
        forms,
        int(number[0]) if number else None,
        _unit_in(words, bracketed),
        _currency_in(raw, words),
        metafield[1].lower() if metafield else None,
        tuple(dict.fromkeys((*last, full, bare, *_between_slashes(split), *_behind_colon(split)))),
    )
