"""GET, PATCH /v1/matching/judge-settings."""

from dataclasses import dataclass
from typing import Final, TypeAlias

from adapters.wire import matching as wire
from domain.matching.model import JudgeSettingsChange
from domain.matching.usecases.judge_settings import JudgeSettingsService
from entrypoints.areas.area import Area
from entrypoints.dependencies import Dependencies
from entrypoints.http.operation import Read, Tool, Write
from entrypoints.http.reply import Reply
from entrypoints.http.request_context import ReadContext, WriteContext


@dataclass(frozen=True, slots=True)
class MatchingServices:
    """The area's use cases."""

    judge_settings: JudgeSettingsService


Reading: TypeAlias = ReadContext[MatchingServices]
Writing: TypeAlias = WriteContext[MatchingServices]


async def read_judge_settings(call: Reading) -> Reply:
    """What is set of the judge."""
    return call.one(wire.JUDGE_SETTINGS, await call.service.judge_settings.get(call.tx))


async def update_judge_settings(call: Writing) -> Reply:
    """Change it."""
    service = call.service.judge_settings
    return call.one(wire.JUDGE_SETTINGS, await service.update(call.tx, call.command, call.expected_version))


OPERATIONS: Final = (
    Read(
        id="matching.read_judge_settings",
        path="/v1/matching/judge-settings",
        summary="Read the judge's settings",
        description="Whether a model judges open match pairs, which one, what it may do by itself, and what it may cost a "
        "day. Until somebody sets them these are the defaults, with the judge switched off.",
        handler=read_judge_settings,
        scope="products:read",
        reply=wire.JUDGE_SETTINGS.schema,
    ),
    Write(
        id="matching.update_judge_settings",
        method="PATCH",
        path="/v1/matching/judge-settings",
        summary="Change the judge's settings",
        description="Fields that are left out stay. Once it is enabled, data of both items of open pairs goes to the model's "
        "provider: titles, codes, sizes, materials, prices, descriptions. The judge never merges a pair that has a conflict. "
        "Where no model is configured on this service, or it cannot ask that one: 422.",
        handler=update_judge_settings,
        scope="products:write",
        body=wire.JUDGE_SETTINGS.patch(JudgeSettingsChange),
        reply=wire.JUDGE_SETTINGS.schema,
        errors=("conflict", "unprocessable"),
        agent=Tool(approval=True),
    ),
)


def _services(dependencies: Dependencies) -> MatchingServices:
    models = dependencies.models
    return MatchingServices(JudgeSettingsService(models.offers if models else None))


AREA: Final = Area(
    name="matching",
    title="Matching",
    description="Which items of different vendors are the same, and what a model may decide about that.",
    service=_services,
    operations=OPERATIONS,
)
