"""Pages of the audit log: entries with the changed fields, and the undo of an entry with a preview."""

import json
from collections.abc import Mapping
from itertools import groupby
from typing import Any, NamedTuple

from domain.audit.ports import AuditLog
from domain.kernel.errors import NotFound
from entrypoints.console.context import OperationRefused, PageContext, Pages
from entrypoints.console.rendering import ListPortion, find_label
from entrypoints.console.request import convert_to_day_start
from entrypoints.console.translation import N_, gettext
from entrypoints.http.exchange import Response

AUDIT_PATH = "/console/organisation/audit"
_PAGE_SIZE = 20
_MAX_LISTED_FIELDS = 10
"""Maximum number of changed fields that a list shows for each entry."""
_MAX_LISTED_CHARS = 100
"""Maximum number of characters of each value in a list of changed fields."""

pages = Pages(AUDIT_PATH, section="Organisation", scope="audit:read")


class Difference(NamedTuple):
    """Change of a field: its dotted path, and its formatted values before and after; None for a missing field."""

    path: str
    old: str | None
    new: str | None


def list_differences(before: Mapping[str, Any], after: Mapping[str, Any], max_length: int = 600) -> list[Difference]:
    """Return the fields whose values differ between two versions of an object: fields of `before` first, then added fields.

    Fields of nested objects are compared one by one, up to four levels deep. Lists are compared as single values.

    Args:
        before: The object before the change.
        after: The object after the change.
        max_length: The number of characters after which a formatted value is cut off.
    """
    old, new = _flatten(before), _flatten(after)
    paths = [path for path in old | new if path not in old or path not in new or old[path] != new[path]]
    return [Difference(path, *(format_value(values.get(path), max_length) for values in (old, new))) for path in paths]


def _flatten(value: Mapping[str, Any], prefix: str = "", depth: int = 1) -> dict[str, Any]:
    """Return the values of an object's fields by dotted path, including the fields of nested objects.

    A path has at most four names. Deeper objects and empty objects are values.

    Args:
        value: The object.
        prefix: The path of the object with a dot at the end; empty for the outermost object.
        depth: The level of the object; 1 for the outermost object.
    """
    flattened: dict[str, Any] = {}
    for name, item in value.items():
        is_nested = isinstance(item, Mapping) and item and depth < 4
        flattened |= _flatten(item, f"{prefix}{name}.", depth + 1) if is_nested else {f"{prefix}{name}": item}
    return flattened


def format_value(value: Any, max_length: int) -> str | None:
    """Format a value of an audited object, cut off after `max_length` characters; None remains None."""
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
    return text if len(text) <= max_length else text[:max_length] + "…"


def list_previewed_changes(
    preview: Mapping[str, Any],
) -> list[tuple[Mapping[str, Any], ListPortion[Difference]]]:
    """Return the first changes of a preview (`Service-Dry-Run: explain`), each with the first fields that would differ."""
    return [
        (
            change,
            _list_first_differences(
                *({field["path"]: field.get(side) for field in change["fields"]} for side in ("old", "new"))
            ),
        )
        for change in preview.get("changes", ())[:_PAGE_SIZE]
    ]


def _list_first_differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> ListPortion[Difference]:
    """Return the first fields that differ, with shortened values, for lists of entries."""
    return ListPortion.from_items(list_differences(before, after, _MAX_LISTED_CHARS), 0, _MAX_LISTED_FIELDS)


def _format_change_title(object: str, action: str) -> str:
    """Return the heading of a change, such as `Source created`, from the kind of the object and the action."""
    kind = find_label(object, "audited")
    match action:
        case "create":
            return gettext("%(object)s created", object=kind)
        case "delete":
            return gettext("%(object)s deleted", object=kind)
        case _:
            return gettext("%(object)s changed", object=kind)


@pages.register_get(title=N_("Audit log"))
async def list_entries(page: PageContext) -> Response:
    """Show the audit entries that match the filters. Days are in UTC; the last day is included."""
    filters = page.query.select("object", "action", "target", "actor", "undoable")
    all_filters = filters | page.query.select("since", "until", "cursor")
    days = {
        name: convert_to_day_start(all_filters[name], int(name == "until"))
        for name in ("since", "until")
        if name in all_filters
    }
    found = await page.get_filtered_page("/v1/audit-events", _PAGE_SIZE, filters | days)
    actors = [one["actor"] for one in found["data"]]
    ids = {one["id"] for one in actors if one["kind"] == "user"} | {one.get("on_behalf_of") for one in actors}
    return page.render(
        "organisation/audit.html",
        results=found,
        # Changes of one act are shown together; the first entry represents them.
        acts=[list(act) for _, act in groupby(found["data"], lambda one: one["act"])],
        action_title=lambda action: find_action_title(page, action),
        change_title=_format_change_title,
        list_differences=_list_first_differences,
        people=await page.find_person_names(ids),
        filters=all_filters,
    )


def find_action_title(page: PageContext, action: str) -> str:
    """Return the title of an audited action: the summary of the API operation, or a label if there is no operation."""
    table = page.console.pipeline.table.operations
    return next((one.summary for one in table if one.id == action), None) or find_label(action, "acts")


@pages.register_get("/<id>")
async def show_entry(page: PageContext) -> Response:
    """Show an audit entry with every changed field, before and after the change."""
    async with page.open_read_transaction() as tx:
        entry = await tx[AuditLog].get(page.path_parameters["id"])
    if entry is None:
        raise NotFound
    all_differences = list_differences(entry.change.before, entry.change.after, 10_000)
    differences = ListPortion.from_items(all_differences, page.query.get_number("from"), 200)
    return page.render(
        "organisation/entry.html",
        entry=entry,
        title=find_action_title(page, entry.context.operation),
        change_title=_format_change_title,
        differences=differences,
    )


async def show_undo_error(page: PageContext) -> Response:
    """Show the error that prevented the undo of an audit entry."""
    return page.render("organisation/undo.html", preview=None, changes=[])


@pages.register_get("/<id>/undo", scope="audit:write")
async def preview_undo(page: PageContext) -> Response:
    """Show what the undo of an audit entry would change, from a dry run."""
    try:
        preview = await page.api.post(f"/v1/audit-events/{page.path_parameters['id']}/undo", dry_run="explain")
    except OperationRefused as error:
        if error.status == 404:
            raise
        page.refused = error
        return page.render("organisation/undo.html", status=200, preview=None, changes=[])
    return page.render("organisation/undo.html", preview=preview, changes=list_previewed_changes(preview))


@pages.register_post("/<id>/undo", scope="audit:write", error_view=show_undo_error)
async def undo_entry(page: PageContext) -> Response:
    """Undo the change of an audit entry."""
    await page.api.post(f"/v1/audit-events/{page.path_parameters['id']}/undo")
    return page.redirect(AUDIT_PATH, gettext("Change undone"))
