"""Every table that a resource's dataclass declares: one line each."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final

from adapters.postgres.table import Table

_DECLARED: Final = (
    "sources.SOURCES",
    "runs.RUNS",
    "mappings.MAPPINGS",
    "catalogue.CATEGORY_RULES",
    "uploads.UPLOADS",
    "probes.PROBES",
    "exports.EXPORTS",
    "mail.INBOUND_MESSAGES",
    "webhooks.ENDPOINTS",
    "webhooks.DELIVERIES",
    "usage.MODEL_USES",
    "matching.JUDGE_SETTINGS",
)


def _table(declared: str) -> Table[Any]:
    module, _, name = declared.rpartition(".")
    table: Table[Any] = getattr(import_module(f"adapters.postgres.{module}"), name)
    return table


TABLES: Final[tuple[Table[Any], ...]] = tuple(map(_table, _DECLARED))
TABLE_OF: Final[Mapping[type, Table[Any]]] = {table.kind: table for table in TABLES}
"""By what a row is."""
