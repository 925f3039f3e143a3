"""Webhook deliveries for workers in PostgreSQL: subscribers, pending deliveries, and recording of outcomes in batches."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import psycopg

from adapters.postgres.errors import StaleRoute, was_forwarded
from adapters.postgres.locks import PostgresShards, count_workers
from adapters.postgres.nodes.connections import DatabaseRow
from adapters.postgres.nodes.node_pool import PooledConnection
from adapters.postgres.nodes.pool import Pool, create_row_reader
from adapters.postgres.nodes.router import Node
from adapters.postgres.stores import CoordinatorStore, build_tenant_params, load_statements
from adapters.postgres.webhooks import DELIVERY_TABLE, ENDPOINTS
from adapters.postgres.webhooks import SQL as ENDPOINT_SQL
from domain.catalogue.search_terms import category_term
from domain.changes.model import FeedPosition
from domain.events.model import LogPosition
from domain.kernel.ids import new_id
from domain.kernel.tenancy import Tenant
from domain.usage.meters import DELIVERIES as METER
from domain.webhooks.model import Delivery, DeliveryStatus, EncryptedSecrets, EndpointStatus
from domain.webhooks.ports import DeliveryDatabase, DeliveryProgress, Subscriber
from ports.clock import Clock
from ports.signals import Signal

SQL = load_statements(
    "webhook_deliveries", endpoint=ENDPOINTS.build_column_list("e"), reported=", ".join(DELIVERY_TABLE.stored_columns)
)
_COLUMN_TYPES = (
    "text", "bool", "text", "text", "text", "text", "text", "int8[]", "text", "timestamptz", "bytea", "jsonb", "int4",
    "timestamptz", "timestamptz", "bool", "int4",
)  # fmt: skip
_PROGRESS_PARAMS = ("ids", "checkpoint", "network_epoch", "network_checkpoint", "succeeded", "health", "failing")
"""Names of the parameters of the SQL statement `update_endpoints`. Each parameter is a list with one value per endpoint."""


def _build_subscriber(row: DatabaseRow) -> Subscriber:
    org, livemode, secret, previous, own, epoch, network, fat = row[ENDPOINTS.column_count :]
    checkpoint = FeedPosition(LogPosition(position=own), LogPosition(epoch, network))
    endpoint = ENDPOINTS.build_from_row(*row)
    return Subscriber(Tenant(org, livemode), endpoint, EncryptedSecrets(secret, previous), checkpoint, fat)


class PostgresDeliveryStore(CoordinatorStore):
    """Storage of deliveries on one node, for the endpoints of all tenants on the node.

    Outcomes are recorded in each tenant's session, over the connection that holds the locks of the node's shards.
    """

    _sql = SQL

    def __init__(self, pool: Pool, shards: PostgresShards, clock: Clock) -> None:
        super().__init__(pool)
        self._shards, self._clock = shards, clock
        self._usage_subject = new_id("use")
        """Subject of this process's usage entries, so that processes do not wait for each other's rows."""

    async def list_subscribers(self, shards: Sequence[int]) -> Sequence[Subscriber]:
        if not shards:
            return []
        rows = await self._pool.run_on(
            await self._shards.find_node(), create_row_reader(SQL["list_subscribers"], shards=list(shards))
        )
        return [_build_subscriber(row) for row in rows]

    async def get_subscriber(self, tenant: Tenant, endpoint: str) -> Subscriber | None:
        if await self._shards.find_node() not in await self._pool.group_by_node([tenant], refresh=True):
            return None
        rows = await self._fetch_tenant_rows(
            "get_subscriber", tenant, endpoint=endpoint, enabled=EndpointStatus.ENABLED
        )
        return _build_subscriber(rows[0]) if rows else None

    async def list_open(self, tenant: Tenant, endpoint: str) -> Sequence[Delivery]:
        rows = await self._fetch_tenant_rows("list_open", tenant, endpoint=endpoint)
        return [
            Delivery(
                id_, endpoint_id, event, type_, subject, tuple(positions), DeliveryStatus(status), created,
                tries=tries, next_attempt_at=due, attempts_made=count, network=network,
            )
            for id_, endpoint_id, event, type_, subject, positions, network, status, created, tries, due, count in rows
        ]  # fmt: skip

    async def list_known_positions(
        self, tenant: Tenant, endpoint: str, after: FeedPosition
    ) -> frozenset[tuple[bool, int]]:
        positions = {"own": after.own.position, "others": after.network.position}
        rows = await self._fetch_tenant_rows("list_known_positions", tenant, endpoint=endpoint, **positions)
        return frozenset((network, position) for network, position in rows)

    async def get_body(self, tenant: Tenant, delivery: str) -> bytes | None:
        rows = await self._fetch_tenant_rows("get_body", tenant, id=delivery)
        return rows[0][0] if rows else None

    async def get_trace_context(self, tenant: Tenant, run: str) -> str | None:
        rows = await self._fetch_tenant_rows("get_trace_context", tenant, id=run)
        return rows[0][0] if rows else None

    async def filter_by_categories(
        self, tenant: Tenant, products: Sequence[str], categories: Sequence[str]
    ) -> frozenset[str]:
        terms = [category_term(category) for category in categories]
        rows = await self._fetch_tenant_rows("filter_by_categories", tenant, products=list(products), terms=terms)
        return frozenset(row[0] for row in rows)

    async def list_ended_rotations(self, now: datetime, limit: int) -> Sequence[tuple[Tenant, str]]:
        return await self._gather_due("list_ended_rotations", now=now, limit=limit)

    async def _fetch_tenant_rows(self, statement: str, tenant: Tenant, **values: Any) -> list[DatabaseRow]:
        return await self._pool.fetch_rows(tenant, SQL[statement], build_tenant_params(tenant) | values)

    async def record_progress(self, progress: DeliveryProgress) -> None:
        """Record the outcomes of deliveries to tenants on this node.

        For a tenant that has moved, record nothing and notify the new node, whose worker repeats the deliveries.
        """
        outcomes = _group_by_tenant(progress)
        while outcomes:
            moved_tenants = await self._record_all(outcomes)
            if not moved_tenants:
                return
            for tenant in moved_tenants:
                for endpoint in outcomes.pop(tenant).endpoints:
                    payload = Signal(tenant, endpoint).payload
                    await self._pool.run(tenant, ENDPOINT_SQL["notify"], {"payload": payload})

    async def _record_all(self, outcomes: Mapping[Tenant, "_Outcomes"]) -> set[Tenant]:
        """Record all outcomes in one transaction and return an empty set.

        If tenants have moved to another node, record nothing and return these tenants.
        """
        try:
            async with self._shards.begin_fenced() as connection:
                await connection.set_scope(next(iter(outcomes)))
                await _stage_outcomes(connection, outcomes)
                await self._write_outcomes(connection, outcomes, await _lock_endpoints(connection, outcomes))
        except psycopg.Error as error:
            if not was_forwarded(error):
                raise
            tenants_by_node = await self._pool.group_by_node(outcomes, refresh=True)
            if moved := set(outcomes).difference(tenants_by_node.get(await self._shards.find_node(), ())):
                return moved
            raise StaleRoute from error
        return set()

    async def _write_outcomes(
        self,
        connection: PooledConnection,
        outcomes: Mapping[Tenant, "_Outcomes"],
        endpoints: Mapping[Tenant, Mapping[str, str]],
    ) -> None:
        """Write the outcomes. Skip those of deleted endpoints; record deliveries of disabled endpoints as failed.

        Args:
            connection: Connection with an open transaction.
            outcomes: Outcomes by tenant.
            endpoints: Status of each endpoint that exists, by tenant and ID.
        """
        now = self._clock.now()
        async with connection.driver_connection.pipeline():
            for tenant, outcome in outcomes.items():
                await connection.set_scope(tenant)
                tenant_params, statuses = build_tenant_params(tenant), endpoints[tenant]
                if statuses:
                    disabled = [id_ for id_, status in statuses.items() if status != EndpointStatus.ENABLED]
                    values = {"existing": list(statuses), "disabled": disabled, "now": now}
                    if succeeded := outcome.list_succeeded(statuses):
                        usage = {"meter": METER, "subject": self._usage_subject, "day": now.date(), "ids": succeeded}
                        bounds = {"first": min(succeeded), "last": max(succeeded)}
                        await connection.run(SQL["add_usage"], tenant_params | usage | bounds)
                    await connection.run(SQL["record_deliveries"], tenant_params | values)
                if outcome.endpoint_rows:
                    endpoint_params = zip(
                        _PROGRESS_PARAMS, map(list, zip(*outcome.endpoint_rows, strict=True)), strict=True
                    )
                    await connection.run(SQL["update_endpoints"], tenant_params | dict(endpoint_params))


async def _stage_outcomes(connection: PooledConnection, outcomes: Mapping[Tenant, "_Outcomes"]) -> None:
    if not any(outcome.deliveries for outcome in outcomes.values()):
        return
    if SQL["create_staging_table"] not in connection.temporary_tables:
        await connection.driver_connection.execute(SQL["create_staging_table"], prepare=False)
        connection.temporary_tables.add(SQL["create_staging_table"])
    async with connection.cursor.copy(SQL["copy_deliveries"]) as copy:
        copy.set_types(_COLUMN_TYPES)
        for tenant, outcome in outcomes.items():
            for delivery in outcome.deliveries:
                await copy.write_row(
                    (
                        tenant.org,
                        tenant.livemode,
                        *DELIVERY_TABLE.build_params(delivery).values(),
                        delivery.attempts_made,
                    )
                )


async def _lock_endpoints(
    connection: PooledConnection, outcomes: Mapping[Tenant, "_Outcomes"]
) -> Mapping[Tenant, Mapping[str, str]]:
    """Lock the rows of the endpoints that have outcomes; return the endpoints' statuses by tenant and ID."""
    cursors = {}  # endpoints are locked before their deliveries, in the same order as in all other changes
    async with connection.driver_connection.pipeline():
        for tenant, outcome in outcomes.items():
            await connection.set_scope(tenant)
            values = build_tenant_params(tenant) | {
                "ids": sorted({delivery.endpoint for delivery in outcome.deliveries})
            }
            cursors[tenant] = await connection.driver_connection.cursor(binary=True).execute(
                SQL["lock_endpoints"], values
            )
    return {tenant: dict(await cursor.fetchall()) for tenant, cursor in cursors.items()}


