"""Groups of problems, and the fix of each group."""

import pytest

from domain.kernel.problems import Problem, ProblemKind
from domain.mappings.problem_groups import Fix, group_problems


def problem(kind: ProblemKind, field: str, value: str | None, line: int = 2, column: str | None = "EK") -> Problem:
    return Problem(field, kind, f"{value} is wrong.", line, column, None, f"A-{line}", value)


@pytest.mark.parametrize(
    ("kind", "field", "value", "fix"),
    [
        (ProblemKind.UNKNOWN_CURRENCY, "cost", "101,50", Fix.CURRENCY),
        (ProblemKind.UNKNOWN_CURRENCY, "cost", None, Fix.CURRENCY),
        (ProblemKind.UNKNOWN_CURRENCY, "cost", "101 Taler", Fix.VALUE),
        (ProblemKind.UNKNOWN_UNIT, "dimensions.width", "80", Fix.LENGTH_UNIT),
        (ProblemKind.UNKNOWN_UNIT, "cartons.1.weight", "8", Fix.WEIGHT_UNIT),
        (ProblemKind.UNREADABLE, "price", "1.250", Fix.DECIMAL),
        (ProblemKind.UNREADABLE, "price", "auf Anfrage", Fix.VALUE),
        (ProblemKind.UNREADABLE, "materials", "1.250", Fix.VALUE),
        (ProblemKind.CONFLICT, "dimensions", "46 x 82 x 51", Fix.ORDER),
        (ProblemKind.CONFLICT, "dimensions", "17.75W x 20.5D x 37.5H", Fix.VALUE),
        (ProblemKind.MISSING, "title", None, None),
    ],
)
def test_each_group_has_its_fix(kind: ProblemKind, field: str, value: str | None, fix: Fix | None) -> None:
    [group] = group_problems([problem(kind, field, value)])
    assert group.fix is fix


def test_problems_without_a_column_have_no_replacement() -> None:
    [group] = group_problems([problem(ProblemKind.UNREADABLE, "cost", "x", column=None)])
    assert group.fix is None


def test_groups_count_open_problems_and_their_values() -> None:
    kind = ProblemKind.UNREADABLE
    many = [problem(kind, "cost", "auf Anfrage", line) for line in range(2, 12)]
    ignored = Problem("cost", kind, "n/a", 20, "EK", value="n/a", ignored=True)
    few = [problem(kind, "price", "?", 3, "VK")]
    first, second = group_problems([*few, *many, ignored])
    assert (first.column, first.count, first.open_count, first.ignored_count) == ("EK", 11, 10, 1)
    assert [one.line for one in first.samples] == [2, 3, 4] and first.values == (("auf Anfrage", 10),)
    assert second.column == "VK"
