"""Pages of the organisation: members, plan and usage, exports, and settings."""

from collections.abc import Iterator, Mapping
from typing import Any

from domain.kernel.errors import PermissionDenied
from domain.kernel.paging import Page, PageRequest
from domain.kernel.versions import SUPPORTED
from domain.orgs.model import OWNER, Invitation
from domain.orgs.ports import OrgStore
from domain.outbox.usecases import OutgoingMail
from domain.people.usecases.members import ROLES, MemberService, OrgSettingsService
from domain.saved_views.usecases.service import SavedViewService
from domain.sso.usecases.rules import SsoRules
from entrypoints.console.context import OperationRefused, PageContext, Pages, require_recent_confirmation
from entrypoints.console.pages.catalogue_exports import describe_filters
from entrypoints.console.pages.sources import find_source_names
from entrypoints.console.rendering import format_words
from entrypoints.console.request import convert_to_day_start
from entrypoints.console.translation import N_, gettext
from entrypoints.http.exchange import Response

BASE_PATH = "/console/organisation"
MEMBERS_PATH = f"{BASE_PATH}/members"
_PAGE_SIZE = 20

member_pages = Pages(MEMBERS_PATH, section="Organisation", scope="org:read")
pages = Pages(BASE_PATH, section="Organisation", scope="org:read")


@member_pages.register_get(title=N_("Members"))
async def list_members(page: PageContext) -> Response:
    """Show the members of the organisation; owners and admins also see the pending invitations."""
    async with page.open_read_transaction() as tx:
        listed = await tx[OrgStore].list_members(PageRequest(limit=_PAGE_SIZE, key=page.cursor))
        invitations: Page[Invitation] = Page((), False, None)
        if page.is_manager:
            request = PageRequest(limit=_PAGE_SIZE, key=page.query.get("invited") or None)
            invitations = await tx[OrgStore].list_invitations(tx.now, request)
    is_owner = page.principal.role == OWNER
    return page.render(
        "members/list.html",
        members=listed,
        people=await page.people.get_many([member.user for member in listed.items]),
        invitations=invitations,
        is_owner=is_owner,
        roles=ROLES if is_owner else ROLES[1:],
        form=page.form,
    )


@member_pages.register_post("/invite", error_view=list_members)
@require_recent_confirmation(MEMBERS_PATH)
async def invite_member(page: PageContext) -> Response:
    """Invite a person to the organisation by email."""
    service = page.console.invitations
    email, role = page.form["email"], page.form.get("role", "viewer")
    invitation, secret = await page.run_use_case("invitations.create", service.invite, email, role)
    await service.send(invitation, secret, page.principal.organisation.name)
    if page.dependencies[OutgoingMail].sends_messages:
        notice = gettext("Invitation sent to %(email)s. It expires in one week.", email=invitation.email)
    else:
        notice = gettext(
            "Invitation for %(email)s created, but email isn't set up. Ask the operator for the link, which expires in one week.",
            email=invitation.email,
        )
    return page.redirect(MEMBERS_PATH, notice)


@member_pages.register_post("/invitations/<invitation>/revoke")
async def revoke_invitation(page: PageContext) -> Response:
    """Revoke an invitation."""
    await page.run_use_case("invitations.revoke", page.console.invitations.revoke, page.path_parameters["invitation"])
    return page.redirect(MEMBERS_PATH, gettext("Invitation revoked"))


@member_pages.register_post("/<member>/role", error_view=list_members)
@require_recent_confirmation(MEMBERS_PATH)
async def change_role(page: PageContext) -> Response:
    """Change the role of a member."""
    member, role = page.path_parameters["member"], page.form["role"]
    changed = await page.run_use_case("members.change_role", MemberService().change_role, member, role)
    # Only owners may sign in without an enforced provider, so a former owner's sessions end.
    await page.dependencies[SsoRules].revoke_barred(changed.org, (changed.user,))
    return page.redirect(
        MEMBERS_PATH,
        gettext("Role of %(email)s changed to %(role)s", email=changed.email, role=format_words(changed.role)),
    )


