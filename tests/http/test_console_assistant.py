"""The assistant in the console: the side panel's routes, and the pages of preferences, memories, settings and spend."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from html import unescape
from typing import Any

import pytest
import pytest_asyncio

from entrypoints.console import streams
from entrypoints.console.pages.conversations import list_argument_fields
from tests.http.assistant import (
    AssistantHarness,
    Call,
    Thought,
    join_text,
    list_types,
    parse_frames,
    run_assistant,
    search,
)
from tests.http.browser import BrowserPage, ConsoleBrowser
from tests.http.test_assistant import NEW_SOURCE
from tests.http.test_console_pages import check_markup

pytestmark = pytest.mark.asyncio
PANEL = "/console/assistant"
HTMX = {"hx-request": "true", "hx-target": "assistant_problem"}
HOSTILE = "<script>evil()</script> ![x](https://evil.test/?q=1) [open](https://evil.test) <img src=https://evil.test/x>"


@dataclass
class AssistantConsole:
    """Browser of an owner, with the scripted model of the application."""

    assistant: AssistantHarness
    browser: ConsoleBrowser

    async def post(
        self, path: str, browser: ConsoleBrowser | None = None, *, whole: bool = False, **fields: str
    ) -> BrowserPage:
        """Send a request as the panel's script does."""
        sender = browser or self.browser
        token = (await sender.get("/console/account")).field("csrf")
        return await sender.post(f"{PANEL}{path}", {"x-csrf": token, **HTMX}, whole=whole, **fields)

    async def create(self, object: str = "") -> str:
        created = await self.post("/conversations", object=object)
        assert created.status == 200, created.text
        return str(json.loads(created.body)["id"])

    async def send_turn(self, id: str, key: str = "", **turn: Any) -> BrowserPage:
        """Run a turn to its end."""
        return await self.post(f"/conversations/{id}/turns", whole=True, turn=json.dumps(turn), submission_id=key)

    async def run(self, id: str, key: str = "", **turn: Any) -> list[Any]:
        """Run a turn to its end, and return its frames."""
        response = await self.send_turn(id, key, **turn)
        assert response.status == 200, response.text
        assert (response.header("content-type") or "").startswith("text/event-stream")
        return parse_frames(response.body)

    async def show(self, path: str) -> BrowserPage:
        """Request a view of the panel."""
        page = await self.browser.get(PANEL + path, **HTMX)
        check_markup(page.text)
        return page


@pytest_asyncio.fixture
async def console() -> AsyncIterator[AssistantConsole]:
    async with run_assistant() as assistant:
        yield AssistantConsole(assistant, await assistant.application.open_browser())


async def test_every_page_offers_the_panel_for_its_object(console: AssistantConsole) -> None:
    source = (await console.assistant.client.post("/v1/sources", NEW_SOURCE["body"])).json()["id"]
    page = await console.browser.get(f"/console/sources/{source}")
    assert f'data-object="{source}"' in page.text and 'aria-keyshortcuts="a"' in page.text
    assert 'data-object=""' in (await console.browser.get("/console")).text
    panel = await console.show(f"/panel?object={source}")
    assert panel.status == 200 and "About this page: Source" in panel.text and " disabled" not in panel.text
    titles = json.loads(unescape(re.findall(r'data-tools="([^"]*)"', panel.text)[0]))
    assert titles["sources_list"] == "Read: Sources" and titles["sources_create"] == "Create a source"
    assert (await console.browser.get(f"{PANEL}/panel")).header("location") == PANEL
    id = await console.create(source)
    assert await _read_conversation(console, id) == ("console", {"object": "source", "id": source})


async def _read_conversation(console: AssistantConsole, id: str) -> tuple[str, Any]:
    """Return the surface and the context of a conversation."""
    [row] = console.assistant.application.database.fetch_rows(
        "SELECT surface, context_object, context_id FROM conversations WHERE id = %s", id
    )
    return row[0], {"object": row[1], "id": row[2]}


