"""Assistant on the example application, with a model that a test scripts."""

import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from pydantic_ai.messages import ModelMessage, ToolReturnPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, DeltaThinkingPart, DeltaToolCall, FunctionModel

from adapters.pydantic_ai.assistant import PydanticAssistantEngine
from adapters.pydantic_ai.generation import PydanticModels
from domain.people.model import User
from ports.language_models import ModelUsage
from tests.http.application import ApplicationHarness, create_plan, run_application
from tests.http.client import Client
from tests.http.test_agreements import create_token_client

Step = str | Sequence[Any] | Exception
"""What the model answers to one request: a text, texts and tool calls, or an error."""


@dataclass(frozen=True)
class Call:
    """Tool call of a model."""

    name: str
    arguments: dict[str, Any] = field(default_factory=dict)
    id: str = ""


def search(*queries: str) -> Call:
    """Return the call that makes tools available."""
    return Call("search_tools", {"queries": list(queries)})


@dataclass(frozen=True)
class Thought:
    """Reasoning of a model."""

    text: str


@dataclass(frozen=True)
class Fragments:
    """Fragments of a text as the provider streams them."""

    texts: list[str]


@dataclass
class ScriptedModels:
    """Models that answer with the steps of a script, or with what a function returns for the messages."""

    steps: list[Step] = field(default_factory=list)
    respond: Callable[[list[ModelMessage], AgentInfo], Step] | None = None
    requests: list[tuple[list[ModelMessage], AgentInfo]] = field(default_factory=list)
    priced: bool = True
    count: int = 0

    def is_configured(self, model: str | None) -> bool:
        return self.priced and model in (None, "scripted", "large-1")

    def get_model_name(self, task: str, name: str | None) -> str:
        return name or "scripted"

    def find_model(self, task: str, name: str | None) -> FunctionModel:
        return FunctionModel(stream_function=self._stream, model_name="scripted")

    def compute_usage(self, name: str, input_tokens: int, output_tokens: int) -> ModelUsage:
        return ModelUsage(name, input_tokens, output_tokens, input_tokens + output_tokens)

    async def _stream(self, messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
        self.requests.append((list(messages), info))
        step = self.respond(messages, info) if self.respond else self.steps.pop(0)
        if isinstance(step, Exception):
            raise step
        index = 0
        for part in [step] if isinstance(step, (str, Call)) else step:
            if isinstance(part, Call):
                self.count += 1
                call = DeltaToolCall(
                    part.name, json.dumps(part.arguments), tool_call_id=part.id or f"call_{self.count}"
                )
                index += 1
                yield {index: call}
            elif isinstance(part, Thought):
                index += 1
                yield {index: DeltaThinkingPart(content=part.text)}
            elif isinstance(part, Fragments):
                for text in part.texts:
                    yield text
            elif callable(part):
                await part()
            else:
                for word in part.split(" "):
                    yield word + " "


def find_tool_results(messages: Sequence[ModelMessage]) -> list[Any]:
    """Return the results of tools in the messages."""
    return [part.content for one in messages for part in one.parts if isinstance(part, ToolReturnPart)]


def find_prompts(messages: Sequence[ModelMessage]) -> list[Any]:
    """Return the messages of the person."""
    return [part.content for one in messages for part in one.parts if isinstance(part, UserPromptPart)]


@dataclass
class AssistantHarness:
    """Application with an owner's client and a scripted model."""

    application: ApplicationHarness
    models: ScriptedModels
    client: Client
    user: User

    async def create_conversation(self, **new: Any) -> str:
        response = await self.client.post("/v1/assistant/conversations", new or None)
        assert response.status == 201, response.body
        return str(response.json()["id"])

    async def run(self, conversation: str, client: Client | None = None, **body: Any) -> list[Any]:
        """Run a turn to its end, and return its frames as JSON values."""
        key = body.pop("key", None)
        headers = {"idempotency_key": key} if key else {}
        path = f"/v1/assistant/conversations/{conversation}/turns"
        response = await (client or self.client).post_for_stream(path, body, **headers)
        assert response.status == 200, response.body
        return parse_frames(response.body)

    async def send_message(self, conversation: str, text: str, **more: Any) -> list[Any]:
        return await self.run(conversation, message={"text": text}, **more)

    async def approve(self, conversation: str, *ids: str, approve: bool = True, **more: Any) -> list[Any]:
        return await self.run(conversation, approvals=[{"id": id, "approve": approve} for id in ids], **more)

    async def advance(self, duration: timedelta) -> None:
        """Let time pass; the person gets a new token."""
        self.application.clock.advance(duration)
        _, token = await self.application.sessions.create_token(self.user, self.application.orgs["Fjord"].id)
        self.client = Client(self.application.app, token)

    async def read(self, conversation: str) -> Any:
        response = await self.client.get(f"/v1/assistant/conversations/{conversation}")
        assert response.status == 200, response.body
        return response.json()


def parse_frames(body: bytes) -> list[Any]:
    """Return the frames of a stream as JSON values; the last one is `[DONE]`."""
    lines = [line[6:] for line in body.decode().split("\n\n") if line.startswith("data: ")]
    return [line if line == "[DONE]" else json.loads(line) for line in lines]


def join_text(frames: Sequence[Any]) -> str:
    """Return the text of an answer."""
    return "".join(frame["delta"] for frame in frames if isinstance(frame, dict) and frame["type"] == "text-delta")


def list_types(frames: Sequence[Any]) -> list[str]:
    """Return the types of the frames."""
    return [frame if isinstance(frame, str) else frame["type"] for frame in frames]


@asynccontextmanager
async def run_assistant(real_models: PydanticModels | None = None, **options: Any) -> AsyncIterator[AssistantHarness]:
    """Run an application whose organisation Fjord may use the assistant, with a scripted model unless real models are given."""
    models = ScriptedModels()
    engine = PydanticAssistantEngine(real_models or models)
    async with run_application(engine=engine, **options) as application:
        await application.create_organisation("Fjord", create_plan("full", "standard", "assistant", "stream"))
        client, user = await create_token_client(application, "Fjord", "owner")
        yield AssistantHarness(application, models, client, user)
