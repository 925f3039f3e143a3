"""Problems: values and records of a feed that could not be read."""

from dataclasses import dataclass

from domain.kernel.enums import StoredEnum


class ProblemKind(StoredEnum):
    """Kinds of problems (run.problems[].problem)."""

    MISSING = "missing"
    UNREADABLE = "unreadable"
    OUT_OF_RANGE = "out_of_range"
    UNKNOWN_UNIT = "unknown_unit"
    UNKNOWN_CURRENCY = "unknown_currency"
    BAD_CHECK_DIGIT = "bad_check_digit"
    DUPLICATE = "duplicate"
    CONFLICT = "conflict"
    TOO_LONG = "too_long"
    UNSAFE_URL = "unsafe_url"


@dataclass(frozen=True, slots=True)
class Problem:
    """Value or record that could not be read, and where it is; `external_id` is the source's own key of the item."""

    field: str
    problem: ProblemKind
    detail: str
    line: int | None = None
    column: str | None = None
    sheet: str | None = None
    external_id: str | None = None
