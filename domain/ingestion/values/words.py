"""Parsers of cells with fixed words (yes and no, statuses, countries, freight classes), with lists, and with GTINs.

The decorator `cell_parser` passes the cleaned text of the cell as `cleaned`; callers of the parsers omit it.
"""

import re
import unicodedata
from decimal import Decimal
from functools import lru_cache

from domain.catalogue.data import BundleComponent
from domain.ingestion.data import invert_table, load_patterns, load_toml, load_word_set
from domain.ingestion.values.stock import parse_stock_word
from domain.ingestion.values.text import (
    NO_VALUE,
    ParseResult,
    build_fault_result,
    build_too_long_result,
    build_unreadable_result,
    cell_parser,
    clean_code,
    clean_value,
    remove_line_markup,
)
from domain.kernel.problems import ProblemKind

_YES = load_word_set("yes_no", "yes")
_NO = load_word_set("yes_no", "no")
FREIGHT_CLASSES = frozenset("50 55 60 65 70 77.5 85 92.5 100 110 125 150 175 200 250 300 400 500".split())
_MATERIAL_FILLERS = ("other", "others", "etc", "etc.", "misc", "and others", "sonstige", "otros")
_LIST = re.compile(r"[,;|\n]\s*+")
_TAGS = re.compile(r"[,|\n]\s*+")
_DIGIT_COMMA = re.compile(r"(?<=\d),(?=\d)")
_PART_SPLIT = re.compile(r"[,;|\n]\s*+|\s\+\s++|\s&\s++")
_PART = re.compile(r"(?i)(?:(\d{1,3})\s*[x×*]\s+)?(\S+?)(?:\s*(?:\(\s*[x×]?\s*(\d{1,3})\s*\)|\s[x×*]\s?(\d{1,3})))?")
_NAMED_PART = re.compile(
    r"(?i)(?:(\d{1,3})(?:\s*[x×*]|\s)\s*+)?([^\W\d_][^\d()\[\]]{1,60}?)[\s:]{0,5}[(\[]?((?=[^\s()\[\]]{0,39}\d)[^\s()\[\]]{2,40})[)\]]?(?:\s*[x×*]\s?(\d{1,3}))?"
)
"""Pattern of a component with a name and a code: `2 Nightstands (N-1)`, `1 table T-1`."""
_COUNTED_PART = re.compile(r"(\d{1,3})(?:\s*[x×*]|\s)\s*+([^\W\d_][^\d]{1,60})")
"""Pattern of a component with a count and a name: `4 chairs`."""
_MIN_CODE_DIGITS = 3
"""Minimum number of digits in a component's code that has only digits; a list with a shorter code is unreadable."""
_COMMA_WITHOUT_SPACE = re.compile(r"(?<!\d),(?=[^\s\d])")
_SEPARATORS = re.compile(r"[|•\n\r]|;\s")
_SEPARATORS_WITH_COMMA = re.compile(rf"{_SEPARATORS.pattern}|,(?=[^\s\d])|(?<!\d),(?=\S)")
(_ASSEMBLY_YES, _ASSEMBLY_NO, _WARNING) = (
    load_patterns("statuses")[name] for name in "assembly_yes assembly_no warning".split()
)
# Blanks before a separator are left to stripping: matched here they would take quadratic time.
_PATH = re.compile(r"[>»|]\s*+|\s/\s++|\n")
_NOT_DISCONTINUED = load_word_set("statuses", "not_discontinued")
_DISCONTINUED = load_word_set("statuses", "discontinued")
COUNTRY_CODES = frozenset(load_toml("countries"))
_COUNTRIES = invert_table(load_toml("countries"))
_MADE_IN = re.compile(
    r"^(?:made|assembled|manufactured|produced|handmade|hergestellt|hecho|fabricado|imported)\s+(?:in|from|en)\s+"
)


