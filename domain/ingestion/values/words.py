"""Values with a fixed vocabulary (booleans, states, countries, freight classes), lists, and trade item numbers."""

import re
import unicodedata
from decimal import Decimal
from functools import lru_cache

from domain.catalogue.data import Component
from domain.ingestion.data import expressions, load, meanings, words
from domain.ingestion.values.stock import word_meaning
from domain.ingestion.values.text import (
    NOTHING,
    Parsed,
    cell_parser,
    code,
    overlong,
    refused,
    stated,
    unescaped,
    unreadable,
)
from domain.kernel.problems import ProblemKind

_YES = words("yes_no", "yes")
_NO = words("yes_no", "no")
FREIGHT_CLASSES = frozenset("50 55 60 65 70 77.5 85 92.5 100 110 125 150 175 200 250 300 400 500".split())
_FILLER = ("other", "others", "etc", "etc.", "misc", "and others", "sonstige", "otros")
_LIST = re.compile(r"[,;|\n]\s*+")
_TAGS = re.compile(r"[,|\n]\s*+")
_DIGIT_COMMA = re.compile(r"(?<=\d),(?=\d)")
_PART_SPLIT = re.compile(r"[,;|\n]\s*+|\s\+\s++|\s&\s++")
_PART = re.compile(r"(?i)(?:(\d{1,3})\s*[x×*]\s+)?(\S+?)(?:\s*(?:\(\s*[x×]?\s*(\d{1,3})\s*\)|\s[x×*]\s?(\d{1,3})))?")
_SHORTEST_CODE = 3
"""Minimum length of a code of digits only; a shorter number is a quantity."""
_TIGHT_COMMA = re.compile(r"(?<!\d),(?=[^\s\d])")
_LOOSE = re.compile(r"[|•\n\r]|;\s")
_TIGHT = re.compile(rf"{_LOOSE.pattern}|,(?=[^\s\d])|(?<!\d),(?=\S)")
(_ASSEMBLY_YES, _ASSEMBLY_NO, _WARNING) = (
    expressions("statuses")[name] for name in "assembly_yes assembly_no warning".split()
)
# Blanks before a separator are left to stripping: matched here they would take quadratic time.
_PATH = re.compile(r"[>»|]\s*+|\s/\s++|\n")
_ACTIVE = words("statuses", "active")
_GONE = words("statuses", "gone")
CODES = frozenset(load("countries"))
_COUNTRIES = meanings(load("countries"))
_MADE_IN = re.compile(
    r"^(?:made|assembled|manufactured|produced|handmade|hergestellt|hecho|fabricado|imported)\s+(?:in|from|en)\s+"
)


@lru_cache(maxsize=4096)
def parse_boolean(text: str) -> Parsed[bool]:
    """Parse yes or no in any supported language. Problem: unreadable."""
    given = stated(text)
    low = text.strip().lower() if given is None else given.lower().strip(" .!")
    if low in _YES or low in _NO:
        return Parsed(low in _YES)
    return NOTHING if given is None else unreadable(text, "is neither yes nor no")


def parse_assembly(text: str) -> Parsed[bool]:
    """Parse whether assembly is required. Problem: unreadable."""
    given = text.strip()
    if _ASSEMBLY_NO.search(given):
        return Parsed(False)
    return Parsed(True) if _ASSEMBLY_YES.search(given) else parse_boolean(text)


@cell_parser()
def parse_freight_class(text: str, given: str) -> Parsed[str]:
    """Parse one of the 18 freight classes. Problems: unreadable, out_of_range."""
    match = re.fullmatch(r"(?i)(?:class|fc|ltl)?\s*:?\s*(\d{2,3}(?:[.,]\d+)?)", given)
    if match is None:
        return NOTHING if given == "0" else unreadable(text, "is not a freight class")
    found = match[1].replace(",", ".")
    found = found.rstrip("0").rstrip(".") if "." in found else found
    if found not in FREIGHT_CLASSES:
        return refused(ProblemKind.OUT_OF_RANGE, text, "is not one of the freight classes")
    return Parsed(found)


