"""The organisation: its plan and what was used of it, its exports, what it is called, and its members."""

from datetime import date
from typing import Any, Final

from domain.kernel.errors import PermissionDenied
from domain.kernel.paging import Page, PageRequest
from domain.kernel.versions import SUPPORTED
from domain.orgs.model import MANAGERS, OWNER, Invitation
from domain.orgs.ports import OrgStore
from domain.people.usecases.members import ROLES, MemberService
from domain.people.usecases.organisations import OrgSettings
from entrypoints.console.context import PageContext, Pages, Refused, sudo
from entrypoints.console.request import beginning_of_day
from entrypoints.http.exchange import Response

BASE: Final = "/console/organisation"
MEMBERS: Final = f"{BASE}/members"
_LIMIT: Final = 20

members: Final = Pages(MEMBERS, section="Organisation", scope="org:read")
pages: Final = Pages(BASE, section="Organisation", scope="org:read")


@members.get(title="Members")
async def list_members(page: PageContext, refused: Refused | None = None) -> Response:
    """Show members, and to managers the invitations that wait."""
    manages = page.principal.role in MANAGERS
    async with page.read() as tx:
        listed = await tx[OrgStore].members(PageRequest(limit=_LIMIT, key=page.cursor))
        waiting: Page[Invitation] = Page((), False, None)
        if manages:
            asked = PageRequest(limit=_LIMIT, key=page.query.get("invited") or None)
            waiting = await tx[OrgStore].invitations(tx.now, asked)
    owns = page.principal.role == OWNER
    return page.render(
        "members/list.html",
        refused=refused,
        members=listed,
        people=await page.dependencies.people.several([member.user for member in listed.items]),
        waiting=waiting,
        manages=manages,
        owns=owns,
        roles=ROLES if owns else ROLES[1:],
        form=page.form,
    )


@members.post("/invite", again=list_members)
@sudo(MEMBERS)
async def invite(page: PageContext) -> Response:
    """Invite somebody by mail."""
    service = page.console.invitations
    async with page.transaction("invitations.create", livemode=True) as tx:
        made, secret = await service.invite(tx, page.form["email"], page.form.get("role", "viewer"))
    await service.send(made, secret, page.principal.organisation.name)
    sent = "is on its way" if page.dependencies.outgoing_mail.sends else "waits in the operator's outbox"
    return page.redirect(MEMBERS, f"The invitation for {made.email} {sent}. It is good for a week.")


@members.post("/invitations/<invitation>/take-back")
async def revoke_invitation(page: PageContext) -> Response:
    """End an invitation."""
    async with page.transaction("invitations.revoke", livemode=True) as tx:
        await page.console.invitations.take_back(tx, page.ids["invitation"])
    return page.redirect(MEMBERS, "The invitation is taken back; its link leads nowhere any more.")


@members.post("/<member>/role", again=list_members)
@sudo(MEMBERS)
async def change_role(page: PageContext) -> Response:
    """Give a member another role."""
    async with page.transaction("members.change_role", livemode=True) as tx:
        changed = await MemberService().change_role(tx, page.ids["member"], page.form["role"])
    # An owner may come in beside the provider; who is none any more may not.
    await page.dependencies.sso.rules.barred(changed.org, (changed.user,))
    return page.redirect(MEMBERS, f"{changed.email} is {changed.role} now.")


@members.form("/<member>/remove")
@sudo(MEMBERS)
async def remove_member(page: PageContext) -> Response:
    """Ask once more, then take a member away; oneself, to leave."""
    user, refused = await page.dependencies.people.get(page.ids["member"]), None
    async with page.read() as tx:
        member = await tx[OrgStore].member(user.email) if user is not None else None
    if user is None or member is None:
        detail = "The organisation has no such member."
        raise Refused({"status": 404, "code": "not_found", "title": "Not found", "detail": detail})
    leaves = user.id == page.person.user.id
    if page.sent:
        try:
            async with page.transaction("members.remove", livemode=True) as tx:
                removed = await (MemberService().leave(tx) if leaves else MemberService().remove(tx, user.id))
        except Refused as error:
            refused = error
        else:
            # They count no more as it is; this has them gone from lists, and is no loss if the process dies before it.
            await page.dependencies.sessions.end_tokens(removed.user, removed.org)
            if leaves:
                return page.redirect("/console/organisations", "You have left the organisation.", tone="info")
            return page.redirect(MEMBERS, f"{removed.email} belongs to the organisation no more.")
    return page.render("members/remove.html", refused=refused, user=user, member=member, leaves=leaves)


@pages.get("/usage", scope="usage:read", title="Plan and usage")
async def show_usage(page: PageContext) -> Response:
    """Show each meter with its share of the plan, its last thirty days, and when thresholds were reached."""
    usage, series = await page.api.get("/v1/usage"), await page.api.get("/v1/usage/series")
    days = {
        one["meter"]: [(date.fromisoformat(day["day"]), day["used"]) for day in one["days"]] for one in series["series"]
    }
    return page.render(
        "organisation/usage.html",
        period=usage["period"],
        meters=usage["meters"],
        days=days,
        plan=page.principal.organisation.plan,
        plans=(await page.api.get("/v1/plans"))["data"] if page.may("org:read") else [],
    )


@pages.get("/exports", scope="exports:read", title="Exports")
async def list_exports(page: PageContext, refused: Refused | None = None) -> Response:
    """Show all of them, newest first."""
    found = await page.api.get("/v1/exports", limit=20, starting_after=page.cursor)
    moving = any(one["status"] in ("pending", "running") for one in found["data"])
    may_start = page.may("exports:write")
    return page.render("organisation/exports.html", refused=refused, found=found, moving=moving, may_start=may_start)


@pages.post("/exports", scope="exports:write", again=list_exports)
async def start_export(page: PageContext) -> Response:
    """Start one."""
    body: dict[str, Any] = {"kind": page.form.get("kind", "products")}
    if (since := page.form.get("since")) and body["kind"] == "products":
        body["filters"] = {"updated_since": beginning_of_day(since)}
    await page.api.post("/v1/exports", body)
    return page.redirect(f"{BASE}/exports", "The export is being written. You can leave this page.", tone="info")


@pages.get("/settings", title="Settings")
async def show_settings(page: PageContext, refused: Refused | None = None) -> Response:
    """Show what the organisation is called, and which API version requests get that name none."""
    async with page.read() as tx:
        own = await tx[OrgStore].own()
    given = page.form if page.sent else {"name": own.name, "api_version": own.api_version or ""}
    versions, manages = list(reversed(SUPPORTED.dates)), page.principal.role in MANAGERS
    return page.render(
        "organisation/settings.html", refused=refused, own=own, given=given, versions=versions, manages=manages
    )


@pages.post("/settings", again=show_settings)
async def save_settings(page: PageContext) -> Response:
    """Change them."""
    if page.principal.role not in MANAGERS:
        raise PermissionDenied("Only owners and admins change the organisation's settings.")
    async with page.transaction("orgs.change", livemode=True) as tx:
        version = page.form.get("api_version") or None
        await OrgSettings(SUPPORTED.dates).change(tx, page.form.get("name"), version)
    return page.redirect(f"{BASE}/settings", "Saved.")
