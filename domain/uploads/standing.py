"""How an upload stands at a moment: time alone ends one that waits for its bytes."""

from dataclasses import replace
from datetime import datetime

from domain.uploads.model import Upload


def as_of(upload: Upload, now: datetime) -> Upload:
    """The upload as it stands now: expired once its target is no longer valid."""
    if upload.status == "pending" and now >= upload.expires_at:
        return replace(upload, status="expired")
    return upload
