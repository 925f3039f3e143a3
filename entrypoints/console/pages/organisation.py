"""Pages of the organisation: members, plan and usage, exports, and settings."""

from typing import Any

from domain.kernel.errors import PermissionDenied
from domain.kernel.paging import Page, PageRequest
from domain.kernel.versions import SUPPORTED
from domain.orgs.model import OWNER, Invitation
from domain.orgs.ports import OrgStore
from domain.outbox.usecases import OutgoingMail
from domain.people.usecases.members import ROLES, MemberService, OrgSettings
from domain.sso.usecases.rules import SsoRules
from entrypoints.console.context import PageContext, Pages, Refused, sudo
from entrypoints.console.rendering import words
from entrypoints.console.request import beginning_of_day
from entrypoints.console.translation import N_, gettext
from entrypoints.http.exchange import Response

BASE = "/console/organisation"
MEMBERS = f"{BASE}/members"
_LIMIT = 20

members = Pages(MEMBERS, section="Organisation", scope="org:read")
pages = Pages(BASE, section="Organisation", scope="org:read")


@members.get(title=N_("Members"))
async def list_members(page: PageContext) -> Response:
    """Show the members and, to managers, the pending invitations."""
    async with page.read() as tx:
        listed = await tx[OrgStore].members(PageRequest(limit=_LIMIT, key=page.cursor))
        waiting: Page[Invitation] = Page((), False, None)
        if page.manages:
            request = PageRequest(limit=_LIMIT, key=page.query.get("invited") or None)
            waiting = await tx[OrgStore].invitations(tx.now, request)
    owns = page.principal.role == OWNER
    return page.render(
        "members/list.html",
        members=listed,
        people=await page.people.several([member.user for member in listed.items]),
        waiting=waiting,
        owns=owns,
        roles=ROLES if owns else ROLES[1:],
        form=page.form,
    )


@members.post("/invite", again=list_members)
@sudo(MEMBERS)
async def invite(page: PageContext) -> Response:
    """Invite a person by email."""
    service = page.console.invitations
    email, role = page.form["email"], page.form.get("role", "viewer")
    made, secret = await page.run("invitations.create", service.invite, email, role)
    await service.send(made, secret, page.principal.organisation.name)
    if page.dependencies[OutgoingMail].sends:
        notice = gettext("Invitation sent to %(email)s. It expires in one week.", email=made.email)
    else:
        notice = gettext(
            "Invitation for %(email)s created, but email isn't set up. Ask the operator for the link, which expires in one week.",
            email=made.email,
        )
    return page.redirect(MEMBERS, notice)


@members.post("/invitations/<invitation>/take-back")
async def revoke_invitation(page: PageContext) -> Response:
    """Revoke an invitation."""
    await page.run("invitations.revoke", page.console.invitations.take_back, page.ids["invitation"])
    return page.redirect(MEMBERS, gettext("Invitation revoked"))


@members.post("/<member>/role", again=list_members)
@sudo(MEMBERS)
async def change_role(page: PageContext) -> Response:
    """Change the role of a member."""
    member, role = page.ids["member"], page.form["role"]
    changed = await page.run("members.change_role", MemberService().change_role, member, role)
    # Only owners may sign in without an enforced provider, so a former owner's sessions end.
    await page.dependencies[SsoRules].barred(changed.org, (changed.user,))
    return page.redirect(
        MEMBERS, gettext("Role of %(email)s changed to %(role)s", email=changed.email, role=words(changed.role))
    )


@members.form("/<member>/remove")
@sudo(MEMBERS)
async def remove_member(page: PageContext) -> Response:
    """Ask for confirmation, and remove the member or leave the organisation."""
    user = await page.people.get(page.ids["member"])
    async with page.read() as tx:
        member = await tx[OrgStore].member(user.email) if user is not None else None
    if user is None or member is None:
        raise Refused(
            {"status": 404, "title": gettext("Not found"), "detail": gettext("The organisation has no such member.")}
        )
    leaves = user.id == page.person.user.id
    if not page.submitted:
        return page.render("members/remove.html", user=user, member=member, leaves=leaves)
    service = MemberService()
    removed = await page.run("members.remove", *((service.leave,) if leaves else (service.remove, user.id)))
    # The tokens are already invalid; this only removes them from lists, so a crash before it does no harm.
    await page.sessions.end_tokens(removed.user, removed.org)
    if leaves:
        return page.redirect("/console/organisations", gettext("You left the organisation."), tone="info")
    return page.redirect(MEMBERS, gettext("%(email)s removed", email=removed.email))


@pages.get("/usage", scope="usage:read", title=N_("Plan and usage"))
async def show_usage(page: PageContext) -> Response:
    """Show each meter with its share of the plan, the last 30 days and the times its thresholds were reached."""
    usage, series = await page.api.get("/v1/usage"), await page.api.get("/v1/usage/series")
    return page.render(
        "organisation/usage.html",
        **usage,
        days={one["meter"]: [(day["day"], day["used"]) for day in one["days"]] for one in series["series"]},
        plan=page.principal.organisation.plan,
        plans=(await page.api.get("/v1/plans"))["data"] if page.may("org:read") else [],
    )


show_exports = pages.show(
    "/exports",
    "organisation/exports.html",
    limit=_LIMIT,
    read={"found": "/v1/exports"},
    scope="exports:read",
    title=N_("Exports"),
)


@pages.post("/exports", scope="exports:write", again=show_exports)
async def start_export(page: PageContext) -> Response:
    """Start an export."""
    body: dict[str, Any] = {"kind": page.form.get("kind", "products")}
    if (since := page.form.get("since")) and body["kind"] == "products":
        body["filters"] = {"updated_since": beginning_of_day(since)}
    await page.api.post("/v1/exports", body)
    return page.redirect(f"{BASE}/exports", gettext("Export started. You can leave this page."), tone="info")


@pages.form("/settings", title=N_("Settings"))
async def change_settings(page: PageContext) -> Response:
    """Show and change the organisation's name and default API version."""
    if page.sent and not page.manages:
        raise PermissionDenied(gettext("Only owners and admins can change the organisation's settings."))
    if page.submitted:
        service, version = OrgSettings(SUPPORTED.dates), page.form.get("api_version") or None
        await page.run("orgs.change", service.change, page.form.get("name"), version)
        return page.redirect(f"{BASE}/settings", gettext("Settings saved"))
    async with page.read() as tx:
        own = await tx[OrgStore].own()
    given = page.form if page.sent else {"name": own.name, "api_version": own.api_version or ""}
    return page.render("organisation/settings.html", own=own, given=given, versions=list(reversed(SUPPORTED.dates)))
