"""Units of work for what has no operation: done, and audited, as the person who is signed in, or is being signed in."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace

from domain.kernel.errors import DomainError
from domain.kernel.tenancy import Actor, AuditContext, Tenant
from entrypoints.console.refusals import Refused, refused
from entrypoints.console.visit import Visit
from ports.unit_of_work import Tx


@asynccontextmanager
async def acting(visit: Visit, operation: str, *, livemode: bool | None = None) -> AsyncIterator[Tx]:
    """A transaction of the visitor, in the mode that they look at unless another is named. Raises Refused."""
    tenant = visit.principal.tenant
    if livemode is not None:
        tenant = replace(tenant, livemode=livemode)
    context = AuditContext(visit.principal.actor, operation, visit.request_id)
    try:
        async with visit.dependencies.uow.begin(tenant, context) as tx:
            yield tx
    except DomainError as error:
        raise _told(visit, error) from error


def acting_in(visit: Visit, org: str, user: str, operation: str) -> AbstractAsyncContextManager[Tx]:
    """A transaction of a person in an organisation which they may not look at, or not yet belong to. Raises DomainError as it comes."""
    return visit.dependencies.uow.begin(
        Tenant(org, True), AuditContext(Actor("user", user), operation, visit.request_id)
    )


def _told(visit: Visit, error: DomainError) -> Refused:
    known = visit.console.pipeline.problems.known(error, visit.request_id)
    return refused(known, visit.request_id)
