"""Refusals as OAuth tells them (RFC 6749 §5.2 and those that build on it): never as the API's problems."""

STATUSES = {"invalid_client": 401, "server_error": 500, "temporarily_unavailable": 503}
"""Statuses of codes that are not 400."""


class OAuthError(Exception):
    """A refusal: `code` is the registered word, `description` a sentence for the app's developer, in ASCII.

    `location` is where the browser is sent with it: only ever an address that was vetted; None shows it here.
    `retry_after` are seconds. `headers` go with the answer (a challenge).
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
"""The challenge to a client that could not prove itself (RFC 6749 §5.2)."""