@lru_cache(maxsize=4096)
def parse_boolean(text: str) -> ParseResult[bool]:
    """Parse "yes" or "no" in any supported language. The result can have the fault unreadable."""
    cleaned = clean_value(text)
    low = text.strip().lower() if cleaned is None else cleaned.lower().strip(" .!")
    if low in _YES or low in _NO:
        return ParseResult(low in _YES)
    return NO_VALUE if cleaned is None else build_unreadable_result(text, "is neither yes nor no")


def parse_assembly_required(text: str) -> ParseResult[bool]:
    """Parse whether assembly is required. The result can have the fault unreadable."""
    stripped = text.strip()
    if _ASSEMBLY_NO.search(stripped):
        return ParseResult(False)
    return ParseResult(True) if _ASSEMBLY_YES.search(stripped) else parse_boolean(text)


@cell_parser()
def parse_freight_class(text: str, cleaned: str) -> ParseResult[str]:
    """Parse one of the 18 freight classes. The result can have the faults unreadable and out_of_range."""
    match = re.fullmatch(r"(?i)(?:class|fc|ltl)?\s*:?\s*(\d{2,3}(?:[.,]\d+)?)", cleaned)
    if match is None:
        return NO_VALUE if cleaned == "0" else build_unreadable_result(text, "is not a freight class")
    found = match[1].replace(",", ".")
    found = found.rstrip("0").rstrip(".") if "." in found else found
    if found not in FREIGHT_CLASSES:
        return build_fault_result(
            ProblemKind.OUT_OF_RANGE, text, "is a number, but not one of the NMFC freight classes (50 to 500)"
        )
    return ParseResult(found)


def _parse_list(
    cleaned: str, separator: re.Pattern[str], omitted: tuple[str, ...] = ()
) -> ParseResult[tuple[str, ...]]:
    """Split a text into the distinct entries of a list; upper and lower case are not distinguished.

    Args:
        cleaned: The text.
        separator: The pattern of separators.
        omitted: Entries in lower case to omit, such as `others`.
    """
    entry_by_key: dict[str, str] = {}
    for part in separator.split(_DIGIT_COMMA.sub("\x00", cleaned)):
        entry = part.strip(" .;,").replace("\x00", ",")
        if entry and entry.lower() not in omitted:
            entry_by_key[entry.lower()] = entry_by_key.pop(entry.lower(), entry)  # first spelling, last position
    return ParseResult(tuple(entry_by_key.values()) or None)


@cell_parser()
def parse_materials(text: str, cleaned: str) -> ParseResult[tuple[str, ...]]:
    """Parse a list of materials; slashes also separate entries, and entries such as `Others` are omitted."""
    parted = re.sub(r"(?<![\s\d/])\s*+/\s*+(?=[^\W\d])", ", ", cleaned) if "w/" not in cleaned.lower() else cleaned
    return _parse_list(parted, _LIST, _MATERIAL_FILLERS)


@cell_parser()
def parse_tags(text: str, cleaned: str) -> ParseResult[tuple[str, ...]]:
    """Parse a list of tags and remove repetitions."""
    return _parse_list(cleaned, _TAGS)


@cell_parser()
def parse_features(text: str, cleaned: str) -> ParseResult[tuple[str, ...]]:
    """Parse one feature, or several features separated by `|`, bullets or line breaks; commas do not separate features."""
    # Commas without a blank separate entries that contain commas with one: `Walnut,Solid Wood, Others,Felt-lined drawer`.
    split = _SEPARATORS_WITH_COMMA if len(_COMMA_WITHOUT_SPACE.findall(text)) > 1 else _SEPARATORS
    pieces = (clean_value(piece.strip(" -*\t")) for piece in split.split(text))
    return ParseResult(tuple(dict.fromkeys(filter(None, pieces))) or None)


@cell_parser(max_chars=5000)
def parse_components(text: str, cleaned: str) -> ParseResult[tuple[BundleComponent, ...]]:
    """Parse the components of a set with quantities (`AB-1, AB-2 (x2)`, `2 Nightstands (N-1)`, `4 chairs`).

    Quantities of a repeated code are added. The result can have the fault unreadable.
    """
    components: dict[str, BundleComponent] = {}
    for piece in filter(None, map(str.strip, _PART_SPLIT.split(cleaned))):
        component = _parse_component(piece)
        if component is None:
            return build_unreadable_result(text, "is not a list of the components' SKUs")
        known = components.setdefault(component.get("sku") or component["name"], component)
        if known is not component:
            known["quantity"] += component["quantity"]
    return ParseResult(tuple(components.values()) or None)


