"""Methods of the API clients, derived from the OpenAPI document for all languages."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Json = Mapping[str, Any]
_CATALOGUE = "catalogue"
_PAGING_PARAMETER = "starting_after"
"""Query parameter that only paged lists have."""


@dataclass(frozen=True, slots=True)
class ClientMethod:
    """Method of the API clients that calls one operation.

    Attributes:
        operation: The operation's ID.
        name: The method's name.
        verb: The HTTP method.
        path: The path template with `{}` for each path parameter, such as `/v1/sources/{}`.
        address: The path template of the OpenAPI document, with named parameters, such as `/v1/sources/{id}`.
        ids: The names of the method's arguments for the path parameters.
        query: The OpenAPI parameter objects of the query parameters.
        body: The schema of the request body; None without a body.
        body_required: Whether a request body is required.
        answer: The schema of the response body; None without a body.
        item: The schema of a list's items; None if the response is not a paged list.
        requires_key: Whether an idempotency key (the header Idempotency-Key) is required.
        if_match: Whether the header If-Match is required.
        is_write: Whether the operation changes data.
        description: The operation's summary and description.
    """

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
    requires_key: bool
    if_match: bool
    is_write: bool
    description: str


@dataclass(frozen=True, slots=True)
class ClientMethodGroup:
    """Group of client methods, such as `sources` in `client.sources.list()`."""

    name: str
    description: str
    methods: tuple[ClientMethod, ...]


def build_groups(document: Json) -> tuple[ClientMethodGroup, ...]:
    """Return the groups of methods for the operations of an OpenAPI document, in the order of the document.

    Raises ValueError if two operations would become the same method.
    """
    description_by_tag = {tag["name"]: tag.get("description", "") for tag in document["tags"]}
    methods_by_group: dict[str, dict[str, ClientMethod]] = {}
    for path, item in document["paths"].items():
        for verb, operation in item.items():
            if any("text/event-stream" in answer.get("content", {}) for answer in operation["responses"].values()):
                continue  # long polling replaces the stream
            group, name = split_operation_id(operation["operationId"])
            methods = methods_by_group.setdefault(group, {})
            if name in methods:
                raise ValueError(f"{operation['operationId']}: {group}.{name} is not unique")
            methods[name] = _build_method(document, group, name, path, verb.upper(), operation)
    catalogue = description_by_tag.get(_CATALOGUE, "")
    return tuple(
        ClientMethodGroup(name, description_by_tag.get(name, catalogue), tuple(methods.values()))
        for name, methods in methods_by_group.items()
    )


def _build_method(document: Json, group: str, name: str, path: str, verb: str, operation: Json) -> ClientMethod:
    own_parameters = [one for one in operation["parameters"] if "$ref" not in one]
    headers = {_read_component_name(one) for one in operation["parameters"] if "$ref" in one}
    query = tuple(one for one in own_parameters if one["in"] == "query")
    path_parameters = [one["name"] for one in own_parameters if one["in"] == "path"]
    template = path
    for parameter in path_parameters:
        template = template.replace(f"{{{parameter}}}", "{}")
    body = operation.get("requestBody", {})
    [success] = [answer for status, answer in operation["responses"].items() if status.startswith("2")]
    answer = _find_json_schema(success)
    is_paged = answer and any(one["name"] == _PAGING_PARAMETER for one in query)
    return ClientMethod(
        operation=operation["operationId"],
        name=name,
        verb=verb,
        path=template,
        address=path,
        ids=tuple(build_argument_name(group, path, parameter) for parameter in path_parameters),
        query=query,
        body=_find_json_schema(body),
        body_required=bool(body.get("required")),
        answer=answer,
        item=document["components"]["schemas"][_read_component_name(answer)]["properties"]["data"]["items"]
        if is_paged
        else None,
        requires_key="IdempotencyKey" in headers,
        if_match="IfMatch" in headers,
        is_write="ServiceDryRun" in headers,
        description=f"{operation['summary']}.\n\n{operation['description']}",
    )


def _find_json_schema(message: Json) -> Any:
    """Return the JSON schema of a request body or response object; None if it has no content."""
    return message["content"]["application/json"]["schema"] if message.get("content") else None


def _read_component_name(reference: Json) -> str:
    return str(reference["$ref"]).rpartition("/")[2]


def format_type_name(component: str) -> str:
    """Return the type's name for a component's name: `SourceList` for `source_list`."""
    return "".join(part[:1].upper() + part[1:] for part in component.replace("-", "_").split("_"))


def to_camel_case(name: str) -> str:
    """Convert a name to camel case: `rotateSecret` for `rotate_secret`."""
    first, *others = name.split("_")
    return first + "".join(part.title() for part in others)


def split_operation_id(operation_id: str) -> tuple[str, str]:
    """Return the names of the group and the method for an operation ID.

    For example, return `products` and `list` for `catalogue.list_products`.
    """
    area, _, verb = operation_id.partition(".")
    word, _, noun = verb.partition("_")
    word = "get" if word == "read" else word
    if area != _CATALOGUE or not noun:
        return area, f"{word}_{noun}" if noun else word
    if noun.endswith("s"):
        return noun, word
    return noun[:-1] + "ies" if noun.endswith("y") else noun + "s", word


def build_argument_name(group: str, path: str, parameter: str) -> str:
    """Return the name of a method's argument for a path parameter.

    The parameter `id` is replaced by the resource in the path, such as `source`. It remains `id` if the group is named
    after that resource.
    """
    segments = path.split("/")
    words = [_to_singular(word) for word in segments[segments.index(f"{{{parameter}}}") - 1].split("-")]
    is_own = {_to_singular(word) for word in group.split("_")}
    return parameter if parameter != "id" or is_own & set(words) else "_".join(words)


def _to_singular(word: str) -> str:
    """Return the singular of a plural: `source` for `sources`, `category` for `categories`."""
    if word.endswith("ies"):
        return word[:-3] + "y"
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word
