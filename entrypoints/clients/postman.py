"""The collection of all requests in Postman's format 2.1, which Bruno, Insomnia and Hoppscotch import as well."""

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

Json = Mapping[str, Any]

_SCHEMA: Final = "https://schema.getpostman.com/json/collection/v2.1.0/collection.json"
_NEEDED: Final[Mapping[str, str]] = {"IdempotencyKey": "{{$guid}}", "IfMatch": "*"}
"""Headers that operations cannot do without, and what is sent."""


def collection(document: Json) -> bytes:
    """The collection's bytes: a folder for each area, the usual body of each request, an address and a key to fill in."""
    folders: dict[str, list[dict[str, Any]]] = {tag["name"]: [] for tag in document["tags"]}
    for path, item in document["paths"].items():
        for verb, operation in item.items():
            folders[operation["tags"][0]].append(_request(document, path, verb.upper(), operation))
    made = {
        "info": {
            "name": document["info"]["title"],
            "description": "Set the variables `base_url` and `key`.",
            "schema": _SCHEMA,
        },
        "auth": {"type": "bearer", "bearer": [{"key": "token", "value": "{{key}}", "type": "string"}]},
        "variable": [
            {"key": "base_url", "value": document["servers"][0]["url"].rstrip("/"), "type": "string"},
            {"key": "key", "value": "", "type": "string"},
        ],
        "item": [{"name": name, "item": items} for name, items in folders.items() if items],
    }
    return json.dumps(made, ensure_ascii=False, indent=1).encode()


def _request(document: Json, path: str, verb: str, operation: Json) -> dict[str, Any]:
    headers = [{"key": "Service-Version", "value": document["info"]["version"]}]
    for reference in (one["$ref"].rpartition("/")[2] for one in operation["parameters"] if "$ref" in one):
        if reference in _NEEDED:
            name = document["components"]["parameters"][reference]["name"]
            headers.append({"key": name, "value": _NEEDED[reference]})
    request: dict[str, Any] = {
        "method": verb,
        "header": headers,
        "url": _address(path, operation["parameters"]),
        "description": operation["description"],
    }
    if "requestBody" in operation:
        examples = operation["requestBody"]["content"]["application/json"]["examples"]
        text = json.dumps(examples["usual"]["value"], ensure_ascii=False, indent=2)
        request["body"] = {"mode": "raw", "raw": text, "options": {"raw": {"language": "json"}}}
    return {"name": operation["summary"], "request": request, "response": []}


def _address(path: str, parameters: Iterable[Json]) -> dict[str, Any]:
    """The address with its variables to fill in; query parameters are listed, and off unless needed."""
    segments = [f":{part[1:-1]}" if part.startswith("{") else part for part in path.strip("/").split("/")]
    own = [one for one in parameters if "$ref" not in one]
    query = [
        {
            "key": one["name"],
            "value": _sample(one["schema"]),
            "description": one.get("description", ""),
            "disabled": not one.get("required"),
        }
        for one in own
        if one["in"] == "query"
    ]
    variables = [{"key": one["name"], "value": ""} for one in own if one["in"] == "path"]
    made: dict[str, Any] = {"raw": "{{base_url}}/" + "/".join(segments), "host": ["{{base_url}}"], "path": segments}
    return made | ({"query": query} if query else {}) | ({"variable": variables} if variables else {})


def _sample(schema: Json) -> str:
    examples = schema.get("examples", ())
    return str(examples[0]) if examples else ""
