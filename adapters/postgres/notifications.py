"""Rules about notifications, findings and notifications in PostgreSQL."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from adapters.postgres.stores import CoordinatorStore, execute_count, fetch_all, fetch_first, load_statements
from adapters.postgres.table import ColumnCodec, Table, TableStore, encode_json
from domain.kernel.tenancy import Tenant
from domain.notifications.findings import EVENT_TYPES, RuleFinding
from domain.notifications.model import SOURCE_KINDS, Notification, NotificationRule, SeenChanges
from domain.notifications.ports import NotificationRuleStore, NotificationUpkeep

RULES = Table(NotificationRule, "notification_rules")
SEEN_CHANGES = Table(SeenChanges, "seen_changes")
NOTIFICATIONS = Table(Notification, "notifications", special_codecs={"items": ColumnCodec("items", encode_json, tuple)})
SQL = load_statements(
    "notifications", rule=RULES.build_column_list(), notification=NOTIFICATIONS.build_column_list("n")
)
_MAX_RUNS = 5_000
"""Maximum number of newest runs whose numbers of problems are compared."""


class PostgresNotificationRuleStore(TableStore[NotificationRule], NotificationRuleStore):
    """Rules of the tenant, and what they have found."""

    _sql, _table = SQL, RULES
    list_visible = fetch_all(RULES.build_from_row)
    list_enabled = fetch_all(RULES.build_from_row)
    lock_enabled = fetch_all(RULES.build_from_row)
    lock_by_person = fetch_all(RULES.build_from_row)
    lock_due = fetch_first(RULES.build_from_row)
    list_newest = fetch_all(NOTIFICATIONS.build_from_row)
    list_findings = fetch_all(RuleFinding)
    delete_findings = execute_count()

    async def count_by_person(self, person: str) -> int:
        await self._session.acquire_lock("notification_rules", person)
        return int(await self._fetch_scalar("count_by_person", person=person))

    async def remove(self, id: str) -> bool:
        await self._run("delete_findings", rule=id)
        await self._run("delete_notifications", rule=id)
        return await super().remove(id)

    async def count_findings(self) -> Mapping[str, int]:
        return dict(await self._fetch_rows("count_findings"))

    async def filter_found(self, rule: str, subjects: Sequence[str]) -> frozenset[str]:
        rows = await self._fetch_rows("filter_found", rule=rule, subjects=list(subjects))
        return frozenset(subject for (subject,) in rows)

    async def save_findings(self, findings: Sequence[RuleFinding]) -> None:
        await self._run(
            "save_findings",
            rules=[one.rule for one in findings],
            subjects=[one.subject for one in findings],
            products=[one.product for one in findings],
            sources=[one.source for one in findings],
            olds=[encode_json(one.old) for one in findings],
            news=[encode_json(one.new) for one in findings],
            times=[one.found_at for one in findings],
        )

    async def filter_products(
        self, products: Sequence[str], brand_keys: Sequence[str], terms: Sequence[str]
    ) -> frozenset[str]:
        rows = await self._fetch_rows(
            "filter_products", products=list(products), brand_keys=list(brand_keys), terms=list(terms)
        )
        return frozenset(id_ for (id_,) in rows)

    async def list_problem_counts(self, since: datetime | None) -> Sequence[tuple[str, int]]:
        if since is None:
            return [(source, count) for source, count in await self._fetch_rows("list_newest_problem_counts")]
        rows = await self._fetch_rows("list_problem_counts_since", since=since, max_runs=_MAX_RUNS)
        return [(source, count) for source, count in rows]


class PostgresNotificationUpkeep(CoordinatorStore, NotificationUpkeep):
    """Due work of all tenants, node by node."""

    _sql = SQL

    async def list_due(self, now: datetime, checked_before: datetime, limit: int) -> Sequence[Tenant]:
        rows = await self._gather(
            "list_due",
            now=now,
            checked_before=checked_before,
            limit=limit,
            source_kinds=sorted(SOURCE_KINDS),
            kinds_without_events=sorted(kind for kind, types in EVENT_TYPES.items() if not types),
        )
        return [Tenant(*row) for row in rows]

    async def delete_created_before(self, before: datetime) -> None:
        await self._delete_by_org("list_orgs_with_old", "delete_old", before=before)
