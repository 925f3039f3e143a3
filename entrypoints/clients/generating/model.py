"""The operations of the description as methods of groups, the same for every language."""

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from entrypoints.clients.generating.naming import group_and_method, parameter_name

Json = Mapping[str, Any]
_LIST: Final = "starting_after"
"""What the query of a list has whose pages follow one another."""


@dataclass(frozen=True, slots=True)
class QueryParameter:
    """One query parameter."""

    name: str
    schema: Json
    required: bool
    description: str

    @property
    def many(self) -> bool:
        """Whether it takes a list."""
        return bool(self.schema.get("type") == "array")


@dataclass(frozen=True, slots=True)
class Method:
    """One operation. `path` has `{}` for each of `ids`; `item` is a page's item where the answer is a paged list."""

    operation: str
    name: str
    verb: str
    path: str
    address: str
    ids: tuple[str, ...]
    query: tuple[QueryParameter, ...]
    body: Json | None
    body_required: bool
    answer: Json | None
    item: Json | None
    keyed: bool
    if_match: bool
    writes: bool
    description: str


@dataclass(frozen=True, slots=True)
class Group:
    """The methods of an area."""

    name: str
    description: str
    methods: tuple[Method, ...]


def groups_of(document: Json) -> tuple[Group, ...]:
    """Every group, in the description's order. Raises ValueError when two operations would be one method."""
    described = {tag["name"]: tag.get("description", "") for tag in document["tags"]}
    found: dict[str, list[Method]] = {}
    for path, item in document["paths"].items():
        for verb, operation in item.items():
            if _streams(operation):
                continue
            group, name = group_and_method(operation["operationId"])
            methods = found.setdefault(group, [])
            if name in {method.name for method in methods}:
                raise ValueError(f"{operation['operationId']}: {group}.{name} is there already")
            methods.append(_method(document, group, name, path, verb.upper(), operation))
    catalogue = described.get("catalogue", "")
    return tuple(Group(name, described.get(name, catalogue), tuple(methods)) for name, methods in found.items())


def _streams(operation: Json) -> bool:
    """Streams of server-sent events have no method: following by long polling does the same."""
    return any("text/event-stream" in answer.get("content", {}) for answer in operation["responses"].values())


def _method(document: Json, group: str, name: str, path: str, verb: str, operation: Json) -> Method:
    inside = [one["name"] for one in operation["parameters"] if one.get("in") == "path"]
    headers = {one["$ref"].rpartition("/")[2] for one in operation["parameters"] if "$ref" in one}
    query = tuple(_query(one) for one in operation["parameters"] if one.get("in") == "query")
    body = operation.get("requestBody")
    answer = _answer(operation)
    paged = any(one.name == _LIST for one in query)
    template = path
    for parameter in inside:
        template = template.replace(f"{{{parameter}}}", "{}")
    return Method(
        operation=operation["operationId"],
        name=name,
        verb=verb,
        path=template,
        address=path,
        ids=tuple(parameter_name(group, path, parameter) for parameter in inside),
        query=query,
        body=body["content"]["application/json"]["schema"] if body else None,
        body_required=bool(body and body.get("required")),
        answer=answer,
        item=_item(document, answer) if paged and answer else None,
        keyed="IdempotencyKey" in headers,
        if_match="IfMatch" in headers,
        writes="ServiceDryRun" in headers,
        description=f"{operation['summary']}.\n\n{operation['description']}",
    )


def _query(parameter: Json) -> QueryParameter:
    return QueryParameter(
        parameter["name"], parameter["schema"], bool(parameter.get("required")), parameter.get("description", "")
    )


def _answer(operation: Json) -> Json | None:
    """The schema of the one good answer; None where it is empty."""
    [good] = [answer for status, answer in operation["responses"].items() if status.startswith("2")]
    content = good.get("content", {})
    schema: Json | None = content["application/json"]["schema"] if content else None
    return schema


def _item(document: Json, answer: Json) -> Json:
    resolved = document["components"]["schemas"][answer["$ref"].rpartition("/")[2]]
    items: Json = resolved["properties"]["data"]["items"]
    return items


def schemas_of(document: Json) -> Mapping[str, Json]:
    """The named schemas."""
    schemas: Mapping[str, Json] = document["components"]["schemas"]
    return schemas


def known_types(document: Json) -> list[str]:
    """The types of events that the description has a schema for."""
    return sorted(document["components"]["schemas"]["typed_event"]["discriminator"]["mapping"])


def text_of(description: str, width: int = 108) -> list[str]:
    """A description's paragraphs, in lines of that width."""
    lines: list[str] = []
    for paragraph in description.strip().split("\n\n"):
        lines += ["", *textwrap.wrap(paragraph, width)] if lines else textwrap.wrap(paragraph, width)
    return lines
