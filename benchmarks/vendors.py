"""Vendors whose catalogues are published, and shops that hold licences to them, for measuring the network's log."""

from collections.abc import Sequence
from dataclasses import dataclass

from adapters.postgres.nodes.pool import Pool
from benchmarks.publishing import Publisher
from benchmarks.stack import CALL, Stack
from domain.access.usecases import AccessService, KeyRequest
from domain.events.model import Event
from domain.events.ports import EventLog
from domain.kernel.ids import new_id
from domain.kernel.tenancy import Tenant
from ports.unit_of_work import UnitOfWork

SUBJECTS = 5
MAKE = """
INSERT INTO organisations (id, name, kind, plan, live_catalogue, test_catalogue, created_at)
SELECT id, 'Vendor', 'vendor', 'max', live, test, now()
FROM unnest(%s::text[], %s::text[], %s::text[]) AS made (id, live, test)
"""
GRANT = """
INSERT INTO licences (org, livemode, catalogue, holder, groups)
SELECT org, %s, catalogue, %s, '{base,retail}' FROM unnest(%s::text[], %s::text[]) AS granted (org, catalogue)
"""


@dataclass(frozen=True, slots=True)
class Shop:
    """Who holds licences; `secret` is a key of its live data, or of its sandbox."""

    tenant: Tenant
    secret: str


async def vendors(parts: Stack, count: int, livemode: bool = True) -> list[Publisher]:
    """New organisations, each with a few offers; they are made in one go, for there may be ten thousand."""
    made = [(new_id("org"), new_id("cat"), new_id("cat")) for _ in range(count)]
    async with parts.container[Pool].owner() as link:
        await link.connection.execute(MAKE, [list(column) for column in zip(*made, strict=True)])
    return [
        Publisher(
            Tenant(org, livemode),
            live if livemode else test,
            subjects=[(new_id("ofr"), new_id("var"), new_id("prod")) for _ in range(SUBJECTS)],
        )
        for org, live, test in made
    ]


async def shop(parts: Stack, name: str, licensors: Sequence[Publisher]) -> Shop:
    """An organisation with licences to all of these, in their mode."""
    organisation = await parts.organisation(name)
    tenant = Tenant(organisation.id, licensors[0].tenant.livemode)
    columns = [one.tenant.org for one in licensors], [one.catalogue for one in licensors]
    async with parts.container[Pool].owner() as link:
        await link.connection.execute(GRANT, [tenant.livemode, tenant.org, *columns])
    async with parts.container[UnitOfWork].begin(tenant, CALL) as tx:
        _, secret = await parts.container[AccessService].issue_key(tx, KeyRequest("bench"))
    return Shop(tenant, secret)


def published(publisher: Publisher, count: int) -> list[Event]:
    """The vendor's next changes, for everybody who holds a licence."""
    events = publisher.next(count)
    for event in events:
        event.network = True
    return events


async def publish(parts: Stack, publisher: Publisher, count: int) -> list[str]:
    """Commit so many of them in one transaction; answers their ids."""
    events = published(publisher, count)
    async with parts.container[UnitOfWork].begin(publisher.tenant, CALL) as tx:
        await tx[EventLog].append(events)
    return [event.id for event in events]
