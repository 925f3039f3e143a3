"""Runs and their states (docs/conventions.md#run)."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime

from domain.catalogue.model import Stream
from domain.ingestion.model import UnmappedReason
from domain.kernel.enums import StoredEnum
from domain.kernel.paging import Filter
from domain.kernel.problems import Problem


class RunTrigger(StoredEnum):
    """The trigger of a run."""

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
    """The status of a run; those in `OPEN` are not final."""

    QUEUED = "queued"
    RUNNING = "running"
    WAITING = "waiting"
    NEEDS_MAPPING = "needs_mapping"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


class RunStage(StoredEnum):
    """The pipeline stage that a run has reached."""

    FETCH = "fetch"
    PARSE = "parse"
    MAP = "map"
    NORMALISE = "normalise"
    STORE = "store"
    MATCH = "match"
    DONE = "done"


class WaitingReason(StoredEnum):
    """The reason why a run waits."""

    RATE_LIMITED = "rate_limited"
    UPSTREAM_BUSY = "upstream_busy"
    RETRY = "retry"
    LEASE = "lease"

    @classmethod
    def _missing_(cls, _value: object) -> "WaitingReason":
        """Return RETRY for an unknown reason, which comes from a connector."""
        return cls.RETRY


class RunErrorCode(StoredEnum):
    """The reason why a run did not succeed."""

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


OPEN = frozenset({RunStatus.QUEUED, RunStatus.RUNNING, RunStatus.WAITING})
CONCLUDED = frozenset({RunStatus.SUCCEEDED, RunStatus.FAILED})
"""Statuses of runs that ended because of the feed's content, successfully or not."""
REPLAYABLE = frozenset({RunStatus.SUCCEEDED, RunStatus.NEEDS_MAPPING})
"""Statuses whose newest run of each stream can be replayed from its snapshot."""
REREADING = frozenset({RunTrigger.REPLAY, RunTrigger.MAPPING})
"""Triggers that process a feed even if it equals that of the last successful run."""
SNAPSHOT_LIMIT = 2 * 1024**3
"""Maximum size of a file in bytes (2 GiB)."""
WAITS = 10
"""Maximum number of waits for a busy source before a run fails; waits for a turn at the host do not count."""
TRIES = 8
"""Maximum number of attempts after unforeseen errors: some minutes in total, as the worker waits longer each time."""
DEATHS = 3
"""Maximum number of consecutive attempts that end without a result before the run fails."""
KEPT_PROBLEMS = 1000
"""Maximum number of problems stored with a run; `stats.problems` counts all of them."""

KEPT_COLUMNS = 500
"""Maximum number of columns listed for a run; `stats.columns` and `stats.columns_unmapped` count all of them."""


@dataclass(frozen=True, slots=True)
class RunColumn:
    """A column of the feed: its position in the table (from 0) and its field, or the reason why it has none."""

    header: str
    position: int
    sheet: str | None = None
    field: str | None = None
    reason: UnmappedReason | None = None


@dataclass(frozen=True, slots=True)
class RunError:
    """The error of a run: a machine-readable code and a sentence."""

    code: RunErrorCode
    message: str


@dataclass(frozen=True, slots=True)
class Waiting:
    """The wait of a run: its reason, its end, and the number of the next attempt (from 1)."""

    reason: WaitingReason
    until: datetime
    attempt: int
    detail: str


@dataclass(frozen=True, slots=True)
class UploadInput:
    """An uploaded file: the upload's ID, and the key of its bytes in the object store."""

    upload: str
    key: str


@dataclass(frozen=True, slots=True)
class PushInput:
    """Pushed records and their number of parts.

    `batch` names a run that several calls fill; while it is `open`, more parts can follow. `complete`: the records are
    the source's whole catalogue.
    """

    batch: str | None = None
    parts: int = 0
    records: int = 0
    open: bool = True
    complete: bool = False

    def with_part(self, records: int, *, batch: str | None, more: bool, complete: bool) -> "PushInput":
        """Return the input with one more part; the last part determines whether the catalogue is complete."""
        return PushInput(batch or self.batch, self.parts + 1, self.records + records, more, complete and not more)


@dataclass(frozen=True, slots=True)
class CheckInput:
    """The stock check of a run, and the variant to check."""

    check: str
    variant: str


