"""Language models: a question with data, and an answer of a shape that was asked for."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class ModelQuestion:
    """`instructions` are ours; `data` is other people's, in JSON's types, and no word of it instructs anybody.

    `task` names what the question is for; `schema` is the JSON Schema (Draft 2020-12) of the answer. `model` is the one
    that is wanted; None leaves it to the operator's settings.
    """

    task: str
    instructions: str
    data: Mapping[str, Any]
    schema: Mapping[str, Any]
    model: str | None = None


@dataclass(frozen=True, slots=True)
class ModelUsage:
    """What one question took: the model that answered, its tokens, and what they cost in millionths of a dollar."""

    model: str
    input_tokens: int
    output_tokens: int
    cost_micros: int = 0


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """A value in JSON's types that fits the question's schema."""

    value: Any
    usage: ModelUsage


class ModelLater(Exception):
    """No answer now: the same question may be asked again, best `after` that time. What it took all the same is `usage`."""

    def __init__(self, message: str, *, after: timedelta | None = None, usage: ModelUsage | None = None) -> None:
        super().__init__(message)
        self.after, self.usage = after, usage


class ModelRefused(Exception):
    """No answer to this question, now or ever: refused, too large, or of another shape than was asked for."""

    def __init__(self, message: str, *, usage: ModelUsage | None = None) -> None:
        super().__init__(message)
        self.usage = usage


class ModelsClosed(ModelRefused):
    """No question is let in: the key, the account or the model's name is refused, until the operator changes something."""


class Models(Protocol):
    """Whatever the operator has configured to be asked."""

    def offers(self, model: str | None) -> bool:
        """Whether questions to that model can be put; None for the one that the operator has set."""
        ...

    def most(self, question: ModelQuestion) -> ModelUsage:
        """The most that the question can take, known before it is asked. Raises ModelRefused for one that is never asked."""
        ...

    async def ask(self, question: ModelQuestion) -> ModelAnswer:
        """One answer. Raises ModelLater, ModelRefused; nothing else of its own doing."""
        ...
