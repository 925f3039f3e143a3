"""How long everything is kept, and what purges it: the one table of it, which docs/retention.md shows."""

from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class Kept:
    """Tables of one fate: for how long (as people read it), and what purges them. Others are kept as long as the organisation."""

    what: str
    tables: tuple[str, ...]
    how_long: str
    purged_by: str


def _days(age: timedelta) -> str:
    return f"{age.days} days"


_ORG = "`joinery org delete`"
KEPT = (
    Kept(
        "catalogue: products, variants, offers, what finds them",
        ("products", "product_documents", "product_terms", "variants", "offers", "row_fingerprints"),
        "as long as the organisation; what sources stop listing stays readable",
        _ORG,
    ),
    Kept(
        "sources, mappings, category rules, uploads, probes, runs",
        ("sources", "mappings", "category_rules", "uploads", "source_probes", "runs"),
        "as long as the organisation",
        _ORG,
    ),
    Kept(
        "matching: pairs, merges, judge settings, the index",
        (
            "match_pairs", "merges", "merge_counts", "judge_settings", "match_queue", "match_items", "match_keys",
            "match_models",
        ),
        "as long as the organisation",
        _ORG,
    ),
    Kept(
        "exports; their files",
        ("exports",),
        f"as long as the organisation; files {_days(EXPORTS)}, of the newest 20 of a mode",
        f"{_ORG}; files the scheduler, each minute",
    ),
    Kept(
        "webhook endpoints",
        ("webhook_endpoints",),
        "until they are deleted",
        f"DELETE /v1/webhook-endpoints/{{id}}, {_ORG}",
    ),
    Kept(
        "events: change feed and stream",
        ("events", "event_logs", "event_log_terms", "network_checkpoints"),
        _days(EVENTS),
        "the scheduler drops a day's table each day",
    ),
    Kept(
        "webhook deliveries",
        ("webhook_deliveries",),
        f"{_days(DELIVERIES)}, or as many as the plan says (`delivery_days`)",
        "the scheduler, hourly",
    ),
    Kept(
        "request logs",
        ("request_logs",),
        f"as many days as the plan says (`request_log_days`), {REQUEST_LOGS.days} at most",
        "the scheduler, hourly",
    ),
    Kept("inbound messages (of mail)", ("inbound_messages",), _days(INBOUND_MESSAGES), "the scheduler, hourly"),
    Kept("audit entries", ("audit_entries",), _days(AUDIT_ENTRIES), "the scheduler, hourly"),
    Kept("the ends of chains of audit entries", ("audit_chains",), "as long as the organisation", _ORG),
    Kept(
        "credentials and secrets that undoing would bring back, sealed",
        ("audit_kept",),
        _days(KEPT_FOR_UNDOING),
        "the scheduler, hourly",
    ),
    Kept(
        "answers under an Idempotency-Key",
        ("idempotency_keys",),
        f"{int(IDEMPOTENT_ANSWERS.total_seconds() // 3600)} hours",
        "the scheduler, hourly",
    ),
    Kept(
        "pushed parts of a batch",
        ("push_parts",),
        "until the batch's run ends; of an open batch 24 hours from its last part",
        "the run, or the scheduler",
    ),
    Kept(
        "what lies beside the rows: snapshots, uploaded files",
        ("stored_objects", "storage_usage"),
        f"the newest good snapshot of each stream; others {_days(SNAPSHOTS)}, or less when room is needed",
        "the scheduler, each minute",
    ),
    Kept(
        "stored images",
        ("images", "image_addresses", "image_uses"),
        "as long as a product names them, and a day",
        "the scheduler, each minute",
    ),
    Kept(
        "usage: days, entries not folded yet, thresholds, uses of models",
        ("usage_days", "usage_entries", "usage_thresholds", "model_uses"),
        "as long as the organisation; entries for seconds",
        _ORG,
    ),
    Kept("invitations", ("invitations",), f"{_days(SESSIONS)} from when they are over", "the scheduler, hourly"),
    Kept("jobs", ("jobs",), "until they are done", "the worker that does them"),
    Kept(
        "organisations, members, keys, licences",
        ("organisations", "members", "api_keys", "key_uses", "licences"),
        "until they are taken away",
        _ORG,
    ),
    Kept(
        "single sign-on: connection, domains, whom the provider means",
        ("sso_connections", "sso_domains", "sso_subjects"),
        "until it is removed",
        f"the console, `joinery sso remove`, {_ORG}",
    ),
    Kept(
        "people: how they sign in",
        ("users", "authenticators", "recovery_codes", "passkeys"),
        "as long as they belong to an organisation",
        f"{_ORG}, when it was their last",
    ),
    Kept(
        "sessions, links for one use, challenges for passkeys",
        ("sessions", "one_time_links", "passkey_challenges"),
        f"{_days(SESSIONS)} from when they are over; challenges an hour",
        "the scheduler, hourly",
    ),
    Kept(
        "what concerns a person's security",
        ("security_events",),
        _days(SECURITY_EVENTS),
        "the scheduler, hourly",
    ),
    Kept("mail to people; its text until it is sent", ("outgoing_mail",), _days(OUTGOING_MAIL), "the scheduler, hourly"),
    Kept(
        "OAuth apps of the organisation, and what its people granted to any",
        ("oauth_apps", "oauth_grants"),
        "until they are taken away",
        _ORG,
    ),
    Kept(
        "OAuth codes, tokens and sign-ins",
        ("oauth_codes", "oauth_tokens", "oauth_families", "oauth_devices"),
        "until they are over: codes a minute (used ones as long as their sign-in), access tokens and devices' requests 10 minutes, sign-ins 180 days (devices' 360)",
        "the scheduler, each ten minutes",
    ),
    Kept(
        "OAuth apps that registered themselves, or have a document",
        ("oauth_clients",),
        "until nobody has been signed in with them for 30 days",
        "the scheduler, each ten minutes",
    ),
    Kept(
        "the service's own checks",
        ("platform_checks",),
        _days(STATUS_CHECKS),
        "the scheduler, hourly",
    ),
    Kept(
        "running processes",
        ("platform_instances",),
        "until they end, or an hour after their last heartbeat",
        "the processes themselves",
    ),
    Kept("times of backups", ("platform_backups",), "the latest", "`joinery backup`"),
    Kept("incidents", ("platform_incidents",), "for good", "nothing"),
    Kept(
        "plans, key ring, the log's server, migrations, the time of the last purge",
        ("plans", "key_ring", "log_server", "schema_migrations", "purges"),
        "for good",
        "nothing",
    ),
)  # fmt: skip