@dataclass(slots=True)
class _Outcomes:
    """Outcomes of one tenant's deliveries.

    Attributes:
        deliveries: Deliveries whose status or attempts have changed.
        endpoint_rows: One row per endpoint, with the values of _PROGRESS_PARAMS.
    """

    deliveries: list[Delivery] = field(default_factory=list)
    endpoint_rows: list[DatabaseRow] = field(default_factory=list)

    def list_succeeded(self, endpoints: Collection[str]) -> list[str]:
        """Return the IDs of successful deliveries to the endpoints."""
        successes = (delivery for delivery in self.deliveries if delivery.status == DeliveryStatus.SUCCEEDED)
        return [delivery.id for delivery in successes if delivery.endpoint in endpoints]

    @property
    def endpoints(self) -> list[str]:
        """IDs of the endpoints that have outcomes, sorted."""
        return sorted(
            {delivery.endpoint for delivery in self.deliveries} | {endpoint for endpoint, *_ in self.endpoint_rows}
        )


def _group_by_tenant(progress: DeliveryProgress) -> dict[Tenant, _Outcomes]:
    """Group the outcomes by tenant, with tenants and endpoints in the order in which all processes lock them."""
    keys = progress.checkpoints.keys() | progress.last_successes.keys() | progress.failing_since.keys()
    tenants = {tenant for tenant, _ in keys}.union(tenant for tenant, _ in progress.deliveries)
    outcomes = {tenant: _Outcomes() for tenant in sorted(tenants, key=lambda tenant: (tenant.org, tenant.livemode))}
    for tenant, delivery in progress.deliveries:
        outcomes[tenant].deliveries.append(delivery)
    for key in sorted(keys, key=lambda key: key[1]):
        checkpoint = progress.checkpoints.get(key, FeedPosition()).increasing_numbers
        outcome = progress.last_successes.get(key), key in progress.failing_since, progress.failing_since.get(key)
        outcomes[key[0]].endpoint_rows.append((key[1], *checkpoint, *outcome))
    return outcomes


class PostgresDeliveryNodes:
    """Nodes that store webhook endpoints (port DeliveryDatabases in domain/webhooks/ports.py)."""

    def __init__(self, pool: Pool, shards: int, clock: Clock) -> None:
        self._pool, self._shards, self._clock = pool, shards, clock
        self._shard_by_node: dict[Node, DeliveryDatabase] = {}

    async def list_current(self) -> Sequence[DeliveryDatabase]:
        nodes = await self._pool.list_tenant_nodes()
        self._shard_by_node = {node: self._shard_by_node.get(node) or self._create_shard(node) for node in nodes}
        return list(self._shard_by_node.values())

    async def count_workers(self) -> int:
        return max(await self._pool.scatter_best_effort(count_workers), default=0)

    def _create_shard(self, node: Node) -> DeliveryDatabase:
        shards = PostgresShards(self._pool, self._shards, node)
        return DeliveryDatabase(node.name, shards, PostgresDeliveryStore(self._pool, shards, self._clock))
