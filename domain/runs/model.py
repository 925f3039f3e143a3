"""A run and the states it goes through (specification, Run; decisions.md §2, §3)."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final

from domain.kernel.problems import Problem

TRIGGERS: Final = (
    "schedule", "manual", "upload", "push", "mail", "replay", "mapping", "category_rules", "proposal", "stock_check",
)  # fmt: skip
STREAMS: Final = ("catalogue", "stock")
STATUSES: Final = ("queued", "running", "waiting", "needs_mapping", "succeeded", "failed", "cancelled")
STAGES: Final = ("fetch", "parse", "map", "normalise", "store", "match", "done")
OPEN: Final = frozenset({"queued", "running", "waiting"})
SNAPSHOT_LIMIT: Final = 2 * 1024**3
"""The largest file that is taken, in bytes (2 GiB)."""
KEPT_PROBLEMS: Final = 1000
"""How many problems a run keeps word by word; `stats.problems` counts them all."""


@dataclass(frozen=True, slots=True)
class RunError:
    """Why a run failed: a code a program can use and a sentence for a person."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Waiting:
    """Why a run waits, until when, and which attempt comes next (from 1)."""

    reason: str
    until: datetime
    attempt: int
    detail: str


@dataclass(frozen=True, slots=True)
class Run:
    """One reading of one stream of a source.

    `snapshot` is the object key of the raw bytes once they are kept; `input` is what a push, upload or replay brings
    (`{"upload": id}`, `{"batch": …}`); `accept_shrink` lets a complete run withdraw as much as it wants.
    """

    id: str
    source: str
    trigger: str
    stream: str
    status: str
    created_at: datetime
    stage: str = "fetch"
    served_by: str | None = None
    stats: Mapping[str, int] = field(default_factory=dict)
    error: RunError | None = None
    waiting: Waiting | None = None
    problems: tuple[Problem, ...] = ()
    started_at: datetime | None = None
    finished_at: datetime | None = None
    snapshot: str | None = None
    input: Mapping[str, Any] = field(default_factory=dict)
    accept_shrink: bool = False

    def started(self, now: datetime) -> "Run":
        """A worker took the run up (for the first time, again after waiting, or from a worker that died)."""
        return replace(self, status="running", started_at=self.started_at or now, waiting=None)

    def ended(self, status: str, now: datetime, error: RunError | None = None) -> "Run":
        """The run is over."""
        stage = "done" if status == "succeeded" else self.stage
        return replace(self, status=status, stage=stage, finished_at=now, error=error, waiting=None)
