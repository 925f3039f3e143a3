"""Models of providers over HTTP, by the providers' SDKs, which are imported when the first model is created."""

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic_ai.models import Model
    from pydantic_ai.settings import ModelSettings

MAX_OUTPUT_TOKENS = 4_000
"""Maximum output tokens of a request, including reasoning tokens, unless the request states another number."""
_SDK_KEY = "sent by the transport"
"""Key that the SDKs require. They never know the real one, so that none of their logs and errors can contain the key."""
_LOGGERS = ("openai", "anthropic", "httpx2", "httpcore2")
"""Loggers that write requests, which contain customers' data, at the level debug."""


@dataclass(frozen=True, slots=True)
class ProviderLimits:
    """Limits of a request to a provider.

    Attributes:
        total_seconds: Maximum time of the whole request.
        response_seconds: Maximum time until the response begins, and between two parts of the response.
        connect_seconds: Maximum time until a connection is established.
        body_bytes: Maximum bytes of a response.
        stream_bytes: Maximum bytes of a response that is a stream of events.
    """

    total_seconds: float = 100.0
    response_seconds: float = 90.0
    connect_seconds: float = 10.0
    body_bytes: int = 1 << 20
    stream_bytes: int = 8 << 20


@dataclass(frozen=True, slots=True)
class ModelServer:
    """Server of a provider's API.

    Attributes:
        api: `openai` for OpenAI's chat completions and compatible servers, `anthropic` for Anthropic's messages.
        url: The base URL of the API.
        key: The API key, which appears in no representation, error or log.
        user_agent: The value of the header User-Agent.
        limits: The limits of each request.
    """

    api: str
    url: str
    key: str | None = field(default=None, repr=False)
    user_agent: str = "Joinery"
    limits: ProviderLimits = field(default_factory=ProviderLimits)

    def create_model(self, task: str, name: str) -> "Model":
        """Create a model with its own connections, which serves any task. The import of the SDK takes 1 to 2 seconds of CPU."""
        for logger in _LOGGERS:
            logging.getLogger(logger).setLevel(logging.WARNING)
        settings: ModelSettings = {
            "max_tokens": MAX_OUTPUT_TOKENS,
            "request_timeout": self.limits.total_seconds,
            "first_event_timeout": self.limits.response_seconds,
        }
        return (_create_anthropic_model if self.api == "anthropic" else _create_openai_model)(self, name, settings)


def _create_openai_model(server: ModelServer, name: str, settings: "ModelSettings") -> "Model":
    from openai import AsyncOpenAI  # noqa: PLC0415  slow to import
    from pydantic_ai.models.openai import OpenAIChatModel  # noqa: PLC0415
    from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider  # noqa: PLC0415

    from adapters.pydantic_ai.transport import create_http_client  # noqa: PLC0415

    http = create_http_client(server, {"Authorization": f"Bearer {server.key}"} if server.key else {})
    client = AsyncOpenAI(api_key=_SDK_KEY, base_url=server.url, max_retries=0, http_client=http, timeout=http.timeout)
    return OpenAIChatModel(name, provider=OpenAICompatibleProvider("openai", openai_client=client), settings=settings)


def _create_anthropic_model(server: ModelServer, name: str, settings: "ModelSettings") -> "Model":
    from anthropic import AsyncAnthropic  # noqa: PLC0415  slow to import
    from pydantic_ai.models.anthropic import AnthropicModel  # noqa: PLC0415
    from pydantic_ai.providers.anthropic import AnthropicProvider  # noqa: PLC0415

    from adapters.pydantic_ai.transport import create_http_client  # noqa: PLC0415

    http = create_http_client(server, {"x-api-key": server.key} if server.key else {})
    client = AsyncAnthropic(
        api_key=_SDK_KEY, base_url=server.url, max_retries=0, http_client=http, timeout=http.timeout
    )
    return AnthropicModel(name, provider=AnthropicProvider(anthropic_client=client), settings=settings)
