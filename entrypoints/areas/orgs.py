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

_LOOKING = AuditContext(Actor("service", "scheduler"), "sso.check_domain")
Reading: TypeAlias = ReadContext[OrgService]
Detached: TypeAlias = DetachedContext[OrgService]


async def list_of_caller(call: Detached) -> Reply:
    """The organisations that the caller can act in."""
    caller = call.principal
    return call.list(
        wire.ORGANISATION, await call.service.of_caller(caller.user, caller.organisation, call.page_request)
    )


async def list_plans(call: Reading) -> Reply:
    """Every plan on offer, as one page."""
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

    async def forget() -> None:
        await sessions.forget(clock.now() - retention.SESSIONS)
        await memberships.forget_invitations(clock.now() - retention.SESSIONS)
        await people.forget_events(clock.now() - retention.SECURITY_EVENTS)
        await accounts.passkeys.forget(clock.now() - retention.CHALLENGES)
        await mail.forget(clock.now() - retention.OUTGOING_MAIL)

    async def look_at_domains() -> None:
        """Each in a transaction of its own, so that one that cannot be kept holds up no other."""
        for one in await proofs.due():
            there = await proofs.is_there(one)
            async with uow.begin(Tenant(one.org, True), _LOOKING) as tx:
                await proofs.keep(tx, one.domain, there)

    return [
        Tick("sessions that are over", 3600, forget, purges=True),
        Tick("proofs of domains", 900, look_at_domains),
        Tick("mail to people", 5, mail.send_due),
        Tick("OAuth sign-ins that are over", 600, partial(tokens.purge, token_store, clock), purges=True),
    ]


AREA = Area(
    "orgs",
    "Organisations",
    "Your organisation and the plans.",
    service=OrgService,
    operations=(
        ORGANISATION.read(
            "Read your organisation",
            "The organisation that the credential belongs to, with its plan and its own catalogue in this mode.",
            OrgService.own,
            path="/v1/org",
            dataset="organisation",
        ),
        DetachedRead(
            id="orgs.list_mine",
            path="/v1/me/orgs",
            summary="List the organisations you belong to",
            description="For a person, every organisation they are a member of; for a key or an app, the one it belongs to.",
            handler=list_of_caller,
            scope=None,
            reply=wire.ORGANISATION.list,
            paging="both",
            agent=None,
            apart="It is about the caller: the organisation itself is a dataset.",
        ),
        Read(
            id="orgs.list_plans",
            path="/v1/plans",
            summary="List the plans",
            description="Every plan on offer, cheapest first, with its features and what its meters include.",
            handler=list_plans,
            scope=None,
            reply=wire.PLAN.list,
            apart="Plans are the operator's, and the same for everybody.",
        ),
    ),
    ticks=_ticks,
)
