"""Attacks on turns of the assistant: interruptions, replaced attempts, hostile models, and other members."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest
import pytest_asyncio

from adapters.pydantic_ai.assistant import PydanticAssistantEngine
from domain.assistant.model import Conversation
from domain.assistant.usecases import turns
from domain.assistant.usecases.turns import ALIVE_PERIOD, MAX_CHUNK_BYTES, MAX_ORG_TURNS, TurnInterrupted, TurnService
from domain.kernel.paging import PageRequest
from domain.kernel.tenancy import Tenant
from tests.http.assistant import (
    AssistantHarness,
    Call,
    Fragments,
    join_text,
    list_types,
    parse_frames,
    run_assistant,
    search,
)
from tests.http.test_agreements import create_token_client
from tests.http.test_assistant import NEW_SOURCE, interrupt

pytestmark = pytest.mark.asyncio
MESSAGE = {"message": {"text": "Hello?"}}


@pytest_asyncio.fixture
async def assistant() -> AsyncIterator[AssistantHarness]:
    async with run_assistant() as harness:
        yield harness


async def wait_forever() -> None:
    await asyncio.Event().wait()


def build_path(conversation: str) -> str:
    return f"/v1/assistant/conversations/{conversation}/turns"


async def start_waiting_turn(assistant: AssistantHarness, *rest: Any, proceed: asyncio.Event | None = None) -> str:
    """Return a conversation whose turn with the key `one` waits for the model until `proceed`; `rest` are further answers."""
    is_waiting = asyncio.Event()

    async def wait() -> None:
        is_waiting.set()
        await (proceed or asyncio.Event()).wait()

    assistant.models.steps = [["One ", wait, "more", wait_forever], *rest]
    id = await assistant.create_conversation()
    assert (await assistant.client.post(build_path(id), MESSAGE, idempotency_key="one")).status == 200
    await is_waiting.wait()
    return id


async def propose_source(assistant: AssistantHarness, *rest: Any) -> str:
    """Return a conversation in which the creation of a source waits for approval; `rest` are the model's further answers."""
    assistant.models.steps = [search("create a source"), Call("sources_create", NEW_SOURCE, "call_a"), *rest]
    id = await assistant.create_conversation()
    await assistant.send_message(id, "Create a source.")
    return id


async def list_source_names(assistant: AssistantHarness) -> list[str]:
    return [source["name"] for source in (await assistant.client.get("/v1/sources")).json()["data"]]


