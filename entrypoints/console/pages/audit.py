"""The audit log as people read it: who did what, the fields before and after, and taking it back with a look first."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from domain.audit.ports import AuditLog
from domain.kernel.errors import NotFound
from entrypoints.console.answers import Fields
from entrypoints.console.differences import Difference, differences, lines_of
from entrypoints.console.formatting import words
from entrypoints.console.moments import beginning_of_day
from entrypoints.console.page import Answer, Entry, Page
from entrypoints.console.portions import portion, shortened
from entrypoints.console.refusals import Refused
from entrypoints.console.visit import Visit

PLACE: Final = "/console/organisation/audit"
_PAGE: Final = 20
_ROOM: Final = 16_000
"""Bytes of a page that all differences of a list may fill."""
_VALUE: Final = 300
"""Bytes of a page that a value may fill beside others."""
_NESTED: Final = 2_000
"""Lines that nested values of an entry may open up to."""
_WHOLE: Final = 12_000
"""Bytes of a page that it may fill where an entry is shown alone."""
_KINDS: Final = {"api_key": "API key", "app": "App", "agent": "Agent", "service": "Joinery"}
_TITLES: Final = {
    "members.add": "Add a member",
    "members.change_role": "Change a member's role",
    "members.remove": "Remove a member",
    "members.leave": "Leave the organisation",
    "invitations.create": "Invite somebody",
    "invitations.accept": "Accept an invitation",
    "keys.create": "Make an API key",
    "keys.revoke": "Revoke an API key",
    "tokens.create": "Make a token for a person",
    "sessions.link": "Make a link to sign in",
    "orgs.change": "Change the organisation's settings",
    "orgs.change_plan": "Change the plan",
    "matching.match": "Match items",
    "matching.rematch": "Match everything anew",
    "runs.execute": "Read a source",
    "exports.carry_out": "Write an export",
    "sso.set": "Set single sign-on up",
    "sso.sign_in": "Sign in by single sign-on",
    "sso.passed_by": "Sign in beside single sign-on",
    "sso.enforce": "Enforce single sign-on",
    "sso.relax": "Stop enforcing single sign-on",
    "sso.enable": "Turn single sign-on on",
    "sso.disable": "Turn single sign-on off",
    "sso.remove": "Remove single sign-on",
    "sso.add_domain": "Name a domain",
    "sso.check_domain": "Look at a domain",
    "sso.remove_domain": "Remove a domain",
}
"""What is no operation of the API: what people do in the console, operators at the command line, and the service by itself."""
_OBJECTS: Final = (
    "source", "mapping", "category_rules", "product", "variant", "offer", "match_pair", "merge", "webhook_endpoint", "export",
    "member", "invitation", "api_key", "sso_connection", "sso_domain", "organisation",
)  # fmt: skip


async def show(visit: Visit) -> Answer:
    """The entries that pass the filters."""
    given = visit.query.given("object", "action", "target", "actor", "undoable", "since", "until", "cursor")
    refusal = None
    try:
        found = await visit.api.get("/v1/audit-events", limit=_PAGE, **_asked(given))
    except Refused as error:
        found, refusal = {"data": [], "has_more": False}, error
    entries = found["data"]
    return visit.render(
        "organisation/audit.html",
        status=refusal.status if refusal else 200,
        found=found,
        acts=_acts([_entry(visit, one, _ROOM // len(entries)) for one in entries]),
        people=await _people(visit, entries),
        given=given,
        objects=[(one, words(one)) for one in _OBJECTS],
        place=PLACE,
        refusal=refusal,
        may_undo=visit.may("audit:write"),
    )


async def entry(visit: Visit) -> Answer:
    """One entry, with every field before and after."""
    async with visit.reading() as tx:
        found = await tx[AuditLog].get(visit.ids["id"])
    if found is None:
        raise NotFound
    change = found.change
    every = differences(change.before, change.after, _WHOLE, len(change.before) + len(change.after) + _NESTED)
    return visit.render(
        "organisation/entry.html",
        entry=found,
        title=_title(visit, found.context.operation),
        lines=lines_of(every, visit.query.number("from"), _WHOLE, _ROOM),
        place=PLACE,
    )


async def preview(visit: Visit) -> Answer:
    """What undoing would change, without doing it."""
    id_ = visit.ids["id"]
    refusal, told = None, None
    try:
        told = await visit.api.post(f"/v1/audit-events/{id_}/undo", dry_run="explain")
    except Refused as error:
        if error.status == 404:
            raise
        refusal = error
    return visit.render("organisation/undo.html", id=id_, preview=_told(told), place=PLACE, refusal=refusal)


async def undo(visit: Visit) -> Answer:
    """Take it back."""
    id_ = visit.ids["id"]
    try:
        await visit.api.post(f"/v1/audit-events/{id_}/undo")
    except Refused as error:
        return visit.render(
            "organisation/undo.html", status=error.status, id=id_, preview=None, place=PLACE, refusal=error
        )
    return visit.redirect(PLACE, "Done: everything that it had changed is as it was before.")


def _asked(given: Mapping[str, str]) -> dict[str, str]:
    """The operation's parameters; days are whole days (UTC), the last one included. What is no day is told as it is."""
    asked = {name: given[name] for name in ("object", "action", "target", "actor", "undoable") if name in given}
    if "cursor" in given:
        asked["starting_after"] = given["cursor"]
    for name in ("since", "until"):
        if name in given:
            asked[name] = beginning_of_day(given[name], later=int(name == "until"))
    return asked


