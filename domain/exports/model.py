"""Exports, their files and their states (docs/exports.md)."""

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TypedDict

from domain.audit.model import Audited
from domain.jobs.model import NewJob
from domain.kernel import retention
from domain.kernel.enums import StoredEnum
from domain.kernel.tenancy import Tenant

CARRY_OUT = "exports.carry_out"
"""The kind of job that writes an export."""
OPEN_EXPORTS = 3
"""Maximum number of pending and running exports of one organisation and mode."""
KEPT_EXPORTS = 20
"""Number of exports of one organisation and mode whose files are kept; a further export makes the oldest expire early."""
DEATHS = 3
"""Number of attempts that ended without a result (worker crashes) after which an export fails."""
FAILURES = 4
"""Number of failed attempts after which an export fails."""
LONGEST = timedelta(hours=12)
"""Time since the first start after which an export fails."""
LINK_LIFETIME = timedelta(hours=1)
"""Maximum lifetime of a download link (see `link_expiry`); downloads in progress continue."""
MANIFEST = "manifest"
"""The dataset of an export's last file, which lists all others."""
PRODUCTS = "products"


class ExportKind(StoredEnum):
    """Kinds of exports."""

    PRODUCTS = "products"
    ORGANISATION = "organisation"


class ExportStatus(StoredEnum):
    """States of an export."""

    PENDING = "pending"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    EXPIRED = "expired"


OPEN = frozenset({ExportStatus.PENDING, ExportStatus.RUNNING})


@dataclass(frozen=True, slots=True)
class ExportFilters:
    """Filters of the exported products, as those of the product list."""

    updated_since: datetime | None = None


@dataclass(frozen=True, slots=True)
class ExportFile:
    """A file: dataset, number of lines, compressed size, SHA-256 of its bytes, and key in the object store."""

    dataset: str
    rows: int
    bytes: int
    sha256: str
    key: str


@dataclass(frozen=True, slots=True)
class Export:
    """An export and its progress.

    `keys` are its objects in the store, including those of the attempt in progress; `changes_cursor` is the feed's
    position at the time of the snapshot. `deaths` counts attempts that ended without a result, `failures` failed ones.
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
        """True if the export has ended."""
        return self.status not in OPEN

    @property
    def filtered(self) -> bool:
        """True if filters may exclude products."""
        return self.filters != ExportFilters()

    def hopeless(self, now: datetime) -> bool:
        """Return whether no further attempt should be made."""
        late = self.started_at is not None and now - self.started_at > LONGEST
        return late or self.deaths >= DEATHS

    def died(self) -> "Export":
        """Return the export after an attempt that ended without a result."""
        return replace(self, deaths=self.deaths + 1)

    def begun(self, keys: tuple[str, ...], now: datetime) -> "Export":
        """Return the export after a worker started an attempt, which writes its own objects."""
        started = self.started_at or now
        return replace(self, status=ExportStatus.RUNNING, started_at=started, rows=0, keys=keys)

    def counted(self, rows: int) -> "Export":
        """Return the export with the number of rows written so far."""
        return replace(self, rows=rows)

    def put_off(self) -> "Export":
        """Return the export after a failed attempt that is retried."""
        return replace(self, status=ExportStatus.PENDING, rows=0, failures=self.failures + 1)

    def succeeded(self, files: tuple[ExportFile, ...], cursor: str, now: datetime) -> "Export":
        """Return the export with its completed files."""
        return replace(
            self,
            status=ExportStatus.SUCCEEDED,
            rows=sum(file.rows for file in files if file.dataset != MANIFEST),
            files=files,
            keys=tuple(file.key for file in files),
            changes_cursor=cursor,
            completed_at=now,
            expires_at=now + retention.EXPORTS,
        )

    def failed(self, error: str, now: datetime) -> "Export":
        """Return the failed export, which has no files."""
        return replace(self, status=ExportStatus.FAILED, rows=0, keys=(), error=error, completed_at=now)

    def expired(self, now: datetime) -> "Export":
        """Return the export after the deletion of its files."""
        at = min(self.expires_at or now, now)
        return replace(self, status=ExportStatus.EXPIRED, files=(), keys=(), expires_at=at)


class NewExportFilters(TypedDict, total=False):
    """Filters of a new export."""

    updated_since: datetime


class _Kind(TypedDict):
    kind: ExportKind


class NewExport(_Kind, total=False):
    """Properties of a new export."""

    filters: NewExportFilters


AUDITED = Audited("export", ("kind", "status", "filters", "error", "expires_at"))


def job_of(export: Export, tenant: Tenant) -> NewJob:
    """Return the job that writes the export; jobs of one tenant and mode run one after the other."""
    return NewJob(CARRY_OUT, f"exports:{tenant.mode}", tenant, {"export": export.id}, key=export.id)
