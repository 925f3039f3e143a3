"""The page that the link of an invitation leads to: who invites to what, and becoming a member."""

from secrets import token_hex
from typing import Final

from domain.kernel.errors import DomainError, NotFound
from domain.people.model import Method, User
from domain.people.usecases.invitations import PAGE, Offer
from entrypoints.console.acting import acting_in
from entrypoints.console.page import Answer, Page
from entrypoints.console.places import sign_in_place
from entrypoints.console.refusals import Refused, refused
from entrypoints.console.visit import Visit
from entrypoints.console.visitors import device_of, entered_cookies, visitor_of

_OVER: Final = "This invitation is over: it was used, taken back, or is more than a week old. Ask for another one."


async def invitation(visit: Visit) -> Answer:
    """Who invites to what: to accept as whoever is signed in, to sign in first, or to set up an account."""
    offer = await visit.console.invitations.look(visit.ids["secret"])
    if offer is None:
        raise NotFound(_OVER)
    if visit.asked.method != "POST":
        return _page(visit, offer)
    try:
        if visit.signed_in is None:
            return await _newcomer(visit, offer)
        return await _accepted(visit, offer)
    except DomainError as error:
        # Somebody else may have been faster: what is there by now says what can be done yet.
        return _page(
            visit, await visit.console.invitations.look(visit.ids["secret"]) or offer, refused(error, visit.request_id)
        )


async def _accepted(visit: Visit, offer: Offer) -> Answer:
    """The person who is signed in becomes a member, and looks at the organisation."""
    await _join(visit, offer, visit.person.user)
    await visit.dependencies.sessions.look_at(visit.person.session, offer.invited.organisation.id, livemode=True)
    return visit.redirect("/console", _welcome(offer), cookies=[visit.console.cookies.look(token_hex(8))])


async def _newcomer(visit: Visit, offer: Offer) -> Answer:
    """An account is set up with name and password, and is a member's at once."""
    name, password = visit.form["name"], visit.form["password"]
    wanted, service, parts = offer.invited.invitation, visit.console.invitations, visit.dependencies
    user = await service.newcomer(wanted, name)
    await parts.accounts.passwords.set_up(user, password)
    user = await _join(visit, offer, user)
    entered = await parts.accounts.sign_in.enter(
        user, (Method.PASSWORD,), visitor_of(visit), device_of(visit), offer.invited.organisation.id
    )
    return visit.redirect("/console", _welcome(offer), cookies=entered_cookies(visit, entered))


async def _join(visit: Visit, offer: Offer, user: User) -> User:
    wanted, service = offer.invited.invitation, visit.console.invitations
    async with acting_in(visit, wanted.org, user.id, "invitations.accept") as tx:
        await service.accept(tx, user, wanted)
    return await service.verified(user)


def _welcome(offer: Offer) -> str:
    return f"Welcome. You are {offer.invited.invitation.role} at {offer.invited.organisation.name} now."


def _page(visit: Visit, offer: Offer, wrong: Refused | None = None) -> Answer:
    wanted = offer.invited.invitation
    me = visit.signed_in.user if visit.signed_in is not None else None
    return visit.render(
        "invitations/one.html",
        status=200 if wrong is None else wrong.status,
        refused=wrong,
        errors=wrong.fields if wrong is not None else {},
        offer=offer,
        wanted=wanted,
        me=me,
        fits=me is not None and me.email_key == wanted.email_key,
        place=f"{PAGE}{visit.ids['secret']}",
        sign_in=sign_in_place(f"{PAGE}{visit.ids['secret']}"),
        form=visit.form,
    )


PAGES: Final = (Page(f"{PAGE}<secret>", invitation, methods=("GET", "POST"), who="anybody"),)
