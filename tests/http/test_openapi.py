"""The OpenAPI description is valid, complete and exemplified (docs/conventions.md#docs-and-health)."""

from typing import Any

import pytest
from jsonschema import Draft202012Validator
from openapi_spec_validator import validate

from entrypoints.http.openapi import document
from entrypoints.http.openapi_answers import codes_of
from entrypoints.http.table import Table
from tests.support.table import whole
from tests.http import toys


@pytest.fixture(scope="module")
def described() -> dict[str, Any]:
    """The description of every row."""
    return document(whole(), "https://api.example", "https://docs.example")


def test_valid(described: dict[str, Any]) -> None:
    validate(described)


def test_toys_valid() -> None:
    validate(document(Table([toys.AREA]), "https://api.example", "https://docs.example"))


def test_every_row_and_answer(described: dict[str, Any]) -> None:
    for row in whole():
        operation = described["paths"][row.path][row.method.lower()]
        assert operation["operationId"] == row.id
        assert operation["x-rate-class"] == row.rate
        assert operation["x-scope"] == row.scope
        assert operation["x-who"] == row.who
        told = {
            code
            for status, answer in operation["responses"].items()
            if int(status) >= 400
            for code in answer["content"]["application/problem+json"]["examples"]
        }
        assert told == set(codes_of(row))


def test_every_answer_with_content_has_an_example_that_fits(described: dict[str, Any]) -> None:
    for path, item in described["paths"].items():
        for method, operation in item.items():
            contents = [answer.get("content", {}) for answer in operation["responses"].values()]
            contents.append(operation.get("requestBody", {}).get("content", {}))
            for content in contents:
                for media in content.values():
                    schema = {**media["schema"], "components": described["components"]}
                    assert media["examples"], (method, path)
                    for example in media["examples"].values():
                        checker = Draft202012Validator(schema)
                        faults = [
                            f"{'.'.join(map(str, e.path))}: {e.message}" for e in checker.iter_errors(example["value"])
                        ]
                        assert not faults, (method, path, faults)


def test_what_receivers_get_is_described(described: dict[str, Any]) -> None:
    post = described["webhooks"]["event"]["post"]
    names = {parameter["name"] for parameter in post["parameters"]}
    assert names == {
        "webhook-id", "webhook-timestamp", "webhook-signature", "Service-Version", "Service-Feed-Cursor", "User-Agent",
    }  # fmt: skip
    assert {"2XX", "410", "default"} == set(post["responses"])
    media = post["requestBody"]["content"]["application/json"]
    assert media["schema"] == {"$ref": "#/components/schemas/event"}
    schema = {**media["schema"], "components": described["components"]}
    assert not list(Draft202012Validator(schema).iter_errors(media["examples"]["usual"]["value"]))
