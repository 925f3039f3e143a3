"""Requests as Authlib reads them, built from plain values."""

from collections import defaultdict

from authlib.oauth2.rfc6749 import JsonRequest, OAuth2Payload, OAuth2Request

from domain.oauth.asking import Call

_SECURE = "https://server.invalid/"
"""Placeholder URL, since Authlib refuses http; TLS ends at the proxy, and the public address is `base_url`."""


class _Payload(OAuth2Payload):  # type: ignore[misc]  # Authlib has no types
    def __init__(self, call: Call) -> None:
        self._data = {name: value for name, value in reversed(call.pairs) if value}
        self._lists: defaultdict[str, list[str]] = defaultdict(list)
        for name, value in call.pairs:
            self._lists[name].append(value)

    @property
    def data(self) -> dict[str, str]:
        return self._data

    @property
    def datalist(self) -> defaultdict[str, list[str]]:
        return self._lists


class FormRequest(OAuth2Request):  # type: ignore[misc]  # Authlib has no types
    """Request with the parameters of its query or form, and its Authorization header."""

    def __init__(self, call: Call) -> None:
        headers = {"Authorization": call.authorization} if call.authorization else {}
        super().__init__(call.method, _SECURE, headers=headers)
        self.payload = _Payload(call)

    @property
    def args(self) -> dict[str, str]:
        """The parameters, wherever they stand."""
        return self.payload.data

    @property
    def form(self) -> dict[str, str]:
        """The parameters, wherever they stand."""
        return self.payload.data


class _Metadata:
    def __init__(self, data: dict[str, object]) -> None:
        self.data = data


class MetadataRequest(JsonRequest):  # type: ignore[misc]  # Authlib has no types
    """Request with client metadata as JSON."""

    def __init__(self, data: dict[str, object]) -> None:
        super().__init__("POST", _SECURE)
        self.payload = _Metadata(data)
