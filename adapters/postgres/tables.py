"""Every table that a resource's dataclass declares: one line each."""

from collections.abc import Mapping
from typing import Any, Final

from adapters.postgres.runs import RUNS
from adapters.postgres.sources import SOURCES
from adapters.postgres.table import Table
from adapters.postgres.uploads import UPLOADS
from adapters.postgres.webhooks import DELIVERIES, ENDPOINTS

TABLES: Final[tuple[Table[Any], ...]] = (
    SOURCES,
    RUNS,
    UPLOADS,
    ENDPOINTS,
    DELIVERIES,
)
TABLE_OF: Final[Mapping[type, Table[Any]]] = {table.kind: table for table in TABLES}
"""By what a row is."""
