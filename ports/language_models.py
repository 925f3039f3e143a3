"""Language models, which process data of third parties and return values that conform to a JSON Schema."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class ModelPrompt:
    """Request to a language model.

    Attributes:
        task: The purpose of the request, which selects the operator's model for it.
        instructions: The instructions, which the service has written.
        data: Data of third parties, in JSON types, which the model must not treat as instructions.
        schema: The JSON Schema (Draft 2020-12) of the result, an object. Each part states its `type`, or has `anyOf`.
        model: The name of the model; None for the operator's model for the task.
    """

    task: str
    instructions: str
    data: Mapping[str, Any]
    schema: Mapping[str, Any]
    model: str | None = None


@dataclass(frozen=True, slots=True)
class ModelUsage:
    """Usage of a language model by one request: tokens, and cost in millionths of a dollar."""

    model: str
    input_tokens: int
    output_tokens: int
    cost_micros: int = 0


@dataclass(frozen=True, slots=True)
class ModelOutput:
    """Result of a request to a language model, in JSON types that conform to the schema, and the usage."""

    value: Any
    usage: ModelUsage


class ModelUnavailable(Exception):
    """The model is temporarily unavailable.

    The request may be repeated.

    Attributes:
        retry_after: Recommended time until the repetition; None if unknown.
        usage: Usage that counts as charged nevertheless; None if there is none.
    """

    def __init__(self, message: str, *, retry_after: timedelta | None = None, usage: ModelUsage | None = None) -> None:
        super().__init__(message)
        self.retry_after, self.usage = retry_after, usage


class ModelRefused(Exception):
    """The request to the model was refused or is too large, or the result does not conform to the schema. Do not repeat it."""

    def __init__(self, message: str, *, usage: ModelUsage | None = None) -> None:
        super().__init__(message)
        self.usage = usage


class ModelAccessRefused(ModelRefused):
    """The provider refuses the operator's key, account or model, so that all requests fail until the operator acts."""


class LanguageModels(Protocol):
    """Client of the language models that the operator has configured."""

    def is_configured(self, model: str | None) -> bool:
        """Return whether the model (None: the operator's default model) is configured."""
        ...

    def estimate_max_usage(self, prompt: ModelPrompt) -> ModelUsage:
        """Return an upper limit of the request's usage. Raises ModelRefused if the request would be refused."""
        ...

    async def generate(self, prompt: ModelPrompt) -> ModelOutput:
        """Send the request to the model, and return the result. Raises ModelUnavailable or ModelRefused."""
        ...
