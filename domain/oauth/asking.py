"""OAuth requests as plain values: the request, the stored rows that it names, and the results."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from domain.oauth.model import App, Audience, Code, Device, HeldToken


@dataclass(frozen=True, slots=True)
class Call:
    """A request: its parameters in their order (of query or form), and its Authorization header."""

    pairs: tuple[tuple[str, str], ...]
    authorization: str | None = None
    method: str = "POST"

    def get(self, name: str) -> str | None:
        """Return the parameter's value; an empty one counts as missing (RFC 6749 §3.1)."""
        return next((value for key, value in self.pairs if key == name and value), None)

    def all(self, name: str) -> tuple[str, ...]:
        """Return every value of the parameter."""
        return tuple(value for key, value in self.pairs if key == name and value)

    @property
    def repeated(self) -> str | None:
        """A parameter that occurs twice; only `resource` may."""
        names = [name for name, _ in self.pairs if name != "resource"]
        return next((name for name in names if names.count(name) > 1), None)


@dataclass(frozen=True, slots=True)
class Known:
    """Stored rows that a request names, including those that belong to other apps."""

    now: datetime
    app: App | None = None
    code: Code | None = None
    token: HeldToken | None = None
    device: Device | None = None


@dataclass(frozen=True, slots=True)
class Wish:
    """A validated authorization request."""

    app: App
    redirect_uri: str
    scopes: frozenset[str]
    audience: Audience | None
    challenge: str
    state: str | None
    prompt: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Granted:
    """A granted token request: the response's fields, and the texts of its tokens.

    `by` is the grant type; `scopes` and `audience` are those of the access token.
    """

    by: str
    app: App
    answer: Mapping[str, Any]
    access: str
    refresh: str | None
    scopes: frozenset[str]
    audience: Audience | None


@dataclass(frozen=True, slots=True)
class DeviceStart:
    """An accepted device authorization request: the response's fields, and its two codes."""

    app: App
    answer: Mapping[str, Any]
    device_code: str
    user_code: str
    scopes: frozenset[str]
    audience: Audience | None


@dataclass(frozen=True, slots=True)
class Metadata:
    """Validated client metadata (RFC 7591 §2).

    `confidential`: the app requests a secret. `said` is the metadata in the response.
    """

    name: str
    redirect_uris: tuple[str, ...]
    scopes: frozenset[str]
    confidential: bool
    home: str | None
    said: Mapping[str, Any]


def user_code_of(typed: str) -> str:
    """Return a user code in the form for comparison: capital letters and digits only."""
    return "".join(letter for letter in typed.upper() if letter.isalnum())[:20]
