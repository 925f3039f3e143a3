"""The JSON of matching."""

from typing import Final

from adapters.wire.resource import Resource, changeable
from adapters.wire.schema import Schema, boolean, integer, nullable, number, text
from domain.matching.model import JudgeSettings
from domain.matching.usecases.judge_settings import LEAST_SURE, MOST_BUDGET


def _confidence(description: str) -> Schema:
    return number(0.95, description) | {"minimum": LEAST_SURE, "maximum": 1}


JUDGE_SETTINGS: Final = Resource[JudgeSettings](
    "judge_settings",
    {
        "enabled": changeable(boolean(False, "Whether a model judges open pairs.")),
        "model": changeable(
            nullable(text("small-1", longest=100))
            | {"description": "Which model is asked; null for the one that the service is set to.", "examples": [None]}
        ),
        "auto_merge_at": changeable(
            _confidence("From this confidence on `same` merges a pair that has no conflict; otherwise it stays open.")
        ),
        "auto_dismiss_at": changeable(_confidence("From this confidence on `different` dismisses a pair.")),
        "daily_budget_micros": changeable(
            integer(
                1_000_000,
                least=0,
                most=MOST_BUDGET,
                description="What judging may cost a day (UTC), in millionths of a dollar.",
            )
        ),
    },
    path="/v1/matching/judge-settings",
    description="What the judge may do by itself, in this mode.",
)