@member_pages.register_form("/<member>/remove")
@require_recent_confirmation(MEMBERS_PATH)
async def remove_member(page: PageContext) -> Response:
    """Show the confirmation page; if it is submitted, remove the member. Members may also remove themselves."""
    user = await page.people.get(page.path_parameters["member"])
    async with page.open_read_transaction() as tx:
        member = await tx[OrgStore].find_member(user.email) if user is not None else None
    if user is None or member is None:
        raise OperationRefused(
            {"status": 404, "title": gettext("Not found"), "detail": gettext("The organisation has no such member.")}
        )
    is_self = user.id == page.person.user.id
    if not page.must_process:
        return page.render("members/remove.html", user=user, member=member, is_self=is_self)
    service = MemberService()
    removed = await page.run_use_case("members.remove", *((service.leave,) if is_self else (service.remove, user.id)))
    # The tokens are already invalid; this only removes them from lists, so a crash before it does no harm.
    await page.sessions.revoke_tokens(removed.user, removed.org)
    for livemode in (True, False):  # a transaction writes rows of one mode only
        async with page.open_transaction("members.remove", livemode=livemode) as tx:
            await SavedViewService().delete_of_person(tx, removed.user)
    if is_self:
        return page.redirect("/console/organisations", gettext("You left the organisation."), tone="info")
    return page.redirect(MEMBERS_PATH, gettext("%(email)s removed", email=removed.email))


@pages.register_get("/usage", scope="usage:read", title=N_("Usage"))
async def show_usage(page: PageContext) -> Response:
    """Show the plan and the usage by meter: share of the quota, daily values, and times when thresholds were reached."""
    usage, series = await page.api.get("/v1/usage"), await page.api.get("/v1/usage/series")
    return page.render(
        "organisation/usage.html",
        **usage,
        days={one["meter"]: [(day["day"], day["used"]) for day in one["days"]] for one in series["series"]},
        plan=page.principal.organisation.plan,
    )


@pages.register_get("/exports", scope="exports:read", title=N_("Exports"))
async def show_exports(page: PageContext) -> Response:
    """Show the exports with their filters and files."""
    results = await page.api.get("/v1/exports", limit=_PAGE_SIZE, starting_after=page.cursor)
    names = await find_source_names(page)
    return page.render(
        "organisation/exports.html",
        results=results,
        describe=lambda filters: describe_filters(_list_filter_texts(filters), names),
    )


def _list_filter_texts(filters: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield name and text of each filter of an export, except the time, which is part of its title."""
    for name, value in filters.items():
        if name == "id":
            yield name, ",".join(value) if "id_count" not in filters else "," * (filters["id_count"] - 1)
        elif name not in ("updated_since", "id_count"):
            yield name, ",".join(value) if isinstance(value, list) else str(value)


@pages.register_post("/exports", scope="exports:write", error_view=show_exports)
async def start_export(page: PageContext) -> Response:
    """Start an export of products or all data."""
    body: dict[str, Any] = {"kind": page.form.get("kind", "products")}
    if (since := page.form.get("since")) and body["kind"] == "products":
        body["filters"] = {"updated_since": convert_to_day_start(since)}
    await page.api.post("/v1/exports", body)
    return page.redirect(f"{BASE_PATH}/exports", gettext("Export started. You can leave this page."), tone="info")


@pages.register_form("/settings", title=N_("Settings"))
async def change_settings(page: PageContext) -> Response:
    """Show the form with the organisation's name and default API version; if it is submitted, change them."""
    if page.is_post and not page.is_manager:
        raise PermissionDenied(gettext("Only owners and admins can change the organisation's settings."))
    if page.must_process:
        service, version = OrgSettingsService(SUPPORTED.dates), page.form.get("api_version") or None
        await page.run_use_case("orgs.change", service.change, page.form.get("name"), version)
        return page.redirect(f"{BASE_PATH}/settings", gettext("Settings saved"))
    async with page.open_read_transaction() as tx:
        organisation = await tx[OrgStore].get_organisation()
    form = page.form if page.is_post else {"name": organisation.name, "api_version": organisation.api_version or ""}
    return page.render(
        "organisation/settings.html", organisation=organisation, form=form, versions=list(reversed(SUPPORTED.dates))
    )
