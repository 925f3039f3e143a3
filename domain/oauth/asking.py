"""What apps ask for, as plain values: a request to an endpoint, what is known to judge it by, and what comes of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from domain.oauth.model import App, Audience, Code, Device, HeldToken


@dataclass(frozen=True, slots=True)
class Call:
    """A request: its parameters in their order (of the query or the form), and its Authorization header."""

    pairs: tuple[tuple[str, str], ...]
    authorization: str | None = None
    method: str = "POST"

    def get(self, name: str) -> str | None:
        """Return the parameter's value; an empty parameter counts as absent (RFC 6749 §3.1)."""
        return next((value for key, value in self.pairs if key == name and value), None)

    def all(self, name: str) -> tuple[str, ...]:
        """Every value of the parameter."""
        return tuple(value for key, value in self.pairs if key == name and value)

    @property
    def repeated(self) -> str | None:
        """A parameter that is sent twice although it may not be; only `resource` may."""
        names = [name for name, _ in self.pairs if name != "resource"]
        return next((name for name in names if names.count(name) > 1), None)


@dataclass(frozen=True, slots=True)
class Known:
    """What the stores say of everything that a request names. A row that is of another app is there all the same."""

    now: datetime
    app: App | None = None
    code: Code | None = None
    token: HeldToken | None = None
    device: Device | None = None


@dataclass(frozen=True, slots=True)
class Wish:
    """A vetted authorization request: who asks for what, and where the answer goes."""

    app: App
    redirect_uri: str
    scopes: frozenset[str]
    audience: Audience | None
    challenge: str
    state: str | None
    prompt: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Granted:
    """A token request that is granted: the answer's fields, and the texts of the tokens in them.

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
    """A device's request that is taken: the answer's fields, with the two codes among them."""

    app: App
    answer: Mapping[str, Any]
    device_code: str
    user_code: str
    scopes: frozenset[str]
    audience: Audience | None


@dataclass(frozen=True, slots=True)
class Metadata:
    """What an app says of itself (RFC 7591 §2), judged. `confidential`: it wants a secret. `said` is what it is answered."""

    name: str
    redirect_uris: tuple[str, ...]
    scopes: frozenset[str]
    confidential: bool
    home: str | None
    said: Mapping[str, Any]


def user_code_of(typed: str) -> str:
    """Return a user code in the form in which it is compared: capital letters without dash and spaces."""
    return "".join(letter for letter in typed.upper() if letter.isalnum())[:20]
