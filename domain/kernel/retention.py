"""Ages at which rows and objects are deleted while their organisation exists; docs/retention.md lists them all.

Most docstrings name the data and the time from which its age counts.
"""

from datetime import UTC, datetime, timedelta

EVENTS = timedelta(days=30)
REQUEST_LOGS = timedelta(days=90)
INBOUND_MESSAGES = timedelta(days=90)
DELIVERIES = timedelta(days=30)
IDEMPOTENT_RESPONSES = timedelta(hours=24)
"""Responses that are repeated for the same Idempotency-Key, from when they were stored."""
AUDIT_ENTRIES = timedelta(days=730)
"""Audit entries (two years); the rest of the hash chain is verified from the last deleted entry."""
KEPT_FOR_UNDOING = timedelta(days=30)
"""Replaced or deleted credentials and secrets, which are stored encrypted for undoing, from the change."""
SNAPSHOTS = timedelta(days=7)
"""Snapshots, from their last fetch; snapshots that a run may need are kept longer."""
EXPIRED_BATCHES = timedelta(days=7)
"""Time in which no records can be pushed to the name of an expired batch."""
EXPORTS = timedelta(days=7)
"""Files of an export, from its completion."""
UNFINISHED_EXPORTS = timedelta(days=2)
"""Files of an abandoned attempt at an export, from its start."""
PROPOSALS = timedelta(days=90)
"""Proposals of agents, from the decision, or from when they became stale."""
UPLOADS = timedelta(hours=1)
"""File of an upload that was not completed, from the upload's expiry."""
OPEN_BATCHES = timedelta(hours=24)
"""Pushed batch that waits for more records, from its last part."""
ORPHANS = timedelta(days=1)
"""Orphaned objects, temporary files and parts of uploads, from when they were written."""
UNTIL_FREED = datetime(9999, 1, 1, tzinfo=UTC)
"""The expiry of objects that are stored until they are explicitly freed."""
STATUS_CHECKS = timedelta(days=91)
SIGNAL_IDS = timedelta(hours=24)
"""IDs of signals of demand, by which repeated signals are recognised."""
DEMAND_CELLS = timedelta(days=100)
"""Released cells of demand, from their day; the longest period of the statistics is 90 days."""
CREDIT_RESERVATIONS = timedelta(days=7)
"""Ended reservations of credit, by which repeated calls are recognised, from their expiry."""

CONVERSATIONS = timedelta(days=90)
"""Conversations with the assistant, from their last turn."""
ASSISTANT_FRAMES = timedelta(days=1)
"""Frames that a turn of the assistant has sent, for clients that reconnect."""

SESSIONS = timedelta(days=30)
"""Sessions, one-time links and invitations, from their end."""
SECURITY_EVENTS = timedelta(days=365)
"""Security events, such as sign-ins and changed passwords, from when they happened."""
OUTGOING_MAIL = timedelta(days=30)
NOTIFICATIONS = timedelta(days=30)
CHALLENGES = timedelta(hours=1)
"""Challenges for passkeys, from their expiry."""
