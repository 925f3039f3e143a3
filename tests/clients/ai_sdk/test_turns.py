"""Turns of the assistant with the chat of the AI SDK: what the client shows during a turn is what the service returns afterwards."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.clients.ai_sdk.chat import Assistant, search
from tests.clients.programs import run
from tests.flows.api_client import ApiClient
from tests.flows.service_processes import free_port, wait_until
from tests.support.providers import Pause, Reasoning, Reply, StreamError, ToolCall

pytestmark = pytest.mark.clients


def create_source(name: str, id: str) -> ToolCall:
    """Return a call that proposes a change."""
    body = {"name": name, "kind": "push", "config": {"currency": "usd"}, "licence_basis": "own_data"}
    return ToolCall("sources_create", {"body": body}, id)


def simplify(message: Mapping[str, Any]) -> Any:
    """Return the ID, the role and the parts of a message, as far as the stream and the stored conversation have both.

    Stored messages contain previews of pending calls only, and no approvals of executed calls. IDs of reasoning parts belong to
    one stream.
    """
    parts = message["parts"]
    pending = {part["toolCallId"] for part in parts if part.get("state") == "approval-requested"}
    simplified = []
    for part in parts:
        kept = {
            name: value
            for name, value in part.items()
            if name not in ("providerMetadata", "callProviderMetadata") and value is not False
        }
        if part["type"] in ("text", "reasoning"):
            kept = {"type": part["type"], "text": part["text"]}
        elif part.get("state") in ("output-available", "output-error"):
            kept.pop("approval", None)
        if part["type"] != "data-preview" or part["id"] in pending:
            simplified.append(kept)
    return message["id"], message["role"], simplified


def require_agreement(state: Mapping[str, Any]) -> None:
    """Require that the client has the messages of the stored conversation, and that the AI SDK converts them alike."""
    shown = [
        simplify(message) for message in state["messages"] if message["role"] == "user" or len(message["parts"]) > 1
    ]
    assert shown == [simplify(message) for message in state["conversation"]["messages"]]
    assert _drop_metadata(state["model_messages"]) == _drop_metadata(state["stored_model_messages"])


def _drop_metadata(value: Any) -> Any:
    """Return the model messages without metadata, approvals and previews, which `simplify` omits too."""
    if isinstance(value, list):
        omitted = ("tool-approval-request", "tool-approval-response")
        return [_drop_metadata(one) for one in value if not (isinstance(one, dict) and one.get("type") in omitted)]
    if isinstance(value, dict):
        return {
            name: _drop_metadata(one)
            for name, one in value.items()
            if name not in ("providerOptions", "providerExecuted")
        }
    return value


def get_parts(state: Mapping[str, Any], *types: str) -> list[Any]:
    """Return the parts of the last message, of the given types."""
    return [part for part in state["messages"][-1]["parts"] if not types or part["type"] in types]


def list_sources(assistant: Assistant) -> list[str]:
    return sorted(source["name"] for source in assistant.api.get("/v1/sources")["data"])


def test_text_reasoning_and_reads_arrive(assistant: Assistant) -> None:
    call = ToolCall("sources_list", {"limit": 5})
    assistant.steps = [[Reasoning("Let me look."), "One moment. ", call], "There are none."]
    with assistant.open_chat() as chat:
        state = chat.run("sendMessage", "Which sources are there?")
        assert state["status"] == "ready"
        assert [part["type"] for part in get_parts(state)] == [
            "step-start", "reasoning", "text", "tool-sources_list", "step-start", "text",
        ]  # fmt: skip
        [tool] = get_parts(state, "tool-sources_list")
        assert tool["state"] == "output-available" and tool["output"]["object"] == "list"
        require_agreement(state)
        assistant.steps = ["You are welcome."]
        require_agreement(chat.run("sendMessage", "Thank you."))


def test_invalid_input_of_a_tool_is_shown_and_corrected(assistant: Assistant) -> None:
    wrong, right = ToolCall("sources_list", {"limit": "many"}, "call_a"), ToolCall("sources_list", {}, "call_b")
    assistant.steps = [wrong, ToolCall("no_such_tool", {}, "call_c"), right, "There are none."]
    with assistant.open_chat() as chat:
        state = chat.run("sendMessage", "Which sources are there?")
        states = {part["toolCallId"]: part["state"] for part in get_parts(state) if "toolCallId" in part}
        assert states == {"call_a": "output-error", "call_b": "output-available", "call_c": "output-error"}
        require_agreement(state)


@pytest.mark.parametrize("approved", [True, False])
def test_a_decision_is_sent_and_continues_the_message(assistant: Assistant, approved: bool) -> None:
    assistant.steps = [search("create a source"), create_source("Prices", "call_a"), "As you wish."]
    with assistant.open_chat() as chat:
        state = chat.run("sendMessage", "Create a source.")
        assert [part["id"] for part in get_parts(state, "data-preview")] == ["call_a"] and list_sources(assistant) == []
        require_agreement(state)
        state = chat.run("decide", [{"id": "call_a", "approved": approved, "reason": "I said so."}])
        assert state["status"] == "ready" and len(state["messages"]) == 2
        assert get_parts(state, "text")[-1]["text"] == "As you wish."
        assert list_sources(assistant) == (["Prices"] if approved else [])
        require_agreement(state)


def test_several_decisions_are_sent_together(assistant: Assistant) -> None:
    calls = [create_source("One", "call_a"), create_source("Two", "call_b"), ToolCall("sources_list", {}, "call_c")]
    third = create_source("Three", "call_d")
    assistant.steps = [search("create a source"), ["Two sources. ", *calls], ["And one. ", third], "Done."]
    with assistant.open_chat() as chat:
        require_agreement(chat.run("sendMessage", "Create sources."))
        chat.run("decide", [{"id": "call_a", "approved": True}])
        assert len(chat.state["requests"]) == 1, "nothing is sent before all decisions are made"
        state = chat.run("decide", [{"id": "call_b", "approved": False, "reason": "One is enough."}])
        assert [decision["id"] for decision in state["requests"][-1]["approvals"]] == ["call_a", "call_b"]
        assert [call["id"] for call in state["conversation"]["pending_approvals"]] == ["call_d"]
        assert list_sources(assistant) == ["One"] and "One is enough." in str(assistant.provider.requests[-1])
        require_agreement(state)
        state = chat.run("decide", [{"id": "call_d", "approved": True}])
        assert list_sources(assistant) == ["One", "Three"] and len(state["messages"]) == 2
        require_agreement(state)


def test_a_message_abandons_pending_calls(assistant: Assistant) -> None:
    assistant.steps = [search("create a source"), create_source("Prices", "call_a"), "Fine.", "Yes?"]
    with assistant.open_chat() as chat:
        chat.run("sendMessage", "Create a source.")
        state = chat.run("sendMessage", "Forget it.")
        assert state["status"] == "ready", state["error"]
        assert [part["text"] for part in get_parts(state, "text")] == ["Fine."]
        assert state["conversation"]["pending_approvals"] == []
        assert "approval-requested" not in str(state["conversation"]["messages"])
    with assistant.open_chat(chat.conversation) as reloaded:
        require_agreement(reloaded.run("sendMessage", "Hello?"))


def test_a_reloaded_conversation_continues_with_its_pending_approvals(assistant: Assistant) -> None:
    assistant.steps = [
        ToolCall("sources_list"),
        search("create a source"),
        ["Here. ", create_source("Prices", "call_a")],
    ]
    with assistant.open_chat() as chat:
        chat.run("sendMessage", "Create a source.")
    assistant.steps = ["Created.", "You are welcome."]
    with assistant.open_chat(chat.conversation) as reloaded:
        require_agreement(reloaded.finish())
        [preview] = get_parts(reloaded.state, "data-preview")
        assert preview["data"]["preview"]["changes"][0]["object"] == "source"
        state = reloaded.run("decide", [{"id": "call_a", "approved": True}])
        assert get_parts(state, "text")[-1]["text"] == "Created." and list_sources(assistant) == ["Prices"]
        require_agreement(state)
        require_agreement(reloaded.run("sendMessage", "Thank you."))


@pytest.mark.parametrize(
    "step", [["Half ", StreamError()], Reply(500), Reply(429), ["Half ", ToolCall("sources_list"), StreamError()]]
)
def test_an_error_of_the_provider_is_shown_and_the_conversation_continues(assistant: Assistant, step: Any) -> None:
    assistant.steps = [step, "Now it works."]
    with assistant.open_chat() as chat:
        state = chat.run("sendMessage", "Hello.")
        assert state["status"] == "error" and state["error"].startswith("model_failed: ")
        assert "no more for" not in str(state)
        require_agreement(state)
        state = chat.run("sendMessage", "Again.")
        assert get_parts(state, "text")[-1]["text"] == "Now it works."
        require_agreement(state)


def test_a_refused_request_is_an_error(assistant: Assistant) -> None:
    with assistant.open_chat() as chat:
        assistant.api.call("PATCH", "/v1/assistant/me", {"enabled": False})
        state = chat.run("sendMessage", "Hello.")
        assert state["status"] == "error" and "permission_denied" in state["error"]
        assert state["stored"] == {}, "a refused turn is not resumed"


def test_a_stop_ends_the_turn_and_its_stream(assistant: Assistant) -> None:
    assistant.steps = [["One ", Pause(), "Two "], "Hello."]
    with assistant.open_chat() as chat:
        chat.start("sendMessage", "Count.", wait_for="One")
        state = chat.run("stopTurn")
        assert state["status"] == "ready" and [part["type"] for part in state["data"]] == ["data-stopped"]
        require_agreement(state)
        wait_until(lambda: assistant.provider.aborts, "the request to the provider is closed")
        require_agreement(chat.run("sendMessage", "Hello?"))


def test_a_stop_after_an_abort_of_the_client_ends_the_turn(assistant: Assistant) -> None:
    assistant.steps = [["One ", Pause(), "Two "], "Hello."]
    with assistant.open_chat() as chat:
        chat.start("sendMessage", "Count.", wait_for="One")
        chat.run("abort")
        assert chat.run("stopTurn")["status"] == "ready"

        def continue_chat() -> bool:
            return bool(assistant.api.get(f"/v1/assistant/conversations/{chat.conversation}")["messages"])

        wait_until(continue_chat, "the turn ended")
        require_agreement(chat.run("sendMessage", "Hello?"))


def test_a_stop_during_a_tool_call_leaves_no_open_call(assistant: Assistant) -> None:
    assistant.steps = [[ToolCall("sources_list"), Pause()], "Hello."]
    with assistant.open_chat() as chat:
        chat.start("sendMessage", "Which sources?", wait_for="sources_list")
        state = chat.run("stopTurn")
        assert "approval-requested" not in str(state["conversation"]["messages"])
    with assistant.open_chat(chat.conversation) as reloaded:
        require_agreement(reloaded.run("sendMessage", "Hello?"))


def test_a_cut_stream_is_resumed(assistant: Assistant) -> None:
    assistant.steps = [["One ", Pause(1), "Two "]]
    with assistant.open_chat() as chat:
        chat.run("cutAfter", "One")
        state = chat.run("sendMessage", "Count.")
        assert state["status"] == "error" and "Two" not in str(state["messages"])
        state = chat.run("resume")
        assert state["status"] == "ready" and [part["text"] for part in get_parts(state, "text")] == ["One Two "]
        assert len({request["key"] for request in state["requests"]}) == 1 and len(assistant.provider.requests) == 1
        require_agreement(state)


def test_a_reloaded_page_resumes_the_turn_from_another_process(assistant: Assistant) -> None:
    assistant.steps = [search("create a source"), create_source("Prices", "call_a"), ["Made ", Pause(3), "it."]]
    port = free_port()
    other = assistant.services.start("api", JOINERY_PORT=str(port))
    wait_until(lambda: ApiClient(port, None).is_ready(), "the second API is ready", within=40)
    try:
        with assistant.open_chat() as chat:
            chat.run("sendMessage", "Create a source.")
            state = chat.start("decide", [{"id": "call_a", "approved": True}], wait_for="Made")
        with assistant.open_chat(chat.conversation, port, STORED=json.dumps(state["stored"])) as reloaded:
            state = reloaded.run("resume")
            assert state["status"] == "ready" and get_parts(state, "text")[-1]["text"] == "Made it."
            assert len(state["messages"]) == 2 and list_sources(assistant) == ["Prices"]
            require_agreement(state)
    finally:
        assistant.services.stop(other)


def test_nothing_is_resumed_without_a_turn(assistant: Assistant) -> None:
    with assistant.open_chat() as chat:
        assert chat.run("resume")["status"] == "ready" and chat.state["requests"] == []


def test_an_answer_is_not_generated_again(assistant: Assistant) -> None:
    assistant.steps = ["Hello."]
    with assistant.open_chat() as chat:
        chat.run("sendMessage", "Hello?")
        state = chat.run("regenerate")
        assert state["status"] == "error" and len(state["requests"]) == 1
        repeated = state["conversation"]["messages"][0]["id"]
        refused = assistant.api.call(
            "POST",
            f"/v1/assistant/conversations/{chat.conversation}/turns",
            {"message": {"id": repeated, "text": "Hello?"}},
        )
        assert refused.status == 422 and refused.json()["errors"][0]["field"] == "message.id"


def test_a_turn_ends_at_its_limit(assistant: Assistant) -> None:
    assistant.steps = [ToolCall("sources_list", {}, f"call_{number}") for number in range(20)]
    with assistant.open_chat() as chat:
        state = chat.run("sendMessage", "Loop.")
        assert state["status"] == "error" and state["error"].startswith("limit_reached: ")
        assert len(assistant.provider.requests) == 20
        require_agreement(state)


def test_the_documented_transport_and_component_have_valid_types(node_home: Path) -> None:
    options = "--noEmit --strict --skipLibCheck --jsx react-jsx --target es2023 --lib es2023,dom --module esnext --moduleResolution bundler"
    run("node_modules/.bin/tsc", *options.split(), "transport.ts", "chat.tsx", cwd=node_home)
