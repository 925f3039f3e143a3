"""Organisations and plans: GET /v1/org, /v1/me/orgs and /v1/plans."""

from collections.abc import Sequence
from functools import partial
from typing import TypeAlias

from adapters.api_json import orgs as wire
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
from domain.people.usecases.auth_services import AuthServices
from domain.people.usecases.sessions import SessionService
from domain.sso.usecases.domain_verifier import DomainVerifier
from entrypoints.operations.collection import Collection
from entrypoints.operations.operation import Area, DetachedContext, DetachedRead, Read, ReadContext, Reply
from ports.clock import Clock
from ports.unit_of_work import UnitOfWork

_DOMAIN_CHECK = AuditContext(Actor("service", "scheduler"), "sso.check_domain")
OrgReadContext: TypeAlias = ReadContext[OrgService]
OrgDetachedContext: TypeAlias = DetachedContext[OrgService]


async def list_caller_organisations(context: OrgDetachedContext) -> Reply:
    """Return a page of the organisations in which the caller can act."""
    caller = context.principal
    return context.build_list_reply(
        wire.ORGANISATION, await context.service.list_for_caller(caller.user, caller.organisation, context.page_request)
    )


async def list_plans(context: OrgReadContext) -> Reply:
    """Return all available plans as one page."""
    plans = await context.service.list_plans(context.tx)
    return context.build_list_reply(wire.PLAN, Page(tuple(plans), has_more=False, next_key=None))


ORGANISATION = Collection("orgs", wire.ORGANISATION, "org")


def _create_ticks(
    uow: UnitOfWork,
    clock: Clock,
    sessions: SessionService,
    memberships: Memberships,
    people: People,
    accounts: AuthServices,
    mail: OutgoingMail,
    domain_verifier: DomainVerifier,
    token_store: TokenStore,
) -> Sequence[Tick]:

    async def purge_expired() -> None:
        await sessions.delete_ended(clock.now() - retention.SESSIONS)
        await memberships.delete_invitations(clock.now() - retention.SESSIONS)
        await people.delete_events(clock.now() - retention.SECURITY_EVENTS)
        await accounts.passkeys.delete_challenges(clock.now() - retention.CHALLENGES)
        await mail.delete_created_before(clock.now() - retention.OUTGOING_MAIL)

    async def check_domains() -> None:
        """Check the domains that are due, each in a separate transaction, so that a failure does not affect the others."""
        for proof in await domain_verifier.list_due():
            is_present = await domain_verifier.has_record(proof)
            async with uow.begin(Tenant(proof.org, True), _DOMAIN_CHECK) as tx:
                await domain_verifier.store_result(tx, proof.domain, is_present)

    return [
        Tick("expired sessions", 3600, purge_expired, is_purge=True),
        Tick("domain verification", 900, check_domains),
        Tick("outgoing mail", 5, mail.send_due),
        Tick("expired OAuth sign-ins", 600, partial(tokens.delete_expired, token_store, clock), is_purge=True),
    ]


AREA = Area(
    "orgs",
    "Organisations",
    "Your organisation and the plans.",
    create_service=OrgService,
    operations=(
        ORGANISATION.read(
            "Read your organisation",
            "Returns the organisation of the credential, with its plan and its own catalogue in this mode.",
            OrgService.get_organisation,
            path="/v1/org",
            dataset="organisation",
        ),
        DetachedRead(
            id="orgs.list_mine",
            path="/v1/me/orgs",
            summary="List the organisations you belong to",
            description="Returns all organisations of which a person is a member; for a key or an app, the organisation that it belongs to.",
            handler=list_caller_organisations,
            scope=None,
            reply=wire.ORGANISATION.list_schema,
            paging="both",
            agent=None,
            no_dataset_reason="The list depends on the caller; an export contains the caller's own organisation.",
        ),
        Read(
            id="orgs.list_plans",
            path="/v1/plans",
            summary="List the plans",
            description="Returns all available plans, cheapest first, with their features and quotas.",
            handler=list_plans,
            scope=None,
            reply=wire.PLAN.list_schema,
            no_dataset_reason="Plans belong to the operator and are the same for all organisations.",
        ),
    ),
    create_ticks=_create_ticks,
)