def _parse_component(piece: str) -> BundleComponent | None:
    if (match := _PART.fullmatch(piece)) and not (match[2].isdecimal() and len(match[2]) < _MIN_CODE_DIGITS):
        quantity = int(match[1] or match[3] or match[4] or 1) or 1
        is_word = match[2].isalpha() and not match[2].isupper()
        return {"name": match[2], "quantity": quantity} if is_word else {"sku": match[2], "quantity": quantity}
    if (match := _NAMED_PART.fullmatch(piece)) and not (match[3].isdecimal() and len(match[3]) < _MIN_CODE_DIGITS):
        return {"name": match[2].strip(), "sku": match[3], "quantity": int(match[1] or match[4] or 1) or 1}
    if match := _COUNTED_PART.fullmatch(piece):
        return {"name": match[2].strip(), "quantity": int(match[1]) or 1}
    return None


@cell_parser()
def parse_number(text: str, cleaned: str) -> ParseResult[Decimal]:
    """Parse a number. If the text has a sign or a unit, or is not a number, the result has the fault unreadable."""
    is_number = re.fullmatch(r"\d{1,9}(?:\.\d{1,6})?", cleaned)
    return ParseResult(Decimal(cleaned)) if is_number else build_unreadable_result(text, "is not a number")


@cell_parser()
def parse_count(text: str, cleaned: str) -> ParseResult[int]:
    """Parse a whole number, possibly with a word such as `pcs`; the value of 0 is None.

    The result can have the faults unreadable and out_of_range.
    """
    match = re.fullmatch(
        r"(?i)(\d{1,6})(?:\.0+)?\s*(?:boxes|box|cartons?|ctns?|packages?|pcs?|pieces?|stück|pakete?)?", cleaned
    )
    if match is None:
        problem = ProblemKind.OUT_OF_RANGE if cleaned.startswith("-") else ProblemKind.UNREADABLE
        return build_fault_result(problem, text, "is not a count")
    return ParseResult(int(match[1]) or None)


@lru_cache(maxsize=16384)
def split_category_path(text: str) -> tuple[str, ...]:
    """Split a category path (`Furniture > Sofas`) into its levels, from the top."""
    levels = _PATH.split(remove_line_markup(text)) if clean_value(text) else ()
    return tuple(level for piece in levels if (level := clean_value(piece)))


def parse_sturdy_compliance(text: str) -> ParseResult[bool]:
    """Parse whether an item complies with the STURDY Act (stability of dressers). The result can have the fault unreadable.

    The edition ASTM F2057-23 means compliance; for other editions, the result has the fault unreadable.
    """
    if edition := re.search(r"(?i)f2057\s*[-–]\s*(\d{2,4})", text):
        return (
            ParseResult(True)
            if edition[1][-2:] == "23"
            else build_unreadable_result(text, "names an edition of ASTM F2057 that the STURDY Act has superseded")
        )
    return parse_boolean(text)


def parse_tsca_compliance(text: str) -> ParseResult[bool]:
    """Parse whether an item complies with TSCA Title VI (formaldehyde).

    The result can have the fault unreadable, also for a CARB code.
    """
    if re.fullmatch(r"\s*[0-5](?:\.0)?\s*", text):
        return build_unreadable_result(text, "is a CARB code, which does not state compliance with TSCA Title VI")
    return parse_boolean(text)


def parse_prop65_warning(text: str) -> ParseResult[bool]:
    """Parse whether a Proposition 65 warning is required, from "yes", "no" or the text of the warning."""
    return ParseResult(True) if _WARNING.search(text) else parse_boolean(text)