async def test_a_replaced_attempt_changes_no_frames(
    assistant: AssistantHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    proceed = asyncio.Event()
    monkeypatch.setattr(turns, "FLUSH_SECONDS", 2.0)  # the process is paused
    id = await start_waiting_turn(assistant, "New.", proceed=proceed)
    [old] = assistant.application.dependencies[TurnService]._tasks
    assistant.application.clock.advance(ALIVE_PERIOD + timedelta(seconds=1))
    new = await assistant.client.post_for_stream(build_path(id), MESSAGE, idempotency_key="one")
    assert join_text(parse_frames(new.body)) == "New. "
    proceed.set()
    await old
    again = await assistant.client.post_for_stream(build_path(id), MESSAGE, idempotency_key="one")
    assert again.body == new.body


async def test_a_turn_whose_end_is_not_stored_ends_without_final_frames(assistant: AssistantHarness) -> None:
    async def delete_turns() -> None:
        async with assistant.application.uow.begin(tenant, turns._SHUTDOWN) as tx:
            await tx[turns.TurnStore].delete_turns(id)

    tenant = Tenant(assistant.application.orgs["Fjord"].id, True)
    assistant.models.steps = [["Hello.", delete_turns]]
    id = await assistant.create_conversation()
    with pytest.raises(TurnInterrupted):
        await assistant.send_message(id, "Hello?")
    assert (await assistant.read(id))["messages"] == []


async def test_streams_are_repeated_while_the_organisation_has_its_maximum_of_turns(
    assistant: AssistantHarness,
) -> None:
    assistant.models.respond = lambda messages, info: ["One ", wait_forever]
    ids = [await assistant.create_conversation() for _ in range(MAX_ORG_TURNS + 1)]
    for id in ids[:-1]:
        assert (await assistant.client.post(build_path(id), MESSAGE, idempotency_key="one")).status == 200
    assert (await assistant.client.post(build_path(ids[-1]), MESSAGE)).code == "rate_limited"
    assert (await assistant.client.post(build_path(ids[0]), MESSAGE, idempotency_key="one")).status == 200
    assert (await assistant.client.post(build_path(ids[0]), {"stop": True})).status == 200
    await assistant.client.post_for_stream(build_path(ids[0]), MESSAGE, idempotency_key="one")
    assert (await assistant.client.post(build_path(ids[-1]), MESSAGE)).status == 200


async def test_a_large_stream_is_stored_and_sent_in_small_chunks(assistant: AssistantHarness) -> None:
    word = "oak " * 5_000
    assistant.models.steps = [[Fragments([word] * 60)]]
    id = await assistant.create_conversation()
    first = await assistant.client.post_for_stream(build_path(id), MESSAGE, idempotency_key="one")
    assert join_text(parse_frames(first.body)) == word * 60
    turn_service, tenant = assistant.application.dependencies[TurnService], Tenant(
        assistant.application.orgs["Fjord"].id, True
    )  # fmt: skip
    async with assistant.application.uow.begin_reading(tenant) as tx:
        turn = await tx[turns.TurnStore].find(id, "one")
    sizes = [len(data) async for _, data in turn_service.iter_stored_chunks(tenant, turn, 1)]
    assert len(sizes) > 4 and max(sizes) <= MAX_CHUNK_BYTES
    again = await assistant.client.post_for_stream(build_path(id), MESSAGE, idempotency_key="one")
    assert again.body == first.body


async def test_a_stopped_turn_stays_stopped_after_an_interruption(assistant: AssistantHarness) -> None:
    id = await start_waiting_turn(assistant, "Two.")
    turn_service = assistant.application.dependencies[TurnService]
    turn_service.stop_locally = lambda *_: None  # another process runs the turn
    try:
        assert (await assistant.client.post(build_path(id), {"stop": True})).status == 200
    finally:
        del turn_service.stop_locally
    await interrupt(assistant)
    again = await assistant.client.post_for_stream(build_path(id), MESSAGE, idempotency_key="one")
    assert "abort" in list_types(parse_frames(again.body)) and "Two" not in join_text(parse_frames(again.body))


async def test_a_turn_continues_at_once_after_its_process_has_stopped(assistant: AssistantHarness) -> None:
    id = await start_waiting_turn(assistant, "Two.")
    await assistant.application.dependencies[TurnService].close()
    again = await assistant.client.post_for_stream(build_path(id), MESSAGE, idempotency_key="one")
    assert join_text(parse_frames(again.body)) == "Two. "


async def test_changed_arguments_may_contain_fractions(assistant: AssistantHarness) -> None:
    id = await propose_source(assistant, "It is invalid.")
    changed = {"body": NEW_SOURCE["body"] | {"max_age": 1.5}}
    frames = await assistant.run(id, approvals=[{"id": "call_a", "approve": True, "arguments": changed}])
    assert join_text(frames) == "It is invalid. " and "unknown_field" in str(assistant.models.requests[-1][0])
    assert '"max_age":1.5' in str((await assistant.read(id))["messages"]).replace("'", '"').replace(" ", "")


@pytest.mark.parametrize("approve", [True, False])
async def test_an_interrupted_change_with_changed_arguments_returns_its_result(
    assistant: AssistantHarness, approve: bool
) -> None:
    is_made = asyncio.Event()

    async def wait() -> None:
        is_made.set()
        await wait_forever()

    id = await propose_source(assistant, [wait], "Created.")
    body = {"approvals": [{"id": "call_a", "approve": True, "arguments": {"body": NEW_SOURCE["body"] | {"name": "S"}}}]}
    await assistant.client.post(build_path(id), body, idempotency_key="two")
    await is_made.wait()
    await interrupt(assistant)
    frames = await assistant.approve(id, "call_a", approve=approve)
    [output] = [
        frame["output"] for frame in frames if isinstance(frame, dict) and frame["type"] == "tool-output-available"
    ]
    assert output["name"] == "S" and await list_source_names(assistant) == ["S"]
    assert "'Prices'" not in str((await assistant.read(id))["messages"])


async def test_a_change_with_the_id_of_an_earlier_call_is_not_lost(assistant: AssistantHarness) -> None:
    stock = {"body": NEW_SOURCE["body"] | {"name": "Stock"}}
    id = await propose_source(assistant, "Created.")
    await assistant.approve(id, "call_a")
    assistant.models.steps = [Call("sources_create", stock, "call_a"), Call("sources_create", stock, "call_b"), "Done."]
    frames = await assistant.send_message(id, "Create another.")
    assert "same ID" in str(assistant.models.requests[-1][0]) and list_types(frames).count("data-preview") == 1
    assert [call["id"] for call in (await assistant.read(id))["pending_approvals"]] == ["call_b"]
    await assistant.approve(id, "call_b")
    assert sorted(await list_source_names(assistant)) == ["Prices", "Stock"]
    assistant.models.steps = [
        Call("search_tools", {"queries": ["create a source"]}, "call_c"),
        Call("sources_create", stock, "call_c"),
        Call("sources_create", stock, "call_d"),
    ]
    await assistant.send_message(id, "Create one more.")
    assert [call["id"] for call in (await assistant.read(id))["pending_approvals"]] == ["call_d"]


async def test_lists_of_conversations_read_no_messages(assistant: AssistantHarness) -> None:
    assistant.models.steps = ["Hello."]
    id = await assistant.create_conversation()
    await assistant.send_message(id, "Hello?")
    async with assistant.application.uow.begin_reading(Tenant(assistant.application.orgs["Fjord"].id, True)) as tx:
        [listed] = (await tx.store(Conversation).page(PageRequest())).items
        read = await tx.store(Conversation).get(id)
    assert listed.history == b"[]" != read.history and listed.title == "Hello?"


async def test_long_conversations_of_an_organisation_are_read_one_at_a_time(
    assistant: AssistantHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    running: list[int] = []

    async def render(self: PydanticAssistantEngine, *_: Any) -> list[Any]:
        running.append(1)
        await asyncio.sleep(0.05)
        assert len(running) == 1
        running.clear()
        return []

    monkeypatch.setattr(PydanticAssistantEngine, "render_messages", render)
    id = await assistant.create_conversation()
    await asyncio.gather(*(assistant.read(id) for _ in range(4)))


async def test_administrators_cannot_undo_personal_changes_of_others(assistant: AssistantHarness) -> None:
    owner = assistant.client
    memory = (await owner.post("/v1/assistant/memories", {"content": "Prices are net."})).json()["id"]
    path = f"/v1/assistant/memories/{memory}"
    assert (await owner.send_json("PATCH", path, {"content": "Prices are gross."})).status == 200
    assert (await owner.send_json("PATCH", "/v1/assistant/me", {"personal_budget_micros": 5})).status == 200
    deleted = (await owner.post("/v1/assistant/memories", {"content": "Tables are oak."})).json()["id"]
    assert (await owner.send("DELETE", f"/v1/assistant/memories/{deleted}")).status == 204
    admin, _ = await create_token_client(assistant.application, "Fjord", "admin")
    entries = (await owner.get("/v1/audit-events?limit=50")).json()["data"]
    personal = [entry for entry in entries if entry["target"]["id"] in (memory, deleted, assistant.user.id)]
    assert len(personal) == 5
    for entry in personal:
        if entry["undo"]["available"]:
            assert (await admin.post(f"/v1/audit-events/{entry['id']}/undo")).code == "permission_denied", entry
    assert (await owner.get("/v1/assistant/memories")).json()["data"][0]["content"] == "Prices are gross."
    for entry in personal[:1]:
        assert (await owner.post(f"/v1/audit-events/{entry['id']}/undo")).status == 200
