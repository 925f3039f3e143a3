"""The statuses that stand as literals in SQL, where parameters would not do, are the domain's."""

import re
from pathlib import Path

from domain.webhooks.model import OPEN_DELIVERY_STATUSES, DeliveryStatus, EndpointStatus

POSTGRES = Path(__file__).parents[3] / "adapters/postgres"
LITERAL = re.compile(r"\bstatus (?:=|IN) \(?('[^)%]*?')(?:\)|;|\s|$)", re.MULTILINE)
WRITTEN_OUT = {(DeliveryStatus.SUCCEEDED,)}
"""Behind ON CONFLICT, where a node of a cluster takes no parameter (ADR 22)."""
INDEXED = {(EndpointStatus.ENABLED,), (DeliveryStatus.FAILED,), OPEN_DELIVERY_STATUSES}


def _literals(text: str) -> set[tuple[str, ...]]:
    return {tuple(re.findall("'(.*?)'", found)) for found in LITERAL.findall(text)}


def test_literals_in_statements_are_what_indexes_are_found_by() -> None:
    statements = [(POSTGRES / "sql" / f"{name}.sql").read_text() for name in ("webhooks", "webhook_deliveries")]
    assert set.union(*map(_literals, statements)) == INDEXED | WRITTEN_OUT


def test_indexes_are_of_those() -> None:
    schema = (POSTGRES / "migrations/0044_baseline.sql").read_text()
    indexes = re.findall(r"^CREATE INDEX webhook_\w+ ON [^;]*;$", schema, re.M)
    assert _literals("\n".join(indexes)) == INDEXED
