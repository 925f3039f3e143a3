"""Operations of the OpenAPI description as methods of groups, for all client languages."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Json = Mapping[str, Any]
_CATALOGUE = "catalogue"
_PAGED = "starting_after"
"""Query parameter of paged lists."""


@dataclass(frozen=True, slots=True)
class Method:
    """One operation. `path` has `{}` for each of `ids`; `item` is the schema of a page's items if the response is a paged list."""

    operation: str
    name: str
    verb: str
    path: str
    address: str
    ids: tuple[str, ...]
    query: tuple[Json, ...]
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
    """Return all groups in the description's order. Raises ValueError if two operations have the same method."""
    described = {tag["name"]: tag.get("description", "") for tag in document["tags"]}
    methods_by_group: dict[str, dict[str, Method]] = {}
    for path, item in document["paths"].items():
        for verb, operation in item.items():
            if any("text/event-stream" in answer.get("content", {}) for answer in operation["responses"].values()):
                continue  # long polling replaces the stream
            group, name = group_and_method(operation["operationId"])
            methods = methods_by_group.setdefault(group, {})
            if name in methods:
                raise ValueError(f"{operation['operationId']}: {group}.{name} is not unique")
            methods[name] = _method(document, group, name, path, verb.upper(), operation)
    catalogue = described.get(_CATALOGUE, "")
    return tuple(
        Group(name, described.get(name, catalogue), tuple(methods.values()))
        for name, methods in methods_by_group.items()
    )


def _method(document: Json, group: str, name: str, path: str, verb: str, operation: Json) -> Method:
    own = [one for one in operation["parameters"] if "$ref" not in one]
    headers = {_component(one) for one in operation["parameters"] if "$ref" in one}
    query = tuple(one for one in own if one["in"] == "query")
    inside = [one["name"] for one in own if one["in"] == "path"]
    template = path
    for parameter in inside:
        template = template.replace(f"{{{parameter}}}", "{}")
    body = operation.get("requestBody", {})
    [good] = [answer for status, answer in operation["responses"].items() if status.startswith("2")]
    answer = _json_schema(good)
    paged = answer and any(one["name"] == _PAGED for one in query)
    return Method(
        operation=operation["operationId"],
        name=name,
        verb=verb,
        path=template,
        address=path,
        ids=tuple(parameter_name(group, path, parameter) for parameter in inside),
        query=query,
        body=_json_schema(body),
        body_required=bool(body.get("required")),
        answer=answer,
        item=document["components"]["schemas"][_component(answer)]["properties"]["data"]["items"] if paged else None,
        keyed="IdempotencyKey" in headers,
        if_match="IfMatch" in headers,
        writes="ServiceDryRun" in headers,
        description=f"{operation['summary']}.\n\n{operation['description']}",
    )


def _json_schema(holder: Json) -> Any:
    return holder["content"]["application/json"]["schema"] if holder.get("content") else None


def _component(reference: Json) -> str:
    return str(reference["$ref"]).rpartition("/")[2]


def type_name(component: str) -> str:
    """Return the type name of a component: `source_list` is SourceList."""
    return "".join(part[:1].upper() + part[1:] for part in component.replace("-", "_").split("_"))


def camel(name: str) -> str:
    """Return the name in camel case: `rotate_secret` is rotateSecret."""
    first, *others = name.split("_")
    return first + "".join(part.title() for part in others)


def group_and_method(operation: str) -> tuple[str, str]:
    """Return group and method: `webhooks.read_delivery` is (webhooks, get_delivery), `catalogue.list_products` (products, list)."""
    area, _, verb = operation.partition(".")
    word, _, noun = verb.partition("_")
    word = "get" if word == "read" else word
    if area != _CATALOGUE or not noun:
        return area, f"{word}_{noun}" if noun else word
    if noun.endswith("s"):
        return noun, word
    return noun[:-1] + "ies" if noun.endswith("y") else noun + "s", word


def parameter_name(group: str, path: str, parameter: str) -> str:
    """Return the argument name of a path's `{id}`: `id` for the group's own resources, else the resource (`source`)."""
    segments = path.split("/")
    words = [_singular(word) for word in segments[segments.index(f"{{{parameter}}}") - 1].split("-")]
    own = {_singular(word) for word in group.split("_")}
    return parameter if parameter != "id" or own & set(words) else "_".join(words)


def _singular(word: str) -> str:
    """Return the singular: `sources` is source, `categories` category."""
    if word.endswith("ies"):
        return word[:-3] + "y"
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word
