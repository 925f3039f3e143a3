"""One table of what is kept how long: in code, in docs, and of every table that the migrations make."""

import re
from pathlib import Path

from adapters.postgres.migrate import available
from domain.kernel.retention import KEPT

ROOT = Path(__file__).resolve().parents[2]
_MADE = re.compile(r"^CREATE TABLE (?:IF NOT EXISTS )?(\w+)", re.MULTILINE)
_GONE = re.compile(r"^DROP TABLE (?:IF EXISTS )?(\w+)|^ALTER TABLE (\w+) RENAME TO (\w+)", re.MULTILINE)


def _tables() -> set[str]:
    tables = {"schema_migrations"}
    for _, script in available():
        tables |= {name for name in _MADE.findall(script) if not name.endswith("_default")}
        for dropped, old, new in _GONE.findall(script):
            tables -= {dropped, old}
            tables |= {new} if new else set()
    return tables


def test_no_table_has_two_fates() -> None:
    """A table that is not named is kept as long as its organisation."""
    named = [table for kept in KEPT for table in kept.tables]
    assert len(named) == len(set(named)) and set(named) <= _tables()


def test_the_docs_show_the_table() -> None:
    page = (ROOT / "docs/retention.md").read_text("utf-8")
    shown = [line for line in page.splitlines() if line.startswith("| ") and not line.startswith("| What |")]
    assert shown == [f"| {kept.what} | {kept.how_long} | {kept.purged_by} |" for kept in KEPT]
