"""Eighth step: an address that leads nowhere, told only to callers who have proved who they are."""

from domain.kernel.errors import MethodNotAllowed, NotFound
from entrypoints.http.visit import Visit


def find_operation(visit: Visit) -> None:
    """Raises NotFound for an unknown path, MethodNotAllowed (with Allow) for a known one that lacks the method."""
    match = visit.match
    if match.route is not None:
        return
    if match.allowed:
        raise MethodNotAllowed(extra={"allow": ", ".join(match.allowed)})
    raise NotFound
