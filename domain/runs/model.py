"""Runs (imports of a source) and their states (docs/conventions.md#run)."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta

from domain.catalogue.model import Stream
from domain.ingestion.model import UnmappedReason
from domain.kernel.enums import StoredEnum
from domain.kernel.paging import Filter
from domain.kernel.problems import Problem, count_ignored


class RunTrigger(StoredEnum):
    """Events that start a run."""

    SCHEDULE = "schedule"
    MANUAL = "manual"
    UPLOAD = "upload"
    PUSH = "push"
    MAIL = "mail"
    REPLAY = "replay"
    MAPPING = "mapping"
    CATEGORY_RULES = "category_rules"
    PROPOSAL = "proposal"
    STOCK_CHECK = "stock_check"


class RunStatus(StoredEnum):
    """Statuses of a run; `OPEN_STATUSES` are the statuses of runs that have not ended."""

    QUEUED = "queued"
    RUNNING = "running"
    WAITING = "waiting"
    NEEDS_MAPPING = "needs_mapping"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


class RunStage(StoredEnum):
    """Stages of a run, in order."""

    FETCH = "fetch"
    PARSE = "parse"
    MAP = "map"
    NORMALISE = "normalise"
    STORE = "store"
    MATCH = "match"
    DONE = "done"


class WaitingReason(StoredEnum):
    """Reasons for which a run waits."""

    RATE_LIMITED = "rate_limited"
    UPSTREAM_BUSY = "upstream_busy"
    RETRY = "retry"
    LEASE = "lease"

    @classmethod
    def _missing_(cls, _value: object) -> "WaitingReason":
        """Return RETRY for an unknown reason, because connectors can define further reasons."""
        return cls.RETRY


class RunErrorCode(StoredEnum):
    """Reasons for which a run did not succeed."""

    FETCH_FAILED = "fetch_failed"
    FETCH_REFUSED = "fetch_refused"
    CREDENTIALS_REFUSED = "credentials_refused"
    PARSE_FAILED = "parse_failed"
    MAPPING_REQUIRED = "mapping_required"
    SHRINK_REFUSED = "shrink_refused"
    STORAGE_FULL = "storage_full"
    QUOTA_EXCEEDED = "quota_exceeded"
    BATCH_EXPIRED = "batch_expired"
    INTERNAL_ERROR = "internal_error"
    SOURCE_NOT_ACTIVE = "source_not_active"


OPEN_STATUSES = frozenset({RunStatus.QUEUED, RunStatus.RUNNING, RunStatus.WAITING})
"""Statuses of runs that have not ended."""
SUCCEEDED_OR_FAILED_STATUSES = frozenset({RunStatus.SUCCEEDED, RunStatus.FAILED})
"""Statuses of runs that succeeded or failed, in contrast to runs that were cancelled or need a mapping."""
REPLAYABLE_STATUSES = frozenset({RunStatus.SUCCEEDED, RunStatus.NEEDS_MAPPING})
"""Statuses of runs that can be replayed: the snapshot of each stream's newest run with such a status is kept."""
REPLAY_TRIGGERS = frozenset({RunTrigger.REPLAY, RunTrigger.MAPPING})
"""Triggers of runs that process a feed even if it is unchanged since the last successful run."""
MAX_SNAPSHOT_BYTES = 2 * 1024**3
"""Maximum size of a snapshot in bytes (2 GiB); a larger feed or upload is refused."""
MAX_WAITS = 10
"""Maximum number of waits for a busy source before a run fails; waits for the host's rate limit do not count."""
MAX_ATTEMPTS = 8
"""Maximum number of attempts if unforeseen errors occur; then the run fails. The delays add up to some minutes."""
MAX_RUN_CRASHES = 3
"""Number of consecutive attempts without a result after which a run fails."""
MAX_STORED_PROBLEMS = 1000
"""Maximum number of problems stored with a run; `stats.problems` counts all of them."""

MAX_LISTED_COLUMNS = 500
"""Maximum number of columns listed for a run; `stats.columns` and `stats.columns_unmapped` count all of them."""


