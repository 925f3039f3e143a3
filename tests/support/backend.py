"""Backend of a contract suite: the unit of work, and the stores that work across tenants."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from adapters.postgres.nodes.pool import Pool
from adapters.postgres.orgs import PostgresOrgRegistry
from domain.access.ports import CredentialLookup, TokenLookup
from domain.changes.ports import EventReader, NetworkLog
from domain.exports.ports import ExportUpkeep
from domain.jobs.ports import JobDispatcher
from domain.kernel.tenancy import Tenant
from domain.mail.ports import InboundAddresses
from domain.matching.ports import MatchBacklogReader
from domain.oauth.ports import TokenStore
from domain.orgs.model import Organisation, Plan
from domain.orgs.ports import Memberships
from domain.outbox.ports import Outbox
from domain.people.ports import Factors, OneTimeLinks, Passkeys, People, Sessions
from domain.platform.ports import Workload
from domain.request_logs.ports import RequestLogSink
from domain.secrets.ports import EncryptedValues
from domain.sources.ports import SourceSchedule
from domain.sso.ports import SsoDirectory
from domain.storage.ports import StorageUpkeep
from domain.usage.ports import UsageUpkeep
from domain.webhooks.ports import DeliveryStore, Shards
from ports.maintenance import Maintenance
from ports.signals import Signals
from ports.unit_of_work import UnitOfWork
from tests.support import builders
from tests.support.memory.tracing import MemoryTracing
from tests.support.network import relay_events


async def _served(org: str) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Backend:
    """Storage with which a contract suite runs. `now` is the current time; `pass_time` advances the time, for leases and due times.

    `plan` is the code of an available plan. Other tests may use the same backend at the same time, in other organisations; results
    across tenants may therefore contain their objects as well.
    """

    name: str
    pool: Pool
    uow: UnitOfWork
    registry: PostgresOrgRegistry
    memberships: Memberships
    credentials: CredentialLookup
    people: People
    sso: SsoDirectory
    sessions: Sessions
    token_store: TokenStore
    token_proofs: TokenLookup
    links: OneTimeLinks
    outbox: Outbox
    factors: Factors
    passkeys: Passkeys
    dispatch: JobDispatcher
    schedule: SourceSchedule
    addresses: InboundAddresses
    sink: RequestLogSink
    maintenance: Maintenance
    storage: StorageUpkeep
    usage: UsageUpkeep
    workload: Workload
    backlog: MatchBacklogReader
    exports: ExportUpkeep
    events: EventReader
    network: NetworkLog
    signals: Signals
    delivery_log: DeliveryStore
    sealed_values: EncryptedValues
    shards: Callable[[], Shards]
    now: Callable[[], datetime]
    pass_time: Callable[[timedelta], Awaitable[None]]
    offer: Callable[[Plan], Awaitable[None]]
    """Creates or changes a plan, like an operator."""
    tracing: MemoryTracing
    """Tracing of the units of work; empty outside of spans."""
    plan: str = "standard"
    served: Callable[[str], Awaitable[bool]] = _served
    """Whether `delivery_log` and `shards` are those of this organisation: on a cluster each node has its own."""

    async def organisation(self, **changes: object) -> Organisation:
        """Create an organisation on the plan."""
        plan = await self.registry.find_plan(self.plan)
        organisation = builders.organisation(**({"plan": plan} if plan else {}) | changes)
        while not await self.served(organisation.id):
            organisation = builders.organisation(**({"plan": plan} if plan else {}) | changes)
        await self.registry.create(organisation)
        return organisation

    async def relay(self, *owners: Tenant) -> None:
        """Copy the events that the owners have published so far to the network logs."""
        await relay_events(self.network, self.signals, owners)

    async def tenant(self, *, livemode: bool = True) -> Tenant:
        """Create an organisation and return its tenant."""
        return Tenant((await self.organisation()).id, livemode)
