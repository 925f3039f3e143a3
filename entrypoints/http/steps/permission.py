"""Eighth and ninth step: whether there is such an operation, then what the caller may do, refused before any resource is looked up, so that no id can be probed."""

from domain.access.model import Principal
from domain.kernel.errors import FeatureUnavailable, MethodNotAllowed, NotFound, PermissionDenied
from entrypoints.http.operation import Operation
from entrypoints.http.request_state import RequestState

METHODS = frozenset({"GET", "HEAD", "POST", "PATCH", "PUT", "DELETE", "OPTIONS", "TRACE"})


def _is_who(who: str, caller: Principal) -> bool:
    if who == "member_session":
        return caller.session
    if who == "owner":
        return (caller.person or caller.session) and caller.role == "owner"
    return who == "any" or caller.person or caller.session


SENTENCES = {
    "person": "Only a person's own sign-in may do this, not a key or an app.",
    "member_session": "Only a member signed in to the console may do this.",
    "owner": "Only an owner, signed in as a person, may do this.",
}


def permit(operation: Operation, caller: Principal) -> None:
    """Raises PermissionDenied for who or scope, FeatureUnavailable for the plan, in this order."""
    if not _is_who(operation.who, caller):
        raise PermissionDenied(SENTENCES[operation.who])
    if operation.scope is not None and operation.scope not in caller.scopes:
        raise PermissionDenied(
            f"Your credential lacks the scope {operation.scope}. Use a key that has it, or have one made."
        )
    if operation.feature is not None and operation.feature not in caller.organisation.plan.features:
        raise FeatureUnavailable(
            f"Your organisation's plan ({caller.organisation.plan.code}) does not include {operation.feature}. A larger plan does: ask the operator."
        )


def check_permission(state: RequestState) -> None:
    """Ask `permit` about this request."""
    permit(state.operation, state.caller)


def _method(method: str, allowed: tuple[str, ...]) -> str:
    known = method if method in METHODS else "this method"
    return f"This address does not answer {known}; it answers {', '.join(allowed)}."


def require_route(state: RequestState) -> None:
    """Raises NotFound for an unknown path, MethodNotAllowed (with Allow) for a known one that lacks the method."""
    match = state.match
    if match.route is not None:
        return
    if match.allowed:
        raise MethodNotAllowed(_method(state.request.method, match.allowed), extra={"allow": ", ".join(match.allowed)})
    raise NotFound
