"""Second step: every request has an id that its answer, log and audit entries share."""

from domain.kernel.ids import is_id, new_id
from entrypoints.http.request_state import RequestState


def give_request_id(state: RequestState) -> None:
    """Take the client's `req_…` when it is well formed, else make one."""
    given = state.request.headers.get("request-id")
    state.request_id = given if given is not None and is_id("req", given) else new_id("req")