async def test_a_turn_streams_through_the_console(console: AssistantConsole) -> None:
    console.assistant.models.steps = [[Thought("Let me look."), Call("sources_list", {"limit": 5})], "No sources."]
    id = await console.create()
    message = {"id": "msg-1", "text": "Which sources <b>are</b> there?"}
    frames = await console.run(id, "key-1", message=message)
    assert join_text(frames) == "No sources. " and list_types(frames)[-1] == "[DONE]"
    assert join_text(await console.run(id, "key-1", message=message)) == "No sources. "
    assert len(console.assistant.models.requests) == 2, "the repeated request received the stream again"
    shown = await console.show(f"/conversations/{id}")
    assert 'data-message="msg-1"' in shown.text and "Which sources &lt;b&gt;are&lt;/b&gt; there?" in shown.text
    assert "Read: Sources" in shown.text and "Let me look." in shown.text and "<details" in shown.text
    listed = await console.show("/conversations")
    assert f'data-conversation-link="{id}"' in listed.text
    assert f'data-conversation-link="{id}"' not in (await console.post(f"/conversations/{id}/delete")).text
    assert (await console.show(f"/conversations/{id}")).status == 404


async def test_answers_contain_no_script_link_or_image(console: AssistantConsole) -> None:
    console.assistant.models.steps = [[Thought(HOSTILE), HOSTILE]]
    id = await console.create()
    await console.run(id, message={"id": "msg-1", "text": HOSTILE})
    shown = await console.show(f"/conversations/{id}")
    messages = shown.text.partition("<ol")[2].partition("</ol>")[0]
    assert "&lt;script&gt;" in messages
    assert not re.search(r"<(?!/?(?:li|p|span|details|summary|svg|path|circle)\b)[a-z!]", messages.partition(">")[2])


async def test_requests_need_the_token_and_origin_of_the_session(console: AssistantConsole) -> None:
    id, browser = await console.create(), console.browser
    other = await console.assistant.application.open_browser()
    token = (await other.get("/console/account")).field("csrf")
    for path in ("/conversations", f"/conversations/{id}/turns", f"/conversations/{id}/delete", "/memories", ""):
        for headers in ({}, {"x-csrf": token}, {"x-csrf": "x"}):
            assert (await browser.post(PANEL + path, headers, turn="{}")).status == 403
        own = (await browser.get("/console/account")).field("csrf")
        sent = await browser.post(PANEL + path, {"x-csrf": own, "sec_fetch_site": "cross-site"}, turn="{}")
        assert sent.status == 403
    assert console.assistant.models.requests == []
    assert (await console.show(f"/conversations/{id}")).status == 200


async def test_conversations_of_others_are_unknown(console: AssistantConsole) -> None:
    id, turn = await console.create(), json.dumps({"message": {"text": "Hello"}})
    for name in ("Fjord", "Oak"):
        other = await console.assistant.application.open_browser(name)
        assert (await other.get(f"{PANEL}/conversations/{id}", **HTMX)).status == 404
        assert id not in (await other.get(f"{PANEL}/conversations", **HTMX)).text
        assert (await console.post(f"/conversations/{id}/delete", other)).status == 404
    assert (await console.post(f"/conversations/{id}/turns", other, turn=turn)).status in (403, 404)
    assert console.assistant.models.requests == []


async def test_a_change_is_shown_before_it_is_approved_and_can_be_undone(console: AssistantConsole) -> None:
    browser, models = console.browser, console.assistant.models
    endpoint = (
        await console.assistant.client.post(
            "/v1/webhook-endpoints", {"url": "https://shop.example/a", "event_types": ["*"]}
        )
    ).json()["id"]
    change = {"id": endpoint, "if_match": "1", "body": {"description": "Orders <b>", "coalesce_seconds": 30}}
    models.steps = [search("change a webhook endpoint"), Call("webhooks_update", change, "call_a"), "Changed."]
    id = await console.create()
    frames = await console.run(id, message={"id": "msg-1", "text": "Describe the endpoint."})
    assert "tool-approval-request" in list_types(frames), frames
    shown = await console.show(f"/conversations/{id}")
    assert "Orders &lt;b&gt;" in shown.text and "<ins>" in shown.text and 'data-approval="call_a"' in shown.text
    assert "Approval pending" in (await console.show("/conversations")).text
    edited = {"id": endpoint, "if_match": "1", "body": {"description": "Stock", "coalesce_seconds": 30}}
    frames = await console.run(id, approvals=[{"id": "call_a", "approve": True, "arguments": edited}])
    assert join_text(frames) == "Changed. "
    shown = await console.show(f"/conversations/{id}")
    assert "data-approval" not in shown.text and "Changes made" in shown.text
    [undo] = re.findall(r'href="(/console/organisation/audit/[^"]+/undo)"', shown.text)
    preview = await browser.get(undo)
    assert "Stock" in preview.text
    assert (await browser.submit(preview, undo)).status == 303
    read = (await console.assistant.client.get(f"/v1/webhook-endpoints/{endpoint}")).json()
    assert read.get("description") != "Stock"
    assert "Undone" in (await console.show(f"/conversations/{id}")).text


