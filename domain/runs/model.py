"""A run and the states it goes through (docs/conventions.md#run)."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime

from domain.catalogue.model import Stream
from domain.ingestion.model import UnmappedReason
from domain.kernel.enums import StoredEnum
from domain.kernel.paging import Filter
from domain.kernel.problems import Problem


class RunTrigger(StoredEnum):
    """What had the run start."""

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
    """Where a run stands; `OPEN` ones go on."""

    QUEUED = "queued"
    RUNNING = "running"
    WAITING = "waiting"
    NEEDS_MAPPING = "needs_mapping"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


class RunStage(StoredEnum):
    """How far through the pipeline a run has come."""

    FETCH = "fetch"
    PARSE = "parse"
    MAP = "map"
    NORMALISE = "normalise"
    STORE = "store"
    MATCH = "match"
    DONE = "done"


class WaitingReason(StoredEnum):
    """Why a run waits."""

    RATE_LIMITED = "rate_limited"
    UPSTREAM_BUSY = "upstream_busy"
    RETRY = "retry"
    LEASE = "lease"

    @classmethod
    def _missing_(cls, _value: object) -> "WaitingReason":
        """Return RETRY for an unknown reason, which comes from a connector."""
        return cls.RETRY


class RunErrorCode(StoredEnum):
    """Why a run did not succeed."""

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
"""Ended by what the feed held, well or not."""
REPLAYABLE = frozenset({RunStatus.SUCCEEDED, RunStatus.NEEDS_MAPPING})
"""Of each stream, the newest run that ended so may be worked through again from its snapshot."""
REREADING = frozenset({RunTrigger.REPLAY, RunTrigger.MAPPING})
"""Triggers that have a feed worked through again although it is the very one of the last good run."""
SNAPSHOT_LIMIT = 2 * 1024**3
"""The largest file that is taken, in bytes (2 GiB)."""
WAITS = 10
"""How often a run waits for a busy source before it fails; turns at its host are none of these."""
TRIES = 8
"""How often a run that meets unforeseen errors is tried: for some minutes, as the worker waits longer each time."""
DEATHS = 3
"""How many attempts in a row may end without a word before the run fails."""
KEPT_PROBLEMS = 1000
"""How many problems a run keeps word by word; `stats.problems` counts them all."""

KEPT_COLUMNS = 500
"""How many columns a run tells of one by one; `stats.columns` and `stats.columns_unmapped` count them all."""


@dataclass(frozen=True, slots=True)
class RunColumn:
    """What a column of the feed was read as: its place in the table (from 0) and its field, or why it has none."""

    header: str
    position: int
    sheet: str | None = None
    field: str | None = None
    reason: UnmappedReason | None = None


@dataclass(frozen=True, slots=True)
class RunError:
    """Why a run failed: a code a program can use and a sentence for a person."""

    code: RunErrorCode
    message: str


@dataclass(frozen=True, slots=True)
class Waiting:
    """Why a run waits, until when, and which attempt comes next (from 1)."""

    reason: WaitingReason
    until: datetime
    attempt: int
    detail: str


@dataclass(frozen=True, slots=True)
class UploadInput:
    """A file that was handed in: its upload's id, and the key of its bytes in the object store."""

    upload: str
    key: str


@dataclass(frozen=True, slots=True)
class PushInput:
    """Records that were pushed, in so many parts.

    `batch` names a run that several calls fill; while it is `open`, more may come. `complete`: the source's whole
    catalogue is there.
    """

    batch: str | None = None
    parts: int = 0
    records: int = 0
    open: bool = True
    complete: bool = False

    def with_part(self, records: int, *, batch: str | None, more: bool, complete: bool) -> "PushInput":
        """One part more counted in; the last one decides whether the whole catalogue is there."""
        return PushInput(batch or self.batch, self.parts + 1, self.records + records, more, complete and not more)


@dataclass(frozen=True, slots=True)
class CheckInput:
    """The stock check that a run is for, and the variant whose stock it asks for."""

    check: str
    variant: str


@dataclass(frozen=True, slots=True)
class Fetched:
    """How the snapshot was come by: the digest of the settings it is read with, and the server's validators of it.

    `whole`: it holds the source's whole catalogue. `at` is when it was fetched or handed in.
    """

    settings: str
    whole: bool = True
    etag: str | None = None
    last_modified: str | None = None
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The first so many chunks of the snapshot are stored; `shape` says how it falls into chunks."""

    chunks: int
    shape: str


@dataclass(frozen=True, slots=True)
class Run:
    """One reading of one stream of a source.

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
        """Return whether the source's whole catalogue is there, so that what is not stated is gone."""
        if isinstance(self.input, CheckInput):
            return False
        return not isinstance(self.input, PushInput) or self.input.complete

    @property
    def waited_out(self) -> bool:
        """Return whether the run has waited often enough."""
        return self.waits >= WAITS

    @property
    def is_being_read(self) -> bool:
        """Return whether an attempt has begun to read the feed and has not ended."""
        return self.status == RunStatus.RUNNING and self.stage != RunStage.FETCH

    @property
    def hopeless(self) -> bool:
        """Return whether so many attempts have died that another one would, too."""
        return self.deaths >= DEATHS

    def fetched_under(self, settings: str, checked_at: datetime | None = None) -> Fetched | None:
        """Return how the snapshot was come by, unless the settings it is read with are others.

        Of a run that began before the stock of one of the source's items was asked for apart (`checked_at`), nothing: its feed
        must be read again, whether it is the same or not, for that what it states of the item counts again.
        """
        stale = checked_at is not None and (self.started_at is None or self.started_at <= checked_at)
        return self.fetched if self.fetched and self.fetched.settings == settings and not stale else None

    @property
    def was_refused(self) -> bool:
        """Return whether the shrink guard stopped it."""
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
        """Return the run waiting until a time: at the source's request, or (`own`) because another run had its turn at the host."""
        waits, turns = (self.waits, self.turns + 1) if own else (self.waits + 1, self.turns)
        waiting = Waiting(reason, until, waits + turns, detail)
        return replace(self, status=RunStatus.WAITING, waiting=waiting, waits=waits, turns=turns)

    def ended(self, status: RunStatus, now: datetime, error: RunError | None = None) -> "Run":
        """Return the run as finished."""
        stage = RunStage.DONE if status == RunStatus.SUCCEEDED else self.stage
        return replace(self, status=status, stage=stage, finished_at=now, error=error, waiting=None)


@dataclass(frozen=True, slots=True)
class RunFilter(Filter):
    """Which runs a list shows."""

    source: str | None = None


@dataclass(frozen=True, slots=True)
class NewestRun:
    """A source's newest run, and where it stands."""

    source: str
    id: str
    status: RunStatus


@dataclass(frozen=True, slots=True)
class StartRun:
    """A pull to start now; `accept_shrink` lets a complete run withdraw as much as it finds gone."""

    stream: Stream = Stream.CATALOGUE
    accept_shrink: bool = False


def newest_first(asking: Run | None, good: Run | None) -> list[Run]:
    """Return what may be read again: the run that waits for a mapping, unless one succeeded since, and the one that succeeded."""
    waits = asking if asking and (good is None or asking.id > good.id) else None
    return [run for run in (waits, good) if run is not None]


MOST_RUNS = 20_000
"""The newest runs that are looked at."""


@dataclass(frozen=True, slots=True)
class RunDay:
    """One source's runs of one day (UTC), by when they were queued: how many went well and how many failed."""

    source: str
    day: date
    succeeded: int
    failed: int
