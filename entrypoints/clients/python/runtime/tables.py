"""Constants shared by the clients of all languages; `tables.js` is generated from them."""

from collections.abc import Mapping
from typing import Final

RETRIED_STATUSES = (500, 502, 503, 504)
"""Transient errors, retried if the request is repeatable: GET, PUT, DELETE, PATCH (which names the version it changes)
and POST with an Idempotency-Key. 500 is included: a failed request is rolled back and the server stores no 5xx under a
key, so a retry executes the request. 501 and others are not retried.
"""
RATE_LIMITED = "rate_limited"
"""Error code of the only 429 that is retried. An exceeded quota is not retried."""
IN_PROGRESS = "idempotency_request_in_progress"
"""Error code of the 409 for an Idempotency-Key whose first request is still in progress."""
KEPT_STATUSES = (404, 409, 412, 422, 428)
"""Statuses of error responses that the server stores under an Idempotency-Key and repeats for a retry."""
MAX_FEED_RETRY_DELAY = 3600.0
"""Maximum delay in seconds before a retry of a change feed request, even if Retry-After is longer."""
REDIRECTED = (
    "The server redirects to {location}. Redirects are not followed, so that the key is not sent to another host. "
    "If this is the service's URL, use it as the base URL."
)
"""Detail of the error for a redirecting response."""
UNREADABLE = "The response does not have the service's format: {beginning}"
"""Detail of the error for a successful response that is not a JSON object or lacks required fields."""
FEED_PAGE_FIELDS = ("data", "next_cursor", "caught_up")
"""Required fields of a change feed page."""
LIST_PAGE_FIELDS = ("data", "has_more")
"""Required fields of a list page."""
PAGE_SIZE = 100
"""Default items per page."""
OPEN_RUN_STATUSES = ("queued", "running", "waiting")
"""Statuses of runs that have not ended."""
MEDIA_TYPES: Final[Mapping[str, str]] = {
    "csv": "text/csv",
    "tsv": "text/tab-separated-values",
    "txt": "text/plain",
    "json": "application/json",
    "xml": "application/xml",
    "xls": "application/vnd.ms-excel",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "zip": "application/zip",
    "gz": "application/gzip",
}
"""Media types of feeds by file extension. The tables of operating systems differ."""
