"""Problems of runs that people ignore."""

from dataclasses import replace

from domain.kernel.problems import Problem, ProblemKind
from domain.runs.model import ProblemSelection
from tests.support import builders

PRICE = Problem("cost", ProblemKind.UNREADABLE, "x", 2, "EK", None, "A-1", "auf Anfrage")
SIZE = Problem("dimensions.width", ProblemKind.UNREADABLE, "x", 3, "B", None, "A-2", "breit")


def test_the_same_problem_is_recognised_on_another_line_but_not_with_another_value() -> None:
    assert PRICE.identity == replace(PRICE, line=9, detail="y").identity
    assert PRICE.identity != replace(PRICE, value="n/a").identity
    unkeyed = replace(PRICE, external_id=None)
    assert unkeyed.identity != replace(unkeyed, line=9).identity


def test_ignored_problems_are_marked_and_counted() -> None:
    run = builders.run("src", problems=(PRICE, SIZE), stats={"problems": 2})
    ignored = run.with_ignored_problems({PRICE.identity})
    assert [one.ignored for one in ignored.problems] == [True, None]
    assert ignored.stats == {"problems": 2, "problems_ignored": 1}
    assert ignored.with_ignored_problems({PRICE.identity}, ignored=False) == run


def test_selections() -> None:
    problems = (PRICE, SIZE)
    assert ProblemSelection(1).select(problems) == [SIZE]
    assert ProblemSelection(5).select(problems) == []
    assert ProblemSelection(None, "unreadable", "cost", "EK").select(problems) == [PRICE]
    assert ProblemSelection(None, "unreadable", "cost").select(problems) == []
