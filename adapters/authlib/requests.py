"""Requests in the types that Authlib requires."""

from collections import defaultdict

from authlib.oauth2.rfc6749 import JsonRequest, OAuth2Payload, OAuth2Request

from domain.oauth.requests import OAuthRequest

_PLACEHOLDER_URL = "https://server.invalid/"
"""URL of every request for Authlib, which requires https although TLS ends at the proxy."""


class _Payload(OAuth2Payload):  # type: ignore[misc]  # Authlib has no types
    """Parameters of an OAuth request in the interface that Authlib requires."""

    def __init__(self, call: OAuthRequest) -> None:
        self._data = {name: value for name, value in reversed(call.parameters) if value}
        self._lists: defaultdict[str, list[str]] = defaultdict(list)
        for name, value in call.parameters:
            self._lists[name].append(value)

    @property
    def data(self) -> dict[str, str]:
        """First non-empty value of each parameter."""
        return self._data

    @property
    def datalist(self) -> defaultdict[str, list[str]]:
        """All values of each parameter, including empty ones."""
        return self._lists


class FormRequest(OAuth2Request):  # type: ignore[misc]  # Authlib has no types
    """Request to an OAuth endpoint, with the parameters of the query or form and the Authorization header."""

    def __init__(self, call: OAuthRequest) -> None:
        headers = {"Authorization": call.authorization} if call.authorization else {}
        super().__init__(call.method, _PLACEHOLDER_URL, headers=headers)
        self.payload = _Payload(call)

    @property
    def args(self) -> dict[str, str]:
        """Parameters of the query or form, the same as `form`."""
        return self.payload.data

    @property
    def form(self) -> dict[str, str]:
        """Parameters of the query or form, the same as `args`."""
        return self.payload.data


class _MetadataPayload:
    """Payload of a registration request."""

    def __init__(self, data: dict[str, object]) -> None:
        self.data = data


class MetadataRequest(JsonRequest):  # type: ignore[misc]  # Authlib has no types
    """Registration request with client metadata (RFC 7591)."""

    def __init__(self, data: dict[str, object]) -> None:
        super().__init__("POST", _PLACEHOLDER_URL)
        self.payload = _MetadataPayload(data)
