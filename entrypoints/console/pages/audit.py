"""Pages of the audit log: entries with their fields before and after, and undo with a preview."""

import json
from collections.abc import Mapping
from itertools import groupby
from typing import Any, NamedTuple

from domain.audit.ports import AuditLog
from domain.kernel.errors import NotFound
from entrypoints.console.context import PageContext, Pages, Refused
from entrypoints.console.rendering import Portion, label
from entrypoints.console.request import beginning_of_day
from entrypoints.console.translation import N_, gettext
from entrypoints.http.exchange import Response

PLACE = "/console/organisation/audit"
_ENTRIES = 20
_FIELDS = 10
"""Number of fields that the list shows of an entry."""
_VALUE = 100
"""Number of characters that the list shows of a value."""

pages = Pages(PLACE, section="Organisation", scope="audit:read")


class Difference(NamedTuple):
    """A field with its dotted path and its values before and after; None if it was absent."""

    path: str
    old: str | None
    new: str | None


def differences(before: Mapping[str, Any], after: Mapping[str, Any], longest: int = 600) -> list[Difference]:
    """Return the fields that differ, in order.

    Nested objects are flattened up to four levels; lists are compared and shown as a whole.

    Args:
        before: The object before the change.
        after: The object after the change.
        longest: Number of characters after which a value is cut.

    """
    old, new = _flat(before), _flat(after)
    paths = [path for path in old | new if path not in old or path not in new or old[path] != new[path]]
    return [Difference(path, *(_written(side.get(path), longest) for side in (old, new))) for path in paths]


def _flat(value: Mapping[str, Any], prefix: str = "", depth: int = 1) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, item in value.items():
        deeper = isinstance(item, Mapping) and item and depth < 4
        found |= _flat(item, f"{prefix}{name}.", depth + 1) if deeper else {f"{prefix}{name}": item}
    return found


def _written(value: Any, longest: int) -> str | None:
    match value:
        case None:
            return None
        case str():
            text = value or gettext("(empty)")
        case bool():
            text = gettext("yes") if value else gettext("no")
        case list() if all(isinstance(one, str | int) for one in value):
            text = ", ".join(map(str, value)) or gettext("(none)")
        case _:
            text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= longest else text[:longest] + "…"


def _shown(before: Mapping[str, Any], after: Mapping[str, Any]) -> Portion[Difference]:
    return Portion.of(differences(before, after, _VALUE), 0, _FIELDS)


def _change_title(object: str, action: str) -> str:
    """Return the heading of a change: the kind of the object and what happened to it."""
    kind = label(object, "audited")
    match action:
        case "create":
            return gettext("%(object)s created", object=kind)
        case "delete":
            return gettext("%(object)s deleted", object=kind)
        case _:
            return gettext("%(object)s changed", object=kind)


@pages.get(title=N_("Audit log"))
async def list_entries(page: PageContext) -> Response:
    """Show the entries that match the filters; days are in UTC, and the last day is included."""
    filters = page.query.given("object", "action", "target", "actor", "undoable")
    given = filters | page.query.given("since", "until", "cursor")
    days = {name: beginning_of_day(given[name], int(name == "until")) for name in ("since", "until") if name in given}
    found = await page.filtered("/v1/audit-events", _ENTRIES, filters | days)
    actors = [one["actor"] for one in found["data"]]
    ids = {one["id"] for one in actors if one["kind"] == "user"} | {one.get("on_behalf_of") for one in actors} - {None}
    people = await page.people.several(ids) if ids else {}
    return page.render(
        "organisation/audit.html",
        found=found,
        # Changes of one act are shown together; the first entry represents them.
        acts=[list(act) for _, act in groupby(found["data"], lambda one: one["act"])],
        title_of=lambda action: _title(page, action),
        change_title=_change_title,
        shown=_shown,
        people={id: user.name or user.email for id, user in people.items()},
        given=given,
    )


def _title(page: PageContext, action: str) -> str:
    """Return the title of an operation, which need not be one of the API."""
    table = page.console.pipeline.table.operations
    return next((one.summary for one in table if one.id == action), None) or label(action, "acts")


@pages.get("/<id>")
async def show_entry(page: PageContext) -> Response:
    """Show an entry with every field before and after."""
    async with page.read() as tx:
        entry = await tx[AuditLog].get(page.ids["id"])
    if entry is None:
        raise NotFound
    every = differences(entry.change.before, entry.change.after, 10_000)
    lines = Portion.of(every, page.query.number("from"), 200)
    return page.render(
        "organisation/entry.html",
        entry=entry,
        title=_title(page, entry.context.operation),
        change_title=_change_title,
        lines=lines,
    )


async def show_refusal(page: PageContext) -> Response:
    """Show why the entry cannot be undone."""
    return page.render("organisation/undo.html", preview=None, changes=[])


@pages.get("/<id>/undo", scope="audit:write")
async def preview_undo(page: PageContext) -> Response:
    """Show what undoing the entry would change (a dry run)."""
    try:
        preview = await page.api.post(f"/v1/audit-events/{page.ids['id']}/undo", dry_run="explain")
    except Refused as error:
        if error.status == 404:
            raise
        page.refused = error
        return page.render("organisation/undo.html", status=200, preview=None, changes=[])
    changes = [
        (one, _shown(*({field["path"]: field.get(side) for field in one["fields"]} for side in ("old", "new"))))
        for one in preview.get("changes", ())[:_ENTRIES]
    ]
    return page.render("organisation/undo.html", preview=preview, changes=changes)


@pages.post("/<id>/undo", scope="audit:write", again=show_refusal)
async def undo(page: PageContext) -> Response:
    """Undo the entry."""
    await page.api.post(f"/v1/audit-events/{page.ids['id']}/undo")
    return page.redirect(PLACE, gettext("Change undone"))
