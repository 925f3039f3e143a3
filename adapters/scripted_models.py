"""Models that return scripted answers: `{"answers": [{"task", "contains", "answer" | "later" | "refused"}]}` in JSON."""

import json
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from ports.language_models import ModelOutput, ModelPrompt, ModelRefused, ModelUnavailable, ModelUsage
from ports.schemas import SchemaValidator

MODEL_NAME = "scripted"
_OUTCOMES = ("answer", "later", "refused")


class InvalidScript(ValueError):
    """Error in a script of answers; the message states the position and the reason."""


class ScriptedModels:
    """Language models that answer with the first applicable entry of a script (port LanguageModels in ports/language_models.py).

    An entry applies if its `task` equals that of the prompt and the prompt's data contains all texts in `contains`; both are
    optional. `answer` is returned; `later` (seconds) raises ModelUnavailable, and `refused` (a reason) raises ModelRefused.
    `usage` may contain `input_tokens`, `output_tokens` and `cost_micros`; by default, four characters count as one token.
    """

    def __init__(self, script: Mapping[str, Any], schemas: SchemaValidator) -> None:
        """Validate the script. Raises InvalidScript."""
        self._answers, self._schemas = _validate_entries(script), schemas

    @classmethod
    def from_file(cls, path: Path, schemas: SchemaValidator) -> "ScriptedModels":
        """Load a script from a file. Raises InvalidScript."""
        try:
            return cls(json.loads(path.read_text("utf-8")), schemas)
        except (OSError, ValueError) as error:
            raise InvalidScript(f"{path}: {error}") from error

    def is_configured(self, model: str | None) -> bool:
        return model in (None, MODEL_NAME)

    def estimate_max_usage(self, prompt: ModelPrompt) -> ModelUsage:
        return self._find_entry(prompt)[1]

    def _find_entry(self, prompt: ModelPrompt) -> tuple[Mapping[str, Any], ModelUsage]:
        """Return the first entry that applies to the prompt, and the usage of its answer. Raises ModelRefused if none applies."""
        data = json.dumps(prompt.data, ensure_ascii=False)
        entry = next((entry for entry in self._answers if _is_applicable(entry, prompt, data)), None)
        if entry is None:
            raise ModelRefused(f"The scripted model has no answer for the task {prompt.task}.")
        answer = json.dumps(entry.get("answer"), ensure_ascii=False)
        return entry, _compute_usage(entry, len(prompt.instructions) + len(data), len(answer))

    async def generate(self, prompt: ModelPrompt) -> ModelOutput:
        entry, usage = self._find_entry(prompt)
        if "later" in entry:
            raise ModelUnavailable(
                "The script of the model requests a retry later.",
                retry_after=timedelta(seconds=entry["later"]),
                usage=usage,
            )
        if "refused" in entry:
            raise ModelRefused(str(entry["refused"]), usage=usage)
        if field_errors := self._schemas.find_field_errors(prompt.schema, entry["answer"], "answer"):
            raise ModelRefused(
                f"The model's answer does not conform to the schema: {field_errors[0].field}: {field_errors[0].detail}",
                usage=usage,
            )
        return ModelOutput(entry["answer"], usage)


def _validate_entries(script: Any) -> tuple[Mapping[str, Any], ...]:
    """Return the entries of a script. Raises InvalidScript."""
    answers = script.get("answers") if isinstance(script, Mapping) else None
    if not isinstance(answers, list):
        raise InvalidScript("A script must be an object with a list `answers`.")
    for position, entry in enumerate(answers):
        if not isinstance(entry, Mapping) or sum(name in entry for name in _OUTCOMES) != 1:
            raise InvalidScript(f"answers.{position} must have one of {', '.join(_OUTCOMES)}.")
        if not isinstance(entry.get("later", 0), int | float):
            raise InvalidScript(f"answers.{position}.later must be a number of seconds.")
    return tuple(answers)


def _is_applicable(entry: Mapping[str, Any], prompt: ModelPrompt, data: str) -> bool:
    """Return whether the entry applies to the prompt, whose data is `data` as JSON."""
    texts = entry.get("contains", [])
    return entry.get("task") in (None, prompt.task) and all(
        str(text) in data for text in ([texts] if isinstance(texts, str) else texts)
    )


def _compute_usage(entry: Mapping[str, Any], input_chars: int, output_chars: int) -> ModelUsage:
    """Return the usage that the entry states, or an estimate from the numbers of characters."""
    estimate = {"input_tokens": input_chars // 4 + 1, "output_tokens": output_chars // 4 + 1, "cost_micros": 0}
    return ModelUsage(
        MODEL_NAME, **{name: int(entry.get("usage", {}).get(name, value)) for name, value in estimate.items()}
    )
