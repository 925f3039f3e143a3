"""Who belongs to the organisation: members with their roles, and invitations that wait."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from domain.kernel.paging import Page as Listed
from domain.kernel.paging import PageRequest
from domain.orgs.model import MANAGERS, OWNER, Invitation, Member
from domain.orgs.ports import OrgStore
from domain.people.model import User
from domain.people.usecases.members import ROLES, MemberService
from entrypoints.console.acting import acting
from entrypoints.console.page import Answer, Entry, Page
from entrypoints.console.refusals import Refused
from entrypoints.console.sudo import sudo
from entrypoints.console.visit import Visit

PLACE: Final = "/console/organisation/members"
MEANINGS: Final = {
    "owner": "Everything, owners and the organisation itself included",
    "admin": "Everything but making owners",
    "developer": "See all; keys, webhooks, exports, sources",
    "editor": "See all; change products, sources, what is published",
    "billing": "Subscription, invoices and usage alone",
    "viewer": "See products, sources, exports",
}
_LIMIT: Final = 20
_SCOPE: Final = "org:read"


async def members(visit: Visit) -> Answer:
    """Members, and for managers the invitations that wait."""
    return await _shown(visit)


async def _shown(visit: Visit, refused: Refused | None = None) -> Answer:
    request = PageRequest(limit=_LIMIT, key=visit.query.get("cursor") or None)
    async with visit.reading() as tx:
        page = await tx[OrgStore].members(request)
        waiting: Listed[Invitation] = Listed((), False, None)
        if _manages(visit):
            waiting = await tx[OrgStore].invitations(
                tx.now, PageRequest(limit=_LIMIT, key=visit.query.get("invited") or None)
            )
    people = await _people(visit, page)
    return visit.render(
        "members/list.html",
        status=200 if refused is None else refused.status,
        refused=refused,
        errors=refused.fields if refused is not None else {},
        members=page.items,
        found={"has_more": page.has_more, "next_cursor": page.next_key},
        people=people,
        waiting=waiting.items,
        waiting_found={"has_more": waiting.has_more, "next_cursor": waiting.next_key},
        manages=_manages(visit),
        owns=visit.principal.role == OWNER,
        roles=[(role, MEANINGS[role]) for role in _given(visit)],
        form=visit.form,
        me=visit.person.user.id,
    )


def _given(visit: Visit) -> Sequence[str]:
    """The roles that the visitor may give."""
    return ROLES if visit.principal.role == OWNER else ROLES[1:]


def _manages(visit: Visit) -> bool:
    return visit.principal.role in MANAGERS


async def _people(visit: Visit, page: Listed[Member]) -> Mapping[str, User]:
    return await visit.dependencies.people.several([member.user for member in page.items])


@sudo(PLACE)
async def invite(visit: Visit) -> Answer:
    """Invite somebody by mail."""
    service = visit.console.invitations
    try:
        async with acting(visit, "invitations.create", livemode=True) as tx:
            made, secret = await service.invite(tx, visit.form["email"], visit.form.get("role", "viewer"))
    except Refused as error:
        return await _shown(visit, error)
    await service.send(made, secret, visit.principal.organisation.name)
    sent = "is on its way" if visit.dependencies.outgoing_mail.sends else "waits in the operator's outbox"
    return visit.redirect(PLACE, f"The invitation for {made.email} {sent}. It is good for a week.")


async def take_back(visit: Visit) -> Answer:
    """End an invitation."""
    async with acting(visit, "invitations.revoke", livemode=True) as tx:
        await visit.console.invitations.take_back(tx, visit.ids["invitation"])
    return visit.redirect(PLACE, "The invitation is taken back; its link leads nowhere any more.")


@sudo(PLACE)
async def change_role(visit: Visit) -> Answer:
    """Give a member another role."""
    try:
        async with acting(visit, "members.change_role", livemode=True) as tx:
            changed = await MemberService().change_role(tx, visit.ids["member"], visit.form["role"])
    except Refused as error:
        return await _shown(visit, error)
    # An owner may come in beside the provider; who is none any more may not.
    await visit.dependencies.sso.rules.barred(changed.org, (changed.user,))
    return visit.redirect(PLACE, f"{changed.email} is {changed.role} now.")


@sudo(PLACE)
async def remove(visit: Visit) -> Answer:
    """Ask once more, then take a member away; oneself, to leave."""
    member = await _member(visit)
    leaves = member.get("user") == visit.person.user.id
    if visit.asked.method != "POST":
        return visit.render("members/remove.html", member=member, leaves=leaves, refused=None)
    try:
        async with acting(visit, "members.remove", livemode=True) as tx:
            service = MemberService()
            removed = await (service.leave(tx) if leaves else service.remove(tx, visit.ids["member"]))
    except Refused as error:
        return visit.render("members/remove.html", status=error.status, member=member, leaves=leaves, refused=error)
    # They count no more as it is; this has them gone from lists, and is no loss if the process dies before it.
    await visit.dependencies.sessions.end_tokens(removed.user, removed.org)
    if leaves:
        return visit.redirect("/console/organisations", "You have left the organisation.", tone="info")
    return visit.redirect(PLACE, f"{removed.email} belongs to the organisation no more.")


async def _member(visit: Visit) -> Mapping[str, Any]:
    """What the page that asks tells of them; nothing for who is none."""
    user = await visit.dependencies.people.get(visit.ids["member"])
    async with visit.reading() as tx:
        found = await tx[OrgStore].member(user.email) if user is not None else None
    if found is None or user is None:
        raise Refused(
            {"status": 404, "code": "not_found", "title": "Not found", "detail": "The organisation has no such member."}
        )
    return {"user": user.id, "name": user.called, "email": found.email, "role": found.role}


PAGES: Final = (
    Page(PLACE, members, scope=_SCOPE, menu=Entry("Organisation", "Members")),
    Page(f"{PLACE}/invite", invite, methods=("POST",), scope=_SCOPE, menu="Organisation"),
    Page(
        f"{PLACE}/invitations/<invitation>/take-back", take_back, methods=("POST",), scope=_SCOPE, menu="Organisation"
    ),
    Page(f"{PLACE}/<member>/role", change_role, methods=("POST",), scope=_SCOPE, menu="Organisation"),
    Page(f"{PLACE}/<member>/remove", remove, methods=("GET", "POST"), scope=_SCOPE, menu="Organisation"),
)
