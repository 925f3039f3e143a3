"""A model that answers what a script says: JSON of `{"answers": [{"task", "contains", "answer" | "later" | "refused"}]}`."""

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
    """The script cannot be read; the message says where and why."""


class ScriptedModels:
    """Models: of the script's answers the first that fits.

    One fits when its `task` is the question's and its text `contains` (all texts of a list) stands in the question's data;
    either may be left out. `answer` is answered, `later` (seconds) and `refused` (a reason) are raised. `usage` may give
    `input_tokens`, `output_tokens` and `cost_micros`; without it texts are counted, four characters a token.
    """

    def __init__(self, script: Mapping[str, Any], schemas: Schemas) -> None:
        """Raises BadScript."""
        self._answers, self._schemas = _checked(script), schemas

    @classmethod
    def of_file(cls, path: Path, schemas: Schemas) -> "ScriptedModels":
        """The script in a file. Raises BadScript."""
        try:
            return cls(json.loads(path.read_text("utf-8")), schemas)
        except (OSError, ValueError) as error:
            raise BadScript(f"{path}: {error}") from error

    def offers(self, model: str | None) -> bool:
        return model in (None, MODEL)

    def most(self, question: ModelQuestion) -> ModelUsage:
        return self._found(question)[1]

    def _found(self, question: ModelQuestion) -> tuple[Mapping[str, Any], ModelUsage]:
        """What the script says to the question, and what that takes. Raises ModelRefused."""
        data = json.dumps(question.data, ensure_ascii=False)
        entry = next((one for one in self._answers if _fits(one, question, data)), None)
        if entry is None:
            raise ModelRefused(f"The script has no answer for {question.task}.")
        said = json.dumps(entry.get("answer"), ensure_ascii=False)
        return entry, _usage(entry, len(question.instructions) + len(data), len(said))

    async def ask(self, question: ModelQuestion) -> ModelAnswer:
        entry, usage = self._found(question)
        if "later" in entry:
            raise ModelLater("The script says: later.", after=timedelta(seconds=entry["later"]), usage=usage)
        if "refused" in entry:
            raise ModelRefused(str(entry["refused"]), usage=usage)
        if faults := self._schemas.faults(question.schema, entry["answer"], "answer"):
            raise ModelRefused(f"The answer is of another shape: {faults[0].field}: {faults[0].detail}", usage=usage)
        return ModelAnswer(entry["answer"], usage)


def _checked(script: Any) -> tuple[Mapping[str, Any], ...]:
    answers = script.get("answers") if isinstance(script, Mapping) else None
    if not isinstance(answers, list):
        raise BadScript("A script is an object with a list `answers`.")
    for place, entry in enumerate(answers):
        if not isinstance(entry, Mapping) or sum(name in entry for name in _OUTCOMES) != 1:
            raise BadScript(f"answers.{place} must have one of {', '.join(_OUTCOMES)}.")
        if not isinstance(entry.get("later", 0), int | float):
            raise BadScript(f"answers.{place}.later must be a number of seconds.")
    return tuple(answers)


def _fits(entry: Mapping[str, Any], question: ModelQuestion, data: str) -> bool:
    wanted = entry.get("contains", [])
    return entry.get("task") in (None, question.task) and all(
        str(text) in data for text in ([wanted] if isinstance(wanted, str) else wanted)
    )


def _usage(entry: Mapping[str, Any], asked: int, said: int) -> ModelUsage:
    counted = {"input_tokens": asked // 4 + 1, "output_tokens": said // 4 + 1, "cost_micros": 0}
    return ModelUsage(MODEL, **{name: int(entry.get("usage", {}).get(name, value)) for name, value in counted.items()})
