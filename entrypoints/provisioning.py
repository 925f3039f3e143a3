"""Creation of organisations, members, keys and sign-in links by the operator, for commands and the demo."""

from contextlib import AbstractAsyncContextManager

from domain.access.model import ApiKey
from domain.access.usecases import AccessService, KeyRequest
from domain.audit.model import Change
from domain.audit.ports import AuditLog
from domain.kernel.ids import new_id
from domain.kernel.tenancy import Actor, AuditContext, Tenant
from domain.orgs.model import Member, Organisation, Plan
from domain.orgs.ports import OrgRegistry, OrgStore
from domain.people.model import Purpose, SecurityEvent, User
from domain.people.ports import People
from domain.people.usecases.sessions import LinkService
from entrypoints.dependencies import Dependencies
from entrypoints.settings import Settings
from ports.clock import Clock
from ports.unit_of_work import Tx, UnitOfWork

OPERATOR = Actor("service", "operator")
SIGN_IN = "/console/link/"
"""Page of a sign-in link; browsers do not send the fragment after the # to the server."""


def begin(
    parts: Dependencies, organisation: Organisation, operation: str, *, livemode: bool = True
) -> AbstractAsyncContextManager[Tx]:
    """Begin a unit of work as the operator, who acts as the service itself."""
    unit: AbstractAsyncContextManager[Tx] = parts[UnitOfWork].begin(
        Tenant(organisation.id, livemode), AuditContext(OPERATOR, operation)
    )
    return unit


async def new_organisation(parts: Dependencies, name: str, kind: str, plan: Plan) -> Organisation:
    """Create and store an organisation."""
    organisation = Organisation(
        new_id("org"), name, kind, plan, None, (new_id("cat"), new_id("cat")), parts[Clock].now()
    )
    await parts[OrgRegistry].create(organisation)
    return organisation


async def new_member(parts: Dependencies, organisation: Organisation, email: str, role: str) -> Member:
    """Add a person, existing or new, to the organisation.

    Raises:
        Conflict: The person is already a member.
    """
    user = await parts[People].add(User(new_id("usr"), email.strip(), "", None, parts[Clock].now()))
    async with begin(parts, organisation, "members.add") as tx:
        member = Member(user.id, organisation.id, user.email, role, tx.now)
        await tx[OrgStore].add_member(member)
        await tx[AuditLog].add(Change("member", user.id, "create", {}, {"email": member.email, "role": role}))
    return member


async def issue_key(parts: Dependencies, tx: Tx, request: KeyRequest) -> tuple[ApiKey, str]:
    """Create and store a key; return it and its secret."""
    key, secret = await parts[AccessService].issue_key(tx, request)
    after = {"name": key.name, "scopes": sorted(key.scopes), "restricted": key.restricted, "last4": key.last4}
    await tx[AuditLog].add(Change("api_key", key.id, "create", {}, after))
    return key, secret


async def sign_in_link(parts: Dependencies, user: User, organisation: Organisation) -> str:
    """Return a one-time sign-in URL of the person."""
    link, secret = await parts[LinkService].make(user, Purpose.SIGN_IN, organisation.id)
    async with begin(parts, organisation, "sessions.link") as tx:
        after = {"user": user.id, "expires_at": link.expires_at.isoformat()}
        await tx[AuditLog].add(Change("sign_in_link", user.id, "create", {}, after))
    await note(parts, user, "link_made")
    return f"{parts[Settings].base_url.rstrip('/')}{SIGN_IN}{secret}"


async def note(parts: Dependencies, user: User, kind: str) -> None:
    """Record a security event of the person."""
    event = SecurityEvent(new_id("sec"), user.id, kind, "by an operator", "", "", parts[Clock].now())
    await parts[People].note(event)
