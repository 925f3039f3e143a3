"""Language models that answer questions about data with values of a JSON Schema."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class ModelQuestion:
    """Question to a language model.

    `instructions` are the service's own; `data` comes from third parties, in JSON types, and is never treated as
    instructions. `task` names the purpose; `schema` is the JSON Schema (Draft 2020-12) of the answer; `model` None means
    the operator's model.
    """

    task: str
    instructions: str
    data: Mapping[str, Any]
    schema: Mapping[str, Any]
    model: str | None = None


@dataclass(frozen=True, slots=True)
class ModelUsage:
    """Model, tokens and cost (in millionths of a dollar) of one question."""

    model: str
    input_tokens: int
    output_tokens: int
    cost_micros: int = 0


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """Answer in JSON types that conforms to the question's schema, with its usage."""

    value: Any
    usage: ModelUsage


class ModelLater(Exception):
    """Temporary failure: the question may be asked again, preferably after the delay `after`; `usage` was charged anyway."""

    def __init__(self, message: str, *, after: timedelta | None = None, usage: ModelUsage | None = None) -> None:
        super().__init__(message)
        self.after, self.usage = after, usage


class ModelRefused(Exception):
    """Permanent failure: the question is refused or too large, or the answer does not conform to the schema."""

    def __init__(self, message: str, *, usage: ModelUsage | None = None) -> None:
        super().__init__(message)
        self.usage = usage


class ModelsClosed(ModelRefused):
    """Failure of every question until the operator acts: the key, the account or the model's name is refused."""


class Models(Protocol):
    """Language models that the operator has configured."""

    def offers(self, model: str | None) -> bool:
        """Return whether the model, or the operator's if None, can be asked."""
        ...

    def most(self, question: ModelQuestion) -> ModelUsage:
        """Return an upper bound of the question's usage. Raises ModelRefused for a question that would never be asked."""
        ...

    async def ask(self, question: ModelQuestion) -> ModelAnswer:
        """Ask the model. Raises ModelLater or ModelRefused."""
        ...
