"""Model that answers with the entries of a script (adapters/pydantic_ai/scripted.py)."""

import json
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from pydantic_ai.exceptions import ContentFilterError, ModelHTTPError
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart, UserPromptPart
from pydantic_ai.models import Model
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel
from pydantic_ai.usage import RequestUsage

_WORD = re.compile(r"\s*\S+\s*")


def create_scripted_model(entries: Sequence[Mapping[str, Any]], task: str, name: str) -> Model:
    """Create a model that answers requests for the task, also as a stream, with the first applicable entry."""

    async def respond(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        return _build_response(_find_entry(entries, task, messages), name)

    async def stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str | dict[int, DeltaToolCall]]:
        for part in _list_stream_parts(await respond(messages, info)):
            yield part

    return FunctionModel(respond, stream_function=stream, model_name=name)


def _find_entry(entries: Sequence[Mapping[str, Any]], task: str, messages: Sequence[ModelMessage]) -> Mapping[str, Any]:
    """Return the first entry that applies to the newest message, or a refusal if none applies."""
    newest = _read_newest_text(messages)
    for entry in entries:
        texts = entry.get("contains", [])
        required = [texts] if isinstance(texts, str) else texts
        if entry.get("task") in (None, task) and all(str(text) in newest for text in required):
            return entry
    return {"refused": f"The scripted model has no answer for the task {task}."}


def _read_newest_text(messages: Sequence[ModelMessage]) -> str:
    """Return the texts of the newest message, which is data, a person's message or results of tools."""
    texts = (
        part.model_response_str() if isinstance(part, ToolReturnPart) else str(part.content)
        for part in messages[-1].parts
        if isinstance(part, UserPromptPart | ToolReturnPart)
    )
    return "\n".join(texts)


def _build_response(entry: Mapping[str, Any], name: str) -> ModelResponse:
    """Return the response of an entry. Raises the errors of a provider."""
    usage = entry.get("usage", {})
    response = ModelResponse(
        parts=[],
        usage=RequestUsage(
            input_tokens=int(usage.get("input_tokens", 0)), output_tokens=int(usage.get("output_tokens", 0))
        ),
        metadata={"cost_micros": int(usage["cost_micros"])} if "cost_micros" in usage else None,
    )
    if "later" in entry:
        wait = {"retry-after-ms": str(entry["later"] * 1000)}
        raise ModelHTTPError(status_code=503, model_name=name, headers=wait)
    if "refused" in entry:
        response.finish_reason, response.provider_details = "content_filter", {"refusal": str(entry["refused"])}
    elif "answer" in entry:
        response.parts = [TextPart(json.dumps(entry["answer"], ensure_ascii=False))]
    else:
        calls = [ToolCallPart(tool["name"], dict(tool.get("arguments", {}))) for tool in entry.get("tools", ())]
        response.parts = [*([TextPart(entry["text"])] if "text" in entry else []), *calls]
    return response


def _list_stream_parts(response: ModelResponse) -> list[str | dict[int, DeltaToolCall]]:
    """Return the parts of a response as a stream: words and calls of tools. Raises ContentFilterError for a refusal."""
    if response.provider_details is not None:
        raise ContentFilterError(str(response.provider_details["refusal"]))
    words = [word for part in response.parts if isinstance(part, TextPart) for word in _WORD.findall(part.content)]
    calls = [part for part in response.parts if isinstance(part, ToolCallPart)]
    deltas = [
        {index: DeltaToolCall(call.tool_name, call.args_as_json_str(), tool_call_id=call.tool_call_id)}
        for index, call in enumerate(calls)
    ]
    return [*words, *deltas]
