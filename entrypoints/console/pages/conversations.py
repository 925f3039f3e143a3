"""Side panel of the assistant: the person's conversations, their turns, and the changes that wait for approval."""

import json
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import Any, NamedTuple

from domain.kernel.errors import RateLimited
from domain.kernel.ids import find_noun
from entrypoints.console.context import OperationRefused, PageContext, Pages
from entrypoints.console.pages.assistant import ASSISTANT_PATH
from entrypoints.console.pages.audit import find_action_title, list_previewed_changes
from entrypoints.console.rendering import find_label
from entrypoints.console.security import SECURITY_HEADERS
from entrypoints.console.streams import build_stream_response, has_max_streams, stream_while_signed_in
from entrypoints.console.translation import gettext
from entrypoints.http.exchange import Response

_API_PATH = "/v1/assistant/conversations"
_PAGE_SIZE = 20
_MAX_CHANGES = 50
"""Maximum number of audit entries of a conversation that are shown."""
_MAX_ARGUMENT_DEPTH = 4
"""Maximum number of names in the path of an argument with its own field; deeper objects are edited as JSON."""

pages = Pages(ASSISTANT_PATH)


class ArgumentField(NamedTuple):
    """Form field of an argument of a proposed change.

    Attributes:
        path: The names of the argument and of the objects that contain it, outermost first.
        kind: The type of the field: `text`, `number`, `boolean`, or `json` for lists, objects and null.
        text: The value as text.
    """

    path: tuple[str, ...]
    kind: str
    text: str


def list_argument_fields(arguments: Mapping[str, Any], path: tuple[str, ...] = ()) -> list[ArgumentField]:
    """Return the form fields of the arguments in the object at `path`."""
    fields = []
    for name, value in arguments.items():
        match value:
            case Mapping() if value and len(path) + 1 < _MAX_ARGUMENT_DEPTH:
                fields += list_argument_fields(value, (*path, name))
                continue
            case str():
                kind, text = "text", value
            case bool():
                kind, text = "boolean", "true" if value else ""
            case int() | float():
                kind, text = "number", str(value)
            case _:
                kind, text = "json", json.dumps(value, ensure_ascii=False)
        fields.append(ArgumentField((*path, name), kind, text))
    return fields


def _list_tool_titles(page: PageContext) -> dict[str, str]:
    """Return the titles of the assistant's tools by name, such as `Read: Sources`; changes have the titles of the audit log."""
    titles = {}
    for operation in page.console.pipeline.table.operations:
        is_read = operation.scope is not None and not operation.is_write
        resource = find_label((operation.scope or "").partition(":")[0], "scope_resources")
        titles[operation.slug] = gettext("Read: %(object)s", object=resource) if is_read else operation.summary
    return titles


def _find_object_type(id: str) -> str | None:
    """Return the noun for the object with this ID as a word, such as `webhook_endpoint`; None if the text is not an ID."""
    noun = find_noun(id)
    return noun and noun.partition(" ")[2].lower().replace(" ", "_")


@pages.register_get("/panel")
async def show_panel(page: PageContext) -> Response:
    """Show the panel with a new conversation about the object of the page; if the person cannot use the assistant, the reason."""
    if not page.request.is_htmx:
        return page.redirect(ASSISTANT_PATH)
    try:
        await page.api.post(_API_PATH, dry_run="true")
    except OperationRefused as refused:
        page.refused = refused
    return page.render(
        "assistant/panel.html",
        status=200,
        object_type=_find_object_type(page.query["object"]),
        tool_titles=json.dumps(_list_tool_titles(page)),
    )


@pages.register_get("/conversations")
async def list_conversations(page: PageContext) -> Response:
    """Show the person's conversations."""
    if not page.request.is_htmx:
        return page.redirect(ASSISTANT_PATH)
    results = await page.api.get(_API_PATH, limit=_PAGE_SIZE, starting_after=page.cursor)
    return page.render("assistant/conversations.html", status=200, results=results)


@pages.register_post("/conversations")
async def create_conversation(page: PageContext) -> Response:
    """Create a conversation about an object, and return its ID as JSON."""
    id = page.form["object"]
    object_type = _find_object_type(id)
    new = {"context": {"object": object_type, "id": id}} if object_type else {}
    conversation = await page.api.post(_API_PATH, new)
    return page.respond_json(json.dumps({"id": conversation["id"]}))


@pages.register_get("/conversations/<id>")
async def show_conversation(page: PageContext) -> Response:
    """Show a conversation with its messages, the changes that wait for approval, and those that were made."""
    id = page.path_parameters["id"]
    conversation = await page.api.get(f"{_API_PATH}/{id}")
    if not page.request.is_htmx:
        return page.redirect(ASSISTANT_PATH)
    return page.render(
        "assistant/conversation.html",
        conversation=conversation,
        tool_titles=_list_tool_titles(page),
        approvals=[
            {
                **call,
                "title": find_action_title(page, call["operation"]),
                "changes": list_previewed_changes(call["preview"]),
                "fields": list_argument_fields(call["arguments"]),
                "json": json.dumps(call["arguments"]),
            }
            for call in conversation["pending_approvals"]
        ],
        acts=await _list_acts(page, id),
        action_title=partial(find_action_title, page),
    )


async def _list_acts(page: PageContext, conversation: str) -> Sequence[Sequence[Mapping[str, Any]]]:
    """Return the audit entries of a conversation's changes, oldest change first; nothing if the person cannot read the audit log."""
    if not page.may("audit:read"):
        return []
    entries = await page.api.get("/v1/audit-events", actor=conversation, limit=_MAX_CHANGES)
    return [list(act) for _, act in groupby(entries["data"], lambda entry: entry["act"])][::-1]


@pages.register_post("/conversations/<id>/turns")
async def run_turn(page: PageContext) -> Response:
    """Run or stop a turn. The field `turn` of the form contains the body of the API operation, whose stream is returned."""
    if has_max_streams(page):
        raise RateLimited(gettext("Too many pages of this session are open. Close some of them."), retry_after=5)
    path = f"{_API_PATH}/{page.path_parameters['id']}/turns"
    response = await page.api.post_bytes(path, page.form["turn"].encode())
    if response.stream is None:
        return Response(204, list(SECURITY_HEADERS))
    stop = partial(page.api.post_bytes, path, b'{"stop":true}')
    return build_stream_response(page, stream_while_signed_in(page, response.stream, stop))


@pages.register_post("/conversations/<id>/delete")
async def delete_conversation(page: PageContext) -> Response:
    """Delete a conversation, and show the others; if a turn is running, the reason why it cannot be deleted."""
    try:
        await page.api.send_change("DELETE", f"{_API_PATH}/{page.path_parameters['id']}")
    except OperationRefused as refused:
        if refused.status != 409:
            raise
        page.refused = refused
    return await list_conversations(page)
