"""The result of testing a source (docs/conventions.md#testing-a-source)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from domain.kernel.problems import Problem

BYTES = 2 * 1024 * 1024
"""Maximum bytes of the feed that a test reads."""
HANDED_IN_BYTES = 64 * 1024 * 1024
"""Maximum bytes of uploaded or sent data that a test reads; a workbook must be read completely."""
RECORDS = 5
"""Maximum number of records that a test shows."""
PROBLEMS = 100
"""Maximum number of problems that a test lists."""
SECONDS = 30
"""Time limit of a test in seconds."""


@dataclass(frozen=True, slots=True)
class Failure:
    """The reason why the source could not be read: a status_reason code and a sentence."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class SourceTest:
    """The result of reaching a source; `status` is HTTP's, `sample` the first records by the feed's column names.

    `mapping` has the field of each column of the first table, and the columns without one; `problems` those of the first
    fifty rows.
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
    failure: Failure | None = None
