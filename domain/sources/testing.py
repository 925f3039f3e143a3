"""What a test of a source answers (docs/conventions.md#testing-a-source)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from domain.kernel.problems import Problem

BYTES = 2 * 1024 * 1024
"""How much of the feed a test reads."""
HANDED_IN_BYTES = 64 * 1024 * 1024
"""How much is read of what was handed in: a workbook cannot be read in part."""
RECORDS = 5
"""How many records a test shows."""
PROBLEMS = 100
"""How many problems a test tells."""
SECONDS = 30
"""How long a test takes at most."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why the source could not be read: a source's status_reason code and a sentence."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class SourceTest:
    """How reaching a source went; `status` is HTTP's, `sample` the first records as the feed names their columns.

    `mapping` tells what each column of the first table means, and which have no field; `problems` what could not be read of
    the first fifty rows.
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