async def test_a_rejection_reaches_the_model_with_its_reason(console: AssistantConsole) -> None:
    models = console.assistant.models
    models.steps = [search("create a source"), Call("sources_create", NEW_SOURCE, "call_a"), "As you wish."]
    id = await console.create()
    await console.run(id, message={"id": "msg-1", "text": "Create a source."})
    frames = await console.run(id, approvals=[{"id": "call_a", "approve": False, "reason": "Not now."}])
    assert "tool-output-denied" in list_types(frames) and "Not now." in str(models.requests[-1][0])
    shown = await console.show(f"/conversations/{id}")
    assert "Create a source: rejected" in shown.text and "Changes made" not in shown.text


async def test_refusals_state_a_remedy(console: AssistantConsole) -> None:
    application, id = console.assistant.application, await console.create()
    malformed = await console.post(f"/conversations/{id}/turns", turn="[" * 5000)
    assert malformed.status == 400 and malformed.text.startswith('<div class="notice bad">')
    assert (await console.send_turn(id, approvals=[{"id": "call_x", "approve": True}])).status == 409
    assert (await console.send_turn(id, stop=True)).status == 409
    other = await application.open_browser("Oak")
    panel = await other.get(f"{PANEL}/panel", **HTMX)
    check_markup(panel.text)
    assert panel.status == 200 and 'href="/console/billing"' in panel.text and " disabled" in panel.text
    page = await console.browser.get(PANEL)
    await console.browser.submit(page, PANEL, memory_enabled="true")
    off = await console.send_turn(id, message={"text": "Hello"})
    assert off.status == 403 and f'href="{PANEL}"' in off.text and "preferences" in off.text
    assert "Turn the assistant on" in (await console.show("/panel")).text


async def test_a_turn_stops_with_the_session(console: AssistantConsole, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "HEARTBEAT_SECONDS", 0.0)
    ended = asyncio.Event()

    async def end_session() -> None:
        await console.assistant.application.sessions.revoke_all(console.browser.user.id)
        ended.set()

    console.assistant.models.steps = [["One.", end_session, "Two.", Call("sources_list", {})], "Three."]
    id = await console.create()
    response = await console.send_turn(id, message={"text": "Count."})
    assert ended.is_set() and "Three" not in response.text and "[DONE]" not in response.text


