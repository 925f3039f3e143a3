"""Limits and results of source tests (docs/conventions.md#testing-a-source)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from domain.kernel.problems import Problem

MAX_FETCHED_BYTES = 2 * 1024 * 1024
"""Maximum number of bytes that a test reads of a fetched feed."""
MAX_SUBMITTED_BYTES = 64 * 1024 * 1024
"""Maximum number of bytes that a test reads of submitted data; a workbook must be read completely."""
MAX_RECORDS = 5
"""Maximum number of records in the result of a test."""
MAX_PROBLEMS = 100
"""Maximum number of problems in the result of a test."""
TIMEOUT_SECONDS = 30
"""Time limit of a test in seconds."""


@dataclass(frozen=True, slots=True)
class TestFailure:
    """Reason for which a source could not be read: a code (as in `status_reason`) and a message."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class SourceTest:
    """Result of testing a source.

    Attributes:
        ok: Whether the source could be read.
        status: HTTP status of the response.
        served_by: Name of the source's API that returned the data; None if the connector uses only one API.
        final_url: URL of the response after redirects.
        sample: The first records, with values by column name.
        mapping: The fields of the first table's columns, and the columns without a field.
        problems: Problems in the first fifty rows.
        failure: Why the source cannot be read, or None.
    """

    ok: bool
    duration_ms: int
    bytes_read: int = 0
    status: int | None = None
    served_by: str | None = None
    final_url: str | None = None
    content_type: str | None = None
    sample: Sequence[Mapping[str, Any]] = ()
    mapping: Mapping[str, Any] | None = None
    problems: Sequence[Problem] = ()
    failure: TestFailure | None = None
