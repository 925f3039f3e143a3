"""OAuth requests as plain values: a request, the stored rows that a request refers to, and the results."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from domain.oauth.model import App, Audience, AuthorizationCode, DeviceRequest, TokenWithFamily


@dataclass(frozen=True, slots=True)
class OAuthRequest:
    """OAuth request.

    `parameters` are the names and values in the query or form, in order. `authorization` is the Authorization header.
    """

    parameters: tuple[tuple[str, str], ...]
    authorization: str | None = None
    method: str = "POST"

    def get(self, name: str) -> str | None:
        """Return the first value of the parameter, or None; empty values count as missing (RFC 6749 §3.1)."""
        return next((value for key, value in self.parameters if key == name and value), None)

    def get_all(self, name: str) -> tuple[str, ...]:
        """Return all values of the parameter except empty ones."""
        return tuple(value for key, value in self.parameters if key == name and value)

    @property
    def repeated_parameter(self) -> str | None:
        """The name of the first parameter that occurs more than once, or None; `resource` may be repeated."""
        names = [name for name, _ in self.parameters if name != "resource"]
        return next((name for name in names if names.count(name) > 1), None)


@dataclass(frozen=True, slots=True)
class ReferencedRows:
    """Stored rows that a request names by client ID, code or token.

    The caller is not verified yet, so the code, token and device may belong to another app than `app`.
    """

    now: datetime
    app: App | None = None
    code: AuthorizationCode | None = None
    token: TokenWithFamily | None = None
    device: DeviceRequest | None = None


@dataclass(frozen=True, slots=True)
class AuthorizationRequest:
    """Validated authorization request; `challenge` is the PKCE challenge, `state` the app's value to return."""

    app: App
    redirect_uri: str
    scopes: frozenset[str]
    audience: Audience | None
    challenge: str
    state: str | None
    prompt: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class TokenGrant:
    """Granted token request.

    Attributes:
        response_fields: The fields of the response body.
        access_token: The text of the new access token.
        refresh_token: The text of the new refresh token, or None if no refresh token is issued.
        scopes: The scopes of the access token.
        audience: The audience of the access token.
    """

    grant_type: str
    app: App
    response_fields: Mapping[str, Any]
    access_token: str
    refresh_token: str | None
    scopes: frozenset[str]
    audience: Audience | None


@dataclass(frozen=True, slots=True)
class DeviceAuthorization:
    """Accepted device authorization request: the new codes, and the fields of the response body (`response_fields`)."""

    app: App
    response_fields: Mapping[str, Any]
    device_code: str
    user_code: str
    scopes: frozenset[str]
    audience: Audience | None


@dataclass(frozen=True, slots=True)
class ClientMetadata:
    """Validated client metadata (RFC 7591 §2).

    `is_confidential` is whether the app requests a client secret. `home` is the URL of its home page. `response` is the
    metadata that the registration response contains.
    """

    name: str
    redirect_uris: tuple[str, ...]
    scopes: frozenset[str]
    is_confidential: bool
    home: str | None
    response: Mapping[str, Any]


def normalise_user_code(text: str) -> str:
    """Normalise an entered user code for comparison: capital letters and digits only."""
    return "".join(letter for letter in text.upper() if letter.isalnum())[:20]
