"""Collection of example requests for Postman (format 2.1), which Bruno, Insomnia and Hoppscotch also import."""

import json
from collections import defaultdict
from typing import Any

from entrypoints.clients.description import Json

_SCHEMA = "https://schema.getpostman.com/json/collection/v2.1.0/collection.json"
_REQUIRED_HEADERS = {"IdempotencyKey": "{{$guid}}", "IfMatch": "*"}
"""Values of required headers by the name of their component in the OpenAPI document."""


def build_collection(document: Json) -> bytes:
    """Return the Postman collection for an OpenAPI document, as JSON with one folder per area."""
    folders: dict[str, list[Json]] = defaultdict(list)
    for path, item in document["paths"].items():
        for method, operation in item.items():
            folders[operation["tags"][0]].append(_build_request(document, path, method.upper(), operation))
    collection_ = {
        "info": {
            "name": document["info"]["title"],
            "description": "Set the variables `base_url` to the service's URL and `key` to an API key.",
            "schema": _SCHEMA,
        },
        "auth": {"type": "bearer", "bearer": [{"key": "token", "value": "{{key}}", "type": "string"}]},
        "variable": [
            {"key": "base_url", "value": document["servers"][0]["url"].rstrip("/"), "type": "string"},
            {"key": "key", "value": "", "type": "string"},
        ],
        "item": [
            {"name": tag["name"], "item": folders[tag["name"]]} for tag in document["tags"] if tag["name"] in folders
        ],
    }
    return json.dumps(collection_, ensure_ascii=False, indent=1).encode()


def _build_request(document: Json, path: str, method: str, operation: Json) -> Json:
    """Return the Postman request for an operation. Optional query parameters are included, but disabled."""
    shared_parameters = [one["$ref"].rpartition("/")[2] for one in operation["parameters"] if "$ref" in one]
    own_parameters = [one for one in operation["parameters"] if "$ref" not in one]
    headers = document["components"]["parameters"]
    segments = [f":{part[1:-1]}" if part.startswith("{") else part for part in path.strip("/").split("/")]
    url: dict[str, Any] = {
        "raw": "{{base_url}}/" + "/".join(segments),
        "host": ["{{base_url}}"],
        "path": segments,
        "query": [
            {
                "key": one["name"],
                "value": str([*one["schema"].get("examples", ()), ""][0]),
                "description": one.get("description", ""),
                "disabled": not one.get("required"),
            }
            for one in own_parameters
            if one["in"] == "query"
        ],
        "variable": [{"key": one["name"], "value": ""} for one in own_parameters if one["in"] == "path"],
    }
    request: dict[str, Any] = {
        "method": method,
        "header": [
            {"key": "Service-Version", "value": document["info"]["version"]},
            *(
                {"key": headers[one]["name"], "value": _REQUIRED_HEADERS[one]}
                for one in shared_parameters
                if one in _REQUIRED_HEADERS
            ),
        ],
        "url": {name: value for name, value in url.items() if value},
        "description": operation["description"],
    }
    if "requestBody" in operation:
        example = operation["requestBody"]["content"]["application/json"]["examples"]["usual"]["value"]
        text = json.dumps(example, ensure_ascii=False, indent=2)
        request["body"] = {"mode": "raw", "raw": text, "options": {"raw": {"language": "json"}}}
    return {"name": operation["summary"], "request": request, "response": []}
