"""Check that a model streams, and calls a tool."""

import time
from dataclasses import dataclass

from pydantic_ai.direct import model_request_stream
from pydantic_ai.messages import ModelRequest, ModelResponse
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.tools import ToolDefinition

from adapters.pydantic_ai.failures import translate_failure
from ports.language_models import ModelRefused

_TOOL = ToolDefinition(
    name="get_stock",
    description="Returns the number of pieces in stock.",
    parameters_json_schema={"type": "object", "properties": {"sku": {"type": "string"}}, "required": ["sku"]},
)
_MESSAGE = "How many pieces of HALDEN-180 are in stock? Call the tool get_stock now."


@dataclass(frozen=True, slots=True)
class StreamTiming:
    """Response to a streamed request, with the seconds until its first event and until its end."""

    response: ModelResponse
    first_event_seconds: float
    total_seconds: float


async def check_stream(model: Model) -> StreamTiming:
    """Send a small request with a tool to the model, as a stream.

    Raises:
        ModelUnavailable: The provider is temporarily unavailable.
        ModelRefused: The provider refused the request, or the model did not call the tool.
    """
    started_at, first_event_at = time.monotonic(), None
    failure = None
    try:
        async with model_request_stream(
            model,
            [ModelRequest.user_text_prompt(_MESSAGE)],
            model_request_parameters=ModelRequestParameters(function_tools=[_TOOL]),
        ) as stream:
            async for _ in stream:
                first_event_at = first_event_at or time.monotonic()
            response = stream.get()
    except Exception as error:  # SDKs do not validate responses, so that a malformed one raises errors of any type
        failure = translate_failure(error, None)
    if failure is not None:  # raised here, so that the provider's error is not its context
        raise failure
    if not any(call.tool_name == _TOOL.name for call in response.tool_calls):
        raise ModelRefused("The model did not call the tool.")
    ended_at = time.monotonic()
    return StreamTiming(response, (first_event_at or ended_at) - started_at, ended_at - started_at)