def _listed(given: str, split: re.Pattern[str], filler: tuple[str, ...] = ()) -> Parsed[tuple[str, ...]]:
    kept: dict[str, str] = {}
    for piece in split.split(_DIGIT_COMMA.sub("\x00", given)):
        entry = piece.strip(" .;,").replace("\x00", ",")
        if entry and entry.lower() not in filler:
            kept[entry.lower()] = kept.pop(entry.lower(), entry)  # first spelling, last position
    return Parsed(tuple(kept.values()) or None)


@cell_parser()
def parse_materials(text: str, given: str) -> Parsed[tuple[str, ...]]:
    """Parse a list of materials in the vendor's words, also separated by slashes, without fillers such as `Others`."""
    parted = re.sub(r"(?<![\s\d/])\s*+/\s*+(?=[^\W\d])", ", ", given) if "w/" not in given.lower() else given
    return _listed(parted, _LIST, _FILLER)


@cell_parser()
def parse_tags(text: str, given: str) -> Parsed[tuple[str, ...]]:
    """Parse a list of tags, in order, each once."""
    return _listed(given, _TAGS)


@cell_parser()
def parse_features(text: str, given: str) -> Parsed[tuple[str, ...]]:
    """Parse features: one, or several separated by `|`, bullets or line breaks; commas belong to a sentence."""
    # Commas without a blank separate entries that contain commas with one: `Walnut,Solid Wood, Others,Felt-lined drawer`.
    split = _TIGHT if len(_TIGHT_COMMA.findall(text)) > 1 else _LOOSE
    pieces = (stated(piece.strip(" -*\t")) for piece in split.split(text))
    return Parsed(tuple(dict.fromkeys(filter(None, pieces))) or None)


@cell_parser(longest=5000)
def parse_components(text: str, given: str) -> Parsed[tuple[Component, ...]]:
    """Parse the parts of a set by code (`AB-1, AB-2 (x2)`); a repeated code adds up. Problem: unreadable."""
    counts: dict[str, int] = {}
    for piece in filter(None, _PART_SPLIT.split(given)):
        match = _PART.fullmatch(piece.strip())
        if match is None or (match[2].isdecimal() and len(match[2]) < _SHORTEST_CODE):
            return unreadable(text, "is not a list of codes")
        counts[match[2]] = counts.get(match[2], 0) + (int(match[1] or match[3] or match[4] or 1) or 1)
    return Parsed(tuple({"sku": sku, "quantity": quantity} for sku, quantity in counts.items()) or None)


@cell_parser()
def parse_number(text: str, given: str) -> Parsed[Decimal]:
    """Parse a plain number. Problem: unreadable."""
    is_number = re.fullmatch(r"\d{1,9}(?:\.\d{1,6})?", given)
    return Parsed(Decimal(given)) if is_number else unreadable(text, "is not a number")


@cell_parser()
def parse_count(text: str, given: str) -> Parsed[int]:
    """Parse a whole number from 1. Problems: unreadable, out_of_range."""
    match = re.fullmatch(
        r"(?i)(\d{1,6})(?:\.0+)?\s*(?:boxes|box|cartons?|ctns?|packages?|pcs?|pieces?|stück|pakete?)?", given
    )
    if match is None:
        problem = ProblemKind.OUT_OF_RANGE if given.startswith("-") else ProblemKind.UNREADABLE
        return refused(problem, text, "is not a count")
    return Parsed(int(match[1]) or None)


@lru_cache(maxsize=16384)
def category_levels(text: str) -> tuple[str, ...]:
    """Return the levels of a category path, top first."""
    levels = _PATH.split(unescaped(text)) if stated(text) else ()
    return tuple(level for piece in levels if (level := stated(piece)))


def parse_sturdy(text: str) -> Parsed[bool]:
    """Parse whether a piece complies with STURDY; of ASTM F2057 only the 2023 edition does. Problem: unreadable."""
    if edition := re.search(r"(?i)f2057\s*[-–]\s*(\d{2,4})", text):
        return (
            Parsed(True) if edition[1][-2:] == "23" else unreadable(text, "names an edition that STURDY has replaced")
        )
    return parse_boolean(text)


