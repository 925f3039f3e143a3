"""Second step: every request has an id that its answer, log and audit entries share."""

from domain.kernel.ids import is_id, new_id
from entrypoints.http.visit import Visit


def give_request_id(visit: Visit) -> None:
    """Take the client's `req_…` when it is well formed, else make one."""
    given = visit.request.headers.get("request-id")
    visit.request_id = given if given is not None and is_id("req", given) else new_id("req")
