"""Adapters of language models (ports/language_models.py) and their recorded usage."""

import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from pydantic_ai import Agent, AgentRunResultEvent
from pydantic_ai.exceptions import ContentFilterError, ModelHTTPError
from pydantic_ai.messages import PartDeltaEvent, TextPartDelta

from adapters.pydantic_ai.failures import translate_failure
from adapters.pydantic_ai.generation import PydanticModels
from adapters.pydantic_ai.pricing import TokenPrice
from adapters.pydantic_ai.scripted import MODEL_NAME, InvalidScript, ModelScript
from entrypoints.operations.validation import JsonSchemaValidator
from ports.language_models import LanguageModels, ModelPrompt, ModelRefused, ModelUnavailable
from tests.support.model_clients import create_models as create_provider_models
from tests.support.providers import Provider, Reply, provider

pytestmark = pytest.mark.asyncio
SCHEMA = {
    "type": "object",
    "properties": {"colour": {"type": "string", "enum": ["red", "blue"]}},
    "required": ["colour"],
    "additionalProperties": False,
}
ModelFactory = Callable[..., LanguageModels]
"""Factory of models with one outcome: an `answer`, unavailable until `later`, or `refused`."""
APIS = ("openai", "anthropic")


def create_scripted_models(script: ModelScript) -> PydanticModels:
    """Return the models that answer by a script."""
    return PydanticModels(script, JsonSchemaValidator(), MODEL_NAME, {MODEL_NAME: TokenPrice(0, 0)})


def _create_scripted_models(**outcome: Any) -> LanguageModels:
    return create_scripted_models(ModelScript.from_json({"answers": [outcome]}))


def _build_reply(server: Provider, outcome: Mapping[str, Any]) -> Reply:
    if "later" in outcome:
        return Reply(429, b"{}", {"Retry-After": str(outcome["later"])})
    return server.make_refusal(outcome["refused"]) if "refused" in outcome else server.make_reply(outcome["answer"])


@pytest_asyncio.fixture(params=["scripted", *APIS])
async def create_models(request: pytest.FixtureRequest) -> AsyncIterator[ModelFactory]:
    """Return a factory of each adapter; those of providers use a server that validates requests."""
    if request.param == "scripted":
        yield _create_scripted_models
        return
    created: list[PydanticModels] = []
    with ExitStack() as servers:

        def create_models(**outcome: Any) -> LanguageModels:
            server = servers.enter_context(provider(request.param))
            server.answer = lambda _: _build_reply(server, outcome)
            created.append(create_provider_models(server))
            return created[-1]

        yield create_models
        for models in created:
            await models.close()


def _build_prompt(data: Mapping[str, Any] | None = None, task: str = "colours.pick") -> ModelPrompt:
    return ModelPrompt(task, "Which colour is it?", data or {"text": "a rosy sofa"}, SCHEMA)


async def test_an_answer_fits_the_schema_and_is_counted(create_models: ModelFactory) -> None:
    answer = await create_models(answer={"colour": "red"}).generate(_build_prompt())
    assert answer.value == {"colour": "red"} and answer.usage.model
    assert answer.usage.input_tokens > 0 and answer.usage.output_tokens > 0 and answer.usage.cost_micros >= 0


@pytest.mark.parametrize("reply", [{"colour": "green"}, {}, "red", None, {"colour": "red", "more": 1}])
async def test_an_answer_of_another_shape_is_discarded_and_counted(create_models: ModelFactory, reply: Any) -> None:
    with pytest.raises(ModelRefused) as refused:
        await create_models(answer=reply).generate(_build_prompt())
    assert refused.value.usage is not None and refused.value.usage.output_tokens > 0


async def test_the_maximum_usage_of_a_question_is_known_in_advance(create_models: ModelFactory) -> None:
    models = create_models(answer={"colour": "red"})
    most, took = models.estimate_max_usage(_build_prompt()), (await models.generate(_build_prompt())).usage
    assert most.input_tokens >= took.input_tokens and most.output_tokens >= took.output_tokens
    assert most.cost_micros >= took.cost_micros
    assert models.is_configured(None) and not models.is_configured("another")


