"""GET /v1/org, /v1/me/orgs and /v1/plans."""

from collections.abc import Sequence
from functools import partial
from typing import TypeAlias

from adapters.wire import orgs as wire
from domain.jobs.usecases.ticks import Tick
from domain.kernel import retention
from domain.kernel.paging import Page
from domain.kernel.tenancy import Actor, AuditContext, Tenant
from domain.oauth.ports import TokenStore
from domain.oauth.usecases import tokens
from domain.orgs.ports import Memberships
from domain.orgs.usecases.service import OrgService
from domain.outbox.usecases import OutgoingMail
from domain.people.ports import People
from domain.people.usecases.accounts import Accounts
from domain.people.usecases.sessions import SessionService
from domain.sso.usecases.proving import DomainProofs
from entrypoints.operations.collection import Collection
from entrypoints.operations.operation import Area, DetachedContext, DetachedRead, Read, ReadContext, Reply
from ports.clock import Clock
from ports.unit_of_work import UnitOfWork

_DOMAIN_CHECK = AuditContext(Actor("service", "scheduler"), "sso.check_domain")
Reading: TypeAlias = ReadContext[OrgService]
Detached: TypeAlias = DetachedContext[OrgService]


async def list_of_caller(call: Detached) -> Reply:
    """Return the organisations in which the caller can act."""
    caller = call.principal
    return call.list(
        wire.ORGANISATION, await call.service.of_caller(caller.user, caller.organisation, call.page_request)
    )


async def list_plans(call: Reading) -> Reply:
    """Return all available plans as one page."""
    plans = await call.service.plans(call.tx)
    return call.list(wire.PLAN, Page(tuple(plans), has_more=False, next_key=None))


ORGANISATION = Collection("orgs", wire.ORGANISATION, "org")


def _ticks(
    uow: UnitOfWork,
    clock: Clock,
    sessions: SessionService,
    memberships: Memberships,
    people: People,
    accounts: Accounts,
    mail: OutgoingMail,
    proofs: DomainProofs,
    token_store: TokenStore,
) -> Sequence[Tick]:

    async def purge_expired() -> None:
        await sessions.forget(clock.now() - retention.SESSIONS)
        await memberships.forget_invitations(clock.now() - retention.SESSIONS)
        await people.forget_events(clock.now() - retention.SECURITY_EVENTS)
        await accounts.passkeys.forget(clock.now() - retention.CHALLENGES)
        await mail.forget(clock.now() - retention.OUTGOING_MAIL)

    async def check_domains() -> None:
        """Check each domain in its own transaction, so that a failure does not affect the others."""
        for proof in await proofs.due():
            is_present = await proofs.is_there(proof)
            async with uow.begin(Tenant(proof.org, True), _DOMAIN_CHECK) as tx:
                await proofs.keep(tx, proof.domain, is_present)

    return [
        Tick("expired sessions", 3600, purge_expired, purges=True),
        Tick("proofs of domains", 900, check_domains),
        Tick("mail to people", 5, mail.send_due),
        Tick("expired OAuth sign-ins", 600, partial(tokens.purge, token_store, clock), purges=True),
    ]


AREA = Area(
    "orgs",
    "Organisations",
    "Your organisation and the plans.",
    service=OrgService,
    operations=(
        ORGANISATION.read(
            "Read your organisation",
            "Returns the organisation of the credential, with its plan and its own catalogue in this mode.",
            OrgService.own,
            path="/v1/org",
            dataset="organisation",
        ),
        DetachedRead(
            id="orgs.list_mine",
            path="/v1/me/orgs",
            summary="List the organisations you belong to",
            description="Returns all organisations of which a person is a member; for a key or an app, the organisation that it belongs to.",
            handler=list_of_caller,
            scope=None,
            reply=wire.ORGANISATION.list,
            paging="both",
            agent=None,
            apart="The list depends on the caller; the organisation itself is a dataset.",
        ),
        Read(
            id="orgs.list_plans",
            path="/v1/plans",
            summary="List the plans",
            description="Returns all available plans, cheapest first, with their features and quotas.",
            handler=list_plans,
            scope=None,
            reply=wire.PLAN.list,
            apart="Plans belong to the operator and are the same for all organisations.",
        ),
    ),
    ticks=_ticks,
)
