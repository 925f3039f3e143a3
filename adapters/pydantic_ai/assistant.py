"""Engine of the assistant (port AssistantEngine), which imports pydantic-ai at the first turn of the process."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from adapters.pydantic_ai.generation import PydanticModels
from adapters.pydantic_ai.threads import compute
from domain.assistant.model import TASK, PendingCall
from domain.assistant.ports import Frame, TurnHost, TurnOutcome, TurnRequest


@dataclass(frozen=True, slots=True)
class PydanticAssistantEngine:
    """Engine that runs turns with a model of pydantic-ai."""

    models: PydanticModels

    def is_available(self, model: str | None) -> bool:
        return self.models.is_configured(self.models.get_model_name(TASK, model))

    async def prepare(self, model: str | None) -> None:
        await asyncio.to_thread(_import_turns)
        await asyncio.to_thread(self.models.find_model, TASK, model)

    async def run_turn(self, request: TurnRequest, host: TurnHost, outcome: TurnOutcome) -> AsyncGenerator[Frame, None]:
        turns = await asyncio.to_thread(_import_turns)
        model = await asyncio.to_thread(self.models.find_model, TASK, request.model)
        name = self.models.get_model_name(TASK, request.model)
        turn = turns.TurnRun(request, host, outcome, model, name, self.models.compute_usage)
        async with aclosing(turn.iter_frames()) as frames:
            async for frame in frames:
                yield frame

    async def render_messages(self, history: bytes, pending: Sequence[PendingCall]) -> Sequence[Any]:
        if history == b"[]":
            return []

        def render() -> Sequence[Any]:
            messages: Sequence[Any] = _import_turns().render_messages(history, pending)
            return messages

        return await compute(render)


def _import_turns() -> ModuleType:
    from adapters.pydantic_ai import turns  # noqa: PLC0415  takes a second and 70 MB

    return turns
