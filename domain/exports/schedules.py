"""Scheduled exports: a view of the catalogue that is exported at clock times and sent to a target (docs/exports.md)."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final, TypedDict
from zoneinfo import ZoneInfo

from domain.audit.model import AuditedFields
from domain.catalogue.model import ProductFilter
from domain.exports.layout import FILE_EXTENSIONS, ExportLayout
from domain.exports.model import Export
from domain.jobs.model import NewJob
from domain.kernel.clock_schedule import WEEKDAYS, ClockSchedule, list_zones
from domain.kernel.enums import StoredEnum
from domain.kernel.errors import FieldError
from domain.kernel.tenancy import Tenant

DELIVER_EXPORT = "exports.deliver"
"""The kind of job that sends the file of a scheduled export to its target."""
MAX_SCHEDULES = 50
"""Maximum number of scheduled exports of one organisation and mode."""
MAX_RECIPIENTS = 20
MAX_DELIVERY_ATTEMPTS = 12
"""Number of attempts to send a file, over about half an hour, after which the delivery fails."""
DEFAULT_FILE_NAME = "products-{date}"
_FILE_NAME = re.compile(r"(?:[A-Za-z0-9_. -]|{date}|{time})+")
_FOLDER = re.compile(r"(?:[A-Za-z0-9_./~ -])*")
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_REGION = re.compile(r"[a-z0-9-]{1,40}")
_HOST = re.compile(r"[A-Za-z0-9.-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\]")
_MAX_NAME_CHARS = 120


class TargetKind(StoredEnum):
    """Kinds of targets of scheduled exports."""

    MAIL = "mail"
    BUCKET = "bucket"
    SFTP = "sftp"


class ScheduleStatus(StoredEnum):
    """State of the last export of a schedule."""

    EXPORTING = "exporting"
    DELIVERING = "delivering"
    DELIVERED = "delivered"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class ExportTarget:
    """Target of scheduled exports.

    Attributes:
        members: IDs of the members who receive a link by mail.
        endpoint: URL of an S3-compatible service.
        prefix: Prefix of the keys of objects in the bucket.
        host: Host name of an SFTP server.
        folder: Folder on the SFTP server; empty for the user's.
        host_key: Public key of the SFTP server in OpenSSH's format, which was pinned by the first test.
    """

    kind: TargetKind
    members: tuple[str, ...] = ()
    endpoint: str | None = None
    region: str | None = None
    bucket: str | None = None
    prefix: str | None = None
    host: str | None = None
    port: int | None = None
    user: str | None = None
    folder: str | None = None
    host_key: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduledExport:
    """Export of a view that is created at clock times and sent to a target.

    Attributes:
        owner: ID of the member with whose permissions the exports are created.
        file_name: Name of the file without extension; may contain {date} and {time}.
        credentials: The target's credentials, encrypted; empty for mail.
        next_at: When the next export is due; None while the schedule is paused.
        last_export: ID of the last export.
        last_error: Why the last export or its delivery failed.
        last_at: When the state of the last export last changed.
        failures: Number of failed attempts to send the last file.
    """

    id: str
    name: str
    owner: str
    filters: ProductFilter = field(default_factory=ProductFilter)
    layout: ExportLayout = field(default_factory=ExportLayout)
    clock: ClockSchedule
    target: ExportTarget
    file_name: str = DEFAULT_FILE_NAME
    credentials: bytes = b""
    next_at: datetime | None = None
    last_export: str | None = None
    last_status: ScheduleStatus | None = None
    last_error: str | None = None
    last_at: datetime | None = None
    failures: int = 0
    version: int = 1
    created_at: datetime
    updated_at: datetime

    @property
    def is_paused(self) -> bool:
        """True if no further exports are created."""
        return self.next_at is None

    @property
    def is_in_progress(self) -> bool:
        """True while the last export is written or sent; until then no other one is created."""
        return self.last_status in (ScheduleStatus.EXPORTING, ScheduleStatus.DELIVERING)

    def with_next(self, now: datetime) -> "ScheduledExport":
        """Return the schedule with its next time after `now`; missed times are skipped."""
        return replace(self, next_at=self.clock.find_next(now))

    def with_export(self, export: str, now: datetime) -> "ScheduledExport":
        """Return the schedule after an export was created."""
        return replace(
            self, last_export=export, last_status=ScheduleStatus.EXPORTING, last_error=None, last_at=now, failures=0
        )

    def with_status(self, status: ScheduleStatus, now: datetime, error: str | None = None) -> "ScheduledExport":
        """Return the schedule with the state of its last export."""
        return replace(self, last_status=status, last_error=error, last_at=now)

    def build_file_name(self, export: Export) -> str:
        """Return the name of an export's file, with the time of the export in the schedule's zone."""
        local = export.created_at.astimezone(ZoneInfo(self.clock.zone))
        name = self.file_name.replace("{date}", local.strftime("%Y-%m-%d")).replace("{time}", local.strftime("%H%M"))
        return f"{name}.{FILE_EXTENSIONS[self.layout.format]}"


AUDITED: Final = AuditedFields(
    "scheduled_export", ("name", "owner", "filters", "layout", "clock", "target", "file_name", "is_paused")
)


def create_delivery_job(schedule: str, export: Export, tenant: Tenant) -> NewJob:
    """Return the job that sends the file of an export; each schedule has a lane of its own."""
    args = {"schedule": schedule, "export": export.id}
    return NewJob(DELIVER_EXPORT, f"export_delivery:{schedule}", tenant, args, key=f"deliver:{export.id}")


class NewScheduledExport(TypedDict):
    """Properties of a new scheduled export."""

    name: str
    owner: str
    filters: ProductFilter
    layout: ExportLayout
    clock: ClockSchedule
    target: ExportTarget
    file_name: str


def validate_schedule(new: NewScheduledExport) -> list[FieldError]:
    """Return the errors of name, file name and times of a new schedule."""
    name, file_name, clock, errors = new["name"], new["file_name"], new["clock"], list[FieldError]()
    if not name:
        errors.append(FieldError("name", "required", "Enter a name."))
    if not _FILE_NAME.fullmatch(file_name) or len(file_name) > _MAX_NAME_CHARS or file_name.startswith((".", "-", " ")):
        detail = "Use letters, digits, spaces, points, hyphens and underscores, and the placeholders {date} and {time}."
        errors.append(FieldError("file_name", "invalid_value", detail))
    if not (0 <= clock.hour < 24 and 0 <= clock.minute < 60):
        errors.append(FieldError("time", "invalid_value", "Enter a time such as 07:30."))
    if clock.zone not in list_zones():
        errors.append(FieldError("zone", "invalid_value", "Enter a time zone such as Europe/Berlin."))
    if not clock.weekdays or not set(clock.weekdays) <= set(WEEKDAYS):
        errors.append(FieldError("weekdays", "required", "Select at least one weekday."))
    return errors


def validate_target(target: ExportTarget, credentials: Mapping[str, Any]) -> list[FieldError]:
    """Return the errors of the fields of a target. Its address is checked by each connection."""
    if target.kind == TargetKind.MAIL:
        detail = f"Select 1 to {MAX_RECIPIENTS} members."
        return [] if 0 < len(target.members) <= MAX_RECIPIENTS else [FieldError("members", "required", detail)]
    errors = []
    if target.kind == TargetKind.BUCKET:
        if not _BUCKET.fullmatch(target.bucket or ""):
            errors.append(FieldError("bucket", "invalid_value", "Enter the name of a bucket."))
        if not _FOLDER.fullmatch(target.prefix or "") or ".." in (target.prefix or ""):
            errors.append(FieldError("prefix", "invalid_value", "Enter a prefix such as exports/products."))
        if not _REGION.fullmatch(target.region or "us-east-1"):
            errors.append(FieldError("region", "invalid_value", "Enter a region such as eu-central-1."))
        errors += _require(credentials, "access_key", "secret_key")
        return errors
    return _validate_sftp(target, credentials)


def _validate_sftp(target: ExportTarget, credentials: Mapping[str, Any]) -> list[FieldError]:
    errors = []
    if not _HOST.fullmatch(target.host or ""):
        errors.append(FieldError("host", "invalid_value", "Enter a host name such as sftp.example.com."))
    if not 0 < (target.port or 0) < 65_536:
        errors.append(FieldError("port", "invalid_value", "Enter a port from 1 to 65535."))
    if not target.user:
        errors.append(FieldError("user", "required", "Enter a user name."))
    if not _FOLDER.fullmatch(target.folder or ""):
        errors.append(FieldError("folder", "invalid_value", "Enter a folder such as /incoming."))
    if not credentials.get("password") and not credentials.get("private_key"):
        errors.append(FieldError("password", "required", "Enter a password or a private key."))
    return errors


def _require(values: Mapping[str, Any], *names: str) -> list[FieldError]:
    return [FieldError(name, "required", "Enter a value.") for name in names if not values.get(name)]