@dataclass(frozen=True, slots=True)
class RunColumn:
    """Column of the feed.

    Attributes:
        header: Text in the header row.
        position: Index in the table, from 0.
        sheet: Name of the table, if it has one.
        field: Field that the column is mapped to, or None.
        reason: Reason for which the column has no field, or None.
    """

    header: str
    position: int
    sheet: str | None = None
    field: str | None = None
    reason: UnmappedReason | None = None


@dataclass(frozen=True, slots=True)
class RunError:
    """Error of a run: a machine-readable code and a message for users."""

    code: RunErrorCode
    message: str


@dataclass(frozen=True, slots=True)
class RunWait:
    """State of a waiting run.

    Attributes:
        reason: Why the run waits, as a code.
        until: When the next attempt is due.
        attempt: Number of waits of the run so far, including this one.
        detail: Why the run waits, as a sentence.
    """

    reason: WaitingReason
    until: datetime
    attempt: int
    detail: str


@dataclass(frozen=True, slots=True)
class UploadInput:
    """Uploaded file that a run reads: ID of the upload, and key of the file in the object store."""

    upload: str
    key: str


@dataclass(frozen=True, slots=True)
class PushInput:
    """Pushed records of a run.

    Attributes:
        batch: Name of the batch, if several calls add records to the run.
        parts: Number of parts (the records of one call each) so far.
        records: Number of records so far.
        open: Whether further parts can follow.
        complete: Whether the records are the source's whole catalogue.
    """

    batch: str | None = None
    parts: int = 0
    records: int = 0
    open: bool = True
    complete: bool = False

    def with_part(self, records: int, *, batch: str | None, has_more: bool, is_complete: bool) -> "PushInput":
        """Return the input with one more part added.

        Args:
            records: Number of records in the part.
            batch: Name of the batch, if any.
            has_more: Whether further parts follow.
            is_complete: Whether the batch is the source's whole catalogue; only the value of the last part counts.
        """
        return PushInput(
            batch or self.batch, self.parts + 1, self.records + records, has_more, is_complete and not has_more
        )


@dataclass(frozen=True, slots=True)
class CheckInput:
    """Input of a run for a stock check: IDs of the stock check and of the variant to check."""

    check: str
    variant: str