@cell_parser()
def parse_gpc_brick(text: str, cleaned: str) -> ParseResult[str]:
    """Parse a GPC brick code of eight digits. The result can have the fault unreadable."""
    match = re.search(r"(?<!\d)(\d{8})(?!\d)", cleaned)
    return ParseResult(match[1]) if match else build_unreadable_result(text, "is not a GPC brick code")


@cell_parser()
def parse_discontinued_status(text: str, cleaned: str) -> ParseResult[bool]:
    """Parse whether the status of an item means discontinued. The result can have the fault unreadable."""
    low = cleaned.lower()
    meaning = parse_stock_word(low)
    if low in _DISCONTINUED or (meaning is not None and meaning.availability == "discontinued"):
        return ParseResult(True)
    return (
        ParseResult(False)
        if low in _NOT_DISCONTINUED or meaning
        else build_unreadable_result(text, "is not a known status")
    )


@cell_parser(max_chars=500)
def parse_country(text: str, cleaned: str) -> ParseResult[str]:
    """Parse the code or the name of a country, and return the ISO 3166-1 alpha-2 code.

    The result can have the fault unreadable, also for a text with more than a country (`made in usa of imported materials`).
    """
    if cleaned.upper() in COUNTRY_CODES:
        return ParseResult(cleaned.upper())
    decomposed = unicodedata.normalize("NFKD", cleaned.lower())
    letters = "".join(char for char in decomposed if not unicodedata.combining(char))
    found = _COUNTRIES.get(_MADE_IN.sub("", re.sub(r"[^a-zß]+", " ", letters).strip()))
    return ParseResult(found) if found else build_unreadable_result(text, "does not name a known country")


# Trade item numbers, accepted only with a valid check digit.


_MAX_GTIN_CHARS = 100
_NO_GTIN = ("0", "does not apply", "doesnotapply", "not applicable", "no", "exempt", "pending")


def compute_check_digit(digits: str) -> int:
    """Compute the check digit of a GTIN from its other digits."""
    # From the right, digits have the weights 3 and 1 in turn; the check digit complements the sum to a multiple of ten.
    return -(3 * sum(map(int, digits[::-2])) + sum(map(int, digits[-2::-2]))) % 10


def has_valid_check_digit(digits: str) -> bool:
    """Return whether the last digit of a GTIN is the check digit of the other digits."""
    return compute_check_digit(digits[:-1]) == int(digits[-1])


@lru_cache(maxsize=65536)
def parse_gtin(text: str) -> ParseResult[str]:
    """Parse a GTIN-8, GTIN-12, GTIN-13 or GTIN-14, and return the digits.

    Eleven digits with a valid check digit are completed to a GTIN-12, because spreadsheets remove a leading zero. The result can have the
    faults bad_check_digit and unreadable (a number such as `4.25109E+12`, a wrong length, or a single repeated digit).
    """
    if len(text) > _MAX_GTIN_CHARS:
        return build_too_long_result(text, _MAX_GTIN_CHARS)
    cleaned = clean_code(text.strip("`"))
    if cleaned is None or cleaned.lower() in _NO_GTIN:
        return NO_VALUE
    digits = cleaned if cleaned.isdigit() else re.sub(r"[\s-]", "", cleaned)
    if re.fullmatch(r"\d+(?:[.,]\d+)?[eE]\+?\d+", digits):
        return build_unreadable_result(text, "lost digits in a spreadsheet; format the column as text")
    if not re.fullmatch(r"[0-9]+", digits):
        return build_unreadable_result(text, "is not a GTIN: it contains characters other than digits")
    if len(set(digits)) == 1:
        return (
            build_unreadable_result(text, "is not a GTIN: all digits are the same") if digits.strip("0") else NO_VALUE
        )
    if len(digits) == 11 and has_valid_check_digit("0" + digits):
        return ParseResult("0" + digits)
    if len(digits) not in (8, 12, 13, 14):
        return build_unreadable_result(text, "is not a GTIN: it must have 8, 12, 13 or 14 digits")
    return (
        ParseResult(digits)
        if has_valid_check_digit(digits)
        else build_fault_result(ProblemKind.BAD_CHECK_DIGIT, text, "has a wrong check digit")
    )
