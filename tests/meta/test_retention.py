"""Tests of the table in docs/retention.md: its ages are those of the code, its tables those of the migrations."""

import re
from datetime import timedelta
from pathlib import Path

import pytest

from adapters.postgres.schema_migrations import load_migrations
from domain.kernel import retention

ROOT = Path(__file__).resolve().parents[2]
_CREATED = re.compile(r"^CREATE TABLE (?:IF NOT EXISTS )?(\w+)", re.MULTILINE)
_DROPPED = re.compile(r"^DROP TABLE (?:IF EXISTS )?(\w+)|^ALTER TABLE (\w+) RENAME TO (\w+)", re.MULTILINE)


def _list_tables() -> set[str]:
    tables = {"schema_migrations"}
    for _, script in load_migrations():
        tables |= {name for name in _CREATED.findall(script) if not name.endswith("_default")}
        for dropped, old, new in _DROPPED.findall(script):
            tables -= {dropped, old}
            tables |= {new} if new else set()
    return tables


def _read_rows() -> dict[str, list[str]]:
    """Return the cells of the row that names a database table, by table."""
    lines = (ROOT / "docs/retention.md").read_text("utf-8").splitlines()
    cells = [
        line.strip("| ").split(" | ") for line in lines if line.startswith("| ") and not line.startswith("| What |")
    ]
    return {table: row for row in cells for table in re.findall(r"`(\w+)`", row[3])}


def test_no_table_has_two_retention_rules() -> None:
    """The rows of a table without a rule are kept as long as their organisation."""
    page = (ROOT / "docs/retention.md").read_text("utf-8")
    listed = [
        table
        for line in page.splitlines()
        if line.startswith("| ")
        for table in re.findall(r"`(\w+)`", line.split(" | ")[3])
    ]
    assert len(listed) == len(set(listed)) and listed and set(listed) <= _list_tables()


@pytest.mark.parametrize(
    ("table", "age"),
    [
        ("exports", retention.EXPORTS),
        ("events", retention.EVENTS),
        ("webhook_deliveries", retention.DELIVERIES),
        ("inbound_messages", retention.INBOUND_MESSAGES),
        ("audit_entries", retention.AUDIT_ENTRIES),
        ("audit_kept", retention.KEPT_FOR_UNDOING),
        ("stored_objects", retention.SNAPSHOTS),
        ("invitations", retention.SESSIONS),
        ("sessions", retention.SESSIONS),
        ("security_events", retention.SECURITY_EVENTS),
        ("outgoing_mail", retention.OUTGOING_MAIL),
        ("platform_checks", retention.STATUS_CHECKS),
        ("demand_cells", retention.DEMAND_CELLS),
        ("proposals", retention.PROPOSALS),
    ],
)
def test_the_docs_state_the_ages_of_the_code(table: str, age: timedelta) -> None:
    assert f"{age.days} days" in _read_rows()[table][1]


def test_the_docs_state_the_other_ages_of_the_code() -> None:
    rows = _read_rows()
    assert f"{retention.REQUEST_LOGS.days} at most" in rows["request_logs"][1]
    assert f"{retention.IDEMPOTENT_RESPONSES // timedelta(hours=1)} hours" in rows["idempotency_keys"][1]
    assert f"{retention.SIGNAL_IDS // timedelta(hours=1)} hours" in rows["demand_signal_ids"][1]
