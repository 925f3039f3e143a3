"""Notes about runs and sources that failed."""

import pytest

from domain.agents.triage import REMEDIES, build_run_note, build_source_note, has_many_new_problems
from domain.kernel.problems import Problem, ProblemKind
from domain.proposals.model import MAX_SUMMARY_CHARS
from domain.runs.model import RunError, RunErrorCode
from domain.sources.model import SourceFault, SourceStatus, StatusReason
from tests.support import builders

SOURCE = builders.source()


def _problem(n: int, field: str = "price", detail: str = "`on request` is not a price.") -> Problem:
    return Problem(field, ProblemKind.UNREADABLE, detail, n, "Price", "Sheet 1", f"A-{n}")


@pytest.mark.parametrize(
    ("now", "earlier", "expected"), [(9, 0, False), (10, 0, True), (19, 10, False), (20, 10, True), (110, 100, False)]
)
def test_many_new_problems_are_at_least_ten_and_twice_as_many(now: int, earlier: int, expected: bool) -> None:
    run, previous = (builders.run(SOURCE.id, stats={"problems": number}) for number in (now, earlier))
    assert has_many_new_problems(run, previous) is expected


def test_a_note_states_cause_counts_examples_and_remedy() -> None:
    problems = (*map(_problem, range(2, 8)), _problem(9, "sku", "Missing."))
    error = RunError(RunErrorCode.SHRINK_REFUSED, "The run would withdraw 80% of the offers.")
    note = build_run_note(builders.run(SOURCE.id, error=error, problems=problems), None).splitlines()
    assert note[0] == "The run ended with shrink_refused: The run would withdraw 80% of the offers."
    assert note[1].startswith("unreadable in price: 6. sheet Sheet 1, line 2, column Price: `on request`")
    assert note[1].count("line") == 3 and note[2].startswith("unreadable in sku: 1.")
    assert note[3] == REMEDIES[RunErrorCode.SHRINK_REFUSED]


def test_a_note_is_bounded() -> None:
    problems = tuple(_problem(n, "x" * 900, "y" * 5_000) for n in range(50))
    assert len(build_run_note(builders.run(SOURCE.id, problems=problems), None)) <= MAX_SUMMARY_CHARS


def test_every_error_has_a_remedy() -> None:
    assert set(RunErrorCode) == set(REMEDIES)


def test_a_note_about_a_source_states_its_status_and_reason() -> None:
    source = builders.source(
        status=SourceStatus.DEGRADED,
        failures=3,
        status_reason=StatusReason(SourceFault.FETCH_FAILED, "The server returned 503."),
    )
    run = builders.run(source.id, error=RunError(RunErrorCode.FETCH_FAILED, "The server returned 503."))
    assert build_source_note(source, run) == (
        "The source is degraded after 3 failed runs in a row. The server returned 503.\n"
        "Check that the URL is reachable, then start a run."
    )
