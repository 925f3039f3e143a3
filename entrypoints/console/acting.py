"""Units of work for what has no operation: done, and audited, as the person who is signed in."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from domain.kernel.errors import DomainError
from domain.kernel.tenancy import AuditContext
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


def _told(visit: Visit, error: DomainError) -> Refused:
    known = visit.console.pipeline.problems.known(error, visit.request_id)
    return refused(known, visit.request_id)
