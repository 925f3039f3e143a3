"""How long things are kept that end by age alone. Plans may keep request logs and deliveries for less long."""

from datetime import timedelta
from typing import Final

EVENTS: Final = timedelta(days=30)
REQUEST_LOGS: Final = timedelta(days=90)
DELIVERIES: Final = timedelta(days=30)
IDEMPOTENT_ANSWERS: Final = timedelta(hours=24)
"""What is answered again under a repeated Idempotency-Key."""
