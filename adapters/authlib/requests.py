"""A request to an endpoint as Authlib reads it, made of plain values."""

from collections import defaultdict

from authlib.oauth2.rfc6749 import JsonRequest, OAuth2Payload, OAuth2Request

from domain.oauth.asking import Call

_SECURE = "https://server.invalid/"
"""Authlib refuses what does not say https. What stands in front of the service says that here: the operator's address (`base_url`)."""


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
    """Query or form, and the Authorization header."""

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
    """A JSON object that an app describes itself by."""

    def __init__(self, data: dict[str, object]) -> None:
        super().__init__("POST", _SECURE)
        self.payload = _Metadata(data)
