"""Vendors with published catalogues, and organisations with licences for them, for benchmarks of the network log."""

from collections.abc import Sequence
from dataclasses import dataclass

from adapters.postgres.nodes.pool import Pool
from benchmarks.event_publisher import Publisher
from benchmarks.stack import AUDIT_CONTEXT, Stack
from domain.access.usecases import AccessService, KeyRequest
from domain.events.model import Event
from domain.events.ports import EventLog
from domain.kernel.ids import new_id
from domain.kernel.tenancy import Tenant
from ports.unit_of_work import UnitOfWork

OFFERS_PER_VENDOR = 5
INSERT_VENDORS_SQL = """
INSERT INTO organisations (id, name, kind, plan, live_catalogue, test_catalogue, created_at)
SELECT id, 'Vendor', 'vendor', 'max', live, test, now()
FROM unnest(%s::text[], %s::text[], %s::text[]) AS made (id, live, test)
"""
GRANT_LICENCES_SQL = """
INSERT INTO licences (org, livemode, catalogue, holder, groups)
SELECT org, %s, catalogue, %s, '{base,retail}' FROM unnest(%s::text[], %s::text[]) AS granted (org, catalogue)
"""


@dataclass(frozen=True, slots=True)
class LicenceHolder:
    """Organisation that holds licences; `secret` is an API key for the mode of the tenant."""

    tenant: Tenant
    secret: str


async def create_vendors(stack: Stack, count: int, livemode: bool = True) -> list[Publisher]:
    """Create organisations with a few offers each, in a single statement because there may be ten thousand."""
    ids = [(new_id("org"), new_id("cat"), new_id("cat")) for _ in range(count)]
    async with stack.dependencies[Pool].connect_as_owner() as pooled:
        await pooled.driver_connection.execute(INSERT_VENDORS_SQL, [list(column) for column in zip(*ids, strict=True)])
    return [
        Publisher(
            Tenant(org, livemode),
            live_catalogue if livemode else test_catalogue,
            subjects=[(new_id("ofr"), new_id("var"), new_id("prod")) for _ in range(OFFERS_PER_VENDOR)],
        )
        for org, live_catalogue, test_catalogue in ids
    ]


async def create_licence_holder(stack: Stack, name: str, licensors: Sequence[Publisher]) -> LicenceHolder:
    """Create an organisation with licences for all given vendors, in their mode."""
    organisation = await stack.create_organisation(name)
    tenant = Tenant(organisation.id, licensors[0].tenant.livemode)
    columns = [licensor.tenant.org for licensor in licensors], [licensor.catalogue for licensor in licensors]
    async with stack.dependencies[Pool].connect_as_owner() as pooled:
        await pooled.driver_connection.execute(GRANT_LICENCES_SQL, [tenant.livemode, tenant.org, *columns])
    async with stack.dependencies[UnitOfWork].begin(tenant, AUDIT_CONTEXT) as tx:
        _, secret = await stack.dependencies[AccessService].create_key(tx, KeyRequest("bench"))
    return LicenceHolder(tenant, secret)


def generate_published_events(publisher: Publisher, count: int) -> list[Event]:
    """Return the next changes of a vendor as events that are published to licence holders."""
    events = publisher.generate_events(count)
    for event in events:
        event.is_published = True
    return events


async def publish(stack: Stack, publisher: Publisher, count: int) -> list[str]:
    """Append published events in one transaction and return their IDs."""
    events = generate_published_events(publisher, count)
    async with stack.dependencies[UnitOfWork].begin(publisher.tenant, AUDIT_CONTEXT) as tx:
        await tx[EventLog].append(events)
    return [event.id for event in events]
