"""An export, the files that it comes to, and the states it goes through (docs/exports.md)."""

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TypedDict

from domain.audit.model import Audited
from domain.jobs.model import NewJob
from domain.kernel import retention
from domain.kernel.enums import StoredEnum
from domain.kernel.tenancy import Tenant

CARRY_OUT = "exports.carry_out"
"""The kind of job that carries an export out."""
OPEN_EXPORTS = 3
"""How many exports of one organisation and mode may wait or run at once."""
KEPT_EXPORTS = 20
"""The files of so many exports of one organisation and mode are kept; a newer one has the oldest expire before its time."""
DEATHS = 3
"""How many attempts may end without a word before an export fails."""
FAILURES = 4
"""How many attempts may fail before the export does."""
LONGEST = timedelta(hours=12)
"""After which an export is given up, however often it was begun."""
LINK_LIFETIME = timedelta(hours=1)
"""For how long a link to a file may be asked at most (see `link_expiry`); what is being downloaded then goes on."""
MANIFEST = "manifest"
"""The dataset of the file that closes an export, and tells of all others."""
PRODUCTS = "products"


class ExportKind(StoredEnum):
    """What is exported."""

    PRODUCTS = "products"
    ORGANISATION = "organisation"


class ExportStatus(StoredEnum):
    """Where an export stands."""

    PENDING = "pending"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    EXPIRED = "expired"


OPEN = frozenset({ExportStatus.PENDING, ExportStatus.RUNNING})


@dataclass(frozen=True, slots=True)
class ExportFilters:
    """Which products are exported; as the list's filter of that name."""

    updated_since: datetime | None = None


@dataclass(frozen=True, slots=True)
class ExportFile:
    """One file: what is in it, how many lines, its size packed, the SHA-256 of its bytes, and its key in the object store."""

    dataset: str
    rows: int
    bytes: int
    sha256: str
    key: str


@dataclass(frozen=True, slots=True)
class Export:
    """What was asked for, and how far it is.

    `keys` are the objects that it has in the store, those of the attempt under way included; `changes_cursor` is
    the feed's position at the moment that the export shows. `deaths` counts attempts that ended without a word,
    `failures` those that failed.
    """

    id: str
    kind: ExportKind
    status: ExportStatus
    created_at: datetime
    filters: ExportFilters = field(default_factory=ExportFilters)
    rows: int = 0
    files: tuple[ExportFile, ...] = ()
    keys: tuple[str, ...] = ()
    changes_cursor: str | None = None
    error: str | None = None
    started_at: datetime | None = None
    completed_at: datetime | None = None
    expires_at: datetime | None = None
    deaths: int = 0
    failures: int = 0

    @property
    def over(self) -> bool:
        """Whether there is nothing left to do."""
        return self.status not in OPEN

    @property
    def filtered(self) -> bool:
        """Whether some products may be left out."""
        return self.filters != ExportFilters()

    def hopeless(self, now: datetime) -> bool:
        """Whether another attempt would lead nowhere, or come too late."""
        late = self.started_at is not None and now - self.started_at > LONGEST
        return late or self.deaths >= DEATHS

    def died(self) -> "Export":
        """Return the export after an attempt that ended without a result."""
        return replace(self, deaths=self.deaths + 1)

    def begun(self, keys: tuple[str, ...], now: datetime) -> "Export":
        """Return the export as started by a worker, which writes new objects."""
        started = self.started_at or now
        return replace(self, status=ExportStatus.RUNNING, started_at=started, rows=0, keys=keys)

    def counted(self, rows: int) -> "Export":
        """So many rows are written by now."""
        return replace(self, rows=rows)

    def put_off(self) -> "Export":
        """Return the export after a failed attempt that will be retried."""
        return replace(self, status=ExportStatus.PENDING, rows=0, failures=self.failures + 1)

    def succeeded(self, files: tuple[ExportFile, ...], cursor: str, now: datetime) -> "Export":
        """Everything is there to be downloaded."""
        return replace(
            self,
            status=ExportStatus.SUCCEEDED,
            rows=sum(one.rows for one in files if one.dataset != MANIFEST),
            files=files,
            keys=tuple(one.key for one in files),
            changes_cursor=cursor,
            completed_at=now,
            expires_at=now + retention.EXPORTS,
        )

    def failed(self, error: str, now: datetime) -> "Export":
        """There will be no files."""
        return replace(self, status=ExportStatus.FAILED, rows=0, keys=(), error=error, completed_at=now)

    def expired(self, now: datetime) -> "Export":
        """Its files are deleted."""
        at = min(self.expires_at or now, now)
        return replace(self, status=ExportStatus.EXPIRED, files=(), keys=(), expires_at=at)


class NewExportFilters(TypedDict, total=False):
    """Which products are asked for."""

    updated_since: datetime


class _Kind(TypedDict):
    kind: ExportKind


class NewExport(_Kind, total=False):
    """What is asked for."""

    filters: NewExportFilters


AUDITED = Audited("export", ("kind", "status", "filters", "error", "expires_at"))


def job_of(export: Export, tenant: Tenant) -> NewJob:
    """Return the job that executes the export; a tenant's exports execute one after another."""
    return NewJob(CARRY_OUT, f"exports:{tenant.mode}", tenant, {"export": export.id}, key=export.id)
