"""Request and response format of Anthropic's API: POST {base}/v1/messages."""

import json
from collections.abc import Mapping
from typing import Any

from adapters.llm.dialect import (
    MAX_OUTPUT_TOKENS,
    InvalidResponse,
    ModelRequest,
    ModelResponse,
    build_instructions,
    parse_token_count,
)
from adapters.llm.json_text import require_object
from ports.language_models import ModelPrompt

API_VERSION = "2023-06-01"
_TOOL = "answer"
_INPUT_COUNTS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


class AnthropicFormat:
    """Format of Anthropic's API. The request forces the model to call one tool; the arguments of the call are its response."""

    def build_request(self, prompt: ModelPrompt, model: str, api_key: str | None) -> ModelRequest:
        tool = {"name": _TOOL, "description": "Returns the answer.", "input_schema": dict(prompt.schema)}
        body = {
            "model": model,
            "max_tokens": MAX_OUTPUT_TOKENS,
            "system": build_instructions(prompt),
            "messages": [{"role": "user", "content": json.dumps(prompt.data, ensure_ascii=False)}],
            "tools": [tool],
            "tool_choice": {"type": "tool", "name": _TOOL, "disable_parallel_tool_use": True},
        }
        return ModelRequest("/v1/messages", {"x-api-key": api_key or "", "anthropic-version": API_VERSION}, body)

    def parse_response(self, response: Mapping[str, Any]) -> ModelResponse:
        blocks = response.get("content")
        if not isinstance(blocks, list) or not all(isinstance(block, Mapping) for block in blocks):
            raise InvalidResponse("The response has no content.")
        usage, model = require_object(response.get("usage", {}), "usage"), response.get("model")
        counts = [parse_token_count(usage[name]) for name in _INPUT_COUNTS if usage.get(name) is not None]
        total = sum(count for count in counts if count is not None) if counts and None not in counts else None
        tokens, name = (total, parse_token_count(usage.get("output_tokens"))), model if isinstance(model, str) else None
        if response.get("stop_reason") == "max_tokens":
            return ModelResponse(name, *tokens, refusal_reason="The model's answer was truncated.")
        used = [block for block in blocks if block.get("type") == "tool_use" and block.get("name") == _TOOL]
        if response.get("stop_reason") == "refusal" or len(used) != 1:
            return ModelResponse(name, *tokens, refusal_reason=_join_texts(blocks) or "The model gave no answer.")
        return ModelResponse(name, *tokens, output=require_object(used[0].get("input"), "input"))


def _join_texts(blocks: list[Mapping[str, Any]]) -> str:
    """Return the text of the response's text blocks."""
    return " ".join(str(block.get("text", "")) for block in blocks if block.get("type") == "text").strip()
