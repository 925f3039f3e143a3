"""Links to comparisons in PostgreSQL."""

from datetime import datetime

from adapters.postgres.stores import CoordinatorStore, load_statements
from adapters.postgres.table import Table
from domain.comparison.model import ComparisonLink
from domain.comparison.ports import ComparisonUpkeep

SQL = load_statements("comparison")
LINKS = Table(ComparisonLink, "comparison_links", list_expression_by_field={"items": "'[]'::jsonb"})


class PostgresComparisonUpkeep(CoordinatorStore, ComparisonUpkeep):
    """Links of all tenants, node by node."""

    _sql = SQL

    async def delete_expired(self, now: datetime) -> None:
        await self._delete_by_org("list_orgs_with_expired", "delete_expired", before=now)
