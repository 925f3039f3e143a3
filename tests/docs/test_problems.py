"""Tests of the error responses in the docs."""

import json
from typing import Any

from jsonschema import Draft202012Validator

from adapters.api_json.problems import PROBLEM
from tests.docs.commands import PAGES, ROOT, read_blocks
from tests.docs.server import Server
from tests.flows.api_client import ApiClient


def read_problems() -> list[tuple[str, dict[str, Any]]]:
    """Return each complete problem in the docs, with the name of its page."""
    found = []
    for page in PAGES:
        for block in read_blocks(page, "json"):
            if '"doc_url"' in block.text:
                found.append((page.name, json.loads(block.text)))
    return found


def test_problems_match_the_schema() -> None:
    assert read_problems()
    for page, problem in read_problems():
        assert not [fault.message for fault in Draft202012Validator(dict(PROBLEM)).iter_errors(problem)], page
        assert problem.keys() <= PROBLEM["properties"].keys(), page


def test_the_service_returns_the_first_problem_of_the_page(server: Server) -> None:
    [problem] = [problem for page, problem in read_problems() if page == "errors.md"]
    assert "/v1/products?limit=101" in read_blocks(ROOT / "docs" / "errors.md")[0].text
    response = ApiClient(server.stage.port, server.env["JOINERY_KEY"]).send("GET", "/v1/products?limit=101").json()
    assert response.keys() == problem.keys()
    for name in ("title", "status", "code", "detail", "errors"):
        assert response[name] == problem[name]
