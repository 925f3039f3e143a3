"""Uploaded files, from their announcement to the run that reads them (docs/conventions.md#uploads)."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TypedDict

from domain.audit.model import Audited
from domain.kernel.enums import StoredEnum

TARGET_LIFETIME = timedelta(minutes=15)


@dataclass(frozen=True, slots=True)
class CompleteUpload:
    """Confirmation that the bytes were sent; `accept_shrink` lets the run withdraw without the removal limit."""

    accept_shrink: bool = False


class UploadStatus(StoredEnum):
    """The status of an upload."""

    PENDING = "pending"
    COMPLETED = "completed"
    EXPIRED = "expired"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Upload:
    """A file announced for a source; `key` is where its bytes are PUT."""

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

    def completed(self, run: str, now: datetime) -> "Upload":
        """Return the upload as completed, with the run that reads it."""
        return replace(self, status=UploadStatus.COMPLETED, run=run, completed_at=now)

    def at(self, now: datetime) -> "Upload":
        """Return the upload as of a time: a pending upload expires."""
        expired = self.status == UploadStatus.PENDING and now >= self.expires_at
        return replace(self, status=UploadStatus.EXPIRED) if expired else self


class NewUpload(TypedDict):
    """A file to announce; `bytes` is its size."""

    filename: str
    content_type: str
    bytes: int


AUDITED = Audited("upload", ("source", "filename", "content_type", "bytes", "status", "run"))
