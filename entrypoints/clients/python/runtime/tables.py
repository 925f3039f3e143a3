"""Figures and lists that the clients of all languages share: `tables.js` is made of these."""

from collections.abc import Mapping
from typing import Final

RETRIED_STATUSES = (500, 502, 503, 504)
"""Answers that pass, tried again where sending twice does no more than once: GET, PUT, DELETE, PATCH (which names the
version it changes) and POST with an Idempotency-Key. 500 is among them: what fails is rolled back and the server keeps
no 5xx under a key, so that the second try does the work. 501 and the like stay as they are."""
RATE_LIMITED = "rate_limited"
"""The one 429 of the service that passes within the time of a call; a quota that is used up does not."""
IN_PROGRESS = "idempotency_request_in_progress"
"""The 409 of a key whose first request is still being carried out."""
KEPT_STATUSES = (404, 409, 412, 422, 428)
"""Refusals that the server keeps under an Idempotency-Key: what a retry hears is what the first try came to."""
LONGEST_PAUSE = 3600.0
"""Seconds that a follower waits at most between two tries, whatever Retry-After says."""
REDIRECTED = (
    "The server redirects to {location}, and redirects are not followed, so that the key goes to no other host. "
    "If that is where the service is, give the client this base address."
)
"""What an error says of a redirect."""
UNREADABLE = "The answer is not what the service answers: {beginning}"
"""What an error says of a success that is no JSON object, or lacks what every such answer has."""
FEED_PAGE_FIELDS = ("data", "next_cursor", "caught_up")
"""What every page of the change feed has."""
LIST_PAGE_FIELDS = ("data", "has_more")
"""What every page of a list has."""
PAGE_SIZE = 100
"""Items a page of a list, unless `limit` says otherwise."""
OPEN_RUN_STATUSES = ("queued", "running", "waiting")
"""Statuses of runs that go on."""
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
"""What feeds usually are, by the ends of their names; systems differ in what they know of these."""
