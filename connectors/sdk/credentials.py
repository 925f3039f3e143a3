"""Request authentication in its usual forms, the same for all connectors."""

from base64 import b64encode
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from .errors import BadData

_TEXT = {"type": "string", "minLength": 1, "maxLength": 4096, "pattern": "^[^\\r\\n]*$", "x-words": "text on one line"}
_NAME = {
    "type": "string",
    "pattern": "^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}$",
    "x-words": "1 to 100 letters, digits and the signs ! # $ % & ' * + . ^ _ ` | ~ -",
}


def _form(**properties: Mapping[str, Any]) -> dict[str, Any]:
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
        _form(token=_TEXT),
        _form(username=_TEXT, password=_TEXT),
        _form(header=_NAME, value=_TEXT),
        _form(query=_NAME, value=_TEXT),
    ],
}
"""A bearer token, user name and password (RFC 7617), a named header, or a named query parameter."""
_NAMES = frozenset({"username", "header", "query", "shop", "store"})
"""Parts of credentials that say how they are sent, and are no secret."""


def secret_texts(credentials: Mapping[str, Any] | None) -> Iterator[str]:
    """Yield every secret text in the credentials, at any depth."""
    for name, value in (credentials or {}).items():
        if isinstance(value, Mapping):
            yield from secret_texts(value)
        elif isinstance(value, str) and value and name not in _NAMES:
            yield value


def sign(url: str, credentials: Mapping[str, Any] | None) -> tuple[str, dict[str, str]]:
    """Return the URL and the headers that carry the credentials. Raises BadData for a form that is not in CREDENTIALS."""
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
        return with_query(url, {str(credentials["query"]): str(credentials["value"])}), {}
    raise BadData("the credentials are of no known form")


def with_query(url: str, values: Mapping[str, str]) -> str:
    """Return the URL with these query parameters set, replacing those of the same name."""
    parts = urlsplit(url)
    kept = [(name, value) for name, value in parse_qsl(parts.query, keep_blank_values=True) if name not in values]
    return urlunsplit(parts._replace(query=urlencode([*kept, *values.items()]), fragment=""))


def without_query(url: str, names: frozenset[str]) -> str:
    """Return the URL without these query parameters, for display and storage."""
    parts = urlsplit(url)
    kept = [(name, value) for name, value in parse_qsl(parts.query, keep_blank_values=True) if name not in names]
    return urlunsplit(parts._replace(query=urlencode(kept), fragment=""))