@dataclass(frozen=True, slots=True)
class FetchRecord:
    """Circumstances in which a run's snapshot was fetched or submitted.

    Attributes:
        settings: Digest of the source's settings with which the snapshot is read.
        whole: Whether the snapshot contains the source's whole catalogue.
        etag: ETag of the response, for a conditional request.
        last_modified: Last-Modified of the response, for a conditional request.
        at: When the snapshot was fetched or submitted.
    """

    settings: str
    whole: bool = True
    etag: str | None = None
    last_modified: str | None = None
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Progress of a run, from which another attempt can resume.

    Attributes:
        chunks: Number of chunks that are stored completely.
        shape: Description of the feed's division into chunks; an attempt with another division starts again.
    """

    chunks: int
    shape: str


@dataclass(frozen=True, slots=True)
class Run:
    """One import of one stream of a source.

    Attributes:
        source: ID of the source.
        served_by: Name of the source's API that returned the data; None if the connector uses only one API.
        stats: Counts such as `rows` and `products_changed`, by name.
        problems: The first MAX_STORED_PROBLEMS problems.
        snapshot: Key of the stored file in the object store.
        input: The submitted data or the stock check; None for a pull.
        fetched: Circumstances of the fetch; None before it.
        waits: Number of waits for the source.
        host_waits: Number of waits for the rate limit of the source's host.
        crashes: Number of attempts without a result since the last stored progress.
        accept_shrink: Whether the removal limit is disabled for this run; the name is that of the API.
        columns: The feed's columns with their fields, at most MAX_LISTED_COLUMNS.
        mappings: IDs of the mappings of the feed's header sets.
    """

    id: str
    source: str
    trigger: RunTrigger
    stream: Stream
    status: RunStatus
    created_at: datetime
    stage: RunStage = RunStage.FETCH
    served_by: str | None = None
    stats: Mapping[str, int] = field(default_factory=dict)
    error: RunError | None = None
    waiting: RunWait | None = None
    problems: tuple[Problem, ...] = ()
    started_at: datetime | None = None
    finished_at: datetime | None = None
    snapshot: str | None = None
    input: UploadInput | PushInput | CheckInput | None = None
    fetched: FetchRecord | None = None
    checkpoint: Checkpoint | None = None
    waits: int = 0
    crashes: int = 0
    accept_shrink: bool = False
    columns: tuple[RunColumn, ...] = ()
    mappings: tuple[str, ...] = ()
    host_waits: int = 0

    @property
    def is_complete(self) -> bool:
        """True if the feed is the source's whole catalogue, so that items missing in it are withdrawn."""
        if isinstance(self.input, CheckInput):
            return False
        return not isinstance(self.input, PushInput) or self.input.complete

    @property
    def has_waited_too_often(self) -> bool:
        """True if the run has waited for the source MAX_WAITS times, so that it fails instead of waiting again."""
        return self.waits >= MAX_WAITS

    @property
    def is_being_read(self) -> bool:
        """True if a worker is reading the feed."""
        return self.status == RunStatus.RUNNING and self.stage != RunStage.FETCH

    @property
    def has_crashed_too_often(self) -> bool:
        """True if MAX_RUN_CRASHES consecutive attempts ended without a result, so that the run fails."""
        return self.crashes >= MAX_RUN_CRASHES

    def find_reusable_fetch_record(self, settings: str, checked_at: datetime | None = None) -> FetchRecord | None:
        """Return the fetch record if later runs may skip an unchanged feed; return None if they must process it again.

        An unchanged feed must be processed again if the source's settings have changed, or if a stock check or a run that did
        not succeed has changed items of the source after this run started.

        Args:
            settings: Digest of the source's current settings.
            checked_at: When a stock check, or a run that did not succeed, last changed an item of the source; or None.
        """
        stale = checked_at is not None and (self.started_at is None or self.started_at <= checked_at)
        return self.fetched if self.fetched and self.fetched.settings == settings and not stale else None

    @property
    def has_exceeded_removal_limit(self) -> bool:
        """True if the run failed because it exceeded the removal limit."""
        return self.error is not None and self.error.code == RunErrorCode.SHRINK_REFUSED

    def with_snapshot_of(self, earlier_run: "Run") -> "Run":
        """Return the run with the snapshot of the earlier run `earlier_run`, which it reads instead of fetching."""
        return replace(
            self, snapshot=earlier_run.snapshot, fetched=earlier_run.fetched, served_by=earlier_run.served_by
        )

    def with_start(self, now: datetime) -> "Run":
        """Return the run at the start of an attempt; the time of the first start is preserved."""
        return replace(
            self, status=RunStatus.RUNNING, stage=RunStage.FETCH, started_at=self.started_at or now, waiting=None
        )

    def with_crash(self) -> "Run":
        """Return the run after an attempt that ended without a result, such as a crash."""
        return replace(self, crashes=self.crashes + 1)

    def with_wait(self, reason: WaitingReason, until: datetime, detail: str, *, is_host_limited: bool = False) -> "Run":
        """Return the run in the status waiting.

        Args:
            reason: Why the run waits, as a code.
            until: When the next attempt is due.
            detail: Why the run waits, as a sentence.
            is_host_limited: Whether the run waits because of the service's rate limit for the host, not at the source's request.
        """
        waits, host_waits = (self.waits, self.host_waits + 1) if is_host_limited else (self.waits + 1, self.host_waits)
        waiting = RunWait(reason, until, waits + host_waits, detail)
        return replace(self, status=RunStatus.WAITING, waiting=waiting, waits=waits, host_waits=host_waits)

    def with_ignored_problems(self, identities: Collection[tuple[str | None, ...]], *, ignored: bool = True) -> "Run":
        """Return the run with its problems of these identities marked as ignored, or as open if `ignored` is False."""
        problems = tuple(
            replace(one, ignored=ignored or None) if one.identity in identities else one for one in self.problems
        )
        count = count_ignored(problems)
        stats = {name: value for name, value in self.stats.items() if name != "problems_ignored"}
        return replace(self, problems=problems, stats=stats | ({"problems_ignored": count} if count else {}))

    def with_end(self, status: RunStatus, now: datetime, error: RunError | None = None) -> "Run":
        """Return the run with its final status."""
        stage = RunStage.DONE if status == RunStatus.SUCCEEDED else self.stage
        return replace(self, status=status, stage=stage, finished_at=now, error=error, waiting=None)


