"""Request and response format of OpenAI's API and compatible servers: POST {base}/chat/completions."""

import json
import re
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
from adapters.llm.json_text import parse_json, require_object
from adapters.llm.strict import to_strict_schema
from ports.language_models import ModelPrompt

_INVALID_NAME_CHARS = re.compile(r"[^A-Za-z0-9_-]")
_REFUSALS = {
    "length": "The model's answer was truncated.",
    "content_filter": "The provider's content filter removed the answer.",
}


class OpenAiFormat:
    """Format of OpenAI's API, with strict structured outputs (`response_format` of type `json_schema`)."""

    def build_request(self, prompt: ModelPrompt, model: str, api_key: str | None) -> ModelRequest:
        schema = {
            "name": _INVALID_NAME_CHARS.sub("_", prompt.task)[:64],
            "strict": True,
            "schema": to_strict_schema(prompt.schema),
        }
        body = {
            "model": model,
            "messages": [
                {"role": "system", "content": build_instructions(prompt)},
                {"role": "user", "content": json.dumps(prompt.data, ensure_ascii=False)},
            ],
            "response_format": {"type": "json_schema", "json_schema": schema},
            "max_completion_tokens": MAX_OUTPUT_TOKENS,
        }
        return ModelRequest("/chat/completions", {"Authorization": f"Bearer {api_key}"} if api_key else {}, body)

    def parse_response(self, response: Mapping[str, Any]) -> ModelResponse:
        choices = response.get("choices")
        if not isinstance(choices, list) or len(choices) != 1:
            raise InvalidResponse("The response does not have exactly one choice.")
        choice = require_object(choices[0], "choices.0")
        message = require_object(choice.get("message"), "message")
        usage, model = response.get("usage"), response.get("model")
        counted = usage if isinstance(usage, Mapping) else {}
        tokens = parse_token_count(counted.get("prompt_tokens")), parse_token_count(counted.get("completion_tokens"))
        name = model if isinstance(model, str) else None
        if isinstance(refusal := message.get("refusal"), str) and refusal:
            return ModelResponse(name, *tokens, refusal_reason=refusal)
        if ended := _REFUSALS.get(str(choice.get("finish_reason"))):
            return ModelResponse(name, *tokens, refusal_reason=ended)
        content = message.get("content")
        if not isinstance(content, str):
            return ModelResponse(name, *tokens, refusal_reason="The model's answer has no text.")
        try:
            return ModelResponse(name, *tokens, output=parse_json(content))
        except InvalidResponse:
            return ModelResponse(name, *tokens, refusal_reason="The model's answer is not JSON.")