@dataclass(frozen=True, slots=True)
class Fetched:
    """The record of a fetch: the digest of the settings the snapshot is read with, and the server's validators.

    `whole`: the snapshot holds the source's whole catalogue. `at` is when it was fetched or submitted.
    """

    settings: str
    whole: bool = True
    etag: str | None = None
    last_modified: str | None = None
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The number of chunks already stored; `shape` has the parameters of the division into chunks."""

    chunks: int
    shape: str


@dataclass(frozen=True, slots=True)
class Run:
    """One import of one stream of a source.

    `input` is what was handed in or asked for, None for a pull; `snapshot` the object key of the raw bytes once they are kept;
    `waits` counts how often the run has waited for its source, `turns` how often for a turn at its host, `deaths` the attempts that ended without a word since anything was last
    stored; `accept_shrink` lets a complete run withdraw as much as it wants. `columns` tells what each column was read as,
    `mappings` the mappings of their header sets.
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
    waiting: Waiting | None = None
    problems: tuple[Problem, ...] = ()
    started_at: datetime | None = None
    finished_at: datetime | None = None
    snapshot: str | None = None
    input: UploadInput | PushInput | CheckInput | None = None
    fetched: Fetched | None = None
    checkpoint: Checkpoint | None = None
    waits: int = 0
    deaths: int = 0
    accept_shrink: bool = False
    columns: tuple[RunColumn, ...] = ()
    mappings: tuple[str, ...] = ()
    turns: int = 0

    @property
    def complete(self) -> bool:
        """Return whether the feed is the source's whole catalogue, so that missing items are withdrawn."""
        if isinstance(self.input, CheckInput):
            return False
        return not isinstance(self.input, PushInput) or self.input.complete

    @property
    def waited_out(self) -> bool:
        """Return whether the run has used up its waits."""
        return self.waits >= WAITS

    @property
    def is_being_read(self) -> bool:
        """Return whether an attempt is reading the feed."""
        return self.status == RunStatus.RUNNING and self.stage != RunStage.FETCH

    @property
    def hopeless(self) -> bool:
        """Return whether too many attempts in a row ended without a result."""
        return self.deaths >= DEATHS

    def fetched_under(self, settings: str, checked_at: datetime | None = None) -> Fetched | None:
        """Return the record of the fetch, or None if the snapshot was read with other settings.

        Return None as well for a run that began before a stock check of the source (`checked_at`): its feed must be read
        again even if unchanged, so that its stock of the checked item applies again.
        """
        stale = checked_at is not None and (self.started_at is None or self.started_at <= checked_at)
        return self.fetched if self.fetched and self.fetched.settings == settings and not stale else None

    @property
    def was_refused(self) -> bool:
        """Return whether the shrink guard refused the run."""
        return self.error is not None and self.error.code == RunErrorCode.SHRINK_REFUSED

    def over(self, read: "Run") -> "Run":
        """Return the run with the snapshot of an earlier run, which is not fetched again."""
        return replace(self, snapshot=read.snapshot, fetched=read.fetched, served_by=read.served_by)

    def started(self, now: datetime) -> "Run":
        """Return the run as started by a worker, for the first time, after waiting, or after another worker died."""
        return replace(
            self, status=RunStatus.RUNNING, stage=RunStage.FETCH, started_at=self.started_at or now, waiting=None
        )

    def died(self) -> "Run":
        """Return the run after an attempt that ended without a result."""
        return replace(self, deaths=self.deaths + 1)

    def put_off(self, reason: WaitingReason, until: datetime, detail: str, *, own: bool = False) -> "Run":
        """Return the run waiting until a time: at the source's request, or (`own`) for a turn at the host."""
        waits, turns = (self.waits, self.turns + 1) if own else (self.waits + 1, self.turns)
        waiting = Waiting(reason, until, waits + turns, detail)
        return replace(self, status=RunStatus.WAITING, waiting=waiting, waits=waits, turns=turns)

    def ended(self, status: RunStatus, now: datetime, error: RunError | None = None) -> "Run":
        """Return the run as finished."""
        stage = RunStage.DONE if status == RunStatus.SUCCEEDED else self.stage
        return replace(self, status=status, stage=stage, finished_at=now, error=error, waiting=None)


@dataclass(frozen=True, slots=True)
class RunFilter(Filter):
    """The filter of a list of runs."""

    source: str | None = None


@dataclass(frozen=True, slots=True)
class NewestRun:
    """A source's newest run and its status."""

    source: str
    id: str
    status: RunStatus


@dataclass(frozen=True, slots=True)
class StartRun:
    """A request for a pull; `accept_shrink` disables the removal limit."""

    stream: Stream = Stream.CATALOGUE
    accept_shrink: bool = False


def newest_first(asking: Run | None, good: Run | None) -> list[Run]:
    """Return the replayable runs: one waiting for a mapping, unless a newer one succeeded, and the last that succeeded."""
    waits = asking if asking and (good is None or asking.id > good.id) else None
    return [run for run in (waits, good) if run is not None]


MOST_RUNS = 20_000
"""Maximum number of runs that are counted, the newest first."""


@dataclass(frozen=True, slots=True)
class RunDay:
    """The numbers of a source's successful and failed runs of one day (UTC), by the time they were queued."""

    source: str
    day: date
    succeeded: int
    failed: int
