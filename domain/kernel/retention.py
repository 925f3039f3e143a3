"""How long things are kept that end by age alone. Plans may keep request logs and deliveries for less long."""

from datetime import UTC, datetime, timedelta
from typing import Final

EVENTS: Final = timedelta(days=30)
REQUEST_LOGS: Final = timedelta(days=90)
INBOUND_MESSAGES: Final = timedelta(days=90)
DELIVERIES: Final = timedelta(days=30)
IDEMPOTENT_ANSWERS: Final = timedelta(hours=24)
"""What is answered again under a repeated Idempotency-Key."""
SNAPSHOTS: Final = timedelta(days=7)
"""From when they were last fetched; those that a run may need are kept for as long as it may."""
EXPIRED_BATCHES: Final = timedelta(days=7)
"""For how long the name of a batch that was given up takes no parts."""
UPLOADS: Final = timedelta(hours=1)
"""The bytes of an announced file that nobody completed, from when it expired."""
OPEN_BATCHES: Final = timedelta(hours=24)
"""A pushed batch that waits for more, from its last part."""
ORPHANS: Final = timedelta(days=1)
"""Objects, temporary files and parts of uploads that belong to nothing, from when they were written."""
UNTIL_FREED: Final = datetime(9999, 1, 1, tzinfo=UTC)
"""The age at which what stays until it is freed may go."""
