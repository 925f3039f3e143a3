"""The page that the link of an invitation leads to: who invites to what, and becoming a member."""

from typing import Final

from domain.kernel.errors import DomainError, NotFound
from domain.kernel.tenancy import Actor, AuditContext, Tenant
from domain.people.model import User
from domain.people.usecases.invitations import PAGE, InvitationService, Offer
from entrypoints.console.page import Answer, Page
from entrypoints.console.refusals import Refused, refused
from entrypoints.console.visit import Visit

_OVER: Final = "This invitation is over: it was used, taken back, or is more than a week old. Ask for another one."


def invitations_of(visit: Visit) -> InvitationService:
    """The use cases of invitations."""
    parts = visit.dependencies
    return InvitationService(
        parts.memberships, parts.people, parts.access, parts.outgoing_mail, parts.clock, parts.settings.base_url
    )


async def invitation(visit: Visit) -> Answer:
    """Who invites to what; with the button for whoever is signed in as the invited, else the way to that."""
    offer = await invitations_of(visit).look(visit.ids["secret"])
    if offer is None:
        raise NotFound(_OVER)
    if visit.asked.method != "POST":
        return _page(visit, offer)
    try:
        return await (_accepted(visit, offer) if visit.signed_in is not None else _newcomer(visit, offer))
    except DomainError as error:
        return _page(visit, offer, refused(error, visit.request_id))


async def _accepted(visit: Visit, offer: Offer) -> Answer:
    """The person who is signed in becomes a member, and looks at the organisation."""
    await _join(visit, offer, visit.person.user)
    session = await visit.dependencies.sessions.look_at(visit.person.session, offer.invited.organisation.id, True)
    return _welcome(visit, offer, session.id)


PAGES: Final = (Page(f"{PAGE}<secret>", invitation, methods=("GET", "POST"), who="anybody"),)
