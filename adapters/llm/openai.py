"""API of OpenAI and compatible servers: POST {base}/chat/completions."""

import json
import re
from collections.abc import Mapping
from typing import Any

from adapters.llm.dialect import MOST_TOKENS, BadAnswer, Request, Said, count_of, instructions_of
from adapters.llm.json_text import object_of, value_of
from adapters.llm.strict import strict
from ports.models import ModelQuestion

_NO_NAME = re.compile(r"[^A-Za-z0-9_-]")
_REFUSALS = {
    "length": "The answer was cut off.",
    "content_filter": "The provider's content filter removed the answer.",
}


class OpenAiDialect:
    """Dialect with structured outputs: `response_format` of type `json_schema`, strict."""

    def request(self, question: ModelQuestion, model: str, key: str | None) -> Request:
        schema = {"name": _NO_NAME.sub("_", question.task)[:64], "strict": True, "schema": strict(question.schema)}
        body = {
            "model": model,
            "messages": [
                {"role": "system", "content": instructions_of(question)},
                {"role": "user", "content": json.dumps(question.data, ensure_ascii=False)},
            ],
            "response_format": {"type": "json_schema", "json_schema": schema},
            "max_completion_tokens": MOST_TOKENS,
        }
        return Request("/chat/completions", {"Authorization": f"Bearer {key}"} if key else {}, body)

    def said(self, answer: Mapping[str, Any]) -> Said:
        choices = answer.get("choices")
        if not isinstance(choices, list) or len(choices) != 1:
            raise BadAnswer("The response does not have exactly one choice.")
        choice = object_of(choices[0], "choices.0")
        message = object_of(choice.get("message"), "message")
        usage, model = answer.get("usage"), answer.get("model")
        counted = usage if isinstance(usage, Mapping) else {}
        tokens = count_of(counted.get("prompt_tokens")), count_of(counted.get("completion_tokens"))
        name = model if isinstance(model, str) else None
        if isinstance(refusal := message.get("refusal"), str) and refusal:
            return Said(name, *tokens, refused=refusal)
        if ended := _REFUSALS.get(str(choice.get("finish_reason"))):
            return Said(name, *tokens, refused=ended)
        content = message.get("content")
        if not isinstance(content, str):
            return Said(name, *tokens, refused="The answer has no text.")
        try:
            return Said(name, *tokens, value=value_of(content))
        except BadAnswer:
            return Said(name, *tokens, refused="The answer is of another shape: it is not JSON.")
