"""Errors of the server: answers of the API, and failures of the connection."""

from typing import Any


class ApiError(Exception):
    """Error answer of the API."""

    def __init__(self, status: int, message: str, *, type: str = "invalid_request_error", **fields: Any) -> None:
        super().__init__(message)
        self.status = status
        self.body = {"error": {"message": message, "type": type} | {k: v for k, v in fields.items() if v is not None}}


class InvalidParameters(ApiError):
    """Parameters of the request do not match the specification."""

    def __init__(self, message: str, param: str | None = None, code: str | None = None) -> None:
        super().__init__(400, message, param=param, code=code)


class ConnectionFault(Exception):
    """The client receives no answer; `kind` is `timeout` or `cut`."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind
