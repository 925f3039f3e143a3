"""Uploads of files, from their creation to the run that reads the file (docs/conventions.md#uploads)."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TypedDict

from domain.audit.model import AuditedFields
from domain.kernel.enums import StoredEnum

TARGET_LIFETIME = timedelta(minutes=15)
"""Time within which the file of an upload must be sent and the upload completed."""


@dataclass(frozen=True, slots=True)
class CompleteUpload:
    """Request to complete an upload; `accept_shrink`, as in the API, disables the removal limit for the upload's run."""

    accept_shrink: bool = False


class UploadStatus(StoredEnum):
    """Statuses of an upload."""

    PENDING = "pending"
    COMPLETED = "completed"
    EXPIRED = "expired"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Upload:
    """Upload of a file for a source.

    Attributes:
        bytes: Size of the file.
        key: Key of the file in the object store.
        expires_at: When a pending upload expires.
        run: ID of the run that reads the file; None before the upload is completed.
    """

    id: str
    source: str
    filename: str
    content_type: str
    bytes: int
    status: UploadStatus
    key: str
    expires_at: datetime
    created_at: datetime
    run: str | None = None
    completed_at: datetime | None = None

    def with_completion(self, run: str, now: datetime) -> "Upload":
        """Return the upload as completed, with the run that reads its file."""
        return replace(self, status=UploadStatus.COMPLETED, run=run, completed_at=now)

    def with_current_status(self, now: datetime) -> "Upload":
        """Return the upload with its status at the time `now`: a pending upload may have expired."""
        expired = self.status == UploadStatus.PENDING and now >= self.expires_at
        return replace(self, status=UploadStatus.EXPIRED) if expired else self


class NewUpload(TypedDict):
    """Fields of a new upload; `bytes` is the size of the file."""

    filename: str
    content_type: str
    bytes: int


AUDITED = AuditedFields("upload", ("source", "filename", "content_type", "bytes", "status", "run"))
