"""Authentication of requests by a bearer token, a password, a header or a query parameter, shared by all connectors."""

from base64 import b64encode
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from .errors import BadData

_TEXT_SCHEMA = {
    "type": "string",
    "minLength": 1,
    "maxLength": 4096,
    "pattern": "^[^\\r\\n]*$",
    "x-words": "text on one line",
}
_NAME_SCHEMA = {
    "type": "string",
    "pattern": "^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}$",
    "x-words": "1 to 100 letters, digits and the characters ! # $ % & ' * + . ^ _ ` | ~ -",
}


def _object_schema(**properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


CREDENTIALS: Mapping[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "oneOf": [
        _object_schema(token=_TEXT_SCHEMA),
        _object_schema(username=_TEXT_SCHEMA, password=_TEXT_SCHEMA),
        _object_schema(header=_NAME_SCHEMA, value=_TEXT_SCHEMA),
        _object_schema(query=_NAME_SCHEMA, value=_TEXT_SCHEMA),
    ],
}
"""JSON Schema of a bearer token, user name and password (RFC 7617), a named header, or a named query parameter."""
_PUBLIC_MEMBERS = frozenset({"username", "header", "query", "shop", "store"})
"""Names of the members of credentials whose values are not secret."""


def iterate_secret_texts(credentials: Mapping[str, Any] | None) -> Iterator[str]:
    """Yield every secret text in the credentials, at any depth of nesting."""
    for name, value in (credentials or {}).items():
        if isinstance(value, Mapping):
            yield from iterate_secret_texts(value)
        elif isinstance(value, str) and value and name not in _PUBLIC_MEMBERS:
            yield value


def add_credentials(url: str, credentials: Mapping[str, Any] | None) -> tuple[str, dict[str, str]]:
    """Return the URL and the headers of a request, one of which contains the credentials.

    Raises BadData for credentials that do not conform to CREDENTIALS.
    """
    if not credentials:
        return url, {}
    if "token" in credentials:
        return url, {"Authorization": f"Bearer {credentials['token']}"}
    if "username" in credentials:
        pair = f"{credentials['username']}:{credentials['password']}".encode()
        return url, {"Authorization": f"Basic {b64encode(pair).decode('ascii')}"}
    if "header" in credentials:
        return url, {str(credentials["header"]): str(credentials["value"])}
    if "query" in credentials:
        return set_query_parameters(url, {str(credentials["query"]): str(credentials["value"])}), {}
    raise BadData(
        "the type of the credentials is not supported; use token, username and password, header and value, "
        "or query and value"
    )


def set_query_parameters(url: str, values: Mapping[str, str]) -> str:
    """Return the URL with query parameters set to `values`, which replace parameters of the same names."""
    parts = urlsplit(url)
    others = [(name, value) for name, value in parse_qsl(parts.query, keep_blank_values=True) if name not in values]
    return urlunsplit(parts._replace(query=urlencode([*others, *values.items()]), fragment=""))


def remove_query_parameters(url: str, names: frozenset[str]) -> str:
    """Return the URL without the query parameters of these names, so that it can be displayed and stored."""
    parts = urlsplit(url)
    others = [(name, value) for name, value in parse_qsl(parts.query, keep_blank_values=True) if name not in names]
    return urlunsplit(parts._replace(query=urlencode(others), fragment=""))