def _entry(visit: Visit, entry: Mapping[str, Any], room: int) -> dict[str, Any]:
    """An entry with what it is called, and as many of its differences as there is room for."""
    before, after = entry["before"], entry["after"]
    name = after.get("name") or before.get("name") or after.get("email") or before.get("email")
    return Fields(
        entry,
        title=_title(visit, entry["action"]),
        name=shortened(name, 200) if isinstance(name, str) else "",
        differences=lines_of(differences(before, after), 0, min(_VALUE, room // 2), room),
        kind=_KINDS.get(entry["actor"]["kind"], ""),
    )


def _title(visit: Visit, action: str) -> str:
    """What people call an operation, of the API or not."""
    table = visit.console.pipeline.table.operations
    return next((one.summary for one in table if one.id == action), None) or _TITLES.get(action) or words(action)


def _acts(entries: Sequence[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """What was changed at once, together: neighbours of one act, the first of which stands for it."""
    found: list[list[dict[str, Any]]] = []
    for entry in entries:
        if found and found[-1][0]["act"] == entry["act"]:
            found[-1].append(entry)
        else:
            found.append([entry])
    return found


def _told(preview: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if preview is None:
        return None
    shown = portion(preview["changes"], 0, _PAGE)
    changes = [
        {**change, "differences": lines_of(_differing(change["fields"]), 0, _VALUE, _ROOM // len(shown.items))}
        for change in shown.items
    ]
    return {**preview, "changes": changes, "further": shown.total - len(changes)}


def _differing(fields: Sequence[Mapping[str, Any]]) -> list[Difference]:
    return differences(
        {field["path"]: field["old"] for field in fields if field.get("old") is not None},
        {field["path"]: field["new"] for field in fields if field.get("new") is not None},
    )


async def _people(visit: Visit, entries: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """What to call the people who acted, by id."""
    ids = {one["actor"]["id"] for one in entries if one["actor"]["kind"] == "user"}
    ids |= {one["actor"]["on_behalf_of"] for one in entries if one["actor"].get("on_behalf_of")}
    found = [await visit.dependencies.people.get(id_) for id_ in sorted(ids)]
    return {user.id: user.name or user.email for user in found if user is not None}


PAGES: Final = (
    Page(PLACE, show, scope="audit:read", menu=Entry("Organisation", "Audit log")),
    Page(f"{PLACE}/<id>", entry, scope="audit:read", menu="Organisation"),
    Page(f"{PLACE}/<id>/undo", preview, scope="audit:write", menu="Organisation"),
    Page(f"{PLACE}/<id>/undo", undo, methods=("POST",), scope="audit:write", menu="Organisation"),
)