@dataclass(frozen=True, slots=True)
class RunFilter(Filter):
    """Filter of a list of runs: ID of the source; None includes all sources."""

    source: str | None = None


@dataclass(frozen=True, slots=True)
class RunSummary:
    """Outcome of one import of a source, without its problems and columns.

    Attributes:
        source: ID of the source.
        read_at: When the data was fetched or submitted; None before that.
        stats: Counts by name, as in Run.
        error: Message of the error for users; None if the run did not fail.
    """

    source: str
    id: str
    stream: Stream
    status: RunStatus
    created_at: datetime
    started_at: datetime | None = None
    finished_at: datetime | None = None
    read_at: datetime | None = None
    stats: Mapping[str, int] = field(default_factory=dict)
    error: str | None = None

    @property
    def has_failed(self) -> bool:
        """True if the run ended without importing the data."""
        return self.status == RunStatus.FAILED

    @property
    def changed_count(self) -> int:
        """Number of products, variants and offers that the run created, changed or withdrew."""
        return sum(count for name, count in self.stats.items() if name.endswith(("_created", "_changed", "_withdrawn")))

    @property
    def duration(self) -> timedelta | None:
        """Time from the start to the end of the run; None for a run that has not started or not ended."""
        return self.finished_at - self.started_at if self.started_at and self.finished_at else None


@dataclass(frozen=True, slots=True)
class OpenReview:
    """Problems and column mappings of a source's newest import that no person has reviewed.

    Attributes:
        source: The ID of the source.
        run: The ID of the newest import of the stream that has succeeded or needs a mapping.
        problems: The number of problems that people do not ignore.
        mappings: The number of column mappings that nobody has confirmed.
        mapping: The ID of the first of these mappings, or None.
        stream: The stream of the import.
    """

    source: str
    run: str
    problems: int
    mappings: int
    mapping: str | None
    stream: str


@dataclass(frozen=True, slots=True)
class ProblemSelection:
    """Selection of a run's problems: the problem with an index, or all problems of one kind, field and column."""

    index: int | None = None
    problem: str | None = None
    field: str | None = None
    column: str | None = None

    def select(self, problems: Sequence[Problem]) -> list[Problem]:
        """Return the selected problems."""
        if self.index is not None:
            return list(problems[self.index : self.index + 1])
        group = self.problem, self.field, self.column
        return [one for one in problems if (one.problem, one.field, one.column) == group]


@dataclass(frozen=True, slots=True)
class StartRun:
    """Request to pull or replay a stream of a source; `accept_shrink` disables the removal limit."""

    stream: Stream = Stream.CATALOGUE
    accept_shrink: bool = False


def list_replayable_runs(unmapped_run: Run | None, successful_run: Run | None) -> list[Run]:
    """Return the runs whose snapshots can be replayed, newest first.

    Args:
        unmapped_run: The newest run that needs a mapping, or None; it is ignored if `successful_run` is newer.
        successful_run: The newest successful run, or None.
    """
    unmapped = (
        unmapped_run if unmapped_run and (successful_run is None or unmapped_run.id > successful_run.id) else None
    )
    return [run for run in (unmapped, successful_run) if run is not None]


MAX_COUNTED_RUNS = 20_000
"""Maximum number of runs in the counts by day; only the newest runs are counted."""


@dataclass(frozen=True, slots=True)
class RunDay:
    """Numbers of a source's successful and failed runs that were queued on one day (UTC), and of the rows that they read."""

    source: str
    day: date
    succeeded: int
    failed: int
    rows: int = 0


MAX_LISTED_SUMMARIES = 2_000
"""Maximum number of runs in the history of a source; only the newest runs are listed."""


@dataclass(frozen=True, slots=True)
class SourceRuns:
    """Numbers of a source's imports in a period.

    Attributes:
        source: ID of the source.
        succeeded: Number of successful runs.
        failed: Number of failed runs.
        rows: Number of rows of the runs that read any.
        problems: Number of problems in these rows.
        read_at: When the data of each successful run of the catalogue was fetched or submitted, oldest first.
    """

    source: str
    succeeded: int
    failed: int
    rows: int
    problems: int
    read_at: tuple[datetime, ...]
