"""Statuses that are literals in SQL, where parameters are not possible, agree with the domain."""

import re
from pathlib import Path

from domain.webhooks.model import OPEN_DELIVERY_STATUSES, DeliveryStatus, EndpointStatus

POSTGRES = Path(__file__).parents[3] / "adapters/postgres"
LITERAL = re.compile(r"\bstatus (?:=|IN) \(?('[^)%]*?')(?:\)|;|\s|$)", re.MULTILINE)
WRITTEN_OUT = {(DeliveryStatus.SUCCEEDED,)}
"""Statuses after ON CONFLICT, where cluster nodes accept no parameter (ADR 22)."""
INDEXED = {(EndpointStatus.ENABLED,), (DeliveryStatus.FAILED,), OPEN_DELIVERY_STATUSES}


def _find_literals(text: str) -> set[tuple[str, ...]]:
    return {tuple(re.findall("'(.*?)'", found)) for found in LITERAL.findall(text)}


def test_literals_in_statements_match_indexes() -> None:
    statements = [(POSTGRES / "sql" / f"{name}.sql").read_text() for name in ("webhooks", "webhook_deliveries")]
    assert set.union(*map(_find_literals, statements)) == INDEXED | WRITTEN_OUT


def test_indexes_have_the_statuses_of_the_domain() -> None:
    schema = (POSTGRES / "migrations/0044_baseline.sql").read_text()
    indexes = re.findall(r"^CREATE INDEX webhook_\w+ ON [^;]*;$", schema, re.M)
    assert _find_literals("\n".join(indexes)) == INDEXED
