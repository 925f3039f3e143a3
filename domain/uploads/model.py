"""An uploaded file from its announcement to the run it starts (specification, Upload)."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

TARGET_LIFETIME: Final = timedelta(minutes=15)


@dataclass(frozen=True, slots=True)
class Upload:
    """A file announced for a source; `key` is where its bytes are PUT. `status`: decisions.md §2."""

    id: str
    source: str
    filename: str
    content_type: str
    bytes: int
    status: str
    key: str
    expires_at: datetime
    created_at: datetime
    run: str | None = None
    completed_at: datetime | None = None

    def completed(self, run: str, now: datetime) -> "Upload":
        """The bytes are there and a run reads them."""
        return replace(self, status="completed", run=run, completed_at=now)
