"""Execution of a task through the whole service, with a scripted model or a real one."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from pydantic_ai.messages import ModelMessage, ModelResponse, ToolCallPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo

from adapters.pydantic_ai.generation import PydanticModels
from adapters.pydantic_ai.pricing import TokenPrice, find_list_price
from adapters.pydantic_ai.providers import ModelServer
from entrypoints.operations.validation import JsonSchemaValidator
from tests.http.assistant import Call, Step, find_tool_results, join_text, search
from tests.quality.catalogue import PreparedOrganisation
from tests.quality.tasks import Task

MODEL_SETTING, KEY_SETTING = "JOINERY_TEST_MODEL", "JOINERY_TEST_MODEL_KEY"
_MAX_DECISIONS = 5


@dataclass
class TaskReport:
    """Result of a task: `faults` are unmet conditions, `cost_micros` is in millionths of a dollar."""

    task: str
    faults: list[str] = field(default_factory=list)
    steps: int = 0
    tool_calls: int = 0
    tokens: int = 0
    cost_micros: int = 0


def create_real_models() -> PydanticModels | None:
    """Return the model of JOINERY_TEST_MODEL, such as `openai:https://host/v1:name`; None if the setting is empty."""
    if not (named := os.environ.get(MODEL_SETTING)):
        return None
    api, _, address = named.partition(":")
    url, _, name = address.rpartition(":")
    price = find_list_price(api, name) or TokenPrice(0, 0)
    server = ModelServer(api, url, os.environ.get(KEY_SETTING))
    return PydanticModels(server, JsonSchemaValidator(), name, {name: price})


async def run_task(made: PreparedOrganisation, task: Task) -> TaskReport:
    """Run a task in a new conversation, decide on its changes, and check the answer and the state."""
    report, assistant = TaskReport(task.name), made.assistant
    assistant.application.clock.advance(timedelta(minutes=1))
    assistant.models.respond = _Script(made, task, report).respond
    conversation = await assistant.create_conversation()
    frames = await assistant.send_message(conversation, task.prompt)
    for _ in range(_MAX_DECISIONS):
        waiting = (await assistant.read(conversation))["pending_approvals"]
        if not waiting:
            break
        decisions = [{"id": call["id"], "approve": call["operation"] in task.approved} for call in waiting]
        frames += await assistant.run(conversation, approvals=decisions)
    executed = {entry["action"] for entry in await _list_entries(made, conversation)}
    report.faults += [f"not executed: {operation}" for operation in task.approved if operation not in executed]
    report.faults += [
        f"error: {frame['errorText']}" for frame in frames if isinstance(frame, dict) and frame["type"] == "error"
    ]
    answer = join_text(frames)
    report.faults += [f"not in the answer: {fact}" for fact in task.facts if _find_fact(made, fact, answer) is None]
    report.faults += await _find_wrong_states(made, task.state or {})
    report.tool_calls = len(
        [frame for frame in frames if isinstance(frame, dict) and frame["type"] == "tool-input-available"]
    )
    uses = assistant.application.database.fetch_rows(
        "SELECT input_tokens, output_tokens, cost_micros FROM model_uses WHERE subject = %s", conversation
    )
    report.steps, report.tokens = len(uses), sum(row.input_tokens + row.output_tokens for row in uses)
    report.cost_micros = sum(row.cost_micros for row in uses)
    return report


async def _list_entries(made: PreparedOrganisation, conversation: str) -> Sequence[Any]:
    response = await made.assistant.client.get("/v1/audit-events?limit=50")
    return [entry for entry in response.json()["data"] if entry["actor"]["id"] == conversation]


async def _find_wrong_states(made: PreparedOrganisation, states: Mapping[str, Mapping[str, Any]]) -> list[str]:
    faults = []
    for path, expected in states.items():
        response = await made.assistant.client.get(fill_ids(made, path))
        body = response.json()
        listed = body.get("categories") or body.get("data")
        actual = listed[0] if isinstance(listed, list) else body
        if not _contains(actual, expected):
            faults.append(f"{path} is {actual}")
    return faults


def _contains(actual: Any, expected: Any) -> bool:
    """Return whether a JSON value has the expected properties."""
    if isinstance(expected, Mapping):
        return isinstance(actual, Mapping) and all(_contains(actual.get(name), part) for name, part in expected.items())
    return bool(actual == expected)


def fill_ids(made: PreparedOrganisation, value: Any) -> Any:
    """Return a JSON value with the IDs of the organisation."""
    text = json.dumps(value)
    for name, id in made.ids.items():
        text = text.replace(f"<{name}>", id)
    return json.loads(text)


def _find_fact(made: PreparedOrganisation, fact: str, text: str) -> str | None:
    """Return the alternative of a fact that a text contains, or None."""
    return next((one for one in fill_ids(made, fact).split("|") if one in text), None)


@dataclass
class _Script:
    """Model that follows the steps of a task. It finds tools with the words of the prompt, and facts in their results."""

    made: PreparedOrganisation
    task: Task
    report: TaskReport

    def respond(self, messages: list[ModelMessage], info: AgentInfo) -> Step:
        prompt = max(i for i, one in enumerate(messages) if any(isinstance(part, UserPromptPart) for part in one.parts))
        number = len([one for one in messages[prompt:] if isinstance(one, ModelResponse)])
        known = {tool.name for tool in info.function_tools}
        missing = [call.name for call in self.task.steps if call.name not in known]
        if missing and number == 0:
            return [search(self.task.prompt)]
        if missing:
            self.report.faults.append(f"not found by search: {', '.join(missing)}")
            return "I have not found a tool."
        calls = [part for one in messages for part in one.parts if isinstance(part, ToolCallPart)]
        step = number - any(call.tool_name == "search_tools" for call in calls)
        if step < len(self.task.steps):
            return [Call(self.task.steps[step].name, fill_ids(self.made, self.task.steps[step].arguments))]
        results = json.dumps(find_tool_results(messages), ensure_ascii=False, default=str)
        facts = [found for fact in self.task.facts if (found := _find_fact(self.made, fact, results))]
        return f"{'; '.join(facts)}. {self.task.conclusion}"
