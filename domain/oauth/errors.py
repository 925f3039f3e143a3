"""OAuth error responses (RFC 6749 §5.2 and extensions), which differ from the API's problems."""

STATUSES = {"invalid_client": 401, "server_error": 500, "temporarily_unavailable": 503}
"""HTTP statuses of error codes other than 400."""


class OAuthError(Exception):
    """An OAuth error.

    `code` is registered; `description` is an ASCII sentence for the app's developer. `location` is the validated
    address to which the browser is redirected; None shows the error here. `retry_after` is in seconds; `headers` are
    added to the response.
    """

    def __init__(
        self,
        code: str,
        description: str = "",
        *,
        status: int | None = None,
        location: str | None = None,
        retry_after: int | None = None,
        headers: tuple[tuple[str, str], ...] = (),
    ) -> None:
        self.code, self.description = code, description
        self.status = status or STATUSES.get(code, 400)
        self.location, self.retry_after, self.headers = location, retry_after, headers
        super().__init__(f"{code}: {description}")


CHALLENGE = (("WWW-Authenticate", 'Basic realm="Joinery OAuth", charset="UTF-8"'),)
"""The challenge to a client whose authentication failed (RFC 6749 §5.2)."""