async def test_a_busy_model_states_when_to_retry(create_models: ModelFactory) -> None:
    with pytest.raises(ModelUnavailable) as failed:
        await create_models(later=90).generate(_build_prompt())
    assert failed.value.retry_after is not None and failed.value.retry_after.total_seconds() == 90


async def test_a_refusal_is_not_retried(create_models: ModelFactory) -> None:
    with pytest.raises(ModelRefused, match="not for money"):
        await create_models(refused="not for money").generate(_build_prompt())


async def test_a_script_uses_the_first_matching_answer(tmp_path: Path) -> None:
    script = {
        "answers": [
            {"task": "other", "answer": {"colour": "red"}},
            {"contains": ["sofa", "sea"], "answer": {"colour": "blue"}, "usage": {"input_tokens": 7, "cost_micros": 3}},
            {"contains": "sofa", "answer": {"colour": "red"}},
        ]
    }
    path = tmp_path / "script.json"
    path.write_text(json.dumps(script), "utf-8")
    models = create_scripted_models(ModelScript.from_file(path))
    assert (await models.generate(_build_prompt())).value == {"colour": "red"}
    answer = await models.generate(_build_prompt({"text": "a sofa like the sea"}))
    assert answer.value == {"colour": "blue"} and (answer.usage.input_tokens, answer.usage.cost_micros) == (7, 3)
    with pytest.raises(ModelRefused, match="no answer"):
        await models.generate(_build_prompt({"text": "a chair"}))


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"answers": {}}', '{"answers": [{}]}', '{"answers": [{"later": "x"}]}',
             '{"answers": [{"answer": 1, "refused": "x"}]}', '{"answers": [{"tools": [{"arguments": {}}]}]}',
             '{"answers": [{"answer": 1, "text": "x"}]}']
)  # fmt: skip
async def test_an_invalid_script_names_the_error(tmp_path: Path, text: str) -> None:
    path = tmp_path / "script.json"
    path.write_text(text, "utf-8")
    with pytest.raises(InvalidScript, match=r"script\.json"):
        ModelScript.from_file(path)
    with pytest.raises(InvalidScript):
        ModelScript.from_file(tmp_path / "missing.json")


async def test_a_script_answers_a_conversation_with_tools() -> None:
    script = ModelScript.from_json(
        {
            "answers": [
                {"task": "assistant", "contains": "37 pieces", "text": "There are 37."},
                {"task": "assistant", "contains": "Halden", "text": "Let me see. ", "tools": [CALL, CALL]},
                {"task": "assistant", "contains": "later", "later": 1.5},
                {"task": "assistant", "contains": "refuse", "refused": "not for money"},
                {"text": "another task"},
            ]
        }
    )
    model = create_scripted_models(script).find_model("assistant", None)
    agent = Agent(model)
    searched: list[str] = []

    @agent.tool_plain
    def find_offers(q: str) -> str:
        searched.append(q)
        return "37 pieces"

    words: list[str] = []
    async with agent.run_stream_events("How many Halden?") as events:
        async for event in events:
            if isinstance(event, PartDeltaEvent) and isinstance(event.delta, TextPartDelta):
                words.append(event.delta.content_delta)
            elif isinstance(event, AgentRunResultEvent):
                assert event.result.output == "There are 37."
    assert searched == ["halden"] * 2 and words == ["me ", "see. ", "are ", "37."]
    assert (await agent.run("How many Halden?")).output == "There are 37."
    with pytest.raises(ModelHTTPError) as busy:
        await agent.run("come back later")
    assert (failure := translate_failure(busy.value, None)) and isinstance(failure, ModelUnavailable)
    assert failure.retry_after is not None and failure.retry_after.total_seconds() == 1.5
    with pytest.raises(ContentFilterError):
        async with agent.run_stream_events("refuse") as events:
            async for _ in events:
                pass


CALL = {"name": "find_offers", "arguments": {"q": "halden"}}
