"""What a contract suite asks of a backend: its unit of work and everything that works across tenants."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from adapters.postgres.nodes.pool import Pool
from adapters.postgres.orgs import PostgresOrgRegistry
from domain.access.ports import Credentials, TokenProofs
from domain.changes.ports import EventReader, NetworkLog
from domain.exports.ports import ExportUpkeep
from domain.jobs.ports import Dispatch
from domain.kernel.tenancy import Tenant
from domain.mail.ports import InboundAddresses
from domain.matching.ports import MatchBacklog
from domain.oauth.ports import TokenStore
from domain.orgs.model import Organisation, Plan
from domain.orgs.ports import Memberships
from domain.outbox.ports import Outbox
from domain.people.ports import Factors, OneTimeLinks, Passkeys, People, Sessions
from domain.platform.ports import Workload
from domain.request_logs.ports import RequestLogSink
from domain.secrets.ports import SealedValues
from domain.sources.ports import SourceSchedule
from domain.sso.ports import SsoDirectory
from domain.storage.ports import StorageUpkeep
from domain.usage.ports import UsageUpkeep
from domain.webhooks.ports import DeliveryLog, Shards
from ports.maintenance import Maintenance
from ports.signals import Signals
from ports.unit_of_work import UnitOfWork
from tests.support import builders
from tests.support.memory.tracing import MemoryTracing
from tests.support.network import relay


async def _served(org: str) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Backend:
    """One way of keeping everything. `now` is its time; `pass_time` lets some of it go by, for leases and due times.

    `plan` is the code of a plan that is on offer. Other tests may use the same backend at the same time, in other
    organisations: what works across tenants may therefore tell of more than a test has made itself.
    """

    name: str
    pool: Pool
    uow: UnitOfWork
    registry: PostgresOrgRegistry
    memberships: Memberships
    credentials: Credentials
    people: People
    sso: SsoDirectory
    sessions: Sessions
    token_store: TokenStore
    token_proofs: TokenProofs
    links: OneTimeLinks
    outbox: Outbox
    factors: Factors
    passkeys: Passkeys
    dispatch: Dispatch
    schedule: SourceSchedule
    addresses: InboundAddresses
    sink: RequestLogSink
    maintenance: Maintenance
    storage: StorageUpkeep
    usage: UsageUpkeep
    workload: Workload
    backlog: MatchBacklog
    exports: ExportUpkeep
    events: EventReader
    network: NetworkLog
    signals: Signals
    delivery_log: DeliveryLog
    sealed_values: SealedValues
    shards: Callable[[], Shards]
    now: Callable[[], datetime]
    pass_time: Callable[[timedelta], Awaitable[None]]
    offer: Callable[[Plan], Awaitable[None]]
    """Put a plan on offer, or change it, as an operator does."""
    tracing: MemoryTracing
    """What units of work are told by what they are part of; nothing, outside of spans."""
    plan: str = "standard"
    served: Callable[[str], Awaitable[bool]] = _served
    """Whether `delivery_log` and `shards` are those of this organisation: on a cluster each node has its own."""

    async def organisation(self, **changes: object) -> Organisation:
        """A new organisation on the plan."""
        plan = await self.registry.plan(self.plan)
        made = builders.organisation(**({"plan": plan} if plan else {}) | changes)
        while not await self.served(made.id):
            made = builders.organisation(**({"plan": plan} if plan else {}) | changes)
        await self.registry.create(made)
        return made

    async def relay(self, *owners: Tenant) -> None:
        """Copy to the network's logs what these have published by now."""
        await relay(self.network, self.signals, owners)

    async def tenant(self, *, livemode: bool = True) -> Tenant:
        """A new organisation's tenant."""
        return Tenant((await self.organisation()).id, livemode)
