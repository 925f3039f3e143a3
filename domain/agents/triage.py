"""Notes about runs and sources that failed: the cause, the problems with examples, and what to do. No model is used."""

from collections import Counter
from collections.abc import Iterable
from typing import Final

from domain.kernel.problems import Problem
from domain.proposals.model import MAX_SUMMARY_CHARS, Proof, ProofCounts
from domain.runs.model import Run, RunErrorCode
from domain.sources.model import Source

MIN_NEW_PROBLEMS = 10
"""Minimum number of further problems, compared with the previous run, for a note about a run that succeeded."""
_MAX_KINDS = 5
_MAX_EXAMPLES = 3
_MAX_DETAIL_CHARS = 200
REMEDIES: Final = {
    RunErrorCode.FETCH_FAILED: "Check that the URL is reachable, then start a run.",
    RunErrorCode.FETCH_REFUSED: "Ask the vendor to permit the requests, or set another URL, then set the source's status to active.",
    RunErrorCode.CREDENTIALS_REFUSED: "Store new credentials, then set the source's status to active.",
    RunErrorCode.PARSE_FAILED: "Check the format of the file and the source's settings, then replay the run.",
    RunErrorCode.MAPPING_REQUIRED: "Confirm the proposed column mapping.",
    RunErrorCode.SHRINK_REFUSED: "Compare the file with the previous one. If the removals are intended, replay the run with `accept_shrink`, which allows them.",
    RunErrorCode.STORAGE_FULL: "Start the run again later.",
    RunErrorCode.QUOTA_EXCEEDED: "Remove items, or change to a larger plan, then start the run again.",
    RunErrorCode.BATCH_EXPIRED: "Send the whole batch again.",
    RunErrorCode.SOURCE_NOT_ACTIVE: "Set the source's status to active, then start a run.",
    RunErrorCode.INTERNAL_ERROR: "Start the run again. If the error recurs, contact the operator.",
}
"""Remedies of the errors of runs, by code."""


def count_problems(run: Run | None) -> int:
    """Return the number of problems of a run; 0 for None."""
    return run.stats.get("problems", 0) if run is not None else 0


def has_many_new_problems(run: Run, previous: Run | None) -> bool:
    """Return whether a run has at least MIN_NEW_PROBLEMS problems more than the previous one, and at least twice as many."""
    now, earlier = count_problems(run), count_problems(previous)
    return now - earlier >= MIN_NEW_PROBLEMS and now >= 2 * earlier


def build_run_note(run: Run, previous: Run | None) -> str:
    """Return the text of a note about a run that failed or has many new problems."""
    if run.error is not None:
        head = f"The run ended with {run.error.code}: {run.error.message}"
        remedy = REMEDIES[run.error.code]
    else:
        head = f"The run has {count_problems(run):,} problems, the previous one {count_problems(previous):,}."
        remedy = "Correct the column mapping or have the vendor's data corrected, then replay the run."
    return "\n".join([head, *_describe_problems(run.problems), remedy])[:MAX_SUMMARY_CHARS]


def build_source_note(source: Source, run: Run) -> str:
    """Return the text of a note about a source that became degraded or blocked by a run."""
    reason = source.status_reason.message if source.status_reason else "No reason is recorded."
    remedy = REMEDIES[run.error.code] if run.error else "Start a run."
    failures = f"{source.failures:,} failed runs in a row" if source.failures != 1 else "a failed run"
    return f"The source is {source.status} after {failures}. {reason}\n{remedy}"[:MAX_SUMMARY_CHARS]


def build_run_proof(run: Run, previous: Run | None) -> Proof:
    """Return the counts of the previous run and of this run, as the proof of a note."""
    return Proof(run.id, _count(previous), _count(run))


def _count(run: Run | None) -> ProofCounts:
    return ProofCounts(run.stats.get("rows", 0), 0, count_problems(run)) if run is not None else ProofCounts()


def _describe_problems(problems: Iterable[Problem]) -> list[str]:
    """Return a line for each of the most frequent kinds of problems in each field, with examples."""
    found = list(problems)
    counts = Counter((problem.problem, problem.field) for problem in found)
    lines = []
    for (kind, field), number in counts.most_common(_MAX_KINDS):
        examples = [problem for problem in found if (problem.problem, problem.field) == (kind, field)][:_MAX_EXAMPLES]
        lines.append(f"{kind} in {field}: {number:,}. {' '.join(map(_describe_example, examples))}")
    return lines


def _describe_example(problem: Problem) -> str:
    place = [
        f"sheet {problem.sheet}" if problem.sheet else None,
        f"line {problem.line}" if problem.line else None,
        f"column {problem.column}" if problem.column else None,
    ]
    location = ", ".join(part for part in place if part)
    detail = problem.detail[:_MAX_DETAIL_CHARS]
    return f"{location}: {detail}" if location else detail
