"""Creation of organisations, members, keys and sign-in links by the operator, for commands and the demo."""

from contextlib import AbstractAsyncContextManager

from domain.access.model import ApiKey
from domain.access.usecases import AccessService, KeyRequest
from domain.audit.model import Change
from domain.audit.ports import AuditLog
from domain.brand.usecases.profiles import ProfileService
from domain.kernel.ids import new_id
from domain.kernel.tenancy import Actor, AuditContext, Tenant
from domain.orgs.model import Member, Organisation, Plan
from domain.orgs.ports import OrgRegistry, OrgStore
from domain.people.model import LinkPurpose, SecurityEvent, User
from domain.people.ports import People
from domain.people.usecases.sessions import LinkService
from entrypoints.dependencies import Dependencies
from entrypoints.settings import Settings
from ports.clock import Clock
from ports.unit_of_work import Tx, UnitOfWork

OPERATOR = Actor("service", "operator")
SIGN_IN_PATH = "/console/link/"
"""Path of sign-in links; the secret of the link follows."""


def begin_operator_change(
    dependencies: Dependencies, organisation: Organisation, operation: str, *, livemode: bool = True
) -> AbstractAsyncContextManager[Tx]:
    """Begin a unit of work in an organisation; the audit log names the operator as the actor.

    Args:
        dependencies: The dependency container.
        organisation: The organisation.
        operation: The name of the operation in the audit log, such as `keys.create`.
        livemode: True for live mode, False for test mode.
    """
    unit: AbstractAsyncContextManager[Tx] = dependencies[UnitOfWork].begin(
        Tenant(organisation.id, livemode), AuditContext(OPERATOR, operation)
    )
    return unit


async def create_organisation(dependencies: Dependencies, name: str, kind: str, plan: Plan) -> Organisation:
    """Create and store an organisation; a vendor gets an unverified profile in each mode.

    Args:
        dependencies: The dependency container.
        name: The organisation's name.
        kind: Whether it is a retailer or a vendor (domain.orgs.model.KINDS).
        plan: The organisation's plan.
    """
    organisation = Organisation(
        new_id("org"), name, kind, plan, None, (new_id("cat"), new_id("cat")), dependencies[Clock].now()
    )
    await dependencies[OrgRegistry].create(organisation)
    if organisation.is_vendor:
        for livemode in (True, False):
            async with begin_operator_change(dependencies, organisation, "brand.create", livemode=livemode) as tx:
                await dependencies[ProfileService].create_own(tx, organisation, {})
    return organisation


async def add_organisation_member(
    dependencies: Dependencies, organisation: Organisation, email: str, role: str
) -> Member:
    """Add the person with the email address to the organisation; create an account if the address is unknown.

    Raises:
        Conflict: The person is already a member.
    """
    user = await dependencies[People].add(User(new_id("usr"), email.strip(), "", None, dependencies[Clock].now()))
    async with begin_operator_change(dependencies, organisation, "members.add") as tx:
        member = Member(user.id, organisation.id, user.email, role, tx.now)
        await tx[OrgStore].add_member(member)
        await tx[AuditLog].add(Change("member", user.id, "create", {}, {"email": member.email, "role": role}))
    return member


async def create_api_key(dependencies: Dependencies, tx: Tx, request: KeyRequest) -> tuple[ApiKey, str]:
    """Create and store an API key; return the key and its secret."""
    key, secret = await dependencies[AccessService].create_key(tx, request)
    after = {"name": key.name, "scopes": sorted(key.scopes), "restricted": key.restricted, "last4": key.last4}
    await tx[AuditLog].add(Change("api_key", key.id, "create", {}, after))
    return key, secret


async def create_sign_in_link(dependencies: Dependencies, user: User, organisation: Organisation) -> str:
    """Return a one-time URL that signs the person in to the organisation."""
    link, secret = await dependencies[LinkService].create(user, LinkPurpose.SIGN_IN, organisation.id)
    async with begin_operator_change(dependencies, organisation, "sessions.link") as tx:
        after = {"user": user.id, "expires_at": link.expires_at.isoformat()}
        await tx[AuditLog].add(Change("sign_in_link", user.id, "create", {}, after))
    await record_security_event(dependencies, user, "link_made")
    return f"{dependencies[Settings].base_url.rstrip('/')}{SIGN_IN_PATH}{secret}"


async def record_security_event(dependencies: Dependencies, user: User, kind: str) -> None:
    """Add an event of the kind (such as `link_made`) to the security activity that the person can see."""
    event = SecurityEvent(new_id("sec"), user.id, kind, "by an operator", "", "", dependencies[Clock].now())
    await dependencies[People].record_event(event)
