"""Script of a model: `{"answers": [{"task", "contains", "answer" | "text" and "tools" | "later" | "refused"}]}`."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic_ai.models import Model

MODEL_NAME = "scripted"
_OUTCOMES = (("answer",), ("later",), ("refused",), ("text", "tools"))


class InvalidScript(ValueError):
    """Error in a script of answers; the message states the position and the reason."""


@dataclass(frozen=True, slots=True)
class ModelScript:
    """Script of a model, which answers each request with the first applicable entry.

    An entry applies if its `task` equals that of the request, and the newest data, message or results of tools contain all texts
    in `contains`; both are optional. The outcomes are an `answer` (JSON), a `text` with calls of `tools` (`name` and
    `arguments`; either may be missing), an error that recommends a retry `later` (seconds), or a reason why the model
    `refused`. `usage` may contain `input_tokens`, `output_tokens` and `cost_micros`; by default, they are estimated, without cost.
    """

    entries: Sequence[Mapping[str, Any]]

    @classmethod
    def from_json(cls, script: Any) -> "ModelScript":
        """Validate a script. Raises InvalidScript."""
        return cls(_validate_entries(script))

    @classmethod
    def from_file(cls, path: Path) -> "ModelScript":
        """Load a script from a file. Raises InvalidScript."""
        try:
            return cls.from_json(json.loads(path.read_text("utf-8")))
        except (OSError, ValueError) as error:
            raise InvalidScript(f"{path}: {error}") from error

    def create_model(self, task: str, name: str) -> "Model":
        """Create the model for a task."""
        from adapters.pydantic_ai.scripted_model import create_scripted_model  # noqa: PLC0415  slow to import

        return create_scripted_model(self.entries, task, name)


def _validate_entries(script: Any) -> tuple[Mapping[str, Any], ...]:
    """Return the entries of a script. Raises InvalidScript."""
    answers = script.get("answers") if isinstance(script, Mapping) else None
    if not isinstance(answers, list):
        raise InvalidScript("A script must be an object with a list `answers`.")
    for position, entry in enumerate(answers):
        if not isinstance(entry, Mapping) or sum(any(name in entry for name in names) for names in _OUTCOMES) != 1:
            raise InvalidScript(f"answers.{position} must have one of answer, later, refused, or text and tools.")
        if not isinstance(entry.get("later", 0), int | float):
            raise InvalidScript(f"answers.{position}.later must be a number of seconds.")
        tools = entry.get("tools", [])
        if not isinstance(tools, list) or not all(isinstance(tool, Mapping) and "name" in tool for tool in tools):
            raise InvalidScript(f"answers.{position}.tools must be a list of objects with `name` and `arguments`.")
    return tuple(answers)
