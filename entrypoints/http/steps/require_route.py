"""Eighth step: an address that leads nowhere, shown only to callers who have proved who they are."""

from domain.kernel.errors import MethodNotAllowed, NotFound
from entrypoints.http.request_state import RequestState


def require_route(state: RequestState) -> None:
    """Raises NotFound for an unknown path, MethodNotAllowed (with Allow) for a known one that lacks the method."""
    match = state.match
    if match.route is not None:
        return
    if match.allowed:
        raise MethodNotAllowed(extra={"allow": ", ".join(match.allowed)})
    raise NotFound
