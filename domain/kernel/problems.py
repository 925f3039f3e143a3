"""What could not be read of what somebody sent."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """What could not be read, and where. `problem` is one of decisions.md §2 (run.problems[].problem)."""

    field: str
    problem: str
    detail: str
    line: int | None = None
    column: str | None = None
    sheet: str | None = None