async def test_preferences_memories_settings_and_spend(console: AssistantConsole) -> None:
    browser, page = console.browser, await console.browser.get(PANEL)
    saved = await browser.submit(page, PANEL, enabled="true", budget="2.50")
    page = await browser.follow(saved)
    check_markup(page.text)
    assert "Preferences saved" in page.text and 'value="2.50"' in page.text
    assert 'name="memory_enabled" type="checkbox" value="true" checked' not in page.text
    refused = await browser.submit(page, PANEL, enabled="true", budget="much")
    assert refused.status == 400 and 'value="much"' in refused.text
    for scope, text in (("person", "Prices & costs are net."), ("org", "We sell beds.")):
        page = await browser.follow(await browser.submit(page, f"{PANEL}/memories", content=text, scope=scope))
        check_markup(page.text)
    assert "Prices &amp; costs are net." in page.text and "We sell beds." in page.text
    assert (await browser.submit(page, f"{PANEL}/memories", content="See https://evil.test")).status == 400
    memory = re.findall(rf'action="{PANEL}/memories/(mem_\w+)"', page.text)[0]
    changed = await browser.submit(page, f"{PANEL}/memories/{memory}", content="Prices are gross.")
    assert "Prices are gross." in (await browser.follow(changed)).text
    renewed = await browser.submit(page, f"{PANEL}/memories/{memory}", renew="true")
    assert "Memory renewed" in (await browser.follow(renewed)).text
    other = await console.assistant.application.open_browser(role="editor")
    foreign = await other.get(f"{PANEL}/memories")
    assert "gross" not in foreign.text and "We sell beds." in foreign.text and "delete-all" not in foreign.text
    assert (await other.submit(foreign, f"{PANEL}/memories/{memory}/delete")).status == 404
    assert (
        "Memory deleted" in (await browser.follow(await browser.submit(page, f"{PANEL}/memories/{memory}/delete"))).text
    )
    emptied = await browser.follow(await browser.submit(page, f"{PANEL}/memories/delete-all", scope="org"))
    assert "We sell beds." not in emptied.text


async def test_admins_change_the_settings_of_the_organisation(console: AssistantConsole) -> None:
    browser, place = console.browser, f"{PANEL}/settings"
    page = await browser.get(place)
    fields = {"enabled": "true", "roles": "owner", "allowance": "3", "spend_credit": "true", "model": "large-1"}
    page = await browser.follow(await browser.submit(page, place, **fields))
    check_markup(page.text)
    settings = (await console.assistant.client.get("/v1/assistant/settings")).json()
    assert (
        settings["roles"] == ["owner"] and settings["daily_allowance_micros"] == 3_000_000 and settings["spend_credit"]
    )
    assert (await browser.submit(page, place, **fields | {"model": "unknown"})).status == 422
    editor = await console.assistant.application.open_browser(role="editor")
    shown = await editor.get(place)
    assert "<form" not in shown.text.partition("<main")[2] and "Only owners and admins" in shown.text
    assert (await editor.submit(await editor.get(PANEL), place, **fields)).status == 403
    assert "may not use" in (await editor.get(f"{PANEL}/panel", **HTMX)).text


async def test_the_spend_is_shown_by_person_and_day(console: AssistantConsole) -> None:
    empty = await console.browser.get(f"{PANEL}/spend")
    check_markup(empty.text)
    assert "after the first conversation" in empty.text and "day-bars" not in empty.text
    console.assistant.models.steps = ["Hello."]
    await console.run(await console.create(), message={"text": "Hello"})
    page = await console.browser.get(f"{PANEL}/spend")
    check_markup(page.text)
    assert 'class="day-bars"' in page.text and "Ada Moreau" in page.text.partition("<main")[2]


async def test_the_panel_is_translated(console: AssistantConsole) -> None:
    german = await console.browser.get(f"{PANEL}/panel", accept_language="de", **HTMX)
    assert "Unterhaltungen" in german.text and "Gelesen: Quellen" in unescape(german.text)


async def test_arguments_have_fields_by_type() -> None:
    fields = list_argument_fields(
        {"id": "src_1", "body": {"name": "a", "count": 2, "on": False, "tags": ["x"], "no": None}}
    )
    assert [(field.path, field.kind, field.text) for field in fields] == [
        (("id",), "text", "src_1"),
        (("body", "name"), "text", "a"),
        (("body", "count"), "number", "2"),
        (("body", "on"), "boolean", ""),
        (("body", "tags"), "json", '["x"]'),
        (("body", "no"), "json", "null"),
    ]


async def test_a_turn_has_the_permissions_of_the_present_session(console: AssistantConsole) -> None:
    async def revoke() -> None:
        await console.assistant.application.sessions.revoke_all(console.browser.user.id)

    console.assistant.models.steps = [[revoke, Call("sources_list", {"limit": 5})], "Never said."]
    frames = await console.run(await console.create(), message={"text": "Which sources are there?"})
    assert "authentication_required" in str(frames) and "Never" not in str(frames)
