"""Problems: values and records of a feed that could not be read."""

from collections.abc import Iterable
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
    """Value or record that could not be read, and where it is.

    Attributes:
        external_id: The source's own key of the item.
        value: The text of the cell, if the problem is in one cell and its text is short.
        ignored: True if a person ignores the problem; otherwise None.
    """

    field: str
    problem: ProblemKind
    detail: str
    line: int | None = None
    column: str | None = None
    sheet: str | None = None
    external_id: str | None = None
    value: str | None = None
    ignored: bool | None = None

    @property
    def identity(self) -> tuple[str | None, ...]:
        """The values that identify the problem in later files: item, place and value, but not the line if the item is known."""
        item = self.external_id or f"line {self.line}"
        return self.sheet, self.column, self.field, self.problem, item, self.value or self.detail


def count_ignored(problems: Iterable[Problem]) -> int:
    """Return the number of problems that people ignore."""
    return sum(problem.ignored is True for problem in problems)
