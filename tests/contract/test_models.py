"""Language models (ports/models.py), whoever answers; and what is put down of asking them."""

import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from adapters.llm.anthropic import AnthropicDialect
from adapters.llm.models import ProviderModels
from adapters.llm.openai import OpenAiDialect
from adapters.llm.pricing import Price
from adapters.scripted import BadScript, ScriptedModels
from entrypoints.operations.validation import SchemaFaults
from ports.models import ModelLater, ModelQuestion, ModelRefused, Models
from tests.support.model_clients import model_client, outbound
from tests.support.providers import KEY, Provider, Reply, provider

pytestmark = pytest.mark.asyncio
SCHEMA = {
    "type": "object",
    "properties": {"colour": {"enum": ["red", "blue"]}},
    "required": ["colour"],
    "additionalProperties": False,
}
Say = Callable[..., Models]
"""A model that is made to say something: an answer, to come `later`, that it `refused`."""
DIALECTS = {"openai": OpenAiDialect, "anthropic": AnthropicDialect}


def _scripted(**outcome: Any) -> Models:
    return ScriptedModels({"answers": [outcome]}, SchemaFaults())


def _reply(server: Provider, outcome: Mapping[str, Any]) -> Reply:
    if "later" in outcome:
        return Reply(429, b"{}", {"Retry-After": str(outcome["later"])})
    return server.refuses(outcome["refused"]) if "refused" in outcome else server.says(outcome["answer"])


@pytest_asyncio.fixture(params=["scripted", *DIALECTS])
async def say(request: pytest.FixtureRequest) -> AsyncIterator[Say]:
    """Every adapter; those of providers speak to a server that holds them to the documentation."""
    if request.param == "scripted":
        yield _scripted
        return
    client = model_client()
    with ExitStack() as servers:

        def say(**outcome: Any) -> Models:
            server = servers.enter_context(provider(request.param))
            server.answer = lambda _: _reply(server, outcome)
            dialect, prices = DIALECTS[request.param](), {"small-1": Price(250_000, 2_000_000)}
            return ProviderModels(outbound(client, 10.0), dialect, SchemaFaults(), server.url, "small-1", prices, KEY)

        yield say
        await client.close()


def _question(data: Mapping[str, Any] | None = None, task: str = "colours.pick") -> ModelQuestion:
    return ModelQuestion(task, "Which colour is it?", data or {"text": "a rosy sofa"}, SCHEMA)


async def test_an_answer_fits_the_schema_and_is_counted(say: Say) -> None:
    answer = await say(answer={"colour": "red"}).ask(_question())
    assert answer.value == {"colour": "red"} and answer.usage.model
    assert answer.usage.input_tokens > 0 and answer.usage.output_tokens > 0 and answer.usage.cost_micros >= 0


@pytest.mark.parametrize("said", [{"colour": "green"}, {}, "red", None, {"colour": "red", "more": 1}])
async def test_an_answer_of_another_shape_is_none_and_counted_all_the_same(say: Say, said: Any) -> None:
    with pytest.raises(ModelRefused) as refused:
        await say(answer=said).ask(_question())
    assert refused.value.usage is not None and refused.value.usage.output_tokens > 0


async def test_the_most_that_a_question_takes_is_known_before(say: Say) -> None:
    models = say(answer={"colour": "red"})
    most, took = models.most(_question()), (await models.ask(_question())).usage
    assert most.input_tokens >= took.input_tokens and most.output_tokens >= took.output_tokens
    assert most.cost_micros >= took.cost_micros
    assert models.offers(None) and not models.offers("another")


async def test_later(say: Say) -> None:
    with pytest.raises(ModelLater) as failed:
        await say(later=90).ask(_question())
    assert failed.value.after is not None and failed.value.after.total_seconds() == 90


async def test_never(say: Say) -> None:
    with pytest.raises(ModelRefused, match="not for money"):
        await say(refused="not for money").ask(_question())


async def test_a_script_answers_what_fits_first(tmp_path: Path) -> None:
    script = {
        "answers": [
            {"task": "other", "answer": {"colour": "red"}},
            {"contains": ["sofa", "sea"], "answer": {"colour": "blue"}, "usage": {"input_tokens": 7, "cost_micros": 3}},
            {"contains": "sofa", "answer": {"colour": "red"}},
        ]
    }
    path = tmp_path / "script.json"
    path.write_text(json.dumps(script), "utf-8")
    models = ScriptedModels.of_file(path, SchemaFaults())
    assert (await models.ask(_question())).value == {"colour": "red"}
    answer = await models.ask(_question({"text": "a sofa like the sea"}))
    assert answer.value == {"colour": "blue"} and (answer.usage.input_tokens, answer.usage.cost_micros) == (7, 3)
    with pytest.raises(ModelRefused, match="no answer"):
        await models.ask(_question({"text": "a chair"}))


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"answers": {}}', '{"answers": [{}]}', '{"answers": [{"later": "x"}]}',
             '{"answers": [{"answer": 1, "refused": "x"}]}']
)  # fmt: skip
async def test_a_bad_script_says_why(tmp_path: Path, text: str) -> None:
    path = tmp_path / "script.json"
    path.write_text(text, "utf-8")
    with pytest.raises(BadScript, match=r"script\.json"):
        ScriptedModels.of_file(path, SchemaFaults())
    with pytest.raises(BadScript):
        ScriptedModels.of_file(tmp_path / "missing.json", SchemaFaults())
