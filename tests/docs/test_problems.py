"""Errors that the docs show are what the service answers."""

import json
from typing import Any

from jsonschema import Draft202012Validator

from adapters.api_json.problems import PROBLEM
from tests.docs.commands import PAGES, ROOT, blocks
from tests.docs.server import Server
from tests.flows.api import Api


def shown() -> list[tuple[str, dict[str, Any]]]:
    """Every whole problem that stands on a page, with the page's name."""
    found = []
    for page in PAGES:
        for block in blocks(page, "json"):
            if '"doc_url"' in block.text:
                found.append((page.name, json.loads(block.text)))
    return found


def test_problems_have_their_shape() -> None:
    assert shown()
    for page, problem in shown():
        assert not [fault.message for fault in Draft202012Validator(dict(PROBLEM)).iter_errors(problem)], page
        assert problem.keys() <= PROBLEM["properties"].keys(), page


def test_the_first_refusal_is_answered_in_these_words(server: Server) -> None:
    [problem] = [problem for page, problem in shown() if page == "errors.md"]
    assert "/v1/products?limit=101" in blocks(ROOT / "docs" / "errors.md")[0].text
    answer = Api(server.stage.port, server.env["JOINERY_KEY"]).send("GET", "/v1/products?limit=101").json()
    assert answer.keys() == problem.keys()
    for name in ("title", "status", "code", "detail", "errors"):
        assert answer[name] == problem[name]
