"""Ages after which rows are deleted while their organisation stays; docs/retention.md lists them all."""

from datetime import UTC, datetime, timedelta

EVENTS = timedelta(days=30)
REQUEST_LOGS = timedelta(days=90)
INBOUND_MESSAGES = timedelta(days=90)
DELIVERIES = timedelta(days=30)
IDEMPOTENT_ANSWERS = timedelta(hours=24)
"""What is answered again under a repeated Idempotency-Key."""
AUDIT_ENTRIES = timedelta(days=730)
"""Two years; the chain of those that are left is checked from the last one that went."""
KEPT_FOR_UNDOING = timedelta(days=30)
"""Credentials and secrets that were replaced or taken away, sealed beside their audit entries."""
SNAPSHOTS = timedelta(days=7)
"""From when they were last fetched; those that a run may need are kept for as long as it may."""
EXPIRED_BATCHES = timedelta(days=7)
"""For how long the name of a batch that was given up takes no parts."""
EXPORTS = timedelta(days=7)
"""The files of an export, from when it was completed."""
UNFINISHED_EXPORTS = timedelta(days=2)
"""Files of an attempt at an export that nobody goes on with, from when it began."""
UPLOADS = timedelta(hours=1)
"""The bytes of an announced file that nobody completed, from when it expired."""
OPEN_BATCHES = timedelta(hours=24)
"""A pushed batch that waits for more, from its last part."""
ORPHANS = timedelta(days=1)
"""Objects, temporary files and parts of uploads that belong to nothing, from when they were written."""
UNTIL_FREED = datetime(9999, 1, 1, tzinfo=UTC)
"""The age at which what stays until it is freed may go."""
STATUS_CHECKS = timedelta(days=91)

SESSIONS = timedelta(days=30)
"""Sessions, links for one use and invitations, from when they were over."""
SECURITY_EVENTS = timedelta(days=365)
"""What a person is shown of their own security: sign-ins, changed passwords."""
OUTGOING_MAIL = timedelta(days=30)
CHALLENGES = timedelta(hours=1)
"""Challenges for passkeys, from when they were over."""
