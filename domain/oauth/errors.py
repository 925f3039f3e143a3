"""Errors of the OAuth endpoints (RFC 6749 §5.2 and extensions), which have another format than errors of the API."""

STATUSES = {"invalid_client": 401, "server_error": 500, "temporarily_unavailable": 503}
"""HTTP statuses by error code, for the codes whose status is not 400."""


class OAuthError(Exception):
    """An OAuth error.

    Attributes:
        code: The OAuth error code, such as `invalid_grant`.
        description: A sentence in ASCII that tells the developer of the app what is wrong.
        status: HTTP status of the response.
        location: The validated URL to redirect the browser to; None if the error must be shown instead.
        retry_after: Number of seconds after which the request may be repeated.
        headers: Additional headers of the response.
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
"""Header of the response to an app whose authentication has failed (RFC 6749 §5.2)."""
