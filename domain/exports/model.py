"""Exports, their files and their states (docs/exports.md)."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, TypedDict

from domain.audit.model import AuditedFields
from domain.catalogue.model import ProductFilter, ProductSort
from domain.exports.layout import ExportFormat, ExportLayout, ExportLocale, RowLevel, UnitSystem
from domain.jobs.model import NewJob
from domain.kernel import retention
from domain.kernel.enums import StoredEnum
from domain.kernel.tenancy import Tenant

EXECUTE_EXPORT = "exports.carry_out"
"""The kind of job that writes an export."""
MAX_OPEN_EXPORTS = 3
"""Maximum number of pending and running exports of one organisation and mode."""
MAX_STORED_EXPORTS = 20
"""Maximum number of exports of one organisation and mode that have files; beyond it, the oldest expires early."""
MAX_CRASHES = 3
"""Number of crashes (attempts without a result, because the worker crashed) after which an export fails."""
MAX_FAILURES = 4
"""Number of failed attempts (attempts that ended with an error) after which an export fails."""
MAX_DURATION = timedelta(hours=12)
"""Time since the first start after which an export fails."""
LINK_LIFETIME = timedelta(hours=1)
"""Maximum lifetime of a download link (see `domain.kernel.links.link_expiry`); downloads in progress continue."""
MANIFEST = "manifest"
"""The dataset of an export's last file, which lists all others."""
OMITTED_ITEMS = "omitted_items"
"""The dataset of items that the file of products lacks, because its format requires a value that they do not have."""
UNCOUNTED_DATASETS = frozenset({MANIFEST, OMITTED_ITEMS})
"""Datasets whose rows are not exported rows."""
PRODUCTS = "products"
MAX_IDS = 5_000
"""Maximum number of IDs in the filter `id` of an export."""
MAX_COLUMNS = 60
"""Maximum number of columns of a table."""


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
class ExportFile:
    """File of an export: dataset, number of lines, compressed size, SHA-256 of the file, and key in the object store."""

    dataset: str
    rows: int
    bytes: int
    sha256: str
    key: str


@dataclass(frozen=True, slots=True)
class Export:
    """Export and its progress.

    Attributes:
        filters: Filters of the exported products, as in the list of products.
        layout: The layout of the file of products.
        schedule: The ID of the scheduled export that created the export; None if a request did.
        keys: Keys of the export's objects in the object store, including the files of the attempt in progress.
        changes_cursor: The position in the change feed at the time of the snapshot.
        crashes: Number of attempts without a result, because the worker crashed.
        failures: Number of attempts that ended with an error.
    """

    id: str
    kind: ExportKind
    status: ExportStatus
    created_at: datetime
    filters: ProductFilter = field(default_factory=ProductFilter)
    layout: ExportLayout = field(default_factory=ExportLayout)
    schedule: str | None = None
    rows: int = 0
    files: tuple[ExportFile, ...] = ()
    keys: tuple[str, ...] = ()
    changes_cursor: str | None = None
    error: str | None = None
    started_at: datetime | None = None
    completed_at: datetime | None = None
    expires_at: datetime | None = None
    crashes: int = 0
    failures: int = 0

    @property
    def has_ended(self) -> bool:
        """True if the export has ended."""
        return self.status not in OPEN

    @property
    def copies_documents(self) -> bool:
        """True if the file of products is a copy of stored documents, in no order, which requires no pages of the list."""
        only_changes = ProductFilter(updated_since=self.filters.updated_since)
        return self.layout == ExportLayout() and self.filters == only_changes

    def should_give_up(self, now: datetime) -> bool:
        """Return whether no further attempt should be made."""
        late = self.started_at is not None and now - self.started_at > MAX_DURATION
        return late or self.crashes >= MAX_CRASHES

    def with_crash(self) -> "Export":
        """Return the export with one more attempt that ended without a result, because the worker crashed."""
        return replace(self, crashes=self.crashes + 1)

    def with_attempt(self, keys: tuple[str, ...], now: datetime) -> "Export":
        """Return the running export, after a worker has started an attempt that writes objects with these keys."""
        started = self.started_at or now
        return replace(self, status=ExportStatus.RUNNING, started_at=started, rows=0, keys=keys)

    def with_rows(self, rows: int) -> "Export":
        """Return the export with the number of rows written so far."""
        return replace(self, rows=rows)

    def with_retry(self) -> "Export":
        """Return the export in the state `pending`, for another attempt after a failed one."""
        return replace(self, status=ExportStatus.PENDING, rows=0, failures=self.failures + 1)

    def with_success(self, files: tuple[ExportFile, ...], cursor: str, now: datetime) -> "Export":
        """Return the succeeded export with its files and the cursor of the snapshot."""
        return replace(
            self,
            status=ExportStatus.SUCCEEDED,
            rows=sum(file.rows for file in files if file.dataset not in UNCOUNTED_DATASETS),
            files=files,
            keys=tuple(file.key for file in files),
            changes_cursor=cursor,
            completed_at=now,
            expires_at=now + retention.EXPORTS,
        )

    def with_failure(self, error: str, now: datetime) -> "Export":
        """Return the failed export, which has no files."""
        return replace(self, status=ExportStatus.FAILED, rows=0, keys=(), error=error, completed_at=now)

    def with_expiry(self, now: datetime) -> "Export":
        """Return the expired export, which has no files."""
        at = min(self.expires_at or now, now)
        return replace(self, status=ExportStatus.EXPIRED, files=(), keys=(), expires_at=at)


class _Kind(TypedDict):
    """Required property of a new export."""

    kind: ExportKind


class NewExport(_Kind, total=False):
    """Properties of a new export; `filters` are fields of ProductFilter."""

    filters: Mapping[str, Any]
    format: ExportFormat
    columns: tuple[str, ...]
    locale: ExportLocale
    row_by: RowLevel
    units: UnitSystem
    sort: ProductSort
    link_template: str


AUDITED = AuditedFields("export", ("kind", "status", "filters", "layout", "error", "expires_at"))


def create_export_job(export: Export, tenant: Tenant) -> NewJob:
    """Return the job that writes the export; jobs of one organisation and mode run one after the other."""
    return NewJob(EXECUTE_EXPORT, f"exports:{tenant.mode}", tenant, {"export": export.id}, key=export.id)
