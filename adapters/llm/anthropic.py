"""API of Anthropic: POST {base}/v1/messages."""

import json
from collections.abc import Mapping
from typing import Any

from adapters.llm.dialect import MOST_TOKENS, BadAnswer, Request, Said, count_of, instructions_of
from adapters.llm.json_text import object_of
from ports.models import ModelQuestion

VERSION = "2023-06-01"
_TOOL = "answer"
_READ = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


class AnthropicDialect:
    """Dialect with a mandatory tool, whose input is the answer."""

    def request(self, question: ModelQuestion, model: str, key: str | None) -> Request:
        tool = {"name": _TOOL, "description": "Gives the answer.", "input_schema": dict(question.schema)}
        body = {
            "model": model,
            "max_tokens": MOST_TOKENS,
            "system": instructions_of(question),
            "messages": [{"role": "user", "content": json.dumps(question.data, ensure_ascii=False)}],
            "tools": [tool],
            "tool_choice": {"type": "tool", "name": _TOOL, "disable_parallel_tool_use": True},
        }
        return Request("/v1/messages", {"x-api-key": key or "", "anthropic-version": VERSION}, body)

    def said(self, answer: Mapping[str, Any]) -> Said:
        blocks = answer.get("content")
        if not isinstance(blocks, list) or not all(isinstance(block, Mapping) for block in blocks):
            raise BadAnswer("The response has no content.")
        usage, model = object_of(answer.get("usage", {}), "usage"), answer.get("model")
        counts = [count_of(usage[name]) for name in _READ if usage.get(name) is not None]
        total = sum(count for count in counts if count is not None) if counts and None not in counts else None
        tokens, name = (total, count_of(usage.get("output_tokens"))), model if isinstance(model, str) else None
        if answer.get("stop_reason") == "max_tokens":
            return Said(name, *tokens, refused="The answer was cut off.")
        used = [block for block in blocks if block.get("type") == "tool_use" and block.get("name") == _TOOL]
        if answer.get("stop_reason") == "refusal" or len(used) != 1:
            return Said(name, *tokens, refused=_words(blocks) or "The model gave no answer.")
        return Said(name, *tokens, value=object_of(used[0].get("input"), "input"))


def _words(blocks: list[Mapping[str, Any]]) -> str:
    return " ".join(str(block.get("text", "")) for block in blocks if block.get("type") == "text").strip()
