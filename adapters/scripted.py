"""Model with scripted answers: JSON of `{"answers": [{"task", "contains", "answer" | "later" | "refused"}]}`."""

import json
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from ports.models import ModelAnswer, ModelLater, ModelQuestion, ModelRefused, ModelUsage
from ports.schemas import Schemas

MODEL = "scripted"
_OUTCOMES = ("answer", "later", "refused")


class BadScript(ValueError):
    """Invalid script; the message says where and why."""


class ScriptedModels:
    """Models that give the script's first answer that applies to the question.

    An entry applies if its `task` is the question's and the question's data contains its text or texts `contains`; both are
    optional. `answer` is returned; `later` (seconds) and `refused` (a reason) are raised. `usage` may state
    `input_tokens`, `output_tokens` and `cost_micros`; by default four characters count as one token.
    """

    def __init__(self, script: Mapping[str, Any], schemas: Schemas) -> None:
        """Validate the script. Raises BadScript."""
        self._answers, self._schemas = _validate(script), schemas

    @classmethod
    def of_file(cls, path: Path, schemas: Schemas) -> "ScriptedModels":
        """Load a script from a file. Raises BadScript."""
        try:
            return cls(json.loads(path.read_text("utf-8")), schemas)
        except (OSError, ValueError) as error:
            raise BadScript(f"{path}: {error}") from error

    def offers(self, model: str | None) -> bool:
        return model in (None, MODEL)

    def most(self, question: ModelQuestion) -> ModelUsage:
        return self._find(question)[1]

    def _find(self, question: ModelQuestion) -> tuple[Mapping[str, Any], ModelUsage]:
        """Return the first entry that applies, and its usage. Raises ModelRefused if none does."""
        data = json.dumps(question.data, ensure_ascii=False)
        entry = next((answer for answer in self._answers if _applies(answer, question, data)), None)
        if entry is None:
            raise ModelRefused(f"The script has no answer for {question.task}.")
        answer = json.dumps(entry.get("answer"), ensure_ascii=False)
        return entry, _usage(entry, len(question.instructions) + len(data), len(answer))

    async def ask(self, question: ModelQuestion) -> ModelAnswer:
        entry, usage = self._find(question)
        if "later" in entry:
            raise ModelLater("The script says: later.", after=timedelta(seconds=entry["later"]), usage=usage)
        if "refused" in entry:
            raise ModelRefused(str(entry["refused"]), usage=usage)
        if faults := self._schemas.faults(question.schema, entry["answer"], "answer"):
            raise ModelRefused(
                f"The answer does not conform to the schema: {faults[0].field}: {faults[0].detail}", usage=usage
            )
        return ModelAnswer(entry["answer"], usage)


def _validate(script: Any) -> tuple[Mapping[str, Any], ...]:
    answers = script.get("answers") if isinstance(script, Mapping) else None
    if not isinstance(answers, list):
        raise BadScript("A script is an object with a list `answers`.")
    for position, entry in enumerate(answers):
        if not isinstance(entry, Mapping) or sum(name in entry for name in _OUTCOMES) != 1:
            raise BadScript(f"answers.{position} must have one of {', '.join(_OUTCOMES)}.")
        if not isinstance(entry.get("later", 0), int | float):
            raise BadScript(f"answers.{position}.later must be a number of seconds.")
    return tuple(answers)


def _applies(entry: Mapping[str, Any], question: ModelQuestion, data: str) -> bool:
    texts = entry.get("contains", [])
    return entry.get("task") in (None, question.task) and all(
        str(text) in data for text in ([texts] if isinstance(texts, str) else texts)
    )


def _usage(entry: Mapping[str, Any], input_length: int, output_length: int) -> ModelUsage:
    estimate = {"input_tokens": input_length // 4 + 1, "output_tokens": output_length // 4 + 1, "cost_micros": 0}
    return ModelUsage(MODEL, **{name: int(entry.get("usage", {}).get(name, value)) for name, value in estimate.items()})