def parse_tsca(text: str) -> Parsed[bool]:
    """Parse whether a piece complies with TSCA Title VI; a CARB code does not state it. Problem: unreadable."""
    if re.fullmatch(r"\s*[0-5](?:\.0)?\s*", text):
        return unreadable(text, "is a CARB code, which does not state compliance with TSCA Title VI")
    return parse_boolean(text)


def parse_warning(text: str) -> Parsed[bool]:
    """Parse whether a Proposition 65 warning is required: yes, no, or the text of the warning."""
    return Parsed(True) if _WARNING.search(text) else parse_boolean(text)


@cell_parser()
def parse_brick(text: str, given: str) -> Parsed[str]:
    """Parse a GPC brick code of eight digits. Problem: unreadable."""
    match = re.search(r"(?<!\d)(\d{8})(?!\d)", given)
    return Parsed(match[1]) if match else unreadable(text, "is not a GPC brick code")


@cell_parser()
def parse_status(text: str, given: str) -> Parsed[bool]:
    """Parse whether a status means discontinued. Problem: unreadable."""
    low = given.lower()
    meaning = word_meaning(low)
    if low in _GONE or (meaning is not None and meaning.availability == "discontinued"):
        return Parsed(True)
    return Parsed(False) if low in _ACTIVE or meaning else unreadable(text, "is not a known status")


@cell_parser(longest=500)
def parse_country(text: str, given: str) -> Parsed[str]:
    """Parse a country code or name to its ISO 3166-1 alpha-2 code.

    Problem: unreadable, for unknown names and for texts such as `made in usa of imported materials`, which state no origin.
    """
    if given.upper() in CODES:
        return Parsed(given.upper())
    decomposed = unicodedata.normalize("NFKD", given.lower())
    letters = "".join(char for char in decomposed if not unicodedata.combining(char))
    found = _COUNTRIES.get(_MADE_IN.sub("", re.sub(r"[^a-zß]+", " ", letters).strip()))
    return Parsed(found) if found else unreadable(text, "does not name a known country")


# Trade item numbers, accepted only with a valid check digit.


_LONGEST = 100
_NONE = ("0", "does not apply", "doesnotapply", "not applicable", "no", "exempt", "pending")


def check_digit(payload: str) -> int:
    """Return the check digit of a payload of digits: weights 3 and 1 from the right, complement to ten."""
    return -(3 * sum(map(int, payload[::-2])) + sum(map(int, payload[-2::-2]))) % 10


def valid(digits: str) -> bool:
    """Return whether the last digit is the check digit of the others."""
    return check_digit(digits[:-1]) == int(digits[-1])


@lru_cache(maxsize=65536)
def parse_gtin(text: str) -> Parsed[str]:
    """Parse a GTIN-8, -12, -13 or -14 to its digits, as given.

    Eleven digits with a valid check digit are a GTIN-12 whose leading zero a spreadsheet dropped. Problems: unreadable (a
    number shortened to `4.25109E+12`, a wrong length, one repeated digit), bad_check_digit.
    """
    if len(text) > _LONGEST:
        return overlong(text, _LONGEST)
    given = code(text.strip("`"))
    if given is None or given.lower() in _NONE:
        return NOTHING
    digits = given if given.isdigit() else re.sub(r"[\s-]", "", given)
    if re.fullmatch(r"\d+(?:[.,]\d+)?[eE]\+?\d+", digits):
        return unreadable(text, "lost digits in a spreadsheet; format the column as text")
    if not re.fullmatch(r"[0-9]+", digits):
        return unreadable(text, "is not a GTIN: it contains characters other than digits")
    if len(set(digits)) == 1:
        return unreadable(text, "is not a GTIN: all digits are the same") if digits.strip("0") else NOTHING
    if len(digits) == 11 and valid("0" + digits):
        return Parsed("0" + digits)
    if len(digits) not in (8, 12, 13, 14):
        return unreadable(text, "is not a GTIN: it must have 8, 12, 13 or 14 digits")
    return Parsed(digits) if valid(digits) else refused(ProblemKind.BAD_CHECK_DIGIT, text, "has a wrong check digit")
