"""Requests to models for a value that conforms to a JSON Schema."""

from dataclasses import replace
from typing import Any

import msgspec
from pydantic_ai.direct import model_request
from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, ToolCallPart, UserPromptPart
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.tools import ToolDefinition

from adapters.pydantic_ai.failures import translate_failure
from adapters.pydantic_ai.pricing import MAX_NAME_CHARS, TokenPrice
from ports.language_models import ModelOutput, ModelPrompt, ModelRefused, ModelUsage
from ports.schemas import SchemaValidator

_ANSWER = "answer"
"""Name of the schema, and of the tool that the model must call if it does not support schemas of responses."""
_MAX_TOKENS = 10**9
_MAX_REASON_CHARS = 300


async def request_output(
    model: Model,
    prompt: ModelPrompt,
    instructions: str,
    data: str,
    *,
    price: TokenPrice,
    max_usage: ModelUsage,
    validator: SchemaValidator,
) -> ModelOutput:
    """Send a prompt to a model, and return its validated output.

    Args:
        model: The model.
        prompt: The prompt, which determines the schema.
        instructions: The instructions, which contain no data.
        data: The data as JSON.
        price: The price of the model.
        max_usage: The usage that counts where the provider does not state one.
        validator: Validates the output.

    Raises:
        ModelUnavailable: The provider is temporarily unavailable.
        ModelRefused: The provider or the model refused the request, or the output does not conform to the schema.
    """
    messages = [ModelRequest(parts=[UserPromptPart(data)], instructions=instructions)]
    try:
        response = await model_request(model, messages, model_request_parameters=_build_parameters(model, prompt))
        usage = _compute_usage(response, price, max_usage)
        failure = None
    except Exception as error:  # SDKs do not validate responses, so that a malformed one raises errors of any type
        failure = translate_failure(error, max_usage)
    if failure is not None:  # raised here, so that the provider's error is not its context
        raise failure
    value = _parse_output(response, usage)
    if field_errors := validator.find_field_errors(prompt.schema, value, _ANSWER):
        reason = f"The model's answer does not conform to the schema: {field_errors[0].field}: {field_errors[0].detail}"
        raise ModelRefused(reason[:_MAX_REASON_CHARS], usage=usage)
    return ModelOutput(value, usage)


def _build_parameters(model: Model, prompt: ModelPrompt) -> ModelRequestParameters:
    """Return the parameters that require an answer which conforms to the schema of the prompt."""
    schema = dict(prompt.schema)
    if model.profile.get("supports_json_schema_output"):
        answer = OutputObjectDefinition(schema, _ANSWER, strict=True)
        return ModelRequestParameters(output_mode="native", output_object=answer)
    tool = ToolDefinition(name=_ANSWER, description="Returns the answer.", parameters_json_schema=schema, kind="output")
    return ModelRequestParameters(output_mode="tool", output_tools=[tool], allow_text_output=False)


def _compute_usage(response: ModelResponse, price: TokenPrice, max_usage: ModelUsage) -> ModelUsage:
    """Return the usage that the response states, with the numbers of `max_usage` for those that are missing or implausible."""
    counts, name, metadata = response.usage, response.model_name, response.metadata or {}
    is_stated = not counts.unmeasured_requests and _is_count(counts.input_tokens) and counts.input_tokens > 0
    read = counts.input_tokens if is_stated else max_usage.input_tokens
    written = counts.output_tokens if is_stated and _is_count(counts.output_tokens) else max_usage.output_tokens
    model = name if name and len(name) <= MAX_NAME_CHARS and name.isprintable() else max_usage.model
    usage = price.compute_usage(model, read, written)
    # only a script states the cost itself
    return replace(usage, cost_micros=metadata["cost_micros"]) if "cost_micros" in metadata else usage


def _is_count(number: Any) -> bool:
    """Return whether the number of tokens, which the provider states, is plausible."""
    return type(number) is int and 0 <= number <= _MAX_TOKENS


def _parse_output(response: ModelResponse, usage: ModelUsage) -> Any:
    """Return the answer in a response, in JSON types. Raises ModelRefused."""
    texts = [part.content for part in response.parts if isinstance(part, TextPart)]
    calls = [part for part in response.parts if isinstance(part, ToolCallPart)]
    if response.finish_reason == "length":
        raise ModelRefused("The model's answer was truncated.", usage=usage)
    if response.finish_reason == "content_filter":
        refusal = (response.provider_details or {}).get("refusal") or " ".join(texts).strip()
        reason = refusal or "The provider's content filter removed the answer."
        raise ModelRefused(reason[:_MAX_REASON_CHARS], usage=usage)
    if len(calls) > 1 or (calls and calls[0].tool_name != _ANSWER) or not (calls or texts):
        raise ModelRefused("The model gave no answer.", usage=usage)
    try:
        return msgspec.json.decode(calls[0].args_as_json_str() if calls else "".join(texts))
    except (msgspec.MsgspecError, ValueError, RecursionError):
        raise ModelRefused("The model's answer is not JSON.", usage=usage) from None
