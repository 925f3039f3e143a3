"""Groups of equal problems, and the change of the source's settings or of the column mapping that solves each group."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from domain.ingestion.columns.settings import LENGTH_UNITS, find_settings_for_field
from domain.kernel.enums import StoredEnum
from domain.kernel.problems import Problem, ProblemKind, count_ignored

MAX_SAMPLES = 3
"""Maximum number of problems that a group shows as samples."""
MAX_GROUP_VALUES = 8
"""Maximum number of distinct cells of a group, the most frequent first."""
_AMBIGUOUS_NUMBER = re.compile(r"[^\d.,]*\d[\d.,]*[.,]\d{3}[^\d.,]*")
_UNNAMED_DIMENSIONS = re.compile(r"\s*[\d.,/ ]+(?:[x×*][\d.,/ ]+){2}\D{0,5}")
_WORDS = re.compile(r"[^\W\d_]|[€$£¥]")


class Fix(StoredEnum):
    """Change that solves a group of problems: a setting of the source or column, or the replacement of a value."""

    CURRENCY = "currency"
    LENGTH_UNIT = "default_length_unit"
    WEIGHT_UNIT = "default_weight_unit"
    DECIMAL = "decimal"
    ORDER = "order"
    VALUE = "value"


@dataclass(frozen=True, slots=True)
class ProblemGroup:
    """Problems of one kind with one field in one column.

    Attributes:
        column: The header of the column; None if the problems are not in one column.
        sheet: The name of the sheet of the first problem.
        count: The number of problems.
        ignored_count: The number of these problems that people ignore.
        samples: The first problems that are not ignored.
        values: The distinct cells with their numbers, the most frequent first.
        fix: The change that solves the problems, or None.
    """

    problem: ProblemKind
    field: str
    column: str | None
    sheet: str | None
    count: int
    ignored_count: int
    samples: tuple[Problem, ...]
    values: tuple[tuple[str, int], ...]
    fix: Fix | None

    @property
    def open_count(self) -> int:
        """The number of problems that people do not ignore."""
        return self.count - self.ignored_count


def group_problems(problems: Iterable[Problem]) -> list[ProblemGroup]:
    """Return the problems grouped by kind, field and column; groups with many open problems first."""
    groups: dict[tuple[ProblemKind, str, str | None], list[Problem]] = {}
    for problem in problems:
        groups.setdefault((problem.problem, problem.field, problem.column), []).append(problem)
    found = [_build_group(members) for members in groups.values()]
    return sorted(found, key=lambda group: -group.open_count)


def _build_group(problems: list[Problem]) -> ProblemGroup:
    first, unsolved = problems[0], [problem for problem in problems if not problem.ignored]
    values = tuple(Counter(one.value for one in unsolved if one.value).most_common(MAX_GROUP_VALUES))
    return ProblemGroup(
        first.problem, first.field, first.column, first.sheet, len(problems), count_ignored(problems),
        tuple(unsolved[:MAX_SAMPLES]), values, _find_fix(first, [value for value, _ in values]),
    )  # fmt: skip


def _find_fix(problem: Problem, values: list[str]) -> Fix | None:
    """Return the change that solves problems like this one, whose cells have these texts."""
    settings = find_settings_for_field(problem.field)
    if problem.problem == ProblemKind.UNKNOWN_CURRENCY and not any(map(_WORDS.search, values)):
        return Fix.CURRENCY
    if problem.problem == ProblemKind.UNKNOWN_UNIT and "unit" in settings:
        return Fix.LENGTH_UNIT if settings["unit"].choices == LENGTH_UNITS else Fix.WEIGHT_UNIT
    is_unreadable_number = problem.problem == ProblemKind.UNREADABLE and "decimal" in settings and values
    if is_unreadable_number and all(map(_AMBIGUOUS_NUMBER.fullmatch, values)):
        return Fix.DECIMAL
    if problem.column is None or not values:
        return None
    is_conflict = problem.problem == ProblemKind.CONFLICT and "order" in settings
    return Fix.ORDER if is_conflict and all(map(_UNNAMED_DIMENSIONS.fullmatch, values)) else Fix.VALUE
