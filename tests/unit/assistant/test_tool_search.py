"""Ranking of tools by the words of a task."""

from typing import Any

from pydantic_ai.tools import ToolDefinition

from adapters.pydantic_ai.tool_search import rank_tools

CONTEXT: Any = None
TOOLS = [
    ToolDefinition(name=name, description=description)
    for name, description in {
        "webhooks_list": "List webhook endpoints.\nReturns your endpoints, newest first.",
        "webhooks_list_deliveries": "List an endpoint's deliveries.\nReturns the deliveries of the endpoint, newest first.",
        "runs_start": "Pull a source now.\nQueues a run, which fetches the source's feed.",
    }.items()
]


def test_the_most_specific_tool_is_first() -> None:
    assert (
        rank_tools(CONTEXT, ["Which deliveries to the endpoint have failed?"], TOOLS)[0] == "webhooks_list_deliveries"
    )


def test_forms_of_a_word_are_equal() -> None:
    assert rank_tools(CONTEXT, ["pulling sources"], TOOLS) == ["runs_start"]
    assert rank_tools(CONTEXT, ["delivery"], TOOLS) == ["webhooks_list_deliveries"]


def test_stop_words_and_unknown_words_find_nothing() -> None:
    assert rank_tools(CONTEXT, ["what is the", "zorb", ""], TOOLS) == []
    assert rank_tools(CONTEXT, [], TOOLS) == [] == rank_tools(CONTEXT, ["run"], [])
