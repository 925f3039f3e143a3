"""Fourth step: live data or the sandbox (docs/conventions.md#modes)."""

from dataclasses import replace

from domain.kernel.errors import FieldError, InvalidRequest
from domain.kernel.tenancy import Tenant
from entrypoints.http.request_state import RequestState


def _refuse(detail: str) -> InvalidRequest:
    return InvalidRequest(detail, fields=(FieldError("header.Service-Mode", "invalid_value", detail),))


def choose_mode(state: RequestState) -> None:
    """A key's mode is fixed, and naming the other one is refused; other tokens are live unless they ask for test."""
    named = state.request.headers.get("service-mode")
    if named is None:
        return
    if named not in ("live", "test"):
        raise _refuse("Service-Mode must be exactly live or test.")
    caller = state.caller
    livemode = named == "live"
    if caller.tenant.livemode == livemode:
        return
    if caller.mode_fixed:
        raise _refuse(
            f"Your key is a {caller.tenant.mode} key, and its mode is fixed. Leave Service-Mode out, or use a {named} key."
        )
    state.principal = replace(caller, tenant=Tenant(caller.tenant.org, livemode))
