"""Trade item numbers, taken only when their check digit proves them."""

import re
from functools import lru_cache
from typing import Final

from domain.ingestion.values.parsed import NOTHING, Parsed, overlong, refused, unreadable
from domain.ingestion.values.text import code
from domain.kernel.problems import ProblemKind

_LONGEST: Final = 100
_NONE: Final = ("0", "does not apply", "doesnotapply", "not applicable", "no", "exempt", "pending")


def check_digit(payload: str) -> int:
    """The check digit of a payload of digits: weights 3 and 1 from the right, complement to ten."""
    return -(3 * sum(map(int, payload[::-2])) + sum(map(int, payload[-2::-2]))) % 10


def valid(digits: str) -> bool:
    """Whether the last digit is the check digit of the others."""
    return check_digit(digits[:-1]) == int(digits[-1])


@lru_cache(maxsize=65536)
def parse_gtin(text: str) -> Parsed[str]:
    """A GTIN-8, -12, -13 or -14 as its digits, as given.

    Problems: unreadable (a number cut by a spreadsheet to `4.25109E+12`, a wrong length, one digit repeated),
    bad_check_digit. Eleven digits whose check digit fits are a GTIN-12 whose leading zero a spreadsheet dropped.
    """
    if len(text) > _LONGEST:
        return overlong(text, _LONGEST)
    given = code(text.strip("`"))
    if given is None or given.lower() in _NONE:
        return NOTHING
    digits = given if given.isdigit() else re.sub(r"[\s-]", "", given)
    if re.fullmatch(r"\d+(?:[.,]\d+)?[eE]\+?\d+", digits):
        return unreadable(text, "lost its digits in a spreadsheet; format the column as text")
    if not re.fullmatch(r"[0-9]+", digits):
        return unreadable(text, "is no GTIN: it is not all digits")
    if len(set(digits)) == 1:
        return unreadable(text, "is no GTIN: one digit repeated") if digits.strip("0") else NOTHING
    if len(digits) == 11 and valid("0" + digits):
        return Parsed("0" + digits)
    if len(digits) not in (8, 12, 13, 14):
        return unreadable(text, "is no GTIN: it has neither 8, 12, 13 nor 14 digits")
    return Parsed(digits) if valid(digits) else refused(ProblemKind.BAD_CHECK_DIGIT, text, "has a wrong check digit")
