"""Backend on several nodes that copies reference tables after each write, as a cluster does."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from adapters.postgres.locks import PostgresShards
from adapters.postgres.nodes.pool import Pool
from adapters.postgres.orgs import PostgresOrgRegistry
from adapters.postgres.secrets import REFERENCE_TABLE_KINDS, PostgresEncryptedValues
from adapters.postgres.unit_of_work import PostgresUnitOfWork
from domain.access.ports import KeyStore
from domain.kernel.tenancy import AuditContext, Tenant
from domain.oauth.ports import AppStore
from domain.orgs.model import Organisation, Plan
from domain.orgs.ports import OrgStore
from domain.secrets.model import EncryptedValue
from domain.sso.ports import SsoStore
from domain.webhooks.model import SHARD_COUNT
from ports.unit_of_work import Tx
from tests.support.backend import Backend
from tests.support.postgres import assemble_backend
from tests.topology.servers import Servers


class ReplicatedRegistry(PostgresOrgRegistry):
    """Registry that copies organisations to every node."""

    def __init__(self, pool: Pool, servers: Servers) -> None:
        super().__init__(pool)
        self._servers = servers

    async def create(self, organisation: Organisation) -> None:
        await super().create(organisation)
        await self._servers.replicate_tables(self._servers.nodes[0])

    async def change_plan(self, id: str, plan: Plan) -> None:
        await super().change_plan(id, plan)
        await self._servers.replicate_tables(self._servers.nodes[0])


class ReplicatedUnitOfWork(PostgresUnitOfWork):
    """Unit of work that copies keys, members, single sign-on and apps to every node."""

    servers: Servers

    @asynccontextmanager
    async def begin(self, tenant: Tenant, context: AuditContext) -> AsyncIterator[Tx]:
        """Begin a transaction; its writes to reference tables are copied on exit."""
        async with super().begin(tenant, context) as tx:
            yield tx
        if {KeyStore, OrgStore, SsoStore, AppStore} & tx._stores.keys():
            await self.servers.replicate_tables(self.servers.find_node(tenant.org))


class ReplicatedSealedValues(PostgresEncryptedValues):
    """Encrypted values whose replacements in reference tables are copied to every node."""

    servers: Servers

    async def replace(self, value: EncryptedValue, reencrypted: bytes) -> bool:
        done = await super().replace(value, reencrypted)
        if value.kind in REFERENCE_TABLE_KINDS:
            await self.servers.replicate_tables(self.servers.nodes[0])
        return done


def create_replicated_uow(uow: Any, servers: Servers) -> ReplicatedUnitOfWork:
    """Return the unit of work with replication."""
    made = ReplicatedUnitOfWork(uow._pool, uow._clock, uow._rendering, uow._event_rendering)
    made.servers = servers
    return made


@asynccontextmanager
async def open_nodes_backend(servers: Servers) -> AsyncIterator[Backend]:
    """Yield a backend on these servers."""
    addresses = [node.conninfo for node in servers.nodes]
    pool = Pool(addresses[0], size=6, placement=servers)
    shards = PostgresShards(pool, SHARD_COUNT)
    made = assemble_backend(pool, shards, *addresses)
    sealed = ReplicatedSealedValues(pool)
    sealed.servers = servers
    try:
        yield replace(
            made,
            uow=create_replicated_uow(made.uow, servers),
            registry=ReplicatedRegistry(pool, servers),
            sealed_values=sealed,
        )
    finally:
        await shards.close()
        await pool.close()
